"""Names in the events of a backend's notification log: in their fields and in messages of both formats."""

import base64
import gzip
import json
from typing import Any

import pytest

from lake.protocol.codec import binary, json_transcoding
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    Database,
    NotificationEvent,
    Partition,
    SQLForeignKey,
    Table,
)
from lake.protocol.struct import Struct
from metastore.federation import messages
from metastore.federation.fields import Hidden
from metastore.federation.identifiers import marked
from tests.metastore.federation.test_mapping import mapping
from tests.support import builders

OF_ALL = {"server": "", "servicePrincipal": "", "timestamp": 7}
RENAMED = mapping(main={"deny": ["scratch"], "primary": True}, eu={"prefix": "eu_", "number": 3, "deny": ["scratch"]})


def text(value: Struct) -> str:
    return json_transcoding.from_binary(binary.encode(value))


def struct(cls: Any, value: str) -> Any:
    return binary.decode(cls, json_transcoding.to_binary(value))


def event(
    type: str, of_database: str | None, /, *, compressed: bool = False, table: str | None = None, **message: Any
) -> Any:
    written = json.dumps({**OF_ALL, **message})
    form = "json-0.2"
    if compressed:
        written, form = base64.b64encode(gzip.compress(written.encode())).decode(), "gzip(json-2.0)"
    return NotificationEvent(
        eventId=5, eventTime=1, eventType=type, dbName=of_database, tableName=table, message=written, messageFormat=form
    )


def shown(of: Any, backend: str = "eu") -> tuple[Any, dict[str, Any]]:
    """An event as the front shows it, and its message."""
    found = messages.to_front(of, RENAMED, backend)
    written = found.message
    if found.messageFormat == "gzip(json-2.0)":
        written = gzip.decompress(base64.b64decode(written)).decode()
    return found, json.loads(written)


@pytest.mark.parametrize("compressed", [False, True])
def test_names_in_fields_and_messages(compressed: bool) -> None:
    table, partition = builders.table("sales", "t", keys=("a",)), builders.partition("sales", "t", "1")
    of = event(
        "ADD_PARTITION", "sales", compressed=compressed, table="t",
        db="sales", tableObjJson=text(table), partitions=[{"a": "1"}],
        partitionListJson=[text(partition)] * 2, partitionFiles=[{"partitionName": "a=1", "files": []}],
    )  # fmt: skip
    found, message = shown(of)
    assert (found.dbName, found.tableName, found.messageFormat) == ("eu_sales", "t", of.messageFormat)
    assert message["db"] == "eu_sales"
    assert struct(Table, message["tableObjJson"]) == table.replace(dbName="eu_sales")
    assert {struct(Partition, each).dbName for each in message["partitionListJson"]} == {"eu_sales"}
    assert message["partitions"] == [{"a": "1"}] and message["timestamp"] == 7
    assert of.dbName == "sales"  # what was given is unchanged


def test_what_has_no_name_is_hidden() -> None:
    for backend in ("eu", "main"):
        with pytest.raises(Hidden):
            shown(event("CREATE_TABLE", "scratch", db="scratch"), backend)
        for type in ("CREATE_CATALOG", "CREATE_DATACONNECTOR"):
            with pytest.raises(Hidden):
                shown(event(type, None), backend)


@pytest.mark.parametrize("backend", ["eu", "main"])
def test_a_table_that_is_moved_out_of_sight_or_into_it(backend: str) -> None:
    name = "eu_sales" if backend == "eu" else "sales"
    inside, outside = builders.table("sales", "t"), builders.table("scratch", "u")
    gone, message = shown(
        event("ALTER_TABLE", "scratch", table="u", db="sales", tableObjBeforeJson=text(inside),
              tableObjAfterJson=text(outside), writeId=-1, isTruncateOp="false"), backend,
    )  # fmt: skip
    assert (gone.eventType, gone.dbName, gone.tableName) == ("DROP_TABLE", name, "t")
    assert message["db"] == name and struct(Table, message["tableObjJson"]).dbName == name
    come, message = shown(
        event("ALTER_TABLE", "sales", table="t", db="scratch", tableObjBeforeJson=text(outside),
              tableObjAfterJson=text(inside)), backend,
    )  # fmt: skip
    assert (come.eventType, come.dbName, come.tableName, message["files"]) == ("CREATE_TABLE", name, "t", [])
    with pytest.raises(Hidden):
        shown(event("ALTER_TABLE", "scratch", db="scratch", tableObjBeforeJson=text(outside),
                    tableObjAfterJson=text(outside)), backend)  # fmt: skip
    both = event("ALTER_TABLE", "other", db="sales", tableObjBeforeJson=text(inside),
                 tableObjAfterJson=text(inside.replace(dbName="other")))  # fmt: skip
    kept, message = shown(both, backend)
    assert kept.eventType == "ALTER_TABLE"
    assert struct(Table, message["tableObjBeforeJson"]).dbName == name
    assert messages.databases(both) == ("other", "sales")


def test_a_key_that_leads_out_of_sight() -> None:
    keys = [
        SQLForeignKey(fktable_db="sales", fktable_name="t", pktable_db=db, pktable_name="p") for db in ("a", "scratch")
    ]
    _, message = shown(event("ADD_FOREIGNKEY", "sales", foreignKeyListJson=[text(each) for each in keys]))
    [key] = [struct(SQLForeignKey, each) for each in message["foreignKeyListJson"]]
    assert (key.fktable_db, key.pktable_db) == ("eu_sales", "eu_a")
    for backend in ("eu", "main"):
        with pytest.raises(Hidden):
            shown(event("ADD_FOREIGNKEY", "sales", foreignKeyListJson=[text(keys[1])]), backend)


def test_transactions() -> None:
    _, message = shown(event("OPEN_TXN", None, txnIds=[8, 9], fromTxnId=8, toTxnId=9))
    assert message["txnIds"] == [marked(3, 8), marked(3, 9)]
    assert (message["fromTxnId"], message["toTxnId"]) == (marked(3, 8), marked(3, 9))
    committed = event(
        "COMMIT_TXN", None, txnid=8, writeIds=[1, 2], databases=["sales", "scratch"], tables=["t", "u"],
        partitions=["", ""], tableObjs=[text(builders.table("sales")), text(builders.table("scratch"))],
        partitionObjs=["", ""], files=["file:/a", "file:/b"],
    )  # fmt: skip
    _, message = shown(committed)
    assert (message["databases"], message["tables"], message["files"]) == (["eu_sales"], ["t"], ["file:/a"])
    assert [struct(Table, each).dbName for each in message["tableObjs"]] == ["eu_sales"]
    assert message["txnid"] == marked(3, 8)
    _, message = shown(committed, "main")
    assert (message["databases"], message["txnid"]) == (["sales"], 8)
    _, message = shown(event("ABORT_TXN", None, txnid=8, dbsUpdated=["scratch", "sales"]))
    assert message["dbsUpdated"] == ["eu_sales"]
    with pytest.raises(messages.NotUnderstood, match="which of its parts"):
        shown(event("COMMIT_TXN", None, txnid=8, databases=["sales", "scratch"], tables=["t"]))


def test_other_objects() -> None:
    found, message = shown(event("DROP_DATABASE", "sales", db="sales", dbJson=text(Database(name="sales"))))
    assert struct(Database, message["dbJson"]).name == found.dbName == "eu_sales"
    statistics = ColumnStatistics(ColumnStatisticsDesc(True, "sales", "t", catName="hive"), [])
    _, message = shown(
        event(
            "UPDATE_TABLE_COLUMN_STAT", "sales", database="sales", colStatsJson=text(statistics), parameters={"a": "b"}
        )
    )
    assert (message["database"], message["parameters"]) == ("eu_sales", {"a": "b"})
    assert struct(ColumnStatistics, message["colStatsJson"]).statsDesc.dbName == "eu_sales"


def test_an_event_that_hides_itself_is_passed_on() -> None:
    of = NotificationEvent(eventId=5, eventTime=1, eventType="HIDDEN", message="{}")
    assert messages.to_front(of, RENAMED, "eu") == of


@pytest.mark.parametrize(
    "broken",
    [{"message": "{"}, {"message": "[]"}, {"messageFormat": "avro"}, {"messageFormat": "gzip(json-2.0)"},
     {"message": '{"db":"sales","where":"sales"}'}, {"message": '{"db":"sales","tableObjJson":"{"}'}],
)  # fmt: skip
def test_what_is_not_understood(broken: dict[str, str]) -> None:
    of = event("DROP_TABLE", "sales", db="sales").replace(**broken)
    with pytest.raises(messages.NotUnderstood):
        messages.to_front(of, RENAMED, "eu")
    assert messages.to_front(of, RENAMED, "main") == of  # its names are the same there


def test_bytes_stay_where_names_are_the_same() -> None:
    of = event("ALTER_TABLE", "sales", db="sales", tableObjBeforeJson="not JSON", tableObjAfterJson="not JSON")
    assert messages.to_front(of, RENAMED, "main") == of

"""What entries of a notification log name, in both forms of messages."""

import base64
import gzip
import json
from typing import Any

import pytest

from lake.protocol.codec import binary, json_transcoding
from lake.protocol.hive import NotificationEvent, Table
from lake.protocol.struct import Struct
from metastore.migration.changes import TableChange, changes_of, is_about, names_of
from metastore.migration.objects import DatabaseKey, TableKey
from tests.support import builders

T = TableKey("hive", "db", "t")


def text(value: Struct) -> str:
    return json_transcoding.from_binary(binary.encode(value))


def event(kind: str, message: Any = None, table: str | None = "T", form: str = "json-0.2") -> NotificationEvent:
    body = message if isinstance(message, str) else json.dumps(message or {})
    if form.startswith("gzip"):
        body = base64.b64encode(gzip.compress(body.encode())).decode()
    return NotificationEvent(1, 0, kind, "DB", table, body, form)


def table(name: str = "t", **fields: Any) -> Table:
    return builders.table("db", name, keys=("dt", "Hr"), **fields)


def pairs(dt: str, hr: str) -> dict[str, str]:
    return {"hr": hr, "dt": dt}


@pytest.mark.parametrize("form", ["json-0.2", "gzip(json-2.0)"])
def test_partitions(form: str) -> None:
    added = event("ADD_PARTITION", {"partitions": [pairs("1", "a/b"), pairs("2", "b")]}, form=form)
    dropped = event("DROP_PARTITION", {"partitions": [pairs("3", "c")]}, form=form)
    renamed = event(
        "ALTER_PARTITION",
        {
            "keyValues": pairs("4", "d"),
            "partitionObjBeforeJson": text(builders.partition("db", "t", "4", "d")),
            "partitionObjAfterJson": text(builders.partition("db", "t", "5", "e")),
        },
        form=form,
    )
    inserted = event("INSERT", {"partKeyVals": pairs("6", "f")}, form=form)
    found = changes_of([added, dropped, renamed, inserted])
    assert list(found.tables) == [T]
    change = found.tables[T]
    assert (change.itself, change.everything, change.remade) == (False, False, False)
    names = names_of(["dt", "Hr"], change.partitions)
    assert names == ["dt=1/hr=a%2Fb", "dt=2/hr=b", "dt=3/hr=c", "dt=4/hr=d", "dt=5/hr=e", "dt=6/hr=f"]
    assert names_of(["dt", "hr"], change.remade_partitions) == ["dt=3/hr=c"]
    assert not changes_of([dropped], again=True).tables[T].remade_partitions
    assert names_of(["ds"], change.partitions) is None


def altered(before: Table, after: Table, **more: Any) -> dict[TableKey, TableChange]:
    message = {"tableObjBeforeJson": text(before), "tableObjAfterJson": text(after), **more}
    return changes_of([event("ALTER_TABLE", message)]).tables


def test_a_table_is_read_with_its_partitions_only_where_they_may_have_changed() -> None:
    own = TableChange(itself=True)
    assert altered(table(), table(parameters={"x": "1"})) == {T: own}
    whole = TableChange.whole()
    other = table(sd=builders.storage(location="file:/elsewhere"))
    assert altered(table(), other) == {T: whole}
    assert altered(table(), table(), isTruncateOp="true") == {T: whole}
    assert altered(table(), table("u")) == {T: whole, T._replace(table="u"): whole}
    moved = altered(table(), table().replace(dbName="Other"))
    assert moved == {T: whole, TableKey("hive", "other", "t"): whole}


def test_when_a_table_that_has_gone_was_made() -> None:
    """By which it is told from another one of its name."""
    made = table(createTime=7)
    dropped = event("DROP_TABLE", {"tableObjJson": text(made)})
    found = changes_of([event("DROP_TABLE"), dropped]).tables[T]
    assert found == TableChange(itself=True, everything=True, remade=True, gone={7})
    renamed = altered(made, table("u", createTime=7))
    assert (renamed[T].gone, renamed[T._replace(table="u")].gone) == ({7}, set())
    assert altered(made, table(createTime=7, parameters={"x": "1"}))[T].gone == set()


@pytest.mark.parametrize(
    "odd",
    [
        event("ADD_PARTITION", "no JSON"),
        event("ADD_PARTITION", {}),
        event("ADD_PARTITION", {"partitions": [{}]}),
        event("ADD_PARTITION", {"partitions": "x"}),
        event("ALTER_PARTITION", {"keyValues": pairs("1", "2"), "partitionObjBeforeJson": "{"}),
        event("ALTER_TABLE", {"tableObjBeforeJson": "{"}),
        event("ALTER_TABLE", {}),
        event("ALTER_PARTITIONS", {}),
        event("WHATEVER", {}),
        event("ADD_PARTITION", "x", form="gzip(json-2.0)").replace(message="not base64"),
        event("ADD_PARTITION", {"partitions": []}, form="avro"),
    ],
    ids=lambda each: f"{each.eventType} {each.message[:20]}",
)
def test_what_is_not_understood_is_read_as_a_whole(odd: NotificationEvent) -> None:
    found = changes_of([odd])
    assert (found.tables[T].itself, found.tables[T].everything) == (True, True)
    # A rename names another table, maybe of another database.
    assert found.everything == is_about(odd, DatabaseKey("hive", "other")) == (odd.eventType == "ALTER_TABLE")


def test_others() -> None:
    found = changes_of([
        event("DROP_TABLE"),
        event("CREATE_FUNCTION", table=None),
        event("DROP_DATABASE", table=None),
        event("WHATEVER", table=None).replace(dbName="x"),
        event("COMMIT_TXN", table=None).replace(dbName=None),
        event("CREATE_CATALOG", table=None).replace(dbName=None),
        event("ADD_PRIMARYKEY", table="k").replace(catName="spark"),
    ])  # fmt: skip
    home = DatabaseKey("hive", "db")
    assert found.tables == {
        T: TableChange(itself=True, everything=True, remade=True),
        TableKey("spark", "db", "k"): TableChange(itself=True),
    }
    assert (found.databases, found.remade, found.functions) == ({home}, {home}, {home})
    assert (found.compared, found.catalogs, found.everything) == ({DatabaseKey("hive", "x")}, True, False)
    assert changes_of([event("WHATEVER").replace(dbName=None)]).everything
    assert found.only(lambda key: key.catalog == "spark").tables.keys() == {TableKey("spark", "db", "k")}

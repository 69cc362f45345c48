"""Tables of one database at two backends: each request goes to the one that has the table, and lists have both's."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TType

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    EnvironmentContext,
    GetTablesRequest,
    InvalidOperationException,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    MetaException,
    NoSuchObjectException,
    SQLForeignKey,
    Table,
    UnlockRequest,
)
from lake.protocol.struct import ExceptionStruct
from metastore.federation import fields, kinds
from metastore.federation.configuration import FederationError
from metastore.federation.names import in_words
from tests.metastore.federation.stand_in import StandIn
from tests.metastore.federation.test_failures import answers
from tests.metastore.federation.test_fields import structs
from tests.metastore.federation.test_mapping import mapping
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
REFUSED = (MetaException, TApplicationException)


@pytest.fixture(scope="module")
def front(
    metastore_server: MetastoreServer, hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    backends = {
        "hive": f'uris = "thrift://{hive_reference.host}:{hive_reference.port}"\nprefix = "k_"\nprimary = true',
        "lake": f'uris = "{metastore_server.uri}"\nbeside = "hive"\nkinds = ["keyed", "iceberg"]\nnumber = 1',
    }
    with FrontServer(tmp_path_factory.mktemp("kinds"), backends) as server:
        yield server


@pytest.fixture
def client(front: FrontServer) -> Iterator[ThriftClient]:
    with ThriftClient(front.host, front.port) as connection:
        yield connection


@pytest.fixture
def name(ours: ThriftClient, client: ThriftClient) -> Iterator[str]:
    """A database that both have, by its name there."""
    found = f"kinds_{next(NUMBERS)}"
    ours.create_database(builders.database(found))
    client.create_database(builders.database(f"k_{found}"))
    yield found
    ours.drop_database(found, True, True)
    client.drop_database(f"k_{found}", True, True)


def keyed(db: str, name: str, **more: str) -> Table:
    return builders.table(db, name, sd=builders.parquet(), parameters={"primary-key": "id", **more})


def test_each_table_lies_at_one(client: ThriftClient, ours: ThriftClient, hive: ThriftClient, name: str) -> None:
    db = f"k_{name}"
    client.create_table(builders.table(db, "plain"))
    client.create_table(keyed(db, "keyed"))
    client.create_table(builders.table(db, "said", parameters={"federation.backend": "lake"}))
    assert hive.get_all_tables(name) == ["plain"]
    assert ours.get_all_tables(name) == ["keyed", "said"]
    assert client.get_all_tables(db) == client.get_tables(db, "*") == ["keyed", "plain", "said"]
    assert client.get_table_names_by_filter(db, "", 2) == ["keyed", "plain"]
    assert {client.get_table(db, each).dbName for each in ("plain", "keyed", "said@includeuncommit")} == {db}
    found = client.get_table_objects_by_name(db, ["plain", "keyed", "none"])
    assert sorted((each.dbName, each.tableName) for each in found) == [(db, "keyed"), (db, "plain")]
    request = GetTablesRequest(db, ["plain", "keyed"])
    assert {each.tableName for each in client.get_table_objects_by_name_req(request).tables} == {"plain", "keyed"}
    metas = [each.tableName for each in client.get_table_meta(db, "*", [])]
    assert sorted(metas) == ["keyed", "plain", "said"]
    assert client.get_all_databases().count(db) == 1
    changed = client.get_table(db, "keyed").replace(owner="somebody")
    client.alter_table(db, "keyed", changed)
    assert ours.get_table(name, "keyed").owner == "somebody"
    client.drop_table(db, "said", True)
    assert ours.get_all_tables(name) == ["keyed"]
    with pytest.raises(NoSuchObjectException):
        client.get_table(db, "said")


def test_a_name_is_taken_at_both(client: ThriftClient, ours: ThriftClient, hive: ThriftClient, name: str) -> None:
    db = f"k_{name}"
    client.create_table(builders.table(db, "plain"))
    client.create_table(keyed(db, "keyed"))
    with pytest.raises(AlreadyExistsException, match="already exists, at backend hive"):
        client.create_table(keyed(db, "plain"))
    with pytest.raises(AlreadyExistsException):
        client.create_table(builders.table(db, "keyed"))
    for old, new in (("plain", "keyed"), ("keyed", "plain")):
        with pytest.raises(ExceptionStruct, match="a request is about one backend"):
            client.alter_table(db, old, client.get_table(db, old).replace(tableName=new))
    client.alter_table(db, "keyed", client.get_table(db, "keyed").replace(tableName="other"))
    assert (ours.get_all_tables(name), hive.get_all_tables(name)) == (["other"], ["plain"])
    hive.create_table(builders.table(name, "other"))  # past the front: the one beside hides it
    assert client.get_all_tables(db) == ["other", "plain"]
    assert client.get_table(db, "other").parameters.get("primary-key") == "id"
    client.drop_table_with_environment_context(db, "other", True, EnvironmentContext({}))
    assert hive.get_all_tables(name) == ["other", "plain"]


def test_what_is_about_both_is_refused(client: ThriftClient, ours: ThriftClient, name: str) -> None:
    db = f"k_{name}"
    client.create_table(builders.table(db, "plain"))
    client.create_table(keyed(db, "keyed"))
    key = SQLForeignKey(db, "keyed", "id", db, "plain", "id", 1, 0, 0, "f", "p", True, False, False)
    with pytest.raises(REFUSED, match=f"{db}.keyed of backend lake and {db}.plain of backend hive"):
        client.create_table_with_constraints(builders.table(db, "plain"), [], [key])
    parts = [LockComponent(LockType.SHARED_READ, LockLevel.TABLE, db, each) for each in ("plain", "keyed")]
    with pytest.raises(REFUSED, match="a request is about one backend"):
        client.lock(LockRequest(parts, user="me", hostname="here"))
    for part, number in zip(parts, (0, 1), strict=True):
        lock = client.lock(LockRequest([part], user="me", hostname="here"))
        assert lock.lockid >> 48 == number
        client.unlock(UnlockRequest(lock.lockid))
    with pytest.raises(InvalidOperationException, match="Backend lake has tables of it, such as keyed: drop them"):
        client.drop_database(db, True, True)
    with pytest.raises(REFUSED, match="but no table"):
        client.rename_partition(db, "", ["1"], builders.partition("", "", "1"))
    with pytest.raises(REFUSED, match="say hive or lake"):
        client.create_table(builders.table(db, "x", parameters={"federation.backend": "mars"}))


def test_while_the_one_beside_is_away(tmp_path: Path) -> None:
    """Nobody knows then whether it has the table: nothing is answered out of the other one."""
    with StandIn(answers("sales", get_all_tables=lambda db: ["t"])) as hive:
        backends = {
            "hive": f'uris = "{hive.uri}"',
            "lake": 'uris = "thrift://127.0.0.1:1"\nbeside = "hive"\nconnect_seconds = 1',
        }
        with FrontServer(tmp_path / "front", backends) as server, ThriftClient(server.host, server.port) as client:
            with pytest.raises(MetaException, match=r"backend lake of this front can't be reached.*TTransportExc"):
                client.get_table("sales", "t")
            with pytest.raises(MetaException, match="backend lake of this front can't be reached"):
                client.get_all_tables("sales")
            assert client.get_all_databases() == ["sales"]
            assert "create_table" not in hive.names()


def test_every_field_that_holds_a_table_is_found() -> None:
    others = {
        ("NotificationEventRequest", "tableNames"), ("NotificationEventsCountRequest", "tableNames"),
        ("GetTablesRequest", "tablesPattern"), ("GetTablesExtRequest", "tableNamePattern"), ("Table", "tableType"),
        ("get_tables_by_type_args", "tableType"), ("CreationMetadata", "tablesUsed"),
        ("TableMeta", "tableType"), ("WriteEventInfo", "tableObj"),
    }  # fmt: skip
    forgotten = set()
    for cls in structs():
        it = fields.plan(cls)
        if not it.databases or cls.__name__.endswith("_result"):
            continue
        value: Any = cls()
        texts = []
        for entry in cls.thrift_spec:
            if entry is None:
                continue
            _, kind, field, argument, _ = entry
            if kind == TType.STRING and field not in (it.catalog, *it.write_ids):
                setattr(value, field, f"d.{field}" if field in it.qualified else field)
            elif kind in (TType.LIST, TType.SET) and argument[0] == TType.STRING:
                setattr(value, field, [f"d.{field}" if field in it.qualified else field])
            else:
                continue
            sounds = "tab" in field.lower() or "tbl" in field.lower()
            if sounds and field not in it.databases and (cls.__name__, field) not in others:
                texts.append(field)
        found = {each.table for each in kinds.tables(value)}
        forgotten |= {(cls.__name__, each) for each in texts if each.lower() not in found}
    assert not forgotten


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        ({"a": {}, "b": {"beside": "c"}}, "backends.b.beside names c: it may be one of a"),
        ({"a": {}, "b": {"beside": "a"}, "c": {"beside": "b"}}, "backends.c.beside names b"),
        ({"a": {}, "b": {"beside": "a"}, "c": {"beside": "a"}}, "backends.b and backends.c are both beside a"),
        ({"a": {}, "b": {"beside": "a", "prefix": "x"}}, "beside = 'a' leaves no prefix"),
        ({"a": {}, "b": {"kinds": ["hudi"], "prefix": "x"}}, "say beside, too"),
    ],
)
def test_files_that_are_refused(backends: dict[str, Any], message: str) -> None:
    with pytest.raises((FederationError, ValueError), match=message):
        mapping(**backends)


def test_explain() -> None:
    found = mapping(
        a={"prefix": "p_"},
        b={
            "beside": "a",
            "read_uris": "thrift://copy.example:9083",
            "read_only": ["x*"],
            "uris": "thrift://b.example:1",
        },
    )
    text = found.explain(in_words("p_x"))
    assert "x of backend a (thrift://a.example:9083), read-write, by backends.a.prefix 'p_'" in text
    assert "Its tables that backend b (thrift://b.example:1) has are there, read-only, and so are new ones of" in text
    assert "Reads at b go to thrift://copy.example:9083, but those of a connection that has written there in" in text

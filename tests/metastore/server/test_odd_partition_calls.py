"""Every call about partitions, with each of its fields in turn left out or empty: whatever is missing, the answer is a
result or an exception of Hive's that says what is wrong."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException, TType

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlreadyExistsException, ColumnStatisticsData, NoSuchObjectException, Partition
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.support import builders
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.long

DB, TABLE, OTHER = "odd_partitions", "t", "u"
CALLS = sorted(
    name
    for name in METHODS
    if "partition" in name.lower() or name in ("get_part_specs_by_filter", "set_aggr_stats_for", "get_aggr_stats_for")
)
#: How deep into a call's structs fields are varied, and how deep they are filled.
VARIED, FILLED = 3, 7

NAMED: dict[str, Any] = {
    **dict.fromkeys(("db_name", "dbName", "dbname", "source_db", "dest_db"), DB),
    **dict.fromkeys(("tbl_name", "tblName", "tableName", "source_table_name"), TABLE),
    **{name: ["1"] for name in ("part_vals", "partVals", "partValues", "values")},
    **dict.fromkeys(("part_name", "partName"), "k=1"),
    **{name: ["k=1"] for name in ("names", "partNames")},
    **dict.fromkeys(("catName", "catalogName"), "hive"),
    **dict.fromkeys(("filter", "expr"), "k = '1'"),
    **dict.fromkeys(("colNames", "colName", "col_name"), "id"),
    "partitionSpecs": {"k": "1"},
    "dest_table_name": OTHER,
    "fieldList": ["values"],
    "name": "k",
}
KINDS: dict[int, type] = {TType.STRING: str, TType.LIST: list, TType.MAP: dict}
#: What other calls are about, and all but one field of a union.
LEFT_OUT: dict[type[Struct], Collection[str]] = {
    Partition: ("colStats", "fileMetadata", "privileges"),
    ColumnStatisticsData: set(ColumnStatisticsData.field_names()) - {"longStats"},
}
EMPTY = {TType.STRING: "", TType.LIST: [], TType.SET: set(), TType.MAP: {}}


def filled(kind: int, name: str, argument: Any, depth: int) -> Any:
    """A value of a type that makes sense where it is called `name`."""
    if name in NAMED and isinstance(NAMED[name], KINDS.get(kind, ())):
        return NAMED[name]
    match kind:
        case TType.STRING:
            return b"x" if argument == "BINARY" else "x"
        case TType.BOOL:
            return False
        case TType.LIST | TType.SET:
            items = [filled(argument[0], name, argument[1], depth)] if depth else []
            return items if kind == TType.LIST else {item for item in items if not isinstance(item, Struct)}
        case TType.MAP:
            return {}
        case TType.STRUCT:
            return structure(argument[0], depth)
        case TType.DOUBLE:
            return 1.0
        case _:
            return 1


def structure(kind: type[Struct], depth: int) -> Struct:
    """A struct with its fields filled, as deep as said; of a union the first field alone."""
    value = kind()
    for entry in kind.thrift_spec:
        if entry is not None and depth and entry[2] not in LEFT_OUT.get(kind, ()):
            setattr(value, entry[2], filled(entry[1], entry[2], entry[3], depth - 1))
    return value


def variants(value: Any, kind: int, argument: Any, depth: int) -> Iterator[Any]:
    """The value left out, empty, and with each of its own fields so."""
    yield None
    if kind in EMPTY:
        yield EMPTY[kind]
    if kind == TType.LIST and argument[0] == TType.STRING and argument[1] != "BINARY":
        yield [""]
    if kind == TType.LIST and value and depth:
        for one in variants(value[0], argument[0], argument[1], depth):
            if one is not None:
                yield [one]
    if kind == TType.STRUCT and depth:
        yield argument[0]()
    if kind == TType.STRUCT and depth and value is not None:
        for entry in argument[0].thrift_spec:
            if entry is not None:
                for one in variants(getattr(value, entry[2]), entry[1], entry[3], depth - 1):
                    yield value.replace(**{entry[2]: one})


def calls(name: str) -> Iterator[list[Any]]:
    """The arguments of all its calls."""
    spec = [entry for entry in METHODS[name].args_spec if entry is not None]
    sound = [filled(entry[1], entry[2], entry[3], FILLED) for entry in spec]
    yield sound
    for place, entry in enumerate(spec):
        for one in variants(sound[place], entry[1], entry[3], VARIED):
            yield [*sound[:place], one, *sound[place + 1 :]]


@pytest.fixture(scope="module")
def client(metastore_server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftClient]:
    NAMED["location"] = str(tmp_path_factory.mktemp("odd"))
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(builders.database(DB))
        for name in (TABLE, OTHER):
            client.create_table(builders.table(DB, name, keys=("k",)))
        yield client
        client.drop_database(DB, True, True)


@pytest.mark.parametrize("name", CALLS)
def test_call(client: ThriftClient, metastore_server: MetastoreServer, name: str) -> None:
    size = metastore_server.log.stat().st_size
    for arguments in calls(name):
        with suppress(NoSuchObjectException):
            client.drop_partition(DB, OTHER, ["1"], True)
        with suppress(AlreadyExistsException, NoSuchObjectException):
            if name.startswith(("add_", "append_")):
                client.drop_partition(DB, TABLE, ["1"], True)
            else:
                client.add_partition(builders.partition(DB, TABLE, "1"))
        try:
            client.call(name, *arguments)
        except TApplicationException as error:
            # A required field is missing, or no exception is declared that could say what is wrong.
            expected = {TApplicationException.PROTOCOL_ERROR, TApplicationException.MISSING_RESULT}
            if not any(kind.__name__ == "MetaException" for kind in METHODS[name].exceptions):
                expected.add(TApplicationException.INTERNAL_ERROR)
            assert error.type in expected, (arguments, error)
        except TException as error:
            assert getattr(error, "message", None), (arguments, error)
    with metastore_server.log.open(encoding="utf-8") as log:
        log.seek(size)
        assert "internal error" not in log.read()

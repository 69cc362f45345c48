"""Calls in which a second field, in whatever depth, names an object that the caller can't see, or one that is missing.

The rest of a call is about the caller's own database, and mostly makes sense. Both names have one length, so that the
replies may differ in the names alone.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreationMetadata,
    Database,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Index,
    LockComponent,
    LongColumnStatsData,
    NotificationEventsCountRequest,
    Partition,
    PrincipalType,
    PrivilegeGrantInfo,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
)
from lake.protocol.lake import BeginInstantRequest, DataFile, TableReference
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.rights import calls
from tests.rights.world import HIDDEN, HIDDEN_TABLE, OPEN, SECRET
from tests.support import builders

OWN, USER = "owned_db", "bob"
FRESH = "fresh_t"
MISSING, MISSING_TABLE = "veilec_db", "veilec_t"
"""They sort beside the names of what is hidden, since some methods look for their objects in the order of names."""

NOT_CALLED = calls.NOT_CALLED | {"cancel_delegation_token", "renew_delegation_token", "getCpuProfile"}

Path_ = tuple[str | int, ...]
"""Where a text is in the arguments: names of fields; 0 for a list's item, 1 for a map's key, 2 for its value."""


class Target(NamedTuple):
    """An object as it is named: one that is hidden, and one that is missing."""

    database: str
    table: str
    location: str

    def text(self, kind: str) -> str:
        return {
            "database": self.database,
            "table": self.table,
            "full": f"{self.database}.{self.table}",
            "catalog": f"@hive#{self.database}",
            "location": self.location,
            "file": f"{self.location}/dt=1/data",
        }[kind]


KINDS = ("database", "table", "full", "catalog", "location", "file")


class Case(NamedTuple):
    """What of a method's arguments names the object, and how: paths, each with a kind of `Target.text`."""

    method: str
    named: tuple[tuple[Path_, str], ...]

    def arguments(self, target: Target, home: str) -> Struct:
        made = base(self.method, home)
        for path, kind in self.named:
            _put(made, METHODS[self.method].args_spec, path, target.text(kind))
        return made

    def __str__(self) -> str:
        return f"{self.method}: " + ", ".join(f"{'.'.join(map(str, path))} = {kind}" for path, kind in self.named)


def cases(method: str) -> Iterator[Case]:
    """Every text of a method's arguments alone, by every kind of name; and two of one struct as a table's names."""
    texts = list(_texts(METHODS[method].args_spec, (), ()))
    for path in texts:
        for kind in KINDS:
            yield Case(method, ((path, kind),))
    for one in texts:
        for other in texts:
            beside = one != other and one[:-1] == other[:-1] and not isinstance(one[-1], int)
            if beside and _may_be(one, "d") and _may_be(other, "t"):
                yield Case(method, ((one, "database"), (other, "table")))


def _may_be(path: Path_, letter: str) -> bool:
    """Whether a field's name lets one think of a database (`d`) or a table (`t`)."""
    words = {"d": r"d(b|atabase)|namespace|source|dest", "t": r"t(b|able)|name|object|source|dest"}
    return re.search(words[letter], str(path[-1]), re.IGNORECASE) is not None


def _texts(spec: Any, path: Path_, within: tuple[type, ...]) -> Iterator[Path_]:
    for entry in spec:
        if entry is not None:
            yield from _texts_of(entry[1], entry[3], (*path, entry[2]), within)


def _texts_of(ttype: int, argument: Any, path: Path_, within: tuple[type, ...]) -> Iterator[Path_]:
    if ttype == TType.STRING and argument == "UTF8":
        yield path
    elif ttype == TType.STRUCT and within.count(argument[0]) < 2 and len(path) < 7:
        nested = (*within, argument[0])
        if argument[0] in within:  # a table in a table: what names it
            yield from ((*path, each) for each in ("dbName", "tableName", "name") if each in argument[0].field_names())
        else:
            yield from _texts(argument[0].thrift_spec, path, nested)
    elif ttype in (TType.LIST, TType.SET):
        yield from _texts_of(argument[0], argument[1], (*path, 0), within)
    elif ttype == TType.MAP and argument[0] == TType.STRING:  # keys that are lists are values of skewed columns
        yield from _texts_of(argument[0], argument[1], (*path, 1), within)
        yield from _texts_of(argument[2], argument[3], (*path, 2), within)


# --- the call without a second name ---------------------------------------------------------------------------


def _templates() -> Mapping[type, Callable[[], Any]]:
    ref = HiveObjectRef(HiveObjectType.TABLE, OWN, "t")
    info = PrivilegeGrantInfo("SELECT", 0, USER, PrincipalType.USER, False)
    numbers = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=1, numDVs=2))
    statistics = ColumnStatistics(
        ColumnStatisticsDesc(False, OWN, "t", "dt=1", 0, "hive"),
        [ColumnStatisticsObj("id", "bigint", numbers)],
        engine="hive",
    )
    made: dict[type, Callable[[], Any]] = {
        Table: lambda: builders.table(OWN, FRESH, keys=("dt",), parameters={}),
        Partition: lambda: builders.partition(OWN, "t", "9", parameters={}),
        Database: lambda: Database(name=OWN, ownerName=USER, ownerType=PrincipalType.USER),
        Index: lambda: Index("j", "handler", OWN, "t", 0, 0, FRESH, builders.storage("id:bigint"), {}, False),
        Function: lambda: Function(FRESH, OWN, "a.B", USER, PrincipalType.USER, 0, FunctionType.JAVA, []),
        SQLPrimaryKey: lambda: SQLPrimaryKey(OWN, "t", "id", 1, "pk_t", False, False, False, "hive"),
        SQLForeignKey: lambda: SQLForeignKey(
            OWN, "u", "id", OWN, "t", "id", 1, 0, 0, "fk", "pk", False, False, False, "hive"
        ),
        CreationMetadata: lambda: CreationMetadata("hive", OWN, "v", {f"{OWN}.t"}),
        ColumnStatistics: lambda: copy.deepcopy(statistics),
        HiveObjectRef: lambda: copy.deepcopy(ref),
        HiveObjectPrivilege: lambda: HiveObjectPrivilege(
            copy.deepcopy(ref), "someone", PrincipalType.USER, copy.deepcopy(info)
        ),
        LockComponent: lambda: LockComponent(1, 2, OWN, "t"),
        DataFile: lambda: DataFile(
            partition="dt=1", fileGroup="g", slice="20260101000000000", path="dt=1/new", kind="base", size=1
        ),
    }
    for cls in (SQLUniqueConstraint, SQLNotNullConstraint, SQLDefaultConstraint, SQLCheckConstraint):
        made[cls] = partial(cls, catName="hive", table_db=OWN, table_name="t", column_name="id")
    return made


_TEMPLATES = _templates()
_FIELDS = {
    **dict.fromkeys(("catName", "catalog", "catalogName"), "hive"),
    **dict.fromkeys(("funcName", "indexName", "index_name", "group", "member", "writer", "principal_name"), "f"),
    **dict.fromkeys(("action", "service"), "commit"),
    "state": "inflight",
}
"""What fields without a value get, by their names."""
_BATCHES = ("lake_route_partitions",)
_CONSTRAINTS = (
    *("primaryKeys", "uniqueConstraints", "notNullConstraints", "defaultConstraints", "checkConstraints"),
    "foreignKeys",
)


def base(method: str, home: str) -> Struct:
    """A call about the caller's own table, as sensible as its structs let one guess. `home`: its database's place."""
    arguments: Any = calls.made(method, calls.Name(OWN, "b" if method in _BATCHES else "t")).arguments
    for entry in METHODS[method].args_spec:
        if entry is not None:
            setattr(arguments, entry[2], _sensible(entry[1], entry[3], getattr(arguments, entry[2]), 4))
    _fill_in(arguments)
    for holder in (arguments, getattr(arguments, "request", None)):
        if method.startswith("create_table"):
            for name in _CONSTRAINTS:
                for each in getattr(holder, name, None) or ():
                    for field in ("table_name", "fktable_name"):
                        if hasattr(each, field):
                            setattr(each, field, FRESH)
    if method.startswith("alter_partition"):
        for each in _partitions(arguments):
            each.values, each.sd.location = ["1"], f"{home}/t/dt=1"
    if method.startswith("exchange"):
        arguments.partitionSpecs, arguments.dest_table_name = {"dt": "1"}, "w"
    if method.startswith("append_partition"):
        holder = getattr(arguments, "appendPartitionsReq", arguments)
        for name in ("part_vals", "partVals"):
            if hasattr(holder, name):
                setattr(holder, name, ["9"])
        if hasattr(holder, "part_name"):
            holder.part_name = "dt=9"
    if method == "lake_complete_instants":
        for each in arguments.requests:
            each.rolledBack = each.cleanedPaths = each.removedGroups = each.changelog = each.replacedPartitions = None
            each.removedPaths = each.published = each.eventTimes = each.schemaProperties = each.columns = None
            each.strategy = each.stream = each.chain = each.newAction = each.relocate = None
    if method == "lake_begin_instant":
        arguments.request.plan = None
    if method in ("lake_import_hudi", "lake_refresh_hudi"):
        getattr(arguments, "request", arguments).location = f"{home}/hudi"
    return cast(Struct, arguments)


def _partitions(holder: Any) -> Iterator[Partition]:
    for value in [getattr(holder, name) for name in holder.field_names()]:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Partition):
                yield each
            elif isinstance(each, Struct):
                yield from _partitions(each)


def _fill_in(holder: Any) -> None:
    for entry in holder.thrift_spec:
        if entry is None:
            continue
        value = getattr(holder, entry[2])
        if entry[1] == TType.STRING and value in (None, "x") and type(holder) not in _TEMPLATES:
            setattr(holder, entry[2], _FIELDS.get(entry[2], value))
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Struct):
                _fill_in(each)


def _sensible(ttype: int, argument: Any, value: Any, depth: int) -> Any:
    if ttype == TType.LIST and argument[0] == TType.STRUCT and value:
        return [_sensible(TType.STRUCT, argument[1], each, depth) for each in value]
    if ttype != TType.STRUCT or value is None or depth == 0:
        return value
    if argument[0] in _TEMPLATES:
        return _TEMPLATES[argument[0]]()
    for entry in argument[0].thrift_spec:
        if entry is not None:
            setattr(value, entry[2], _sensible(entry[1], entry[3], getattr(value, entry[2]), depth - 1))
    return value


def _put(holder: Any, spec: Any, path: Path_, text: str) -> None:
    """Puts a text where a path leads, and makes what is missing on the way."""
    entry = next(each for each in spec if each is not None and each[2] == path[0])
    setattr(holder, entry[2], _with(getattr(holder, entry[2]), entry[1], entry[3], path[1:], text))


def _with(value: Any, ttype: int, argument: Any, path: Path_, text: str) -> Any:
    if not path:
        return text
    if ttype == TType.STRUCT:
        if value is None:
            cls = argument[0]
            value = _TEMPLATES[cls]() if cls in _TEMPLATES else calls._required(TType.STRUCT, argument)
        _put(value, argument[0].thrift_spec, path, text)
        return value
    if ttype in (TType.LIST, TType.SET):
        items = list(value or ())
        item = _with(items[0] if items else None, argument[0], argument[1], path[1:], text)
        return [item, *items[1:]] if ttype == TType.LIST else {item}
    key, at = next(iter((value or {}).items()), ("k" if argument[0] == TType.STRING else 1, None))
    if path[0] == 1:
        default = "1" if argument[2] == TType.STRING else calls._required(argument[2], argument[3])
        return {**(value or {}), _with(None, argument[0], argument[1], path[1:], text): default if at is None else at}
    return {**(value or {}), key: _with(at, argument[2], argument[3], path[1:], text)}


# --- the world ------------------------------------------------------------------------------------------------


def make_own(root: ThriftClient) -> None:
    """The database of the caller, as it is before each call."""
    try:
        root.drop_database(OWN, True, True)
    except Exception as error:
        assert "NoSuchObject" in type(error).__name__, error
    root.create_database(builders.database(OWN, ownerName=USER, ownerType=PrincipalType.USER))
    manual = {"partition.commit.mode": "manual"}
    for name in "tubw":
        parameters = manual if name == "b" else {}
        root.create_table(builders.table(OWN, name, keys=("dt",), owner=USER, parameters=parameters))
    root.add_partitions([builders.partition(OWN, "t", each) for each in "12"])
    instant = BeginInstantRequest(TableReference(database=OWN, table="t"), "commit", "20260101000000000", "inflight")
    root.lake_begin_instant(instant)
    root.create_function(Function("f", OWN, "a.B", USER, PrincipalType.USER, 0, FunctionType.JAVA, []))
    index = Index("f", "handler", OWN, "t", 0, 0, "i", builders.storage("id:bigint"), {}, False)
    root.add_index(index, builders.table(OWN, "i", tableType="INDEX_TABLE"))
    root.add_primary_key(AddPrimaryKeyRequest([SQLPrimaryKey(OWN, "u", "id", 1, "pk", False, False, False, "hive")]))
    metadata = CreationMetadata("hive", OWN, "v", {f"{OWN}.u"})
    root.create_table(builders.table(OWN, "v", tableType="MATERIALIZED_VIEW", owner=USER, creationMetadata=metadata))


def targets(root: ThriftClient) -> list[tuple[Target, Target]]:
    """What is hidden, each with what is missing: a table of a hidden database, and one of a database that is seen."""
    found = []
    for hidden, missing in ((HIDDEN, MISSING), (OPEN, OPEN)):
        location = root.get_table(hidden, HIDDEN_TABLE).sd.location
        other = location.replace(HIDDEN_TABLE, MISSING_TABLE)
        found.append((Target(hidden, HIDDEN_TABLE, location), Target(missing, MISSING_TABLE, other)))
    return found


def put_file(target: Target) -> None:
    """Writes the file at a target's location: of a hidden table, whose file has to be there in the end, or of none."""
    file = Path(target.text("file").removeprefix("file:"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SECRET)


def state(root: ThriftClient) -> dict[str, object]:
    """All of what is hidden that a call could have changed."""
    found: dict[str, object] = {}
    for where in (HIDDEN, OPEN):
        found[where] = root.get_database(where)
        found[f"{where} functions"] = root.get_functions(where, "*")
        found[f"{where} events"] = root.get_notification_events_count(NotificationEventsCountRequest(0, where))
        for name in root.get_all_tables(where):
            table = root.get_table(where, name)
            found[f"{where}.{name}"] = table
            found[f"{where}.{name} partitions"] = root.get_partitions(where, name, -1)
            found[f"{where}.{name} indexes"] = root.get_index_names(where, name, -1)
            ref = HiveObjectRef(HiveObjectType.TABLE, where, name)
            found[f"{where}.{name} grants"] = sorted(map(repr, root.list_privileges(None, None, ref)))
            place = Path(table.sd.location.removeprefix("file:"))
            found[f"{where}.{name} files"] = sorted(str(each) for each in place.rglob("*") if each.is_file())
    return found


def succeeded(method: str, reply: bytes) -> bool:
    """Whether a reply is no exception, so that something may have changed."""
    if reply[:1] != b"\x02":
        return False
    result = binary.decode(METHODS[method].result, reply[1:])
    return not any(getattr(result, name) is not None for name in result.field_names() if name != "success")


_NUMBERS = re.compile(r"[0-9a-f]{16,}|\d{3,}|reference [0-9a-f]{8}|(?<=\bposition=)\d+|(?<=\btableId=)\d+")
"""What differs between two calls. The positions of a new table continue those of the dropped one of its name."""


def comparable(method: str, reply: bytes, target: Target, instead: Target) -> object:
    """A reply in the form in which two are compared: with the other's names, without times and large numbers."""
    text = repr(binary.decode(METHODS[method].result, reply[1:])) if reply[:1] == b"\x02" else repr(reply)
    for one, other in zip(target, instead, strict=True):
        for form in (str, str.upper, str.lower):
            text = text.replace(form(one), form(other))
    return reply[:1], _NUMBERS.sub("N", text)

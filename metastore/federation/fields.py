"""Which fields of Hive's structs hold names of databases and catalogs, or ids of transactions and locks.

Structs name these fields alike, so most are found by the field's name; the others are listed. A method's arguments and
its result are structs, too. `walk` visits all of them, however deep they are, so a second name in a request is found
like the first one.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, Protocol

from thrift.Thrift import TType

from lake.protocol.struct import Struct

DATABASES = frozenset({
    "dbName", "dbname", "db_name", "databaseName", "table_db", "fktable_db", "pktable_db", "parent_db_name",
    "foreign_db_name", "source_db", "dest_db", "oldDbName",
})  # fmt: skip
"""Fields of this name hold a database's name in every struct."""

DATABASES_IN = frozenset({
    ("Database", "name"), ("get_database_args", "name"), ("drop_database_args", "name"), ("GetDatabaseRequest", "name"),
    ("DropDatabaseRequest", "name"), ("WriteNotificationLogRequest", "db"), ("WriteNotificationLogBatchRequest", "db"),
    ("WriteEventInfo", "database"), ("ReplLastIdInfo", "database"), ("GetTablesExtRequest", "database"),
    ("TableReference", "database"), ("EventRecord", "database"), ("DeadEvent", "database"),
})  # fmt: skip
"""The other ones, with their structs."""

CATALOGS = frozenset({"catName", "catalogName", "cat_name", "catalog"})
"""Texts of this name hold the catalog of what else the struct names."""

QUALIFIED = frozenset({"fullTableName", "fullTableNames", "tablesUsed"})
"""`database.table`, alone or in a list or set."""

WRITE_IDS = frozenset({"validWriteIdList", "validWriteIdlist"})
"""The text of a list of write ids, which begins with `database.table:`."""

IDS = frozenset({
    "txnid", "txnId", "txn_ids", "txnIds", "lockid", "open_txns", "min_open_txn",
    "blockedByExtId", "moment", "asOfMoment",
})  # fmt: skip
IDS_IN = frozenset({
    ("HeartbeatTxnRangeRequest", "min"), ("HeartbeatTxnRangeRequest", "max"), ("HeartbeatTxnRangeResponse", "aborted"),
    ("HeartbeatTxnRangeResponse", "nosuch"), ("TxnInfo", "id"),
    ("update_compactor_state_args", "txn_id"),
})  # fmt: skip
"""Numbers, alone or in a list or set, of transactions and locks, and of moments, whose order is a lake metastore's."""

HIGHEST_IDS = frozenset({"txn_high_water_mark"})
"""Numbers of the last transaction; 0 says that there is none yet at this backend."""

TABLE_IDS = frozenset({"tableId"})
TABLE_IDS_IN = frozenset({
    ("Table", "id"), ("TableReference", "id"), ("TableReplaced", "id"), ("GetTableRequest", "id"),
    ("PartitionsRequest", "id"), ("GetFieldsRequest", "id"), ("GetPartitionNamesPsRequest", "id"),
    ("PartitionsByExprRequest", "id"), ("GetPartitionRequest", "id"), ("GetPartitionsByNamesRequest", "id"),
    ("GetPartitionsPsWithAuthRequest", "id"), ("GetSchemaRequest", "id"), ("TableStatsRequest", "id"),
})  # fmt: skip
"""Numbers of tables, which each backend gives out by itself. Lake tables' clients know tables by them."""

TRANSACTIONS = frozenset({"validTxnList"})
"""The text of a list of transactions: their numbers with `:` and `,` between. That of a materialized view is of
what it was built from: a transaction, and tables with their write ids."""

_SERIES = (TType.LIST, TType.SET)


class Visitor(Protocol):
    """What is done with each name and id: the value that is returned takes its place."""

    def database(
        self, catalog: str | None, database: str, *, has_catalog: bool, inherited: str | None
    ) -> tuple[str | None, str]:
        """A database. `has_catalog`: whether the struct has a field for its catalog; `catalog`: what is in that.
        `inherited`: the catalog that the structs around it name."""

    def catalog(self, catalog: str) -> str:
        """The catalog of a struct that names no database."""

    def qualified(self, name: str) -> str:
        """`database.table`."""

    def identifier(self, number: int) -> int:
        """A transaction or a lock."""

    def highest(self, number: int) -> int:
        """The last transaction of a backend, or 0."""

    def table_id(self, holder: Struct, number: int) -> int | None:
        """A table. `holder`: the struct that has the number."""

    def transactions(self, text: str) -> str:
        """A list of transactions, or a snapshot of a materialized view's tables, as text."""

    def whole(self, value: Struct) -> None:
        """A struct, before its fields: for what takes more than one of them."""


class Hidden(Exception):
    """Raised by a visitor for a name that must not be shown: the item of the list that holds it is left out."""


class Plan(NamedTuple):
    """Which fields of a struct have to be visited."""

    catalog: str | None
    databases: tuple[str, ...]
    qualified: tuple[str, ...]
    write_ids: tuple[str, ...]
    ids: tuple[str, ...]
    highest: tuple[str, ...]
    table_ids: tuple[str, ...]
    transactions: tuple[str, ...]
    parts: tuple[str, ...]
    whole: bool


WHOLE = frozenset({
    "Table", "GetOpenTxnsResponse", "EventRecord", "EnvironmentContext", "OpenTxnRequest", "CommitTxnRequest",
    "AbortTxnRequest", "AllocateTableWriteIdsRequest",
})  # fmt: skip
"""Structs that hold names or ids in texts of their own kind."""


def plan(cls: type[Struct]) -> Plan:
    """What is to be visited in the structs of a class."""
    return _plan(cls)  # type: ignore[arg-type]  # mypy: as unhashable as its instances


def names_anything(cls: type[Struct]) -> bool:
    """Whether structs of a class hold something that `walk` visits."""
    it = plan(cls)
    return bool(
        it.catalog
        or it.databases
        or it.qualified
        or it.write_ids
        or it.ids
        or it.highest
        or it.table_ids
        or it.transactions
        or it.parts
        or it.whole
    )


@cache
def _plan(cls: type[Any]) -> Plan:
    name, texts, numbers, parts, catalog = cls.__name__, [], [], [], None
    for entry in cls.thrift_spec:
        if entry is None:
            continue
        _, kind, field, argument, _ = entry
        inner = kind if kind not in _SERIES else argument[0]
        if kind == TType.STRING and field in CATALOGS:
            catalog = field
        elif inner == TType.STRING:
            texts.append((field, kind))
        elif inner == TType.I64:
            numbers.append(field)
        elif any(_holds_names(each, frozenset({cls})) for each in classes(kind, argument)):
            parts.append(field)
    plain = [field for field, kind in texts if kind == TType.STRING]
    return Plan(
        catalog,
        tuple(field for field in plain if field in DATABASES or (name, field) in DATABASES_IN),
        tuple(field for field, _ in texts if field in QUALIFIED),
        tuple(field for field in plain if field in WRITE_IDS),
        tuple(field for field in numbers if field in IDS or (name, field) in IDS_IN),
        tuple(field for field in numbers if field in HIGHEST_IDS),
        tuple(field for field in numbers if field in TABLE_IDS or (name, field) in TABLE_IDS_IN),
        tuple(field for field in plain if field in TRANSACTIONS),
        tuple(parts),
        name in WHOLE,
    )


def classes(kind: int, argument: Any) -> list[type[Struct]]:
    """The structs that a field of a type holds."""
    if kind == TType.STRUCT:
        return [argument[0]]
    if kind in _SERIES:
        return classes(argument[0], argument[1])
    if kind == TType.MAP:
        return classes(argument[0], argument[1]) + classes(argument[2], argument[3])
    return []


def _holds_names(cls: type[Struct], seen: frozenset[type[Struct]]) -> bool:
    if cls in seen:
        return False
    if cls.__name__ in WHOLE:
        return True
    for entry in cls.thrift_spec:
        if entry is None:
            continue
        field, kind, argument = entry[2], entry[1], entry[3]
        if field in DATABASES | QUALIFIED | WRITE_IDS | IDS | HIGHEST_IDS | TABLE_IDS | TRANSACTIONS:
            return True
        if (cls.__name__, field) in DATABASES_IN | IDS_IN | TABLE_IDS_IN or (
            field in CATALOGS and kind == TType.STRING
        ):
            return True
        if any(_holds_names(each, seen | {cls}) for each in classes(kind, argument)):
            return True
    return False


def walk(value: Struct, visitor: Visitor, inherited: str | None = None) -> None:
    """Visits all names and ids in a struct, and puts what the visitor returns into their places.

    Lists are replaced, not changed: several structs may share one.
    """
    it = plan(type(value))
    if it.whole:
        visitor.whole(value)
    catalog = getattr(value, it.catalog) if it.catalog else None
    inherited = _names(value, it, visitor, catalog, inherited)
    for field in it.qualified:
        _each(value, field, visitor.qualified)
    for field in it.write_ids:
        if text := getattr(value, field):
            name, colon, rest = text.partition(":")
            setattr(value, field, visitor.qualified(name) + colon + rest if "." in name else text)
    for field in it.ids:
        _each(value, field, visitor.identifier)
    for field in it.highest:
        _each(value, field, visitor.highest)
    for field in it.table_ids:
        if (number := getattr(value, field)) is not None:
            setattr(value, field, visitor.table_id(value, number))
    for field in it.transactions:
        if text := getattr(value, field):
            setattr(value, field, visitor.transactions(text))
    for field in it.parts:
        part = getattr(value, field)
        if part is not None:
            setattr(value, field, _within(part, visitor, inherited))


def _names(value: Struct, it: Plan, visitor: Visitor, catalog: str | None, inherited: str | None) -> str | None:
    """Visits a struct's own names; the catalog that the structs within inherit, as it was before."""
    found = catalog or inherited
    named = False
    renamed = catalog
    for field in it.databases:
        if database := getattr(value, field):
            named = True
            renamed, database_now = visitor.database(
                catalog, database, has_catalog=it.catalog is not None, inherited=inherited
            )
            if database.startswith("@"):
                found = catalog or database[1:].partition("#")[0] or inherited
            setattr(value, field, database_now)
    if it.catalog and catalog and not named:
        renamed = visitor.catalog(catalog)
    if it.catalog:
        setattr(value, it.catalog, renamed)
    return found


def _each(value: Struct, field: str, change: Callable[[Any], Any]) -> None:
    held = getattr(value, field)
    if held is None:
        return
    made = type(held)(change(each) for each in held) if isinstance(held, list | set | frozenset) else change(held)
    setattr(value, field, made)


def _within(part: Any, visitor: Visitor, inherited: str | None) -> Any:
    if isinstance(part, Struct):
        walk(part, visitor, inherited)
        return part
    if isinstance(part, dict):
        return {key: _within(item, visitor, inherited) for key, item in part.items()}
    if isinstance(part, list):
        return list(_items(part, visitor, inherited))
    return part


def _items(part: list[Any], visitor: Visitor, inherited: str | None) -> Iterator[Any]:
    for item in part:
        with suppress(Hidden):
            yield _within(item, visitor, inherited)

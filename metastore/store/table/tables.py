"""SQL for tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from psycopg2.extras import Json
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    any_,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from metastore.postgres.prepared import Prepared, execute_all, put_off
from metastore.store.catalog.databases import RowLock, for_update
from metastore.store.engine import name_patterns, read_set
from metastore.store.engine.database import after_commit
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.engine.read_set import Kind, mark_uncacheable, record_read, recorded
from metastore.store.files import publications
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.commit import table_readiness, watermarks, writers
from metastore.store.schema.partition import partition_events, partitions
from metastore.store.schema.snapshot import (
    changelog_files,
    changelogs,
    data_files,
    lake_partitions,
    pending_deletions,
)
from metastore.store.schema.statistics import column_statistics
from metastore.store.schema.table import storage_descriptors, tables
from metastore.store.schema.timeline import (
    changed_groups,
    instants,
    rejected_commits,
    stream_batches,
    timelines,
    uncommitted_spans,
)
from metastore.store.table import former_positions


@dataclass(frozen=True, slots=True)
class TableRow:
    """A stored table. `descriptor` and `body` are encoded: see lake.protocol.codec.splice."""

    id: int
    database_id: int
    name: TableName
    type: str
    owner: str | None
    last_access_time: int
    location: str | None
    descriptor_id: int
    descriptor: bytes
    parameters: dict[str, str]
    body: bytes
    version: int


@dataclass(frozen=True, slots=True)
class TableValues:
    """The values of a table's row."""

    name: str
    type: str
    owner: str | None
    last_access_time: int
    location: str | None
    descriptor_id: int
    parameters: Mapping[str, str]
    body: bytes

    def columns(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "owner": self.owner,
            "last_access_time": self.last_access_time,
            "location": self.location,
            "storage_descriptor_id": self.descriptor_id,
            "parameters": Json(dict(self.parameters)),
            "body": self.body,
        }


_JOINED = (
    select(
        tables,
        databases.c.name.label("database_name"),
        catalogs.c.name.label("catalog_name"),
        storage_descriptors.c.body.label("descriptor"),
    )
    .join(databases, databases.c.id == tables.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .join(storage_descriptors, storage_descriptors.c.id == tables.c.storage_descriptor_id)
)

_OF_DATABASE = (catalogs.c.name == bindparam("catalog"), databases.c.name == bindparam("database"))
_OF_NAME = tables.c.name == bindparam("table")
_NAMED = Prepared(_JOINED.where(*_OF_DATABASE, _OF_NAME))
_NAMED_AT_ONCE = Prepared(_JOINED.add_columns(*read_set.STAMP).where(*_OF_DATABASE, _OF_NAME))
_NAMED_TO_ALTER = Prepared(
    _JOINED.add_columns(*read_set.STAMP, read_set.OWN_TRANSACTION)
    .where(*_OF_DATABASE, _OF_NAME)
    .with_for_update(of=tables)
)
_NAMED_LOCKED = {
    lock: Prepared(_JOINED.where(*_OF_DATABASE, _OF_NAME).with_for_update(**for_update(lock), of=tables))
    for lock in (RowLock.SHARED, RowLock.EXCLUSIVE)
}
_BY_ID = Prepared(_JOINED.where(tables.c.id == bindparam("table_id")))
_LOCK = {
    (lock, every): Prepared(
        select(tables.c.id)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(*_OF_DATABASE, *([] if every else [_OF_NAME]))
        .order_by(tables.c.name)
        .with_for_update(**for_update(lock), of=tables)
    )
    for lock in (RowLock.SHARED, RowLock.EXCLUSIVE)
    for every in (True, False)
}
"""By the lock to take, and whether all tables of the database are meant."""

_TOUCH = Prepared(
    update(tables)
    .where(tables.c.id == bindparam("table_id"))
    .values(version=tables.c.version + 1)
    .returning(tables.c.version)
)


def _row(row: Any) -> TableRow:
    record_read(Kind.TABLE, row.id)
    return TableRow(
        row.id,
        row.database_id,
        TableName(row.catalog_name, row.database_name, row.name),
        row.type,
        row.owner,
        row.last_access_time,
        row.location,
        row.storage_descriptor_id,
        bytes(row.descriptor),
        row.parameters,
        bytes(row.body),
        row.version,
    )


def _within(query: Select[Any], name: DatabaseName) -> Select[Any]:
    return query.where(catalogs.c.name == name.catalog, databases.c.name == name.database)


def find(tx: Connection, name: TableName, lock: RowLock = RowLock.NOT) -> TableRow | None:
    """The table of that name."""
    if lock is RowLock.NOT:
        row = _NAMED.first(tx, name._asdict())
    else:
        # In one message, and two statements: one that waited for another change looks at the changed row next to the
        # descriptor it found before, and if the table has another descriptor by then, it finds nothing.
        row = _NAMED_LOCKED[lock].first(tx, name._asdict(), after=[_LOCK[lock, False]])
    if row is None:
        mark_uncacheable()  # nothing tells of a table that isn't there
        return None
    return _row(row)


def find_at_once(tx: Connection, name: TableName) -> TableRow | None:
    """The table of that name, within `Database.at_once`."""
    row = _NAMED_AT_ONCE.first(tx, name._asdict())
    if row is None:
        mark_uncacheable()  # nothing tells of a table that isn't there
        return None
    read_set.stamp(row.snapshot, row.incarnation)
    return _row(row)


@dataclass(frozen=True, slots=True)
class LockedTable:
    """A table that the transaction `xid` has locked, as it is under the lock.

    What belongs to the table was read in `snapshot`. That may be from before the lock, and miss changes that the row
    has.
    """

    row: TableRow
    snapshot: str
    incarnation: str | None
    xid: int

    def altered(self, values: TableValues, descriptor: bytes) -> Self:
        """As it is once the transaction has committed `values`, with the body of their descriptor."""
        row = replace(
            self.row,
            type=values.type,
            owner=values.owner,
            last_access_time=values.last_access_time,
            location=values.location,
            descriptor_id=values.descriptor_id,
            descriptor=descriptor,
            parameters=dict(sorted(values.parameters.items(), key=_order_of_jsonb)),
            body=values.body,
            version=self.row.version + 1,
        )
        return replace(self, row=row)


def _order_of_jsonb(entry: tuple[str, str]) -> tuple[int, bytes]:
    """Postgres orders the keys of a jsonb object by their lengths first."""
    key = entry[0].encode()
    return len(key), key


def find_to_alter(tx: Connection, name: TableName) -> LockedTable | None:
    """The table of that name, locked."""
    row = _NAMED_TO_ALTER.first(tx, name._asdict())
    if row is None:  # it isn't there, or has another descriptor since the statement began: see `find`
        row = _NAMED_TO_ALTER.first(tx, name._asdict(), after=[_LOCK[RowLock.EXCLUSIVE, False]])
    return None if row is None else LockedTable(_row(row), row.snapshot, row.incarnation, row.xid)


def alter(
    tx: Connection,
    found: LockedTable,
    database_id: int,
    values: TableValues,
    descriptor: bytes,
    then: Callable[[LockedTable], None],
) -> None:
    """Replaces what is kept of a table, as the last statement of the transaction. Raises as `change`.

    `descriptor`: the body of its descriptor. `then` is called after the commit, with the table as it is by then.
    """
    altered = found.altered(values, descriptor)
    change(tx, found.row.id, database_id, values)
    after_commit(tx, lambda: then(altered))


def find_by_id(tx: Connection, table_id: int, lock: RowLock = RowLock.NOT) -> TableRow | None:
    """The table with that id, whatever its name is by now."""
    if lock is not RowLock.NOT:
        tx.execute(select(tables.c.id).where(tables.c.id == table_id).with_for_update(**for_update(lock), of=tables))
    row = _BY_ID.first(tx, {"table_id": table_id})
    return _row(row) if row else None


def ids_of(tx: Connection, names: Collection[TableName]) -> dict[TableName, int]:
    """The ids of those of the named tables that exist."""
    mark_uncacheable()
    name = tuple_(catalogs.c.name, databases.c.name, tables.c.name)
    joined = tables.join(databases, tables.c.database_id == databases.c.id)
    joined = joined.join(catalogs, databases.c.catalog_id == catalogs.c.id)
    query = select(tables.c.id, catalogs.c.name, databases.c.name, tables.c.name).select_from(joined)
    return {TableName(*row[1:]): row[0] for row in tx.execute(query.where(name.in_(names)))}


def find_many(tx: Connection, database: DatabaseName, names: Sequence[str]) -> list[TableRow]:
    """Those of the named tables that exist, in the order of their names."""
    _note_names(tx, database)
    query = _within(_JOINED, database).where(tables.c.name == func.any(list(names))).order_by(tables.c.name)
    return [_row(row) for row in tx.execute(query)]


def find_matching(
    tx: Connection,
    catalog: str,
    database_patterns: Sequence[str] | None,
    table_patterns: Sequence[str] | None,
    names: Sequence[str] | None,
) -> list[TableRow]:
    """A catalog's tables that match, ordered by database and name; of those named, if some are."""
    mark_uncacheable()
    query = _JOINED.where(catalogs.c.name == catalog).order_by(databases.c.name, tables.c.name)
    if database_patterns is not None:
        query = query.where(name_patterns.matching(databases.c.name, database_patterns))
    if table_patterns is not None:
        query = query.where(name_patterns.matching(tables.c.name, table_patterns))
    if names is not None:
        query = query.where(tables.c.name == func.any(list(names)))
    return [_row(row) for row in tx.execute(query)]


def find_all(tx: Connection, database: DatabaseName, lock: RowLock = RowLock.NOT) -> list[TableRow]:
    """All tables of a database in the order of their names."""
    if lock is not RowLock.NOT:
        _LOCK[lock, True].execute(tx, {"catalog": database.catalog, "database": database.database})
    _note_names(tx, database)
    return [_row(row) for row in tx.execute(_within(_JOINED, database).order_by(tables.c.name))]


def _note_names(tx: Connection, database: DatabaseName) -> None:
    """Which tables there are is being read.

    That there is such a database is part of it, be it empty: another one of that name has another number.
    """
    if recorded():
        query = _within(select(databases.c.id).join(catalogs, catalogs.c.id == databases.c.catalog_id), database)
        number = tx.execute(query).scalar_one_or_none()
        if number is None:
            record_read(Kind.DATABASES, 0)
        else:
            record_read(Kind.DATABASE, number)
            record_read(Kind.TABLES, number)


def names(
    tx: Connection,
    database: DatabaseName,
    *,
    patterns: Sequence[str] | None = None,
    table_type: str | None = None,
    condition: ColumnElement[bool] | None = None,
    limit: int | None = None,
) -> list[str]:
    """Names of a database's tables in order: those that match one of the LIKE patterns, of a type, by a condition."""
    query = _within(
        select(tables.c.name)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id),
        database,
    ).order_by(tables.c.name)
    if patterns is not None:
        query = query.where(name_patterns.matching(tables.c.name, patterns))
    if table_type is not None:
        query = query.where(tables.c.type == table_type)
    if condition is not None:
        mark_uncacheable()  # it may be about anything
        query = query.where(condition)
    _note_names(tx, database)
    return list(tx.execute(query.limit(limit)).scalars())


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The fields of a table that get_table_meta returns."""

    name: TableName
    type: str
    owner: str | None
    comment: str | None
    body: bytes


def summaries(
    tx: Connection,
    catalog: str,
    database_patterns: Sequence[str] | None,
    table_patterns: Sequence[str] | None,
    types: Sequence[str] | None,
) -> list[TableSummary]:
    """Tables of all databases that match, ordered by database and name."""
    mark_uncacheable()
    query = (
        select(
            databases.c.name.label("database_name"),
            tables.c.name,
            tables.c.type,
            tables.c.owner,
            tables.c.parameters["comment"].astext.label("comment"),
            tables.c.body,
        )
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog)
        .order_by(databases.c.name, tables.c.name)
    )
    if database_patterns is not None:
        query = query.where(name_patterns.matching(databases.c.name, database_patterns))
    if table_patterns is not None:
        query = query.where(name_patterns.matching(tables.c.name, table_patterns))
    if types is not None:
        query = query.where(tables.c.type == func.any(list(types)))
    return [
        TableSummary(TableName(catalog, row.database_name, row.name), row.type, row.owner, row.comment, bytes(row.body))
        for row in tx.execute(query)
    ]


def add(tx: Connection, database_id: int, values: TableValues) -> int:
    """Adds a table and returns its id. Raises store.Conflict if the name is taken."""
    return int(_ADD.scalar(tx, {"database_id": database_id, **values.columns()}))


def change(tx: Connection, table_id: int, database_id: int, values: TableValues) -> None:
    """Replaces what is kept of a table. The commit raises store.Conflict if its new name is taken."""
    put_off(tx, [_CHANGE], {"table_id": table_id, "database_id": database_id, **values.columns()})


_WRITTEN = (
    "database_id",
    "name",
    "type",
    "owner",
    "last_access_time",
    "location",
    "storage_descriptor_id",
    "parameters",
    "body",
)
_ADD = Prepared(insert(tables).returning(tables.c.id), _WRITTEN)
_CHANGE = Prepared(
    update(tables).where(tables.c.id == bindparam("table_id")).values(version=tables.c.version + 1), _WRITTEN
)


def touch(tx: Connection, table_id: int) -> int:
    """Gives a table a new version, the next number, and returns it: something that belongs to it has changed."""
    return int(_TOUCH.first(tx, {"table_id": table_id}).version)


def touch_with_commit(tx: Connection, table_id: int) -> None:
    """As `touch`, in the message of the commit, which waits if somebody else holds the table."""
    put_off(tx, [_TOUCH], {"table_id": table_id})


def remove(tx: Connection, table_ids: Sequence[int]) -> None:
    """Removes tables with all that belongs to them."""
    execute_all(tx, _REMOVAL, {"table_ids": list(table_ids)})


_BELONGING = (
    timelines,  # first: whoever is beginning an instant holds it, and has to be waited for
    partitions,
    column_statistics,
    partition_events,
    table_readiness,
    watermarks,
    writers,
    pending_deletions,
    data_files,
    changelogs,
    changelog_files,
    lake_partitions,
    changed_groups,
    instants,
    rejected_commits,
    stream_batches,
    uncommitted_spans,
)
_THESE = any_(bindparam("table_ids", type_=ARRAY(BigInteger)))
_REMOVAL = [
    former_positions.KEEP,
    *(Prepared(delete(each).where(each.c.table_id == _THESE)) for each in _BELONGING),
    *publications.DISCARD_OF_TABLES,
    Prepared(delete(tables).where(tables.c.id == _THESE)),
]


def count(tx: Connection) -> int:
    """How many tables there are."""
    mark_uncacheable()
    return tx.execute(select(func.count()).select_from(tables)).scalar_one()

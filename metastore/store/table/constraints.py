"""SQL for constraints of tables. They aren't enforced; planners and people read them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select

from metastore.store.engine.names import TableName
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import constraints, tables


class Kind(IntEnum):
    """What a constraint is; the numbers are stored."""

    PRIMARY_KEY = 1
    FOREIGN_KEY = 2
    UNIQUE = 3
    NOT_NULL = 4
    DEFAULT = 5
    CHECK = 6


@dataclass(frozen=True, slots=True)
class NewConstraint:
    """A constraint's row for one column. `parent_*` say what a foreign key's column refers to."""

    table_id: int
    kind: Kind
    name: str
    position: int
    column: str | None
    parent_table_id: int | None
    parent_column: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class ConstraintRow:
    """A stored constraint, for one column. `parent_key` is the name of the parent's primary key."""

    table: TableName
    kind: Kind
    name: str
    position: int
    column: str | None
    parent: TableName | None
    parent_column: str | None
    parent_key: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """The tables of a database, or one of them, or, without names, all of a catalog."""

    catalog: str
    database: str | None = None
    table: str | None = None


_child_database = databases.alias("child_database")
_child_catalog = catalogs.alias("child_catalog")
_parent = tables.alias("parent")
_parent_database = databases.alias("parent_database")
_parent_catalog = catalogs.alias("parent_catalog")
_parent_key = constraints.alias("parent_key")

_JOINED = (
    select(
        constraints,
        tables.c.name.label("child_table"),
        _child_database.c.name.label("child_database"),
        _child_catalog.c.name.label("child_catalog"),
        _parent.c.name.label("parent_table"),
        _parent_database.c.name.label("parent_database"),
        _parent_catalog.c.name.label("parent_catalog"),
        select(_parent_key.c.name)
        .where(_parent_key.c.table_id == constraints.c.parent_table_id, _parent_key.c.kind == Kind.PRIMARY_KEY)
        .limit(1)
        .scalar_subquery()
        .label("parent_key"),
    )
    .join(tables, tables.c.id == constraints.c.table_id)
    .join(_child_database, _child_database.c.id == tables.c.database_id)
    .join(_child_catalog, _child_catalog.c.id == _child_database.c.catalog_id)
    .outerjoin(_parent, _parent.c.id == constraints.c.parent_table_id)
    .outerjoin(_parent_database, _parent_database.c.id == _parent.c.database_id)
    .outerjoin(_parent_catalog, _parent_catalog.c.id == _parent_database.c.catalog_id)
)


def _row(row: Row[Any]) -> ConstraintRow:
    return ConstraintRow(
        TableName(row.child_catalog, row.child_database, row.child_table),
        Kind(row.kind),
        row.name,
        row.position,
        row.column_name,
        None if row.parent_table is None else TableName(row.parent_catalog, row.parent_database, row.parent_table),
        row.parent_column_name,
        row.parent_key,
        bytes(row.body),
    )


def find(
    tx: Connection, *, on: Place | None = None, parent: Place | None = None, kind: Kind | None = None
) -> list[ConstraintRow]:
    """Constraints on some tables, or foreign keys that refer to some: in the order they were made, by position."""
    query = _JOINED
    for place, catalog, database, table in (
        (on, _child_catalog, _child_database, tables),
        (parent, _parent_catalog, _parent_database, _parent),
    ):
        if place is None:
            continue
        query = query.where(catalog.c.name == place.catalog)
        if place.database is not None:
            query = query.where(database.c.name == place.database)
        if place.table is not None:
            query = query.where(table.c.name == place.table)
    if kind is not None:
        query = query.where(constraints.c.kind == kind)
    made = func.min(constraints.c.id).over(partition_by=(constraints.c.table_id, constraints.c.name))
    return [_row(row) for row in tx.execute(query.order_by(made, constraints.c.position))]


def names(tx: Connection, table_id: int) -> set[str]:
    """The names of a table's constraints."""
    return set(tx.execute(select(constraints.c.name).where(constraints.c.table_id == table_id)).scalars())


def add(tx: Connection, rows: Iterable[NewConstraint]) -> None:
    """Adds constraints. Raises store.Conflict if a name is taken."""
    values = [
        {
            "table_id": row.table_id,
            "kind": row.kind,
            "name": row.name,
            "position": row.position,
            "column_name": row.column,
            "parent_table_id": row.parent_table_id,
            "parent_column_name": row.parent_column,
            "body": row.body,
        }
        for row in rows
    ]
    if values:
        tx.execute(insert(constraints), values)


def remove(tx: Connection, table_id: int, name: str) -> bool:
    """Removes a constraint of that name on a table, or a foreign key that refers to it; whether there was one."""
    either = or_(constraints.c.table_id == table_id, constraints.c.parent_table_id == table_id)
    return tx.execute(delete(constraints).where(constraints.c.name == name, either)).rowcount > 0


def remove_columns(tx: Connection, table_id: int, columns: Sequence[str]) -> None:
    """Removes every constraint that names one of these columns of a table, foreign keys to them included."""
    gone = list(columns)
    named = select(constraints.c.table_id, constraints.c.name).where(
        or_(
            and_(constraints.c.table_id == table_id, constraints.c.column_name == func.any(gone)),
            and_(constraints.c.parent_table_id == table_id, constraints.c.parent_column_name == func.any(gone)),
        )
    )
    doomed = named.subquery()
    tx.execute(
        delete(constraints).where(constraints.c.table_id == doomed.c.table_id, constraints.c.name == doomed.c.name)
    )

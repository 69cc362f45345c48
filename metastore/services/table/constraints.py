"""Constraints of tables: primary, foreign and unique keys, NOT NULL, DEFAULT and CHECK.

The rules are those of Hive 4's ObjectStore: columns must exist (partition keys count), a table has one primary key, a
foreign key refers to the columns of a primary or unique key with the same types, a name is unique within its table.
Hive 2.3 doesn't check the referenced key, and loses a foreign key without one.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lake.protocol.hive import (
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
)
from lake.protocol.struct import Struct
from metastore.services.events.recorder import Events
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.table.constraint_forms import FORM, FORMS, Entry, Form, asked_for, body, struct_of
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import constraints, tables
from metastore.store.table.constraints import Kind, NewConstraint, Place
from metastore.store.table.tables import TableRow

S = TypeVar("S", bound=Struct)


class ConstraintService:
    """Hive's calls for constraints."""

    def __init__(self, database: Database, tables: TableService, events: Events) -> None:
        self._events = events
        self._database = database
        self._tables = tables

    def create_table(self, table: Table, context: Mapping[str, str], wanted: SQLAllTableConstraints) -> None:
        """Adds a table with its constraints, all or nothing.

        Raises what `TableService.create` raises, InvalidObjectException for a column or table that isn't there or a
        name that is taken, MetaException for a key that can't be.
        """

        def keep_own(tx: Transaction, _: int) -> None:
            own = given.table_name(table.dbName, table.tableName, table.catName)
            entries = list(asked_for(wanted, own))
            for entry in entries:
                if entry.table != own:
                    raise InvalidObjectException(f"the table {own} can't be made with a constraint on {entry.table}")
            keep(tx, self._events, entries)

        self._tables.create(table, context, keep_own)

    def add(self, wanted: SQLAllTableConstraints) -> None:
        """Adds constraints to tables.

        Raises MetaException for a key that can't be, InvalidObjectException for a column or table that isn't there,
        or a name that is taken: undeclared by Hive's methods, so a MetaException to the client too.
        """
        with self._database.write() as tx:
            keep(tx, self._events, list(asked_for(wanted)))

    def of_table(self, struct: type[S], database: str | None, table: str | None, catalog: str | None = None) -> list[S]:
        """A table's constraints of one kind, by the struct they are; none where there is no such table."""
        kind = next(form.kind for form in FORMS if form.struct is struct)
        on = Place(*given.base(given.decorated_name(database, table, catalog)))
        with self._database.read() as tx:
            return [struct_of(struct, row) for row in constraints.find(tx, on=on, kind=kind)]

    def foreign_keys(
        self,
        parent_database: str | None,
        parent_table: str | None,
        database: str | None,
        table: str | None,
        catalog: str | None = None,
    ) -> list[SQLForeignKey]:
        """Foreign keys by the table they refer to, by the table they are on, or both; None stands for any."""
        parent = _place(parent_database, parent_table, catalog)
        on = _place(database, table, catalog)
        with self._database.read() as tx:
            found = constraints.find(tx, on=on, parent=parent, kind=Kind.FOREIGN_KEY)
            return [struct_of(SQLForeignKey, row) for row in found]

    def all(self, database: str | None, table: str | None, catalog: str | None = None) -> SQLAllTableConstraints:
        """Everything there is on a table."""
        on = Place(*given.base(given.decorated_name(database, table, catalog)))
        with self._database.read() as tx:
            rows = constraints.find(tx, on=on)

        def of(struct: type[S]) -> list[S]:
            return [struct_of(struct, row) for row in rows if FORM[row.kind].struct is struct]

        return SQLAllTableConstraints(
            of(SQLPrimaryKey),
            of(SQLForeignKey),
            of(SQLUniqueConstraint),
            of(SQLNotNullConstraint),
            of(SQLDefaultConstraint),
            of(SQLCheckConstraint),
        )

    def drop(self, database: str | None, table: str | None, name: str | None, catalog: str | None = None) -> None:
        """Removes a constraint on a table, or a foreign key that refers to it. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, RowLock.EXCLUSIVE)
            if not constraints.remove(tx, row.id, given.normalized(name or "")):
                raise NoSuchObjectException(
                    f"The constraint: {name} does not exist for the associated table: {row.name}"
                )
            self._events.constraint_dropped(tx, row, given.normalized(name or ""))
            tables.touch(tx, row.id)


def _place(database: str | None, table: str | None, catalog: str | None) -> Place:
    name = given.database_name(database or "", catalog)
    return Place(name.catalog, name.database or None, given.plain_table(table) if table else None)


# --- keeping --------------------------------------------------------------------------------------------------


class _Tables:
    """The tables that constraints are about, held until the transaction ends, and what is known of them."""

    def __init__(self, tx: Transaction, entries: Sequence[Entry]) -> None:
        holds = {entry.parent: RowLock.SHARED for entry in entries if entry.parent is not None}
        holds.update((entry.table, RowLock.EXCLUSIVE) for entry in entries)
        # In the order of their names: two requests that are about the same tables must not wait for each other.
        self._rows = {name: tables.find(tx, name, lock) for name, lock in sorted(holds.items())}
        self._types: dict[TableName, dict[str, str]] = {}

    def row(self, name: TableName, role: str) -> TableRow:
        """Raises InvalidObjectException, which calls the table by its role."""
        row = self._rows[name]
        if row is None:
            raise InvalidObjectException(f"{role} table not found: {name.table}")
        return row

    def type_of(self, name: TableName, column: str, role: str) -> str:
        """The type of a column or partition key. Raises InvalidObjectException."""
        if name not in self._types:
            value = hive_objects.table_of(self.row(name, role))
            assert value.sd is not None
            fields = [*(value.sd.cols or ()), *(value.partitionKeys or ())]
            self._types[name] = {(field.name or "").lower(): field.type or "" for field in fields}
        if column not in self._types[name]:
            raise InvalidObjectException(f"{role} column not found: {column}")
        return self._types[name][column]


def keep(tx: Transaction, events: Events, entries: Sequence[Entry]) -> None:
    """Checks constraints and adds them, kind by kind: one may refer to another of a kind before it.

    Raises MetaException for a key that can't be, InvalidObjectException for a column or table that isn't there, or a
    name that is taken.
    """
    held = _Tables(tx, entries)
    added: dict[TableName, set[str | None]] = defaultdict(set)
    for form in FORMS:
        mine = [entry for entry in entries if entry.kind == form.kind]
        if not mine:
            continue
        _check_columns(held, mine)
        if form.kind == Kind.PRIMARY_KEY:
            _check_primary_keys(tx, mine)
        named = list(_named(tx, held, form, mine))
        if form.kind == Kind.FOREIGN_KEY:
            _check_foreign_keys(tx, held, named)
        constraints.add(tx, [_new(held, entry) for entry in named])
        for entry in named:
            added[entry.table].add(entry.name)
    for name in sorted(added):
        rows = [row for row in constraints.find(tx, on=Place(*name)) if row.name in added[name]]
        by_kind = {f.listed: [struct_of(f.struct, row) for row in rows if row.kind == f.kind] for f in FORMS}
        table = held.row(name, "Child")
        events.constraints(tx, table, by_kind)
        tables.touch(tx, table.id)


def _check_columns(held: _Tables, entries: Iterable[Entry]) -> None:
    for entry in entries:
        # Hive's messages call the table of a foreign key its child, and every other one a parent.
        role = "Child" if entry.kind == Kind.FOREIGN_KEY else "Parent"
        held.row(entry.table, role)
        if entry.column is not None:
            held.type_of(entry.table, entry.column, role)
        if entry.parent is not None and entry.parent_column is not None:
            held.type_of(entry.parent, entry.parent_column, "Parent")


def _check_primary_keys(tx: Transaction, entries: Iterable[Entry]) -> None:
    starts: dict[TableName, int] = defaultdict(int)
    for entry in entries:
        starts[entry.table] += entry.position == 1
    for table, count in starts.items():
        if count > 1 or constraints.find(tx, on=Place(*table), kind=Kind.PRIMARY_KEY):
            raise MetaException(f" Primary key already exists for: {table}")


def _named(tx: Transaction, held: _Tables, form: Form, entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries with their names: made up where none is given, checked where one is.

    The columns of a key without a name follow each other; the first has the position 1. Raises
    InvalidObjectException for a name that is taken.
    """
    taken: dict[TableName, set[str]] = {}
    used: set[tuple[TableName, str, int]] = set()
    made_up = ""
    for entry in entries:
        if entry.table not in taken:
            taken[entry.table] = constraints.names(tx, held.row(entry.table, "Parent").id)
        if entry.name is None and (entry.position == 1 or not made_up):
            made_up = f"{form.prefix}_{uuid.uuid4().hex}"
        name = entry.name or made_up
        place = (entry.table, name, entry.position)
        if name in taken[entry.table] or place in used:
            raise InvalidObjectException(f"Constraint name already exists: {name}")
        used.add(place)
        yield replace(entry, name=name)


def _check_foreign_keys(tx: Transaction, held: _Tables, entries: Iterable[Entry]) -> None:
    keys: dict[tuple[TableName, str | None], list[Entry]] = defaultdict(list)
    for entry in entries:
        keys[entry.table, entry.name].append(entry)
    for (table, name), columns in keys.items():
        parents = {entry.parent for entry in columns}
        parent = parents.pop()
        if parents or parent is None:
            raise InvalidObjectException(f"the foreign key {name} refers to more than one table")
        _check_reference(tx, held, table, parent, columns)


def _check_reference(
    tx: Transaction, held: _Tables, table: TableName, parent: TableName, columns: Iterable[Entry]
) -> None:
    """A foreign key refers to exactly the columns of a key, and to types that are its own; never to itself."""
    possible: dict[str, set[str]] = defaultdict(set)
    for row in constraints.find(tx, on=Place(*parent)):
        if row.kind in (Kind.PRIMARY_KEY, Kind.UNIQUE) and row.column is not None:
            possible[row.name].add(_signature(row.column, held.type_of(parent, row.column, "Parent")))
    if not possible:
        raise MetaException(
            "Trying to define foreign key but there are no primary keys or unique keys for referenced table"
        )
    own, referenced = set(), set()
    for entry in columns:
        assert entry.column is not None and entry.parent_column is not None
        kind = held.type_of(table, entry.column, "Child")
        own.add(_signature(entry.column, kind))
        referenced.add(_signature(entry.parent_column, kind))
    if referenced not in possible.values():
        shown = [_shown(key) for key in possible.values()]
        raise MetaException(
            f"Foreign key references {_shown(referenced)} but no corresponding primary key or unique key exists."
            f" Possible keys: [{', '.join(shown)}]"
        )
    if table == parent and own == referenced:
        raise MetaException(f"Cannot be both foreign key and primary/unique key on same table: {_shown(referenced)}")


def _signature(column: str, kind: str) -> str:
    return f"{column}:{kind};"


def _shown(signatures: Iterable[str]) -> str:
    return "".join(sorted(signatures))


def _new(held: _Tables, entry: Entry) -> NewConstraint:
    assert entry.name is not None
    return NewConstraint(
        table_id=held.row(entry.table, "Parent").id,
        kind=entry.kind,
        name=entry.name,
        position=entry.position,
        column=entry.column,
        parent_table_id=None if entry.parent is None else held.row(entry.parent, "Parent").id,
        parent_column=entry.parent_column,
        body=body(entry),
    )

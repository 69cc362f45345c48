"""Converts constraints between stored rows and Thrift, which has six structs with different names of fields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from lake.protocol.codec import binary
from lake.protocol.hive import (
    MetaException,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from lake.protocol.struct import Struct
from metastore.services.model import names as given
from metastore.store.engine.names import TableName
from metastore.store.table.constraints import ConstraintRow, Kind

S = TypeVar("S", bound=Struct)


@dataclass(frozen=True, slots=True)
class Form:
    """The Thrift form of a kind of constraint: its struct, the name of its list, and the names of its fields.

    `prefix`: of names that the server generates.
    """

    kind: Kind
    struct: type[Struct]
    listed: str
    database: str
    table: str
    column: str
    name: str
    prefix: str


def _form(kind: Kind, struct: type[Struct], listed: str, name: str, prefix: str, child: str = "") -> Form:
    return Form(kind, struct, listed, f"{child}table_db", f"{child}table_name", f"{child}column_name", name, prefix)


# Foreign keys come last: they may refer to keys of the same request.
FORMS = (
    _form(Kind.PRIMARY_KEY, SQLPrimaryKey, "primaryKeys", "pk_name", "pk"),
    _form(Kind.UNIQUE, SQLUniqueConstraint, "uniqueConstraints", "uk_name", "uk"),
    _form(Kind.NOT_NULL, SQLNotNullConstraint, "notNullConstraints", "nn_name", "nn"),
    _form(Kind.DEFAULT, SQLDefaultConstraint, "defaultConstraints", "dc_name", "dc"),
    _form(Kind.CHECK, SQLCheckConstraint, "checkConstraints", "dc_name", "cc"),
    _form(Kind.FOREIGN_KEY, SQLForeignKey, "foreignKeys", "fk_name", "fk", child="fk"),
)
FORM = {form.kind: form for form in FORMS}
COMPOSITE = (Kind.PRIMARY_KEY, Kind.UNIQUE, Kind.FOREIGN_KEY)


@dataclass(frozen=True, slots=True)
class Entry:
    """One column of a constraint from a client, with names in the stored form."""

    kind: Kind
    table: TableName
    name: str | None
    position: int
    column: str | None
    parent: TableName | None
    parent_column: str | None
    struct: Struct


def asked_for(wanted: SQLAllTableConstraints, own: TableName | None = None) -> Iterator[Entry]:
    """What is asked for, kind by kind; a constraint that names no table is on `own`."""
    for form in FORMS:
        for index, struct in enumerate(getattr(wanted, form.listed) or (), 1):
            yield _entry(form, struct, index, own)


def _entry(form: Form, struct: Struct, index: int, own: TableName | None) -> Entry:
    fields: Any = struct
    database, table, name = (getattr(fields, field) for field in (form.database, form.table, form.name))
    parent = parent_column = None
    if form.kind == Kind.FOREIGN_KEY:
        parent = given.table_name(fields.pktable_db, fields.pktable_name, fields.catName)
        parent_column = _column(fields.pkcolumn_name)
    return Entry(
        kind=form.kind,
        table=own if own and table is None else given.table_name(database, table, fields.catName),
        name=given.normalized(name) if name else None,
        position=(fields.key_seq or index) if form.kind in COMPOSITE else 1,
        column=_column(getattr(fields, form.column), optional=form.kind == Kind.CHECK),
        parent=parent,
        parent_column=parent_column,
        struct=struct,
    )


def _column(name: str | None, *, optional: bool = False) -> str | None:
    if not name and not optional:
        raise MetaException("a constraint needs a column")
    return given.normalized(name) if name else None


def body(entry: Entry) -> bytes:
    """What the store keeps of a constraint's struct beside the names; flags and rules have values, as in Hive."""
    form, fields = FORM[entry.kind], entry.struct
    gone: dict[str, Any] = dict.fromkeys((form.database, form.table, form.column, form.name, "catName"))
    values: dict[str, Any] = {
        flag: bool(getattr(fields, flag)) for flag in ("enable_cstr", "validate_cstr", "rely_cstr")
    }
    if entry.kind in COMPOSITE:
        values["key_seq"] = entry.position
    if isinstance(fields, SQLForeignKey):
        gone.update(dict.fromkeys(("pktable_db", "pktable_name", "pkcolumn_name", "pk_name")))
        gone.update(update_rule=fields.update_rule or 0, delete_rule=fields.delete_rule or 0)
    return binary.encode(fields.replace(**gone, **values))


def struct_of(struct: type[S], row: ConstraintRow) -> S:
    """A constraint as clients know it."""
    form, value = FORM[row.kind], binary.decode_preserving(struct, row.body)
    names = {
        form.database: row.table.database,
        form.table: row.table.table,
        form.column: row.column,
        form.name: row.name,
        "catName": row.table.catalog,
    }
    if row.parent is not None:
        names.update(
            pktable_db=row.parent.database,
            pktable_name=row.parent.table,
            pkcolumn_name=row.parent_column,
            pk_name=row.parent_key,
        )
    return value.replace(**names)

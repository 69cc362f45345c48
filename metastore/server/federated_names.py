"""That a request names nothing but what was decided about.

Rules name the objects of a method by the fields that an ordinary server looks at. The backends of a front look at
others, too, and read some names in another way: so all names are looked at that lead anywhere.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

from lake.protocol.hive import (
    ColumnStatisticsDesc,
    CreationMetadata,
    Partition,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
)
from lake.protocol.method import Method
from lake.protocol.struct import Struct
from metastore.api.methods import HANDLERS
from metastore.api.rights.classification import value_at
from metastore.api.rights.guard import Verdict
from metastore.api.rights.naming import Requirement
from metastore.federation import fields, translation
from metastore.federation.names import CONTROL, Name
from metastore.federation.routing import LOG, Refused
from metastore.services.access.rights import Kind
from metastore.services.model import names as given
from metastore.store.engine.names import TableName

_INDEXES = frozenset({"add_index", "alter_index"})
"""Hive drops the table that an index names as its own together with the index, whosever it is."""

_BY_ANSWER = frozenset({"show_locks", "show_compact", "get_foreign_keys"}) | LOG
"""Reads whose answers say themselves which databases they are about, and are filtered by that."""

_CONNECTORS = ("connector_name", "dataConnectorName", "remote_dbname")
"""Fields of databases that are another system's: a connector reaches that with rights of its own."""

_OF_TABLES: dict[type[Struct], tuple[str, str]] = {
    ColumnStatisticsDesc: ("dbName", "tableName"),
    Partition: ("dbName", "tableName"),
    SQLPrimaryKey: ("table_db", "table_name"),
    SQLUniqueConstraint: ("table_db", "table_name"),
    SQLNotNullConstraint: ("table_db", "table_name"),
    SQLDefaultConstraint: ("table_db", "table_name"),
    SQLCheckConstraint: ("table_db", "table_name"),
    SQLForeignKey: ("fktable_db", "fktable_name"),
    CreationMetadata: ("dbName", "tblName"),
}
"""What comes along with a table and names it once more. It is that of the table that it names itself."""

_NO_DATABASE = re.compile(r"[\x00-\x1f\x7f.@#]")


def check(method: Method, arguments: Struct, verdict: Verdict) -> None:
    """Raises Refused for a call that names more than it needs, or what front and backend may read in two ways.

    `verdict`: with what the call's rule says that it needs. Raises MetaException for a malformed name.
    """
    try:
        _check(method, arguments, verdict.needs)
    except Refused as error:
        verdict.allowed, verdict.reason = False, str(error)
        raise


def _check(method: Method, arguments: Struct, needs: Collection[Requirement]) -> None:
    name = method.name
    rule = HANDLERS[name].rule
    if name in _INDEXES:
        raise Refused(f"{name} is for administrators of the front: an index names a table that goes with it")
    objects = [each for _, each in needs if each.kind in (Kind.DATABASE, Kind.TABLE)]
    for each in objects:
        if not each.database or _NO_DATABASE.search(each.database) or CONTROL.search(each.table + (each.column or "")):
            raise Refused(f"{name} names {each.database!r}, {each.table!r}: that is no name of a database and a table")
    databases = {Name(each.catalog, each.database) for each in objects}
    if rule.extra == "new_database":
        databases |= _new_database(value_at(arguments, rule.extra_paths[0].names))
    _check_connectors(name, arguments)
    if name not in _BY_ANSWER and not _is_pattern(name, arguments):
        for named in translation.asked(_what_counts(name, arguments)).names:
            if named not in databases:
                raise Refused(f"{name} names database {named} where the front doesn't decide about it: leave it out")
    if rule.changes:
        tables = {each.of_table for each in objects if each.kind is Kind.TABLE}
        found = list(_tables(arguments, None))
        tables |= {table for table, repeats in found if not repeats}
        for table, repeats in found:
            if repeats and table not in tables:
                raise Refused(f"{name} names table {table} where the front doesn't decide about it: leave it out")


def _what_counts(name: str, arguments: Any) -> Struct:
    """The arguments without what decides about nothing.

    Whether a materialized view is still valid is said of the tables that it is made of; its own name is but sent along.
    """
    found: Struct = arguments
    if name == "get_materialization_invalidation_info" and arguments.creation_metadata is not None:
        found = arguments.replace(creation_metadata=arguments.creation_metadata.replace(dbName=None))
    return found


def _new_database(value: Any) -> set[Name]:
    """The name of a new database: who may make one may make it by any name."""
    name = getattr(value, "name", None) or getattr(value, "databaseName", None)
    return {Name(*given.database_name(name, value.catalogName))}


def _is_pattern(name: str, arguments: Any) -> bool:
    """Whether the database of a call is a pattern of names: its answer is filtered by the names that are in it."""
    return name == "get_table_objects_by_name_req" and arguments.req.tablesPattern is not None


def _check_connectors(name: str, arguments: Struct) -> None:
    for field in type(arguments).field_names():
        part = getattr(arguments, field)
        for holder in (part, getattr(part, "newDb", None)):
            if any(getattr(holder, each, None) for each in _CONNECTORS):
                raise Refused(f"{name} of a database that a connector reaches is for administrators of the front")


def _tables(value: Struct, inherited: str | None) -> Iterator[tuple[TableName, bool]]:
    """The tables that a request brings along, and what repeats the name of one, which is said by True.

    Tables that a view is built from are not the request's own.
    """
    it = fields.plan(type(value))
    catalog = (getattr(value, it.catalog) if it.catalog else None) or None
    for field in it.databases:
        if (database := getattr(value, field)) and database.startswith("@"):
            inherited = catalog or given.split_database(database)[0] or inherited
    inherited = catalog or inherited
    if isinstance(value, Table) and value.dbName and value.tableName:
        yield _table(value.dbName, value.tableName, catalog, inherited), False
    if (names := _OF_TABLES.get(type(value))) is not None:
        database, name = (getattr(value, each) for each in names)
        if database and name:
            yield _table(database, name, catalog, inherited), True
        if isinstance(value, CreationMetadata):
            return
    for field in it.parts:
        for part in _structs(getattr(value, field)):
            yield from _tables(part, inherited)


def _table(database: str, name: str, catalog: str | None, inherited: str | None) -> TableName:
    return TableName(*translation.parsed(catalog, inherited, database), given.plain_table(name))


def _structs(part: Any) -> Iterator[Struct]:
    if isinstance(part, Struct):
        yield part
    elif isinstance(part, dict):
        for item in part.values():
            yield from _structs(item)
    elif isinstance(part, list):
        for item in part:
            yield from _structs(item)

"""Versions of the schemas in the schema registry."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, insert, select, update

from metastore.store.engine.names import DatabaseName
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.registry import named_objects, schema_versions


class VersionRow(NamedTuple):
    """A stored version, with the names of its schema."""

    id: int
    database: DatabaseName
    schema: str
    version: int
    body: bytes


_JOINED = (
    select(
        schema_versions.c.id,
        schema_versions.c.version,
        schema_versions.c.body,
        named_objects.c.name.label("schema_name"),
        databases.c.name.label("database_name"),
        catalogs.c.name.label("catalog_name"),
    )
    .join(named_objects, named_objects.c.id == schema_versions.c.schema_id)
    .join(databases, databases.c.id == named_objects.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
)


def of_schema(tx: Connection, database: DatabaseName, schema: str, version: int | None = None) -> list[VersionRow]:
    """A schema's versions, the newest first; with `version` that one alone."""
    query = _JOINED.where(
        catalogs.c.name == database.catalog,
        databases.c.name == database.database,
        named_objects.c.name == schema,
    ).order_by(schema_versions.c.version.desc())
    if version is not None:
        query = query.where(schema_versions.c.version == version)
    return _rows(tx, query)


def with_column(tx: Connection, column: Mapping[str, str]) -> list[VersionRow]:
    """The versions of all schemas with a column of which all of this is true; keys: `name`, `type`, `comment`."""
    query = _JOINED.where(schema_versions.c.columns.contains([dict(column)]))
    return _rows(tx, query.order_by(catalogs.c.name, databases.c.name, named_objects.c.name, schema_versions.c.version))


def _rows(tx: Connection, query: Select[Any]) -> list[VersionRow]:
    return [
        VersionRow(
            row.id, DatabaseName(row.catalog_name, row.database_name), row.schema_name, row.version, bytes(row.body)
        )
        for row in tx.execute(query)
    ]


def add(tx: Connection, schema_id: int, version: int, columns: Sequence[Mapping[str, str]], body: bytes) -> None:
    """Adds a version. Raises store.Conflict if there is one of that number."""
    values = {"schema_id": schema_id, "version": version, "columns": [dict(column) for column in columns], "body": body}
    tx.execute(insert(schema_versions), values)


def change(tx: Connection, version_id: int, body: bytes) -> None:
    """Replaces what is kept of a version beside its columns."""
    tx.execute(update(schema_versions).where(schema_versions.c.id == version_id).values(body=body))


def remove(tx: Connection, version_id: int) -> None:
    """Removes a version."""
    tx.execute(delete(schema_versions).where(schema_versions.c.id == version_id))

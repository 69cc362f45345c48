"""Converts names from clients to the stored form."""

from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.hive import InvalidOperationException, MetaException
from metastore.store.engine.names import DatabaseName, TableName

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"
MAX_NAME = 128
"""Characters of a name, as in Hive's schema."""

ICEBERG = "@iceberg"
"""The suffix of the name under which a table of another format is shown as Iceberg's, read-only."""


def normalized(name: str) -> str:
    """A name in the stored form: stripped and lower-case (Hive's normalizeIdentifier)."""
    return name.strip().lower()


def database_name(database: str | None, catalog: str | None = None) -> DatabaseName:
    """Parses the name of a database.

    Clients of Hive 3 and later put the catalog before the database's name: `@hive#sales`; `@hive#` alone names the
    catalog, `@hive` and `!` the empty database (Hive's MetaStoreUtils.parseDbName).

    Raises MetaException if there is no name, or a `@catalog` without the `#`.
    """
    given_catalog, name = split_database(database)
    if name is None:
        raise MetaException("the database's name is missing")
    return DatabaseName(normalized(catalog or given_catalog or DEFAULT_CATALOG), normalized(name))


def split_database(database: str | None) -> tuple[str | None, str | None]:
    """Splits a database's name or pattern into catalog and name. A missing part is None. Raises MetaException."""
    if database is None or not database.startswith("@"):
        return None, database
    catalog, separator, name = database[1:].partition("#")
    if not separator:
        raise MetaException(f"{database!r} is no database name: after @catalog a # must follow")
    if name == "!":
        return catalog, ""
    return catalog, name or None


def plain(database: str | None) -> str:
    """A database's name as the client sent it, without the catalog, for messages."""
    return split_database(database)[1] or ""


def table_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """Parses the name of a table for a writing call.

    Raises MetaException if a part is missing, InvalidOperationException for a decorated name.
    """
    name = decorated_name(database, table, catalog)
    if is_decorated(name):
        raise InvalidOperationException(
            f"{name.database}.{name.table} is the read-only view of a table with its uncommitted partitions;"
            f" write to {base(name).table} instead"
        )
    if name.table.endswith(ICEBERG):
        raise InvalidOperationException(
            f"{name.database}.{name.table} is {name.table.removesuffix(ICEBERG)} shown as Iceberg, for reading: change"
            " the table itself, with Spark, with LakeClient, or with Hive's ALTER and DROP statements"
        )
    return name


def decorated_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """Parses the name of a table for a reading call. A decorated name stays decorated, as in the reply.

    Raises MetaException if a part is missing.
    """
    where = database_name(database, catalog)
    if table is None:
        raise MetaException("the table's name is missing")
    return TableName(where.catalog, where.database, normalized(table))


def base(name: TableName) -> TableName:
    """The table's own name, without a decoration."""
    return name._replace(table=plain_table(name.table))


def plain_table(table: str) -> str:
    """A table's own name in the stored form, from a name without a database."""
    return normalized(table).removesuffix(UNCOMMITTED_NAME)


def shown_as_iceberg(table: str | None) -> str | None:
    """The own name of a table that a caller wants to see as Iceberg's; None for every other name."""
    name = normalized(table or "")
    return name.removesuffix(ICEBERG) if name.endswith(ICEBERG) else None


def is_decorated(name: TableName) -> bool:
    """Whether a name is decorated, so that it shows uncommitted partitions."""
    return name.table.endswith(UNCOMMITTED_NAME)

"""Names as clients send them, brought into the form in which they are kept."""

from metastore.store.names import DatabaseName, TableName
from metastore.wire.hive import InvalidOperationException, MetaException

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"
MAX_NAME = 128

UNCOMMITTED = "@includeuncommit"
"""Ends the name under which a table is read with its uncommitted partitions. No table's own name may contain an @."""


def normalized(name: str) -> str:
    """A name as it is kept and looked up: without blanks around it, lower-cased (Hive's normalizeIdentifier)."""
    return name.strip().lower()


def database_name(database: str | None, catalog: str | None = None) -> DatabaseName:
    """The catalog and database that a client means.

    Clients of Hive 3 and later put the catalog before the database's name: `@hive#sales`; `@hive#` alone names the
    catalog, `@hive` and `!` the empty database (Hive's MetaStoreUtils.parseDbName).

    Raises MetaException if there is no name, or a `@catalog` without the `#`.
    """
    given_catalog, name = split_database(database)
    if name is None:
        raise MetaException("the database's name is missing")
    return DatabaseName(normalized(catalog or given_catalog or DEFAULT_CATALOG), normalized(name))


def split_database(database: str | None) -> tuple[str | None, str | None]:
    """Catalog and rest of a database name or pattern, None for what is not there."""
    if database is None or not database.startswith("@"):
        return None, database
    catalog, separator, name = database[1:].partition("#")
    if not separator:
        raise MetaException(f"{database!r} is no database name: after @catalog a # must follow")
    if name == "!":
        return catalog, ""
    return catalog, name or None


def plain(database: str | None) -> str:
    """A database's name as the client gave it, for messages: without the catalog."""
    return split_database(database)[1] or ""


def table_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """The table that a client means to change.

    Raises MetaException if a part is missing, InvalidOperationException for a decorated name.
    """
    name = decorated_name(database, table, catalog)
    if is_decorated(name):
        raise InvalidOperationException(
            f"{name.database}.{name.table} is the read-only view of a table with its uncommitted partitions;"
            f" write to {base(name).table} instead"
        )
    return name


def decorated_name(database: str | None, table: str | None, catalog: str | None = None) -> TableName:
    """The table that a client means to read, under the name under which it is to be answered.

    That is `t@includeuncommit` for a client that asks for table `t` so. Raises MetaException if a part is missing.
    """
    where = database_name(database, catalog)
    if table is None:
        raise MetaException("the table's name is missing")
    return TableName(where.catalog, where.database, normalized(table))


def base(name: TableName) -> TableName:
    """The table's own name."""
    return name._replace(table=plain_table(name.table))


def plain_table(table: str) -> str:
    """A table's own name where it is given without its database, as it is kept."""
    return normalized(table).removesuffix(UNCOMMITTED)


def is_decorated(name: TableName) -> bool:
    """Whether a table is read under the name that shows its uncommitted partitions."""
    return name.table.endswith(UNCOMMITTED)

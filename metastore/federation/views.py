"""The texts of views: only the names of databases in them are replaced, at their places.

What names a database is what a parser says, never a search. A text that it doesn't understand stays as it is, and the
table says so in a parameter.
"""

from collections.abc import Callable
from typing import Any

from lake.protocol.hive import Table

UNMAPPED = "federation.view.text"
"""The parameter of a view whose text names databases as its own metastore does, since nobody could say where."""

Rename = Callable[[str], str]
"""The new name of a database. Raises LookupError for one that has none."""

_NAMESPACE = "view.catalogAndNamespace."
"""How Spark's parameters begin that say in which database the text's bare names are."""


class NotUnderstood(Exception):
    """A text in which the names can't be told for certain."""


def rename_in(table: Table, rename: Rename) -> None:
    """Renames the databases in the texts of a view, and in Spark's parameters about them.

    Raises NotUnderstood, and what `rename` raises, and leaves the table as it was then.
    """
    if not table.viewOriginalText and not table.viewExpandedText:
        return
    original = renamed(table.viewOriginalText, rename)
    expanded = renamed(table.viewExpandedText, rename)
    parameters = _parameters(dict(table.parameters or {}), rename)
    table.viewOriginalText, table.viewExpandedText = original, expanded
    if table.parameters is not None:
        table.parameters = parameters


def mark(table: Table) -> None:
    """Says of a view that its text was left alone."""
    table.parameters = {**(table.parameters or {}), UNMAPPED: "names are those of the view's own metastore"}


def renamed(text: str | None, rename: Rename) -> str | None:
    """A query with other names of databases; every other character stays. Raises NotUnderstood."""
    if not text or text.startswith("/* Presto View"):
        if text:
            raise NotUnderstood("it is encoded")
        return text
    places = _places(text)
    for start, end in sorted(places, reverse=True):
        name = text[start:end]
        quoted = name.startswith("`")
        old = name[1:-1] if quoted else name
        new = rename(old.lower())
        if new != old.lower():
            text = text[:start] + (f"`{new}`" if quoted else new) + text[end:]
    return text


def _places(text: str) -> set[tuple[int, int]]:
    """Where the names of databases are."""
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError:
        raise NotUnderstood("sqlglot is not installed") from None
    try:
        trees = sqlglot.parse(text, read="spark")
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError) as error:
        raise NotUnderstood(str(error)) from None
    found: set[tuple[int, int]] = set()
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise NotUnderstood("it is not one query")
    tables = set()
    for table in trees[0].find_all(exp.Table):
        if table.args.get("catalog") is not None or not isinstance(table.this, exp.Identifier):
            raise NotUnderstood("it names a catalog, or a function in the place of a table")
        if (database := table.args.get("db")) is not None:
            found.add(_place(text, database))
            tables.add((database.name.lower(), table.name.lower()))
    aliases = {alias.name.lower() for alias in trees[0].find_all(exp.TableAlias)}
    for part in trees[0].find_all(exp.Column, exp.Dot):
        if isinstance(part, exp.Column):
            _column(text, part, tables, aliases, found)
        elif isinstance(part.expression, exp.Func):
            if not isinstance(part.this, exp.Identifier):
                raise NotUnderstood("it names the catalog of a function")
            found.add(_place(text, part.this))
    return found


def _column(
    text: str, column: Any, tables: set[tuple[str, str]], aliases: set[str], found: set[tuple[int, int]]
) -> None:
    """Finds the database in `db.table.column`; a struct's field looks the same, and then it isn't certain."""
    if (database := column.args.get("db")) is None:
        return
    databases = {name for name, _ in tables}
    if (first := column.args.get("catalog")) is not None:  # or a field of a struct: `db.table.column.field`
        if {first.name.lower(), database.name.lower()} & databases:
            raise NotUnderstood(f"what {first.name}.{database.name}.{column.table} names isn't certain")
        return
    if (database.name.lower(), column.table.lower()) in tables:
        names = aliases | {table for _, table in tables}
        if database.name.lower() in names:
            raise NotUnderstood(f"{database.name} is a table there, and a database")
        found.add(_place(text, database))
    elif database.name.lower() in databases:
        raise NotUnderstood(f"{database.name}.{column.table} is not one of its tables")


def _place(text: str, identifier: object) -> tuple[int, int]:
    meta = getattr(identifier, "meta", {})
    if "start" not in meta:
        raise NotUnderstood("it isn't known where a name stands")
    start, end = meta["start"], meta["end"] + 1
    name = getattr(identifier, "name", "")
    if text[start:end].strip("`").lower() != name.lower():
        raise NotUnderstood(f"{name} stands elsewhere")
    return start, end


def _parameters(parameters: dict[str, str], rename: Rename) -> dict[str, str]:
    parts = parameters.get(f"{_NAMESPACE}numParts")
    if parts is None:
        return parameters
    if parts != "2":
        raise NotUnderstood(f"Spark's namespace has {parts} parts")
    key = f"{_NAMESPACE}part.1"
    if parameters.get(f"{_NAMESPACE}part.0") == "spark_catalog" and key in parameters:
        parameters[key] = rename(parameters[key].lower())
    return parameters

"""Which names and types Hive accepts."""

import re
from collections.abc import Sequence

from metastore.services.names import MAX_NAME
from metastore.wire.hive import FieldSchema, MetaException

_NAME = re.compile(r"[A-Za-z0-9_]+")
_FIRST_WORD = re.compile(r"[A-Za-z0-9_]+|[^A-Za-z0-9_]+")

# The words a column type may begin with: serdeConstants' primitive and collection types, and what serdes decide.
_TYPES = {
    *("void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "varchar", "char", "binary", "date", "datetime", "timestamp"),
    *("interval_year_month", "interval_day_time", "array", "map", "struct", "uniontype"),
}
_FROM_DESERIALIZER = "<derived from deserializer>"


def is_name(name: str) -> bool:
    """Whether Hive takes it as the name of a database, table or function: letters, digits and underscores."""
    return _NAME.fullmatch(name) is not None


def check_length(name: str, what: str) -> None:
    """Raises MetaException for a name longer than Hive's schema allows."""
    if len(name) > MAX_NAME:
        raise MetaException(f"the {what}'s name has {len(name)} characters; {MAX_NAME} are allowed: {name[:40]}…")


def wrong_type(columns: Sequence[FieldSchema] | None) -> str | None:
    """The first column type that Hive does not know, as it is named in its message; None if all are fine.

    As in Hive only the type's first word is looked at. Raises MetaException for a type that is missing or empty.
    """
    for column in columns or ():
        if not column.type:
            raise MetaException(f"column {column.name!r} has no type")
        if column.type == _FROM_DESERIALIZER:
            continue
        word = _FIRST_WORD.match(column.type)
        if word is None or word.group() not in _TYPES:
            return column.type
    return None


def check_columns(columns: Sequence[FieldSchema] | None) -> None:
    """Raises MetaException for a column without a name, or two of the same name (whatever their case)."""
    seen: set[str] = set()
    for column in columns or ():
        if column.name is None:
            raise MetaException("a column has no name")
        if column.name.lower() in seen:
            raise MetaException(f"Duplicate column name: {column.name.lower()}")
        seen.add(column.name.lower())

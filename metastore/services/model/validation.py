"""Validates names and column types, as Hive does."""

import re
from collections.abc import Sequence

from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.hive import FieldSchema, MetaException
from metastore.services.model import names as given
from metastore.services.model.names import MAX_NAME

_NAME = re.compile(r"[A-Za-z0-9_]+")
# The default of Hive 4's MetaStoreUtils.validateName: printable ASCII without the backslash.
_SPECIAL_NAME = re.compile(r"[ -\[\]-~]+")
_FIRST_WORD = re.compile(r"[A-Za-z0-9_]+|[^A-Za-z0-9_]+")

# The words a column type may begin with: serdeConstants' primitive and collection types, and what serdes decide.
_TYPES = {
    *("void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "varchar", "char", "binary", "date", "datetime", "timestamp"),
    *("interval_year_month", "interval_day_time", "array", "map", "struct", "uniontype"),
}
_FROM_DESERIALIZER = "<derived from deserializer>"


def is_name(name: str) -> bool:
    """Whether it is a valid name of a catalog, function or type in every Hive: letters, digits, underscores."""
    return _NAME.fullmatch(name) is not None


def is_table_name(name: str) -> bool:
    """Whether it is a valid name of a table, as in Hive 4: printable ASCII without the backslash.

    It must not be blank, nor a decorated name (`t@includeuncommit`, `t@iceberg`).
    """
    kept = given.normalized(name)
    decorated = kept.endswith((UNCOMMITTED_NAME, given.ICEBERG))
    return bool(kept) and _SPECIAL_NAME.fullmatch(name) is not None and not decorated


def is_database_name(name: str) -> bool:
    """Whether it is a valid name of a database: as for a table, but without a `/`, since it names a directory."""
    return is_table_name(name) and "/" not in name


def check_length(name: str, what: str) -> None:
    """Raises MetaException for a name longer than Hive's schema allows."""
    if len(name) > MAX_NAME:
        raise MetaException(f"the {what}'s name has {len(name)} characters; {MAX_NAME} are allowed: {name[:40]}…")


def wrong_type(columns: Sequence[FieldSchema] | None) -> str | None:
    """The first column type that Hive doesn't know; None if all are valid.

    As in Hive, only a type's first word is checked. Raises MetaException for a missing or empty type.
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
    """Raises MetaException for a column without a name, or two with the same name (case-insensitively)."""
    seen: set[str] = set()
    for column in columns or ():
        if column.name is None:
            raise MetaException("a column has no name")
        if column.name.lower() in seen:
            raise MetaException(f"Duplicate column name: {column.name.lower()}")
        seen.add(column.name.lower())

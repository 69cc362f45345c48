"""Compatible changes of column types: the stored values can be read as the new type.

This is Hive's rule for hive.metastore.disallow.incompatible.col.type.changes: implicit conversion, by position. Of
tables whose files tell their columns by ids or names, it is by name.
"""

import re
from collections.abc import Sequence

from lake.protocol.hive import FieldSchema

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_TEXTS = ("string", "varchar", "char")
# Possessive quantifiers prevent backtracking.
_PARAMETERS = re.compile(r"(?<!\s)\s*+\([^()]*+\)")

_WIDER: dict[str, frozenset[str]] = {
    **{name: frozenset((*_NUMBERS[position:], "decimal", *_TEXTS)) for position, name in enumerate(_NUMBERS[:4])},
    "float": frozenset(("float", "double", *_TEXTS)),
    "double": frozenset(("double", *_TEXTS)),
    "decimal": frozenset(("decimal", "float", "double", *_TEXTS)),
    **{name: frozenset((*_TEXTS, "double")) for name in _TEXTS},
    "date": frozenset(("date", *_TEXTS)),
    "timestamp": frozenset(("timestamp", *_TEXTS)),
    "void": frozenset((*_NUMBERS, "decimal", *_TEXTS, "boolean", "binary", "date", "timestamp")),
}


def compatible(old: str | None, new: str | None) -> bool:
    """Whether values of the old type can be read as the new one."""
    if old == new:
        return True
    if old is None or new is None:
        return False
    return _PARAMETERS.sub("", new) in _WIDER.get(_PARAMETERS.sub("", old), frozenset())


def incompatible(old: Sequence[FieldSchema] | None, new: Sequence[FieldSchema] | None) -> list[str]:
    """The new names of the columns whose type isn't compatible with that of the old column at the same position."""
    pairs = zip(old or (), new or (), strict=False)
    return [after.name or "" for before, after in pairs if not compatible(before.type, after.type)]


def incompatible_by_name(old: Sequence[FieldSchema] | None, new: Sequence[FieldSchema] | None) -> list[str]:
    """The columns whose type isn't compatible with that of the old column of the same name, if there is one."""
    before = {(each.name or "").lower(): each.type for each in old or ()}
    return [
        each.name or ""
        for each in new or ()
        if (name := (each.name or "").lower()) in before and not compatible(before[name], each.type)
    ]

"""Partition names: `dt=2024-01-01/hr=00`, keys and values escaped so that each pair is one step of a path.

The rules are Hive's: FileUtils.escapePathName, Warehouse.makePartName and Warehouse.makeSpecFromName.
"""

import re
from collections.abc import Sequence

from metastore.wire.hive import InvalidObjectException, MetaException

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Stands for a missing value, in names and in lists of values alike."""

# Nothing outside ASCII is escaped, and of ASCII neither the space nor `}`.
_UNSAFE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(value: str | None) -> str:
    """A key or value as it stands in a name: what is special in a path as `%` and two upper-case hex digits.

    None and the empty string become `__HIVE_DEFAULT_PARTITION__`.
    """
    if not value:
        return DEFAULT_PARTITION
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)


def unescape(text: str) -> str:
    """Undoes `escape`, save that the default partition's name stays. So does a `%` without two hex digits."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def make_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name of the partition with these values; keys are lower-cased.

    Raises MetaException if there are no keys, or not as many values as keys.
    """
    if not keys or len(keys) != len(values):
        # Hive's message, with its trailing commas.
        shown = ("".join(f"{item}, " for item in items) for items in (keys, values))
        raise MetaException("Invalid partition key & values; keys [{}], values [{}]".format(*shown))
    return "/".join(f"{escape(key.lower())}={escape(value)}" for key, value in zip(keys, values, strict=True))


def parse_name(name: str | None) -> dict[str, str]:
    """Keys and values in the order of the name, unescaped; a key's case is kept.

    A step of the path that is no `key=value` is passed over; if a key comes twice, its last value counts.
    Raises MetaException if there is no name.
    """
    if not name:
        raise MetaException(f"Partition name is invalid. {name or ''}")
    pairs = (step.rpartition("=") for step in name.split("/"))
    return {unescape(key): unescape(value) for key, _, value in pairs if key and value}


def values_of(name: str | None, keys: Sequence[str]) -> list[str]:
    """A name's values in the order of a table's keys; keys the table doesn't have are passed over.

    Raises InvalidObjectException if a key is missing, as Hive does (its callers make that
    NoSuchObjectException where a partition is looked up by name); MetaException if there is no name.
    """
    found = parse_name(name)
    for key in keys:
        if key not in found:
            raise InvalidObjectException(f"incomplete partition name - missing {key}")
    return [found[key] for key in keys]

"""Partition names such as `dt=2024-01-01/hr=00`, in which keys and values are escaped for use as a path.

The rules are those of Hive's FileUtils.escapePathName, Warehouse.makePartName and Warehouse.makeSpecFromName.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from lake.protocol.hive import InvalidObjectException, MetaException

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Stands for a missing value, in names and in lists of values."""

# Nothing outside ASCII is escaped, and of ASCII neither the space nor `}`.
_UNSAFE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(value: str | None) -> str:
    """Escapes a key or value: special characters become `%` and two upper-case hex digits.

    None and the empty string become `__HIVE_DEFAULT_PARTITION__`.
    """
    if not value:
        return DEFAULT_PARTITION
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)


def unescape(text: str) -> str:
    """Reverses `escape`. The default partition's name stays, and so does a `%` without two hex digits."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def make_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name of the partition with these values; keys are lower-cased.

    Raises MetaException if there are no keys, or not as many values as keys.
    """
    if not keys or len(keys) != len(values):
        # Hive's message, with its trailing commas.
        shown = ("".join(f"{item}, " for item in items) for items in (keys, values))
        raise MetaException("Invalid partition key & values; keys [{}], values [{}]".format(*shown))
    return "/".join([f"{_key(key)}={escape(value)}" for key, value in zip(keys, values, strict=True)])


@lru_cache(maxsize=1_000)
def _key(key: str) -> str:
    return escape(key.lower())


def parse_name(name: str | None) -> dict[str, str]:
    """Parses a name into unescaped keys and values, in order. The case of keys is kept.

    Parts that aren't `key=value` are ignored. If a key occurs twice, the last value counts. Raises MetaException for an
    empty name.
    """
    if not name:
        raise MetaException(f"Partition name is invalid. {name or ''}")
    pairs = (step.rpartition("=") for step in name.split("/"))
    return {unescape(key): unescape(value) for key, _, value in pairs if key and value}


def values_in(name: str | None) -> list[str]:
    """A name's values in its own order. Raises MetaException if there is no name."""
    return list(parse_name(name).values())


def values_of(name: str | None, keys: Sequence[str]) -> list[str]:
    """A name's values in the order of a table's keys. Other keys are ignored.

    Raises InvalidObjectException if a key is missing, as Hive does (lookups by name turn it into
    NoSuchObjectException), and MetaException for an empty name.
    """
    found = parse_name(name)
    for key in keys:
        if key not in found:
            raise InvalidObjectException(f"incomplete partition name - missing {key}")
    return [found[key] for key in keys]

"""Hive's nested types, such as `map<string,array<struct<a:int>>>`, taken apart."""

from collections.abc import Iterator

MAX_DEPTH = 100
"""Types that are nested deeper are only compared as a whole."""


def parts_of(text: str) -> tuple[str, list[str]]:
    """A nested type of Hive's, such as `map<string,int>`, taken apart: `map`, and `string` and `int`."""
    outer, _, inner = text.strip().partition("<")
    return outer.strip().lower(), list(_split(inner[:-1]))


def keeps_fields(old: str, new: str) -> bool:
    """Whether the fields of all structs in a type are in the other one too, and others only after them.

    Fields are found by their names in files. So another name, or a name that comes back, would give other values.
    """
    if old == new or not old.strip().endswith(">"):
        return True
    if old.count("<") > MAX_DEPTH:
        return False
    (outer, before), (other, after) = parts_of(old), parts_of(new)
    if outer != other or len(before) > len(after):
        return False
    pairs = list(zip(before, after, strict=False))
    if outer != "struct":
        return all(keeps_fields(one, two) for one, two in pairs)
    fields = [[each.partition(":") for each in pair] for pair in pairs]
    return all(one[0].strip().lower() == two[0].strip().lower() and keeps_fields(one[2], two[2]) for one, two in fields)


def _split(text: str) -> Iterator[str]:
    """The parts between commas that lie in no brackets."""
    depth, start = 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            yield text[start:index]
            start = index + 1
    yield text[start:]

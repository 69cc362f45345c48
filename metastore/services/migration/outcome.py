"""What became of the objects of an import, and how two forms of an object differ."""

from dataclasses import dataclass, field

from lake.protocol.lake import ImportDifference, ImportResponse
from lake.protocol.struct import Struct

MAX_DIFFERENCES = 1_000
"""Differences that an answer names one by one. The last one says how many more there are."""

_LONGEST = 300  # characters of a difference


@dataclass
class Outcome:
    """Counts objects that were added or there already, and keeps how others differ. `replace`: these are replaced."""

    replace: bool
    added: int = 0
    same: int = 0
    differences: list[ImportDifference] = field(default_factory=list)
    more: int = 0

    def differs(self, kind: str, name: str, difference: str | None, *, replaceable: bool = True) -> bool:
        """Notes how an object that is there differs from the one that is brought; None: it doesn't.

        Returns whether the caller has to replace it.
        """
        if difference is None:
            self.same += 1
            return False
        replaced = self.replace and replaceable
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(ImportDifference(kind, name, difference, replaced))
        else:
            self.more += 1
        return replaced

    def to_thrift(self) -> ImportResponse:
        """The answer."""
        found = list(self.differences)
        if self.more:
            found.append(ImportDifference("more", "", f"{self.more} more objects differ", self.replace))
        return ImportResponse(self.added, self.same, found)


def difference(here: Struct, brought: Struct) -> str | None:
    """What differs between two structs of a kind, in words; None if nothing does."""
    if here == brought:
        return None
    found = list(_differing("", here, brought)) or ["fields that this version doesn't know"]
    text = "; ".join(found)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _differing(path: str, here: Struct, brought: Struct) -> "list[str]":
    found: list[str] = []
    for name in here.field_names():
        one, other = getattr(here, name), getattr(brought, name)
        if one == other:
            continue
        place = f"{path}{name}"
        if isinstance(one, Struct) and type(one) is type(other):
            found += _differing(f"{place}.", one, other)
        elif isinstance(one, dict) and isinstance(other, dict):
            keys = sorted((key for key in one.keys() | other.keys() if one.get(key) != other.get(key)), key=str)
            found += [f"{place}.{key}: here {one.get(key)!r}, there {other.get(key)!r}" for key in keys]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            places = [index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
            found += [f"{place}[{index}]: here {one[index]!r}, there {other[index]!r}" for index in places]
        else:
            found.append(f"{place}: here {one!r}, there {other!r}")
    return found

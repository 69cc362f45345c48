"""What somebody says of a change that the source doesn't tell: which column is which, while the change is held."""

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from lake.capture.errors import CaptureError
from lake.capture.schema_changes.model import Column


class How(StrEnum):
    """What has become of a column."""

    RENAME = "rename"
    """Another column has its values."""
    DROP_ADD = "drop+add"
    """No column has its values, whatever its name or number says."""
    CAST = "cast"
    """Its values are the same ones in another type."""


_FORM = re.compile(
    rf"(?P<how>{How.RENAME}|{re.escape(How.DROP_ADD)}|{How.CAST})\s+(?P<column>\S+?)(?:\s*=\s*(?P<to>\S+))?", re.DOTALL
)


class Amendment(NamedTuple):
    """What has become of the column `column` by a change. `to`: which one has its values, of a rename."""

    how: How
    column: str
    to: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `rename x=y`, `drop+add x` or `cast x`. Raises CaptureError."""
        found = _FORM.fullmatch(text.strip())
        if found is None or (found["how"] == How.RENAME) != (found["to"] is not None):
            raise CaptureError(f"{text[:100]!r} isn't an amendment: expected 'rename x=y', 'drop+add x' or 'cast x'")
        return cls(How(found["how"]), found["column"], found["to"])

    def __str__(self) -> str:
        return f"{self.how} {self.column}" + ("" if self.to is None else f"={self.to}")


def check(amendments: Iterable[Amendment], old: Iterable[Column], new: Iterable[Column]) -> None:
    """Raises CaptureError for amendments that aren't about the columns before and after a change."""
    before, after = ({each.name: each for each in columns} for columns in (old, new))
    taken: set[str] = set()
    for each in amendments:
        if each.column not in before:
            raise CaptureError(f"there was no column {each.column} before the change: {', '.join(before)}")
        if each.column in taken:
            raise CaptureError(f"two amendments are about {each.column}")
        taken.add(each.column)
        if each.how is How.RENAME and each.to not in after:
            raise CaptureError(f"there is no column {each.to} after the change: {', '.join(after)}")
        if each.how is How.CAST:
            if each.column not in after:
                raise CaptureError(f"{each.column} isn't there after the change: name what it became by a rename")
            if "binary" in (before[each.column].type, after[each.column].type):
                raise CaptureError(f"{each.column} was or is binary, which no cast makes the same value")


def parsed(text: str | None) -> dict[tuple[str, str], tuple[Amendment, ...]]:
    """Amendments by table and position, as `sent` wrote them. Raises CaptureError."""
    try:
        found = json.loads(text or "{}")
        return {
            (table, at): tuple(map(Amendment.parse, said)) for table, made in found.items() for at, said in made.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise CaptureError(f"the amendments of the raw table aren't readable: {(text or '')[:100]}") from None


def sent(amendments: Mapping[tuple[str, str], tuple[Amendment, ...]]) -> str:
    """The text in which amendments are kept."""
    found: dict[str, dict[str, list[str]]] = {}
    for (table, at), said in sorted(amendments.items()):
        found.setdefault(table, {})[at] = [*map(str, said)]
    return json.dumps(found)

"""The ids of a lake table's columns, and under which names its files have them.

The server keeps them in a property of the table. A column has one id, whatever its name is, and no other column of the
table ever gets it. A table without the property has got columns at the end only: its columns are numbered from 1 on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

COLUMN_IDS = "column-ids"
"""The table property, which the server alone sets. JSON: a list of `ColumnName`s, each as a list of its fields."""

MAX_NAMES = 10_000
"""Names that the columns of one table have and had."""


class ColumnName(NamedTuple):
    """A column's name in files that completed after the position `after`, up to `up_to`; None: to this day."""

    id: int
    name: str
    after: int
    up_to: int | None


@dataclass(frozen=True)
class ColumnIds:
    """The columns that a table has and had."""

    names: tuple[ColumnName, ...]

    @classmethod
    def of(cls, properties: Mapping[str, str], columns: Sequence[str]) -> Self:
        """Those of a table with some properties. `columns`: its data columns now.

        Raises ValueError for a property that this version doesn't understand.
        """
        text = properties.get(COLUMN_IDS)
        if text is None:
            return cls(tuple(ColumnName(number, name.lower(), 0, None) for number, name in enumerate(columns, 1)))
        try:
            return cls(tuple(ColumnName(*each) for each in json.loads(text)))
        except (TypeError, ValueError):
            raise ValueError(f"{COLUMN_IDS} has another form than this version knows: install a later one") from None

    def to_text(self) -> str:
        """The value of the table property COLUMN_IDS."""
        return json.dumps(self.names, separators=(",", ":"))

    @property
    def changes(self) -> int:
        """How many names have been given up, by a rename or a drop."""
        return sum(each.up_to is not None for each in self.names)

    @property
    def version(self) -> int:
        """A number that grows whenever columns are added, renamed or dropped."""
        return len(self.names) + self.changes

    def now(self) -> dict[str, int]:
        """The ids of the columns that the table has now, by their names."""
        return {each.name: each.id for each in self.names if each.up_to is None}

    def in_file(self, position: int | None) -> dict[str, str | None]:
        """The names of today's columns in files that completed at a position.

        None for those that they don't have while they may have another column of that name. `position` is None for
        files that aren't completed yet: they have today's names.
        """
        if position is None or not self.changes:
            return {name: name for name in self.now()}
        then = {
            each.id: each.name
            for each in self.names
            if each.after < position and (each.up_to is None or position <= each.up_to)
        }
        former = {each.name for each in self.names if each.up_to is not None}
        return {name: then.get(id, None if name in former else name) for name, id in self.now().items()}

    def changed(self, columns: Sequence[str], renamed: Mapping[str, str], position: int) -> Self:
        """The same after the table got other columns, when its last completion was at a position.

        `renamed`: earlier names by the new ones.
        """
        own, next_id = self.now(), max((each.id for each in self.names), default=0) + 1
        ids: dict[str, int] = {}
        for name in columns:
            before = own.get(renamed.get(name, name))
            ids[name] = next_id if before is None else before
            next_id += before is None
        kept = [
            each if each.up_to is not None or ids.get(each.name) == each.id else each._replace(up_to=position)
            for each in self.names
        ]
        fresh = [ColumnName(id, name, position, None) for name, id in ids.items() if own.get(name) != id]
        return type(self)((*kept, *fresh))

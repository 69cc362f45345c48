"""Rows that change by foreign keys, without being in the log: InnoDB deletes and updates them below it."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from lake.capture.mysql.log import Change
from lake.capture.mysql.source import Reference


class Cascades:
    """Which tables may have changed with others."""

    def __init__(self, references: Iterable[Reference] = ()) -> None:
        self._of_parent = defaultdict[str, list[Reference]](list)
        for each in references:
            self._of_parent[each.parent].append(each)

    def __contains__(self, table: object) -> bool:
        """Whether rows of other tables change with those of a table."""
        return table in self._of_parent

    def changed_by(self, change: Change) -> set[str]:
        """The tables whose rows may have changed with a row of another one."""
        direct = [each.child for each in self._of_parent.get(change.table.name, ()) if _has_effect(each, change)]
        return set(direct).union(*map(self.below, direct)) if direct else set()

    def below(self, table: str) -> set[str]:
        """The tables whose rows may change with those of a table, through any number of foreign keys."""
        return _reached(table, lambda name: {each.child for each in self._of_parent.get(name, ())})

    def above(self, table: str) -> set[str]:
        """The tables with whose rows those of a table may change, through any number of foreign keys."""
        return _reached(
            table,
            lambda name: {
                parent for parent, keys in self._of_parent.items() if any(each.child == name for each in keys)
            },
        )


def _reached(table: str, step: Callable[[str], set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [table]
    while waiting:
        new = step(waiting.pop()) - found
        found |= new
        waiting += new
    return found


def _has_effect(reference: Reference, change: Change) -> bool:
    if change.before is None:
        return False
    if change.after is None:
        return "DELETE" in reference.rules
    names = [each.name for each in change.table.columns]
    places = [names.index(each) for each in reference.columns if each in names]
    # A referenced column that isn't among the captured ones is generated: nobody knows whether it changed.
    return "UPDATE" in reference.rules and (
        len(places) < len(reference.columns) or any(change.before[each] != change.after[each] for each in places)
    )

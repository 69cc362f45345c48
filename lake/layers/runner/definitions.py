"""Whether layers are still defined as when they were refreshed the last time."""

from collections.abc import Sequence

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Change, Comparer, Defined, changes_between
from lake.layers.runner.records import Record
from lake.tables.lake import LakeTable


class Definitions:
    """Compares the definitions of layers with those of their records, each once. For one refresh.

    May be used by several threads for different layers.
    """

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer
        self._found: dict[str, Sequence[Change]] = {}

    def changes(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        """In what a layer's definition differs from that of a record, if it may have other rows; else nothing."""
        if made.name not in self._found:
            self._found[made.name] = self._compared(made, lake, record)
        return self._found[made.name]

    def _compared(self, made: Compiled, lake: LakeTable, record: Record) -> Sequence[Change]:
        kept = record.kept
        if kept is not None and kept.digest == made.defined.digest:
            return []
        content = None if kept is None else kept.content(lake)
        if kept is not None and content is None:
            return [Change.UNKNOWN]
        before = None if content is None else Defined.of_json(content)
        if before is None:  # another version has kept it, or none: the digest is all that is known
            return [] if record.definition == made.definition else [Change.UNKNOWN]
        return changes_between(before, made.defined, self._comparer)


def definition_of(lake: LakeTable, record: Record) -> Defined | None:
    """The definition that a record's refresh went by; None if it isn't known."""
    content = None if record.kept is None else record.kept.content(lake)
    return None if content is None else Defined.of_json(content)

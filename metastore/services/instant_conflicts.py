"""Whether two writers were in each other's way: optimistic concurrency, decided when the second one completes."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from metastore.store.instants import Touch
from metastore.wire.hive import InvalidOperationException

PROPERTY = "timeline.conflict-strategy"
"""Of a table: which strategy its commits follow that don't name one."""


class Strategy(StrEnum):
    """What two commits must not both have changed since the first one was read."""

    TABLE = "table"
    PARTITION = "partition"
    FILE_GROUP = "file-group"
    COLUMN = "column"

    @classmethod
    def parse(cls, text: str) -> "Strategy":
        """Raises InvalidOperationException."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise InvalidOperationException(
                f"{text!r} is no strategy for conflicts: they are {', '.join(cls)}"
            ) from None

    @classmethod
    def of_table(cls, parameters: Mapping[str, str]) -> "Strategy":
        """What a table's parameters say. Raises InvalidOperationException."""
        try:
            return cls.parse(parameters.get(PROPERTY) or cls.FILE_GROUP)
        except InvalidOperationException as error:
            raise InvalidOperationException(f"{PROPERTY}: {error.message}") from None


def overlap(strategy: Strategy, mine: Sequence[Touch], theirs: Sequence[Touch]) -> list[str]:
    """What both changed, as texts for people; empty if they were not in each other's way.

    A touch of a whole partition overlaps with everything in it. Log files in a slice that a compaction opened don't
    mind that compaction, nor does it mind them.
    """
    if not mine or not theirs:
        return []
    if strategy is Strategy.TABLE:
        return ["the table"]
    by_partition: dict[str, list[Touch]] = {}
    for each in theirs:
        by_partition.setdefault(each.partition, []).append(each)
    shared = sorted({each.partition for each in mine} & by_partition.keys())
    if strategy is Strategy.PARTITION:
        return [_partition(name) for name in shared]
    return sorted(
        {
            text
            for each in mine
            if each.partition in by_partition
            for text in _within(strategy, each, by_partition[each.partition])
        }
    )


def _within(strategy: Strategy, mine: Touch, theirs: Iterable[Touch]) -> Iterable[str]:
    for each in theirs:
        if mine.file_group is None or each.file_group is None:
            yield _partition(mine.partition)
        elif mine.file_group == each.file_group and not _apart(mine, each) and not _apart(each, mine):
            if strategy is Strategy.COLUMN and mine.columns is not None and each.columns is not None:
                if both := sorted(mine.columns & each.columns):
                    yield f"{_group(mine)} columns {', '.join(both)}"
            else:
                yield _group(mine)


def _apart(compaction: Touch, writer: Touch) -> bool:
    """Whether all that was written to a file group is log files of slices that its compaction left open."""
    return (
        compaction.compacted
        and writer.logs_only
        and writer.slice is not None
        and compaction.slice is not None
        and writer.slice >= compaction.slice
    )


def _partition(name: str) -> str:
    return f"partition {name}" if name else "the table"


def _group(touch: Touch) -> str:
    return f"{_partition(touch.partition)} file group {touch.file_group}"

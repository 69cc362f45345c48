"""Conflicts between instants: optimistic concurrency, decided when the later of two writers completes."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from lake.protocol.hive import InvalidOperationException
from metastore.store.timeline.instants import ChangedGroup

PROPERTY = "timeline.conflict-strategy"
"""The table property with the strategy for completions that don't name one."""


class Strategy(StrEnum):
    """The unit of conflicts: two concurrent instants must not both change the same one.

    COLUMN: the same columns of a file group.
    """

    TABLE = "table"
    PARTITION = "partition"
    FILE_GROUP = "file-group"
    COLUMN = "column"

    @classmethod
    def parse(cls, text: str) -> "Strategy":
        """A strategy by its name. Raises InvalidOperationException."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise InvalidOperationException(
                f"{text!r} is no strategy for conflicts: they are {', '.join(cls)}"
            ) from None

    @classmethod
    def of_table(cls, parameters: Mapping[str, str]) -> "Strategy":
        """The strategy in a table's parameters, FILE_GROUP by default. Raises InvalidOperationException."""
        try:
            return cls.parse(parameters.get(PROPERTY) or cls.FILE_GROUP)
        except InvalidOperationException as error:
            raise InvalidOperationException(f"{PROPERTY}: {error.message}") from None


def overlap(
    strategy: Strategy, mine: Sequence[ChangedGroup], theirs: Sequence[ChangedGroup], *, logs_commute: bool = False
) -> list[str]:
    """Describes what two instants both changed, for messages; empty if there is no conflict.

    A change of a whole partition conflicts with every change in it. A compaction doesn't conflict with log files that
    are written to the slice that it opened. `logs_commute`: two instants may both add log files to a file group. Those
    that only did that, or only compacted, then conflict by file groups, whatever larger unit the strategy has.
    """
    if not mine or not theirs:
        return []
    if logs_commute and all(each.logs_only or each.compacted for each in (*mine, *theirs)):
        strategy = strategy if strategy is Strategy.COLUMN else Strategy.FILE_GROUP
    if strategy is Strategy.TABLE:
        return ["the table"]
    by_partition: dict[str, list[ChangedGroup]] = {}
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
            for text in _within(strategy, each, by_partition[each.partition], logs_commute)
        }
    )


def moved_between(mine: Sequence[ChangedGroup], theirs: Sequence[ChangedGroup]) -> list[str]:
    """Describes the file groups that two instants both changed in any partitions; empty if there are none.

    For tables whose key is unique over all partitions: the same key may have come to two of them, and its file group
    has one name in all. Compactions move no row.
    """
    written = {each.file_group for each in mine if not each.compacted}
    others = {each.file_group for each in theirs if not each.compacted}
    if not written or not others:
        return []
    if None in written or None in others:
        return ["the table"]
    return sorted(f"file group {each} of the table" for each in written & others if each is not None)


def relevant_changes(mine: Sequence[ChangedGroup], theirs: Sequence[ChangedGroup]) -> list[ChangedGroup]:
    """The changes of an earlier completion that a later one of a writer is compared with.

    Compactions and clusterings change no row, so they must not make a writer fail. One matters only to who changes the
    very same file group, which has other files since. Who replaces the whole partition replaces these files, too.
    """
    whole = {each.partition for each in mine if each.file_group is None}
    groups = {(each.partition, each.file_group) for each in mine if each.partition not in whole}
    return [each for each in theirs if not each.compacted or (each.partition, each.file_group) in groups]


def strategy_of_service(strategy: Strategy) -> Strategy:
    """The unit of conflicts of a compaction or clustering: rows that others add beside its file groups stay."""
    return Strategy.FILE_GROUP if strategy in (Strategy.TABLE, Strategy.PARTITION) else strategy


def _within(
    strategy: Strategy, mine: ChangedGroup, theirs: Iterable[ChangedGroup], logs_commute: bool
) -> Iterable[str]:
    for each in theirs:
        if mine.file_group is None or each.file_group is None:
            yield _partition(mine.partition)
        elif logs_commute and mine.logs_only and each.logs_only:
            continue
        elif mine.file_group == each.file_group and not _apart(mine, each) and not _apart(each, mine):
            if strategy is Strategy.COLUMN and mine.columns is not None and each.columns is not None:
                if both := sorted(mine.columns & each.columns):
                    yield f"{_group(mine)} columns {', '.join(both)}"
            else:
                yield _group(mine)


def _apart(compaction: ChangedGroup, writer: ChangedGroup) -> bool:
    """Whether a writer only added log files to slices that the compaction doesn't rewrite."""
    return (
        compaction.compacted
        and writer.logs_only
        and writer.slice is not None
        and compaction.slice is not None
        and writer.slice >= compaction.slice
    )


def _partition(name: str) -> str:
    return f"partition {name}" if name else "the table"


def _group(changed: ChangedGroup) -> str:
    return f"{_partition(changed.partition)} file group {changed.file_group}"

"""The time ranges of partitions: their start, the next partition, and whether a watermark has passed them.

A partition's values give its start as a local time in the table's time zone. The partition has all points in time from
its start to the next partition's. Where clocks change:

- Where they go back, an hour of the wall clock comes twice, and its partition has both: the next one begins two hours
  later. Its start is the first of the two instants.
- Where they go forward, a partition that would lie in the skipped hour has no instants, and there is none: the next
  partition after hr=01 is hr=03. Should there be one nevertheless, its start is as much later as was skipped.
- Daily partitions begin at midnight, whether the day has 23, 24 or 25 hours; without a midnight, at its first instant.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lake.protocol.formats.durations import Interval
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.commit_flag.timestamp_extractor import TimestampExtractor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_SKIP = timedelta(days=1)  # no clock was put forward by more: Samoa left out a day


class PartitionClock:
    """The times of a table's partitions. Instants are milliseconds since 1970-01-01 UTC.

    If the table's properties don't say how to read a time from values, no partition has one.
    """

    def __init__(self, properties: ReadinessProperties) -> None:
        self._extractor = properties.extractor
        self._interval = properties.interval
        self._delay = properties.delay
        self._zone = properties.time_zone

    @property
    def positions(self) -> frozenset[int]:
        """The positions of the keys whose values say the time."""
        parts = self._extractor.parts if self._extractor else ()
        return frozenset(part for part in parts if isinstance(part, int))

    def start(self, values: Sequence[str]) -> int | None:
        """The instant at which a partition begins, or None if its values say no time, as the default partition's.

        The rules are Flink's (PartitionTimeCommitPredicate), and Java's for a time that comes twice or never.
        """
        local = self._local_start(values)
        return None if local is None else self._instant(local)

    def deadline(self, values: Sequence[str]) -> int | None:
        """The instant that the watermark must pass for a partition to be ready, or None if its values say no time.

        It is Flink's, start + delay, unless clocks go back in that time: of an hour that comes twice, Flink would
        commit the partition after the first, and that of a day of 25 hours an hour before it ends. With a delay of a
        partition's length or more, it is never before the partition's last instant.
        """
        local = self._local_start(values)
        if local is None:
            return None
        by_flink = self._instant(local) + self._delay
        try:
            last = local + timedelta(milliseconds=self._delay) - _MILLISECOND
        except OverflowError:
            return by_flink
        # Of a time that comes twice, the second. The end itself isn't the partition's any more.
        return max(by_flink, self._instant(last.replace(fold=1)) + 1)

    def is_due(self, values: Sequence[str], watermark: int) -> bool:
        """Whether a partition is complete at a watermark: whether that is after its deadline."""
        deadline = self.deadline(values)
        return deadline is not None and watermark > deadline

    def next(self, values: Sequence[str], steps: int = 1) -> list[str]:
        """The values of the partition that comes so many partitions later.

        Keys that aren't part of the time keep their values. Raises ValueError if the values say no time, or there is no
        such partition.
        """
        extractor, interval, start = self._required(values)
        position = 0
        try:
            for _ in range(steps):
                position += 1
                while self._is_skipped(interval.add(start, position), interval.add(start, position + 1)):
                    position += 1
            return extractor.write(interval.add(start, position), values)
        except OverflowError:
            raise ValueError(f"no partition comes so long after {', '.join(values)}") from None

    def values_at(self, instant: int, like: Sequence[str]) -> list[str]:
        """The values of the partition that has this instant.

        Its keys that aren't part of the time are those of `like`, a partition from whose start intervals are counted.
        Raises ValueError if that says no time, or there is no such partition.
        """
        extractor, interval, start = self._required(like)
        try:
            local = (_EPOCH + instant * _MILLISECOND).astimezone(self._zone).replace(tzinfo=None, fold=0)
            return extractor.write(interval.add(start, interval.steps_between(start, local)), like)
        except OverflowError:
            raise ValueError(f"no partition like {', '.join(like)} is at {instant}") from None

    def _local_start(self, values: Sequence[str]) -> datetime | None:
        reading = self._extractor and self._extractor.read(values)
        return reading.moment if reading else None

    def _required(self, values: Sequence[str]) -> tuple[TimestampExtractor, Interval, datetime]:
        """What it takes to count partitions from this one."""
        start = self._local_start(values)
        if self._extractor is None or self._interval is None or start is None:
            raise ValueError(f"{', '.join(values)} says no time")
        return self._extractor, self._interval, start

    def _instant(self, local: datetime) -> int:
        """The instant of a local time, by its fold where it comes twice; where it is skipped, as much later."""
        return (local.replace(tzinfo=self._zone) - _EPOCH) // _MILLISECOND

    def _is_skipped(self, start: datetime, end: datetime) -> bool:
        """Whether all local times of a partition are skipped by the clock."""
        return self._in_gap(start) and self._in_gap(end - _MILLISECOND) and end - start <= _LONGEST_SKIP

    def _in_gap(self, local: datetime) -> bool:
        before, after = (local.replace(tzinfo=self._zone, fold=fold).utcoffset() for fold in (0, 1))
        return before is not None and after is not None and before < after

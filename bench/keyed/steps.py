"""What is measured of a table: one step after the other, each in turn on both sides."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.keyed.rows import Shape
from bench.keyed.session import result_bytes
from bench.keyed.sides import MERGE_ON_READ, Hudi, Ours, Side, consume

Found = dict[str, Any]
"""A measurement: its name, the seconds of ours and of theirs in turn, and what else is worth telling."""

SMALL = 1_000
"""Rows of a small commit."""
LAST_DAYS = 2
KEYS = 100
TEN = 10
FEWEST_COMMITS = TEN + 1


@dataclass(frozen=True)
class Extent:
    """How much is done: `rounds` of what can be repeated, small `commits`, which stop early after some `seconds`."""

    rounds: int
    commits: int
    seconds: float


class Differs(Exception):
    """Both sides should have the same rows, and haven't."""


class Tables:
    """A table of ours and one of Hudi's, of one kind, with the same rows."""

    def __init__(self, spark: SparkSession, home: Path, kind: str, shape: Shape, extent: Extent) -> None:
        self._spark = spark
        self._kind = kind
        self._shape = shape
        self._extent = extent
        name = f"{kind.replace('-', '_')}_{shape.rows}"
        self._ours = Ours(spark, name, kind, shape)
        self._sides: list[Side] = [self._ours, Hudi(spark, home / name, kind, shape)]
        self._version = 1

    def measured(self) -> Iterator[Found]:
        """Each measurement as it is made. Raises Differs."""
        everything = self._shape.everything(self._spark)
        yield self._turns("load", lambda side: side.load(everything), 1)
        yield self._upserts("upsert 0.1 % in the last two days", self._shape.rows // 1000, LAST_DAYS)
        yield self._upserts("upsert 1 % anywhere", self._shape.rows // 100, None, 1)
        yield self._upserts(f"commit {SMALL:,} rows", SMALL, LAST_DAYS, self._extent.commits)
        self._check()
        yield self._turns("read the snapshot", lambda side: consume(side.snapshot()))
        yield self._turns("changes of one commit", lambda side: consume(side.changes(1)))
        yield self._turns(f"changes of {TEN} commits", lambda side: consume(side.changes(TEN)))
        ids = self._shape.ids(KEYS)
        yield self._turns(f"look up {KEYS} keys", lambda side: _require(side.lookup(ids) == len(ids), "lookup"))
        if self._kind == MERGE_ON_READ:
            yield self._turns("compact", lambda side: side.compact(), 1)
            self._check()

    def growth(self) -> Found:
        """Small upserts in the last day: of a table of a tenth of the days, and of this one."""
        shape = Shape(self._shape.rows // TEN, max(1, self._shape.days // TEN), self._shape.buckets)
        small = Ours(self._spark, f"{self._kind.replace('-', '_')}_tenth_{self._shape.rows}", self._kind, shape)
        small.load(shape.everything(self._spark))
        seconds: list[list[float]] = [[], []]
        for number in range(2 * self._extent.rounds + 2):
            self._version += 1
            for table, of, found in ((small, shape, seconds[0]), (self._ours, self._shape, seconds[1])):
                rows = of.some(self._spark, SMALL, self._version, last_days=1)
                found.append(_seconds(lambda table=table, rows=rows: table.upsert(rows)))  # type: ignore[misc]
            if number < 2:  # both have been at rest
                seconds = [[], []]
        return {"days": [shape.days, self._shape.days], "seconds": seconds}

    def _upserts(self, name: str, count: int, last_days: int | None, times: int | None = None) -> Found:
        def upsert(side: Side) -> None:
            side.upsert(self._shape.some(self._spark, max(1, count), self._version, last_days=last_days))

        return self._turns(name, upsert, times, new_versions=True)

    def _turns(
        self, name: str, action: Callable[[Side], object], times: int | None = None, *, new_versions: bool = False
    ) -> Found:
        """So many times, or until the time is over; first ours, then Hudi's, and so on."""
        seconds: list[list[float]] = [[], []]
        sent = 0
        began = time.monotonic()
        for number in range(times or self._extent.rounds):
            over = time.monotonic() - began > self._extent.seconds
            if over and number >= (FEWEST_COMMITS if times is not None else 1):
                break
            self._version += new_versions
            for side, found in zip(self._sides, seconds, strict=True):
                before = result_bytes(self._spark) if side is self._ours else 0
                found.append(_seconds(lambda side=side: action(side)))  # type: ignore[misc]
                if side is self._ours:
                    sent = max(sent, result_bytes(self._spark) - before)
        return {"name": name, "seconds": seconds, "driver_bytes": sent}

    def _check(self) -> None:
        """Raises Differs unless both sides have the same rows, and tell of the same changes."""
        sums = [
            side.snapshot()
            .selectExpr("count(*)", "sum(version)", "sum(xxhash64(id, version, note, dt) % 1000)")
            .first()
            for side in self._sides
        ]
        _require(sums[0] == sums[1], f"rows of {self._kind}: {sums}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Differs(what)


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began

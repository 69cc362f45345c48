"""The tables that are measured: how wide they are and which partitions they have."""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from lake.protocol.hive import FieldSchema, Partition, Table
from tests.support import builders

DATABASE = "bench"
HOURS = 24
"""Partitions of a day: what a filter by day finds."""
_FIRST_DAY = date(2024, 1, 1)


@dataclass(frozen=True)
class Shape:
    """A table with so many columns, and so many partitions by day and hour."""

    columns: int
    partitions: int

    def values(self, number: int) -> list[str]:
        """Of the partition with this number."""
        day, hour = divmod(number, HOURS)
        return [str(_FIRST_DAY + timedelta(day)), f"{hour:02d}"]

    def name(self, number: int) -> str:
        return "dt={}/hr={}".format(*self.values(number))

    def names(self) -> list[str]:
        return [self.name(number) for number in range(self.partitions)]

    def table(self, name: str, **fields: object) -> Table:
        return builders.table(DATABASE, name, keys=("dt", "hr"), sd=builders.storage(cols=self._columns), **fields)

    def partition(self, table: str, number: int) -> Partition:
        return builders.partition(
            DATABASE,
            table,
            *self.values(number),
            sd=builders.storage(cols=self._columns),
            parameters={"source": "bench"},
        )

    @cached_property
    def _columns(self) -> list[FieldSchema]:
        kinds = ("bigint", "string", "double", "decimal(18,2)", "timestamp")
        return builders.columns(
            *(f"column_{number:03d}:{kinds[number % len(kinds)]}#number {number}" for number in range(self.columns))
        )

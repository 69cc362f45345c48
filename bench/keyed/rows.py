"""The rows that both sides get: made by Spark, the same ones each time."""

from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "id": "bigint",
    "version": "bigint",
    "name": "string",
    "city": "string",
    "street": "string",
    "product": "string",
    "note": "string",
    "amount": "double",
    "price": "double",
    "discount": "double",
    "customer": "bigint",
    "seller": "bigint",
    "warehouse": "bigint",
    "device": "bigint",
    "quantity": "int",
    "status": "int",
    "is_paid": "boolean",
    "ordered_on": "date",
    "changed_at": "timestamp",
    "dt": "string",
}
"""Twenty; the key is `id` within the day `dt`, `version` orders the versions of a row."""

FIRST_DAY = date(2026, 1, 1)


@dataclass(frozen=True)
class Shape:
    """A table of so many rows, in whole days."""

    rows: int
    days: int
    buckets: int = 4

    @property
    def per_day(self) -> int:
        return self.rows // self.days

    def everything(self, spark: SparkSession) -> DataFrame:
        """All rows, in their first version."""
        return self._of(spark.range(self.per_day * self.days), version=1)

    def some(self, spark: SparkSession, count: int, version: int, *, last_days: int | None = None) -> DataFrame:
        """Another version of so many rows, which lie evenly in the last days, or in all of them."""
        end = self.per_day * self.days
        start = 0 if last_days is None else end - self.per_day * min(last_days, self.days)
        step = max(1, (end - start) // count)
        # Another version has other rows: those beside the ones before.
        ids = f"{start} + (id * {step} + {version}) % {end - start} AS id"
        return self._of(spark.range(min(count, end - start)).selectExpr(ids), version=version)

    def ids(self, count: int) -> list[int]:
        """Some that are there, from all over the table."""
        step = max(1, self.per_day * self.days // count)
        return [step * number + step // 2 for number in range(count)]

    def day(self, id: int) -> str:
        """Where the row of an id is."""
        return (FIRST_DAY + timedelta(id // self.per_day)).isoformat()

    def last(self, days: int) -> str:
        """The first of the last days."""
        return (FIRST_DAY + timedelta(max(0, self.days - days))).isoformat()

    def _of(self, ids: DataFrame, version: int) -> DataFrame:
        def number(salt: int, below: int) -> str:
            return f"pmod(xxhash64(id, {version}L, {salt}), {below})"

        made = {
            "version": f"{version}L",
            "name": f"concat('customer ', {number(1, 1_000_000)})",
            "city": f"concat('city ', {number(2, 500)})",
            "street": f"concat('street ', {number(3, 20_000)}, ' ', {number(4, 200)})",
            "product": f"concat('product ', {number(5, 5_000)})",
            "note": f"hex(xxhash64(id, {version}L, 6))",
            "amount": f"{number(7, 1_000_000)} / 100",
            "price": f"{number(8, 100_000)} / 100",
            "discount": f"{number(9, 50)} / 100",
            "customer": number(1, 1_000_000),
            "seller": number(10, 10_000),
            "warehouse": number(11, 50),
            "device": number(12, 1_000_000_000),
            "quantity": number(13, 100),
            "status": number(14, 5),
            "is_paid": f"{number(15, 2)} = 0",
            "ordered_on": f"date_add(date'{FIRST_DAY}', int(id / {self.per_day}))",
            "changed_at": f"timestamp_micros(1767225600000000 + id * 1000 + {version})",
            "dt": f"string(date_add(date'{FIRST_DAY}', int(id / {self.per_day})))",
        }
        expressions = {"id": "id", **made}
        return ids.selectExpr(*(f"CAST({expressions[name]} AS {kind}) AS {name}" for name, kind in COLUMNS.items()))

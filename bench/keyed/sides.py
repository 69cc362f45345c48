"""The two that are compared: a keyed table of ours, and a table of Hudi's with the same rows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from bench.keyed.rows import COLUMNS, Shape
from lake.spark import plan_compaction, read, run_plan, write
from lake.spark.session_client import lake_table
from lake.tables.lake import LakeTable

DATABASE = "bench"
COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"


class Side(Protocol):
    """A table of a kind, made for a shape."""

    def load(self, rows: DataFrame) -> None:
        """Writes the first rows, by the quickest way there is."""

    def upsert(self, rows: DataFrame) -> None: ...

    def snapshot(self) -> DataFrame:
        """The latest rows."""

    def changes(self, commits: int) -> DataFrame:
        """What the last commits changed."""

    def lookup(self, ids: Sequence[int]) -> int:
        """How many of these keys have a row; the rows are fetched."""

    def compact(self) -> None: ...


class Ours:
    """A keyed table on our server."""

    def __init__(self, spark: SparkSession, name: str, kind: str, shape: Shape) -> None:
        self._spark = spark
        self._name = f"{DATABASE}.{name}"
        self._shape = shape
        columns = ", ".join(f"{column} {type}" for column, type in COLUMNS.items())
        properties = {
            "primary-key": "id,dt",
            "bucket": str(shape.buckets),
            "sequence.field": "version",
            "table-type": kind,
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.sql(f"CREATE TABLE {self._name} ({columns}) USING parquet PARTITIONED BY (dt) TBLPROPERTIES ({listed})")

    @property
    def table(self) -> LakeTable:
        return lake_table(self._spark, self._name, None)

    def load(self, rows: DataFrame) -> None:
        write(rows, self._name, operation="upsert")

    def upsert(self, rows: DataFrame) -> None:
        write(rows, self._name, operation="upsert")

    def snapshot(self) -> DataFrame:
        return read(self._spark, self._name)

    def changes(self, commits: int) -> DataFrame:
        last = self.table.position().position
        return read(self._spark, self._name, incremental=(last - commits, last), changes=True)

    def lookup(self, ids: Sequence[int]) -> int:
        found = self.table.lookup([{"id": each, "dt": self._shape.day(each)} for each in ids])
        return int(found.num_rows)

    def compact(self) -> None:
        planned = plan_compaction(self._spark, self._name)
        if planned.instant is not None:
            run_plan(self._spark, self._name, planned.instant.timestamp)


class Hudi:
    """A table of Hudi's below a directory."""

    def __init__(self, spark: SparkSession, location: Path, kind: str, shape: Shape) -> None:
        self._spark = spark
        self._location = location
        self._shape = shape
        self._options = {
            "hoodie.table.name": location.name,
            "hoodie.datasource.write.table.type": kind.replace("-", "_").upper(),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "version",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.bucket.index.num.buckets": str(shape.buckets),
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }

    def load(self, rows: DataFrame) -> None:
        self._write(rows, "bulk_insert")

    def upsert(self, rows: DataFrame) -> None:
        self._write(rows, "upsert")

    def snapshot(self) -> DataFrame:
        return self._read().select(*COLUMNS)

    def changes(self, commits: int) -> DataFrame:
        times = self._completions()
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": times[-commits - 1],
            "hoodie.datasource.read.end.instanttime": times[-1],
        }
        return self._read(**options).select(*COLUMNS)

    def lookup(self, ids: Sequence[int]) -> int:
        listed = ", ".join(map(str, ids))
        days = ", ".join(sorted({f"'{self._shape.day(each)}'" for each in ids}))
        rows = self._read(**{"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"})
        return len(rows.where(f"dt IN ({days}) AND id IN ({listed})").select(*COLUMNS).collect())

    def compact(self) -> None:
        self._spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{self._location}')").collect()

    def _write(self, rows: DataFrame, operation: str) -> None:
        options = {**self._options, "hoodie.datasource.write.operation": operation}
        rows.write.format("hudi").options(**options).mode("append").save(str(self._location))

    def _read(self, **options: str) -> DataFrame:
        return self._spark.read.format("hudi").options(**options).load(str(self._location))

    def _completions(self) -> list[str]:
        """When its commits were completed, in their order."""
        names = (each.name for each in (self._location / ".hoodie" / "timeline").iterdir())
        found = (re.fullmatch(r"\d+_(\d+)\.(commit|deltacommit)", name) for name in names)
        return sorted(each[1] for each in found if each is not None)


def consume(rows: DataFrame) -> None:
    """Reads all rows and all columns, and keeps nothing."""
    rows.write.format("noop").mode("overwrite").save()

"""What is compared: a keyed table of ours, one of Hudi's and one of Paimon's, with the same rows, by the same SQL."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import DataFrame, SparkSession

from bench.keyed.rows import COLUMNS, Shape
from lake.spark.session_client import lake_table

DATABASE = "bench"
COPY_ON_WRITE, MERGE_ON_READ = "copy-on-write", "merge-on-read"

_MERGE = (
    "MERGE INTO {table} t USING changed s ON t.id = s.id AND t.dt = s.dt"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
_SUMS = "SELECT count(*), sum(version), sum(xxhash64(id, version, note, dt) % 1000) FROM {table}"


class Side:
    """A table of a kind, made for a shape. Each method that is measured gives the seconds that it took.

    `mark`: what says how far the table has come, after a commit, as its queries of changes take it.
    """

    def __init__(self, spark: SparkSession, kind: str, shape: Shape) -> None:
        self.spark = spark
        self.kind = kind
        self.shape = shape
        self.table = f"{DATABASE}.{kind.replace('-', '_')}_{shape.rows}"
        self._marks: list[Any] = []
        columns = ", ".join(f"{column} {type}" for column, type in COLUMNS.items())
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        spark.sql(
            f"CREATE TABLE {self.table} ({columns}) {self.using()} PARTITIONED BY (dt)"
            f" TBLPROPERTIES ({', '.join(f'{key!r} = {value!r}' for key, value in self.properties().items())})"
        )

    def using(self) -> str:
        return ""

    def properties(self) -> dict[str, str]:
        raise NotImplementedError

    def mark(self) -> Any:
        raise NotImplementedError

    def changed(self, since: Any, until: Any) -> DataFrame:
        """What was changed after one mark up to another."""
        raise NotImplementedError

    def compacting(self) -> None:
        raise NotImplementedError

    # -- what is measured -------------------------------------------------------------------------------------

    def load(self) -> float:
        self.shape.everything(self.spark).createOrReplaceTempView("loaded")
        return self._commit(f"INSERT INTO {self.table} SELECT * FROM loaded")

    def merge(self, count: int, version: int, last_days: int | None) -> float:
        """Another version of so many rows, which lie in the last days, or in all of them."""
        rows = self.shape.some(self.spark, count, version, last_days=last_days)
        rows.createOrReplaceTempView("changed")
        return self._commit(_MERGE.format(table=self.table))

    def update(self, every: int, version: int, last_days: int | None) -> float:
        """Of each `every` rows one, in the last days, or in all of them."""
        days = "" if last_days is None else f" AND dt >= '{self.shape.last(last_days)}'"
        condition = f"id % {every} = {version % every}{days}"
        return self._commit(f"UPDATE {self.table} SET amount = amount + 1, version = {version} WHERE {condition}")

    def snapshot(self) -> float:
        return seconds(lambda: consume(self._all()))

    def changes(self, commits: int) -> float:
        since, until = self._marks[-commits - 1], self._marks[-1]
        return seconds(lambda: consume(self.changed(since, until)))

    def lookup(self, count: int) -> float:
        """So many keys, from all over the table. Raises LookupError if one has no row."""
        ids = self.shape.ids(count)
        days = ", ".join(sorted({f"'{self.shape.day(each)}'" for each in ids}))
        query = f"{self._rows()} WHERE dt IN ({days}) AND id IN ({', '.join(map(str, ids))})"

        def look() -> None:
            found = self.spark.sql(query).collect()
            if len(found) != count:
                raise LookupError(f"{len(found)} rows of {count} keys")

        return seconds(look)

    def planned(self) -> float:
        """Until Spark knows how it would run a query, of which it runs nothing."""

        def plan() -> None:
            query: Any = self.spark.sql(f"{self._rows()} LIMIT 1")
            query._jdf.queryExecution().executedPlan()

        return seconds(plan)

    def compact(self) -> float:
        return seconds(self.compacting)

    def sums(self) -> list[Any]:
        """What has to be the same on all sides."""
        return list(self.spark.sql(_SUMS.format(table=self.table)).first() or ())

    def _commit(self, statement: str) -> float:
        took = seconds(lambda: self.spark.sql(statement).collect())
        self._marks.append(self.mark())
        return took

    def _rows(self) -> str:
        return f"SELECT {', '.join(COLUMNS)} FROM {self.table}"

    def _all(self) -> DataFrame:
        return self.spark.sql(self._rows())


class Ours(Side):
    """A keyed table on our server."""

    def using(self) -> str:
        return "USING parquet"

    def properties(self) -> dict[str, str]:
        return {
            "primary-key": "id,dt",
            "bucket": str(self.shape.buckets),
            "sequence.field": "version",
            "table-type": self.kind,
        }

    def mark(self) -> int:
        return lake_table(self.spark, self.table, None).position().position

    def changed(self, since: Any, until: Any) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM lake_changes('{self.table}', {since}, {until})")

    def compacting(self) -> None:
        self.spark.sql(f"CALL lake.system.compact('{self.table}')").collect()

    def files(self) -> float:
        """A read of the files of the latest snapshot, which has no log files, by Spark alone."""
        table = lake_table(self.spark, self.table, None)
        snapshot = table.snapshot()
        paths = [f"{snapshot.location}/{each.path}" for each in snapshot]
        return seconds(lambda: consume(self.spark.read.parquet(*paths)))


class Hudi(Side):
    """A table of Hudi's, in its catalog."""

    def using(self) -> str:
        return "USING hudi"

    def properties(self) -> dict[str, str]:
        return {
            "type": "cow" if self.kind == COPY_ON_WRITE else "mor",
            "primaryKey": "id",
            "preCombineField": "version",
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.bucket.index.num.buckets": str(self.shape.buckets),
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }

    def load(self) -> float:
        self.spark.sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
        took = super().load()
        self.spark.sql("RESET hoodie.spark.sql.insert.into.operation")
        return took

    def mark(self) -> str:
        described = self.spark.sql(f"DESCRIBE EXTENDED {self.table}").where("col_name = 'Location'").collect()
        timeline = Path(urlparse(described[0]["data_type"]).path, ".hoodie", "timeline")
        # Instants are <requested>_<completed>.<action>; the call that shows them shortens their times.
        return max(each.stem.partition("_")[2] for each in timeline.glob("*_*.*commit"))

    def changed(self, since: Any, until: Any) -> DataFrame:
        return self.spark.sql(
            f"SELECT {', '.join(COLUMNS)} FROM hudi_table_changes('{self.table}', 'latest_state', '{since}', '{until}')"
        )

    def compacting(self) -> None:
        self.spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', table => '{self.table}')").collect()


class Paimon(Side):
    """A table of Paimon's. Of copy-on-write, each commit compacts; of merge-on-read, none does."""

    def properties(self) -> dict[str, str]:
        compacts = {"full-compaction.delta-commits": "1"} if self.kind == COPY_ON_WRITE else {"write-only": "true"}
        return {
            "primary-key": "id,dt",
            "bucket": str(self.shape.buckets),
            "sequence.field": "version",
            "snapshot.num-retained.min": "1000",
            "snapshot.num-retained.max": "1000",
            **compacts,
        }

    def mark(self) -> int:
        return int(self.spark.sql(f"SELECT max(snapshot_id) FROM {DATABASE}.`{self._name}$snapshots`").first()[0])  # type: ignore[index]

    def changed(self, since: Any, until: Any) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM paimon_incremental_query('{self.table}', '{since}', '{until}')")

    def compacting(self) -> None:
        self.spark.sql(f"CALL sys.compact(table => '{self.table}')").collect()

    @property
    def _name(self) -> str:
        return self.table.partition(".")[2]


SIDES: dict[str, type[Side]] = {"ours": Ours, "hudi": Hudi, "paimon": Paimon}


def consume(rows: DataFrame) -> None:
    """Reads all rows and all columns, and keeps nothing."""
    rows.write.format("noop").mode("overwrite").save()


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began

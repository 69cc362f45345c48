"""What tests do with a lake table: by Spark in its process, and by looking at the directories."""

from typing import Any

import pyarrow.parquet as pq

from lake.protocol.lake import ListPartitionsRequest
from lake.tables.lake import LakeClient, LakeTable
from tests.spark.session import ROOT, SparkSession
from tests.support.target import local_path

_BEFORE = """
import sys
sys.path.insert(0, {root!r})
from datetime import UTC, datetime
from lake.spark import read, write
from lake.client.lake_types import Moment
from lake.protocol.lake import InstantConflict

def rows_of(ids, dt="2026-01-01", **more):
    columns = ["id bigint", "name string", "dt string", *(f"{{name}} {{kind}}" for name, (kind, _) in more.items())]
    values = [(id, f"n{{id}}", dt, *(value for _, value in more.values())) for id in ids]
    return spark.createDataFrame(values, ", ".join(columns))
"""


class Lake:
    """A database, and the session that works on it."""

    def __init__(self, spark: SparkSession, client: LakeClient, database: str) -> None:
        self.spark = spark
        self.client = client
        self.database = database

    def table(self, name: str, columns: str, keys: str = "", **properties: str) -> LakeTable:
        """A Parquet table of Spark's; `properties` have underscores for dots and dashes for underscores."""
        partitioned = f"PARTITIONED BY ({keys})" if keys else ""
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        with_properties = f"TBLPROPERTIES ({listed})" if listed else ""
        self.spark.sql(f"CREATE TABLE {self.database}.{name} ({columns}) USING parquet {partitioned} {with_properties}")
        return self.client.table(f"{self.database}.{name}")

    def run(self, code: str) -> Any:
        """What `code` leaves in `result`; it finds `read`, `write` and `rows_of`, which makes rows of some ids."""
        return self.spark.python(_BEFORE.format(root=str(ROOT)) + code)

    def write(self, table: LakeTable, rows: str, **options: Any) -> str:
        """Writes rows, an expression, and returns the instant's timestamp."""
        written = f"write({rows}, {table.name!r}, **{options!r})"
        return self.run(f"result = {written}.instant.timestamp")

    def listed(self, table: LakeTable) -> dict[str, list[int]]:
        """The ids of the rows in the directories of Hive's view, by partition, sorted."""
        described = table.describe()
        assert described.sd is not None
        if not described.partitionKeys:
            return {"": _ids(described.sd.location or "")}
        return {name: _ids(place) for name, place in self.locations(table).items()}

    def locations(self, table: LakeTable) -> dict[str, str]:
        """Where the partitions of Hive's view lie."""
        request = ListPartitionsRequest(table.reference)
        found = self.client.call(lambda client: client.lake_list_partitions(request))
        return {each.name: each.location for each in found.partitions}

    def ids(self, table: LakeTable, columns: str = "id", **options: Any) -> list[Any]:
        """The rows that `read` finds, by their ids in order."""
        code = f"[list(row) if len(row) > 1 else row[0] for row in read(spark, {table.name!r}, **{options!r})"
        return self.run(f"result = {code}.selectExpr({columns!r}.split(', ')).orderBy('id').collect()]")


def _ids(location: str) -> list[int]:
    directory = local_path(location)
    found = [each for each in directory.iterdir() if each.is_file() and not each.name.startswith((".", "_"))]
    tables = [pq.read_table(file, columns=["id"], partitioning=None) for file in found]
    return sorted(id for each in tables for id in each["id"].to_pylist())

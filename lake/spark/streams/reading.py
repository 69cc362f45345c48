"""Reads lake tables as streams: the rows that are there, then what changes. Needs Spark 4.

orders = read_stream(spark, "shop.orders", changes=True)
write_stream(orders, "shop.mirror", checkpoint, operation="merge")

A query's offset is a position of the table. Each micro-batch is what came between two positions, so that a batch that
is repeated has the same rows. The driver learns the names of files; the executors read them in Arrow.
"""

import inspect
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lake.client.batches import reference
from lake.client.lake_types import AsOf, Schema
from lake.spark.keyed.reading import MARKS
from lake.spark.lake_reading import check_readable
from lake.spark.session_client import OtherTable, lake_table, metastore_uri
from lake.spark.table_schema import check_parquet, columns_of, is_hudi
from lake.tables.buckets import Bucket, Layout
from lake.tables.file_changes import net_changes
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.files import fitted, read_rows
from lake.tables.keyed.schema import arrow_schema
from lake.tables.keyed.wide_types import pieces
from lake.tables.keyed_tables import Commits, NotKeyed, TouchedBucket, TouchedBuckets, changes_of, with_partition
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.session_leases import SessionLeases

FORMAT = "metastore_changes"
"""The name of the data source in a Spark session."""


def read_stream(
    spark: SparkSession,
    table: str,
    *,
    since: AsOf | None = None,
    changes: bool | Literal["all"] = False,
    include_uncommitted: bool = False,
    filter: str | None = None,
    uri: str | None = None,
) -> DataFrame:
    """A streaming DataFrame of what comes into the table `database.table`.

    It begins with all rows, as they are when the query starts; with `since`, with what came after that. Of a table
    without primary key, these are the rows that are added. Of a keyed table they are inserted and updated rows;
    `changes` gives all net changes of a micro-batch instead, or with `"all"` those of each commit, with `_change_type`,
    `_commit_version` and `_commit_timestamp`, as `read` does. Of the rows that the query begins with, all changes are
    inserts, and the version is the position that is read.

    The columns are those that the table has now: start the query again after they have changed. `filter`,
    `include_uncommitted` and `uri` are as of `read`. Executors read files through fsspec, with its settings.

    A query ends with SnapshotGone if what comes next has been cleaned. It ends with TableReplaced or OtherTable if its
    table is dropped and another one has the name: start a query with a new checkpoint then. Raises NotKeyed for changes
    of a table without primary key, ValueError for a table of Hudi's and on Spark 3.5, NoSuchObjectException,
    NotParquet.
    """
    lake = lake_table(spark, table, uri)
    schema = lake.schema()
    if is_hudi(schema):
        raise ValueError(f"{lake.name} is a table of Hudi's: Hudi reads its streams, spark.readStream.format('hudi')")
    check_parquet(schema.properties, schema.input_format)
    if changes and schema.keyed_table() is None:
        raise NotKeyed(f"{lake.name} has no primary-key among its properties: nobody can tell which rows changed")
    columns = columns_of(spark, schema)
    options = StreamOptions(
        uri=uri or metastore_uri(spark),
        table=lake.full_name,
        table_id=lake.id,
        since=0 if since is None else lake.position_of(since),
        changes=changes,
        include_uncommitted=include_uncommitted,
        filter=filter,
    )
    whole = StructType([*columns.data, *columns.keys, *(MARKS if changes else ())])
    spark.dataSource.register(LakeChanges)
    return spark.readStream.format(FORMAT).schema(whole).option("stream", json.dumps(asdict(options))).load()


@dataclass(frozen=True)
class StreamOptions:
    """What a query reads. `table_id`: of the table, None from an older server. `since` is a position; 0 stands for all
    rows."""

    uri: str
    table: str
    table_id: int | None
    since: int
    changes: bool | Literal["all"]
    include_uncommitted: bool
    filter: str | None


class LakeChanges(DataSource):
    """The data source of `read_stream`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> "_Reader":
        return _Reader(StreamOptions(**json.loads(self.options["stream"])), schema)


class _Task(InputPartition):
    """What a task of Spark's reads: a bucket's changes, or one file."""

    def __init__(self, read: Any) -> None:
        self.read = read


class _Reader(DataSourceStreamReader):
    """Plans micro-batches in a process on the driver, and reads their parts in those of the executors."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_schema": self._schema}  # without the connection

    @cached_property
    def _lake(self) -> LakeTable:
        return LakeClient(self._options.uri).table(reference(self._options.table).replace(id=self._options.table_id))

    @cached_property
    def _leases(self) -> SessionLeases:
        """Keeps what the next micro-batch reads while the query runs: its process ends with it."""
        return SessionLeases(self._lake.client.connect, holder="a stream of Spark's", kept_seconds=math.inf)

    def initialOffset(self) -> dict[str, int]:
        return self._offset(self._options.since)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        # Before Spark 4.2 it is called without arguments.
        return self._offset(self._lake.position().position)

    def _offset(self, position: int) -> dict[str, int]:
        """A position and the table whose it is, as Spark keeps it in the checkpoint."""
        table = self._options.table_id
        return {"position": position} if table is None else {"position": position, "table": table}

    def _check_is_of(self, offset: dict[str, int]) -> None:
        """Raises OtherTable for an offset in the checkpoint that is a position of another table."""
        table, known = self._options.table_id, offset.get("table")
        if table is None or known == table:
            return
        if known is None and self._lake.is_own(offset["position"]):  # from a release that didn't keep the id
            return
        raise OtherTable(
            f"the query's checkpoint has read another table (id {known or 'unknown'}) than {self._options.table} is now"
            f" (id {table}): that one was dropped or renamed. Start the query with a new checkpoint"
        )

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._check_is_of(start)
        self._check_is_of(end)
        after, up_to = start["position"], end["position"]
        if up_to <= after:
            return []
        self._leases.keep(self._lake, after or up_to, changes=bool(after))
        if self._lake.schema().keyed_table() is not None:
            return self._buckets(after, up_to)
        return self._files(after, up_to)

    def commit(self, end: dict[str, int]) -> None:
        self._leases.advance(self._lake, end["position"])

    def stop(self) -> None:
        self._leases.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Task)
        wanted = _arrow_schema(self._schema)
        rows = partition.read()
        lower = [name.lower() for name in wanted.names]
        # By position: the session may tell names apart by their case.
        schema = pa.schema([each.with_name(name) for name, each in zip(lower, wanted, strict=True)])
        for each in pieces(rows):
            yield from pa.table(fitted(each, schema).columns, schema=wanted).to_batches()

    def _buckets(self, after: int, up_to: int) -> list[InputPartition]:
        options = self._options
        scope: Any = {"filter": options.filter, "include_uncommitted": options.include_uncommitted}
        if not after:
            ranges = [TouchedBuckets.of_snapshot(self._lake, up_to, **scope)]
        else:
            each = options.changes == "all"
            ranges = TouchedBuckets.in_ranges(self._lake, after, up_to, of_each_commit=each, **scope)
        changes = bool(options.changes)
        return [
            _Task(
                _BucketChanges(
                    found.schema, found.layout, found.commits.of_bucket(bucket), bucket, files, changes=changes
                )
            )
            for found in ranges
            for bucket, files in found.buckets.items()
        ]

    def _files(self, after: int, up_to: int) -> list[InputPartition]:
        lake, options = self._lake, self._options
        schema = lake.schema()
        scope: Any = {"filter": options.filter, "include_uncommitted": options.include_uncommitted}
        if after:
            added = net_changes(lake, after, up_to, **scope).added
        else:
            added = list(lake.snapshot(up_to, **scope))
        location = lake.location()
        columns = arrow_schema(
            [(each.name, each.type) for each in schema.columns], schema.properties, [key.name for key in schema.keys]
        )
        check_readable(lake.name, added)
        return [_Task(_FileRows(schema, columns, f"{location}/{each.path}", each.partition)) for each in added]


@dataclass(frozen=True)
class _BucketChanges:
    """The changes of a bucket. Without `changes`: inserted and updated rows alone, as they are now."""

    schema: Schema
    layout: Layout
    commits: Commits
    bucket: Bucket
    files: TouchedBucket
    changes: bool

    def __call__(self) -> pa.Table:
        found = self.commits.marked(self.bucket, changes_of(self.layout, self.files))
        if not self.changes:
            kinds = pa.array([str(ChangeType.INSERT), str(ChangeType.UPDATE_POSTIMAGE)])
            found = found.filter(pc.is_in(found.column(CHANGE_TYPE), value_set=kinds))
        return with_partition(found, self.bucket.partition, self.schema)


@dataclass(frozen=True)
class _FileRows:
    """The rows of a file."""

    schema: Schema
    columns: pa.Schema
    uri: str
    partition: str

    def __call__(self) -> pa.Table:
        return with_partition(read_rows(self.uri, self.columns), self.partition, self.schema)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """The columns in the Arrow types that Spark wants of a data source."""
    # Spark 4.2 wants the zone, which was UTC before.
    zone: Any = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)

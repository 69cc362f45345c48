"""Rewrites the files of planned clusterings on a session's executors.

One job reads the files of all partitions and writes the new ones: each task gets the rows of one new file. No row
passes the driver.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from lake.client.lake_types import DataFile
from lake.protocol.formats.spark_names import quoted
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.row_order import FILE, KEY, PLACE, along
from lake.spark.snapshot_files import SnapshotFile, data_frame
from lake.spark.store_assignment import as_stored
from lake.spark.table_schema import LakeColumns, columns_of, stored_columns
from lake.tables.clustering_runs import Job, Rewriting
from lake.tables.keyed.files import link_files, remove_files
from lake.tables.lake import Writing

_TASK = "_metastore_task"
_NAME = "_metastore_name"

_COMMITTER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""Tasks that ran twice or died leave nothing behind: only the files of the attempts that Spark took are moved."""


def rewrite(spark: SparkSession, writing: Writing, job: Job) -> list[DataFile]:
    """Writes the rows of a job's files, in its order, below the instant's directory. Returns the new files."""
    columns = columns_of(spark, job.schema)
    rows = _rows(spark, job, columns.data)
    order = job.order
    if order.order_by:
        names = {each.name.lower(): each.name for each in columns.data}
        parts = [(task.outputs, _count(task)) for task in job.tasks]
        rows = along(rows, [names[each] for each in order.order_by], order.curve, parts)
    else:
        rows = _by_file(rows, job.tasks)
    keys = [key.name.lower() for key in job.schema.keys]
    sorted_by = [quoted(each) for each in (*keys, *([KEY] if order.order_by else []))]
    together = _together(rows, job.tasks)
    if sorted_by:
        together = together.sortWithinPartitions(*sorted_by)
    wanted = [*stored_columns(job.schema, columns.data), *(sf.col(quoted(key)) for key in keys)]
    writer = as_stored(together.select(*wanted)).write.mode("append").options(**_COMMITTER)
    writer.partitionBy(*keys).parquet(writing.directory)
    return written_files(spark, writing, columns)


def written_files(spark: SparkSession, writing: Writing, columns: LakeColumns) -> list[DataFile]:
    """The files that Spark's job left, with the number of their rows: one job more, which reads footers."""
    directory = HadoopFiles(spark)
    # What a task that nobody waits for may still be writing lies below a hidden directory.
    there = directory.found(writing.directory, ".parquet")
    found = [each for each in there if not each.path.startswith("_temporary/")]
    staged = [SnapshotFile(f"{writing.directory}/{each.path}", each.size, "") for each in found]
    measured = (
        data_frame(spark, staged, columns.data, StructType())
        .select(sf.col("_metadata.file_path").alias("uri"))
        .groupBy("uri")
        .count()
        .collect()
        if staged
        else []
    )
    in_files = {row.uri: row["count"] for row in measured}
    spelled = [directory.spellings(f"{writing.directory}/{each.path}") for each in found]
    names = next((each for each in zip(*spelled, strict=True) if in_files.keys() <= set(each)), None)
    if names is None and in_files:
        raise AssertionError(f"Spark read a file {min(in_files)} that it had not been given")
    files = []
    for each, name_of in zip(found, names or [""] * len(found), strict=True):
        partition, _, name = each.path.rpartition("/")
        files.append(
            DataFile(
                partition=partition,
                file_group=name.removesuffix(".parquet"),
                slice=writing.instant.timestamp,
                path=f"{writing.path}/{each.path}",
                size=each.size,
                rows=in_files.get(name_of, 0),
            )
        )
    return files


class SessionFiles:
    """Brings files along that aren't rewritten: links on a local file system, elsewhere copies by Hadoop."""

    def __init__(self, spark: SparkSession) -> None:
        self._hadoop = HadoopFiles(spark)

    def link(self, pairs: Sequence[tuple[str, str]]) -> None:
        local = [pair for pair in pairs if pair[0].startswith("file:")]
        link_files(local)
        for source, target in pairs:
            if (source, target) not in local:
                self._hadoop.copy(source, target)

    def remove_files(self, uris: Sequence[str]) -> None:
        remove_files([each for each in uris if each.startswith("file:")])
        self._hadoop.remove_all(each for each in uris if not each.startswith("file:"))


def _rows(spark: SparkSession, job: Job, data: StructType) -> DataFrame:
    """The rows of all files, with the partition's values as the texts of its name, PLACE, and the file's name."""
    keys = [StructField(key.name.lower(), StringType()) for key in job.schema.keys]
    files = [
        SnapshotFile(f"{job.location}/{each.path}", each.size, f"{task.partition}/{PLACE}={place}".lstrip("/"))
        for place, task in enumerate(job.tasks)
        for each in task.files
    ]
    found = data_frame(spark, files, data, StructType([*keys, StructField(PLACE, IntegerType())]))
    return found.select("*", sf.col("_metadata.file_name").alias(_NAME))


def _by_file(rows: DataFrame, tasks: Sequence[Rewriting]) -> DataFrame:
    """Rows without an order: each old file goes as a whole into the new file that has the fewest bytes by then."""
    found: dict[tuple[int, str], int] = {}
    for place, task in enumerate(tasks):
        sizes = [0] * task.outputs
        for each in sorted(task.files, key=lambda file: -file.size):
            number = min(range(task.outputs), key=lambda at: sizes[at])
            sizes[number] += each.size
            found[place, each.path.rpartition("/")[2]] = number
    listed = [(place, name, number) for (place, name), number in found.items()]
    numbers = rows.sparkSession.createDataFrame(listed, f"{PLACE} int, {_NAME} string, {FILE} int")
    joined = rows.join(sf.broadcast(numbers), [PLACE, _NAME], "left")
    return joined.withColumn(FILE, sf.coalesce(FILE, sf.lit(0)))


def _together(rows: DataFrame, tasks: Sequence[Rewriting]) -> DataFrame:
    """The rows of each new file in a task of their own.

    Spark chooses tasks by a hash. So each file gets a number whose hash chooses a task that no other file has.
    """
    files = [(place, number) for place, task in enumerate(tasks) for number in range(task.outputs)]
    if len(files) == 1:
        return rows.repartition(1)
    spark, count = rows.sparkSession, len(files)
    # Of so many numbers, one is missed with a probability of e^-40. Two files would become one then.
    candidates = spark.range(40 * count).select(sf.col("id").cast("int").alias("number"))
    chosen = candidates.groupBy(sf.pmod(sf.hash("number"), sf.lit(count)).alias("task")).agg(sf.min("number"))
    numbers = [row[1] for row in chosen.collect()]
    listed = [(*file, numbers[at % len(numbers)]) for at, file in enumerate(files)]
    by_file = spark.createDataFrame(listed, f"{PLACE} int, {FILE} int, {_TASK} int")
    joined = rows.join(sf.broadcast(by_file), [PLACE, FILE], "left")
    return joined.withColumn(_TASK, sf.coalesce(_TASK, sf.lit(0))).repartition(count, _TASK)


def _count(task: Rewriting) -> int | None:
    counts = [each.rows for each in task.files]
    return None if None in counts else sum(filter(None, counts))

"""DataFrames of exactly the files that a snapshot names.

Spark is given the files with their sizes and the partitions with their values, so it lists no directory and asks the
storage for nothing but the files' contents; it prunes partitions by a query's conditions as it does for any table.
These are Spark's own classes, reached through Py4J: they are the same in Spark 3.5 and 4.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lake.protocol.formats.partition_names import values_in

_BLOCK = 1 << 27  # of a file, in bytes: what Spark splits by on storages that don't say
_CACHE = 1 << 50  # bytes that the list of files may take; it is never to be forgotten


_CALENDARS = {
    "datetimeRebaseMode": "spark.sql.parquet.datetimeRebaseModeInRead",
    "int96RebaseMode": "spark.sql.parquet.int96RebaseModeInRead",
}
"""Options of Spark's Parquet reader, and the settings that they have the values of by default."""


class SnapshotFile(NamedTuple):
    """A file by its URI and its size in bytes, and the name of its partition, empty for a table without keys."""

    uri: str
    size: int
    partition: str


def data_frame(spark: SparkSession, files: Sequence[SnapshotFile], columns: StructType, keys: StructType) -> DataFrame:
    """The rows of Parquet files; a column that a file doesn't have is null in its rows.

    Needs a session with a JVM (not Spark Connect).
    """
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    sources = jvm.org.apache.spark.sql.execution.datasources
    new_path, new_status = jvm.org.apache.hadoop.fs.Path, jvm.org.apache.hadoop.fs.FileStatus
    new_array = spark.sparkContext._gateway.new_array  # type: ignore[union-attr]

    # What Spark finds here it doesn't ask the storage for. The roots are files, so that whatever makes it ask anew, it
    # will not find others.
    cache = sources.SharedInMemoryCache(_CACHE, -1).createForNewClient()
    roots = jvm.java.util.ArrayList()
    directories: dict[str, str] = {}
    for file in files:
        path = new_path(file.uri)
        found = new_array(new_status, 1)
        found[0] = new_status(file.size, False, 1, _BLOCK, 0, path)
        cache.putLeafFiles(path, found)
        roots.add(path)
        directories.setdefault(file.uri.rpartition("/")[0], file.partition)

    nothing, options = jvm.scala.Option.empty(), jvm.PythonUtils.toScalaMap(_calendar(spark))
    data_schema, key_schema = (session.parseDataType(each.json()) for each in (columns, keys))
    partitions = nothing
    if keys:
        new_row = _Rows(spark, keys, key_schema)
        listed = jvm.java.util.ArrayList()
        for directory, name in directories.items():
            listed.add(sources.PartitionPath(new_row(name), new_path(directory)))
        partitions = jvm.scala.Option.apply(sources.PartitionSpec(key_schema, jvm.PythonUtils.toSeq(listed)))
    index = sources.InMemoryFileIndex(
        session, jvm.PythonUtils.toSeq(roots), options, nothing, cache, partitions, nothing
    )
    parquet = sources.parquet.ParquetFileFormat()
    relation = sources.HadoopFsRelation(index, key_schema, data_schema, nothing, parquet, options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _calendar(spark: SparkSession) -> Any:
    """The options by which Spark takes dates and times of files that don't say their calendar as they are.

    Spark 3.5 refuses those before 1582 and 1900 by default. Files of programs before Spark 3 and of Hive have another
    calendar: a session that says so by its settings (LEGACY) reads all files without a mark like that.
    """
    options = spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
    for option, setting in _CALENDARS.items():
        if (spark.conf.get(setting, None) or "").upper() != "LEGACY":
            options.put(option, "CORRECTED")
    return options


class _Rows:
    """Makes Spark's rows of partitions' values, as Spark's own catalog does."""

    def __init__(self, spark: SparkSession, keys: StructType, key_schema: Any) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._names = [key.name for key in keys]
        self._schema = key_schema
        self._zone = spark.conf.get("spark.sql.session.timeZone")
        catalog = jvm.org.apache.spark.sql.catalyst.catalog
        self._new = catalog.CatalogTablePartition
        self._storage = catalog.CatalogStorageFormat.empty()
        self._parameters = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._no_statistics = jvm.scala.Option.empty()

    def __call__(self, name: str) -> Any:
        values = self._jvm.java.util.HashMap()
        for key, value in zip(self._names, values_in(name), strict=True):
            values.put(key, value)
        spec = self._jvm.PythonUtils.toScalaMap(values)
        partition = self._new(spec, self._storage, self._parameters, 0, 0, self._no_statistics)
        return partition.toRow(self._schema, self._zone)

"""Writes of keyed tables by the extension's BucketWriter, on the driver of a session. Runs in Spark's process."""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError

from lake.client.lake_types import DataFile, from_millis
from lake.protocol.formats.keyed_table import INSTANT, TOMBSTONES
from lake.spark.session_client import lake_table
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_writes import apply, completion_of

PACKAGE = "lake.metastore.spark"


class JavaError(Exception):
    """An exception of the extension; the text is its class and message."""


class Extension:
    """Calls methods of the extension that no other package sees."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self.jvm = spark._jvm
        self._loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def type(self, name: str) -> Any:
        return self.jvm.java.lang.Class.forName(f"{PACKAGE}.{name}", True, self._loader)

    def call(self, type_name: str, method: str, target: Any, *values: Any) -> Any:
        for each in self.type(type_name).getDeclaredMethods():
            if each.getName() == method and each.getParameterCount() == len(values):
                each.setAccessible(True)
                return self._invoked(lambda each=each: each.invoke(target, self.array(values)))
        raise AssertionError(f"no {method}")

    def new(self, type_name: str, *values: Any) -> Any:
        constructors = self.type(type_name).getDeclaredConstructors()
        (made,) = (each for each in constructors if each.getParameterCount() == len(values))
        made.setAccessible(True)
        return made.newInstance(self.array(values))

    def field(self, type_name: str, name: str, target: Any) -> Any:
        found = self.type(type_name).getDeclaredField(name)
        found.setAccessible(True)
        return found.get(target)

    def sent(self, value: Any) -> Any:
        """What executors get."""
        serializer = self.jvm.org.apache.spark.serializer.JavaSerializer(self.spark._jsc.sc().conf()).newInstance()
        tag = self.jvm.scala.reflect.ClassTag.apply(value.getClass())
        return serializer.deserialize(serializer.serialize(value, tag), self._loader, tag)

    def array(self, values: Any) -> Any:
        found = self.spark.sparkContext._gateway.new_array(self.jvm.java.lang.Object, len(values))
        for index, value in enumerate(values):
            found[index] = value
        return found

    def list(self, values: Any) -> Any:
        found = self.jvm.java.util.ArrayList()
        for each in values:
            found.add(each)
        return found

    def _invoked(self, call: Any) -> Any:
        try:
            return call()
        except Py4JJavaError as error:
            cause = error.java_exception.getCause()
            raise JavaError(f"{cause.getClass().getSimpleName()}: {cause.getMessage()}") from None


def write_by_java(spark: Any, table: str, batch: Any, event_time: str | None = None, replaces: bool = False) -> None:
    """Applies a batch, a DataFrame with CHANGE_TYPE, to a table with one bucket. Raises JavaError."""
    extension = Extension(spark)
    lake = lake_table(spark, table, None)
    keyed = lake.schema().keyed_table()
    session = spark._jsparkSession
    database, name = table.split(".")
    names = spark.sparkContext._gateway.new_array(extension.jvm.java.lang.String, 1)
    names[0] = database
    identifier = extension.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(names, name)
    loaded = session.sessionState().catalogManager().catalog("spark_catalog").loadTable(identifier)
    loaded = extension.call("LakeTable", "includingUncommitted", loaded)
    columns = extension.call("LakeTable", "dataSchema", loaded)
    data = [each if each in batch.columns else "CAST(NULL AS INT)" for each in columns.fieldNames()]
    with lake.writing("deltacommit" if keyed.is_merge_on_read else "commit") as writing:
        snapshot = extension.call("LakeTable", "snapshot", loaded)
        target = extension.new(
            "BucketWriter$Target", writing.instant.timestamp, writing.directory, writing.path, event_time
        )
        wanted = extension.new("BucketWriter$Wanted", replaces, False, False, "replace")
        writer = extension.call("BucketWriter", "of", None, session, loaded, columns, snapshot, target, wanted)
        writer = extension.sent(writer)
        places, rows = given_rows(
            extension, batch.selectExpr(*data, f"{CHANGE_TYPE} = 'delete'", *keyed.partition_columns)
        )
        found: list[DataFile] = []
        if keyed.is_table_wide:
            are_deletes = all(each.getBoolean(len(data)) for each in rows)
            told = [None if are_deletes else place for place in places]
            found = written(extension, "writeAnywhere", writer, 0, extension.list(told), extension.list(rows))
        else:
            for place in sorted({*places}):
                some = [row for row, where in zip(rows, places, strict=True) if where == place]
                found += written(extension, "write", writer, place, 0, extension.list(some))
        writing.complete(
            completion_of(
                found,
                "merge",
                0,
                "test",
                least_event_time=None,
                conditional=False,
                writes_changelog=keyed.writes_changelog and not replaces,
                table=keyed,
            )
        )


def given_rows(extension: Extension, batch: Any) -> tuple[list[str], list[Any]]:
    """The names of the partitions of rows, and Spark's own rows, whose last column is that of the partition if any."""
    rows = [*batch._jdf.queryExecution().executedPlan().executeCollect()]
    key = batch.columns[-1] if batch.columns[-1] == "dt" else None
    return [f"{key}={each.getString(each.numFields() - 1)}" if key else "" for each in rows], rows


def written(extension: Extension, method: str, writer: Any, *values: Any) -> list[DataFile]:
    files = extension.call("BucketWriter", method, writer, *values)

    def value(file: Any, name: str) -> Any:
        return extension.field("WrittenFile", name, file)

    def time(file: Any, name: str) -> Any:
        millis = value(file, name)
        return None if millis is None else from_millis(millis)

    return [
        DataFile(
            partition=value(file, "partition"),
            file_group=value(file, "fileGroup"),
            slice=value(file, "slice"),
            path=value(file, "path"),
            size=value(file, "size"),
            kind=value(file, "kind"),
            rows=None if value(file, "rows") < 0 else value(file, "rows"),
            min_event_time=time(file, "minEventTime"),
            max_event_time=time(file, "maxEventTime"),
            columns=None if value(file, "columns") is None else list(value(file, "columns")),
            statistics=None if value(file, "statistics") is None else bytes(value(file, "statistics")),
        )
        for file in files
    ]


def write_by_python(spark: Any, table: str, batch: Any, event_time: str | None = None) -> None:
    rows = pa.Table.from_batches(batch._collect_as_arrow())
    lake = lake_table(spark, table, None)
    keyed = lake.schema().keyed_table()
    if keyed.is_table_wide and pc.all(pc.equal(rows.column(CHANGE_TYPE), "delete")).as_py():
        # Deletes that don't say in which partition the rows are.
        apply(lake, rows.drop_columns([CHANGE_TYPE, *keyed.partition_columns]), "delete", event_time=event_time)
    else:
        apply(lake, rows, "merge", event_time=event_time)


def differences(
    spark: Any, java: str, python: str, steps: list[tuple[str, str]], event_time: str | None = None
) -> list[Any]:
    """What differs between two tables that get the same batches.

    The steps: a query and who writes it into the first table, `java` or `python`; or a statement and `both`.
    """
    writers = {"java": write_by_java, "python": write_by_python}
    for number, (query, writer) in enumerate(steps):
        if writer == "both":
            spark.sql(query.format(java))
            spark.sql(query.format(python))
            continue
        batch = spark.sql(query)
        refused = []
        for table, by in ((python, "python"), (java, writer)):
            try:
                writers[by](spark, table, batch, event_time)
                refused.append("")
            except (UnfitRows, JavaError) as error:
                # Which one of several unfit keys is named is by chance.
                refused.append(re.sub("the key .* has", "the key has", str(error)))
        if refused[0] != refused[1].removeprefix("UnfitRows: "):
            return [number, query, *refused]
        ours, theirs = state(spark, java), state(spark, python)
        if ours != theirs:
            only = [[each for each in one if each not in other] for one, other in ((ours, theirs), (theirs, ours))]
            return [number, query, repr(only)]
    shown = [sorted(repr(row) for row in spark.table(table).collect()) for table in (java, python)]
    return [] if shown[0] == shown[1] else shown


def state(spark: Any, table: str) -> list[Any]:
    """The files of a table, what is in them, and the last changes. Instants are their places in the timeline."""
    lake = lake_table(spark, table, None)
    instants = {each.timestamp: number for number, each in enumerate(lake.instants(states=["completed"]))}
    snapshot = lake.snapshot(include_uncommitted=True)
    found: list[Any] = []
    for file in snapshot:
        rows = pq.read_table(f"{snapshot.location}/{file.path}".removeprefix("file:"), partitioning=None)
        facts = [file.partition, file.kind, instants[file.slice], file.rows, file.min_event_time, file.max_event_time]
        is_tombstones = file.statistics == TOMBSTONES
        values = contents(rows, instants)
        found.append([*facts, file.columns, is_tombstones, sorted(values) if is_tombstones else values])
    if last := lake.position().position:
        changes = lake.changes(last - 1, last).to_arrow(of_each_commit=True)
        found.append(["changes", sorted(contents(changes, instants))])
    return sorted(found, key=repr)


def contents(rows: pa.Table, instants: dict[str, int]) -> list[str]:
    """The columns' types, and the rows."""
    listed = rows.drop_columns([name for name in rows.column_names if name.startswith("_commit")]).to_pylist()
    for row in listed:
        if INSTANT in row:
            row[INSTANT] = instants[row[INSTANT]]
    return [repr([(each.name, str(each.type)) for each in rows.schema]), *map(repr, listed)]

"""Writes of keyed tables by the extension's BucketWriter, on the driver of a session. Runs in Spark's process."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake.client.lake_types import DataFile, from_millis
from lake.protocol.formats.keyed_table import INSTANT
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
        (made,) = (each for each in self.type(type_name).getDeclaredConstructors() if each.getParameterCount() == 4)
        made.setAccessible(True)
        return made.newInstance(self.array(values))

    def field(self, type_name: str, name: str, target: Any) -> Any:
        found = self.type(type_name).getDeclaredField(name)
        found.setAccessible(True)
        return found.get(target)

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
        except Exception as error:
            cause = error.java_exception.getCause()  # type: ignore[attr-defined]
            raise JavaError(f"{cause.getClass().getSimpleName()}: {cause.getMessage()}") from None


def write_by_java(spark: Any, table: str, batch: Any, event_time: str | None = None, replaces: bool = False) -> None:
    """Applies a batch of a table with one bucket in one instant. `batch`: a DataFrame with CHANGE_TYPE. Raises JavaError."""
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
    data = [f"`{each}`" for each in columns.fieldNames()]
    with lake.writing("deltacommit" if keyed.is_merge_on_read else "commit") as writing:
        snapshot = extension.call("LakeTable", "snapshot", loaded)
        target = extension.new(
            "BucketWriter$Target", writing.instant.timestamp, writing.directory, writing.path, event_time
        )
        writer = extension.call("BucketWriter", "of", None, session, loaded, columns, snapshot, target, replaces)
        # Executors get a copy.
        stream = extension.jvm.java.io.ByteArrayOutputStream()
        extension.jvm.java.io.ObjectOutputStream(stream).writeObject(writer)
        places, rows = given_rows(extension, batch.selectExpr(*data, f"{CHANGE_TYPE} = 'delete'", *keyed.partition_columns))
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
    spark: Any, java: str, python: str, batches: list[str], event_time: str | None = None
) -> list[Any]:
    """What differs between two tables that get the same batches, each a query, from the two writers."""
    for number, query in enumerate(batches):
        batch = spark.sql(query)
        refused = []
        for write, table in ((write_by_python, python), (write_by_java, java)):
            try:
                write(spark, table, batch, event_time)
                refused.append("")
            except (UnfitRows, JavaError) as error:
                refused.append(str(error).removeprefix("UnfitRows: "))
        # Which one of several unfit keys is named is by chance.
        if refused[0].partition(" has ")[2] != refused[1].partition(" has ")[2]:
            return [number, query, *refused]
        if refused[0] and not refused[1] or refused[1] and not refused[0]:
            return [number, query, *refused]
        found = [state(spark, table) for table in (python, java)]
        if found[0] != found[1]:
            return [number, query, *([str(part) for part in each if part not in other] for each, other in (found, found[::-1]))]
    return []


def state(spark: Any, table: str) -> list[Any]:
    """The files of a table, what is in them, and the last changes, with instants as their places in the timeline."""
    lake = lake_table(spark, table, None)
    instants = {each.timestamp: number for number, each in enumerate(lake.instants(states=["completed"]))}
    snapshot = lake.snapshot(include_uncommitted=True)
    found: list[Any] = []
    for file in snapshot:
        rows = pq.read_table(f"{snapshot.location}/{file.path}".removeprefix("file:"), partitioning=None)
        found.append(
            [
                file.partition,
                file.kind,
                instants[file.slice],
                file.rows,
                file.min_event_time,
                file.max_event_time,
                file.columns,
                file.kind == "log" and file.statistics,
                *contents(rows, instants),
            ]
        )
    last = lake.position().position
    if last:
        changes = lake.changes(last - 1, last).to_arrow()
        found.append(["changes", sorted(map(repr, contents(changes.drop_columns(["_commit_position"]) if "_commit_position" in changes.column_names else changes, instants)[1:]))])
    return sorted(found, key=repr)


def contents(rows: pa.Table, instants: dict[str, int]) -> list[Any]:
    """Columns with their types, and rows. Times are shown as numbers: Python has none before the year 1."""
    kinds = [(each.name, str(each.type)) for each in rows.schema if each.name != INSTANT]
    listed = rows.to_pylist()
    for row in listed:
        if INSTANT in row:
            row[INSTANT] = instants.get(row[INSTANT])
        for name in [name for name in row if name.startswith("_commit")]:
            del row[name]
    return [kinds, *map(repr, listed)]

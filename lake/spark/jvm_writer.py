"""Writes DataFrames as files of instants by the extension for Spark, whose tasks write them in the JVM.

Python begins the instant and completes it; the extension is told of the table what it has to know, and answers with the
names of the files. So a write goes to the metastore, the table and the login of the program that calls.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lake.client.lake_types import DataFile, from_millis
from lake.spark.session_client import extension_class
from lake.tables.keyed.errors import UnfitRows
from lake.tables.lake import LakeTable, Writing


def check_session(spark: SparkSession) -> None:
    """Raises NoExtension for a session that can't write lake tables."""
    _writes(spark)


class WrittenRows(NamedTuple):
    """What Spark's tasks have written.

    `rows`: that were given, but for pre-images; `rows_of`: by partition. `least_event_time`: of these rows alone, in
    milliseconds; None without one. `read_groups`: as of `Completion`.
    """

    files: list[DataFile]
    rows: int
    rows_of: Mapping[str, int]
    least_event_time: int | None
    read_groups: Sequence[str]


def write_buckets(
    rows: DataFrame,
    lake: LakeTable,
    writing: Writing,
    properties: Mapping[str, str],
    columns: StructType,
    partition_columns: Sequence[str],
    *,
    event_time: str | None = None,
    replaces: bool = False,
    updated: Sequence[str] | None = None,
) -> WrittenRows:
    """Writes rows into the buckets of a keyed table, below the instant's directory.

    `rows` have the data columns, those that partition the table, and the marks of a feed, DELETED and CHANGE_TYPE.
    `columns`: all data columns, in lower case. `replaces`: nothing of what is in the buckets stays. `updated`: the
    columns that rows update, which have nothing else but the key. Raises UnfitRows.
    """
    snapshot = lake.snapshot(
        writing.instant.read_position, include_uncommitted=True, partitions=[] if replaces else None
    )
    request = {
        "properties": dict(properties),
        "replaces": replaces,
        "updated": None if updated is None else list(updated),
        "snapshot": {
            "position": snapshot.position,
            "location": snapshot.location,
            "files": [] if replaces else [_sent(each) for each in snapshot],
        },
    }
    return _written(rows, "keyed", lake, writing, request, columns, partition_columns, event_time)


def write_files(
    rows: DataFrame,
    lake: LakeTable,
    writing: Writing,
    columns: StructType,
    partition_columns: Sequence[str],
    *,
    event_time: str | None = None,
    options: Mapping[str, str] | None = None,
) -> WrittenRows:
    """Writes rows as files of a table without a primary key, below the instant's directory.

    `rows` have the columns of files, and the texts of those that partition the table. `columns`: those of files, with
    their ids. `options`: of Spark's Parquet writer.
    """
    request = {"options": {key: str(value) for key, value in (options or {}).items()}}
    return _written(rows, "plain", lake, writing, request, columns, partition_columns, event_time)


def _written(
    rows: DataFrame,
    method: str,
    lake: LakeTable,
    writing: Writing,
    request: Mapping[str, Any],
    columns: StructType,
    partition_columns: Sequence[str],
    event_time: str | None,
) -> WrittenRows:
    asked = {
        **request,
        "name": lake.name,
        "columns": columns.json(),
        "partition_columns": list(partition_columns),
        "instant": {
            "timestamp": writing.instant.timestamp,
            "directory": writing.directory,
            "path": writing.path,
        },
        "event_time": event_time and event_time.lower(),
    }
    data: Any = rows._jdf
    write = getattr(_writes(rows.sparkSession), method)
    answer = json.loads(write(data.sparkSession(), data.queryExecution().analyzed(), json.dumps(asked)))
    if "unfit" in answer:
        raise UnfitRows(answer["unfit"])
    files = [received(each) for each in answer["files"]]
    return WrittenRows(files, answer["rows"], answer["rows_of"], answer["least_event_time"], answer["read_groups"])


def _writes(spark: SparkSession) -> Any:
    return extension_class(spark, "TableWrites")


def _sent(file: DataFile) -> dict[str, Any]:
    found: dict[str, Any] = {
        "partition": file.partition,
        "file_group": file.file_group,
        "slice": file.slice,
        "path": file.path,
        "size": file.size,
        "kind": file.kind,
        "completed_at": (file.added_at if file.first_added_at is None else file.first_added_at) or 0,
    }
    if file.rows is not None:
        found["rows"] = file.rows
    if file.columns is not None:
        found["columns"] = list(file.columns)
    if file.statistics is not None:
        found["statistics"] = file.statistics.decode(errors="replace")
    return found


def received(file: Mapping[str, Any]) -> DataFile:
    """A file that the extension has written, as its `WrittenFile` describes it."""
    times = {name: from_millis(file[name]) if name in file else None for name in ("min_event_time", "max_event_time")}
    statistics = file["statistics"].encode() if "statistics" in file else None
    return DataFile(**{**file, **times, "statistics": statistics})

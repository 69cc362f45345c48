"""Keyed tables as the extension for Spark reads them, inside the JVM.

A request describes the table to the extension as `LakeTable` knows it: its definition, its id, and its metastore. The
session's own catalog isn't asked.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lake.client.lake_types import DataFile, Moment, Schema, to_millis
from lake.protocol.services import METHODS
from lake.spark.jvm_writer import received
from lake.spark.session_client import check_extension, extension_class, metastore_uri
from lake.spark.table_schema import columns_of
from lake.tables.lake import LakeTable

if TYPE_CHECKING:
    from lake.tables.compaction import Work

Kind = Literal["ROWS", "NET", "EACH"]
"""Which changes: inserted and updated rows; net changes with their kind; those of each commit by itself."""

_CLASS = "PythonReads"


def snapshot_rows(
    spark: SparkSession,
    lake: LakeTable,
    schema: Schema,
    position: int,
    *,
    uri: str | None,
    include_uncommitted: bool,
    filter: str | None = None,
    partitions: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    base_files: bool = False,
    is_latest: bool = False,
) -> DataFrame:
    """The rows of a snapshot, whose files are found out by this call.

    `schema`: of a version of the table that knows all files of the snapshot. Give either a `filter` or `partitions`,
    and perhaps `groups`, the file groups of them; or none for all. `base_files`: without log files. `is_latest`: the
    position was the last one when the schema was read. Raises NoExtension, and the metastore's exceptions.
    """
    scope = {
        "uncommitted": include_uncommitted,
        "filter": filter,
        "partitions": None if partitions is None else sorted(partitions),
        "groups": None if groups is None else sorted(groups),
        "base_files": base_files,
        "is_latest": is_latest,
    }
    return _frame(spark, "rows", {**_described(spark, lake, schema, position, uri), **scope})


def change_rows(
    spark: SparkSession,
    lake: LakeTable,
    schema: Schema,
    after: int,
    up_to: int,
    kind: Kind,
    *,
    uri: str | None,
    include_uncommitted: bool,
    filter: str | None,
) -> DataFrame:
    """The changes of rows after one position up to another. Which files tell of them is found out by this call.

    `schema`: as of `snapshot_rows`. But for inserted and updated rows alone there are the columns `_change_type`,
    `_commit_version` and `_commit_timestamp`. Raises NoExtension, and the metastore's exceptions.
    """
    scope = {"after": after, "kind": kind, "uncommitted": include_uncommitted, "filter": filter}
    return _frame(spark, "changes", {**_described(spark, lake, schema, up_to, uri), **scope})


def query_rows(
    spark: SparkSession, text: str, as_of: Moment | datetime | None, *, include_uncommitted: bool
) -> DataFrame:
    """The result of a query, all of whose lake tables are read as of one moment or time, by default now.

    Raises NoExtension, ValueError for what is no query, the metastore's exceptions, and Spark's.
    """
    request: dict[str, Any] = {"text": text, "uncommitted": include_uncommitted}
    if isinstance(as_of, Moment):
        request["moment"] = as_of.number
    elif as_of is not None:
        request["micros"] = to_millis(as_of) * 1_000
    rows = _call(spark, "query", request)
    if rows is None:
        raise ValueError("sql takes one query, a SELECT; other statements go to spark.sql")
    return DataFrame(rows, spark)


def compacted(spark: SparkSession, lake: LakeTable, work: "Work", *, uri: str | None) -> list[DataFile]:
    """The new files of a compaction, which the executors write. Raises NoExtension, and Spark's exceptions."""
    buckets = [bucket for bucket, _ in work.tasks]
    request = {
        "uncommitted": True,
        "partitions": sorted({each.partition for each in buckets}),
        "buckets": [list(each) for each in buckets],
        "instant": work.writer.instant,
        "directory": work.writer.directory,
        "path": work.writer.path,
    }
    answer = _call(spark, "compact", {**_described(spark, lake, work.schema, work.position, uri), **request})
    return [received(each) for each in json.loads(answer)]


def _described(spark: SparkSession, lake: LakeTable, schema: Schema, position: int, uri: str | None) -> dict[str, Any]:
    table = lake.reference
    columns = columns_of(spark, schema)
    whole = StructType([*columns.data, *columns.keys])
    return {
        "uri": uri or metastore_uri(spark),
        "catalog": table.catalog,
        "database": table.database,
        "table": table.table,
        "id": table.id,
        "position": position,
        "columns": whole.jsonValue(),
        "keys": columns.key_names,
        # Spark's own copies of the columns are in `columns`.
        "properties": {name: value for name, value in schema.properties.items() if not name.startswith("spark.sql.")},
    }


def _frame(spark: SparkSession, method: str, request: Mapping[str, Any]) -> DataFrame:
    return DataFrame(_call(spark, method, request), spark)


def _call(spark: SparkSession, method: str, request: Mapping[str, Any]) -> Any:
    """What a method of the extension answers. An exception of the metastore's is raised as this client raises it."""
    check_extension(spark)
    extension = extension_class(spark, _CLASS)
    try:
        return getattr(extension, method)(spark._jsparkSession, json.dumps(request))
    except Py4JJavaError as error:
        refusal = extension.refusal(error.java_exception)
        if refusal is None:
            raise
        raise _refused(json.loads(refusal)) from None


def _refused(refusal: Mapping[str, Any]) -> Exception:
    """The exception of the metastore's by which it refused a call; `field` is its number among the method's."""
    entry = METHODS[refusal["method"]].result_spec[refusal["field"]]
    assert entry is not None
    exception: type[Exception] = entry[3][0]
    spec: Any = exception.thrift_spec  # type: ignore[attr-defined]
    values = {each[2]: refusal["values"].get(str(each[0])) for each in spec if each is not None}
    return exception(**values)

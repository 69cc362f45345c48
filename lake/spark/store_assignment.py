"""Converts the columns of a DataFrame to those of a table by Spark's rules of store assignment, as its INSERT does.

A value that doesn't fit is an error, never NULL and never another value. The rules are those of
`spark.sql.storeAssignmentPolicy=ANSI`, whatever the session's settings are: what a table holds must not depend on the
settings of the programs that write it. Columns are matched by name, fields of structs too. These are Spark's own
classes, reached through Py4J.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from lake.protocol.formats.spark_names import quoted
from lake.tables.keyed.errors import UnfitRows

_STRICT = {
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.legacy.charVarcharAsString": "false",
}

_AS_STORED = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Settings by which Spark writes dates and times of the calendar that it computes with, however long ago they are."""


def assigned(rows: DataFrame, table: str, columns: StructType, parsed: Collection[str] = ()) -> DataFrame:
    """The columns of a table, made of the rows' columns of the same names; those that are missing are null.

    `columns`: the table's, with Spark's marks of CHAR and VARCHAR. `parsed`: the columns in which texts are read as
    values, as those that become the names of partitions are. `table`: its name, for messages. The rows have no other
    columns than these. Raises UnfitRows for types that don't fit. A value that doesn't fit makes Spark's job
    fail.
    """
    strict = _session(rows, _STRICT)
    given = {each.name: each.dataType for each in rows.schema}
    selected = []
    for each in columns:
        column = sf.col(quoted(each.name)) if each.name in given else sf.lit(None)
        selected.append(column.alias(each.name))
    is_text = {name for name in parsed if isinstance(given.get(name), StringType)}
    read = [
        # As text, since Spark 3.5 makes a cast of its API by the settings of the session that is active.
        f"cast({quoted(each.name)} as {each.dataType.simpleString()}) as {quoted(each.name)}"
        if each.name in is_text
        else quoted(each.name)
        for each in columns
    ]
    jvm: Any = rows.sparkSession._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    expected = strict.parseDataType(columns.json()).asNullable()
    resolver = catalyst.analysis.TableOutputResolver
    try:
        plan = _in_session(rows, strict).select(*selected).selectExpr(*read)._jdf.queryExecution().analyzed()
        plan = resolver.resolveOutputColumns(
            table,
            catalyst.types.DataTypeUtils.toAttributes(expected),
            plan,
            True,
            strict.sessionState().conf(),
            # Its type isn't the same in all versions of Spark.
            getattr(resolver, "resolveOutputColumns$default$6")(),
        )
        return _of_plan(rows, rows._jdf.sparkSession(), plan)
    except AnalysisException as error:
        raise UnfitRows(f"the rows don't fit the columns of {table}: {_first_line(error)}") from None


def as_stored(rows: DataFrame) -> DataFrame:
    """The same rows, of which Spark's Parquet writer takes all dates and times as they are.

    Spark 3.5 refuses dates before 1582 and timestamps before 1900 by default. A session that takes them stays the same,
    since observations of the rows belong to it.
    """
    if all(rows.sparkSession.conf.get(key) == value for key, value in _AS_STORED.items()):
        return rows
    return _in_session(rows, _session(rows, _AS_STORED))


def _session(rows: DataFrame, settings: Mapping[str, str]) -> Any:
    """A session of Spark's that has some settings, and else those of the rows' session."""
    found: Any = rows._jdf.sparkSession().cloneSession()
    for key, value in settings.items():
        found.conf().set(key, value)
    return found


def _in_session(rows: DataFrame, session: Any) -> DataFrame:
    return _of_plan(rows, session, rows._jdf.queryExecution().analyzed())


def _of_plan(rows: DataFrame, session: Any, plan: Any) -> DataFrame:
    sql: Any = rows.sparkSession._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    dataset = sql.Dataset if rows.sparkSession.version.startswith("3.") else sql.classic.Dataset
    return DataFrame(dataset.ofRows(session, plan), rows.sparkSession)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]

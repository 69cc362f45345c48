"""Runs the steps of refreshes on Spark, in a session of their own."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType
from sqlglot import exp

from lake.client.lake_types import Schema
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.deltas import Step
from lake.layers.definitions.model import Sink
from lake.layers.errors import BadQuery, first_line
from lake.layers.runner.engine import Changed, SourceChange
from lake.layers.runner.pruning import Within
from lake.protocol.formats.spark_names import quoted
from lake.spark.keyed.commits import KeyedWrite
from lake.spark.keyed.extension import snapshot_rows
from lake.spark.lake_reading import ADDED, CHANGE, REMOVED, read
from lake.spark.session_client import check_extension, extension_class
from lake.spark.table_schema import columns_of
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeTable

DEFAULTS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
"""Settings by which Spark's lines differ, and places; a project's configuration may set others."""

_PLANNING = {"spark.sql.constraintPropagation.enabled": "false"}
"""Spark's planner compares what it knows of columns with each new name that they get. Steps give them many names: it
would take minutes."""

_THREADS = 4
"""Layers that are computed at a time. Much of the time of a small increment is planned by one thread, or waited for."""

_OLD = [str(ChangeType.DELETE), str(ChangeType.UPDATE_PREIMAGE)]
_NEW = [str(ChangeType.INSERT), str(ChangeType.UPDATE_POSTIMAGE)]


class SparkEngine:
    """Relations and steps as temporary views."""

    #: PySpark leaves exceptions as Py4J's where it has no class for them: tasks that fail, in Spark 3.5.
    errors: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)
    threads = _THREADS

    def __init__(self, spark: SparkSession, configuration: Mapping[str, str]) -> None:
        """`configuration`: Spark's settings for queries. Those of the given session don't change."""
        self._spark = spark.newSession()
        for key, value in {**_PLANNING, **DEFAULTS, **configuration}.items():
            if self._spark.conf.isModifiable(key):
                self._spark.conf.set(key, value)
        self._views: set[str] = set()
        self._changes: dict[SourceChange, DataFrame] = {}
        self._aggregates: dict[str, tuple[exp.Alias, ...]] = {}
        self._metrics: dict[str, Mapping[str, int]] = {}

    # --- the analyser -----------------------------------------------------------------------------------------

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The tree of a query, as Spark's analyser understands it. Raises BadQuery."""
        try:
            answer: Mapping[str, Any] = json.loads(self._plans.read(json.dumps(request)))
        except PySparkException as error:
            raise BadQuery(first_line(error)) from None
        if "refused" in answer:
            raise BadQuery(answer["refused"])
        return answer

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether two requests that can be read have the same rows, by Spark's canonical forms of their plans."""
        try:
            return bool(self._plans.same(json.dumps(before), json.dumps(now)))
        except self.errors:  # it can't be said
            return False

    # --- tables -----------------------------------------------------------------------------------------------

    def columns(self, schema: Schema) -> Mapping[str, str]:
        """A table's columns, with those of its partitions, in lower case; Spark's names of their types."""
        found = columns_of(self._spark, schema)
        return {**_types(found.data), **_types(found.keys)}

    def create_table(self, name: str, made: Compiled, properties: Mapping[str, str]) -> None:
        """Makes a layer's table of that name, and its database, unless they are there."""
        database, _, table = name.partition(".")
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in made.types.items())
        listed = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in properties.items())
        partitions = ", ".join(map(quoted, made.node.partitions))
        partitioned = f"PARTITIONED BY ({partitions})" if partitions else ""
        comment = "" if made.node.comment is None else f"COMMENT {_text(made.node.comment)}"
        if not self._spark.catalog.databaseExists(database):  # else Spark warns of each that is there
            self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted(database)}.{quoted(table)} ({columns}) USING parquet {partitioned}"
            f" {comment} TBLPROPERTIES ({listed})"
        )

    def add_columns(self, lake: LakeTable, columns: Mapping[str, str]) -> None:
        """Adds columns to a table, by their types in Spark's names; its rows have NULL there."""
        database, _, table = lake.name.partition(".")
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        lake.position()  # raises TableReplaced: Spark finds the table by its name
        self._spark.sql(f"ALTER TABLE {quoted(database)}.{quoted(table)} ADD COLUMNS ({listed})")

    def bind_state(self, name: str, lake: LakeTable, position: int, part: Within | None = None) -> None:
        """Makes a table's rows at a position a relation, or those in a part of it."""
        if part is None:
            rows = read(self._spark, lake.reference, as_of=position, include_uncommitted=True)
        else:
            rows = snapshot_rows(
                self._spark,
                lake,
                lake.schema(),
                position,
                uri=None,
                include_uncommitted=True,
                partitions=part.partitions,
                groups=part.groups,
            )
        self._bind(name, _lower(rows))

    def bind_changes(self, old: str, new: str, lake: LakeTable, after: int, up_to: int) -> None:
        """Makes the rows of a table that changed between two positions relations, as they were and as they are."""
        rows = self._changed(lake, after, up_to)
        self._bind(old, rows.where(_kind(rows).isin([*_OLD, REMOVED])))
        self._bind(new, rows.where(_kind(rows).isin([*_NEW, ADDED])))

    def changed_rows(self, lake: LakeTable, after: int, up_to: int) -> Changed:
        """How many rows of a table changed between two positions."""
        rows = self._changed(lake, after, up_to)
        is_new = _kind(rows).isin([*_NEW, ADDED])
        [found] = rows.agg(sf.count_if(~is_new), sf.count_if(is_new)).collect()
        return Changed(*found)

    def _changed(self, lake: LakeTable, after: int, up_to: int) -> DataFrame:
        key = SourceChange(lake.full_name, after, up_to)
        if key not in self._changes:
            is_keyed = lake.schema().keyed_table() is not None
            rows = read(
                self._spark,
                lake.reference,
                incremental=(after, up_to),
                changes=is_keyed,
                with_removed=not is_keyed,
                include_uncommitted=True,
            )
            self._changes[key] = self._keep(_lower(rows))
        return self._changes[key]

    # --- steps ------------------------------------------------------------------------------------------------

    def run(self, steps: Sequence[Step]) -> None:
        """Makes the results of steps relations. Those that aren't kept are computed where they are read."""
        for each in steps:
            rows = self._rows_of(each)
            if each.observed:
                self._aggregates[each.name] = each.observed
                rows = rows.observe(each.name, *(sf.expr(one.sql("spark")) for one in each.observed))
            self._bind(each.name, self._keep(rows) if each.keep else rows)

    @cached_property
    def _plans(self) -> Any:
        """The queries of this refresh, in Spark's process, and their expressions."""
        check_extension(self._spark)
        return extension_class(self._spark, "LayerPlans")(self._spark._jsparkSession)

    def _rows_of(self, step: Step) -> DataFrame:
        if step.whole is None:
            return DataFrame(self._plans.rows(step.query.sql("spark")), self._spark)
        request = json.dumps(step.whole._asdict())
        return DataFrame(self._plans.whole(request), self._spark)

    def observed(self, step: str) -> Mapping[str, int]:
        """The aggregates over the rows of a step that it says are observed, by their names."""
        if step in self._metrics:
            return self._metrics[step]
        # Spark's planner left the step out, for instance because it can't have rows.
        return self.aggregated(step, self._aggregates[step])

    def aggregated(self, relation: str, aggregates: Sequence[exp.Alias]) -> Mapping[str, int]:
        """Aggregates over the rows of a relation, by their names. The rows are computed for them."""
        rows = self._spark.table(relation)
        return rows.agg(*(sf.expr(each.sql("spark")) for each in aggregates)).collect()[0].asDict()

    def counted(self, changes: str) -> Mapping[str, int]:
        """The number of rows of a relation of changes, by their `_change_type`."""
        rows = self._spark.table(changes).groupBy(CHANGE_TYPE).agg(sf.count(sf.lit(1))).collect()
        return {row[0]: row[1] for row in rows}

    def values(self, relation: str) -> Mapping[str, int]:
        """The one row of a relation."""
        found: Mapping[str, int] = self._spark.table(relation).collect()[0].asDict()
        return found

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """The rows of a relation, by their columns' names; few."""
        return [each.asDict(recursive=True) for each in self._spark.table(relation).collect()]

    def action(self, changes: str, lake: LakeTable, position: int) -> Action:
        """The instant that writes a relation of changes into a table that was read at a position."""
        rows = self._spark.table(changes)
        return KeyedWrite(rows, lake, lake.schema(), "merge", source="pipeline", based_on=position).action()

    def replacing(self, rows: str, lake: LakeTable, position: int, *, whole: bool) -> Action:
        """The instant that replaces the partitions of a relation's rows, or the `whole` table, by these rows."""
        operation = "overwrite" if whole else "replace_partitions"
        found = self._spark.table(rows)
        return KeyedWrite(found, lake, lake.schema(), operation, source="pipeline", based_on=position).action()

    def rewriting(self, rows: str, lake: LakeTable, position: int, layout: Mapping[str, str]) -> Action:
        found = self._spark.table(rows)
        schema = lake.schema()
        keys = {each.name.lower() for each in schema.keys}
        columns = [each for each in found.schema if each.name.lower() not in keys]
        return KeyedWrite(
            found, lake, schema, "overwrite", source="pipeline", based_on=position, columns=columns, layout=layout
        ).action()

    def deliver(self, sink: Sink, lake: LakeTable, position: int, columns: Sequence[str]) -> None:
        """Gives a sink the rows that the instant at a position inserted or updated, as batch of that number.

        Raises whatever the sink does.
        """
        rows = read(self._spark, lake.reference, incremental=(position - 1, position), include_uncommitted=True)
        rows = _lower(rows).select(*map(quoted, columns))
        if sink.function is not None:
            sink.function(rows, position)
        else:
            assert sink.format is not None
            rows.write.format(sink.format).options(**sink.options).mode("append").save()

    def close(self) -> None:
        """Forgets all names. What was kept goes with them."""
        for name in self._views:
            self._spark.catalog.dropTempView(name)
        self._views.clear()
        self._changes.clear()

    def _bind(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)
        self._views.add(name)

    def _keep(self, rows: DataFrame) -> DataFrame:
        """The same rows, computed now.

        A checkpoint, since plans over kept rows then begin there. Plans over cached ones contain the plans of these,
        and theirs, and grow without bound. Executors that are lost make the refresh fail, which is begun again.
        """
        kept = rows.localCheckpoint(eager=True)
        self._metrics |= _metrics_of(rows)
        # Under new ids: those of the plan that made them may come from it once more in a join, and Spark 3.5 doesn't
        # tell them apart then.
        return kept.toDF(*kept.columns)


def _kind(rows: DataFrame) -> Column:
    """The column of changes that says what became of a row."""
    return sf.col(CHANGE_TYPE if CHANGE_TYPE in rows.columns else CHANGE)


def _lower(rows: DataFrame) -> DataFrame:
    return rows.toDF(*(name.lower() for name in rows.columns))


def _metrics_of(rows: DataFrame) -> dict[str, dict[str, int]]:
    """What Spark has observed while it computed rows, by the name of the observation.

    An `Observation` says the same. It waits for ever if the planner left it out.
    """
    execution: Any = rows._jdf.queryExecution()
    found = execution.observedMetrics().iterator()
    metrics = {}
    while found.hasNext():
        named = found.next()
        row = named._2()
        names = row.schema().fieldNames()
        metrics[named._1()] = {name: row.get(number) for number, name in enumerate(names)}
    return metrics


def _types(schema: StructType) -> dict[str, str]:
    fields: Any = schema.fields
    return {each.name.lower(): each.dataType.simpleString() for each in fields}


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

"""Runs the steps of refreshes in a Spark session of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType
from sqlglot import exp

from metastore.pipeline.deltas import Step
from metastore.pipeline.errors import BadQuery

DEFAULTS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
"""Settings by which Spark's lines differ, and places; a project's configuration may set others."""


class SparkEngine:
    """Relations and steps by their names, as temporary views. `close` forgets all of them."""

    def __init__(self, spark: SparkSession, configuration: Mapping[str, str]) -> None:
        """`configuration`: Spark's settings for queries. Those of the given session don't change."""
        self.spark = spark.newSession()
        for key, value in {**DEFAULTS, **configuration}.items():
            if self.spark.conf.isModifiable(key):
                self.spark.conf.set(key, value)
        self._views: list[str] = []
        self._kept: list[DataFrame] = []

    def bind(self, name: str, rows: DataFrame) -> None:
        """Gives rows a name."""
        rows.createOrReplaceTempView(name)
        self._views.append(name)

    def keep(self, rows: DataFrame) -> DataFrame:
        """The same rows, which are computed once."""
        kept = rows.persist()
        self._kept.append(kept)
        return kept

    def run(self, steps: Sequence[Step]) -> None:
        """Gives the steps' results their names. Nothing is computed before it is read."""
        for each in steps:
            rows = self.spark.sql(each.query.sql("spark"))
            self.bind(each.name, self.keep(rows) if each.keep else rows)

    def rows(self, name: str) -> DataFrame:
        """The rows of a relation or step."""
        return self.spark.table(name)

    def close(self) -> None:
        """Forgets all names, and what was kept."""
        for name in self._views:
            self.spark.catalog.dropTempView(name)
        for kept in self._kept:
            kept.unpersist()
        self._views.clear()
        self._kept.clear()

    # --- the analyser -----------------------------------------------------------------------------------------

    def declare(self, relation: str, types: Mapping[str, str]) -> None:
        """Makes an empty relation of some columns, by their types."""
        columns = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in types.items())
        self.bind(relation, self.spark.sql(f"SELECT {columns} WHERE false"))

    def types(self, steps: Sequence[Step], relation: str) -> Mapping[str, str]:
        """The types of a step's columns, by Spark's names. Raises BadQuery."""
        try:
            for each in steps:
                self.bind(each.name, self.spark.sql(each.query.sql("spark")))
        except PySparkException as error:
            raise BadQuery(first_line(error)) from None
        return _types(self.rows(relation).schema)

    def types_of_query(self, query: exp.Query) -> Mapping[str, str]:
        """The types of a query's columns. Raises BadQuery."""
        try:
            return _types(self.spark.sql(query.sql("spark")).schema)
        except PySparkException as error:
            raise BadQuery(first_line(error)) from None


def first_line(error: PySparkException) -> str:
    """What Spark says, without the plan."""
    return str(error).strip().split("\n", 1)[0]


def types_in(schema: StructType) -> dict[str, str]:
    """Columns in lower case, with Spark's names of their types."""
    return _types(schema)


def _types(schema: StructType) -> dict[str, str]:
    fields: Any = schema.fields
    return {each.name.lower(): _simple(each) for each in fields}


def _simple(field: StructField) -> str:
    return field.dataType.simpleString()

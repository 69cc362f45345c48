"""Runs in a process with Spark: refreshes layers, and compares them with what Spark itself makes of their queries.

It needs nothing but PySpark and this package, so that each of Spark's lines can run it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lake.layers.applying.beside import apply_beside
from lake.layers.applying.differing import differences_of
from lake.layers.applying.planning import plan_of
from lake.layers.applying.restating import restate
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.model import Definitions, Project, View
from lake.layers.errors import Place
from lake.layers.runner.results import RefreshResult
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import DEFAULTS, SparkEngine
from lake.layers.undo.rollback import Rollback
from lake.spark import read
from lake.spark.session_client import lake_table


class Layers:
    """Layers by their queries, in one database."""

    def __init__(
        self,
        spark: SparkSession,
        database: str,
        queries: Mapping[str, str],
        properties: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.spark = spark
        self.database = database
        self.queries = queries
        views = [
            View(name, text, Place(Path("layers.sql"), 1), properties=(properties or {}).get(name, {}))
            for name, text in queries.items()
        ]
        self.graph = graph_of(Project(Path(), database, database, {}, Definitions(views)))
        self.runner = Runner(
            self.graph, lambda name: lake_table(spark, name, None), lambda: SparkEngine(spark, {}), choose=False
        )

    def refresh(self, full: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Refreshes, compares, and says how each layer was refreshed, and how many rows changed."""
        return self._compared(self.runner.refresh(full))

    def restated(self, before: Mapping[str, str], by: Mapping[str, tuple[str, str, str]], *, apply: bool) -> Any:
        """Refreshes layers whose queries are others since some value: of a column, as text, and as Spark has it.

        `apply`: they were the ones of `before` for all rows by now.
        """
        for name, (column, since, _) in by.items() if apply else ():
            restate(self.runner, since, [name], column)
        result = self.runner.refresh()
        both = {
            name: (
                f"SELECT * FROM ({before[name]}) WHERE {column} < {value} OR {column} IS NULL"
                f" UNION ALL SELECT * FROM ({self.queries[name]}) WHERE {column} >= {value}"
            )
            for name, (column, _, value) in by.items()
        }
        self.queries = {**self.queries, **both}
        return self._compared(result)

    def differing_since(self, by: Mapping[str, tuple[str, str, str]]) -> dict[str, Any]:
        """How layers would differ whose queries are others since some value."""
        for name, (column, since, _) in by.items():
            restate(self.runner, since, [name], column)
        return {each.layer.partition(".")[2]: each.counts for each in differences_of(self.runner)}

    def applied_beside(self) -> dict[str, list[Any]]:
        """Applies other definitions beside the tables, compares, and says what became of each layer."""
        return self._compared(apply_beside(self.runner, plan_of(self.runner)))

    def planned(self) -> dict[str, list[Any]]:
        """What a plan says of each layer: what has changed, and what is computed."""
        return {
            each.layer.partition(".")[2]: [[str(change) for change in each.changes], str(each.computes)]
            for each in plan_of(self.runner)
        }

    def differing(self) -> dict[str, list[Any]]:
        """How layers differ: the counts, and the rows that are shown, as text."""
        return {
            each.layer.partition(".")[2]: [each.counts, [repr((one.before, one.now)) for one in each.samples]]
            for each in differences_of(self.runner)
        }

    def undo_last(self, table: str) -> dict[str, Any]:
        """Undoes the latest instant of a table, compares, and says what became of its rows, and of the layers."""
        last = lake_table(self.spark, f"{self.database}.{table}", None).position().last_completed
        assert last is not None
        with Rollback(self.runner, table, last) as rollback:
            [planned] = rollback.plan.tables
            return {"rows": dict(planned.rows), "layers": self._compared(rollback.apply())}

    def _compared(self, result: RefreshResult) -> dict[str, list[Any]]:
        wrong = {name: found for name in self.queries if (found := self._difference(name))}
        if wrong:
            raise AssertionError(f"not what Spark answers: {wrong}")
        return {each.layer.partition(".")[2]: [each.how, sum(each.changed.values())] for each in result.layers}

    def _difference(self, name: str) -> str:
        session = self.spark.newSession()
        for key, value in DEFAULTS.items():
            session.conf.set(key, value)
        node = self.runner.graph.node(name)
        for table in node.reads:
            rows = read(session, table, include_uncommitted=True)
            rows.drop("_row_key").createOrReplaceTempView(table.partition(".")[2])
        expected = _bag(session.sql(self.queries[name]).collect())
        found = _bag(read(session, f"{self.database}.{name}").drop("_row_key").collect())
        if found == expected:
            return ""
        return f"{name} misses {list((expected - found).items())[:3]}, has {list((found - expected).items())[:3]}"


def _bag(rows: list[Any]) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in rows)

"""Layers that are queries in a program, without files."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.model import Definitions, Project, View
from lake.layers.errors import Place
from lake.layers.runner.runner import Runner
from lake.layers.runner.spark_engine import SparkEngine
from lake.spark.session_client import lake_table


def runner_of(spark: SparkSession, project: str, database: str, queries: Mapping[str, str]) -> Runner:
    """What refreshes the layers of a project, each a query by its name. `database`: of names without one."""
    views = [View(layer, query, Place(Path(__file__), 1)) for layer, query in queries.items()]
    graph = graph_of(Project(Path(), project, database, {}, Definitions(views)))
    return Runner(graph, lambda table: lake_table(spark, table, None), lambda: SparkEngine(spark, {}))

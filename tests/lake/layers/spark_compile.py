"""Runs in a process with Spark: says what becomes of definitions over tables that needn't be there."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lake.layers.compiler.building import Table
from lake.layers.compiler.compiling import Compiled, compiled
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions import projects, python_files, sql_files
from lake.layers.definitions.model import Definitions, Project
from lake.layers.errors import BadDefinition
from lake.layers.runner.spark_engine import SparkEngine

Tables = Mapping[str, tuple[Mapping[str, str], list[str] | None]]
"""By `database.table`, the types of the columns, and the key; None for a table without one."""


def outcome(spark: SparkSession, tables: Tables, text: str, *, database: str = "shop", file: str = "a.sql") -> str:
    """Of definitions in a file: how each layer is refreshed, by its name, or why they are refused."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, file)
        path.write_text(text)
        into = Definitions()
        try:
            (python_files if file.endswith(".py") else sql_files).read(path, Path(file), into)
            return _shown(_compiled(spark, tables, Project(Path(), "shop", database, {}, into)))
        except BadDefinition as error:
            return str(error)


def of_project(spark: SparkSession, tables: Tables, directory: str) -> str:
    """The same of a project's directory."""
    return _shown(_compiled(spark, tables, projects.read_project(Path(directory))))


def _compiled(spark: SparkSession, tables: Tables, project: Project) -> list[Compiled]:
    engine = SparkEngine(spark, {})
    sources = {
        name: (Table(name, tuple(types), None if key is None else tuple(key), frozenset(key or ())), types)
        for name, (types, key) in tables.items()
    }
    try:
        return compiled(graph_of(project), sources, engine)
    finally:
        engine.close()


def _shown(found: list[Compiled]) -> str:
    return ", ".join(f"{each.name.partition('.')[2]} {each.kind}" for each in found)

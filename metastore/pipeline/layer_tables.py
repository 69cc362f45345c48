"""Makes the tables of layers, and checks those that are there already."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from metastore.client.lake import LakeTable
from metastore.formats.keyed_table import PRIMARY_KEY
from metastore.pipeline.compiling import Compiled
from metastore.pipeline.errors import BadDefinition
from metastore.pipeline.spark_engine import types_in
from metastore.spark.table_schema import columns_of, quoted
from metastore.wire.hive import NoSuchObjectException

PROJECT = "pipeline.project"
"""A property of layers' tables: the project that computes them."""


def check_table(spark: SparkSession, lake: LakeTable, made: Compiled, project: str) -> bool:
    """Whether a layer's table is there. Raises BadDefinition if it isn't what the definition says."""
    try:
        schema = lake.schema()
    except NoSuchObjectException:
        return False
    place, name = made.node.place, made.name
    owner = schema.properties.get(PROJECT)
    if owner != project:
        whose = f"belongs to the project {owner}" if owner else "isn't a layer"
        raise BadDefinition(place, f"there is a table {name}, which {whose}: give the layer another name")
    columns = columns_of(spark, schema)
    there = {**types_in(columns.data), **types_in(columns.keys)}
    if there != dict(made.types):
        raise BadDefinition(
            place, f"{name} has other columns now ({_difference(there, made.types)}): DROP TABLE {name}, and run again"
        )
    key = schema.properties.get(PRIMARY_KEY, "")
    partitions = tuple(each.name.lower() for each in schema.keys)
    if key != made.properties[PRIMARY_KEY] or partitions != made.node.partitions:
        raise BadDefinition(place, f"{name} has another key or other partitions now: DROP TABLE {name}, and run again")
    return True


def make_table(spark: SparkSession, lake: LakeTable, made: Compiled, project: str) -> None:
    """Makes a layer's table unless it is there."""
    if check_table(spark, lake, made, project):
        return
    database, _, table = made.name.partition(".")
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in made.types.items())
    properties = {**made.properties, PROJECT: project}
    listed = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in properties.items())
    partitioned = f"PARTITIONED BY ({', '.join(map(quoted, made.node.partitions))})" if made.node.partitions else ""
    comment = "" if made.node.comment is None else f"COMMENT {_text(made.node.comment)}"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(database)}")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {quoted(database)}.{quoted(table)} ({columns}) USING parquet {partitioned}"
        f" {comment} TBLPROPERTIES ({listed})"
    )


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _difference(there: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    gone = [f"-{name} {kind}" for name, kind in there.items() if wanted.get(name) != kind]
    come = [f"+{name} {kind}" for name, kind in wanted.items() if there.get(name) != kind]
    return ", ".join([*gone, *come][:6])

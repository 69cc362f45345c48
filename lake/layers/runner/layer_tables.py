"""Makes the tables of layers, and checks those that are there already."""

from collections.abc import Mapping

from lake.layers.compiler.compiling import ROW_KEYS, Compiled
from lake.layers.errors import BadDefinition
from lake.layers.runner.engine import Engine
from lake.layers.runner.sinks import DELIVERED
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

PROJECT = "pipeline.project"
"""A property of layers' tables: the project that computes them."""


def check_table(engine: Engine, lake: LakeTable, made: Compiled, project: str) -> bool:
    """Whether a layer's table is there. Raises BadDefinition if it isn't what the definition says.

    It may lack columns, which can be added.
    """
    try:
        schema = lake.schema()
    except NoSuchObjectException:
        return False
    place, name = made.node.place, made.name
    owner = schema.properties.get(PROJECT)
    if owner != project:
        whose = f"belongs to the project {owner}" if owner else "isn't a layer"
        raise BadDefinition(place, f"there is a table {name}, which {whose}: give the layer another name")
    there = engine.columns(schema)
    kept = {name: made.types.get(name) for name in there}
    if kept != {**there}:
        raise BadDefinition(
            place, f"{name} has other columns now ({_difference(there, made.types)}): DROP TABLE {name}, and run again"
        )
    key = schema.properties.get(PRIMARY_KEY, "")
    partitions = tuple(each.name.lower() for each in schema.keys)
    for what, before, now in (
        ("keyed", key, made.properties[PRIMARY_KEY]),
        ("partitioned", ",".join(partitions), ",".join(made.node.partitions)),
    ):
        if before != now:
            was = f"{name} was {what} by {before or 'nothing'}, and is by {now or 'nothing'} now"
            raise BadDefinition(place, f"{was}: DROP TABLE {name}, and run again")
    if made.node.waits_for_sources and schema.properties.get(COMMIT_MODE, "").lower() != CommitMode.MANUAL:
        raise BadDefinition(
            place,
            f"partitions of {name} were ready as they came: ALTER TABLE {name} SET TBLPROPERTIES ('{COMMIT_MODE}' ="
            " 'manual'), and run again",
        )
    return True


def make_table(engine: Engine, lake: LakeTable, made: Compiled, project: str) -> None:
    """Makes a layer's table, or its columns, unless they are there. Raises BadDefinition as `check_table`."""
    if not check_table(engine, lake, made, project):
        of_sink = {} if made.node.sink is None else {DELIVERED: "0"}
        engine.create_table(made, {**made.properties, PROJECT: project, **of_sink})
        check_table(engine, lake, made, project)
    _keep_row_keys(lake, made)
    there = engine.columns(lake.schema())
    if fresh := {name: kind for name, kind in made.types.items() if name not in there}:
        engine.add_columns(lake, fresh)


def _keep_row_keys(lake: LakeTable, made: Compiled) -> None:
    """Keeps in a table of an earlier release what its row keys are made of."""
    if made.row_keys is not None and lake.schema().properties.get(ROW_KEYS) != made.row_keys:
        keep_property(lake, ROW_KEYS, str(made.row_keys))


def _difference(there: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    gone = [f"-{name} {kind}" for name, kind in there.items() if wanted.get(name) != kind]
    come = [f"+{name} {kind}" for name, kind in wanted.items() if there.get(name) != kind]
    return ", ".join([*gone, *come][:6])

"""Makes the tables of layers, and checks those that are there already."""

from collections.abc import Mapping
from enum import Enum

from lake.client.lake_types import Schema
from lake.layers.compiler.compiling import ROW_KEYS, Compiled
from lake.layers.errors import BadDefinition
from lake.layers.runner.engine import Engine
from lake.layers.runner.sinks import DELIVERED
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import FEATURE, PRIMARY_KEY, TABLE_TYPE
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

PROJECT = "pipeline.project"
"""A property of layers' tables: the project that computes them."""

_SCHEMA_CHANGES, _ANY = "timeline.schema-changes", "any"
"""A property, and the value with which a completion may change the table's columns."""


class Fit(Enum):
    """How the table of a layer fits its definition."""

    MISSING = 1
    """There is none."""
    FITS = 2
    """It may lack columns, which can be added."""
    OTHER_COLUMNS = 3
    """It has columns that the definition doesn't have, or has as another type: all of it has to be rewritten."""


def check_table(engine: Engine, lake: LakeTable, made: Compiled, project: str, *, may_rewrite: bool = False) -> Fit:
    """How a layer's table fits. Raises BadDefinition if it isn't what the definition says.

    `may_rewrite`: it may have other columns, unless readers of single rows or partitions would be misled by that.
    """
    try:
        schema = lake.schema()
    except NoSuchObjectException:
        return Fit.MISSING
    place, name = made.node.place, made.name
    check_owner(schema, made, project)
    there = engine.columns(schema)
    kept = {name: made.types.get(name) for name in there}
    key = schema.properties.get(PRIMARY_KEY, "")
    partitions = tuple(each.name.lower() for each in schema.keys)
    fits = kept == {**there}
    may_rewrite = may_rewrite and not made.node.waits_for_sources and made.node.sink is None
    if not fits and not may_rewrite:
        raise BadDefinition(
            place,
            f"{name} has other columns now ({_difference(there, made.types)}): DROP TABLE {name}, and run again, or"
            f" rewrite it with --full-refresh {name}",
        )
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
    return Fit.FITS if fits else Fit.OTHER_COLUMNS


def check_owner(schema: Schema, made: Compiled, project: str) -> None:
    """Raises BadDefinition if the table of a layer's name isn't a layer of the project."""
    owner = schema.properties.get(PROJECT)
    if owner != project:
        whose = f"belongs to the project {owner}" if owner else "isn't a layer"
        raise BadDefinition(
            made.node.place, f"there is a table {made.name}, which {whose}: give the layer another name"
        )


def make_table(engine: Engine, lake: LakeTable, made: Compiled, project: str, *, may_rewrite: bool = False) -> bool:
    """Makes a layer's table, or its columns, unless they are there. Raises BadDefinition as `check_table`.

    Returns whether it has to be rewritten, with other columns. Until that is done it stays as it is.
    """
    fit = check_table(engine, lake, made, project, may_rewrite=may_rewrite)
    if fit is Fit.OTHER_COLUMNS:
        if lake.schema().properties.get(_SCHEMA_CHANGES) != _ANY:
            keep_property(lake, _SCHEMA_CHANGES, _ANY)
        return True
    if fit is Fit.MISSING:
        of_sink = {} if made.node.sink is None else {DELIVERED: "0"}
        engine.create_table(made, {**made.properties, PROJECT: project, **of_sink})
        check_table(engine, lake, made, project)
    keep_row_keys(lake, made)
    there = engine.columns(lake.schema())
    if fresh := {name: kind for name, kind in made.types.items() if name not in there}:
        engine.add_columns(lake, fresh)
    return False


def kept_properties(made: Compiled, there: Mapping[str, str]) -> dict[str, str]:
    """The properties that a definition gives, and that the table has otherwise: it keeps those that it was made with,
    '' where it has none. `there`: the table's. Its key is no such property."""
    wanted = {name: made.properties[name] for name in made.node.properties if name in made.properties}
    found = {name: there.get(name, "") for name in sorted(wanted.keys() - {PRIMARY_KEY})}
    found = {name: value.partition(FEATURE)[0] if name == TABLE_TYPE else value for name, value in found.items()}
    return {name: value for name, value in found.items() if value.strip().lower() != wanted[name].strip().lower()}


def keep_row_keys(lake: LakeTable, made: Compiled) -> None:
    """Keeps in a table what its row keys are made of."""
    if made.row_keys is not None and lake.schema().properties.get(ROW_KEYS) != made.row_keys:
        keep_property(lake, ROW_KEYS, str(made.row_keys))


def _difference(there: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    gone = [f"-{name} {kind}" for name, kind in there.items() if wanted.get(name) != kind]
    come = [f"+{name} {kind}" for name, kind in wanted.items() if there.get(name) != kind]
    return ", ".join([*gone, *come][:6])

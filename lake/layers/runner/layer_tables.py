"""Makes the tables of layers, and checks those that are there already."""

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import TypeVar

from lake.client.lake_types import Schema
from lake.layers.compiler.compiling import ROW_KEYS, Compiled
from lake.layers.compiler.layers import ROW_KEY
from lake.layers.errors import BadDefinition
from lake.layers.runner.engine import Engine
from lake.layers.runner.sinks import DELIVERED
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import BUCKET, BUCKET_KEY, FEATURE, PRIMARY_KEY, TABLE_TYPE
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

Found = TypeVar("Found")

PROJECT = "pipeline.project"
"""A property of layers' tables: the project that computes them."""

BUCKETS = frozenset({BUCKET, BUCKET_KEY})
"""Properties by which rows are placed: a table keeps those that it was made with, until all of it is rewritten."""

_SCHEMA_CHANGES, _ANY = "timeline.schema-changes", "any"
"""A property, and the value with which a completion may change the table's columns."""


class Fit(Enum):
    """How the table of a layer fits its definition."""

    MISSING = 1
    """There is none."""
    FITS = 2
    """It may lack columns, which can be added."""
    OTHER_COLUMNS = 3
    """It has columns that the definition doesn't have, or has as another type, or another key, or other buckets: all of
    it has to be rewritten."""


def if_there(lake: LakeTable, read: Callable[[LakeTable], Found]) -> Found | None:
    """What is read of a table; None if there is no such table, as before the refresh that makes it."""
    try:
        return read(lake)
    except NoSuchObjectException:
        return None


def check_table(engine: Engine, lake: LakeTable, made: Compiled, project: str, *, may_rewrite: bool = False) -> Fit:
    """How a layer's table fits. Raises BadDefinition if it isn't what the definition says.

    `may_rewrite`: it may have other columns, another key and other buckets, unless readers of single rows or partitions
    would be misled by that. Otherwise it keeps its buckets.
    """
    schema = if_there(lake, LakeTable.schema)
    if schema is None:
        return Fit.MISSING
    place, name = made.node.place, made.name
    check_owner(schema, made, project)
    there = engine.columns(schema)
    key, wanted = schema.properties.get(PRIMARY_KEY, ""), made.properties[PRIMARY_KEY]
    partitions = tuple(each.name.lower() for each in schema.keys)
    has_columns = {name: made.types.get(name) for name in there} == {**there}
    can_rewrite = not made.node.waits_for_sources and made.node.sink is None
    if not has_columns and not (can_rewrite and may_rewrite):
        raise BadDefinition(
            place,
            f"{name} has other columns now ({_difference(there, made.types)}): DROP TABLE {name}, and run again, or"
            f" rewrite it with --full-refresh {name}",
        )
    for what, before, now, can in (
        # No metastore of Hive's changes the columns that partition a table.
        ("partitioned", ",".join(partitions), ",".join(made.node.partitions), False),
        ("keyed", key, wanted, can_rewrite),
    ):
        if before != now and not (can and may_rewrite):
            was = f"{name} was {what} by {before or 'nothing'}, and is by {now or 'nothing'} now"
            other = f", or rewrite it with --full-refresh {name}" if can else ""
            raise BadDefinition(place, f"{was}: DROP TABLE {name}, and run again{other}")
    if made.node.waits_for_sources and schema.properties.get(COMMIT_MODE, "").lower() != CommitMode.MANUAL:
        raise BadDefinition(
            place,
            f"partitions of {name} were ready as they came: ALTER TABLE {name} SET TBLPROPERTIES ('{COMMIT_MODE}' ="
            " 'manual'), and run again",
        )
    keeps_buckets = not (can_rewrite and may_rewrite) or not BUCKETS & {*kept_properties(made, schema.properties)}
    return Fit.FITS if has_columns and key == wanted and keeps_buckets else Fit.OTHER_COLUMNS


def is_rewritable(made: Compiled, full: Collection[str]) -> bool:
    """Whether a layer's table may be rewritten, with other columns: those of captured tables follow the source's."""
    return made.node.is_captured or made.name in full


def layout_of(made: Compiled) -> dict[str, str]:
    """The properties of a table that is rewritten which its new files have to do with: its key, and buckets that the
    definition gives."""
    given = {name: made.properties[name] for name in made.node.properties if name in BUCKETS}
    return {**given, PRIMARY_KEY: made.properties[PRIMARY_KEY]}


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

    Returns whether it has to be rewritten, with other columns, another key or other buckets. Until that is done it
    stays as it is.
    """
    fit = check_table(engine, lake, made, project, may_rewrite=may_rewrite)
    if fit is Fit.OTHER_COLUMNS:
        if lake.schema().properties.get(_SCHEMA_CHANGES) != _ANY:
            keep_property(lake, _SCHEMA_CHANGES, _ANY)
        if ROW_KEY not in engine.columns(lake.schema()):
            keep_row_keys(lake, made)  # before it gets such a key: to a table with another one it means nothing
        return True
    if fit is Fit.MISSING:
        of_sink = {} if made.node.sink is None else {DELIVERED: "0"}
        engine.create_table(lake.name, made, {**made.properties, PROJECT: project, **of_sink})
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

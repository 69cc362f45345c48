"""The tables that a refresh reads, as relations of Spark's: states, and changes between two of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from sqlglot import exp

from metastore.client.lake import LakeTable
from metastore.keyed.changes import CHANGE_TYPE, ChangeType
from metastore.pipeline.deltas import Relations, Step
from metastore.pipeline.spark_engine import SparkEngine
from metastore.spark.lake_reading import ADDED, CHANGE, REMOVED, read

_OLD = [str(ChangeType.DELETE), str(ChangeType.UPDATE_PREIMAGE)]
_NEW = [str(ChangeType.INSERT), str(ChangeType.UPDATE_POSTIMAGE)]


class SourceChange(NamedTuple):
    """A table between two positions."""

    table: str
    after: int
    up_to: int


class SourceRelations:
    """Relations of tables. They are read when a step names them, by `bind`: most steps don't need a state before."""

    def __init__(self, engine: SparkEngine, lakes: Mapping[str, LakeTable], positions: Mapping[str, int]) -> None:
        """`positions`: of each table as of the moment that is read."""
        self._engine = engine
        self._lakes = lakes
        self._positions = positions
        self._states: dict[str, tuple[str, int]] = {}
        self._sides: dict[str, tuple[SourceChange, Sequence[str]]] = {}
        self._changes: dict[SourceChange, DataFrame] = {}
        self._bound: set[str] = set()

    def rows_at(self, table: str, position: int) -> str:
        """The relation of a table's rows at a position."""
        name = f"_at_{position}_{_plain(table)}"
        self._states[name] = (table, position)
        return name

    def between(self, change: SourceChange) -> Relations:
        """A table's relations from one position to another."""
        begin = f"_from_{change.after}_to_{change.up_to}_{_plain(change.table)}"
        old, new = f"{begin}_old", f"{begin}_new"
        self._sides[old] = (change, [*_OLD, REMOVED])
        self._sides[new] = (change, [*_NEW, ADDED])
        return Relations(self.rows_at(change.table, change.after), self.rows_at(change.table, change.up_to), old, new)

    def has_changes(self, table: str, after: int) -> bool:
        """Whether rows of a table have changed since a position; a compaction alone changes none."""
        up_to = self._positions[table]
        return after != up_to and not self._changed(SourceChange(table, after, up_to)).isEmpty()

    def bind(self, steps: Sequence[Step]) -> None:
        """Reads the relations that steps name."""
        named = {table.name for each in steps for table in each.query.find_all(exp.Table)}
        for name in sorted(named - self._bound):
            if name in self._states:
                table, position = self._states[name]
                self._engine.bind(name, self._at(table, position))
            elif name in self._sides:
                change, kinds = self._sides[name]
                rows = self._changed(change)
                mark = CHANGE_TYPE if CHANGE_TYPE in rows.columns else CHANGE
                self._engine.bind(name, rows.where(sf.col(mark).isin([*kinds])))
            else:
                continue
            self._bound.add(name)

    def _at(self, table: str, position: int) -> DataFrame:
        lake = self._lakes[table]
        return _lower(read(self._engine.spark, lake.full_name, as_of=position, include_uncommitted=True))

    def _changed(self, change: SourceChange) -> DataFrame:
        if change not in self._changes:
            lake = self._lakes[change.table]
            is_keyed = lake.schema().keyed_table() is not None
            rows = read(
                self._engine.spark,
                lake.full_name,
                incremental=(change.after, change.up_to),
                changes=is_keyed,
                with_removed=not is_keyed,
                include_uncommitted=True,
            )
            self._changes[change] = self._engine.keep(_lower(rows))
        return self._changes[change]


def _lower(rows: DataFrame) -> DataFrame:
    return rows.toDF(*(name.lower() for name in rows.columns))


def _plain(name: str) -> str:
    """A table's name as a part of others."""
    return "".join(each if each.isalnum() else "_" for each in name)

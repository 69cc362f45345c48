"""What a refresh needs of an engine that computes: Spark, or another that understands the steps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlglot import exp

from lake.client.lake_types import Schema
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.defined import Comparer
from lake.layers.compiler.deltas import Step
from lake.layers.definitions.model import Sink
from lake.layers.runner.pruning import Within
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeTable


class Changed(NamedTuple):
    """How many rows of a table went, and how many came; an update is one of each."""

    old: int
    new: int


class SourceChange(NamedTuple):
    """A table between two positions."""

    table: str
    after: int
    up_to: int


class Engine(Comparer, Protocol):
    """Relations by their names, steps over them, and their results, for one refresh. `close` forgets all.

    `errors` are the exceptions that it raises when it can't compute. `threads`: how many may use it at a time.
    """

    errors: tuple[type[Exception], ...]
    threads: int

    def columns(self, schema: Schema) -> Mapping[str, str]:
        """A table's columns, with those of its partitions, in lower case; Spark's names of their types."""

    def create_table(self, name: str, made: Compiled, properties: Mapping[str, str]) -> None:
        """Makes a layer's table, and its database, unless they are there."""

    def add_columns(self, lake: LakeTable, columns: Mapping[str, str]) -> None:
        """Adds columns to a table, by their types in Spark's names; its rows have NULL there."""

    def bind_state(self, name: str, lake: LakeTable, position: int, part: Within | None = None) -> None:
        """Makes a table's rows at a position a relation, or those in a part of it."""

    def bind_changes(self, old: str, new: str, lake: LakeTable, after: int, up_to: int) -> None:
        """Makes the rows of a table that changed between two positions relations, as they were and as they are."""

    def changed_rows(self, lake: LakeTable, after: int, up_to: int) -> Changed:
        """How many rows of a table changed between two positions."""

    def run(self, steps: Sequence[Step]) -> None:
        """Makes the results of steps relations."""

    def counted(self, changes: str) -> Mapping[str, int]:
        """The number of rows of a relation of changes, by their `_change_type`."""

    def observed(self, step: str) -> Mapping[str, int]:
        """The aggregates over the rows of a step that it says are observed, by their names.

        It's called once a step that is kept has read all of these rows.
        """

    def aggregated(self, relation: str, aggregates: Sequence[exp.Alias]) -> Mapping[str, int]:
        """Aggregates over the rows of a relation, by their names. The rows are computed for them."""

    def values(self, relation: str) -> Mapping[str, int]:
        """The one row of a relation."""

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """The rows of a relation, by their columns' names; few."""

    def action(self, changes: str, lake: LakeTable, position: int) -> Action:
        """The instant that writes a relation of changes into a table that was read at a position."""

    def replacing(self, rows: str, lake: LakeTable, position: int, *, whole: bool) -> Action:
        """The instant that replaces the partitions of a relation's rows, or the `whole` table, by these rows."""

    def rewriting(self, rows: str, lake: LakeTable, position: int, layout: Mapping[str, str]) -> Action:
        """The instant that replaces a whole table that was read at a position, with its columns, by a relation.

        `layout`: the table's primary key and buckets from then on, by their properties; others stay."""

    def deliver(self, sink: Sink, lake: LakeTable, position: int, columns: Sequence[str]) -> None:
        """Gives a sink the rows that the instant at a position inserted or updated, as batch of that number.

        Raises whatever the sink does.
        """

    def close(self) -> None:
        """Forgets all relations."""

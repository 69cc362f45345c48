"""What a project defines: views, streaming tables, sinks, flows, and what rows are expected."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from lake.layers.errors import BadDefinition, Place
from lake.protocol.formats.keyed_table import BUCKET, TABLE_TYPE

REFRESH_POLICY = "refresh_policy"
"""The table property that says how a materialized view may be refreshed."""

READINESS = "readiness"
"""The table property that says when partitions turn ready: `none`, as they are made, or `sources`."""

CAPTURED_PROPERTIES = (BUCKET, TABLE_TYPE)
"""The table properties that a captured table may have: where the rows of its tables are."""


class RefreshPolicy(StrEnum):
    """How a materialized view may be refreshed. The names are Databricks'."""

    AUTOMATIC = "auto"  # by increments where they can be computed
    INCREMENTAL_STRICT = "incremental_strict"  # by increments, else the definition is refused
    FULL = "full"  # always computed as a whole


class Violation(StrEnum):
    """What becomes of rows that don't meet an expectation."""

    KEEP = "keep"  # they are counted
    DROP = "drop"  # they are left out
    FAIL = "fail"  # the refresh fails
    HOLD = "hold"  # their partition doesn't turn ready
    QUARANTINE = "quarantine"  # they go to a table of their own


@dataclass(frozen=True)
class Expectation:
    """A condition over the columns of a layer's rows. A row for which it is NULL doesn't meet it."""

    name: str
    condition: str
    violation: Violation


@dataclass(frozen=True)
class View:
    """A query with a name: a materialized view, or a temporary one, which is computed where it is used.

    `name` is as the definition has it. `line` is where its query begins. `is_captured`: it belongs to a captured table,
    whose columns follow those of the source.
    """

    name: str
    query: str
    place: Place
    is_temporary: bool = False
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    is_captured: bool = False

    @property
    def policy(self) -> RefreshPolicy:
        """How it may be refreshed. Raises BadDefinition."""
        text = self.properties.get(REFRESH_POLICY, RefreshPolicy.AUTOMATIC).strip().lower()
        try:
            return RefreshPolicy(text)
        except ValueError:
            choices = ", ".join(RefreshPolicy)
            raise BadDefinition(self.place, f"{REFRESH_POLICY}={text[:50]}: expected {choices}") from None


@dataclass(frozen=True)
class Sink:
    """Something outside that gets rows: a format of Spark's with its options, or a function.

    `function` is called with the rows of a batch, as a DataFrame, and the batch's number.
    """

    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    function: Callable[[Any, int], None] | None = None


@dataclass(frozen=True)
class StreamingTable:
    """A table that flows fill: one that applies a log, or any number that append. What comes goes to `sink`, too.

    `is_captured`: as of a view.
    """

    name: str
    place: Place
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    sink: Sink | None = None
    is_captured: bool = False


@dataclass(frozen=True)
class AutoCdcFlow:
    """Changes in `source` that are applied to the streaming table `target`, by their keys and in their sequence.

    `scd_type` 1 keeps the latest row of each key, 2 all versions with the range in which each was valid. `columns` are
    the source's columns to keep, all without `except_columns` if None. `deletes` is a condition over the source's rows.
    """

    name: str
    target: str
    source: str
    keys: tuple[str, ...]
    sequence_by: str
    place: Place
    deletes: str | None = None
    columns: tuple[str, ...] | None = None
    except_columns: tuple[str, ...] = ()
    scd_type: int = 1


@dataclass(frozen=True)
class AppendFlow:
    """A query whose rows the streaming table or sink `target` gets, beside those of its other flows."""

    name: str
    target: str
    query: str
    place: Place


@dataclass(frozen=True)
class CapturedTable:
    """A source's table that `metastore capture` brings into the raw table `raw`, as a table `name` of the project.

    `table`: its name in the source, with its schema. `policy`: the file that says what becomes of changes of its
    columns, within the project; None for the default policy. `quarantines`: changes with values that don't fit go to a
    table of their own. `properties`: where the rows of its tables are, as `CAPTURED_PROPERTIES` names them. What
    it is defined by depends on how the source's table has changed, so that it is looked up for each refresh.
    """

    name: str
    raw: str
    table: str
    place: Place
    policy: str | None = None
    quarantines: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Definitions:
    """All that the files of a project define, in the order in which they were read."""

    views: list[View] = field(default_factory=list)
    streaming_tables: list[StreamingTable] = field(default_factory=list)
    flows: list[AutoCdcFlow | AppendFlow] = field(default_factory=list)
    captured: list[CapturedTable] = field(default_factory=list)


@dataclass(frozen=True)
class Project:
    """A project: what its `spark-pipeline.yml` says, and what its files define.

    `database` is that of names without one. `configuration` are Spark's settings.
    """

    directory: Path
    name: str
    database: str
    configuration: Mapping[str, str]
    definitions: Definitions

"""Commits DataFrames to keyed tables: one, or several tables together."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from lake.client.lake_types import EVERYWHERE, AsOf, Completion, Moment, Schema, StreamBatch, from_millis
from lake.protocol.formats.keyed_table import with_features
from lake.protocol.formats.spark_schema import SCHEMA
from lake.protocol.formats.write_defaults import event_time_of, source_of
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.jvm_writer import check_session, write_buckets
from lake.spark.keyed.batches import prepare
from lake.spark.session_client import lake_table
from lake.spark.table_schema import rewritten
from lake.spark.written import Written, refresh_listings
from lake.tables.keyed_tables import layout_of
from lake.tables.keyed_writes import Action, Commit, KeyedOperation, check_operation, committed, completion_of
from lake.tables.lake import LakeTable, Writing

TableChange: TypeAlias = tuple[DataFrame, str, KeyedOperation]
"""Rows, the table `database.table`, and what to do with them."""


def write_together(
    changes: Sequence[TableChange],
    *,
    based_on: Moment | None = None,
    source: str | None = None,
    batch: StreamBatch | None = None,
    heartbeat_seconds: float = 20.0,
    uri: str | None = None,
) -> list[Written]:
    """Changes rows of several keyed tables in one transaction: readers see all of the changes, or none.

    Operations are those of `write` by key. The results are in the order of the changes, at most one per table. With
    `based_on`, the moment as of which the tables were read, a change of the same buckets since is a conflict; without,
    all rows are merged again. `batch` is as of `write`; when it is repeated, the tables must be the same. Raises what
    `write` raises; then nothing is written.
    """
    if not changes:
        return []
    writes = []
    for rows, table, operation in changes:
        lake = lake_table(rows.sparkSession, table, uri)
        schema = lake.schema()
        times = event_time_of(schema.properties, None, operation)
        named = source_of(schema.properties, source, "spark")
        writes.append(KeyedWrite(rows, lake, schema, operation, event_time=times, source=named, based_on=based_on))
    done = committed([each.action() for each in writes], heartbeat_seconds, batch)
    return [write.result(each) for write, each in zip(writes, done, strict=True)]


class KeyedWrite:
    """Rows that are to be written into a keyed table. Raises UnfitRows, NotKeyed."""

    def __init__(
        self,
        rows: DataFrame,
        lake: LakeTable,
        schema: Schema,
        operation: str,
        *,
        event_time: str | None = None,
        source: str = "spark",
        based_on: AsOf | None = None,
        columns: Sequence[StructField] | None = None,
        layout: Mapping[str, str] | None = None,
    ) -> None:
        """`operation`: upsert, delete, merge, update_columns, overwrite or replace_partitions.

        `columns`: the table's data columns from then on, of an overwrite; None for those that it has. `layout`: its
        primary key and buckets from then on, by their properties, together with `columns`; those that aren't named
        stay. Other options are those of `write`.
        """
        assert columns is None or operation == "overwrite"
        assert not layout or columns is not None
        self._before = schema
        self._changes_columns = columns is not None
        if columns is not None:
            schema = rewritten(schema, columns)
        self._layout = {name: value for name, value in (layout or {}).items() if value != schema.properties.get(name)}
        if self._layout:
            wanted = with_features({**schema.properties, **self._layout}, schema.properties)
            schema = schema._replace(properties=wanted)
        check_session(rows.sparkSession)
        self._replaces = operation in ("overwrite", "replace_partitions")
        if not self._replaces:
            check_operation(layout_of(lake.name, schema, "").table, operation, event_time)
        self._prepared = prepare(rows, lake, schema, "upsert" if self._replaces else operation)  # type: ignore[arg-type]
        self._lake = lake
        self._operation = operation
        self._event_time = event_time
        self._source = source
        self._based_on = based_on
        self._rows = 0
        self._rows_of: Mapping[str, int] = {}

    def action(self) -> Action:
        """The instant that writes them."""
        merges = self._prepared.table.is_merge_on_read
        name = "replacecommit" if self._replaces else "deltacommit" if merges else "commit"
        position = None if self._based_on is None else self._lake.position_of(self._based_on)
        properties = self._prepared.schema.properties
        remove = HadoopFiles(self._prepared.rows.sparkSession).remove_all
        return Action(self._lake, name, self._attempt, position, properties, lambda: self._rows_of, remove)

    def result(self, commit: Commit) -> Written:
        """What the commit has written."""
        refresh_listings(self._prepared.rows.sparkSession, self._lake)
        files = commit.completion.added
        rows = 0 if commit.instant is None else self._rows
        partitions = sorted({each.partition for each in files})
        return Written(commit.instant, rows, len(files), sum(each.size for each in files), partitions)

    def _attempt(self, writing: Writing) -> Completion:
        prepared = self._prepared
        table = prepared.table
        written = write_buckets(
            prepared.rows,
            self._lake,
            writing,
            prepared.schema.properties,
            prepared.columns,
            table.partition_columns,
            event_time=self._event_time,
            replaces=self._replaces,
            updated=prepared.updated,
        )
        self._rows, self._rows_of = written.rows, written.rows_of
        least = written.least_event_time
        made = completion_of(
            written.files,
            self._operation,
            written.rows,
            self._source,
            least_event_time=None if least is None else from_millis(least),
            conditional=self._based_on is not None,
            writes_changelog=table.writes_changelog and not self._replaces,
            table=table,
            read_groups=() if self._replaces else written.read_groups,
        )
        if not self._replaces:
            return made
        replaced, where = {each.partition for each in written.files}, None
        if self._operation == "overwrite":
            replaced |= {*self._lake.partitions()} if prepared.schema.keys else {""}
            where = EVERYWHERE
        made = dataclasses.replace(made, replaced_partitions=sorted(replaced), replaced_where=where)
        return self._with_columns(made) if self._changes_columns else made

    def _with_columns(self, made: Completion) -> Completion:
        """The completion, which gives the table its columns and layout. It holds for those that the table had."""
        schema, before = self._prepared.schema, self._before.keyed_table()
        assert before is not None
        own = {key: value for key, value in schema.properties.items() if key.startswith(SCHEMA)}
        own |= self._layout
        return dataclasses.replace(made, columns=schema.columns, schema_properties=own or None, layout=before.layout())

"""Refreshes real keyed tables on a running server, with DuckDB in the place of Spark: quick, and without Java."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from lake.client.lake_types import Schema
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.deltas import Step
from lake.layers.compiler.graph import Graph
from lake.layers.definitions.model import Sink
from lake.layers.runner.engine import Changed
from lake.layers.runner.pruning import Within
from lake.layers.runner.runner import Runner
from lake.protocol.formats.partition_names import make_name
from lake.protocol.hive import AlreadyExistsException, FieldSchema
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.hashing import buckets_of
from lake.tables.keyed_writes import Action, _Change
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.layers.answers import ANSWERS
from tests.lake.layers.duck_sql import Wholes, duck_text
from tests.support import builders


class DuckEngine:
    """Relations and steps as tables and views of DuckDB."""

    errors: tuple[type[Exception], ...] = (duckdb.Error,)
    threads = 1

    def __init__(self, client: LakeClient) -> None:
        self._client = client
        self._connection = duckdb.connect(config={"threads": 1})
        self._observed: dict[str, tuple[exp.Alias, ...]] = {}
        self._wholes = Wholes()

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._wholes.remembered(request, ANSWERS.read(request))

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        return ANSWERS.same(before, now)

    def columns(self, schema: Schema) -> Mapping[str, str]:
        return {each.name.lower(): each.type.lower() for each in (*schema.columns, *schema.keys)}

    def create_table(self, name: str, made: Compiled, properties: Mapping[str, str]) -> None:
        database, _, table = name.partition(".")
        create_table(self._client, database, table, made.types, properties, made.node.partitions)

    def add_columns(self, lake: LakeTable, columns: Mapping[str, str]) -> None:
        database, _, name = lake.name.partition(".")
        altered = lake.describe()
        altered.sd.cols += [FieldSchema(name=each, type=kind) for each, kind in columns.items()]
        self._client.call(lambda thrift: thrift.alter_table(database, name, altered))

    def bind_state(self, name: str, lake: LakeTable, position: int, part: Within | None = None) -> None:
        table = lake.schema().keyed_table()
        if table is None:
            raise AssertionError("keyless tables are read on Spark alone")
        rows = lake.scan(as_of=position, include_uncommitted=True).to_arrow()
        if part is not None and part.groups is not None:
            groups = [table.file_group(number) for number in buckets_of(rows, table).to_pylist()]
            rows = rows.filter(pa.array([each in part.groups for each in groups], pa.bool_()))
        if part is not None and part.partitions is not None:
            keys = table.partition_columns
            names = [make_name(keys, [str(row[key]) for key in keys]) for row in rows.select([*keys]).to_pylist()]
            rows = rows.filter(pa.array([each in part.partitions for each in names], pa.bool_()))
        self._bind(name, rows)

    def bind_changes(self, old: str, new: str, lake: LakeTable, after: int, up_to: int) -> None:
        changes = lake.changes(after, up_to, include_uncommitted=True).to_arrow()
        self._bind(f"{old}_all", changes)
        for name, kinds in ((old, "'delete', 'update_preimage'"), (new, "'insert', 'update_postimage'")):
            query = f"SELECT * FROM {old}_all WHERE {CHANGE_TYPE} IN ({kinds})"
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")

    def changed_rows(self, lake: LakeTable, after: int, up_to: int) -> Changed:
        kinds = lake.changes(after, up_to, include_uncommitted=True).to_arrow().column(CHANGE_TYPE).to_pylist()
        new = sum(each in ("insert", "update_postimage") for each in kinds)
        return Changed(len(kinds) - new, new)

    def run(self, steps: Sequence[Step]) -> None:
        for each in steps:
            self._observed[each.name] = each.observed
            kind = "TABLE" if each.keep else "VIEW"
            text = self._wholes.text(each.whole) if each.whole else duck_text(each.query)
            self._connection.execute(f"CREATE OR REPLACE TEMP {kind} {each.name} AS {text}")

    def observed(self, step: str) -> Mapping[str, int]:
        return self.aggregated(step, self._observed[step])

    def aggregated(self, relation: str, aggregates: Sequence[exp.Alias]) -> Mapping[str, int]:
        return self._one_row(duck_text(exp.select(*aggregates).from_(relation)))

    def counted(self, changes: str) -> Mapping[str, int]:
        return dict(self._connection.execute(f"SELECT {CHANGE_TYPE}, count(*) FROM {changes} GROUP BY 1").fetchall())

    def values(self, relation: str) -> Mapping[str, int]:
        return self._one_row(f"FROM {relation}")

    def _one_row(self, query: str) -> Mapping[str, int]:
        found = self._connection.execute(query)
        assert found.description is not None
        [row] = found.fetchall()
        return dict(zip((each[0] for each in found.description), row, strict=True))

    def rows(self, relation: str) -> list[dict[str, Any]]:
        return self._connection.sql(f"FROM {relation}").to_arrow_table().to_pylist()

    def action(self, changes: str, lake: LakeTable, position: int) -> Action:
        rows = self._connection.sql(f"FROM {changes}").to_arrow_table()
        return _Change(lake, rows, "merge", None, "pipeline", position).action()

    def replacing(self, rows: str, lake: LakeTable, position: int, *, whole: bool) -> Action:
        raise AssertionError("partitions are replaced on Spark alone")

    def rewriting(self, rows: str, lake: LakeTable, position: int, layout: Mapping[str, str]) -> Action:
        raise AssertionError("tables are rewritten on Spark alone")

    def deliver(self, sink: Sink, lake: LakeTable, position: int, columns: Sequence[str]) -> None:
        if sink.function is None:
            raise AssertionError("formats are written on Spark alone")
        changes = lake.changes(position - 1, position, include_uncommitted=True).to_arrow().to_pylist()
        rows = [row for row in changes if row[CHANGE_TYPE] in ("insert", "update_postimage")]
        sink.function([{name: row[name] for name in columns} for row in rows], position)

    def close(self) -> None:
        self._connection.close()

    def _bind(self, name: str, rows: pa.Table) -> None:
        self._connection.register(f"{name}_arrow", rows)
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {name}_arrow")


def create_table(
    client: LakeClient,
    database: str,
    name: str,
    columns: Mapping[str, str],
    properties: Mapping[str, str],
    partitions: Sequence[str] = (),
) -> LakeTable:
    """Makes a Parquet table, and its database, unless they are there. Columns have Hive's types."""
    with suppress(AlreadyExistsException):
        client.call(lambda thrift: thrift.create_database(builders.database(database)))
    data = [f"{each}:{kind}" for each, kind in columns.items() if each not in partitions]
    keys = tuple(f"{each}:{columns[each]}" for each in partitions)
    made = builders.table(database, name, keys=keys, sd=builders.parquet(*data), parameters=dict(properties))
    with suppress(AlreadyExistsException):
        client.call(lambda thrift: thrift.create_table(made))
    return client.table(f"{database}.{name}")


def runner(graph: Graph, client: LakeClient) -> Runner:
    """A runner of a project on DuckDB."""
    return Runner(graph, client.table, lambda: DuckEngine(client), choose=False)

"""Runs the steps of refreshes on DuckDB, in memory: thousands of them in a minute."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from lake.layers.compiler.building import Builder, Table
from lake.layers.compiler.deltas import Deltas, Relations, Step
from lake.layers.compiler.layers import Layer, keyed, layer_of, recomputed, refresh, relations_after
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from tests.lake.layers.answers import ANSWERS
from tests.lake.layers.duck_sql import Wholes, duck_text, duck_type

DATABASE = "shop"

Row = tuple[Any, ...]


class Warehouse:
    """Source tables and layers in one database of DuckDB. Layers are refreshed together, as of one state."""

    def __init__(self, tables: Mapping[str, tuple[str, tuple[str, ...] | None]]) -> None:
        """`tables`: by name, the columns with their types, and the primary key, None for a bag of rows."""
        self.connection = duckdb.connect(config={"threads": 1})
        self.tables: dict[str, Table] = {}
        self.layers: list[Layer] = []
        self.queries: dict[str, str] = {}
        self._types: dict[str, dict[str, str]] = {}
        self._wholes = Wholes()
        self.sources = [*tables]
        self._fresh: set[str] = set()
        self._number = 0
        self._any = random.Random(len(tables))
        self._made: list[tuple[str, str]] = []
        for name, (columns, key) in tables.items():
            for relation in _relations(name):
                self.connection.execute(f"CREATE TABLE {relation} ({columns})")
            names = tuple(each.split()[0] for each in columns.split(", "))
            self.tables[f"{DATABASE}.{name}"] = Table(f"{DATABASE}.{name}", names, key, frozenset(key or ()))
            kinds = {"VARCHAR": "string", "BIGINT": "bigint"}
            self._types[f"{DATABASE}.{name}"] = {
                each.split()[0]: kinds[each.split()[1]] for each in columns.split(", ")
            }

    def add(self, name: str, text: str) -> Layer:
        """Makes a layer of a query over the tables and the layers before it."""
        request = {
            "queries": [text],
            "views": {},
            "database": DATABASE,
            "conditions": [],
            "tables": {
                each: {
                    "columns": ", ".join(f"`{column}` {kind}" for column, kind in self._types[each].items()),
                    "hidden": sorted(self._types[each].keys() - {*table.columns}),
                }
                for each, table in self.tables.items()
            },
        }
        answer = self._wholes.remembered(request, ANSWERS.read(request))
        types = {**answer["types"]}
        built = Builder(self.tables, types).built(answer)
        layer = layer_of(f"{DATABASE}.{name}", keyed(built, types), types)
        self.tables[layer.name] = Table(layer.name, (*layer.outputs,), layer.known_by, layer.non_null)
        kinds = {column: types[own] for column, own in layer.outputs.items()}
        self._types[layer.name] = {each: kinds.get(each, "string") for each in layer.columns}
        self.layers.append(layer)
        self.queries[name] = text
        self._fresh.add(layer.name)
        columns = ", ".join(f'"{each}" {duck_type(kind)}' for each, kind in self._types[layer.name].items())
        for relation in _relations(name):
            self.connection.execute(f"CREATE TABLE {relation} ({columns})")
        return layer

    def change(self, name: str, rows: Iterable[Row]) -> None:
        """Gives a source table other rows from the next refresh on."""
        relations = _relations(name)
        self._fill(relations.after, rows)
        for relation, one, two in (
            (relations.old, relations.before, relations.after),
            (relations.new, relations.after, relations.before),
        ):
            self.connection.execute(f"DELETE FROM {relation}")
            self.connection.execute(f"INSERT INTO {relation} (FROM {one} EXCEPT ALL FROM {two})")

    def refresh(self, *, full: bool = False) -> dict[str, list[Row]]:
        """Brings all layers up to date. Returns their changes, with the kind as the last column."""
        self._number += 1
        relations = {f"{DATABASE}.{each}": _relations(each) for each in self.sources}
        changed = {f"{DATABASE}.{each}" for each in self.sources if self._differs(each)}
        found: dict[str, list[Row]] = {}
        for layer in self.layers:
            name = layer.name.split(".")[1]
            stored = _relations(name).before
            grown = {table for table in changed if self._only_grew(relations[table])}
            # Whether less is read is another matter than whether the rows are right, so that it's any.
            deltas = Deltas(
                relations,
                changed,
                f"r{self._number}_{name}",
                grown=grown,
                prunes=lambda *_: self._any.random() < 0.5,
                is_exact=self._any.random() < 0.5,
            )
            if full or layer.name in self._fresh:
                changes: str | None = recomputed(layer, deltas, stored)
            else:
                changes = refresh(layer, deltas, stored, merge=True)
            relations[layer.name] = relations_after(layer, deltas, stored, changes)
            self._run(deltas.steps)
            found[name] = []
            if changes is not None:
                columns = ", ".join(f'"{each}"' for each in layer.columns)
                query = f"SELECT {columns}, {CHANGE_TYPE} FROM {changes}"
                found[name] = self.connection.execute(query).fetchall()
                if found[name]:
                    changed.add(layer.name)
        self._settle(relations)
        return found

    def rows(self, name: str) -> list[Row]:
        """The rows of a layer."""
        return self.connection.execute(f"SELECT * FROM {_relations(name).before}").fetchall()

    def answer(self, name: str) -> list[Row]:
        """The rows that the layer's query has now, by DuckDB alone, over the other tables and layers."""

        def replace(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Table) and f"{DATABASE}.{node.name}" in self.tables:
                return exp.to_table(_relations(node.name).before, alias=node.alias_or_name)
            return node

        tree = sqlglot.parse_one(self.queries[name], read="spark").transform(replace)
        return self.connection.execute(tree.sql("duckdb")).fetchall()

    def _settle(self, relations: Mapping[str, Relations]) -> None:
        for layer in self.layers:
            name = layer.name.split(".")[1]
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE settling AS FROM {relations[layer.name].after}")
            columns = ", ".join(f'"{each}"' for each in layer.columns)
            self.connection.execute(f"CREATE OR REPLACE TABLE {name}_next AS SELECT {columns} FROM settling")
        for layer in self.layers:
            name = layer.name.split(".")[1]
            self.connection.execute(f"DELETE FROM {_relations(name).before}")
            self.connection.execute(f"INSERT INTO {_relations(name).before} FROM {name}_next")
        for name in self.sources:
            one = _relations(name)
            self.connection.execute(f"DELETE FROM {one.before}; INSERT INTO {one.before} FROM {one.after}")
            self.connection.execute(f"DELETE FROM {one.old}; DELETE FROM {one.new}")
        self._fresh.clear()
        for kind, name in self._made:
            self.connection.execute(f"DROP {kind} IF EXISTS {name}")
        self._made.clear()

    def _only_grew(self, table: Relations) -> bool:
        return not self.connection.execute(f"FROM {table.old} LIMIT 1").fetchall()

    def _differs(self, name: str) -> bool:
        one = _relations(name)
        return any(self.connection.execute(f"FROM {each} LIMIT 1").fetchall() for each in (one.old, one.new))

    def _fill(self, relation: str, rows: Iterable[Row]) -> None:
        self.connection.execute(f"DELETE FROM {relation}")
        for row in rows:
            self.connection.execute(f"INSERT INTO {relation} VALUES ({', '.join('?' * len(row))})", row)

    def _run(self, steps: Sequence[Step]) -> None:
        for each in steps:
            kind = "TABLE" if each.keep else "VIEW"
            text = self._wholes.text(each.whole) if each.whole else duck_text(each.query)
            if each.only_if is not None and not self.connection.execute(f"FROM {each.only_if} LIMIT 1").fetchall():
                if each.otherwise is None:
                    continue
                text = duck_text(each.otherwise)
            try:
                self.connection.execute(f"CREATE TEMP {kind} {each.name} AS {text}")
                self._made.insert(0, (kind, each.name))
            except duckdb.Error as error:
                raise AssertionError(f"{text}\n{error}") from error


def check(warehouse: Warehouse, layer: Layer, before: Sequence[Row], changes: Sequence[Row]) -> None:
    """Raises AssertionError unless a layer has the query's answer, and its changes lead there from what it had."""
    name = layer.name.split(".")[1]
    rows = Counter(map(_comparable, warehouse.rows(name)))
    visible = Counter({_comparable(row): 1 for row in ()})
    for row, count in rows.items():
        visible[row[: len(layer.outputs)]] += count
    expected = Counter(map(_comparable, warehouse.answer(name)))
    assert visible == expected, f"missing {expected - visible}, too many {visible - expected}"
    keys = [[row[layer.columns.index(each)] for each in layer.key] for row in rows]
    assert len({tuple(each) for each in keys}) == len(keys), "several rows have the same key"
    old, new = Counter(map(_comparable, before)), Counter[Row]()
    gone: Counter[Row] = Counter()
    for *values, kind in changes:
        is_old = kind in (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
        (gone if is_old else new)[_comparable(values)] += 1
    assert not gone - old, f"changes remove rows that weren't there: {gone - old}"
    assert old - gone + new == rows, "the changes don't lead to the rows"
    assert not gone & new, f"changes of rows that are as they were: {gone & new}"


def _comparable(row: Sequence[Any]) -> Row:
    return tuple(
        round(each, 9) if isinstance(each, float) else str(each) if isinstance(each, list) else each for each in row
    )


def _relations(name: str) -> Relations:
    return Relations(f"{name}_before", f"{name}_after", f"{name}_old", f"{name}_new")

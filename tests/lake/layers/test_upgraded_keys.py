"""Layers that the release candidate 0.1.0rc1 made go on with the keys that they have.

`candidate_layers.json` has what that release stored: rows with their hidden keys, of queries for which it found other
keys than today's code finds, and of some others.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.layers.compiler.compiling import ROW_KEYS
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.runner.commits import LayerCommit, complete_together
from lake.layers.runner.layer_tables import PROJECT
from lake.layers.runner.records import Record, last_read
from lake.layers.runner.runner import Runner
from lake.protocol.formats.keyed_table import BUCKET, PRIMARY_KEY
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_writes import _Change
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.layers import duck_lake
from tests.lake.layers.conftest import NUMBERS
from tests.lake.layers.duck import Warehouse
from tests.lake.layers.projects import write_project
from tests.lake.layers.test_increments import TABLES

STORED: Mapping[str, Any] = json.loads(Path(__file__).with_name("candidate_layers.json").read_text())
LAYERS: Mapping[str, Mapping[str, Any]] = STORED["layers"]
NUMBERED = {"exists", "not_in", "scalar_subquery", "exists_hidden", "scalar_correlated"}
"""Layers whose row keys were all values and a number, and for which today's code finds a key."""
HIDDEN = {"above_hidden", "commas_above"}
"""Layers of which another row may come that looks like one that goes."""
TYPES = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string(), "boolean": pa.bool_()}

Row = tuple[Any, ...]


class Upgraded:
    """A lake as the candidate left it: sources, and layers that were up to date with them."""

    def __init__(self, client: LakeClient, directory: Path) -> None:
        self.client = client
        self.database = f"upgraded_{next(NUMBERS)}"
        self.directory = directory
        self.rows = {name: [tuple(row) for row in rows] for name, rows in STORED["tables"].items()}
        self.sources = {name: self._source(name) for name in self.rows}
        self.layers: dict[str, LakeTable] = {}
        for made in self.runner().compile():
            name = made.name.partition(".")[2]
            self.layers[name] = self._layer(name, made.types)
        self.before = {name: table.position().position for name, table in self.layers.items()}

    def runner(self) -> Runner:
        text = ";\n".join(f"CREATE MATERIALIZED VIEW `{name}` AS {each['query']}" for name, each in LAYERS.items())
        directory = write_project(self.directory, {"layers.sql": text}, name="upgraded", database=self.database)
        return duck_lake.runner(graph_of(read_project(directory)), self.client)

    def _source(self, name: str) -> LakeTable:
        columns = columns_of(name)
        properties = {PRIMARY_KEY: ",".join(TABLES[name][1] or ())}
        table = duck_lake.create_table(self.client, self.database, name, columns, properties)
        table.upsert(arrow(self.rows[name], columns))
        return table

    def _layer(self, name: str, types: Mapping[str, str]) -> LakeTable:
        """A layer's table, with the record of a refresh that is of another definition for today's code."""
        stored = LAYERS[name]
        columns = {each: types.get(each, "string") for each in stored["columns"]}
        properties = {BUCKET: "1", PRIMARY_KEY: ",".join(stored["key"]), PROJECT: "upgraded"}
        table = duck_lake.create_table(self.client, self.database, name, columns, properties)
        rows = arrow([tuple(row) for row in stored["rows"]], columns)
        changes = rows.append_column(CHANGE_TYPE, pa.array(["insert"] * rows.num_rows, pa.string()))
        read = {f"{self.database}.{each}": last_read(source, 1) for each, source in self.sources.items()}
        record = Record("upgraded", 1, "that of the candidate", read, "full")
        action = _Change(table, changes, "merge", None, "pipeline", 0).action()
        complete_together(self.client, [LayerCommit(name, action, record, [])], 20.0, lambda _: None)
        return table

    def change(self, name: str, came: list[Row], gone: list[Row]) -> None:
        """Upserts some rows of a source and deletes others."""
        table, width = self.sources[name], len(TABLES[name][1] or ())
        columns = columns_of(name)
        table.upsert(arrow(came, columns))
        table.delete(arrow(gone, columns))
        keys = {row[:width] for row in (*came, *gone)}
        self.rows[name] = [*(row for row in self.rows[name] if row[:width] not in keys), *came]

    def answers(self) -> dict[str, Counter[Row]]:
        """What the queries come to, by DuckDB alone."""
        warehouse = Warehouse({name: TABLES[name] for name in self.rows})
        for name, rows in self.rows.items():
            warehouse.change(name, rows)
        for name, each in LAYERS.items():
            warehouse.add(name, each["query"])
        warehouse.refresh()
        return {name: Counter(warehouse.answer(name)) for name in LAYERS}

    def stored(self, name: str, position: int | None = None) -> Counter[Row]:
        """The rows of a layer with their keys, hidden ones last."""
        rows = self.layers[name].scan(as_of=position).to_arrow().to_pylist()
        return Counter(tuple(row[each] for each in LAYERS[name]["columns"]) for row in rows)

    def check(self) -> None:
        """The layers have the answers, and readers of changes saw nothing of rows that were and are there."""
        answers = self.answers()
        for name in LAYERS:
            width = len([each for each in LAYERS[name]["columns"] if not each.startswith("_")])
            visible = Counter(row[:width] for row in self.stored(name).elements())
            assert visible == answers[name], name
            before, now = self.stored(name, self.before[name]), self.stored(name)
            gone, came = Counter[Row](), Counter[Row]()
            for each in self.layers[name].changes(self.before[name]).to_arrow().to_pylist():
                is_old = each[CHANGE_TYPE] in ("delete", "update_preimage")
                (gone if is_old else came)[tuple(each[column] for column in LAYERS[name]["columns"])] += 1
            assert (gone, came) == (before - now, now - before), name
            if name not in HIDDEN:
                assert not {row[:width] for row in gone} & {row[:width] for row in came}, "what is equal has its key"


def columns_of(source: str) -> dict[str, str]:
    """The columns of a source, with their types."""
    kinds = {"BIGINT": "bigint", "VARCHAR": "string"}
    return {name: kinds[kind] for name, kind in (each.split() for each in TABLES[source][0].split(", "))}


def arrow(rows: list[Row], columns: Mapping[str, str]) -> pa.Table:
    values = [pa.array([row[place] for row in rows], TYPES[kind]) for place, kind in enumerate(columns.values())]
    return pa.table(values, names=[*columns])


@pytest.fixture
def upgraded(client: LakeClient, tmp_path: Path) -> Upgraded:
    return Upgraded(client, tmp_path)


@pytest.mark.long
def test_layers_go_on_with_their_keys(upgraded: Upgraded) -> None:
    results = upgraded.runner().refresh().layers
    assert {each.how for each in results} == {"full"}
    assert {each.layer: each.changed for each in results if each.changed} == {}
    upgraded.check()
    kept = {name for name, table in upgraded.layers.items() if table.schema().properties.get(ROW_KEYS) == "numbered"}
    assert kept == NUMBERED
    upgraded.change("orders", [(1, 2, 5, "Rome"), (20, 0, 3, "Oslo"), (21, 4, 0, "Oslo")], [(3, None, None, None)])
    upgraded.change("customers", [(2, "b", "Rome"), (7, "a", "Oslo")], [(4, "", "")])
    results = upgraded.runner().refresh().layers
    whole = {each.layer.partition(".")[2] for each in results if each.how == "full"}
    assert whole <= {"not_in", "scalar_subquery"}, "others are computed by increments"
    upgraded.check()


@pytest.mark.long
def test_the_first_refresh_writes_the_differences(upgraded: Upgraded) -> None:
    upgraded.change("orders", [(1, 2, 5, "Rome"), (20, 0, 3, "Oslo"), (21, 4, 0, "Oslo")], [(3, None, None, None)])
    upgraded.change("customers", [(2, "b", "Rome"), (7, "a", "Oslo")], [(4, "", "")])
    assert {each.how for each in upgraded.runner().refresh().layers} == {"full"}
    upgraded.check()

"""Changelogs of keyed tables: changes that are written with the rows are those that comparing snapshots finds."""

import pyarrow as pa
import pytest

from tests.client.conftest import NewTable
from tests.client.test_keyed_tables import run
from tests.keyed.histories import TABLES

FITTING = [("lookup", engine) for engine in TABLES] + [("input", "latest")]


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(("producer", "engine"), FITTING)
def test_histories(new_table: NewTable, producer: str, engine: str, kind: str) -> None:
    run(new_table, engine, kind, 7, steps=10, producer=producer)


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    run(new_table, engine, kind, 8, steps=12, key="id", producer="lookup")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(("producer", "engine"), FITTING)
def test_many_histories(new_table: NewTable, producer: str, engine: str, kind: str) -> None:
    for seed in range(60):
        run(new_table, engine, kind, 2000 + seed, steps=5 + seed % 20, producer=producer)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_many_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(60):
        run(new_table, engine, kind, 3000 + seed, steps=5 + seed % 20, key="id", producer="lookup")

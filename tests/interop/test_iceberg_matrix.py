"""Every engine that can be had reads the same tables by the REST catalog: each answer is ours, row by row.

What an engine lacks is in `lacks` of its class in iceberg_engines.py, with the reason. docs/iceberg.md has the matrix.
"""

import datetime
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from lake.client.lake_types import Completion
from lake.protocol.lake import ReopenPartitionsRequest
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from metastore.iceberg.routes import BASE
from tests.interop import iceberg_engines as engines
from tests.interop.iceberg_engines import Engine, Jars, Row, of_arrow
from tests.interop.test_iceberg import RUNTIME
from tests.interop.trino import object_store
from tests.lake.client.test_column_ids import alter
from tests.support import builders
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
COLUMNS = ("id:bigint", "name:string", "price:decimal(10,2)", "day:date")
READERS = ("pyiceberg", "duckdb", "spark", "polars", "daft", "clickhouse", "trino")


@dataclass(frozen=True)
class Place:
    """A server whose warehouse is somewhere. `storage`: Trino's settings for it."""

    server: MetastoreServer
    lake: LakeClient
    storage: Mapping[str, str]

    @property
    def uri(self) -> str:
        return f"{http_address(self.server)}{BASE}"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    data = tmp_path_factory.mktemp("matrix") / "data"
    with MetastoreServer(data, "--http-port", "0", "--workers", "1") as server, LakeClient(server.uri) as lake:
        yield Place(server, lake, {})


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    options = ("--http-port", "0", "--workers", "1", "--warehouse-dir", "s3a://lake/warehouse")
    data = tmp_path_factory.mktemp("matrix_s3") / "data"
    with object_store() as settings, MetastoreServer(data, *options) as server, LakeClient(server.uri) as lake:
        yield Place(server, lake, settings)


@pytest.fixture(scope="module", params=READERS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    jars: Jars = request.getfixturevalue("class_path")
    name = request.param
    place: Place = request.getfixturevalue("s3" if name in ("clickhouse", "trino") else "local")
    directory = tmp_path_factory.mktemp(name)
    if name == "spark":
        (jar,) = jars(RUNTIME)
        with engines.spark(place.uri, place.server.uri, jar, directory) as session:
            yield session
    elif name == "trino":
        with engines.trino(place.uri, place.storage, jars, directory) as trino:
            yield trino
    elif name in ("pyiceberg", "duckdb"):
        yield {"pyiceberg": engines.PyIceberg, "duckdb": engines.DuckDB}[name](place.uri)
    else:
        remote = {
            "polars": lambda: engines.Polars(place.uri),
            "daft": lambda: engines.Daft(place.uri),
            "clickhouse": lambda: engines.ClickHouse(place.uri, f"{place.storage['s3.endpoint']}/lake"),
        }[name]()
        yield remote
        remote.close()


@pytest.fixture
def place(engine: Engine, request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(engine.place)
    return found


def keyed(place: Place, name: str = "t", database: str | None = None, **properties: str) -> LakeTable:
    """A new keyed table that is shown as Iceberg, partitioned by `part`."""
    if database is None:
        database = f"matrix_{next(NUMBERS)}"
        place.lake.call(lambda client: client.create_database(builders.database(database)))
    own = {"primary-key": "id,part", "iceberg.expose": "true", **properties}
    made = builders.table(database, name, keys=("part:string",), sd=builders.parquet(*COLUMNS), parameters=own)
    place.lake.call(lambda client: client.create_table(made))
    return place.lake.table(f"{database}.{name}")


def batch(*ids: int, part: str = "a", value: str = "x") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"{value}{each}" if each % 5 else None for each in ids],
            "price": pa.array([Decimal(f"{each}.{each % 100:02}") for each in ids], pa.decimal128(10, 2)),
            "day": [datetime.date(2026, 1, 1) + datetime.timedelta(days=each) for each in ids],
            "part": [part] * len(ids),
        }
    )


def ours(table: LakeTable, **scan: Any) -> list[Row]:
    return of_arrow(table.scan(**scan).to_arrow())


def show(place: Place, table: LakeTable) -> int:
    """Has the catalog list the present snapshot, as any engine's first read does. Returns its id."""
    current = RestCatalog("show", uri=place.uri).load_table(table.name).current_snapshot()
    assert current is not None
    return current.snapshot_id


def test_lists(engine: Engine, place: Place) -> None:
    table = keyed(place)
    database = table.name.partition(".")[0]
    hidden = keyed(place, "hidden", database, **{"iceberg.expose": "false"})
    hidden.upsert(batch(1))
    table.upsert(batch(1))
    assert engine.tables(database) == {"t"}


def test_upserts_and_deletes(engine: Engine, place: Place) -> None:
    table = keyed(place)
    table.upsert(batch(*range(1, 11)))
    assert engine.rows(table.name) == ours(table)
    table.upsert(batch(3, 4, 11, value="y"))
    table.upsert(batch(*range(20, 26), part="10:30 ü/b"))
    assert engine.rows(table.name) == ours(table)
    table.delete(batch(1, 2, 11).select(["id", "part"]))
    found = ours(table)
    assert engine.rows(table.name) == found
    assert len(found) == 14


def test_conditions(engine: Engine, place: Place) -> None:
    table = keyed(place)
    for number, part in enumerate(("a", "b", "10:30 ü/b")):
        table.upsert(batch(*range(number * 10, number * 10 + 10), part=part))
    found = ours(table)
    for where, place_of in ((("part", "10:30 ü/b"), 4), (("id", 13), 0), (("name", "x7"), 1), (("part", "none"), 4)):
        assert engine.rows(table.name, where=where) == [row for row in found if row[place_of] == where[1]], where


def test_moments(engine: Engine, place: Place) -> None:
    table = keyed(place)
    shown = []
    for value in "xyz":
        table.upsert(batch(1, 2, ord(value), value=value))
        shown.append(show(place, table))
    for position, snapshot in enumerate(shown, 1):
        assert engine.rows(table.name, snapshot) == ours(table, as_of=position)


def test_partitions_that_are_not_ready(engine: Engine, place: Place) -> None:
    table = keyed(place)
    table.upsert(batch(1, 2))
    table.upsert(batch(3, 4, part="b"))
    request = ReopenPartitionsRequest(table.reference, names=["part=a"])
    place.lake.call(lambda client: client.lake_reopen_partitions(request))
    found = ours(table)
    assert [row[0] for row in found] == [3, 4]
    assert engine.rows(table.name) == found


def test_branches_and_tags(engine: Engine, place: Place) -> None:
    engine.needs("refs")
    table = keyed(place)
    instant = table.upsert(batch(1, 2)).instant
    assert instant is not None
    show(place, table)
    saved = table.begin("savepoint", timestamp=instant.timestamp, state="inflight").instant
    table.complete(saved, Completion())
    table.upsert(batch(2, 3, part="b", value="y"))
    request = ReopenPartitionsRequest(table.reference, names=["part=a"])
    place.lake.call(lambda client: client.lake_reopen_partitions(request))
    assert engine.rows(table.name, "uncommitted") == ours(table, include_uncommitted=True)
    assert engine.rows(table.name, f"savepoint-{instant.timestamp}") == ours(table, as_of=1)


def test_compactions(engine: Engine, place: Place) -> None:
    table = keyed(place, **{"table-type": "merge-on-read"})
    table.upsert(batch(1, 2, 3))
    table.upsert(batch(2, 4, value="y"))
    table.delete(batch(1).select(["id", "part"]))
    planned = plan_compaction(table)
    assert planned.instant is not None
    run_compaction(table, planned.instant.timestamp)
    assert [row[0] for row in ours(table)] == [2, 3, 4]
    assert engine.rows(table.name) == ours(table)


def test_columns_that_change(engine: Engine, place: Place) -> None:
    table = keyed(place)
    table.upsert(batch(1, 2))
    alter(table, COLUMNS[0], "title:string", *COLUMNS[2:])
    alter(table, COLUMNS[0], "title:string", *COLUMNS[2:], "extra:int")
    table.upsert(batch(2, 3, value="y").rename_columns(["id", "title", "price", "day", "part"]))
    alter(table, COLUMNS[0], "title:string", *COLUMNS[2:])
    alter(table, *COLUMNS)  # a file has the column under each of its names
    found = ours(table)
    assert [row[1] for row in found] == ["x1", "y2", "y3"]
    assert engine.rows(table.name) == found


def test_a_name_that_comes_again(engine: Engine, place: Place) -> None:
    engine.needs("names that come again")
    table = keyed(place)
    table.upsert(batch(1, 2))
    alter(table, COLUMNS[0], *COLUMNS[2:])
    alter(table, *COLUMNS)
    found = ours(table)
    assert {row[1] for row in found} == {None}
    assert engine.rows(table.name) == found
    table.upsert(batch(2, 3, value="y"))
    assert engine.rows(table.name) == ours(table)


def test_tables_that_are_renamed_and_made_again(engine: Engine, place: Place) -> None:
    table = keyed(place)
    table.upsert(batch(1, 2))
    assert engine.rows(table.name) == ours(table)
    database = table.name.partition(".")[0]
    renamed = place.lake.call(lambda client: client.get_table(database, "t"))
    renamed.tableName = "other"
    place.lake.call(lambda client: client.alter_table(database, "t", renamed))
    again = keyed(place, "t", database)
    again.upsert(batch(7, value="z"))
    assert engine.rows(again.name) == ours(again)
    other = place.lake.table(f"{database}.other")
    assert engine.rows(other.name) == ours(other)
    place.lake.call(lambda client: client.drop_table(database, "t", True))
    assert engine.tables(database) == {"other"}
    with pytest.raises(Exception, match=r"(?i)exist|not found|unknown"):
        engine.rows(again.name)

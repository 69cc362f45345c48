"""Hive tables without a timeline as PyIceberg and DuckDB read them. The server shows all tables that don't say no."""

import datetime
import itertools
import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import SerDeInfo, StorageDescriptor
from lake.protocol.lake import CommitPartitionsRequest, ReopenPartitionsRequest, TableReference
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import NUMBERS, Duck
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path

ORC_INPUT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
COLUMNS = ("id:bigint", "name:string")
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    options = ("--workers", "1", "--http-port", "0", "--iceberg-expose")
    with MetastoreServer(tmp_path_factory.mktemp("hive_tables") / "data", *options) as server:
        yield Catalog(server)


@dataclass
class Hive:
    """One table, and its rows as they are read."""

    rest: Catalog
    client: ThriftClient
    ours: RestCatalog
    database: str

    @property
    def name(self) -> str:
        return f"{self.database}.t"

    @property
    def place(self) -> Path:
        return Path(local_path(self.client.get_table(self.database, "t").sd.location))

    def load(self) -> Table:
        return self.ours.load_table(self.name)

    def rows(self, snapshot: int | None = None) -> Rows:
        found = self.load().scan(snapshot_id=snapshot).to_arrow().to_pylist()
        return sorted(tuple(each.values()) for each in found)

    def add(self, value: str, *ids: int, file: str = "a.parquet", ready: bool = True) -> Path:
        """A partition with a file."""
        place = self.place / f"part={value}"
        written = write(place / file, *ids)
        sd = builders.parquet(*COLUMNS, location=f"file:{place}")
        parameters = {"commit": "true" if ready else "false"}
        self.client.add_partition(builders.partition(self.database, "t", value, sd=sd, parameters=parameters))
        return written


def write(file: Path, *ids: int, **columns: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    names = columns or {"id": "id", "name": "name"}
    rows = pa.table([pa.array(ids, pa.int64()), pa.array([f"n{each}" for each in ids])], [*names.values()])
    (pq.write_table if file.suffix == ".parquet" else orc.write_table)(rows, str(file))
    return file


def of(part: str, *ids: int) -> Rows:
    return [(each, f"n{each}", part) for each in ids]


@pytest.fixture
def hive(rest: Catalog, client: ThriftClient, ours: RestCatalog) -> Hive:
    """A table with the partition key `part`."""
    return made(rest, client, ours)


def made(rest: Catalog, client: ThriftClient, ours: RestCatalog, *keys: str, sd: Any = None, **fields: Any) -> Hive:
    database = f"hive_{next(NUMBERS)}"
    client.create_database(builders.database(database))
    given = sd or builders.parquet(*COLUMNS)
    client.create_table(builders.table(database, "t", keys=keys or ("part:string",), sd=given, **fields))
    return Hive(rest, client, ours, database)


def test_partitions_and_files(hive: Hive, duck: Duck) -> None:
    assert hive.rows() == []
    hive.add("a", 1, 2)
    hive.add("b", 3)
    write(hive.place / "part=b" / "b.parquet", 4)
    assert hive.rows() == [*of("a", 1, 2), *of("b", 3, 4)]
    assert in_duck(duck, hive) == hive.rows()
    assert in_duck(duck, hive, "WHERE part = 'b' AND id > 3") == of("b", 4)
    [planned] = hive.load().scan(row_filter=EqualTo("id", 4)).plan_files()  # bounds come from footers
    assert planned.file.record_count == 1
    assert hive.ours.list_tables(hive.database) == [(hive.database, "t")]


def in_duck(duck: Duck, hive: Hive, where: str = "") -> Rows:
    return sorted(duck.connection.execute(f"SELECT * FROM lake.{hive.name} {where}").fetchall())


def test_what_hive_does_not_read_is_not_shown(hive: Hive, duck: Duck) -> None:
    hive.add("a", 1)
    write(hive.place / "part=a" / "_hidden.parquet", 2)
    write(hive.place / "part=a" / ".hidden.parquet", 3)
    write(hive.place / "part=a" / "_temporary" / "0" / "x.parquet", 4)
    write(hive.place / "part=no-partition" / "x.parquet", 5)
    (hive.place / "part=a" / "empty").touch()
    (hive.place / "part=a" / "_SUCCESS").touch()
    assert hive.rows() == in_duck(duck, hive) == of("a", 1)


def test_a_snapshot_is_a_set_of_files(hive: Hive, duck: Duck) -> None:
    first = hive.add("a", 1)
    one = hive.load()
    assert hive.load().metadata_location == one.metadata_location
    write(hive.place / "part=a" / "b.parquet", 2)
    two = hive.load()
    numbers = [each.snapshot_id for each in two.history()]
    assert numbers[0] == one.current_snapshot().snapshot_id != numbers[1]
    assert hive.rows(numbers[0]) == of("a", 1)
    assert hive.rows(numbers[1]) == of("a", 1, 2)
    found = duck.connection.execute(f"SELECT * FROM lake.{hive.name} AT (VERSION => {numbers[0]})").fetchall()
    assert found == of("a", 1)
    # The same set again is the same snapshot.
    (hive.place / "part=a" / "b.parquet").rename(hive.place / "part=a" / ".b")
    assert hive.load().current_snapshot().snapshot_id == numbers[0]
    (hive.place / "part=a" / ".b").rename(hive.place / "part=a" / "b.parquet")
    assert hive.load().current_snapshot().snapshot_id == numbers[1]
    # A file that was overwritten is another, under the same name and of the same size.
    status = first.stat()
    write(first, 7)
    os.utime(first, ns=(status.st_atime_ns, status.st_mtime_ns + 5_000_000))
    assert first.stat().st_size == status.st_size
    assert hive.rows() == of("a", 2, 7)
    after = hive.load()
    assert after.current_snapshot().snapshot_id not in numbers
    assert len(after.history()) == 1  # what is gone can't be read as of then


def test_an_overwritten_file_has_its_new_number_of_rows(hive: Hive, duck: Duck) -> None:
    file = hive.add("a", 1, 2, 3)
    assert len(hive.rows()) == 3
    write(file, 4)
    assert [each.file.record_count for each in hive.load().scan().plan_files()] == [1]
    assert hive.rows() == in_duck(duck, hive) == of("a", 4)


def test_uncommitted_partitions_have_a_branch(hive: Hive, duck: Duck) -> None:
    hive.add("a", 1)
    hive.add("b", 2, ready=False)
    assert hive.rows() == in_duck(duck, hive) == of("a", 1)
    branch = hive.load().snapshot_by_name("uncommitted")
    assert branch is not None
    assert hive.rows(branch.snapshot_id) == [*of("a", 1), *of("b", 2)]
    found = duck.connection.execute(f"SELECT * FROM lake.{hive.name} AT (VERSION => {branch.snapshot_id})").fetchall()
    assert sorted(found) == [*of("a", 1), *of("b", 2)]


def test_a_dropped_partition_ends_snapshots_with_it(hive: Hive) -> None:
    hive.add("a", 1)
    hive.add("b", 2)
    assert len(hive.rows()) == 2
    hive.client.drop_partition(hive.database, "t", ["b"], False)
    assert hive.rows() == of("a", 1)
    assert len(hive.load().history()) == 1


def test_columns_are_found_by_name(hive: Hive, duck: Duck) -> None:
    hive.add("a", 1)
    write(hive.place / "part=a" / "upper.parquet", 2, id="ID", name="NAME")
    write(hive.place / "part=a" / "turned.parquet", 3, x="id", y="name")
    assert hive.rows() == in_duck(duck, hive) == of("a", 1, 2, 3)
    before = hive.load()
    table = hive.client.get_table(hive.database, "t")
    table.sd.cols = builders.columns("id:bigint", "other:string")
    hive.client.alter_table(hive.database, "t", table)
    assert hive.rows() == [(each, None, "a") for each in (1, 2, 3)]
    after = hive.load()
    ids = {each.name: each.field_id for each in after.schema().fields}
    assert ids["id"] == before.schema().find_field("id").field_id
    assert ids["other"] not in {each.field_id for each in before.schema().fields}
    assert len(after.history()) == 1


def test_orc(rest: Catalog, client: ThriftClient, ours: RestCatalog) -> None:
    columns = ("id:bigint", "name:string", "at:timestamp")
    formats = {
        "inputFormat": ORC_INPUT,
        "serdeInfo": SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    }
    table = made(rest, client, ours, "part:int", sd=StorageDescriptor(cols=builders.columns(*columns), **formats))
    place = table.place / "part=7"
    place.mkdir(parents=True)
    at = datetime.datetime(2026, 1, 31, 12, 30)
    orc.write_table(pa.table({"id": [1, 2], "name": ["x", None], "at": pa.array([at, None])}), f"{place}/000000_0")
    sd = StorageDescriptor(cols=builders.columns(*columns), location=f"file:{place}", **formats)
    client.add_partition(builders.partition(table.database, "t", "7", sd=sd))
    assert [each.file.record_count for each in table.load().scan().plan_files()] == [2]
    assert table.rows() == [(1, "x", at, 7), (2, None, None, 7)]
    orc.write_table(pa.table({"_col0": [3], "_col1": ["y"]}), f"{place}/000001_0")
    assert "no names of columns" in why(table)
    Path(place, "000001_0").write_bytes(b"ORC" * 100)
    assert "no ORC file" in why(table)


def why(hive: Hive) -> str:
    """How a table is refused."""
    status, _, text = hive.rest.refused("GET", f"hive/namespaces/{hive.database}/tables/t")
    assert status == 400
    return text


def test_without_partitions(rest: Catalog, client: ThriftClient, ours: RestCatalog, duck: Duck) -> None:
    client.create_database(builders.database(database := f"hive_{next(NUMBERS)}"))
    client.create_table(builders.table(database, "t", sd=builders.parquet(*COLUMNS)))
    table = Hive(rest, client, ours, database)
    write(table.place / "a.parquet", 1, 2)
    assert table.rows() == in_duck(duck, table) == [(1, "n1"), (2, "n2")]
    assert table.load().snapshot_by_name("uncommitted") is None
    write(table.place / "deep" / "b.parquet", 3)
    assert "lies within" in why(table)


def test_what_readers_might_read_otherwise_is_refused(hive: Hive, tmp_path: Path) -> None:
    file = hive.add("a", 1)
    for spoil, text in (
        (lambda: write(hive.place / "part=a" / "deep" / "b.parquet", 2), "lies within the partition part=a"),
        (lambda: write(hive.place / "part=a" / "mixed.parquet", 2, id="Id", name="name"), "the column Id"),
        (lambda: write(hive.place / "part=a" / "twice.parquet", 2, x="id", y="ID"), "twice"),
        (lambda: with_ids(hive.place / "part=a" / "ids.parquet"), "has field ids"),
        (lambda: (hive.place / "part=a" / "no.parquet").write_text("no Parquet"), "no Parquet"),
        (lambda: (hive.place / "part=a" / "link").symlink_to(write(tmp_path / "x.parquet", 5)), "is a link"),
    ):
        spoil()
        assert text in why(hive)
        for each in (hive.place / "part=a").iterdir():
            if each != file:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
    assert hive.rows() == of("a", 1)


@pytest.mark.parametrize("where", ["table", "serde", "partition"])
def test_columns_by_their_places_are_refused(hive: Hive, where: str) -> None:
    hive.add("a", 1)
    assert hive.rows() == of("a", 1)
    by_place = {"parquet.column.index.access": "TRUE"}
    table = hive.client.get_table(hive.database, "t")
    if where == "table":
        table.parameters |= by_place
    elif where == "serde":
        table.sd.serdeInfo.parameters = by_place
    else:
        part = hive.client.get_partition(hive.database, "t", ["a"])
        part.sd.serdeInfo.parameters = by_place
        hive.client.alter_partition(hive.database, "t", part)
    hive.client.alter_table(hive.database, "t", table)
    assert "by their places" in why(hive)


def test_positions_in_orc_files_are_refused(rest: Catalog, client: ThriftClient, ours: RestCatalog) -> None:
    sd = StorageDescriptor(
        cols=builders.columns(*COLUMNS),
        inputFormat=ORC_INPUT,
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    )
    table = made(rest, client, ours, sd=sd, parameters={"orc.force.positional.evolution": "true"})
    assert "by their places" in why(table)


def test_a_path_of_spark_in_another_place_is_refused(
    rest: Catalog, client: ThriftClient, ours: RestCatalog, tmp_path: Path
) -> None:
    table = made(rest, client, ours, parameters={"spark.sql.sources.provider": "parquet"})
    table.add("a", 1)
    for path, text in ((f"file:{table.place}/", None), (f"file:{tmp_path}", "Spark reads")):
        changed = client.get_table(table.database, "t")
        changed.sd.serdeInfo.parameters = {"path": path}
        client.alter_table(table.database, "t", changed)
        if text is None:
            assert table.rows() == of("a", 1)
        else:
            assert text in why(table)


def with_ids(file: Path) -> None:
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array([5], pa.int64())], schema=pa.schema([field])), file)


@pytest.mark.parametrize("where", ["outside", "same", "the table's", "another format"])
def test_partitions_that_lie_elsewhere(hive: Hive, tmp_path: Path, where: str) -> None:
    hive.add("a", 1)
    write(tmp_path / "a.parquet", 2)
    place = {"outside": tmp_path, "same": hive.place / "part=a", "the table's": hive.place}.get(where, tmp_path)
    sd = builders.parquet(*COLUMNS, location=f"file:{place}")
    if where == "another format":
        sd = builders.storage(*COLUMNS, location=f"file:{hive.place}/part=b", inputFormat=ORC_INPUT)
    hive.client.add_partition(builders.partition(hive.database, "t", "b", sd=sd))
    expected = {"same": "in the same directory", "another format": "aren't PARQUET"}.get(where, "outside")
    assert expected in why(hive)


def test_which_tables_are_shown(client: ThriftClient, ours: RestCatalog, rest: Catalog) -> None:
    """The server's default, which a database and a table may say otherwise."""
    database = f"hive_{next(NUMBERS)}"
    client.create_database(builders.database(database))
    transactional = {"transactional": "true", "iceberg.expose": "true"}
    for name, sd, fields in (
        ("shown", builders.parquet(*COLUMNS), {}),
        ("hidden", builders.parquet(*COLUMNS), {"parameters": {"iceberg.expose": "false"}}),
        ("text", builders.storage(*COLUMNS), {}),
        ("acid", builders.storage(*COLUMNS, inputFormat=ORC_INPUT), {"parameters": transactional}),
        ("delta", builders.parquet(*COLUMNS), {"parameters": {"spark.sql.sources.provider": "delta"}}),
        ("hudi", builders.parquet(*COLUMNS), {"parameters": {"spark.sql.sources.provider": "hudi"}}),
        ("mine", builders.parquet(*COLUMNS), {"parameters": {"iceberg.expose": "true"}}),
    ):
        client.create_table(builders.table(database, name, sd=sd, **fields))
    assert ours.list_tables(database) == [(database, "mine"), (database, "shown")]
    status, _, text = rest.refused("GET", f"hive/namespaces/{database}/tables/acid")
    assert (status, "transactions" in text) == (404, True)
    assert "doesn't" not in rest.refused("GET", f"hive/namespaces/{database}/tables/delta")[2]
    status, _, text = rest.refused("DELETE", f"hive/namespaces/{database}/tables/shown")
    assert (status, "shown as one for reading" in text) == (403, True)
    found = client.get_database(database)
    found.parameters = {"iceberg.expose": "false"}
    client.alter_database(database, found)
    assert ours.list_tables(database) == [(database, "mine")]
    assert rest.refused("GET", f"hive/namespaces/{database}/tables/shown")[0] == 404


class Written:
    """A table whose files, partitions and readiness change at random, and the rows that it has."""

    def __init__(self, hive: Hive, seed: int) -> None:
        self.hive = hive
        self.random = random.Random(seed)
        self.ids = itertools.count(1)
        self.files: dict[str, dict[str, list[int]]] = {}
        self.ready: dict[str, bool] = {}

    def step(self) -> None:
        parts = [*self.files]
        what = self.random.choice(["partition", "file", "file", "overwrite", "delete", "flag", "drop"])
        if what == "partition" or not parts:
            part = f"p{next(self.ids)}"
            some = [next(self.ids) for _ in range(self.random.randint(1, 3))]
            self.ready[part] = self.random.random() < 0.7
            self.files[part] = {"a.parquet": some}
            self.hive.add(part, *some, ready=self.ready[part])
            return
        part = self.random.choice(parts)
        place, files = self.hive.place / f"part={part}", self.files[part]
        if what == "drop":
            self.hive.client.drop_partition(self.hive.database, "t", [part], True)
            del self.files[part], self.ready[part]
        elif what == "flag":
            self.ready[part] = not self.ready[part]
            table = TableReference(database=self.hive.database, table="t")
            if self.ready[part]:
                self.hive.client.lake_commit_partitions(CommitPartitionsRequest(table, names=[f"part={part}"]))
            else:
                self.hive.client.lake_reopen_partitions(ReopenPartitionsRequest(table, names=[f"part={part}"]))
        elif what == "delete" and files:
            name = self.random.choice([*files])
            (place / name).unlink()
            del files[name]
        else:
            name = f"{next(self.ids)}.parquet"
            if what == "overwrite" and files:
                name = self.random.choice([*files])
                time.sleep(0.002)  # the time of a file is in milliseconds
            files[name] = [next(self.ids) for _ in range(self.random.randint(1, 3))]
            write(place / name, *files[name])

    def rows(self, *, uncommitted: bool = False) -> Rows:
        return sorted(
            row
            for part, files in self.files.items()
            if uncommitted or self.ready[part]
            for ids in files.values()
            for row in of(part, *ids)
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_random_changes(hive: Hive, duck: Duck, seed: int) -> None:
    """Whatever changes, the rows are those of now, and every snapshot keeps the rows that it had."""
    written = Written(hive, seed)
    seen: dict[int, Rows] = {}
    for _ in range(18):
        written.step()
        if written.random.random() < 0.3:
            continue
        shown = hive.load()
        current = shown.current_snapshot()
        assert current is not None
        assert seen.setdefault(current.snapshot_id, written.rows()) == written.rows()
        assert hive.rows() == written.rows()
        for each in shown.history():
            assert hive.rows(each.snapshot_id) == seen[each.snapshot_id]
        branch = shown.snapshot_by_name("uncommitted")
        assert branch is not None
        assert hive.rows(branch.snapshot_id) == written.rows(uncommitted=True)
    assert in_duck(duck, hive) == written.rows()
    assert len({*seen}) > 3

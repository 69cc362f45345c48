"""The files that describe a table, written in several requests."""

from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.tables.lake import LakeClient
from metastore.iceberg.errors import RestError
from metastore.iceberg.shown import manifests, writing
from metastore.iceberg.shown.exposed import ShownTables
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import lake_columns
from metastore.iceberg.shown.manifests import Entry
from metastore.iceberg.shown.writing import READY, ListName, Memory, Writer
from metastore.warehouse import Warehouse
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.shown import COLUMNS, add_file, batch, keyed, lake_table
from tests.support import builders

TABLE = builders.table("d", "t", keys=("part:string",), sd=builders.parquet("id:bigint"), parameters={})


def files(folder: Path, count: int) -> list[Entry]:
    found = []
    for number in range(count):
        file = folder / f"{number:03}.parquet"
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), file)
        found.append(Entry(f"part={number // 10}", f"file://{file}", file.stat().st_size, None, number + 1))
    return found


def writer(folder: Path, memory: Memory) -> Writer:
    def check(entry: Entry, footer: Footer) -> None:
        assert footer.rows == 1

    return Writer(Warehouse(f"file:{folder}"), memory, lake_columns(TABLE), 7, f"file:{folder}/t", check)


def test_each_request_goes_on_where_the_one_before_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAKING_SECONDS", 0.0)
    monkeypatch.setattr(writing, "_FILES_AT_ONCE", 5)
    monkeypatch.setattr(manifests, "MANIFEST_FILES", 10)
    entries = files(tmp_path, 40)
    memory = Memory(Footers(Warehouse(f"file:{tmp_path}")))
    refused = 0
    while True:
        one = writer(tmp_path, memory)
        name = one.name(40, 1_000, READY)
        try:
            one.make(name, iter(entries), 40)
            break
        except RestError as error:
            assert (error.status, dict(error.headers)["Retry-After"]) == (503, "1")
            refused += 1
    assert refused == 8 + 4  # after five footers each, and after each manifest
    again = writer(tmp_path, memory)
    [found] = again.lists
    assert str(found) == str(name)
    there = sorted(path.name for path in (tmp_path / "t" / ".iceberg" / one.day).iterdir())
    assert len(there) == 4 + 1


def test_an_unchanged_piece_is_not_looked_at_again(tmp_path: Path) -> None:
    entries = files(tmp_path, 3)
    memory = Memory(Footers(Warehouse(f"file:{tmp_path}")))
    one = writer(tmp_path, memory)
    one.make(one.name(3, 1_000, READY), iter(entries), 3)
    for each in entries:
        Path(each.path.removeprefix("file://")).unlink()
    two = writer(tmp_path, memory)
    two.make(two.name(4, 2_000, READY), iter(entries), 4)
    assert len(list((tmp_path / "t" / ".iceberg" / two.day).glob("*-m.avro"))) == 1


def test_names_of_lists() -> None:
    name = "20260101/snap-7-1000-u-abc-0123abcd.avro"
    found = ListName.of(name)
    assert found is not None and str(found) == name
    assert found.snapshot % (1 << 62) == 7


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "20260101/snap-7-1000-r-abc.avro",
        "20260101/snap-7-r-abc.avro",
        "20260101/snap-a-1-r-abc.avro",
        "d/0-m.avro",
    ],
)
def test_other_names(name: str) -> None:
    assert ListName.of(name) is None


def test_few_are_described_at_once(
    rest: Catalog, client: ThriftClient, lake: LakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes memory for all its files. What is described already needs no place."""
    monkeypatch.setattr(writing, "_PLACE_SECONDS", 0.1)
    table = keyed(lake, COLUMNS)
    table.upsert(batch(1))
    hive = lake_table(lake)
    add_file(hive, "part=a", [1])
    warehouse = Warehouse(str(rest.server.data_dir))
    memory = Memory(Footers(warehouse))
    shown = ShownTables(client, warehouse, memory, "test")
    stored = [client.get_table(*each.name.split(".")) for each in (table, hive)]
    before = shown.show(stored[0])
    with ExitStack() as taken:
        for _ in range(writing._MAKING_AT_ONCE):
            taken.enter_context(memory.place())
        assert shown.show(stored[0]) == before
        table.upsert(batch(2))
        for each in stored:
            with pytest.raises(RestError, match="describing other tables") as refused:
                shown.show(each)
            assert (refused.value.status, dict(refused.value.headers)) == (503, {"Retry-After": "1"})
    assert shown.show(stored[0]) != before
    assert shown.show(stored[1]).content

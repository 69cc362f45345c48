"""The files that describe a table, written in several requests."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore.iceberg.errors import RestError
from metastore.iceberg.shown import manifests, writing
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import lake_columns
from metastore.iceberg.shown.manifests import Entry
from metastore.iceberg.shown.writing import READY, ListName, Memory, Writer
from metastore.warehouse import Warehouse
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


@pytest.mark.parametrize(
    "name",
    ["20260101/snap-7-1000-r-abc.avro", "20260101/snap-7-1000-u-abc-0123abcd.avro"],
)
def test_names_of_lists(name: str) -> None:
    found = ListName.of(name)
    assert found is not None and str(found) == name
    assert found.snapshot % (1 << 62) == 7


@pytest.mark.parametrize("name", ["x", "20260101/snap-7-r-abc.avro", "20260101/snap-a-1-r-abc.avro", "d/0-m.avro"])
def test_other_names(name: str) -> None:
    assert ListName.of(name) is None

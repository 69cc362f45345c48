"""What the database encodes of partitions and their names, page by page, is what is decoded of them one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.codec import binary, splice
from lake.protocol.hive import Partition, PartitionListComposingSpec
from metastore.services.model.visibility import Scope
from metastore.services.partition.reads import PartitionQuery
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.engine import binary_rows
from metastore.store.partition import partitions
from tests.support import builders
from tests.support.postgres import Postgres

DB, TABLE, VIEW, LARGE = "d", "t", "v", "large"
VALUES = ["1", "2", "a b/c", "%", "ä\U0001f40d", "\\x00", "'", "zz", "", "10"]
PAGE = 3


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    with postgres.fresh_database(upgraded=True) as url:
        opened = Metastore.open(Settings(database_url=url, warehouse_dir=str(warehouse)))
        opened.databases.create(builders.database(DB))
        opened.tables.create(builders.table(DB, TABLE, keys=("ds",)), {})
        opened.partitions.add(DB, TABLE, _partitions(opened.tables.get(DB, TABLE).sd.location or ""), {})
        opened.tables.create(builders.view(DB, VIEW, keys=("ds",)), {})
        views = [Partition(dbName=DB, tableName=VIEW, values=[str(number)]) for number in range(PAGE + 1)]
        opened.partitions.add(DB, VIEW, views, {})
        opened.tables.create(builders.table(DB, LARGE, keys=("ds",)), {})
        large = [
            builders.partition(DB, LARGE, f"{number:02d}", sd=builders.storage(f"c{number}:int#{'l' * 2_000}"))
            for number in range(20)
        ]
        for partition in large:
            partition.parameters = {"large": "l" * 3_000}
        opened.partitions.add(DB, LARGE, large, {})
        yield opened
        opened.close()


def _partitions(table_location: str) -> list[Partition]:
    """In the table's directory, below it, at it, outside; of the table's columns and of others."""
    new = [builders.partition(DB, TABLE, value or "empty") for value in VALUES]
    new[1].sd.location = table_location
    new[2].sd.location = f"{table_location}/other/place"
    new[3].sd.location = f"{table_location}-beside/ds=%25"
    for each in (new[4], new[6]):
        each.sd = builders.storage("id:bigint", "another:struct<a:int>")
    new[5].parameters = {"k" * 1_000: "v" * 4_000}
    return new


@pytest.mark.parametrize("limit", [None, -1, 0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 3 * PAGE, len(VALUES), 100])
@pytest.mark.parametrize("table", [TABLE, VIEW])
def test_pages(metastore: Metastore, monkeypatch: pytest.MonkeyPatch, table: str, limit: int | None) -> None:
    monkeypatch.setattr(partitions, "FIRST_PAGE", PAGE)
    monkeypatch.setattr(partitions, "PAGE", PAGE)
    reads, wanted = metastore.partition_reads, PartitionQuery(limit=limit)
    pieces = reads.listing(Scope.READY, DB, table, wanted)
    listed = binary.decode_strict(PartitionListComposingSpec, b"".join(splice.in_struct(1, pieces))).partitions
    _, decoded = reads.read(Scope.READY, DB, table, wanted)
    assert listed == decoded
    everything = len(VALUES) if table == TABLE else PAGE + 1
    assert len(decoded) == (everything if limit is None or limit < 0 else min(limit, everything))


@pytest.mark.parametrize("limit", [None, 0, 4, 100])
def test_names(metastore: Metastore, limit: int | None) -> None:
    reads, wanted = metastore.partition_reads, PartitionQuery(limit=limit)
    begin, encoded = reads.names_listing(Scope.READY, DB, TABLE, wanted)
    names = reads.names(Scope.READY, DB, TABLE, wanted)
    assert begin == splice.list_of_strings(len(names))
    assert encoded == b"".join(len(name.encode()).to_bytes(4) + name.encode() for name in names)


def test_where_they_lie(metastore: Metastore) -> None:
    location = metastore.tables.get(DB, TABLE).sd.location
    _, found = metastore.partition_reads.read(Scope.READY, DB, TABLE, PartitionQuery())
    lie = {each.values[0]: each.sd.location for each in found}
    assert lie["1"] == f"{location}/ds=1"
    assert lie["2"] == location
    assert lie["a b/c"] == f"{location}/other/place"
    assert lie["%"] == f"{location}-beside/ds=%25"
    _, views = metastore.partition_reads.read(Scope.READY, DB, VIEW, PartitionQuery())
    assert all(each.sd is None or each.sd.location is None for each in views)


def test_pages_and_pieces_are_bounded_by_bytes(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether parameters or storage descriptors are what is large."""
    sizes: list[int] = []
    fetch = binary_rows.fetch

    def noted(*args: Any) -> list[bytes]:
        found = fetch(*args)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(binary_rows, "fetch", noted)
    monkeypatch.setattr(partitions, "FIRST_PAGE", 2)
    monkeypatch.setattr(partitions, "PAGE_BYTES", 10_000)
    monkeypatch.setattr(splice, "_FIRST_PIECE", 1)
    monkeypatch.setattr(splice, "PIECE_BYTES", 11_000)
    monkeypatch.setattr(splice, "_KEPT_BYTES", 5_000)
    _, *pieces = metastore.partition_reads.listing(Scope.READY, DB, LARGE)
    assert sizes == [2, *[3] * 6]
    assert max(map(len, pieces)) <= 11_000
    encoded = splice.in_struct(1, [splice.list_of_structs(20), *pieces])
    listed = binary.decode_strict(PartitionListComposingSpec, b"".join(encoded)).partitions
    _, decoded = metastore.partition_reads.read(Scope.READY, DB, LARGE, PartitionQuery())
    assert listed == decoded
    assert [each.sd.cols[0].name for each in decoded] == [f"c{number}" for number in range(20)]

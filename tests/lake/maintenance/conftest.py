"""Keyed tables on a server whose clocks for dead writers are short."""

from collections.abc import Iterator

import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.tables.keyed.histories import COLUMNS, make_table, rows_of
from tests.support.server import MetastoreServer


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A server that gives a plan back 2 s after its process died."""
    options = ("--instant-heartbeat-seconds", "2", "--housekeeping-seconds", "0.5")
    with MetastoreServer(tmp_path_factory.mktemp("server") / "data", *options) as running:
        yield running


@pytest.fixture
def lake(server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(server.uri) as client:
        yield client


def merge_on_read(lake: LakeClient, **properties: str) -> LakeTable:
    """A table of two buckets in one partition. Properties: `_` stands for `-`, and `__` for a dot."""
    own = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    return make_table(lake, {"primary-key": "id,part", "bucket": "2", "table-type": "merge-on-read", **own}, COLUMNS)


def commits(table: LakeTable, count: int, start: int = 0) -> None:
    """Upserts the same eight rows so many times."""
    for number in range(start, start + count):
        table.upsert(rows_of([{"id": id, "part": "x", "v": number, "a": None, "b": None} for id in range(8)]))


def values(table: LakeTable) -> dict[int, int]:
    """The column `v` by `id`, of all rows."""
    found = table.scan().to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each["v"] for each in found}

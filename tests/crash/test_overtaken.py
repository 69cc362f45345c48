"""Between two steps of a creation others make the same thing, and drop it again."""

from collections.abc import Callable

import pytest

from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.warehouse import Warehouse
from tests.support import builders
from tests.support.target import local_path

DB = "d"
Overtake = Callable[[Callable[[], None]], None]


@pytest.fixture
def overtake(monkeypatch: pytest.MonkeyPatch) -> Overtake:
    """Says what others do as soon as the next directory is made."""
    waiting: list[Callable[[], None]] = []
    make = Warehouse.make_directory

    def overtaken(self: Warehouse, location: str) -> bool:
        made = make(self, location)
        if waiting:
            waiting.pop()()
        return made

    monkeypatch.setattr(Warehouse, "make_directory", overtaken)
    return waiting.append


def is_there(location: str | None) -> bool:
    assert location is not None
    return local_path(location).is_dir()


def test_database(metastore: Metastore, overtake: Overtake) -> None:
    def others() -> None:
        metastore.databases.create(builders.database(DB))
        metastore.databases.drop(DB, delete_data=True, cascade=False)

    overtake(others)
    metastore.databases.create(builders.database(DB))
    assert is_there(metastore.databases.get(DB).locationUri)


def test_table(metastore: Metastore, overtake: Overtake) -> None:
    def others() -> None:
        metastore.tables.create(builders.table(DB), {})
        metastore.tables.drop(DB, "t", delete_data=True)

    metastore.databases.create(builders.database(DB))
    overtake(others)
    metastore.tables.create(builders.table(DB), {})
    table = metastore.tables.get(DB, "t")
    assert table.sd is not None and is_there(table.sd.location)


def test_partition(metastore: Metastore, overtake: Overtake) -> None:
    new = [builders.partition(DB, "t", value) for value in "ab"]

    def others() -> None:
        metastore.partitions.add(DB, "t", new[:1], {})
        metastore.partitions.drop(DB, "t", values=["a"], delete_data=True)

    metastore.databases.create(builders.database(DB))
    metastore.tables.create(builders.table(DB, keys=("ds",)), {})
    overtake(others)
    metastore.partitions.add(DB, "t", new, {})
    table = metastore.tables.get(DB, "t")
    assert table.sd is not None
    for name in metastore.partition_reads.names(Scope.READY, DB, "t"):
        assert is_there(f"{table.sd.location}/{name}")

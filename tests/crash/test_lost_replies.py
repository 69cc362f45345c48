"""The database commits, but dies before it says so."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from lake.protocol.hive import Catalog
from metastore.services.wiring import Metastore
from metastore.store import Database, DatabaseUnavailable
from metastore.store.engine.database import Transaction
from tests.support import builders
from tests.support.target import local_path

Deafened = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def deafened(monkeypatch: pytest.MonkeyPatch) -> Deafened:
    """While it lasts, every commit succeeds and is reported as failed."""
    write = Database.write

    @contextmanager
    def lossy(self: Database) -> Iterator[Transaction]:
        with write(self) as tx:
            yield tx
        raise DatabaseUnavailable("the connection was lost")

    @contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patch, pytest.raises(DatabaseUnavailable):
            patch.setattr(Database, "write", lossy)
            yield

    return block


def is_there(location: str | None) -> bool:
    assert location is not None
    return local_path(location).is_dir()


def test_what_was_added_keeps_its_directory(metastore: Metastore, deafened: Deafened, tmp_path: Path) -> None:
    with deafened():
        metastore.catalogs.create(Catalog(name="c", locationUri=f"file:{tmp_path}/c"))
    assert is_there(metastore.catalogs.get("c").locationUri)

    with deafened():
        metastore.databases.create(builders.database("d"))
    assert is_there(metastore.databases.get("d").locationUri)

    with deafened():
        metastore.tables.create(builders.table("d", "t", keys=("ds",)), {})
    table = metastore.tables.get("d", "t")
    assert table.sd is not None and is_there(table.sd.location)

    with deafened():
        metastore.partitions.add("d", "t", [builders.partition("d", "t", value) for value in "ab"], {})
    for value in "ab":
        assert is_there(f"{table.sd.location}/ds={value}")

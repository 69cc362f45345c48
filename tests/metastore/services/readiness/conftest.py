"""Servers without their sockets: two `Metastore` on one database and one warehouse."""

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from metastore.services.readiness import due, progress, service
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.metastore.services.readiness.lake import StreamTable
from tests.metastore.warehouse.test_directories import s3_endpoint, storage
from tests.support import builders
from tests.support.pair import opened_pair
from tests.support.postgres import Postgres

__all__ = ["s3_endpoint", "storage"]  # fixtures for tests of files

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def pair(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Metastore, Metastore]]:
    with opened_pair(postgres, tmp_path_factory.mktemp("warehouse")) as both:
        yield both


@pytest.fixture
def metastore(pair: tuple[Metastore, Metastore]) -> Metastore:
    return pair[0]


@pytest.fixture
def db(metastore: Metastore) -> str:
    """The name of an empty database."""
    name = f"d{next(_numbers)}"
    metastore.databases.create(builders.database(name))
    return name


@pytest.fixture
def table(metastore: Metastore, db: str) -> StreamTable:
    """An hourly table that is committed by event time, an hour after the hour's beginning."""
    return StreamTable(metastore, db)


@pytest.fixture
def restarted(metastore: Metastore) -> Iterator[Callable[[], Metastore]]:
    """Opens the services once more, as a server does that starts on the same database."""
    opened: list[Metastore] = []

    def reopen() -> Metastore:
        url = metastore.database.url.render_as_string(hide_password=False)
        root = metastore.databases.get("default").locationUri
        opened.append(Metastore.open(Settings(database_url=url, warehouse_dir=str(root).removeprefix("file:"))))
        return opened[-1]

    yield reopen
    for each in opened:
        each.close()


class Clock:
    """The database's clock, in milliseconds, as far as readiness goes by it."""

    def __init__(self) -> None:
        self.now = time.time_ns() // 1_000_000

    def pass_(self, milliseconds: int) -> None:
        self.now += milliseconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stands still until it may go on."""
    clock = Clock()
    for module in (service, progress, due):
        monkeypatch.setattr(module, "now_ms", lambda _tx: clock.now)
    return clock

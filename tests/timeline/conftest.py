"""A metastore without its sockets, and tables with timelines."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.services import Metastore
from metastore.settings import Settings
from metastore.store.migrations import upgrade
from tests.support import builders
from tests.support.postgres import Postgres
from tests.timeline.lake import LakeTable

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def pair(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Metastore, Metastore]]:
    """Two servers' services on one database and one warehouse."""
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    with postgres.fresh_database() as url:
        upgrade(url)
        settings = Settings(database_url=url, warehouse_dir=str(warehouse), active_instants=20)
        one, two = Metastore.open(settings), Metastore.open(settings)
        yield one, two
        one.close()
        two.close()


@pytest.fixture
def metastore(pair: tuple[Metastore, Metastore]) -> Metastore:
    return pair[0]


@pytest.fixture
def db(metastore: Metastore) -> str:
    """The name of an empty database."""
    name = f"lake{next(_numbers)}"
    metastore.databases.create(builders.database(name))
    return name


@pytest.fixture
def table(metastore: Metastore, db: str) -> LakeTable:
    """A table by day, without readiness: partitions are ready as they come."""
    return LakeTable(metastore, db)

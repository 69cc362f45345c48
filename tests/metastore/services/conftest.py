"""Fixtures for tests of single parts."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support import builders
from tests.support.postgres import Postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """All services, over a database and a warehouse of the test module's own."""
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    with postgres.fresh_database(upgraded=True) as url:
        opened = Metastore.open(Settings(database_url=url, warehouse_dir=str(warehouse)))
        yield opened
        opened.close()


@pytest.fixture
def db(metastore: Metastore) -> str:
    """The name of an empty database."""
    name = f"d{next(_numbers)}"
    metastore.databases.create(builders.database(name))
    return name

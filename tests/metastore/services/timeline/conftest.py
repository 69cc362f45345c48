"""A metastore without its sockets, and tables with timelines."""

import itertools
from collections.abc import Iterator

import pytest

from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import LakeTable
from tests.support import builders
from tests.support.pair import opened_pair
from tests.support.postgres import Postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def pair(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Metastore, Metastore]]:
    """Two servers' services on one database and one warehouse."""
    with opened_pair(postgres, tmp_path_factory.mktemp("warehouse"), active_instants=20) as both:
        yield both


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

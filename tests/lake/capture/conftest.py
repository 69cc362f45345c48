"""A source: a real Postgres with a logical log, and a database of each test's own."""

from collections.abc import Iterator

import pytest

from lake.tables.lake import LakeClient
from tests.lake.capture.shop import Source
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": 20,
    "max_wal_senders": 20,
    "max_slot_wal_keep_size": "1GB",
    "max_prepared_transactions": 4,
    "fsync": "off",
}


@pytest.fixture(scope="session")
def source_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    server = Postgres(tmp_path_factory.mktemp("source") / "data", SETTINGS)
    yield server
    server.close()


@pytest.fixture
def source(source_postgres: Postgres, metastore_server: MetastoreServer) -> Iterator[Source]:
    with source_postgres.fresh_database() as url, LakeClient(metastore_server.uri) as client:
        made = Source(url, client)
        yield made
        made.close()

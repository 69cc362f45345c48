"""A server under `python -O`, which leaves out asserts, does and answers the same as one with them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.cache.test_differential import READS, WRITES, outcome
from tests.support.builders import database
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.visibility import writers
from tests.visibility.readers import CONNECTION, NONE, Ports, Readers

STORY = [
    *("statistics", "statistics-merged", "add_many", "lake_commit_partitions", "columns", "alter_partitions", "files"),
    *("create_view", "add_foreign_key", "drop_partition", "create_database", "moved", "back"),
    *("truncate_table", "drop_table"),
]

SHARES = 4
"""After each write a share of all reads is asked."""


@pytest.fixture(scope="module")
def servers(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MetastoreServer]]:
    """One with asserts, and one without."""
    directory = tmp_path_factory.mktemp("optimised")
    with postgres.fresh_database(upgraded=True) as url, ExitStack() as stack:
        common = ("--database-url", url, "--warehouse-dir", str(directory / "warehouse"), "--workers", "1")
        common = (*common, "--cache-memory", "0")
        usual = MetastoreServer(directory / "usual", *common)
        optimised = MetastoreServer(directory / "optimised", *common, environment={"PYTHONOPTIMIZE": "1"})
        yield [stack.enter_context(each.start()) for each in (usual, optimised)]
        for each in (usual, optimised):
            assert "internal error" not in Path(each.log).read_text()


@pytest.mark.long
def test_answers_are_the_same(servers: list[MetastoreServer]) -> None:
    usual, optimised = servers
    db = "story"
    with ExitStack() as stack:
        client = stack.enter_context(ThriftClient(optimised.host, optimised.port))
        client.create_database(database(db))
        writers.fill(client, db)
        readers = [
            [scope.of(Readers(Ports(each.host, each.port, 0), stack), db) for each in (usual, optimised)]
            for scope in (NONE, CONNECTION)
        ]
        for number, write in enumerate(STORY):
            WRITES[write](client, db)
            for one, other in readers:
                for method, ask in READS[number % SHARES :: SHARES]:
                    assert outcome(ask, other) == outcome(ask, one), f"{method} after {write}"

"""Several servers on one Postgres and one warehouse."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine

from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer

Prepare = Callable[..., MetastoreServer]


@pytest.fixture
def prepare(postgres_url: str, tmp_path: Path) -> Iterator[Prepare]:
    """Makes a server of the cluster that is not started yet; stopped when the test ends."""
    with ExitStack() as stack:

        def prepared(name: str, *options: str, **others: object) -> MetastoreServer:
            server = MetastoreServer(
                tmp_path / name,
                *("--database-url", postgres_url, "--warehouse-dir", str(tmp_path / "warehouse")),
                *("--workers", "1", "--drain-seconds", "5"),
                *options,
                **others,  # type: ignore[arg-type]
            )
            stack.push(server)
            return server

        yield prepared


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """One for all servers."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    """The cluster's database, to look behind the servers."""
    engine = create_engine(postgres_url, poolclass=NullPool)
    yield engine
    engine.dispose()

"""The two servers of a comparison, each with the connections that drive it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from bench.hive4_server import Hive4OnPostgres
from bench.hive_server import HiveOnPostgres
from bench.java_client import HiveClient, Java, RawClient
from bench.shapes import Shape
from lake.protocol.connection.thrift_client import ThriftClient
from tests.support.redis import RedisServer
from tests.support.reference4 import Release
from tests.support.server import MetastoreServer

AT_ONCE = 1_000
"""Partitions in one call that fills a table of ours."""
TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True)
class Side:
    """A running server. `thrift` prepares and tidies, the two others measure; `fill` makes a table with partitions.

    `pid` is the process whose children the server's workers are, if they are.
    """

    name: str
    host: str
    port: int
    pid: int | None
    thrift: ThriftClient
    raw: RawClient
    hive: HiveClient
    multiply: Callable[[str, Shape], None]

    def fill(self, table: str, shape: Shape) -> None:
        """Makes a table with all partitions of its shape."""
        self.thrift.create_table(shape.table(table))
        self.thrift.add_partition(shape.partition(table, 0))
        self.multiply(table, shape)


@contextmanager
def hive(java: Java, directory: Path, url: URL, warehouse: Path) -> Iterator[Side]:
    """Hive's own server."""
    directory.mkdir()
    with HiveOnPostgres(directory, url, warehouse) as server:
        yield from _side("Hive", java, server.host, server.port, None, server.multiply)


@contextmanager
def hive4(java: Java, directory: Path, url: URL, warehouse: Path, release: Release, *, cached: bool) -> Iterator[Side]:
    """Hive 4's own server, with its cache or without."""
    directory.mkdir()
    with Hive4OnPostgres(directory, url, warehouse, release, cached=cached) as server:
        name = "Hive 4, CachedStore" if cached else "Hive 4"
        yield from _side(name, java, server.host, server.port, None)


@contextmanager
def ours(
    java: Java,
    directory: Path,
    url: URL,
    warehouse: Path,
    *,
    redis: bool = False,
    source: Path | None = None,
    name: str = "ours",
) -> Iterator[Side]:
    """Our server with its default settings.

    With `redis` it has a Redis for its cache; with `source` it is the one of another checkout.
    """
    directory.mkdir()
    environment = {} if source is None else {"PYTHONPATH": str(source), "PYTHONSAFEPATH": "1"}
    options = ["--database-url", url.render_as_string(hide_password=False), "--log-level", "warning"]
    options += ["--warehouse-dir", str(warehouse)]
    with ExitStack() as stack:
        if redis:
            options += ["--cache-redis-url", stack.enter_context(RedisServer(directory / "redis")).url]
        server = MetastoreServer(directory / "data", *options, environment=environment)
        stack.enter_context(server)
        yield from _side(name, java, server.host, server.port, server.pid)


def _side(
    name: str,
    java: Java,
    host: str,
    port: int,
    pid: int | None,
    multiply: Callable[[str, Shape], None] | None = None,
) -> Iterator[Side]:
    """`multiply`: see `Side.fill`. By default the partitions are added by calls."""
    with ExitStack() as stack:
        thrift = stack.enter_context(ThriftClient(host, port, timeout=TIMEOUT_SECONDS))

        def add(table: str, shape: Shape) -> None:
            for start in range(1, shape.partitions, AT_ONCE):
                numbers = range(start, min(start + AT_ONCE, shape.partitions))
                thrift.add_partitions([shape.partition(table, number) for number in numbers])

        raw, client = java.raw_client(host, port), java.hive_client(host, port)
        stack.callback(raw.close)
        stack.callback(client.close)
        yield Side(name, host, port, pid, thrift, raw, client, multiply or add)

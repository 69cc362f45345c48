"""Postgres and Redis by TLS, as their addresses say.

The servers of both that tests have can't encrypt by themselves: a relay does that before them.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.server.monitoring.audit import STREAM
from tests.support import builders
from tests.support.certificates import Authority
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer, ServerDidNotStart
from tests.support.waiting import wait_until

SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)
"""What a client of Postgres says before it encrypts."""


class TlsRelay:
    """Decrypts connections and passes them on. `plain`: connections that did not want to encrypt, which are closed."""

    def __init__(self, context: ssl.SSLContext, connect: Callable[[], socket.socket], *, postgres: bool) -> None:
        self.plain = 0
        self.encrypted = 0
        self._context = context
        self._connect = connect
        self._postgres = postgres
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self._postgres:
                if client.recv(8) != SSL_REQUEST:
                    self.plain += 1
                    return
                client.sendall(b"S")
            try:
                encrypted = self._context.wrap_socket(client, server_side=True)
            except OSError:
                self.plain += 1
                return
            self.encrypted += 1
            with encrypted, self._connect() as upstream:
                threading.Thread(target=_copy, args=(upstream, encrypted), daemon=True).start()
                _copy(encrypted, upstream)

    def close(self) -> None:
        self._listener.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("store", "localhost"))
    return context


@pytest.fixture
def postgres_relay(context: ssl.SSLContext, postgres_url: str) -> Iterator[TlsRelay]:
    directory = str(make_url(postgres_url).query["host"])

    def connect() -> socket.socket:
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(next(map(str, Path(directory).glob(".s.PGSQL.*[0-9]"))))
        return upstream

    relay = TlsRelay(context, connect, postgres=True)
    yield relay
    relay.close()


def database_url(postgres_url: str, relay: TlsRelay, authority: Path) -> str:
    url = make_url(postgres_url)
    named = url.set(host="localhost", port=relay.port, query={"sslmode": "verify-full", "sslrootcert": str(authority)})
    return named.render_as_string(hide_password=False)


def test_both(
    tmp_path: Path, authority: Authority, context: ssl.SSLContext, postgres_url: str, postgres_relay: TlsRelay
) -> None:
    with RedisServer(tmp_path / "redis") as redis:
        with redis.client() as admin:
            admin.config_set("requirepass", "word")
        relay = TlsRelay(context, lambda: socket.create_connection(("127.0.0.1", redis.port)), postgres=False)
        by_tls = f"rediss://:word@localhost:{relay.port}/0?ssl_ca_certs={authority.file}"
        options = ("--redis-url", by_tls, "--audit-url", by_tls, "--workers", "1")
        environment = {"METASTORE_DATABASE_URL": database_url(postgres_url, postgres_relay, authority.file)}
        with (
            MetastoreServer(tmp_path / "data", *options, environment=environment) as server,
            ThriftClient(server.host, server.port) as client,
        ):
            client.create_database(builders.database("encrypted"))
            last = client.lake_event_positions(None, None).last

            def delivered() -> bool:
                return client.lake_event_positions("redis", None).group == last

            wait_until(delivered, 30, "the event has come")
        found: Any
        redis.url = redis.url.replace("redis://", "redis://:word@")
        with redis.client() as reader:
            found = reader.xrange(STREAM)
        assert '"encrypted"' in str(found)
        assert relay.encrypted and postgres_relay.encrypted
        assert (relay.plain, postgres_relay.plain) == (0, 0)
        relay.close()
        assert "word" not in server.log.read_text()


def test_a_postgres_of_another_authority(
    tmp_path: Path, postgres_url: str, postgres_relay: TlsRelay, authority: Authority
) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    environment = {"METASTORE_DATABASE_URL": database_url(postgres_url, postgres_relay, Authority(stranger).file)}
    with pytest.raises(ServerDidNotStart, match="certificate verify failed"):
        MetastoreServer(tmp_path / "data", environment=environment).start()

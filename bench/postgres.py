"""A Postgres that both servers of a comparison use: the one that ours brings, listening on the loopback interface."""

import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
from sqlalchemy import URL, NullPool, create_engine, make_url, text

from metastore.server.embedded_postgres import DATABASE_USER, EmbeddedPostgres

HOST = "127.0.0.1"
CONNECTIONS = 300
"""Both servers with all their pools at once."""


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
    return port


class LoopbackPostgres:
    """As the server runs it for itself, and reached through TCP with a password, too: Java knows no Unix sockets.

    Started when made.
    """

    def __init__(self, directory: Path) -> None:
        self._port = free_port()
        self._password = secrets.token_hex(16)
        # Where it listens; the name of its Unix socket, which has a port in it, stays what others expect.
        settings: dict[str, str | int] = {"listen_addresses": HOST, "port": self._port}
        self._server = EmbeddedPostgres(directory, max_connections=CONNECTIONS, settings=settings)
        local = make_url(self._server.start()).update_query_dict({"port": str(self._port)})
        rules = directory / "postgres" / "pg_hba.conf"
        rules.write_text(f"local all all trust\nhost all all {HOST}/32 scram-sha-256\n")
        with create_engine(local, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
            connection.execute(text(f"ALTER USER {DATABASE_USER} PASSWORD '{self._password}'"))
            connection.execute(text("SELECT pg_reload_conf()"))
            self.version = str(connection.execute(text("SHOW server_version")).scalar_one()).split()[0]
            self._admin = local

    def local(self, url: URL) -> URL:
        """A database as a program on the same host best reaches it: through the Unix socket."""
        return self._admin.set(database=url.database)

    def create(self, database: str) -> URL:
        """Makes an empty database; where it is."""
        with create_engine(self._admin, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
            connection.execute(text(f"CREATE DATABASE {database}"))
        return URL.create("postgresql", DATABASE_USER, self._password, HOST, self._port, database)

    def close(self) -> None:
        self._server.stop()


@contextmanager
def transaction(url: URL) -> Iterator[Any]:
    """A cursor of psycopg2 in a transaction, committed at the end."""
    with closing(psycopg2.connect(url.render_as_string(hide_password=False))) as connection:
        with connection.cursor() as cursor:
            yield cursor
        connection.commit()


def tidy(url: URL) -> None:
    """Vacuums a database and gathers its planner's statistics."""
    with closing(psycopg2.connect(url.render_as_string(hide_password=False))) as connection:
        connection.autocommit = True
        connection.cursor().execute("VACUUM ANALYZE")

"""Databases of a real Postgres."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import NullPool, create_engine, make_url, text

from metastore.server.embedded_postgres import EmbeddedPostgres


class Postgres:
    """A Postgres server of the test run; it stops when the run ends. `settings` are Postgres's."""

    def __init__(self, directory: Path, settings: Mapping[str, str | int] | None = None) -> None:
        self._directory = directory
        self._server = EmbeddedPostgres(directory, settings=settings)
        self._url = make_url(self._server.start())
        # Without a pool: a kept connection would not survive `kill`.
        self._admin = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=NullPool)
        self._numbers = itertools.count(1)

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database."""
        return self._url.set(database=database).render_as_string(hide_password=False)

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """An empty database, by its SQLAlchemy URL; dropped afterwards."""
        name = f"test_{next(self._numbers)}"
        with self._admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            yield self.url(name)
        finally:
            with self._admin.connect() as connection:
                connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))

    def kill(self) -> None:
        """Kills the processes, as a power cut would; data that the kernel has is kept."""
        pid = int((self._directory / "postgres" / "postmaster.pid").read_text().split()[0])
        postmaster = psutil.Process(pid)
        for process in (postmaster, *postmaster.children()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        """Shuts Postgres down in order."""
        self._server.stop()

    def start(self) -> None:
        """Starts Postgres again, in the thread that made this object: the kernel ends Postgres with it."""
        self._server.start()

    def close(self) -> None:
        self._admin.dispose()
        self._server.stop()

"""Databases of a real Postgres."""

import atexit
import contextlib
import functools
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import NullPool, create_engine, make_url, text

from metastore.server.embedded_postgres import EmbeddedPostgres
from metastore.store import migrations


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
    def fresh_database(self, *, upgraded: bool = False) -> Iterator[str]:
        """A database by its SQLAlchemy URL; dropped afterwards. It is empty, or `upgraded`: with the schema."""
        name = f"test_{next(self._numbers)}"
        template = self._template if upgraded else "template1"
        with self._admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        try:
            if upgraded:
                _give_identity(self.url(name))
            yield self.url(name)
        finally:
            with self._admin.connect() as connection:
                connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))

    @functools.cached_property
    def _template(self) -> str:
        """A database with the schema. A copy of it takes less time than the migrations."""
        name = "test_template"
        with self._admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        migrations.upgrade(self.url(name))
        return name

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


def _give_identity(url: str) -> None:
    """Gives the event log of a copied database an identity of its own."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE event_log SET identity = gen_random_uuid()"))


@functools.cache
def _data_directory() -> Path:
    """The data directory of a server that has made its schema, and stopped."""
    directory = Path(tempfile.mkdtemp(prefix="metastore-template-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    server = EmbeddedPostgres(directory)
    migrations.upgrade(server.start())
    server.stop()
    return directory


def copy_data_directory(into: Path) -> None:
    """Makes a data directory with the embedded Postgres and the schema. A copy takes less time than initdb does.

    All copies have the same event log, as copies of a backup have.
    """
    into.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(_data_directory() / "postgres"), str(into / "postgres")], check=True)

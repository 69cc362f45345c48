"""The database that a server with given settings would use, and its schema, for commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lake.protocol.errors import UserError
from metastore.settings import Settings, mask_password

if TYPE_CHECKING:
    from metastore.store.snapshot.data_files import Undeletable

MOST_TABLES = 1_000
"""The most tables that a command lists."""


@contextmanager
def database(settings: Settings, *, create: bool) -> Iterator[str]:
    """The URL of a database that answers as long as the block runs.

    Without a configured database it is the embedded Postgres. It is started for that time, unless a server has started
    it already. `create`: creates it if it doesn't exist. Raises UserError.
    """
    from metastore.server.data_directory import DataDirectory, DataDirectoryInUse
    from metastore.server.embedded_postgres import EmbeddedPostgres, running_url

    if settings.database_url is not None:
        yield settings.database_url
        return
    if not create and not (settings.data_dir / "postgres").exists():
        raise UserError(f"there is no database in {settings.data_dir}")
    directory = DataDirectory(settings.data_dir)
    try:
        directory.lock()
    except DataDirectoryInUse:
        url = running_url(settings.data_dir)
        if url is None:
            raise
        yield url
        return
    postgres = EmbeddedPostgres(settings.data_dir)
    try:
        yield postgres.start()
    finally:
        postgres.stop()
        directory.unlock()


def upgrade_schema(url: str) -> None:
    """Bring the schema to this server's version, unless it is a newer one that suits it. Raises UserError."""
    from metastore.store import migrations

    with _explained(url):
        migrations.upgrade(url)


def check_schema(url: str) -> None:
    """Raises UserError if this version can't work with the schema as it is."""
    from metastore.store import migrations

    with _explained(url):
        migrations.check(url)


def schema_revision(url: str) -> str | None:
    """The schema's revision, None if there is no schema yet. Raises UserError."""
    from metastore.store import migrations

    with _explained(url):
        return migrations.current(url)


def schema_verdict(url: str) -> str:
    """How the schema suits this version, in words. Raises UserError."""
    from metastore.store import migrations

    with _explained(url):
        found = migrations.schema(url)
    newest = migrations.head()
    if found.revision == newest:
        return "up to date"
    if found.revision is None or found.revision in migrations.known():
        return f"this version needs {newest}"
    if found.suits(migrations.known()):
        return f"newer than this version's {newest}, which can work with it"
    return f"too new for this version, which knows {newest}"


def undeletable_files(url: str) -> "list[Undeletable]":
    """The tables with files that can't be deleted, those with the most first. Raises UserError."""
    from metastore.store import Database
    from metastore.store.snapshot import data_files

    check_schema(url)
    store = Database(url, pool_size=1)
    try:
        with store.read() as tx:
            return data_files.undeletable(tx, MOST_TABLES)
    finally:
        store.close()


@contextmanager
def _explained(url: str) -> Iterator[None]:
    from sqlalchemy.exc import DBAPIError

    from metastore.store.migrations import ReadOnlyDatabase, SchemaInUse, SchemaTooNew, SchemaTooOld, WrongEncoding

    try:
        yield
    except (ReadOnlyDatabase, SchemaInUse, SchemaTooNew, SchemaTooOld, WrongEncoding) as error:
        raise UserError(str(error)) from None
    except DBAPIError as error:
        # libpq says which host and port, and why, in its first line.
        reason = str(error.orig).strip().partition("\n")[0]
        raise UserError(f"can't use the database {mask_password(url)}: {reason}") from None

"""The database that a server with given settings would use, and its schema, for commands."""

from collections.abc import Iterator
from contextlib import contextmanager

from metastore.errors import UserError
from metastore.settings import Settings, mask_password


@contextmanager
def database(settings: Settings, *, create: bool) -> Iterator[str]:
    """The URL of a database that answers as long as the block runs.

    The embedded Postgres is started for that time, unless a server has it running. With `create` it is made
    if it isn't there. Raises UserError.
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
    """Bring the schema to this server's version. Raises UserError."""
    from metastore.store import migrations

    with _explained(url):
        migrations.upgrade(url)


def schema_revision(url: str) -> str | None:
    """The schema's revision, None if there is no schema yet. Raises UserError."""
    from metastore.store import migrations

    with _explained(url):
        return migrations.current(url)


def newest_revision() -> str:
    """The revision that this version's server works with."""
    from metastore.store import migrations

    return migrations.head()


@contextmanager
def _explained(url: str) -> Iterator[None]:
    from sqlalchemy.exc import DBAPIError

    from metastore.store.migrations import SchemaTooNew

    try:
        yield
    except SchemaTooNew as error:
        raise UserError(str(error)) from None
    except DBAPIError as error:
        # libpq says which host and port, and why, in its first line.
        reason = str(error.orig).strip().partition("\n")[0]
        raise UserError(f"can't use the database {mask_password(url)}: {reason}") from None

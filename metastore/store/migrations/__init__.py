"""Brings a database's schema to this server's version, with Alembic, while servers of other versions use it.

Revisions live in `versions/`. One that servers of an earlier revision can work with, because it only adds what they
may leave alone, says so: `compatible_from = "0012"` names the oldest such revision. Without that it is for servers of
its own revision and later ones. The database keeps what its revision says, for servers that don't know that one.

Several servers may start on one database at once: an advisory lock lets one upgrade while the others wait.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import psycopg2.errors
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from metastore.store.engine.database import READ_ONLY
from metastore.store.registry import properties

STATEMENT_LOCK_SECONDS = 0.5
"""How long a change of the schema waits for a table that others use: whoever comes after it waits as well.

Less than the second after which Postgres looks for deadlocks: it is the upgrade that gives way.
"""

# An upgrade of the schema may take long; a host that is gone is noticed within a minute.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

PATIENCE = 120.0
"""Seconds for which an upgrade is tried again when others use a table for longer than that."""

_LOCK = 5_021_971_316  # any number that nobody else uses for an advisory lock
_COMPATIBLE_FROM = "schema.compatible_from"
_SERVER = "metastore schema "


class SchemaTooNew(RuntimeError):
    """The database was upgraded by a newer server than this one, to what this one can't work with."""


class SchemaTooOld(RuntimeError):
    """The database has to be upgraded before this server can work with it."""


class WrongEncoding(RuntimeError):
    """The database is in another encoding than UTF-8: it couldn't keep every text, or would send it otherwise."""


class ReadOnlyDatabase(RuntimeError):
    """The database accepts no changes: it is a standby, or read-only by its settings."""


class SchemaInUse(RuntimeError):
    """The schema can't be upgraded because of those who use it now."""


class Schema(NamedTuple):
    """A database's schema: its revision, None if there is none yet, and the oldest that servers may know to use it."""

    revision: str | None
    compatible_from: str | None

    def suits(self, known: list[str]) -> bool:
        """Whether a server with these revisions, the oldest first, can work with it."""
        return self.revision == known[-1] or (self.revision not in known and self.compatible_from in known)


def head() -> str:
    """The revision that this server needs."""
    return known()[-1]


def known() -> list[str]:
    """The revisions that this server knows, the oldest first."""
    return [script.revision for script in _scripts()]


def compatible_from() -> str:
    """The oldest revision whose servers work with the schema that this one makes."""
    script = _scripts()[-1]
    return str(getattr(script.module, "compatible_from", script.revision))


def application_name() -> str:
    """By which connections tell others, who may want to upgrade the schema, what their server knows."""
    return f"{_SERVER}{head()}"


def schema(url: str) -> Schema:
    """The schema that a database has. Raises WrongEncoding."""
    with create_engine(url, poolclass=NullPool, connect_args=_CONNECTION).connect() as connection:
        return _schema(connection)


def current(url: str) -> str | None:
    """The database's revision, None where there is no schema yet. Raises WrongEncoding."""
    return schema(url).revision


def check(url: str) -> None:
    """Raises SchemaTooOld, SchemaTooNew or WrongEncoding if this server can't work with the database."""
    found = schema(url)
    if found.suits(known()):
        return
    if found.revision is not None and found.revision not in known():
        raise _too_new(found)
    at = f"at revision {found.revision}" if found.revision else "missing"
    raise SchemaTooOld(f"the database's schema is {at}, this server needs {head()}; run: metastore db upgrade")


def upgrade(url: str) -> None:
    """Upgrades to `head()`, in one transaction; leaves a newer schema alone with which this server can work.

    Raises SchemaTooNew if it can't, SchemaInUse if servers are connected which the upgrade would break, or if somebody
    uses a table for longer than `PATIENCE`; ReadOnlyDatabase; WrongEncoding.
    """
    engine = create_engine(url, poolclass=NullPool, connect_args=_CONNECTION)
    retrying = Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_random(0.5, 2.0),
        stop=stop_after_delay(PATIENCE),
        reraise=True,
    )
    try:
        retrying(_upgrade, engine)
    except DBAPIError as error:
        if isinstance(error.orig, psycopg2.errors.ReadOnlySqlTransaction):
            raise ReadOnlyDatabase(READ_ONLY) from error
        if not _is_busy(error):
            raise
        raise SchemaInUse(
            f"the schema can't be changed: for {PATIENCE:g} s others have been using tables that change. Try again"
            " when long reads and backups are over; pg_stat_activity shows who is connected"
        ) from error


def _upgrade(engine: Engine) -> None:
    config = _config()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        found = _schema(connection)
        if found.revision is not None and found.revision not in known():
            if not found.suits(known()):
                raise _too_new(found)
            return
        if found.revision != head():
            _check_nobody_breaks(connection)
            milliseconds = int(STATEMENT_LOCK_SECONDS * 1000)
            connection.execute(text(f"SET LOCAL lock_timeout = {milliseconds}"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        properties.put(connection, _COMPATIBLE_FROM, compatible_from())


def _check_nobody_breaks(connection: Connection) -> None:
    query = text(
        "SELECT DISTINCT application_name, coalesce(host(client_addr), 'local') FROM pg_stat_activity"
        " WHERE datname = current_database() AND starts_with(application_name, :server)"
    )
    revisions = known()
    too_old = revisions[: revisions.index(compatible_from())]
    connected = [(name.removeprefix(_SERVER), place) for name, place in connection.execute(query, {"server": _SERVER})]
    broken = sorted(f"{place} ({revision})" for revision, place in connected if revision in too_old)
    if broken:
        raise SchemaInUse(
            f"servers are running that can't work with the schema of revision {head()}: {', '.join(broken)}."
            f" Stop them first, or upgrade all to a version that knows revision {compatible_from()} before this one"
        )


def _schema(connection: Connection) -> Schema:
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise WrongEncoding(f"the database is in {encoding}; make one with: CREATE DATABASE ... ENCODING 'UTF8'")
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None:
        return Schema(None, None)
    return Schema(revision, properties.get(connection, _COMPATIBLE_FROM))


def _too_new(found: Schema) -> SchemaTooNew:
    return SchemaTooNew(
        f"the database's schema is at revision {found.revision}, for servers that know"
        f" {found.compatible_from or found.revision}; this one knows {head()}; upgrade the server"
    )


def _is_busy(error: BaseException) -> bool:
    busy = psycopg2.errors.LockNotAvailable | psycopg2.errors.DeadlockDetected
    return isinstance(error, DBAPIError) and isinstance(error.orig, busy)


@functools.cache
def _scripts() -> list[Script]:
    return list(ScriptDirectory.from_config(_config()).walk_revisions())[::-1]


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config

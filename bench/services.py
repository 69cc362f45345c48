"""The services without their sockets, for what is measured without a network between."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.migrations import upgrade
from tests.support.postgres import Postgres


@contextmanager
def opened() -> Iterator[tuple[Metastore, str]]:
    """The services on a Postgres of their own, and the database's SQLAlchemy URL."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        postgres = Postgres(home / "postgres")
        stack.callback(postgres.close)
        url = stack.enter_context(postgres.fresh_database())
        upgrade(url)
        metastore = Metastore.open(Settings(database_url=url, warehouse_dir=str(home / "warehouse")))
        stack.callback(metastore.close)
        yield metastore, url

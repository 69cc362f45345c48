"""Every table of the database that a kept reply was read from is one of which the reply's objects tell.

Which tables a transaction read Postgres knows: it holds locks on them until the transaction ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, text

from metastore.services.wiring import Metastore
from metastore.store.engine.read_set import Kind, recording
from metastore.store.schema import metadata
from tests.metastore.cache.local import LocalClient, opened
from tests.metastore.cache.test_differential import READS, outcome
from tests.support.builders import database
from tests.support.postgres import Postgres
from tests.visibility import recipes, writers
from tests.visibility.readers import NAME, NONE, Reader

ANY = frozenset(Kind)
TOLD_BY = {
    "catalogs": ANY,  # a name that something has stays what it is
    "databases": {Kind.DATABASES, Kind.DATABASE, Kind.TABLES, Kind.TABLE},  # a database with tables stays, too
    "tables": {Kind.TABLES, Kind.TABLE, Kind.DATABASES},  # the last where there is no such database
    "storage_descriptors": ANY,  # what has a number never changes
    "column_statistics": {Kind.STATISTICS},
    "partitions": {Kind.PARTITIONS},
    "timelines": {Kind.TIMELINE},
    "former_positions": {Kind.TABLE},  # one of a name changes when the table that has the name loses it
    "instants": {Kind.TIMELINE},
    "data_files": {Kind.TIMELINE},  # they change when an instant does
    "lake_partitions": {Kind.TIMELINE},  # like their files
    "uncommitted_spans": {Kind.TIMELINE},  # of partitions with files they change with a position
    "publications": {Kind.TIMELINE},  # who finds files on their way moves them, and what it answers isn't kept
    "cache_state": ANY,
}


LOCKED = "SELECT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid() AND relation IS NOT NULL"


class Watched:
    """The services, and from which tables of the database they have read."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.tables: set[str] = set()
        self._read = metastore.database.read
        metastore.database.read = self._watched  # type: ignore[method-assign]

    @contextmanager
    def _watched(self) -> Iterator[Connection]:
        with self._read() as tx:
            yield tx
            self.tables |= set(tx.execute(text(LOCKED)).scalars()) & set(metadata.tables)


@pytest.fixture(scope="module")
def watched(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with opened(postgres, tmp_path_factory.mktemp("read set")) as metastore:
        client: Any = LocalClient(metastore)
        client.create_database(database("e"))
        recipes.fill(client, "d", with_hidden=True)
        recipes.commit_files(client, "d", with_hidden=True)
        writers.fill(client, "e")
        yield Watched(metastore)


@pytest.mark.parametrize("scope", [NONE, NAME], ids=str)
@pytest.mark.parametrize("db", ["d", "e"])
def test_all_that_is_read_is_recorded(watched: Watched, db: str, scope: Any) -> None:
    reader: Any = Reader(LocalClient(watched.metastore), db, **scope.reader)  # type: ignore[arg-type]
    kept = 0
    for method, ask in READS:
        watched.tables.clear()
        with recording() as read_set:
            answer = outcome(ask, reader)
        if isinstance(answer, tuple) or not read_set.whole:
            continue  # an error, or an unknown read set: not kept
        kept += 1
        kinds = {Kind(kind) for kind, _ in read_set.objects}
        untold = {table for table in watched.tables if not kinds & TOLD_BY.get(table, frozenset())}
        assert not untold, f"{method} reads {untold} and tells of {kinds}"
    assert kept > 20

"""The methods called within the test's own process, and a cache without servers that forgets nothing by itself."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import text
from thrift.Thrift import TException

from metastore import api
from metastore.api.methods import HANDLERS, Call, Encoded
from metastore.api.session import Session
from metastore.services.access.caller import Caller
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.cache import cache_changes
from metastore.store.engine.read_set import recording
from tests.support.postgres import Postgres
from tests.visibility.readers import Reader

api.load()

Object = tuple[str, int]


class LocalClient:
    """Calls the functions behind the methods. For those who may be given a ThriftClient."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._session = Session("1", Caller(None))
        self.called: set[str] = set()

    def call(self, method: str, *arguments: Any) -> Any:
        self.called.add(method)
        call = Call(self._session, self._metastore, False)
        handler = HANDLERS[method]
        missing = handler.function.__code__.co_argcount - 1 - len(arguments)
        value = handler.function(call, *arguments, *[None] * missing)
        # A client gets objects of its own: what the services return may share parts with what comes later.
        return list(value.pieces) if isinstance(value, Encoded) else copy.deepcopy(value)

    def __getattr__(self, method: str) -> Any:
        return partial(self.call, method)


@contextmanager
def opened(postgres: Postgres, directory: Path) -> Iterator[Metastore]:
    """The services on a database of their own."""
    with postgres.fresh_database(upgraded=True) as url:
        metastore = Metastore.open(
            Settings(database_url=url, data_dir=directory, warehouse_dir=str(directory / "warehouse"))
        )
        try:
            with metastore.database.write() as tx:
                cache_changes.begin(tx)
            yield metastore
        finally:
            metastore.close()


class Kept(NamedTuple):
    answer: Any
    objects: frozenset[Object]
    since: str

    def __str__(self) -> str:
        return f"kept since {self.since}, which watches {set(self.objects)}"


class Keeper:
    """Keeps every answer that may be kept until a note says that it may not.

    An answer with its objects is sound if nothing changes *either* without a note of one of these objects. Then an
    answer that no note has touched has today's objects, too, and by induction it is today's answer, however many
    changes came between. Objects alone could go wrong one change later: a list that is empty because its database is
    gone must not go on waiting for tables of the old one.
    """

    def __init__(self, metastore: Metastore, reads: Sequence[tuple[str, Callable[[Reader], Any], Reader]]) -> None:
        self._metastore = metastore
        self._reads = reads
        self._kept: dict[int, Kept] = {}
        self._seen = 0
        self.answered: set[str] = set()
        """The methods of which an answer was kept at any time."""
        self.changed: set[str] = set()
        """Those of which a note said that a kept answer didn't hold any more."""

    def look(self, found: str) -> None:
        """Reads everything after something was written, and compares."""
        notes = self._notes()
        for number, (method, ask, reader) in enumerate(self._reads):
            kept = self._kept.get(number)
            if kept is not None and kept.objects & notes:
                del self._kept[number]
                self.changed.add(method)
                kept = None
            place = f"{method} of {reader.db} after {found}, which noted {sorted(notes)}"
            with recording() as read_set:
                try:
                    answer = ask(reader)
                except TException as error:  # errors aren't kept
                    assert kept is None, f"{place}: {error}; {kept}"
                    continue
            # Who reads events may have to write their numbers: that answer isn't kept, another one may be.
            objects = frozenset(read_set.objects) if read_set.whole else None
            if kept is not None:
                assert answer == kept.answer, f"{place}: another answer; {kept}"
                assert objects in (None, kept.objects), f"{place}: {objects} should be watched; {kept}"
            elif objects:
                self._kept[number] = Kept(answer, objects, found)
                self.answered.add(method)

    def _notes(self) -> set[Object]:
        """What was noted since the last time. Nobody else is at work, so transactions end in the order of their ids."""
        with self._metastore.database.read() as tx:
            query = text("SELECT xid, kind, id FROM cache_changes WHERE xid > :seen")
            rows = tx.execute(query, {"seen": self._seen}).all()
        self._seen = max((row.xid for row in rows), default=self._seen)
        return {(row.kind, row.id) for row in rows}

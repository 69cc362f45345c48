"""SQL for other metastores that are followed: how far, and by whom.

Whoever takes a source gets a new number. Transactions on behalf of an older one are refused, also if they were begun
before and are late: they hold the row, so nobody takes the source while one of them commits.
"""

from typing import NamedTuple

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert

from lake.protocol.errors import TAKEN_OVER
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.catalog import followed_sources

_it = followed_sources.c


class TakenOver(RuntimeError):
    """Somebody else has taken the source meanwhile."""

    def __init__(self, source: str) -> None:
        super().__init__(f"{TAKEN_OVER}: {source}")


class Held(NamedTuple):
    """A source, and by which number it was taken."""

    source: str
    databases: str
    holder: int

    def check(self, tx: Connection) -> None:
        """Holds the source until the transaction ends. Raises TakenOver."""
        found = select(_it.holder).where(_it.source == self.source, _it.databases == self.databases)
        if tx.execute(found.with_for_update(read=True)).scalar_one_or_none() != self.holder:
            raise TakenOver(self.source)


class Followed(NamedTuple):
    """A row of the table."""

    source: str
    databases: str
    holder: int
    position: int
    state: str

    @property
    def held(self) -> Held:
        return Held(self.source, self.databases, self.holder)


def all_sources(tx: Connection) -> list[Followed]:
    """All that are followed, in order."""
    mark_uncacheable()
    rows = tx.execute(select(followed_sources).order_by(_it.source, _it.databases))
    return [Followed(*row) for row in rows]


def take(tx: Connection, source: str, databases: str) -> Followed:
    """Takes a source, which is new at position 0. Waits for transactions of who had it."""
    new = insert(followed_sources).values(source=source, databases=databases, holder=1, position=0, state="{}")
    taken = new.on_conflict_do_update(index_elements=["source", "databases"], set_={"holder": _it.holder + 1})
    return Followed(*tx.execute(taken.returning(*followed_sources.columns)).one())


def join(tx: Connection, held: Held) -> Followed:
    """A source that was taken. Raises TakenOver."""
    held.check(tx)
    own = select(followed_sources).where(_it.source == held.source, _it.databases == held.databases)
    return Followed(*tx.execute(own).one())


def keep(tx: Connection, followed: Followed) -> None:
    """Keeps position and state. Raises TakenOver."""
    of = (_it.source == followed.source, _it.databases == followed.databases, _it.holder == followed.holder)
    changed = update(followed_sources).where(*of).values(position=followed.position, state=followed.state)
    if tx.execute(changed).rowcount != 1:
        raise TakenOver(followed.source)

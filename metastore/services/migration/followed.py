"""Other metastores that are followed: how far, and by whom."""

from lake.protocol.hive import MetaException
from lake.protocol.lake import FollowedSource
from metastore.store import Database
from metastore.store.catalog import followed_sources
from metastore.store.catalog.followed_sources import Followed, Held
from metastore.store.engine.beginnings import beginning

MAX_NAME = 4_000
MAX_STATE = 4_000_000
"""Characters of a source's name, and of what its follower keeps."""


class FollowedSources:
    """What followers of other metastores keep here. One of them has a source at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[FollowedSource]:
        """All that are, or were, followed."""
        with self._database.read() as tx:
            return [_to_thrift(each) for each in followed_sources.all_sources(tx)]

    def take(self, source: str | None, databases: str | None, holder: int | None) -> tuple[Held, FollowedSource]:
        """Takes a source, or joins the holder who has. Raises MetaException, TakenOver."""
        if not source or not databases:
            raise MetaException("a source that is followed has a name, and patterns of its databases")
        if max(len(source), len(databases)) > MAX_NAME:
            raise MetaException(f"the name of a source has {MAX_NAME:,} characters at most")
        # Also by who has had it before, and whose changes are refused.
        with beginning(None), self._database.write() as tx:
            if holder is None:
                found = followed_sources.take(tx, source, databases)
            else:
                found = followed_sources.join(tx, Held(source, databases, holder))
        return found.held, _to_thrift(found)

    def keep(self, followed: FollowedSource) -> None:
        """Keeps position and state. Raises MetaException, TakenOver."""
        state = followed.state or ""
        if len(state) > MAX_STATE:
            raise MetaException(f"the state of a follower has {MAX_STATE:,} characters at most, not {len(state):,}")
        row = Followed(
            followed.source or "", followed.databases or "", followed.holder or 0, followed.position or 0, state
        )
        with self._database.write() as tx:
            followed_sources.keep(tx, row)


def _to_thrift(row: Followed) -> FollowedSource:
    return FollowedSource(row.source, row.databases, row.holder, row.position, row.state)

"""What is kept here of a metastore that is followed: how far, and where each of its databases lives."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from lake.protocol.errors import UserError
from lake.protocol.hive import NotificationEvent
from lake.protocol.lake import FollowedSource
from metastore.migration.mapping import Renaming, Selection
from metastore.migration.objects import DatabaseKey, TableKey
from metastore.migration.source import Source
from metastore.migration.thrift_source import ThriftSource

IMPORT = "an import"
"""What holds a selection while it is imported."""

HIDDEN = "HIDDEN"
"""The type of entries of a log that their reader may not see."""

MAX_UNFINISHED = 10_000
"""Tables that are tried again, at most; beyond them all are compared."""


class Home(StrEnum):
    """Where a database is written. `CUTTING`, `SWITCHING`, `RETURNING`: it is frozen on one side, or may be."""

    THERE = "there"
    CUTTING = "cutting over"
    SWITCHING = "switching"
    HERE = "here"
    RETURNING = "rolling back"


@dataclass
class State:
    """What a follower keeps beside its position.

    `imported`: whether an import has come to its end. `mirrored`: databases that had nothing here before; what isn't in
    them any more there is dropped here. `brought`: databases that were here themselves as they are there at some time,
    and catalogs (`catalog_key`); others of these names aren't changed. `homes`: by database where it lives, if not
    there. `unfinished`: tables that couldn't be brought, to be tried again; with an empty name databases, and without a
    database catalogs. `ungranted`: tables with grants that couldn't be brought; with an empty name databases.
    `compare`: whether all has to be compared. `mark`: a digest of the entry at the position. `follower`: who follows
    it, unless a command does something else meanwhile, which is `held`. `under_way`: databases that are being moved: by
    which options (`Gate.way`), and where the log stood of the side that clients are sent to before they were.
    """

    renames: dict[str, str] = field(default_factory=dict)
    locations: list[list[str]] = field(default_factory=list)
    imported: bool = False
    mirrored: set[DatabaseKey] = field(default_factory=set)
    homes: dict[DatabaseKey, Home] = field(default_factory=dict)
    unfinished: set[TableKey] = field(default_factory=set)
    compare: bool = False
    mark: str | None = None
    held: str | None = None
    follower: str | None = None
    under_way: dict[DatabaseKey, tuple[str, int]] = field(default_factory=dict)
    brought: set[DatabaseKey] = field(default_factory=set)
    ungranted: set[TableKey] = field(default_factory=set)

    @classmethod
    def parse(cls, text: str) -> "State":
        """Raises UserError for a state that another version has written."""
        try:
            found = json.loads(text)
            return cls(
                dict(found.get("renames", {})),
                list(found.get("locations", [])),
                bool(found.get("imported")),
                {DatabaseKey(*each) for each in found.get("mirrored", ())},
                {DatabaseKey(*key): Home(home) for key, home in found.get("homes", ())},
                {TableKey(*each) for each in found.get("unfinished", ())},
                bool(found.get("compare")),
                found.get("mark"),
                found.get("held"),
                found.get("follower"),
                {DatabaseKey(*key): (way, position) for key, way, position in found.get("under_way", ())},
                {DatabaseKey(*each) for each in found.get("brought", ())},
                {TableKey(*each) for each in found.get("ungranted", ())},
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"what is kept of the followed metastore can't be read: {error}") from None

    def text(self) -> str:
        more = max(len(self.unfinished), len(self.ungranted)) > MAX_UNFINISHED
        return json.dumps(
            {
                "renames": self.renames,
                "locations": self.locations,
                "imported": self.imported,
                "mirrored": sorted(self.mirrored),
                "homes": sorted((key, home.value) for key, home in self.homes.items()),
                "unfinished": sorted(self.unfinished)[:MAX_UNFINISHED],
                "ungranted": sorted(self.ungranted)[:MAX_UNFINISHED],
                "brought": sorted(self.brought),
                "compare": self.compare or more,
                "mark": self.mark,
                "held": self.held,
                "follower": self.follower,
                "under_way": sorted((key, *way) for key, way in self.under_way.items()),
            }
        )

    @property
    def renaming(self) -> Renaming:
        return Renaming(self.renames, [(old, new) for old, new in self.locations])

    def namesake(self, key: DatabaseKey) -> DatabaseKey | None:
        """The database there that gets the name of this one here, by `renames`; None if none does."""
        found = [old for old, new in self.renames.items() if new == key.database]
        return key._replace(database=found[0]) if found and key.database not in self.renames else None

    def home(self, key: DatabaseKey) -> Home:
        return self.homes.get(key, Home.THERE)

    def settle(self, key: DatabaseKey, home: Home, way: str | None = None, position: int = 0) -> None:
        """Says where a database lives; `way`, `position`: see `under_way`."""
        if home is Home.THERE:
            self.homes.pop(key, None)
        else:
            self.homes[key] = home
        if way is None:
            self.under_way.pop(key, None)
        else:
            self.under_way[key] = way, position


class Followed:
    """A source that is followed, as it is kept here."""

    def __init__(self, here: ThriftSource, kept: FollowedSource) -> None:
        self._here = here
        self.source, self.databases = kept.source or "", kept.databases or ""
        self._set(kept)

    def _set(self, kept: FollowedSource) -> None:
        self._holder = kept.holder or 0
        self.position: int = kept.position or 0
        self.state = State.parse(kept.state or "{}")

    @property
    def selection(self) -> Selection:
        return Selection.parse(None if self.databases == "*" else self.databases)

    @property
    def is_new(self) -> bool:
        """Whether nothing has been kept of it before."""
        return self.state == State()

    def take(self) -> None:
        """From here on changes of others who had it are refused. Position and state are read again."""
        kept: FollowedSource = self._here.call("lake_take_followed", self.source, self.databases, None)
        self._set(kept)
        self._here.hold(self.source, self.databases, self._holder)

    def keep(self) -> None:
        """Raises TakenOver, and what a server raises that takes no changes."""
        kept = FollowedSource(self.source, self.databases, self._holder, self.position, self.state.text())
        self._here.call("lake_keep_followed", kept)

    def settle(self, key: DatabaseKey, home: Home, way: str | None = None, position: int = 0) -> None:
        """Says where a database lives, and keeps it. Raises as `keep`."""
        self.state.settle(key, home, way, position)
        self.keep()

    def look(self) -> "Followed":
        """What is kept by now, maybe by others."""
        same = (each for each in all_of(self._here) if (each.source, each.databases) == (self.source, self.databases))
        return next(same, self)


def digest(event: NotificationEvent) -> str:
    """By which an entry of a log is known again."""
    text = "\0".join(
        str(each)
        for each in (event.eventId, event.eventTime, event.eventType, event.dbName, event.tableName, event.message)
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def mark_at(source: Source, position: int) -> str | None:
    """The digest of a log's entry at a position; None if it has none, or doesn't show it.

    A metastore that was set back to a copy of its database may come to the position again by other entries.
    """
    found = source.events(position - 1, 1) if position else []
    return next((digest(each) for each in found if each.eventId == position and each.eventType != HIDDEN), None)


def source_name(source: str) -> str:
    """How a source is called here: its address without user, password and options."""
    parts = urlsplit(source)
    return f"{parts.scheme.partition('+')[0]}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}".lower()


def patterns_name(patterns: Sequence[str] | None) -> str:
    """How a selection of databases is called here."""
    return "*" if patterns is None else ",".join(sorted(patterns))


def all_of(here: ThriftSource, source: str | None = None) -> list[Followed]:
    """All selections of a source that are known here; None: of all sources."""
    name = None if source is None else source_name(source)
    kept: Iterable[FollowedSource] = here.call("lake_list_followed")
    return [Followed(here, each) for each in kept if name is None or each.source == name]


def known_text(here: ThriftSource) -> str:
    """What imports have ended here, in words."""
    found = [f"{each.source} with --databases '{each.databases}'" for each in all_of(here) if each.state.imported]
    return f"imported were: {'; '.join(found)}" if found else "nothing was imported"


def taken_by(old: Source, followed: Followed, key: DatabaseKey) -> DatabaseKey | None:
    """The database there that has the name of this one here already; None if there is none.

    One may be made there long after the import.
    """
    other = followed.state.namesake(key)
    if other is None or not followed.selection.includes(other):
        return None
    return other if followed.state.home(other) is not Home.THERE or old.database(other) is not None else None


def living_here(some: Iterable[Followed]) -> dict[DatabaseKey, Home]:
    """Databases, by their names here, that no follower may change, and why."""
    return {
        each.state.renaming.database_key(key): home
        for each in some
        for key, home in each.state.homes.items()
        if home in (Home.SWITCHING, Home.HERE, Home.RETURNING)
    }


def brought_by_others(some: Iterable[Followed], source: str) -> dict[DatabaseKey, str]:
    """Databases, by their names here, that other sources have brought, or are about to, and which."""
    return {
        each.state.renaming.database_key(key): each.source
        for each in some
        if each.source != source
        for key in each.state.mirrored | each.state.brought
        if key.database
    }


def check_free(followed: Followed, then: str, *but: str) -> None:
    """Raises UserError while a command holds what is followed, or was killed; not for those of `but`.

    Taking it would have a command under way fail, maybe while a database is frozen.
    """
    held = followed.look().state.held
    if held is not None and held not in but:
        raise UserError(f"{held} was not ended: when it isn't under way any more, do it again, then {then}")


def begin(
    here: ThriftSource,
    source: str,
    selection: Selection,
    renaming: Renaming,
    others: Mapping[DatabaseKey, str],
) -> Followed:
    """Takes a selection of a source for an import. `others`: see `brought_by_others`.

    Raises UserError if it was brought under other names before, and for a cut-over or roll-back that has not come to
    its end.
    """
    databases = patterns_name(selection.patterns)
    found = Followed(here, FollowedSource(source_name(source), databases, 0, 0, "{}"))
    check_free(found, "import", IMPORT)
    found.take()
    names = dict(renaming.databases), [list(each) for each in renaming.locations]
    if found.is_new:
        found.state.renames, found.state.locations = names
    elif found.state.locations == names[1] and _were_refused(found.state, names[0], others):
        found.state.renames = names[0]
    elif (found.state.renames, found.state.locations) != names:
        raise UserError(
            f"{found.source} was brought with {described(found.state)} before: give the same, or import into another"
            " metastore"
        )
    return found


def _were_refused(state: State, renames: Mapping[str, str], others: Mapping[DatabaseKey, str]) -> bool:
    """Whether all databases that get another name now weren't brought, since others have their names here."""
    changed = {name for name in {*state.renames, *renames} if state.renames.get(name, name) != renames.get(name, name)}
    brought = {key.database for key in (*state.brought, *state.homes)}
    taken = {key.database for key in others}
    return not changed & brought and all(state.renames.get(name, name) in taken for name in changed)


def described(state: State) -> str:
    """The mapping of names and places, as options."""
    parts = [f"--rename {old}={new}" for old, new in state.renames.items()]
    parts += [f"--location {old}={new}" for old, new in state.locations]
    return " ".join(parts) or "neither --rename nor --location"


def plain(found: Followed) -> dict[str, Any]:
    """For JSON."""
    return {"source": found.source, "databases": found.databases, "position": found.position}

"""Decides which directories the server may delete or move: those below the warehouse's roots, and those it created.

Clients choose locations freely, so a location doesn't prove who owns the files there, not even that of a managed table.
The roots come from the operator's settings only. Outside of them, the server records which directories it created, or
found empty, for a catalog, a database, a table or a partition. It may delete these until the object is dropped without
its files.

A directory that another object uses, too, by the same path or through a symbolic link, is never deleted. A directory
that lies in the directory of another table or partition is deleted only if the server made it: what was there before
belongs to the other. Databases don't count: tables usually lie in their directories.

Whoever gives an object a place, and whoever deletes one, locks the place until the transaction ends: otherwise neither
would see what the other is about to do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import structlog

from lake.protocol.hive import MetaException
from metastore.store.engine.database import Transaction
from metastore.store.files import directories
from metastore.store.partition import locations
from metastore.warehouse import Warehouse

_HELD_AT_MOST = 64
"""Directories that are held one by one, and not by those above them."""

ADVICE = "see the setting delete_roots"

log = structlog.get_logger(__name__)


class Deletable:
    """Decides what a drop, a truncation, a clean or a rename may delete or move."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    # --- holding ----------------------------------------------------------------------------------------------

    def hold(self, tx: Transaction, places: Collection[str]) -> None:
        """Lets nobody delete some places, or one above them, until the transaction ends.

        For places that objects are about to get: before it is looked at what still has to be deleted there.
        """
        true = self._warehouse.true_locations(places)
        directories.hold(tx, {above for each in {*true, *true.values()} for above in _upwards(each)}, exclusive=False)

    def _hold_alone(self, tx: Transaction, true: Mapping[str, str]) -> None:
        """Waits for those who are giving objects a place at or below some places, and lets nobody begin to."""
        wanted = {*true, *true.values()}
        while len(wanted) > _HELD_AT_MOST:
            wanted = {each.rpartition("/")[0] for each in wanted}
        directories.hold(tx, wanted, exclusive=True)

    # --- remembering ------------------------------------------------------------------------------------------

    def record(self, tx: Transaction, location: str, *, made: bool) -> None:
        """Records who owns the directory of a new object. `made`: the server has just created it."""
        true = self._warehouse.true_locations([location])[location]
        self._record_links(tx, {location: true})
        needs_note = self._warehouse.outside_roots([true]) or self._surrounded(tx, {location: true}, None)
        if needs_note and (made or self._warehouse.is_unused(location)):
            directories.add_made(tx, [true])

    def record_many(self, tx: Transaction, places: Sequence[str], made: Collection[str], *, besides: int) -> None:
        """Like `record`, for partitions outside of their table's directory.

        `made`: the ones that didn't exist. `besides`: the table's id.
        """
        if not places:
            return
        true = self._warehouse.true_locations(places)
        self._record_links(tx, true)
        new = {place: true[place] for place in places if place in made}
        outside = self._warehouse.outside_roots(new.values())
        own = self._made(tx, outside)
        inside = {new[place] for place in self._surrounded(tx, new, besides)}
        directories.add_made(tx, [*inside, *(place for place in outside if not _is_below_any(place, own))])

    def record_given(self, tx: Transaction, places: Collection[str]) -> None:
        """Records the links of locations that an alteration sets. It creates no directories."""
        self._record_links(tx, self._warehouse.true_locations(places))

    def record_moved(self, tx: Transaction, source: str, target: str) -> None:
        """Records that a directory of the server is moved to a new path."""
        true = self._warehouse.true_locations([source, target])
        directories.forget_made(tx, [true[source]])
        self._record_links(tx, {target: true[target]})
        if self._warehouse.outside_roots([true[target]]) or self._surrounded(tx, {target: true[target]}, None):
            directories.add_made(tx, [true[target]])

    def forget(self, tx: Transaction, places: Collection[str]) -> None:
        """Records that directories no longer belong to the server: their objects are dropped without the files."""
        if places:
            directories.forget_made(tx, list(self._warehouse.true_locations(places).values()))

    def look_after_links(self, tx: Transaction, after: str, limit: int) -> str:
        """Updates where symbolic links lead: somebody may have replaced a directory by one.

        Checks `limit` locations after a location. Returns the last checked one; empty if there are no more.
        """
        some = directories.locations_after(tx, after, limit)
        true = self._warehouse.true_locations(some)
        self._record_links(tx, true)
        directories.forget_links(tx, [each for each, place in true.items() if each == place])
        last = some[-1] if len(some) == limit else ""
        if not last:
            directories.forget_needless_links(tx)
        return last

    @staticmethod
    def _record_links(tx: Transaction, true: dict[str, str]) -> None:
        led = {each: place for each, place in true.items() if each.startswith("file:") and each != place}
        directories.put_links(tx, led)

    # --- deciding ---------------------------------------------------------------------------------------------

    def among(self, tx: Transaction, places: Sequence[str], *, of: int | None = None) -> list[str]:
        """The directories that may be deleted, in order. Logs why the others stay.

        `of`: the id of a table whose partitions lay there. The caller has removed the dropped objects.
        """
        if not places:
            return []
        true = self._warehouse.true_locations(places, follow_last=False)
        self._hold_alone(tx, true)
        return self._among(tx, places, true, self._surrounded(tx, true, of))

    def recorded_among(self, tx: Transaction, places: Sequence[str]) -> list[str]:
        """Those of some places that may be deleted, where it is recorded that all are to be: so nobody comes there.

        It isn't known any more whose they were, and so nothing is said of those in a table's directory.
        """
        return self._among(tx, places, self._warehouse.true_locations(places, follow_last=False), set())

    def _among(
        self, tx: Transaction, places: Sequence[str], true: Mapping[str, str], surrounded: Collection[str]
    ) -> list[str]:
        outside = self._outside(tx, true)
        shared = self._shared(tx, {each: place for each, place in true.items() if each not in outside}, None)
        kept = outside | shared | set(surrounded)
        going = {place for each, place in true.items() if each not in kept}
        directories.forget_made(tx, directories.made(tx, going) | self._warehouse.outside_roots(going))
        for place in places:
            if place in outside:
                log.warning("files are kept", location=place, reason="outside of the warehouse", advice=ADVICE)
            elif place in shared:
                log.warning("files are kept", location=place, reason="another object uses the directory")
            elif place in surrounded:
                log.warning("files are kept", location=place, reason="it lies in another table's directory")
        return [each for each in places if each not in kept]

    def check(self, tx: Transaction, places: Sequence[str], done: str, *, besides: int | None = None) -> None:
        """Raises MetaException unless all directories may be emptied or moved. `done`: the verb for the message."""
        true = self._warehouse.true_locations(places, follow_last=False)
        self._hold_alone(tx, true)
        if outside := self._outside(tx, true):
            raise MetaException(
                f"{min(outside)} can't be {done}: it was there before this server used it, and it lies outside of the"
                f" warehouse. An operator can allow it, {ADVICE}"
            )
        if shared := self._shared(tx, true, besides):
            raise MetaException(
                f"{min(shared)} can't be {done}: another table or a database lies there."
                " Give one of them another location"
            )
        if surrounded := self._surrounded(tx, true, besides):
            raise MetaException(
                f"{min(surrounded)} can't be {done}: it lies in another table's directory, and was there before."
                " Give one of them another location"
            )

    def overlapping(self, tx: Transaction, place: str, *, besides: int) -> str | None:
        """The place, if another object than a table lies at or below it, or a table or partition around it; else None.

        Who made the directory doesn't count, nor do databases in between: the writers around it may put files there.
        """
        true = self._warehouse.true_locations([place], follow_last=False)
        above = self._above(true)[true[place]]
        around, _ = self._inhabited(tx, above[1:], besides)
        return place if around or self._shared(tx, true, besides) else None

    def is_own(self, tx: Transaction, place: str) -> bool:
        """Whether single files below a directory may be deleted."""
        return not self._outside(tx, self._warehouse.true_locations([place]))

    def exclusive(self, tx: Transaction, places: Collection[str], *, of: int) -> list[str]:
        """Those of some places at which no table or partition lies, nor around them, besides the table with an id.

        A place in another table's directory counts if the server made it.
        """
        true = self._warehouse.true_locations(places)
        taken, _ = self._inhabited(tx, true.values(), of)
        surrounded = self._surrounded(tx, true, of)
        return [each for each in places if true[each] not in taken and each not in surrounded]

    def own(self, tx: Transaction, base: str, paths: Collection[str], *, of: int) -> set[str]:
        """Those of some paths below a table's directory that belong to no other table or partition.

        `paths`: of files; of directories with a `/` at the end. `of`: the table's id. Nothing belongs to the table if
        another table or partition lies at its directory or around it. If one lies below, what is there is the other's.
        """
        if not paths or not self.exclusive(tx, [base], of=of):
            return set()
        folders = {path: list(_folders(base, path)) for path in paths}
        true = self._warehouse.true_locations({each for some in folders.values() for each in some})
        taken, _ = self._inhabited(tx, true.values(), of)
        own = {path for path, some in folders.items() if not any(true[each] in taken for each in some)}
        whole = {f"{base}/{path.rstrip('/')}": path for path in own if path.endswith("/")}
        shared = self._shared(tx, self._warehouse.true_locations(whole), of) if whole else set()
        return own - {whole[each] for each in shared}

    def _outside(self, tx: Transaction, true: Mapping[str, str]) -> set[str]:
        outside = self._warehouse.outside_roots(true.values())
        own = self._made(tx, outside)
        return {each for each, place in true.items() if place in outside and not _is_below_any(place, own)}

    @staticmethod
    def _made(tx: Transaction, true_places: Iterable[str]) -> set[str]:
        """The ones among some directories and their parents that the server created."""
        return directories.made(tx, {above for place in true_places for above in _upwards(place)})

    def _surrounded(self, tx: Transaction, true: Mapping[str, str], besides: int | None) -> set[str]:
        """Those of some places that lie in the directory of a table or a partition, and that the server didn't make.

        Looks upwards, as far as the warehouse goes. A table that lies where a database does surrounds nothing.
        """
        above = self._above(true)
        around, homes = self._inhabited(tx, {each for all_above in above.values() for each in all_above[1:]}, besides)
        if not around - homes:
            return set()
        made = directories.made(tx, {*above, *homes})
        return {each for each, place in true.items() if _is_around(above[place], around - homes, homes, made)}

    def _above(self, true: Mapping[str, str]) -> dict[str, list[str]]:
        """Some places with those above them, as far as the warehouse goes. Each place comes first."""
        above = {place: list(_upwards(place)) for place in true.values()}
        outside = self._warehouse.outside_roots({each for all_above in above.values() for each in all_above})
        for place, all_above in above.items():
            if place not in outside:
                above[place] = [each for each in all_above if each not in outside]
        return above

    def _inhabited(self, tx: Transaction, true: Iterable[str], besides: int | None) -> tuple[set[str], set[str]]:
        """At which of some places tables or partitions lie, and at which databases do."""
        spelled = {name: place for place in true for name in {place, *self._warehouse.spellings(place)}}
        found = locations.at(tx, spelled.keys(), besides=besides)
        return {spelled[name] for name in found.tables}, {spelled[name] for name in found.databases}

    def _shared(self, tx: Transaction, true: Mapping[str, str], besides: int | None) -> set[str]:
        names = {
            each: {each, *self._warehouse.spellings(each), *self._warehouse.spellings(place)}
            for each, place in true.items()
        }
        free = set(locations.unshared(tx, sorted(set().union(*names.values())), besides=besides))
        return {each for each, known in names.items() if not known <= free}


def _upwards(place: str) -> Iterator[str]:
    """A place, and those above it, without the root of all."""
    while "/" in place and not place.endswith(":/"):
        yield place
        place = place.rpartition("/")[0]


def _folders(base: str, path: str) -> Iterator[str]:
    """The directories between a base and a path below it, with the base."""
    place = f"{base}/{path.rstrip('/')}"
    while len(place := place.rpartition("/")[0]) >= len(base):
        yield place


def _is_around(above: Sequence[str], around: Collection[str], homes: Collection[str], made: Collection[str]) -> bool:
    """Whether one of the directories above a place, which comes first, is a table's, seen from what the server made."""
    for number, each in enumerate(above):
        if each in made and (number == 0 or each in homes):
            return False
        if number and each in around:
            return True
    return False


def _is_below_any(place: str, others: Collection[str]) -> bool:
    """Whether a place is one of some others, or lies in one."""
    return bool(others) and any(each in others for each in _upwards(place))

"""An instant's own directory: files that its writer puts there are nobody's until the instant is completed.

It lies below the table's in a place that readers of directories pass over. When the instant completes, its files either
join the directories of their partitions (they were *staged*: the transaction records what is to be moved, as it does
for batches), or stay where they are, and the directory is that of the partitions from then on (they are *relocated*).
So whoever lists a partition's directory finds files of completed instants alone, and never those of both sides of a
replacement. An instant that is given up takes its directory with it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from metastore.services.instant_directories import DIRECTORY, base_of, below, own_directory
from metastore.services.instant_sealing import Changes
from metastore.services.lake_partitions import lake_partition
from metastore.services.moves import Mover
from metastore.services.publishing import Publisher, directory
from metastore.store import Database, data_files, partitions, publications
from metastore.store.data_files import PartitionSums
from metastore.store.database import Transaction
from metastore.store.instants import InstantRow
from metastore.store.partitions import Selection
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import CompleteInstantRequest


class Joining(NamedTuple):
    """A staged file, by its path below the table, and the partition whose directory it joins under its own name."""

    partition: str
    source: str


class Joined(NamedTuple):
    """A request that names staged files by the places where they will be, what is to be moved there, and directories of
    new partitions that aren't those of their names."""

    request: CompleteInstantRequest
    joining: Sequence[Joining] = ()
    directories: Mapping[str, str] = MappingProxyType({})


class InstantFiles:
    """Files in the directories of instants, from the completion on."""

    def __init__(self, database: Database, warehouse: Warehouse, mover: Mover, publisher: Publisher) -> None:
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._publisher = publisher

    def joined(self, tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest) -> Joined:
        """Where staged files will be, and what is to be moved there. To be called with completions kept away.

        Raises InvalidOperationException for files that aren't there or can't be moved.
        """
        staged = [each for each in request.added or () if each.staged]
        if not staged:
            return Joined(request)
        own = own_directory(instant.timestamp, instant.begun_as)
        there = {below(own, each) for each in self._files(row, own) if _is_visible(_file(each))}
        targets, directories = self._targets(tx, row, own, {each.partition or "" for each in staged})
        self._mover.settle_within(tx, [_base(row), *(f"{_base(row)}/{each}" for each in targets.values())])
        joining, added = [], []
        for each in request.added or ():
            path = each.path or ""
            if not each.staged:
                added.append(each)
                continue
            if path not in there:
                raise InvalidOperationException(f"the staged file {path!r} is not in the instant's directory {own}")
            target = below(targets[each.partition or ""], _file(path))
            if target != path:
                if self._warehouse.exists(f"{_base(row)}/{target}"):
                    raise InvalidOperationException(
                        f"there is a file {target!r} already: give every file a name of its own"
                    )
                joining.append(Joining(lake_partition(row, each.partition).name, path))
            added.append(each.replace(path=target, staged=None))
        return Joined(request.replace(added=added), joining, directories)

    def relocated(self, row: TableRow, instant: InstantRow, request: CompleteInstantRequest) -> dict[str, str]:
        """The new directories of partitions that a completion replaces, by name, relative to the table.

        Raises InvalidOperationException unless exactly the files that it adds to them are there.
        """
        if not request.relocate:
            return {}
        own = own_directory(instant.timestamp, instant.begun_as)
        names = [lake_partition(row, each).name for each in request.replacedPartitions or ()]
        places = {name: below(own, name) for name in names}
        coming: dict[str, set[str]] = {name: set() for name in names}
        for each in request.added or ():
            name = lake_partition(row, each.partition).name
            if name not in places or each.staged:
                raise InvalidOperationException(
                    f"{each.path!r}: who relocates partitions adds files to those that are replaced alone, unstaged"
                )
            coming[name].add(each.path or "")
        found = {below(own, each) for each in self._files(row, own) if all(map(_is_visible, each.split("/")))}
        given = set().union(*coming.values()) if coming else set()
        lost = [each for name, paths in coming.items() for each in paths if each.rpartition("/")[0] != places[name]]
        if wrong := sorted(lost or given ^ found):
            raise InvalidOperationException(
                f"the file {wrong[0]!r}: who relocates partitions adds exactly the files in the instant's directory"
                f" {own}, each in that of its partition's name"
            )
        return places

    def record(self, tx: Transaction, row: TableRow, instant: InstantRow, joined: Joined) -> None:
        """Keeps what is to be moved, once the partitions are there; what is left of the directory then goes."""
        if not joined.joining:
            return
        names = {each.partition for each in joined.joining}
        ids = {data_files.WHOLE_TABLE: publications.WHOLE_TABLE}
        if data_files.WHOLE_TABLE not in names:
            ids = {each.name: each.id for each in partitions.rows(tx, Selection(row.id, names=sorted(names)))}
        moves = [(ids[each.partition], f"{_base(row)}/{each.source}", _file(each.source)) for each in joined.joining]
        publications.add(tx, row.id, moves)
        if not joined.directories:
            leave_over_directory(tx, row, instant)

    @staticmethod
    def pending(tx: Transaction, row: TableRow) -> bool:
        """Whether files of completed instants have not arrived in their partitions' directories yet."""
        return publications.has_any_below(tx, row.id, f"{_base(row)}/{DIRECTORY}")

    def settle(self, row: TableRow) -> None:
        """Sees to it that they have. Raises WarehouseError.

        In a transaction of its own, since others hold partitions first and then what is on its way to them.
        """
        with self._database.write() as tx:
            self._publisher.settle_below(tx, row.id, f"{_base(row)}/{DIRECTORY}")

    def delete(self, tx: Transaction, row: TableRow, path: str) -> bool:
        """Deletes an instant's directory; False while files are still to be moved from there. Raises WarehouseError."""
        place = f"{_base(row)}/{path.rstrip('/')}"
        if publications.has_any_below(tx, row.id, place):
            return False
        self._warehouse.delete_directory(place, within=_base(row))
        return True

    def clear(self, tx: Transaction, row: TableRow, timestamp: str, action: str) -> None:
        """Sees to it that nothing of an instant of the same name, which was given up, is deleted or found later."""
        own = own_directory(timestamp, action)
        if data_files.forget_leftover(tx, row.id, f"{own}/"):
            self._warehouse.delete_directory(f"{_base(row)}/{own}", within=_base(row))

    def _files(self, row: TableRow, own: str) -> set[str]:
        return self._warehouse.files(f"{_base(row)}/{own}", within=_base(row))

    def _targets(
        self, tx: Transaction, row: TableRow, own: str, names: set[str]
    ) -> tuple[Mapping[str, str], dict[str, str]]:
        """Where partitions lie, relative to the table, or will once they are there; and those of the latter by their
        exact names that will be in the instant's directory, because somebody left files in that of their name."""
        exact = {name: lake_partition(row, name).name for name in names}
        if data_files.WHOLE_TABLE in exact.values():
            return dict.fromkeys(names, _relative(row, row.location or "")), {}
        places: dict[str, str] = {}
        directories: dict[str, str] = {}
        for each in partitions.rows(tx, Selection(row.id, names=sorted(set(exact.values())))):
            place = directory(row.location, each.stored.path, each.stored.location) or ""
            if place != row.location and not place.startswith(f"{row.location}/"):
                raise InvalidOperationException(
                    f"{each.name} lies at {place or 'no place'}, not below its table: staged files can't join it"
                )
            places[each.name] = _relative(row, place)
        for name in set(exact.values()) - places.keys():
            places[name] = name
            if self._warehouse.content_summary(f"{_base(row)}/{name}").files:
                places[name] = directories[name] = below(own, name)
        return {name: places[own_name] for name, own_name in exact.items()}, directories


def leave_over_directory(tx: Transaction, row: TableRow, instant: InstantRow) -> None:
    """Has an instant's directory deleted, with all that is in it by then."""
    own = own_directory(instant.timestamp, instant.begun_as)
    data_files.leave_over(tx, row.id, [f"{own}/"])


def back(sums: Sequence[PartitionSums], changes: Changes, instant: InstantRow) -> dict[str, str]:
    """Where partitions are that lay, or lie again, in directories of instants, after an instant that undid others.

    They are where their files are; those without any, in an empty one. By name, relative to the table.
    """
    left = {each.partition for each in changes.removed.values() if _is_of_instant(each.path)}
    places: dict[str, str] = {}
    for each in changes.again:
        if each.partition in left or _is_of_instant(each.path):
            places[each.partition] = each.path.rpartition("/")[0]
    own = own_directory(instant.timestamp, instant.begun_as)
    empty = {each.name: below(own, each.name) for each in sums if not each.files and each.name in left}
    return {**places, **empty}


def _base(row: TableRow) -> str:
    return base_of(row.location or "")


def _relative(row: TableRow, location: str) -> str:
    return location.removeprefix(_base(row)).lstrip("/")


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _is_of_instant(path: str) -> bool:
    return path.startswith(f"{DIRECTORY}/")


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "_"))

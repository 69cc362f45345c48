"""An instant's own directory: files there are invisible until the instant completes.

The directory lies below the table's, in `.instants`, which readers of directories ignore. At the completion there are
two ways. *Staged* files move into the directories of their partitions; the transaction records the moves, as for
batches. *Relocated* partitions take the instant's directory as their own, and no file moves. So a listing of a
partition's directory has only files of completed instants, and never both sides of a replacement. Aborting an instant
deletes its directory.

A plan may be taken up several times. Each attempt has a directory in the instant's, which is deleted when the plan is
given back.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest, InstantKey
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher, directory
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.finalize import Changes
from metastore.services.instant_rules.paths import (
    DIRECTORY,
    base_of,
    below,
    directory_of,
    directory_of_attempt,
    is_of_other_attempt,
    is_of_publish,
    own_directory,
)
from metastore.services.timeline.hive_sync import lake_partition
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.files import publications
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import PartitionSums
from metastore.store.table.tables import TableRow
from metastore.store.timeline.instants import InstantRow
from metastore.warehouse import Warehouse


class Joining(NamedTuple):
    """A staged file, by its path relative to the table, and the partition whose directory it joins."""

    partition: str
    source: str


class Joined(NamedTuple):
    """A request in which staged files have their final paths.

    `joining`: the files to move. `directories`: by partition name, relative to the table, for new partitions that don't
    lie in the directory of their name.
    """

    request: CompleteInstantRequest
    joining: Sequence[Joining] = ()
    directories: Mapping[str, str] = MappingProxyType({})


class InstantFiles:
    """Handles the files in instants' directories when instants complete, abort or are cleaned."""

    def __init__(
        self, database: Database, warehouse: Warehouse, mover: Mover, publisher: Publisher, deletable: Deletable
    ) -> None:
        self._database = database
        self._warehouse = warehouse
        self._deletable = deletable
        self._mover = mover
        self._publisher = publisher

    def joined(self, tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest) -> Joined:
        """Replaces the paths of staged files by their final ones. The caller has locked the timeline's completions.

        Raises InvalidOperationException for files that don't exist or can't be moved, and for those of another attempt.
        """
        for each in request.added or ():
            if is_of_other_attempt(instant, each.path or ""):
                raise InvalidOperationException(
                    f"the file {each.path!r} is of another attempt, whose files are deleted: those of attempt"
                    f" {instant.attempt} lie in {directory_of(instant)}"
                )
        staged = [each for each in request.added or () if each.staged]
        if not staged:
            return Joined(request)
        own = directory_of(instant)
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
        """The new directories of replaced partitions, by name, relative to the table; empty without `relocate`.

        A clustering moves the partitions that it adds files to, without replacing others' files in them. Raises
        InvalidOperationException unless these directories have exactly the added files.
        """
        if not request.relocate:
            return {}
        own = directory_of(instant)
        moved = list(request.replacedPartitions or ())
        if instant.begun_as == rules.CLUSTERING:
            moved += [each.partition or "" for each in request.added or ()]
        names = {lake_partition(row, each).name for each in moved}
        places = {name: below(own, name) for name in names}
        coming: dict[str, set[str]] = {name: set() for name in names}
        for each in request.added or ():
            name = lake_partition(row, each.partition).name
            if name not in places or each.staged:
                raise InvalidOperationException(
                    f"{each.path!r}: with relocate, files may only be added to replaced partitions, and not staged"
                )
            coming[name].add(each.path or "")
        found = {below(own, each) for each in self._files(row, own) if all(map(_is_visible, each.split("/")))}
        given = set().union(*coming.values()) if coming else set()
        lost = [each for name, paths in coming.items() for each in paths if each.rpartition("/")[0] != places[name]]
        if wrong := sorted(lost or given ^ found):
            raise InvalidOperationException(
                f"the file {wrong[0]!r}: with relocate, add exactly the files in the instant's directory {own}, each in"
                " the subdirectory of its partition's name"
            )
        return places

    def record(self, tx: Transaction, row: TableRow, instant: InstantRow, joined: Joined) -> None:
        """Records the files to move, and schedules the deletion of the rest. Call it when the partitions exist."""
        if not joined.joining:
            return
        names = {each.partition for each in joined.joining}
        ids = {data_files.WHOLE_TABLE: publications.WHOLE_TABLE}
        if data_files.WHOLE_TABLE not in names:
            ids = {each.name: each.id for each in partitions.rows(tx, Selection(row.id, names=sorted(names)))}
        moves = [(ids[each.partition], f"{_base(row)}/{each.source}", _file(each.source)) for each in joined.joining]
        publications.add(tx, row.id, moves)
        if not joined.directories:
            schedule_deletion_of_directory(tx, row, instant)

    @staticmethod
    def pending(tx: Transaction, row: TableRow) -> bool:
        """Whether files of completed instants are still to be moved into their partitions' directories."""
        return publications.has_any_below(tx, row.id, staged_place(row))

    def settle(self, row: TableRow) -> None:
        """Moves all pending files, in a transaction of its own. Raises WarehouseError."""
        with self._database.write() as tx:
            self._publisher.settle_below(tx, row.id, staged_place(row))

    def publish(self, table_id: int) -> None:
        """Moves a table's pending files. Raises WarehouseError, DatabaseUnavailable."""
        self._publisher.carry_out(table_id)

    def bring(self, tx: Transaction, row: TableRow, undone: Iterable[InstantKey] = ()) -> list[int]:
        """Moves pending files, in a transaction that hasn't locked partitions yet. Returns the ids for `forget`.

        `undone`: the instants that the transaction undoes, whose files may be gone. Raises WarehouseError.
        """
        place = staged_place(row)
        return self._publisher.bring_below(tx, row.id, place, [f"{place}/{each.timestamp}." for each in undone])

    def forget(self, tx: Transaction, row: TableRow, brought: Sequence[int]) -> None:
        """Removes the records of the moves that `bring` made. Call it when the partitions are locked."""
        self._publisher.forget_below(tx, row.id, staged_place(row), brought)

    def delete(self, tx: Transaction, row: TableRow, path: str) -> bool:
        """Deletes an instant's directory, or one in it. Returns False while files are still to be moved.

        Of a publish the rest is deleted, too, once it is empty. False also if Hive looks there again, because an ALTER
        brought the earlier location back. Raises WarehouseError.
        """
        place = f"{_base(row)}/{path.rstrip('/')}"
        if publications.has_any_below(tx, row.id, place) or self._is_seen(tx, row, path.rstrip("/")):
            return False
        self._warehouse.delete_directory(place, within=_base(row))
        above = path.rstrip("/").rpartition("/")[0]
        while is_of_publish(above) and self._warehouse.delete_empty_directory(f"{_base(row)}/{above}"):
            above = above.rpartition("/")[0]
        return True

    @staticmethod
    def _is_seen(tx: Transaction, row: TableRow, path: str) -> bool:
        """Whether a directory of a publish is the location of its partition, or of the table."""
        if not is_of_publish(path):
            return False
        name, place = "/".join(path.split("/")[2:]), f"{_base(row)}/{path}"
        held = partitions.rows(tx, Selection(row.id, names=[name])) if name else ()
        places = (directory(row.location, each.stored.path, each.stored.location) for each in held)
        return place in (row.location, *places)

    def clear(self, tx: Transaction, row: TableRow, timestamp: str, action: str) -> None:
        """Deletes the directories that an aborted instant of the same name left, before a new one uses them.

        Those stay in which another table or partition lies.
        """
        left = data_files.cancel_deletions_of_directories(tx, row.id, own_directory(timestamp, action))
        for place in sorted(self._deletable.own(tx, _base(row), left, of=row.id)):
            self._warehouse.delete_directory(f"{_base(row)}/{place.rstrip('/')}", within=_base(row))

    def _files(self, row: TableRow, own: str) -> set[str]:
        return self._warehouse.files(f"{_base(row)}/{own}", within=_base(row))

    def _targets(
        self, tx: Transaction, row: TableRow, own: str, names: set[str]
    ) -> tuple[Mapping[str, str], dict[str, str]]:
        """The directories of partitions, relative to the table; and those of new partitions with another directory.

        A new partition gets the directory of its name. If that has files already, it gets one in the instant's
        directory; only these are in the second result, by exact name.
        """
        exact = {name: lake_partition(row, name).name for name in names}
        if data_files.WHOLE_TABLE in exact.values():
            return dict.fromkeys(names, _relative(row, row.location or "")), {}
        places: dict[str, str] = {}
        directories: dict[str, str] = {}
        for each in partitions.rows(tx, Selection(row.id, names=sorted(set(exact.values())))):
            place = directory(row.location, each.stored.path, each.stored.location) or ""
            if place != row.location and not place.startswith(f"{row.location}/"):
                raise InvalidOperationException(
                    f"{each.name} has the location {place or 'None'}, not below its table: staged files can't join it"
                )
            places[each.name] = _relative(row, place)
        for name in set(exact.values()) - places.keys():
            places[name] = name
            if self._warehouse.content_summary(f"{_base(row)}/{name}").files:
                places[name] = directories[name] = below(own, name)
        return {name: places[own_name] for name, own_name in exact.items()}, directories


def staged_place(row: TableRow) -> str:
    """The directory of a table in which those of its instants lie."""
    return f"{_base(row)}/{DIRECTORY}"


def schedule_deletion_of_directory(tx: Transaction, row: TableRow, instant: InstantRow) -> None:
    """Schedules the deletion of an instant's directory with all its files, those of all attempts."""
    own = own_directory(instant.timestamp, instant.begun_as)
    data_files.schedule_deletion(tx, row.id, [f"{own}/"])


def schedule_deletion_of_attempts(tx: Transaction, row: TableRow, instant: InstantRow, attempts: Iterable[int]) -> None:
    """Schedules the deletion of the directories of some attempts at an instant's plan.

    Nothing happens if an attempt had none of its own, because there is no plan or an older server began it.
    """
    if instant.planned:
        places = [directory_of_attempt(instant, attempt) for attempt in attempts if attempt]
        data_files.schedule_deletion(tx, row.id, [f"{place}/" for place in places])


def back(sums: Sequence[PartitionSums], changes: Changes, instant: InstantRow) -> dict[str, str]:
    """The directories of partitions after a rollback, by name, relative to the table.

    Only partitions that lay, or lie again, in an instant's directory are included. A partition takes the directory of
    its files; without files, an empty one of the rollback's instant.
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

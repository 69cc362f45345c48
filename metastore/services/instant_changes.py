"""What a completion does to a table's files, checked and brought together before anything is written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from metastore.services.instant_sealing import Changes
from metastore.services.lake_partitions import LakePartition, lake_partition
from metastore.store import data_files
from metastore.store.data_files import FileRow, Kind, NewFile
from metastore.store.database import Transaction
from metastore.store.instants import Touch
from metastore.store.tables import TableRow
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import CompleteInstantRequest, DataFile

MAX_FILES = 200_000
"""Files that one completion may name."""

MAX_NAME = 256
"""Characters of a file group's name, or a slice's."""

MAX_PATH = 4_000

_KINDS = {"base": Kind.BASE, "log": Kind.LOG}
_STEP = re.compile(r"(?!\.{1,2}$)[^\x00-\x1f\x7f/\\]{1,255}")


@dataclass(slots=True)
class _Group:
    """What happens to a file group."""

    slice: str | None = None
    logs_only: bool = True
    columns: frozenset[str] | None = frozenset()

    def writes(self, columns: Iterable[str] | None) -> None:
        if columns is None or self.columns is None:
            self.columns = None
        else:
            self.columns |= frozenset(columns)


class Planner:
    """Reads a request against what the table's latest snapshot is. The caller holds the timeline."""

    def __init__(self, tx: Transaction, row: TableRow, request: CompleteInstantRequest, *, compacts: bool) -> None:
        """`compacts`: the instant was begun as a compaction."""
        self._tx = tx
        self._row = row
        self._request = request
        self._compacts = compacts
        self._partitions: dict[str, LakePartition] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._whole: set[str] = set()

    def named(self, read: int) -> Changes:
        """What the request says, and what it touches. `read`: the position that its writer has read.

        Raises InvalidOperationException, NoSuchObjectException for a name that can't be a partition's.
        """
        request, changes = self._request, Changes()
        names = (request.added, request.removedGroups, request.removedPaths, request.replacedPartitions)
        count = sum(len(each or ()) for each in names) + len(request.cleanedPaths or ())
        if count > MAX_FILES:
            raise InvalidOperationException(f"a completion names at most {MAX_FILES} files, not {count}")
        changes.added = [self._new_file(each) for each in request.added or ()]
        paths = [each.path for each in changes.added]
        if len(set(paths)) < len(paths):
            twice = next(path for path in paths if paths.count(path) > 1)
            raise InvalidOperationException(f"the file {twice!r} is added twice")
        for file in changes.added:
            group = self._group(file.partition, file.file_group)
            group.slice = min(filter(None, (group.slice, file.slice)))
            group.logs_only = group.logs_only and file.kind is Kind.LOG
            group.writes(file.columns)
        for removed in request.removedGroups or ():
            group = self._group(self._partition(removed.partition), _name("file group", removed.fileGroup))
            group.logs_only, group.columns = False, None
        self._whole = {self._partition(each) for each in request.replacedPartitions or ()}
        # What is gone by now was taken out by somebody who was quicker.
        gone = set(request.removedPaths or ())
        for partition, name in data_files.groups_of_removed(self._tx, self._row.id, gone, read):
            group = self._group(self._partition(partition), name)
            group.logs_only, group.columns = False, None
        for row in data_files.live_paths(self._tx, self._row.id, gone):
            self._partition(row.partition)
            group = self._group(row.partition, row.file_group)
            group.logs_only = False
            group.writes(row.columns)
            changes.removed[row.id] = row
        changes.touches = [Touch(each, None) for each in sorted(self._whole)] + [
            Touch(partition, name, group.slice, group.logs_only, self._compacts, group.columns)
            for (partition, name), group in sorted(self._groups.items())
        ]
        changes.values = {each.name: each.values for each in self._partitions.values()}
        return changes

    def resolve(self, changes: Changes) -> None:
        """Finds the files that leave the snapshot. To be called once nobody is in the way.

        Raises InvalidOperationException where the request doesn't fit the snapshot.
        """
        tx, table_id = self._tx, self._row.id
        wanted = set(self._request.removedPaths or ())
        if missing := sorted(wanted - {each.path for each in changes.removed.values()}):
            raise InvalidOperationException(f"the file {missing[0]!r} isn't in the latest snapshot")
        for row in data_files.live_in_partitions(tx, table_id, self._whole) if self._whole else ():
            changes.removed[row.id] = row
        removed_groups = {
            (self._partition(each.partition), each.fileGroup or "") for each in self._request.removedGroups or ()
        }
        found = data_files.live_in_groups(tx, table_id, removed_groups)
        if missing_groups := sorted(removed_groups - {(each.partition, each.file_group) for each in found}):
            raise InvalidOperationException("partition {!r} has no file group {!r}".format(*missing_groups[0]))
        changes.removed.update({each.id: each for each in found})
        self._supersede(changes)
        self._join(changes)

    def _supersede(self, changes: Changes) -> None:
        """A base file takes the place of the older slices of its group, or of those of its columns."""
        bases: dict[tuple[str, str], list[NewFile]] = {}
        for file in changes.added:
            if file.kind is Kind.BASE:
                bases.setdefault((file.partition, file.file_group), []).append(file)
        for row in data_files.live_in_groups(self._tx, self._row.id, bases.keys()):
            if row.id in changes.removed:
                continue
            for base in bases[row.partition, row.file_group]:
                if base.columns is not None and (row.columns is None or not {*row.columns} <= {*base.columns}):
                    continue
                if row.slice < base.slice:
                    changes.removed[row.id] = row
                elif row.kind == Kind.BASE:
                    raise InvalidOperationException(
                        f"file group {row.file_group!r} of partition {row.partition!r} has a base file of the slice"
                        f" {row.slice} already: a new one belongs to a later slice than that, not to {base.slice}"
                    )

    def _join(self, changes: Changes) -> None:
        """Checks the paths of what is added: new ones, or those of log files that grew."""
        coming = {each.path: each for each in changes.added}
        live = {each.path: each for each in data_files.live_paths(self._tx, self._row.id, coming)}
        for path, old in live.items():
            new = coming[path]
            if old.id in changes.removed:
                raise InvalidOperationException(f"the file {path!r} is added and removed")
            same = (old.partition, old.file_group, old.slice, old.kind) == new[:4]
            if not same or new.kind is not Kind.LOG or new.size < old.size:
                raise InvalidOperationException(f"the file {path!r} is in the snapshot already: only log files grow")
            changes.removed[old.id] = old
        known = data_files.known_paths(self._tx, self._row.id, coming) - live.keys()
        if known:
            raise InvalidOperationException(
                f"a file {min(known)!r} was in earlier snapshots: give each file a name of its own"
            )

    def _group(self, partition: str, name: str) -> _Group:
        return self._groups.setdefault((partition, name), _Group())

    def _partition(self, name: str | None) -> str:
        """A partition's exact name."""
        found = self._partitions.get(name or "")
        if found is None:
            found = self._partitions[name or ""] = lake_partition(self._row, name)
        return found.name

    def _new_file(self, file: DataFile) -> NewFile:
        kind = _KINDS.get(file.kind or "base")
        if kind is None:
            raise InvalidOperationException(f"{file.kind!r} is no kind of a file: base or log")
        numbers = (file.size, file.rows or 0, file.version or 0)
        if any(each is None or each < 0 for each in numbers):
            raise InvalidOperationException(f"the file {file.path!r} needs a size, and numbers are not negative")
        return NewFile(
            partition=self._partition(file.partition),
            file_group=_name("file group", file.fileGroup),
            slice=_name("slice", file.slice),
            kind=kind,
            version=file.version or 0,
            path=_path(file.path),
            size=file.size or 0,
            rows=file.rows,
            min_event_time=file.minEventTime,
            max_event_time=file.maxEventTime,
            columns=None if file.columns is None else [each.lower() for each in file.columns],
            statistics=file.statistics,
        )


def undone(before: Sequence[FileRow], after: Sequence[FileRow], partition: Mapping[str, LakePartition]) -> Changes:
    """The changes that bring a snapshot back: `after` leaves it, `before` joins it again."""
    groups = sorted({(each.partition, each.file_group) for each in (*before, *after)})
    return Changes(
        removed={each.id: each for each in after},
        again=list(before),
        touches=[Touch(*each) for each in groups],
        values={name: each.values for name, each in partition.items()},
    )


def _name(what: str, name: str | None) -> str:
    if not name or len(name) > MAX_NAME:
        raise InvalidOperationException(f"{name!r} is no name of a {what}: 1 to {MAX_NAME} characters")
    return name


def _path(path: str | None) -> str:
    """A path that stays below the table's location. Raises InvalidOperationException."""
    if not path or len(path) > MAX_PATH or not all(map(_STEP.fullmatch, path.split("/"))):
        raise InvalidOperationException(f"{path!r} is no path of a file: relative to the table's location, without ..")
    return path

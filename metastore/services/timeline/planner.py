"""Computes a completion's changes to the table's files, and validates the request. Nothing is written here."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest, DataFile
from metastore.services.filters import partition_filter
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.finalize import Changes
from metastore.services.instant_rules.keyed_tables import is_table_wide
from metastore.services.partition.reads import partition_keys
from metastore.services.timeline.hive_sync import LakePartition, lake_partition
from metastore.store.engine.database import Transaction
from metastore.store.engine.predicates import Everything, Predicate
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import FileRow, Kind, NewFile
from metastore.store.table.tables import TableRow
from metastore.store.timeline import pending_plans
from metastore.store.timeline.instants import ChangedGroup

MAX_FILES = 200_000
"""Files that one completion may name."""

MAX_NAME = 256
"""Characters of the name of a file group or slice."""

MAX_PATH = 4_000
"""Characters of a file's path."""

_KINDS = {"base": Kind.BASE, "log": Kind.LOG}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_STEP = re.compile(r"(?!\.{1,2}$)[^\x00-\x1f\x7f/\\]{1,255}")


@dataclass(slots=True)
class _Group:
    """The changes to one file group.

    `slice`: the smallest slice that is written. `logs_only`: only log files are added. `columns`: the columns of the
    changed files; None means all.
    """

    slice: str | None = None
    logs_only: bool = True
    columns: frozenset[str] | None = frozenset()

    def writes(self, columns: Iterable[str] | None) -> None:
        """Adds the columns of a changed file; None means all."""
        if columns is None or self.columns is None:
            self.columns = None
        else:
            self.columns |= frozenset(columns)


class Planner:
    """Compares a request with the table's latest snapshot. Call `named`, check for conflicts, then call `resolve`.

    The caller has locked the timeline.
    """

    def __init__(
        self, tx: Transaction, row: TableRow, request: CompleteInstantRequest, *, compacts: bool, keyed: bool = False
    ) -> None:
        """`compacts`: the instant began as a compaction, a log compaction or a clustering. `keyed`: so is the table."""
        self._tx = tx
        self._row = row
        self._request = request
        self._compacts = compacts
        self._keyed = keyed
        #: Whether a log file of a keyed table has grown. Two writers can't both do that to a file.
        self.grows = False
        self._partitions: dict[str, LakePartition] = {}
        self._groups: dict[tuple[str, str], _Group] = {}
        self._whole: set[str] = set()

    def named(self, read: int) -> Changes:
        """The changes that the request itself names, and the changed file groups, for the check of conflicts.

        `read`: the position that the writer has read. Raises InvalidOperationException, and NoSuchObjectException for
        an invalid name of a partition.
        """
        request, changes = self._request, Changes()
        names = (request.added, request.removedGroups, request.removedPaths, request.replacedPartitions)
        count = sum(len(each or ()) for each in (*names, request.cleanedPaths, request.readGroups))
        if count > MAX_FILES:
            raise InvalidOperationException(f"a completion names at most {MAX_FILES} files, not {count}")
        changes.added = [self._new_file(each) for each in request.added or ()]
        self._whole = {self._partition(each) for each in request.replacedPartitions or ()}
        if self._keyed and not self._compacts:
            changes.added = self._placed(changes.added)
        paths = [each.path for each in changes.added]
        if len(set(paths)) < len(paths):
            twice = next(path for path in paths if paths.count(path) > 1)
            raise InvalidOperationException(f"the file {twice!r} is added twice")
        gone = set(request.removedPaths or ())
        leaving = data_files.live_paths(self._tx, self._row.id, gone)
        kept = self._kept(changes.added, leaving)
        for file in changes.added:
            if (file.partition, file.file_group) in kept:
                continue
            group = self._group(file.partition, file.file_group)
            group.slice = min(filter(None, (group.slice, file.slice)))
            group.logs_only = group.logs_only and file.kind is Kind.LOG
            group.writes(file.columns)
        for removed in request.removedGroups or ():
            group = self._group(self._partition(removed.partition), _name("file group", removed.fileGroup))
            group.logs_only, group.columns = False, None
        # Another writer may have removed files since; their groups count, so that the conflict is found.
        for partition, name in data_files.groups_of_removed(self._tx, self._row.id, gone, read):
            group = self._group(self._partition(partition), name)
            group.logs_only, group.columns = False, None
        for row in leaving:
            self._partition(row.partition)
            changes.removed[row.id] = row
            if (row.partition, row.file_group) in kept:
                continue
            group = self._group(row.partition, row.file_group)
            group.logs_only = False
            group.writes(row.columns)
        changes.changed_groups = [ChangedGroup(each, None) for each in sorted(self._whole)] + [
            ChangedGroup(partition, name, group.slice, group.logs_only, self._compacts, group.columns)
            for (partition, name), group in sorted(self._groups.items())
        ]
        changes.values = {each.name: each.values for each in self._partitions.values()}
        return changes

    def conditions(self) -> list[ChangedGroup]:
        """What others must not have changed, beside what the request itself changes.

        These are further partitions, each as a whole, for which the condition of a replacement holds: its writer may
        not have known them. Of a table whose key is unique over all partitions, these are the file groups that the
        writer has read; their partition is '', where no file is. Raises MetaException if the condition is none, and
        InvalidOperationException.
        """
        request = self._request
        found = [ChangedGroup("", _name("file group", each), logs_only=True) for each in request.readGroups or ()]
        if found and not is_table_wide(self._row):
            raise InvalidOperationException(
                f"{self._row.name}: readGroups are of tables whose key is unique over all partitions"
            )
        if request.replacedWhere is None:
            return found
        predicate: Predicate = Everything()
        if request.replacedWhere:
            keys = partition_keys(self._row)
            predicate = partition_filter.parse_expression_bytes(request.replacedWhere.encode(), keys).at_most
        names = data_files.partition_names(self._tx, self._row.id, predicate)
        return found + [ChangedGroup(each, None) for each in names if each not in self._whole]

    def _kept(self, added: Sequence[NewFile], removed: Sequence[FileRow]) -> set[tuple[str, str]]:
        """The file groups of which a service only moves the base file: that changes nothing for other writers."""
        if not self._compacts:
            return set()
        before = {(each.partition, each.file_group, each.slice, each.kind, each.size) for each in removed}
        return {
            (each.partition, each.file_group)
            for each in added
            if each.kind is Kind.BASE and (each.partition, each.file_group, each.slice, each.kind, each.size) in before
        }

    def _placed(self, added: list[NewFile]) -> list[NewFile]:
        """The same files, each log file of a keyed table in the slice where its file group is now.

        That is the slice of the latest base file, or the one that a later compaction has opened; without either, that
        of the latest log file. The writer couldn't know: others may have completed, or planned, since it read. Where
        the completion adds base files or removes all files, the writer says which slice it means.
        """
        based = {(each.partition, each.file_group) for each in added if each.kind is Kind.BASE}
        based |= {(self._partition(each.partition), each.fileGroup or "") for each in self._request.removedGroups or ()}
        logs = {each.path: (each.partition, each.file_group) for each in added if each.kind is Kind.LOG}
        groups = {group for group in logs.values() if group not in based and group[0] not in self._whole}
        if not groups:
            return added
        latest = pending_plans.slices(self._tx, self._row.id, rules.COMPACTION, groups)
        of_logs: dict[tuple[str, str], str] = {}
        for row in data_files.live_in_groups(self._tx, self._row.id, groups):
            slices, group = latest if row.kind == Kind.BASE else of_logs, (row.partition, row.file_group)
            slices[group] = max(slices.get(group, ""), row.slice)
        grown = {each.path: each.slice for each in data_files.live_paths(self._tx, self._row.id, logs)}
        self.grows = bool(grown)
        places = {**of_logs, **latest}
        return [
            each._replace(slice=grown.get(each.path) or places.get(logs[each.path], each.slice))
            if each.kind is Kind.LOG and logs[each.path] in groups
            else each
            for each in added
        ]

    def resolve(self, changes: Changes) -> None:
        """Adds the files that leave the snapshot to `changes`. Call it after the check of conflicts.

        Raises InvalidOperationException if the request doesn't match the snapshot.
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
        bases: dict[tuple[str, str], list[NewFile]] = {}
        for file in changes.added:
            if file.kind is Kind.BASE:
                bases.setdefault((file.partition, file.file_group), []).append(file)
        coming = {each.path: each for each in changes.added}
        there = data_files.live_in_groups_or_with_paths(tx, table_id, bases, coming)
        self._supersede(changes, bases, there)
        self._join(changes, coming, there)

    def check_left_behind(self, changes: Changes, relocated: Collection[str]) -> None:
        """Checks that partitions with a new directory have no files elsewhere. Call it after `resolve`.

        Who replaces a partition removes all its files; of a service they may have become more since it listed them.
        Raises InvalidOperationException.
        """
        if not relocated:
            return
        live = data_files.live_in_partitions(self._tx, self._row.id, relocated)
        if left := [each.path for each in live if each.id not in changes.removed]:
            raise InvalidOperationException(
                f"the file {left[0]!r} would not be in the new directory of its partition: read the snapshot again, and"
                " bring a link or a copy of it along"
            )

    @staticmethod
    def _supersede(
        changes: Changes, bases: Mapping[tuple[str, str], Sequence[NewFile]], there: Iterable[FileRow]
    ) -> None:
        """Removes the older slices that a new base file replaces: those of its group, with no other columns."""
        for row in there:
            if row.id in changes.removed or row.removed_at is not None:
                continue
            for base in bases.get((row.partition, row.file_group), ()):
                if base.columns is not None and (row.columns is None or not {*row.columns} <= {*base.columns}):
                    continue
                if row.slice < base.slice:
                    changes.removed[row.id] = row
                elif row.kind == Kind.BASE:
                    raise InvalidOperationException(
                        f"file group {row.file_group!r} of partition {row.partition!r} has a base file of the slice"
                        f" {row.slice} already: a new one belongs to a later slice than that, not to {base.slice}"
                    )

    @staticmethod
    def _join(changes: Changes, coming: Mapping[str, NewFile], there: Iterable[FileRow]) -> None:
        """Checks the paths of added files: each is new, or a log file that has grown."""
        found = [each for each in there if each.path in coming]
        live = {each.path: each for each in found if each.removed_at is None}
        for path, old in live.items():
            new = coming[path]
            if old.id in changes.removed:
                raise InvalidOperationException(f"the file {path!r} is added and removed")
            same = (old.partition, old.file_group, old.slice, old.kind) == new[:4]
            if not same or new.kind is not Kind.LOG or new.size < old.size:
                raise InvalidOperationException(f"the file {path!r} is in the snapshot already: only log files grow")
            changes.removed[old.id] = old
        known = {each.path for each in found} - live.keys()
        if known:
            raise InvalidOperationException(
                f"a file {min(known)!r} was in earlier snapshots: give each file a name of its own"
            )

    def _group(self, partition: str, name: str) -> _Group:
        return self._groups.setdefault((partition, name), _Group())

    def _partition(self, name: str | None) -> str:
        """The exact name of a partition that the request names."""
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
            path=checked_path(file.path),
            size=file.size or 0,
            rows=file.rows,
            min_event_time=file.minEventTime,
            max_event_time=file.maxEventTime,
            columns=None if file.columns is None else [each.lower() for each in file.columns],
            statistics=file.statistics,
        )


def undone(before: Sequence[FileRow], after: Sequence[FileRow], partition: Mapping[str, LakePartition]) -> Changes:
    """The changes that restore a snapshot: the files `after` leave it, the files `before` join it again."""
    groups = sorted({(each.partition, each.file_group) for each in (*before, *after)})
    return Changes(
        removed={each.id: each for each in after},
        again=list(before),
        changed_groups=[ChangedGroup(*each) for each in groups],
        values={name: each.values for name, each in partition.items()},
    )


def _name(what: str, name: str | None) -> str:
    if not name or len(name) > MAX_NAME:
        raise InvalidOperationException(f"{name!r} is no name of a {what}: 1 to {MAX_NAME} characters")
    return name


def checked_path(path: str | None) -> str:
    """Checks that a path stays below the table's location, and returns it. Raises InvalidOperationException."""
    # Hadoop takes a path that begins with a scheme for a place of its own, wherever the table is.
    if not path or len(path) > MAX_PATH or not all(map(_STEP.fullmatch, path.split("/"))) or _SCHEME.match(path):
        raise InvalidOperationException(f"{path!r} is no path of a file: relative to the table's location, without ..")
    return path

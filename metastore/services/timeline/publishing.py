"""Gives Hive the rows of keyed tables: a directory per partition with the base files of one position.

The base and log files of a keyed table stay in the directories of the instants that wrote them. A listing of Hive's
partition sees none of them, so it never sees a row twice or a replaced one. A publish brings links or copies of a
position's base files in its own directory, and makes that the partition's location. The directory of an earlier publish
is deleted after a grace, so that queries which have listed it can finish.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lake.protocol.formats.keyed_table import TOMBSTONES
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest
from metastore.services.files.staged_files import directory
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.services.instant_rules.paths import base_of, below, is_of_publish, own_directory
from metastore.services.timeline.hive_sync import lake_partition
from metastore.services.timeline.planner import MAX_FILES
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import FileRow, Kind, PartitionPositions, PartitionSubset, PartitionSums
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow, Timeline
from metastore.warehouse import Warehouse


class Published(NamedTuple):
    """What a publish gives Hive: of which position, the new directories by partition, relative to the table, and what
    is in them."""

    position: int
    places: Mapping[str, str]
    sums: Sequence[PartitionSums]


class Publishing:
    """Handles publishes of keyed tables. The caller has locked the timeline's completions."""

    def __init__(self, warehouse: Warehouse, *, grace_seconds: float) -> None:
        """`grace_seconds`: the directory of an earlier publish is deleted so long after the next one."""
        self._warehouse = warehouse
        self._grace_seconds = grace_seconds

    def checked(
        self, tx: Transaction, row: TableRow, line: Timeline, instant: InstantRow, request: CompleteInstantRequest
    ) -> Published | None:
        """What a completion publishes; None if nothing.

        Raises InvalidOperationException unless each directory has exactly the base files of its partition in the
        snapshot at that position, which nothing must be merged with, and if a later position is published already.
        Raises WarehouseError.
        """
        if instant.begun_as == rules.PUBLISH:
            _check_alone(request)
        if not request.published:
            return None
        if instant.begun_as != rules.PUBLISH:
            raise InvalidOperationException(f"only a publish names published partitions, not a {instant.begun_as}")
        if not is_keyed(row):
            raise InvalidOperationException(f"{row.name} has no primary key: Hive sees its files without a publish")
        if len(request.published) > MAX_FILES:
            raise InvalidOperationException(f"a completion names at most {MAX_FILES} partitions")
        names = sorted({lake_partition(row, each).name for each in request.published})
        position = _position(tx, row, line, instant, request)
        known = data_files.positions(tx, row.id, names)
        _check_partitions(tx, row, names, position, known)
        wanted, at = PartitionSubset(names, ()), None if position == line.position else position
        files: dict[str, list[FileRow]] = {name: [] for name in names}
        for each in data_files.snapshot(tx, row.id, wanted, at):
            files[each.partition].append(each)
        for name, some in files.items():
            _check_files(name, some, position, was_published=name in known and known[name].published_at is not None)
        own = own_directory(instant.timestamp, instant.begun_as)
        places = {name: below(own, name) for name in names}
        self._check_directories(row, own, places, files)
        return Published(position, places, [_sums(name, some) for name, some in files.items()])

    def record(self, tx: Transaction, row: TableRow, published: Published) -> None:
        """Stores which position Hive sees from now on, and schedules the deletion of what it saw until now.

        Call it before Hive's view changes.
        """
        base = base_of(row.location or "")
        if data_files.WHOLE_TABLE in published.places:
            before = [row.location or ""]
        else:
            held = partitions.rows(tx, Selection(row.id, names=sorted(published.places)), lock=True)
            before = [directory(row.location, each.stored.path, each.stored.location) or "" for each in held]
        paths = [each.removeprefix(f"{base}/") for each in before if each.startswith(f"{base}/")]
        left = [f"{path}/" for path in paths if is_of_publish(path)]
        data_files.schedule_later_deletion(tx, row.id, left, self._grace_seconds)
        data_files.put_published(tx, row.id, published.places.keys(), published.position)

    def _check_directories(
        self, row: TableRow, own: str, places: Mapping[str, str], files: Mapping[str, Sequence[FileRow]]
    ) -> None:
        base = base_of(row.location or "")
        there = {below(own, each) for each in self._warehouse.files(f"{base}/{own}", within=base)}
        found = {each for each in there if _is_visible(each, own, places)}
        wanted = {
            below(places[name], _file(each.path)) for name, some in files.items() for each in some if _is_base(each)
        }
        if wrong := sorted(found ^ wanted):
            what = "is missing" if wrong[0] in wanted else "belongs to no base file of a published partition"
            raise InvalidOperationException(
                f"the file {wrong[0]!r} {what}: a publish has exactly the base files of each partition at its position,"
                f" by their names, in the subdirectory of {own} with the partition's name"
            )


def _check_alone(request: CompleteInstantRequest) -> None:
    others = (
        request.added,
        request.removedGroups,
        request.removedPaths,
        request.replacedPartitions,
        request.relocate,
        request.rolledBack,
        request.cleanedPaths,
        request.columns,
        request.schemaProperties,
        request.eventTimes,
    )
    if any(others):
        raise InvalidOperationException("a publish only names published partitions: it changes no rows and no columns")


def _position(
    tx: Transaction, row: TableRow, line: Timeline, instant: InstantRow, request: CompleteInstantRequest
) -> int:
    """The position that is published, which can still be read. Raises InvalidOperationException."""
    position = instant.read_position if request.readPosition is None else request.readPosition
    if not 0 <= position <= line.position:
        raise InvalidOperationException(f"{row.name} has no position {position}: the last one is {line.position}")
    if position < line.oldest_readable and position not in instants.saved_positions(tx, row.id):
        raise InvalidOperationException(
            f"files of {row.name}'s snapshot at position {position} have been cleaned: publish a later one"
        )
    return position


def _check_partitions(
    tx: Transaction, row: TableRow, names: Sequence[str], position: int, known: Mapping[str, PartitionPositions]
) -> None:
    """Checks that Hive has the partitions, and sees no later position of one. Raises InvalidOperationException."""
    if data_files.WHOLE_TABLE not in names:
        missing = {*names} - {*partitions.names(tx, Selection(row.id, names=names))}
        if missing:
            raise InvalidOperationException(f"{row.name} has no partition {min(missing)}: nothing is to be published")
    for name, each in sorted(known.items()):
        if each.published_at is not None and each.published_at > position:
            raise InvalidOperationException(
                f"{_named(name)}: Hive sees position {each.published_at} already, which is later than {position}"
            )


def _check_files(name: str, files: Sequence[FileRow], position: int, *, was_published: bool) -> None:
    """Checks that base files alone are the rows of a partition. Raises InvalidOperationException."""
    if not files and not was_published:  # one that lost its rows since is published without files
        raise InvalidOperationException(
            f"{_named(name)} has no files at position {position}: nothing is to be published"
        )
    if any(not _is_base(each) and bytes(each.statistics or b"") != TOMBSTONES for each in files):
        raise InvalidOperationException(
            f"{_named(name)} has log files at position {position}, which Hive's readers don't merge: compact it first,"
            " then publish a later position"
        )
    base = [_file(each.path) for each in files if _is_base(each)]
    if len(set(base)) < len(base) or any(each.columns is not None for each in files):
        raise InvalidOperationException(
            f"{_named(name)} has base files with the same name or of some columns alone: it can't be published"
        )


def _sums(name: str, files: Sequence[FileRow]) -> PartitionSums:
    """What Hive's statistics say of a published partition."""
    base = [each for each in files if _is_base(each)]
    return PartitionSums(name, len(base), sum(each.size for each in base), sum(each.rows or 0 for each in base))


def _named(name: str) -> str:
    return f"the partition {name}" if name else "the table"


def _is_base(file: FileRow) -> bool:
    return file.kind == Kind.BASE


def _is_visible(path: str, own: str, places: Mapping[str, str]) -> bool:
    """Whether who lists a published directory finds a file; of others, whether any reader would."""
    parent, _, name = path.rpartition("/")
    steps = [name] if parent in places.values() else path.removeprefix(f"{own}/").split("/")
    return not any(each.startswith((".", "_")) for each in steps)


def _file(path: str) -> str:
    return path.rpartition("/")[2]

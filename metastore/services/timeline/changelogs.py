"""Changelogs: what the writers of keyed tables found that a completion changed, in files outside snapshots.

They are kept by the table's property `changelog.time-retained`, by default as long as the snapshots that they connect.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lake.protocol.formats.keyed_table import ChangelogProducer
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest, DataFile
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.finalize import Changes
from metastore.services.instant_rules.keyed_tables import definition_of
from metastore.services.instant_rules.paths import directory_of
from metastore.services.timeline.hive_sync import lake_partition
from metastore.services.timeline.planner import MAX_FILES, checked_path
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import changelogs, data_files
from metastore.store.snapshot.changelogs import ChangelogFile
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants, uncommitted_spans
from metastore.store.timeline.instants import InstantRow, Timeline
from metastore.store.timeline.uncommitted_spans import Span

KIND = "changelog"
"""The kind of these files on the wire."""

NEUTRAL = frozenset({*rules.COMPLETES_AS, rules.CLEAN, rules.SAVEPOINT, rules.INDEXING, rules.PUBLISH})
"""The actions, as they begin, that change no row of a snapshot."""

_WRITERS = frozenset({rules.COMMIT, rules.DELTACOMMIT})


def logs_commute(row: TableRow, request: CompleteInstantRequest) -> bool:
    """Whether a writer's changelog holds whatever log files others have added since it read.

    One that was looked up doesn't: what was there may be another row by now.
    """
    table = definition_of(row)
    looked_up = table is not None and table.changelog_producer is ChangelogProducer.LOOKUP
    return request.changelog is None or not looked_up


def checked(row: TableRow, instant: InstantRow, request: CompleteInstantRequest, changes: Changes) -> None:
    """Raises InvalidOperationException unless a completion's changelog belongs to what it changes.

    The files lie in the instant's own directory, so that nothing else is deleted with them.
    """
    if request.changelog is None:
        return
    if instant.begun_as not in _WRITERS or definition_of(row) is None:
        raise InvalidOperationException(
            f"{row.name}: a changelog belongs to a commit or deltacommit of a keyed table, not to a {instant.begun_as}"
            " of another. Leave it out"
        )
    if len(request.changelog) > MAX_FILES:
        raise InvalidOperationException(
            f"a completion names at most {MAX_FILES} files of a changelog, not {len(request.changelog)}"
        )
    own = f"{directory_of(instant)}/"
    changed = {(each.partition, each.file_group) for each in changes.changed_groups}
    paths: set[str] = set()
    for each in request.changelog:
        path = checked_path(each.path)
        if each.kind != KIND or (each.size or 0) < 0 or (each.rows or 0) < 0:
            raise InvalidOperationException(f"the file {path!r} isn't of the kind {KIND}, or a number is negative")
        if not path.startswith(own) or path in paths:
            raise InvalidOperationException(f"the file {path!r}: files of a changelog lie in {own}, each named once")
        if (lake_partition(row, each.partition).name, each.fileGroup) not in changed:
            raise InvalidOperationException(
                f"the file {path!r} is of a file group {each.fileGroup!r} that this completion doesn't change"
            )
        paths.add(path)


def record(tx: Transaction, row: TableRow, request: CompleteInstantRequest, position: int) -> None:
    """Stores a completion's changelog, if it has one."""
    if request.changelog is None:
        return
    files = [
        ChangelogFile(
            position=position,
            timestamp=request.timestamp or "",
            partition=lake_partition(row, each.partition).name,
            file_group=each.fileGroup or "",
            path=each.path or "",
            size=each.size or 0,
            rows=each.rows,
        )
        for each in request.changelog
    ]
    changelogs.put(tx, row.id, position, files)


def cover(tx: Transaction, row: TableRow, after: int, up_to: int, *, ready_only: bool) -> bool:
    """Whether all that changed rows after one position up to another has a changelog.

    `ready_only`: for a reader of ready partitions, to whom a partition that turns ready brings rows.
    """
    besides = NEUTRAL if ready_only else NEUTRAL | {rules.READINESS}
    return changelogs.cover(tx, row.id, after, up_to, besides)


def read(
    tx: Transaction, row: TableRow, after: int, up_to: int, partitions: Collection[str] | None, *, ready_only: bool
) -> Mapping[int, Sequence[DataFile]]:
    """The files of the changelogs after one position up to another, by position.

    `partitions`: None for all. `ready_only`: without those of partitions that were uncommitted then.
    """
    spans = uncommitted_spans.between(tx, row.id, after, up_to) if ready_only else ()
    found: dict[int, list[DataFile]] = {}
    for each in changelogs.between(tx, row.id, after, up_to, partitions):
        if not _is_hidden(each, spans):
            found.setdefault(each.position, []).append(_to_thrift(each))
    return found


def expired(tx: Transaction, row: TableRow, limit: int) -> list[DataFile]:
    """The files of changelogs that the next clean removes, at most `limit`."""
    up_to = last_expired(tx, row, instants.timeline(tx, row.id))
    return [_to_thrift(each) for each in changelogs.between(tx, row.id, 0, up_to, limit=limit)]


def last_expired(tx: Transaction, row: TableRow, line: Timeline) -> int:
    """The position up to which changelogs are kept no longer."""
    table = definition_of(row)
    if table is None or table.changelog_millis is None:
        return line.oldest_readable
    return position_before(tx, row, table.changelog_millis)


def forget(tx: Transaction, row: TableRow, up_to: int) -> None:
    """Removes the changelogs up to a position, and schedules the deletion of their files."""
    data_files.schedule_deletion(tx, row.id, changelogs.forget(tx, row.id, up_to))


def position_before(tx: Transaction, row: TableRow, millis: int) -> int:
    """The last position of a table so long ago, by the database's clock."""
    return instants.position_at_time(tx, row.id, rules.timestamp_at(max(now_ms(tx) - millis, 0)))


def _is_hidden(file: ChangelogFile, spans: Iterable[Span]) -> bool:
    """Whether the partition of a file was uncommitted at the file's position."""
    return any(
        span.partition == file.partition
        and span.opened_at <= file.position
        and (span.committed_at is None or file.position < span.committed_at)
        for span in spans
    )


def _to_thrift(file: ChangelogFile) -> DataFile:
    return DataFile(
        partition=file.partition,
        fileGroup=file.file_group,
        slice=file.timestamp,
        path=file.path,
        kind=KIND,
        size=file.size,
        rows=file.rows,
        addedAt=file.position,
    )

"""Decodes the metadata of Hudi's instants: the files, partitions, columns and event times of a completion.

To complete an instant whose metadata Hudi wrote:

    request = CompleteInstantRequest(table, timestamp, action, newAction=…, metadata=bytes_that_hudi_sent)
    metastore.instant_completion.complete([request], decode=metadata_reader.decode)

`decode` is called in the completing transaction, while the timeline is locked, because the slice of a log file and the
instants that a rollback undoes depend on earlier completions. A repeated request is recognised by its metadata alone.
To begin an instant, `plan_of` returns the `plan` of a BeginInstantRequest.

Unreadable bytes raise InvalidOperationException here, and HudiMetadataError in
`metastore.warehouse.hudi_files.metadata`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from lake.protocol.formats.partition_names import make_name, unescape
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import Column, CompleteInstantRequest, DataFile, FileGroup, InstantKey
from metastore.services.hudi.avro_schema import META_COLUMNS, hive_columns
from metastore.services.hudi.spark_schema import spark_properties
from metastore.services.instant_rules import states as rules
from metastore.services.model import hive_objects
from metastore.services.timeline.commit import DecodedCompletion
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants, pending_plans
from metastore.store.timeline.instants import InstantRow
from metastore.warehouse.hudi_files import metadata as hudi_metadata
from metastore.warehouse.hudi_files import names as hudi_names
from metastore.warehouse.hudi_files.metadata import WriteStat
from metastore.warehouse.hudi_files.names import LogName

SOURCE = "hudi"
"""The source whose event time Hudi's commits report, where they track it."""

SYNCED = "last_commit_time_sync"
"""The property of tables whose columns Hudi's sync to Hive looks after."""

_POPULATES = "hoodie.populate.meta.fields"
_URL_ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
_TIMESTAMPS = "hoodie.datasource.hive_sync.support_timestamp"

_WITHOUT_COLUMNS = (rules.CLEAN, rules.ROLLBACK, rules.RESTORE, rules.SAVEPOINT, rules.INDEXING)
"""Instants whose metadata says nothing of columns."""

_KEEPING_COLUMNS = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})
"""Operations that rewrite rows as they are: the schema that they know may be an old one."""


def plan_of(row: TableRow, action: str, content: bytes | None) -> list[FileGroup]:
    """The file groups in which an instant opens a slice, by the metadata of its state requested.

    Only a compaction does; every other action's plan is empty. Raises InvalidOperationException.
    """
    if action != rules.COMPACTION or not content:
        return []
    with _read(row, action):
        groups = hudi_metadata.compaction_plan(content).groups
    return [FileGroup(partition_name(row, partition), file_id) for partition, file_id in groups]


def decode(tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest) -> DecodedCompletion:
    """What the metadata that an instant is completed with (`request.metadata`) says.

    An instant without metadata changes no file. Raises InvalidOperationException.
    """
    content = request.metadata
    if not content:
        return DecodedCompletion(request, {})
    with _read(row, instant.begun_as):
        match instant.begun_as:
            case rules.CLEAN:
                return DecodedCompletion(request.replace(cleanedPaths=hudi_metadata.clean(content).deleted), {})
            case rules.ROLLBACK:
                undone = _known(tx, row, hudi_metadata.rollback(content).instants)
                return DecodedCompletion(request.replace(rolledBack=undone), {})
            case rules.RESTORE:
                undone = _known(tx, row, hudi_metadata.restore(content).instants)
                return DecodedCompletion(request.replace(rolledBack=undone), {})
            case rules.SAVEPOINT | rules.INDEXING:
                return DecodedCompletion(request, {})
            case _:
                return _committed(tx, row, instant, request, hudi_metadata.commit(content))


def columns_of(row: TableRow, schema: str) -> list[Column]:
    """The columns, without partition keys, that Hive's readers see for an Avro schema of Hudi's (JSON).

    As Hudi's own sync to Hive names them: Hudi's meta columns first, unless the table has none. Raises
    InvalidOperationException.
    """
    with _read(row, "schema"):
        found = hive_columns(schema, timestamps=hive_objects.is_true(row.parameters.get(_TIMESTAMPS)))
    keys = set(hive_objects.key_names(hive_objects.table_of(row)))
    named = {name.lower() for name, _ in found}
    meta = [(name, "string") for name in META_COLUMNS if _has_meta_columns(row) and name not in named]
    return [Column(name.lower(), kind) for name, kind in (*meta, *found) if name.lower() not in keys]


def changes_columns(row: TableRow, instant: InstantRow, content: bytes) -> bool:
    """Whether the metadata that completes a commit has other columns than the table, if that has any.

    Raises InvalidOperationException.
    """
    descriptor = hive_objects.table_of(row).sd
    before = [(each.name, each.type) for each in (descriptor and descriptor.cols) or ()]
    if not before or instant.begun_as in _WITHOUT_COLUMNS:
        return False
    with _read(row, instant.begun_as):
        after = _columns(row, instant, hudi_metadata.commit(content))
    return after is not None and [(each.name, each.type) for each in after] != before


def partition_name(row: TableRow, path: str) -> str:
    """The name in Hive's form of the partition in a directory, relative to the table, hive-style or not.

    `dt=2026-01-31/hr=7` and `2026-01-31/7` are the same one; of a single key, a value may have several steps:
    `2026/01/31`. Raises InvalidOperationException.
    """
    keys, steps = hive_objects.key_names(hive_objects.table_of(row)), [step for step in path.split("/") if step]
    if not keys and not steps:
        return data_files.WHOLE_TABLE
    pairs = [step.partition("=") for step in steps]
    if [key.lower() for key, _, _ in pairs] == keys and all(equals for _, equals, _ in pairs):
        values = [value for _, _, value in pairs]
    elif len(steps) == len(keys):
        values = steps
    elif len(keys) == 1 and steps:
        values = ["/".join(steps)]
    else:
        raise InvalidOperationException(
            f"the directory {path!r} says nothing of a partition of {row.name}, whose keys are: {', '.join(keys)}"
        )
    if hive_objects.is_true(row.parameters.get(_URL_ENCODED)):
        values = [unescape(value) for value in values]
    return make_name(keys, values)


def _committed(
    tx: Transaction,
    row: TableRow,
    instant: InstantRow,
    request: CompleteInstantRequest,
    commit: hudi_metadata.Commit,
) -> DecodedCompletion:
    names = {
        path: partition_name(row, path) for path in {*commit.replaced, *(each.partition for each in commit.written)}
    }
    added = list(_files(tx, row, instant, commit.written, names))
    replaced = {(names[path], file_id) for path, ids in commit.replaced.items() for file_id in ids}
    # Of groups that Hudi replaces, those that had been emptied are not in the snapshot.
    live = {(each.partition, each.file_group) for each in data_files.live_in_groups(tx, row.id, replaced)}
    earliest = min((each.min_event_time for each in commit.written if each.min_event_time is not None), default=None)
    columns = _columns(row, instant, commit)
    request = request.replace(
        added=added,
        removedGroups=[FileGroup(*group) for group in sorted(live)],
        eventTimes=None if earliest is None else {SOURCE: earliest},
        columns=columns,
        schemaProperties=None if columns is None else _spark_properties(row, commit.schema or ""),
    )
    return DecodedCompletion(request, {name: path for path, name in names.items() if path and path != name})


def _columns(row: TableRow, instant: InstantRow, commit: hudi_metadata.Commit) -> list[Column] | None:
    """The columns that a commit brings, None where others look after them."""
    rewrites = instant.begun_as in rules.COMPLETES_AS or commit.operation in _KEEPING_COLUMNS
    if commit.schema is None or rewrites or SYNCED in row.parameters:
        return None
    return columns_of(row, commit.schema)


def _spark_properties(row: TableRow, schema: str) -> dict[str, str] | None:
    """The columns once more, as Spark keeps those of a table that it reads by Hudi's provider; None for any other."""
    if row.parameters.get(PROVIDER, "").lower() != "hudi":
        return None
    keys = hive_objects.key_names(hive_objects.table_of(row))
    with _read(row, "schema"):
        return spark_properties(schema, keys, meta_columns=_has_meta_columns(row))


def _has_meta_columns(row: TableRow) -> bool:
    return hive_objects.is_true(row.parameters.get(_POPULATES, "true"))


def _files(
    tx: Transaction, row: TableRow, instant: InstantRow, written: Iterable[WriteStat], names: Mapping[str, str]
) -> Iterator[DataFile]:
    """The files that a commit wrote, each once, in the slices that they belong to."""
    found: dict[str, WriteStat] = {}
    for each in written:
        # A log file to which a commit wrote twice is as long as it was the second time.
        if each.path not in found or found[each.path].size <= each.size:
            found[each.path] = each
    parsed = {path: hudi_names.parse(path.rpartition("/")[2]) for path in found}
    opened = _latest_slices(
        tx,
        row,
        {
            (names[found[path].partition], name.file_id)
            for path, name in parsed.items()
            if isinstance(name, LogName) and name.instant == instant.timestamp
        },
    )
    for path, name in parsed.items():
        if name is None:  # change data capture, for example
            continue
        stat, is_log = found[path], isinstance(name, LogName)
        partition, slice = names[stat.partition], name.instant
        if is_log and name.instant == instant.timestamp:
            slice = opened.get((partition, name.file_id), name.instant)
        yield DataFile(
            partition=partition,
            fileGroup=name.file_id,
            slice=slice,
            path=path,
            kind="log" if is_log else "base",
            size=stat.size,
            rows=stat.rows,
            minEventTime=stat.min_event_time,
            maxEventTime=stat.max_event_time,
            version=name.version if isinstance(name, LogName) else None,
        )


def _latest_slices(tx: Transaction, row: TableRow, groups: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The slices to which log files go that are named after the instant that wrote them (table version 8 and later):
    those of the latest base file, or of the compaction that is going to write the next one.
    """
    if not groups:
        return {}
    latest = pending_plans.slices(tx, row.id, rules.COMPACTION, groups)
    for each in data_files.live_in_groups(tx, row.id, groups):
        group = each.partition, each.file_group
        latest[group] = max(latest.get(group, ""), each.slice)
    return latest


def _known(tx: Transaction, row: TableRow, undone: Iterable[tuple[str, str | None]]) -> list[InstantKey]:
    """Those of some instants that are complete and stand; Hudi says itself what becomes of one that is not."""
    found: dict[int, InstantRow] = {}
    for timestamp, _ in undone:
        for action in rules.ACTIONS:
            each = instants.find(tx, row.id, timestamp, action)
            if (
                each is not None
                and each.position
                and each.action not in rules.ADDING_NOTHING
                and each.undone_by is None
            ):
                found[each.id] = each
    return [InstantKey(each.timestamp, each.action) for each in found.values()]


@contextmanager
def _read(row: TableRow, what: str) -> Iterator[None]:
    """Raises InvalidOperationException for what can't be read in the block."""
    try:
        yield
    except ValueError as error:
        raise InvalidOperationException(f"{row.name}: the {what} that Hudi gave can't be read: {error}") from None

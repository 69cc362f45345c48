"""Keyed tables: what the properties of a Parquet table with a primary key say.

A keyed table has one row per primary key. The rows of a partition are distributed over buckets by a hash of the key; a
bucket is a file group. Words are Paimon's where it has one (https://paimon.apache.org, "Primary Key Table"):

    primary-key        the columns of the key, with commas; with all partition columns it is unique within a partition,
                       without any over the whole table
    bucket             the number of buckets per partition, by default 1
    bucket-key         the columns of the key by which a row's bucket is found, by default all of them
    table-type         copy-on-write (the default): a write replaces the base files of the buckets that it changes;
                       merge-on-read: a write adds log files, which readers merge with the base files. After a plus
                       there is what a client must know besides: `merge-on-read+bucket-key`. The server writes that
    merge-engine       deduplicate (the default), partial-update, aggregation or first-row
    sequence.field     the columns that order the versions of a row; by default the later completion wins
    fields.<f>.sequence-group      of partial-update: the columns that change together with `f`, their version
    fields.<f>.aggregate-function  of aggregation: how values of the column `f` become one
    tombstone.time-retained        how long a delete is remembered, by default for good
    publish            when Hive gets the rows: manual (the default), whenever somebody publishes them; at-readiness, a
                       partition turns ready only once its rows are published
    changelog-producer how readers learn which rows a commit changed: none (the default), by comparing snapshots; input,
                       from the pre-images that come with the rows; lookup, the writer looks what was there
    changelog.time-retained     how long changelogs are kept, by default as long as snapshots
    snapshot.time-retained      how long cleans keep earlier snapshots
    ignore-delete      deletes are ignored
    insert.duplicate-key        what an INSERT of SQL does with a key that exists: replace (the default), ignore or fail
    partial-update.remove-record-on-delete    a delete removes the row of a partial-update table
    allow-external-writes       of any table: engines may write rows past its timeline, which its readers never see
    column-families    groups of columns that are kept in files of their own, and can be rewritten without the others:
                       `score:score,scored_at;place:city,country`
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from lake.protocol.formats.column_ids import COLUMN_IDS, ColumnIds
from lake.protocol.formats.durations import parse_duration

PRIMARY_KEY = "primary-key"
BUCKET = "bucket"
BUCKET_KEY = "bucket-key"
TABLE_TYPE = "table-type"
MERGE_ENGINE = "merge-engine"
SEQUENCE_FIELD = "sequence.field"
TOMBSTONE_TIME = "tombstone.time-retained"
PUBLISH = "publish"
IGNORE_DELETE = "ignore-delete"
REMOVE_ON_DELETE = "partial-update.remove-record-on-delete"
DUPLICATE_KEY = "insert.duplicate-key"
CHANGELOG_PRODUCER = "changelog-producer"
CHANGELOG_TIME = "changelog.time-retained"
SNAPSHOT_TIME = "snapshot.time-retained"
COLUMN_FAMILIES = "column-families"
PUBLISH_COMMITS = "publish.commits"
ALLOW_EXTERNAL_WRITES = "allow-external-writes"

FEATURE = "+"
"""What is between the type of a table, in `table-type`, and each property that a client must know to read the table.

Clients that don't know the property refuse a type with such a name in it: so they don't look for rows elsewhere."""

MAX_BUCKETS = 10_000
"""Buckets of one partition."""

INSTANT = "_metastore_instant"
"""A column of every file of a keyed table: the timestamp of the instant that last changed the row."""

INSTANT_ID = 2_000_000_001
"""Its field id, which no column of a table has. Readers that go by field ids want one in each column of a file."""

DELETED = "_metastore_deleted"
"""A column of log files: the row was deleted. Other columns than those of the key and the sequence are then null."""

TOMBSTONES = b'{"tombstones": true}'
"""The statistics of a log file of deletes that the base file beside it has applied already: readers may ignore it."""

MAX_FAMILIES = 16
"""Column families of a table."""

_FAMILY_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_FILE = re.compile(r"bucket-[0-9]{5}_[^_/]+_[0-9a-f]{12}(\.log|\.changelog)?\.parquet")

_NO_COLUMNS = ColumnIds(())

Choice = TypeVar("Choice", bound=StrEnum)

_GROUP = ".sequence-group"
_AGGREGATE = ".aggregate-function"
_FIELDS = "fields."

#: Types of Hive's whose values have one text in every engine, by which they can be hashed.
KEY_TYPES = frozenset({"tinyint", "smallint", "int", "bigint", "string", "boolean", "date", "timestamp", "binary"})
_KEY_FAMILIES = ("varchar(",)
_CHAR = "char("

#: Types of Hive's, and beginnings of such, whose values have another text in the directories' names of other writers.
_NO_PARTITION = ("timestamp", "float", "double", "decimal", "binary")

_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_NO_SEQUENCE = ("array<", "map<", "struct<", "uniontype<", "binary", "boolean", "float", "double", "interval")


class TableType(StrEnum):
    """How writes change a keyed table."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


class MergeEngine(StrEnum):
    """What becomes of several versions of one key."""

    DEDUPLICATE = "deduplicate"  # the latest is the row
    PARTIAL_UPDATE = "partial-update"  # each sets the columns that it has
    AGGREGATION = "aggregation"  # values are aggregated, column by column
    FIRST_ROW = "first-row"  # the first one stays


class Publish(StrEnum):
    """When Hive gets the rows of a keyed table."""

    MANUAL = "manual"  # whenever somebody publishes them
    AT_READINESS = "at-readiness"  # before a partition turns ready


class ChangelogProducer(StrEnum):
    """How the rows that a commit changed are known."""

    NONE = "none"  # by comparing the snapshots before and after it
    INPUT = "input"  # they come with the rows, pre-images among them
    LOOKUP = "lookup"  # the writer looks what was there


class DuplicateKey(StrEnum):
    """What an INSERT of SQL does with a row whose key exists. Writers of feeds always upsert."""

    REPLACE = "replace"  # merge it into the row by the merge engine
    IGNORE = "ignore"  # keep the row that is there
    FAIL = "fail"  # write nothing


class Aggregate(StrEnum):
    """How the values of a column become one. Nulls are left out, except by `last_value` and `first_value`."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    LAST_VALUE = "last_value"
    LAST_NON_NULL_VALUE = "last_non_null_value"
    FIRST_VALUE = "first_value"
    FIRST_NON_NULL_VALUE = "first_non_null_value"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"


class BadKeyedTable(ValueError):
    """Properties of a keyed table that mean nothing or don't go together; one line says what to do."""


@dataclass(frozen=True)
class KeyedTable:
    """The definition of a keyed table. Names of columns are in lower case.

    `key`: the columns of the primary key without those that partition the table; never empty. `sequence_groups`: by
    their version, the columns that change together with it. `aggregates`: by column, of aggregation only. `types`:
    Hive's types of the columns by which rows are found and merged, in lower case and without spaces; those of others
    may change. `is_table_wide`: the key is unique over all partitions, so that a row may move to another.
    `tombstone_millis`: how long deletes are remembered, None for good. `changelog_millis`: how long changelogs are
    kept, None for as long as snapshots. `snapshot_millis`: how long cleans keep snapshots, None for what a clean says.
    `families`: by name, the columns that have files of their own; all others are in the main file. `duplicate_key`:
    what an INSERT of SQL does with a key that exists. `bucket_columns`: those of the key by which buckets are found, in
    its order; empty for all of them.
    """

    key: tuple[str, ...]
    partition_columns: tuple[str, ...] = ()
    buckets: int = 1
    table_type: TableType = TableType.COPY_ON_WRITE
    engine: MergeEngine = MergeEngine.DEDUPLICATE
    sequence: tuple[str, ...] = ()
    sequence_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False
    types: tuple[tuple[str, str], ...] = ()
    is_table_wide: bool = False
    tombstone_millis: int | None = None
    publish: Publish = Publish.MANUAL
    changelog_producer: ChangelogProducer = ChangelogProducer.NONE
    changelog_millis: int | None = None
    snapshot_millis: int | None = None
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()
    column_ids: ColumnIds = _NO_COLUMNS
    duplicate_key: DuplicateKey = DuplicateKey.REPLACE
    bucket_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        columns: Mapping[str, str],
        partition_columns: Mapping[str, str] | Sequence[str],
    ) -> "KeyedTable | None":
        """The definition in a Parquet table's properties; None for a table without a primary key.

        `columns`: Hive's types by the names of the columns beside those of `partition_columns`. These have types, too,
        or are names alone: then their types aren't checked. Raises BadKeyedTable.
        """
        if not properties.get(PRIMARY_KEY, "").strip():
            return None
        types = _normalized(columns)
        partitioned = tuple(name.lower() for name in partition_columns)
        key = _key(properties, types, partitioned)
        if isinstance(partition_columns, Mapping):
            _check_partition_types(_normalized(partition_columns))
        sequence = _sequence(properties, types, key)
        groups = _groups(properties, types, key)
        aggregates = _aggregates(properties, types, key)
        typed = (*key, *sequence, *(version for version, _ in groups), *(column for column, _ in aggregates))
        engine = _choice(properties, MERGE_ENGINE, MergeEngine, MergeEngine.DEDUPLICATE)
        table_type, features = _table_type(properties)
        found = cls(
            key=key,
            partition_columns=partitioned,
            buckets=_buckets(properties),
            table_type=table_type,
            engine=engine,
            sequence=sequence,
            sequence_groups=groups,
            aggregates=aggregates,
            ignore_delete=_boolean(properties, IGNORE_DELETE),
            remove_on_delete=_boolean(properties, REMOVE_ON_DELETE),
            types=tuple((name, types[name]) for name in dict.fromkeys(typed)),
            tombstone_millis=_duration(properties, TOMBSTONE_TIME),
            is_table_wide=bool(partitioned) and not {*partitioned} & {*column_names(properties[PRIMARY_KEY])},
            publish=_choice(properties, PUBLISH, Publish, Publish.MANUAL),
            changelog_producer=_choice(properties, CHANGELOG_PRODUCER, ChangelogProducer, ChangelogProducer.NONE),
            changelog_millis=_duration(properties, CHANGELOG_TIME),
            snapshot_millis=_duration(properties, SNAPSHOT_TIME),
            families=_families(properties, types, key),
            column_ids=_column_ids(properties, types),
            duplicate_key=_choice(properties, DUPLICATE_KEY, DuplicateKey, DuplicateKey.REPLACE),
            bucket_columns=_bucket_columns(properties, key, partitioned) if BUCKET_KEY in features else (),
        )
        found._check()
        if found.families and properties.get(PUBLISH_COMMITS, "").strip():
            raise BadKeyedTable(_unpublished(PUBLISH_COMMITS))
        return found

    @property
    def bucket_key(self) -> tuple[str, ...]:
        """The columns by which a row's bucket is found: those of the key, or some of them."""
        return self.bucket_columns or self.key

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type is TableType.MERGE_ON_READ

    @property
    def writes_changelog(self) -> bool:
        """Whether a write by key brings the rows that it changed, in files of their own."""
        return self.changelog_producer is not ChangelogProducer.NONE

    @property
    def keeps_tombstones(self) -> bool:
        """Whether a deleted key must be remembered: else an older version that comes late would bring the row back."""
        return bool(self.sequence)

    @property
    def family_columns(self) -> tuple[str, ...]:
        """The columns of all families."""
        return tuple(column for _, columns in self.families for column in columns)

    def file_group(self, bucket: int) -> str:
        """The file group of a bucket, the same in every partition."""
        return f"bucket-{bucket:05}"

    def layout(self) -> dict[str, str]:
        """The properties by which rows are placed and merged, in one spelling; '' for those that aren't set.

        The version of the columns is among them. A writer sends them with a completion, so that it is refused if the
        table has others by then.
        """
        columns = self.key if self.is_table_wide else (*self.key, *self.partition_columns)
        return {
            COLUMN_IDS: str(self.column_ids.version),
            PRIMARY_KEY: ",".join(columns),
            BUCKET: str(self.buckets),
            MERGE_ENGINE: self.engine.value,
            SEQUENCE_FIELD: ",".join(self.sequence),
            COLUMN_FAMILIES: ";".join(f"{name}:{','.join(columns)}" for name, columns in self.families),
            f"{_FIELDS}*{_GROUP}": ";".join(f"{name}:{','.join(columns)}" for name, columns in self.sequence_groups),
            f"{_FIELDS}*{_AGGREGATE}": ";".join(f"{column}:{how.value}" for column, how in self.aggregates),
            **({BUCKET_KEY: ",".join(self.bucket_columns)} if self.bucket_columns else {}),
        }

    def unlike(self, other: "KeyedTable") -> list[str]:
        """The properties in which files of the other definition couldn't be read by this one; empty if there are none.

        Rows stay where the hash of their key put them, and stored values are what the merge engine made of them. So a
        property is named, too, if the type of one of its columns has changed by more than its range.
        """
        versions = tuple(version for version, _ in self.sequence_groups)
        aggregated = tuple(column for column, _ in self.aggregates)
        same = {
            PRIMARY_KEY: self.key == other.key
            and self.is_table_wide == other.is_table_wide
            and self._are_typed_like(other, self.key),
            BUCKET: self.buckets == other.buckets,
            BUCKET_KEY: self.bucket_columns == other.bucket_columns,
            MERGE_ENGINE: self.engine is other.engine,
            COLUMN_FAMILIES: self.families == other.families,
            SEQUENCE_FIELD: self.sequence == other.sequence and self._are_typed_like(other, self.sequence),
            f"{_FIELDS}*{_GROUP}": self.sequence_groups == other.sequence_groups
            and self._are_typed_like(other, versions),
            f"{_FIELDS}*{_AGGREGATE}": self.aggregates == other.aggregates and self._are_typed_like(other, aggregated),
        }
        return [name for name, is_same in same.items() if not is_same]

    def _are_typed_like(self, other: "KeyedTable", columns: Sequence[str]) -> bool:
        """Whether columns have types whose values merge and hash alike in both, as far as the types are known."""
        ours, theirs = dict(self.types), dict(other.types)
        known = [(ours[name], theirs[name]) for name in columns if name in ours and name in theirs]
        return all(_family(one) == _family(two) for one, two in known)

    def _check(self) -> None:
        """Raises BadKeyedTable for properties that don't go together."""
        engine = self.engine
        if self.sequence and engine is not MergeEngine.DEDUPLICATE:
            advice = f", but {_FIELDS}<f>{_GROUP} does" if engine is MergeEngine.PARTIAL_UPDATE else ""
            raise BadKeyedTable(f"{SEQUENCE_FIELD} doesn't go with {MERGE_ENGINE}={engine}{advice}")
        if self.tombstone_millis is not None and not self.sequence:
            raise BadKeyedTable(f"{TOMBSTONE_TIME} goes with {SEQUENCE_FIELD} only: without it no delete is remembered")
        if self.sequence_groups and engine is not MergeEngine.PARTIAL_UPDATE:
            raise BadKeyedTable(f"{_FIELDS}<f>{_GROUP} goes with {MERGE_ENGINE}=partial-update only")
        if self.aggregates and engine is not MergeEngine.AGGREGATION:
            raise BadKeyedTable(f"{_FIELDS}<f>{_AGGREGATE} goes with {MERGE_ENGINE}=aggregation only")
        if self.remove_on_delete and engine is not MergeEngine.PARTIAL_UPDATE:
            raise BadKeyedTable(f"{REMOVE_ON_DELETE} goes with {MERGE_ENGINE}=partial-update only")
        if self.remove_on_delete and self.sequence_groups:
            raise BadKeyedTable(f"{REMOVE_ON_DELETE} doesn't go with sequence groups: set {IGNORE_DELETE}=true")
        if self.is_table_wide and (engine is not MergeEngine.DEDUPLICATE or self.ignore_delete):
            option = f"{IGNORE_DELETE}=true" if self.ignore_delete else f"{MERGE_ENGINE}={engine}"
            raise BadKeyedTable(
                f"{PRIMARY_KEY} without {', '.join(self.partition_columns)}, by which the table is partitioned, doesn't"
                f" go with {option}: a row that moves to another partition is deleted in the old one. Add"
                f" {', '.join(self.partition_columns)} to the key"
            )
        if self.is_table_wide and self.publish is Publish.AT_READINESS:
            raise BadKeyedTable(
                f"{PUBLISH}={self.publish} doesn't go with a key that is unique over the whole table: its partitions"
                " are published together, but turn ready one by one"
            )
        if self.remove_on_delete and self.ignore_delete:
            raise BadKeyedTable(f"set one of {REMOVE_ON_DELETE} and {IGNORE_DELETE}, not both")
        self._check_families()
        self._check_changelog()

    def _check_families(self) -> None:
        """Raises BadKeyedTable for properties that don't go together with column families."""
        if not self.families:
            return
        if versions := [name for name in self.sequence if name in self.family_columns]:
            raise BadKeyedTable(
                f"{COLUMN_FAMILIES}: the column {versions[0]} orders versions ({SEQUENCE_FIELD}), so it stays with the"
                " key: leave it out of the family"
            )
        unfit = {
            f"{TABLE_TYPE}={self.table_type}": self.is_merge_on_read,
            f"{MERGE_ENGINE}={self.engine}": self.engine is not MergeEngine.DEDUPLICATE,
            f"{CHANGELOG_PRODUCER}={self.changelog_producer}": self.changelog_producer is ChangelogProducer.INPUT,
            f"a {PRIMARY_KEY} that is unique over the whole table": self.is_table_wide,
        }
        if found := [what for what, is_so in unfit.items() if is_so]:
            raise BadKeyedTable(
                f"{COLUMN_FAMILIES} doesn't go with {found[0]}: families are of copy-on-write tables with"
                f" {MERGE_ENGINE}={MergeEngine.DEDUPLICATE}, a key within the partition, and"
                f" {CHANGELOG_PRODUCER}=none or lookup"
            )
        if self.publish is Publish.AT_READINESS:
            raise BadKeyedTable(_unpublished(f"{PUBLISH}={self.publish}"))

    def _check_changelog(self) -> None:
        """Raises BadKeyedTable for properties that don't go together with the changelog's."""
        if self.changelog_millis is not None and not self.writes_changelog:
            raise BadKeyedTable(
                f"{CHANGELOG_TIME} needs {CHANGELOG_PRODUCER}=input or lookup: without, changes are found by comparing"
                f" snapshots, and {SNAPSHOT_TIME} says how long both can be read"
            )
        if self.changelog_producer is ChangelogProducer.INPUT:
            unfit = {
                f"{MERGE_ENGINE}={self.engine}": self.engine is not MergeEngine.DEDUPLICATE,
                SEQUENCE_FIELD: bool(self.sequence),
                f"{IGNORE_DELETE}=true": self.ignore_delete,
                f"a {PRIMARY_KEY} that is unique over the whole table": self.is_table_wide,
            }
            if found := [what for what, is_so in unfit.items() if is_so]:
                raise BadKeyedTable(
                    f"{CHANGELOG_PRODUCER}=input doesn't go with {found[0]}: a row that comes isn't always the row that"
                    f" is there afterwards. Set {CHANGELOG_PRODUCER}=lookup"
                )
        if self.changelog_producer is ChangelogProducer.LOOKUP and self.is_merge_on_read and self.tombstone_millis:
            raise BadKeyedTable(
                f"{TOMBSTONE_TIME} doesn't go with {CHANGELOG_PRODUCER}=lookup and {TABLE_TYPE}=merge-on-read: when a"
                " compaction forgets a delete, an older row may come back that no writer has found. Leave it away"
            )


def type_of(properties: Mapping[str, str]) -> str:
    """The type of a keyed table in its properties, in lower case, without what a client must know besides."""
    return _split(properties)[0]


def with_features(properties: Mapping[str, str], before: Mapping[str, str] | None = None) -> dict[str, str]:
    """A keyed table's properties, whose `table-type` names what a client must know to read the table.

    `before`: those that an altered table has. A server that didn't know `bucket-key` may have let it pass without the
    name in the type. Then it isn't in force, and stays so, since rows may have been placed without it.
    """
    kind, named = _split(properties)
    wanted = [BUCKET_KEY] if properties.get(BUCKET_KEY, "").strip() else []
    if before is not None and before.get(BUCKET_KEY) == properties.get(BUCKET_KEY):
        wanted = [each for each in wanted if each in _split(before)[1]]
    others = [each for each in named if each != BUCKET_KEY]
    if not wanted and BUCKET_KEY not in named:
        return {**properties}
    return {**properties, TABLE_TYPE: FEATURE.join([kind, *others, *wanted])}


def _split(properties: Mapping[str, str]) -> tuple[str, list[str]]:
    """The type, by default copy-on-write, and the further names in `table-type`."""
    text = properties.get(TABLE_TYPE, TableType.COPY_ON_WRITE).lower()
    kind, *named = (each.strip() for each in text.split(FEATURE))
    return kind, named


def _table_type(properties: Mapping[str, str]) -> tuple[TableType, list[str]]:
    kind, named = _split(properties)
    if unknown := [each for each in named if each != BUCKET_KEY]:
        raise BadKeyedTable(
            f"{TABLE_TYPE}={properties[TABLE_TYPE][:50]}: {unknown[0][:50]!r} isn't known here: a later version has"
            " made the table"
        )
    return _choice({TABLE_TYPE: kind}, TABLE_TYPE, TableType, TableType.COPY_ON_WRITE), named


def _bucket_columns(properties: Mapping[str, str], key: Sequence[str], partitioned: Sequence[str]) -> tuple[str, ...]:
    named = column_names(properties.get(BUCKET_KEY, ""))
    if not named:
        raise BadKeyedTable(f"{TABLE_TYPE}={properties[TABLE_TYPE][:50]} needs {BUCKET_KEY}: name columns of the key")
    _check_once(BUCKET_KEY, named)
    for name in named:
        if name in partitioned:
            raise BadKeyedTable(
                f"{BUCKET_KEY}: the table is partitioned by {name}, so a bucket has one value of it: leave it out"
            )
        if name not in key:
            raise BadKeyedTable(f"{BUCKET_KEY}: {name} is no column of {PRIMARY_KEY}, which are {', '.join(key)}")
    return () if {*named} == {*key} else tuple(name for name in key if name in named)


def _unpublished(option: str) -> str:
    return (
        f"{COLUMN_FAMILIES} doesn't go with {option}: Hive's readers find whole rows in a file, and can't join families"
    )


def file_name(file_group: str, instant: str, distinct: str, kind: str) -> str:
    """The name of a file of a bucket. `distinct`: twelve hexadecimal digits that no other file of the instant has.

    `kind`: base, log or changelog.
    """
    return f"{file_group}_{instant}_{distinct}{'' if kind == 'base' else f'.{kind}'}.parquet"


def is_own_file(name: str) -> bool:
    """Whether a file has a name as writers of keyed tables give it."""
    return _FILE.fullmatch(name) is not None


def _normalized(columns: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): kind.lower().replace(" ", "") for name, kind in columns.items()}


def _family(kind: str) -> str:
    """The same for types that differ in their range or length only, so that a value is the same in each."""
    if kind in _WHOLE_NUMBERS:
        return "bigint"
    return "string" if kind.startswith(_KEY_FAMILIES) else kind


def column_names(text: str) -> tuple[str, ...]:
    """The columns that a property lists, such as `primary-key`, in lower case."""
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


def _key(properties: Mapping[str, str], types: Mapping[str, str], partitioned: Sequence[str]) -> tuple[str, ...]:
    named = column_names(properties[PRIMARY_KEY])
    _check_once(PRIMARY_KEY, named)
    if unknown := [name for name in named if name not in types and name not in partitioned]:
        raise BadKeyedTable(f"{PRIMARY_KEY}: the table has no column {unknown[0]}")
    missing = [name for name in partitioned if name not in named]
    if missing and len(missing) < len(partitioned):
        raise BadKeyedTable(
            f"{PRIMARY_KEY}: add {', '.join(missing)}, by which the table is partitioned, too: a key is unique within"
            " its partition. With none of the partition columns it is unique over the whole table"
        )
    key = tuple(name for name in named if name not in partitioned)
    if not key:
        raise BadKeyedTable(f"{PRIMARY_KEY}: name a column beside those by which the table is partitioned")
    for name in key:
        _check_no_char(name, types[name])
        if not _is_key_type(types[name]):
            raise BadKeyedTable(
                f"{PRIMARY_KEY}: the column {name} is {types[name]}; a key has whole numbers, strings, binary values,"
                " booleans, dates or timestamps"
            )
    return key


def _check_partition_types(types: Mapping[str, str]) -> None:
    for name, kind in types.items():
        _check_no_char(name, kind)
        if kind.startswith(_NO_PARTITION):
            raise BadKeyedTable(
                f"{PRIMARY_KEY}: the table is partitioned by {name}, which is {kind}; writers name the directory of the"
                " same value differently, so partition by whole numbers, strings, booleans or dates"
            )


def _check_no_char(name: str, kind: str) -> None:
    if kind.startswith(_CHAR):
        raise BadKeyedTable(
            f"{PRIMARY_KEY}: the column {name} is {kind}, which some writers fill up with spaces and others don't; make"
            " it varchar or string"
        )


def _is_key_type(kind: str) -> bool:
    return kind in KEY_TYPES or kind.startswith(_KEY_FAMILIES)


def _buckets(properties: Mapping[str, str]) -> int:
    text = properties.get(BUCKET, "1").strip()
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_BUCKETS or len(text) > 9:
        raise BadKeyedTable(f"{BUCKET}={text[:50]}: expected a number from 1 to {MAX_BUCKETS}")
    return int(text)


def _choice(properties: Mapping[str, str], name: str, choices: type[Choice], default: Choice) -> Choice:
    text = properties.get(name, default).strip().lower()
    try:
        return choices(text)
    except ValueError:
        raise BadKeyedTable(f"{name}={text[:50]}: expected {', '.join(choices)}") from None


def _column_ids(properties: Mapping[str, str], types: Mapping[str, str]) -> ColumnIds:
    try:
        return ColumnIds.of(properties, [*types])
    except ValueError as error:
        raise BadKeyedTable(str(error)) from None


def _boolean(properties: Mapping[str, str], name: str) -> bool:
    text = properties.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise BadKeyedTable(f"{name}={text[:50]}: expected true or false")
    return text == "true"


def _duration(properties: Mapping[str, str], name: str) -> int | None:
    """Milliseconds, or None if the property isn't set."""
    text = properties.get(name, "").strip()
    try:
        return parse_duration(text) if text else None
    except ValueError as error:
        raise BadKeyedTable(f"{name}={text[:50]}: {error}") from None


def _sequence(properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]) -> tuple[str, ...]:
    named = column_names(properties.get(SEQUENCE_FIELD, ""))
    _check_once(SEQUENCE_FIELD, named)
    for name in named:
        _check_column(SEQUENCE_FIELD, name, types, key)
        _check_ordered(SEQUENCE_FIELD, name, types)
    return named


def _groups(
    properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = {}
    members: list[str] = []
    for name, text in sorted(properties.items()):
        if name.startswith(_FIELDS) and name.endswith(_GROUP):
            version = name.removeprefix(_FIELDS).removesuffix(_GROUP).lower()
            if "," in version:
                raise BadKeyedTable(f"{name}: a group has one column as its version")
            _check_column(name, version, types, key)
            _check_ordered(name, version, types)
            found[version] = column_names(text)
            for member in found[version]:
                _check_column(name, member, types, key)
            members += [version, *found[version]]
    _check_once(f"{_FIELDS}<f>{_GROUP}", members)
    return tuple(found.items())


def _aggregates(
    properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]
) -> tuple[tuple[str, Aggregate], ...]:
    found = {}
    for name in sorted(properties):
        if name.startswith(_FIELDS) and name.endswith(_AGGREGATE):
            column = name.removeprefix(_FIELDS).removesuffix(_AGGREGATE).lower()
            _check_column(name, column, types, key)
            found[column] = _choice(properties, name, Aggregate, Aggregate.LAST_NON_NULL_VALUE)
            _check_aggregate(name, found[column], types[column])
    return tuple(found.items())


def _families(
    properties: Mapping[str, str], types: Mapping[str, str], key: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    for text in properties.get(COLUMN_FAMILIES, "").split(";"):
        if not text.strip():
            continue
        name, colon, columns = text.partition(":")
        name = name.strip().lower()
        if not colon or not column_names(columns) or not _FAMILY_NAME.fullmatch(name):
            raise BadKeyedTable(
                f"{COLUMN_FAMILIES}: {text.strip()[:50]!r} is no family: write name:column,column, and ; between"
                " families. Names have up to 32 small letters, digits, - and _"
            )
        if name in found:
            raise BadKeyedTable(f"{COLUMN_FAMILIES}: the family {name} is named twice")
        found[name] = column_names(columns)
        for column in found[name]:
            _check_column(COLUMN_FAMILIES, column, types, key)
    if len(found) > MAX_FAMILIES:
        raise BadKeyedTable(f"{COLUMN_FAMILIES}: a table has at most {MAX_FAMILIES} families, not {len(found)}")
    _check_once(COLUMN_FAMILIES, [column for columns in found.values() for column in columns])
    return tuple(found.items())


def _check_aggregate(name: str, function: Aggregate, kind: str) -> None:
    if function in (Aggregate.BOOL_AND, Aggregate.BOOL_OR) and kind != "boolean":
        raise BadKeyedTable(f"{name}: {function} is of booleans, and the column is {kind}")
    if function is Aggregate.SUM and not kind.startswith(
        ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    ):
        raise BadKeyedTable(f"{name}: sum is of numbers, and the column is {kind}")
    if function in (Aggregate.MIN, Aggregate.MAX) and kind.startswith(("array<", "map<", "struct<", "uniontype<")):
        raise BadKeyedTable(f"{name}: {function} is of values that have an order, and the column is {kind}")


def _check_column(name: str, column: str, types: Mapping[str, str], key: Sequence[str]) -> None:
    if column not in types:
        raise BadKeyedTable(f"{name}: the table has no column {column} beside those that partition it")
    if column in key:
        raise BadKeyedTable(f"{name}: the column {column} belongs to the key")


def _check_ordered(name: str, column: str, types: Mapping[str, str]) -> None:
    if types[column].startswith(_NO_SEQUENCE):
        raise BadKeyedTable(f"{name}: the column {column} is {types[column]}, which doesn't order versions")


def _check_once(name: str, columns: Sequence[str]) -> None:
    if twice := sorted({column for column in columns if columns.count(column) > 1}):
        raise BadKeyedTable(f"{name}: the column {twice[0]} is named twice")

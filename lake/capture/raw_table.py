"""The raw table: every change of a source as it came, a file for each table and batch, with the position."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple, TypeVar

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from lake import __version__
from lake.capture.errors import AnotherCapture, CaptureError
from lake.capture.state import CaptureState
from lake.client.lake_types import Completion, DataFile, StreamBatch
from lake.protocol.formats.partition_names import make_name
from lake.protocol.hive import (
    AlreadyExistsException,
    Database,
    FieldSchema,
    NoSuchObjectException,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from lake.tables.lake import LakeClient, LakeTable, Writing

PARTITION: Final = "source_table"

SCHEMA: Final = pa.schema(
    [
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("unchanged", pa.list_(pa.string())),
        ("transaction_id", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("epoch", pa.int64()),
        ("commit_lsn", pa.int64()),
        ("ordinal", pa.int64()),
    ]
)

DECISIONS: Final = "capture.schema-changes.decided"
"""The table's property that says what was decided on changes of the source's tables."""

AMENDMENTS: Final = "capture.schema-changes.amended"
"""The table's property that says what somebody has said of changes of the source's tables."""

ORDERS: Final = "capture.read-again"
"""The table's property: when each of the source's tables was last to be read again, in milliseconds since 1970."""

COLUMNS: Final = (
    (
        "op",
        "string",
        "insert, update, delete, truncate, read (by a snapshot), schema, statement, incomplete, complete, stale, hold",
    ),
    ("before", "string", "the row before, or its key alone, as JSON"),
    ("after", "string", "the row after, as JSON; of schema the columns, of statement its text"),
    ("unchanged", "array<string>", "columns that are missing in after, because the update left them alone"),
    ("transaction_id", "bigint", "the transaction's number in the source"),
    ("committed_at", "timestamp", "when it was committed"),
    ("epoch", "bigint", "the first part of the position: grows with each new snapshot of all tables"),
    ("commit_lsn", "bigint", "the second part of the position: where the commit is in the source's log"),
    ("ordinal", "bigint", "the third part of the position: the place in the transaction"),
)

CHANGES: Final = frozenset({"read", "insert", "update", "delete"})
"""Operations of rows that have a row of the source. Files have all others in row groups of their own."""

BUFFERED_ROWS = 20_000
"""Rows that are kept in memory before they are written into the files of the batch."""

BUFFERED_CHARACTERS = 32 << 20
"""Characters of JSON, likewise."""

_INPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


S = TypeVar("S")


class Row(NamedTuple):
    """A row without its partition; fields as of `COLUMNS`, `committed_at` in microseconds since 1970."""

    op: str
    before: str | None
    after: str | None
    unchanged: list[str] | None
    transaction_id: int | None
    committed_at: int
    epoch: int
    commit_lsn: int
    ordinal: int


class RawTable:
    """A raw table, which only one capture writes."""

    def __init__(self, client: LakeClient, name: str) -> None:
        """`name`: `database.table`. Raises ValueError for another form. Makes no call."""
        self.client = client
        self.lake: LakeTable = client.table(name)

    def create(self) -> None:
        """Makes the table, and its database, unless they are there. Raises CaptureError for another kind of table."""
        try:
            schema = self.lake.schema()
        except NoSuchObjectException:
            self._create()
            schema = self.lake.schema()
        found = [(each.name, each.type) for each in schema.columns]
        if found != [(name, kind) for name, kind, _ in COLUMNS] or [each.name for each in schema.keys] != [PARTITION]:
            raise CaptureError(f"{self.lake.name} has other columns than a raw table: give another name with --into")

    def _create(self) -> None:
        named = self.lake.named
        database = Database(name=named.database, catalogName=named.catalog)
        with suppress(AlreadyExistsException):
            self.client.call(lambda client: client.create_database(database))
        table = Table(
            catName=named.catalog,
            dbName=named.database,
            tableName=named.table,
            tableType="MANAGED_TABLE",
            partitionKeys=[FieldSchema(PARTITION, "string", "the source's table, with its schema")],
            sd=StorageDescriptor(
                cols=[FieldSchema(*each) for each in COLUMNS],
                inputFormat=_INPUT_FORMAT,
                outputFormat=_OUTPUT_FORMAT,
                serdeInfo=SerDeInfo(serializationLib=_SERDE),
            ),
            # Its partitions are never complete: only who asks for uncommitted ones reads it.
            parameters={
                "partition.commit.mode": "manual",
                "comment": "changes of a database, by metastore capture",
                DECISIONS: "{}",
                AMENDMENTS: "{}",
            },
        )
        with suppress(AlreadyExistsException):
            self.client.call(lambda client: client.create_table(table))

    def latest(self, parse: Callable[[bytes | None], S], *, even_undone: bool = False) -> S | None:
        """How far a capture has come; None before its first instant.

        `parse` reads it in an instant's metadata, and gives None for instants of others. Raises CaptureError if a later
        version has written it, or if instants were undone, unless `even_undone`, which gives the last state there was.
        """
        undone = False
        for each in self.lake.instants(
            actions=["commit"], states=["completed"], latest_first=True, include_archived=True, page=100
        ):
            metadata = self.lake.details(each.timestamp, each.action).metadata.get("completed")
            try:
                state = parse(metadata)
            except (TypeError, ValueError, KeyError) as error:
                raise CaptureError(
                    f"the state of the capture into {self.lake.name} is of a later version than this one,"
                    f" {__version__}: run that version"
                ) from error
            if state is None:
                continue
            if each.undone_by is None or even_undone:
                if undone:
                    raise CaptureError(
                        f"the latest instants of {self.lake.name} were rolled back, and the source may have removed"
                        " what they had: start again with --new-snapshot"
                    )
                return state
            undone = True
        return None

    def batch(self) -> "Batch":
        """A batch of rows, which become part of the table together."""
        return Batch(self.lake)


class Batch:
    """Rows for one instant. The instant begins with the first rows that don't fit into memory, or at the end."""

    def __init__(self, lake: LakeTable) -> None:
        self._lake = lake
        self._stack = ExitStack()
        self._writing: Writing | None = None
        self._rows: dict[str, list[Row]] = {}
        self._files: dict[str, _File] = {}
        self._buffered = 0
        self._characters = 0
        self.rows = 0

    def add(self, table: str, row: Row) -> None:
        """Adds a row of a source's table."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = []
        rows.append(row)
        self.rows += 1
        self._buffered += 1
        self._characters += len(row.after or "") + len(row.before or "")
        if self._buffered >= BUFFERED_ROWS or self._characters >= BUFFERED_CHARACTERS:
            self._flush()

    def complete(self, state: CaptureState) -> None:
        """Completes the instant with what was added, and the state after it, whose batch it numbers.

        Raises AnotherCapture, and what the metastore raises; then nothing is written.
        """
        writing = self._begun()
        self._flush()
        added = [each.close() for each in self._files.values()]
        self._files.clear()
        completion = Completion(
            added=added,
            metadata=state.metadata(self.rows),
            batch=StreamBatch(f"capture {state.stream}", state.batch),
        )
        done = writing.complete(completion)
        self._stack.close()
        if done.batch_repeated:
            raise AnotherCapture(f"another process captures {state.stream} into {self._lake.name}: only one may")

    def abandon(self) -> None:
        """Leaves nothing of the batch."""
        for each in self._files.values():
            with suppress(Exception):  # the files go with the instant
                each.close()
        with suppress(Exception):  # without heartbeats the server aborts the instant
            self._stack.close()

    def _begun(self) -> Writing:
        if self._writing is None:
            self._writing = self._stack.enter_context(self._lake.writing())
        return self._writing

    def _flush(self) -> None:
        writing = self._begun()
        for table, rows in self._rows.items():
            if table not in self._files:
                self._files[table] = _File(writing, table)
            self._files[table].write(rows)
        self._rows.clear()
        self._buffered = self._characters = 0


class _File:
    """A Parquet file of a batch."""

    def __init__(self, writing: Writing, table: str) -> None:
        self._writing = writing
        self._partition = make_name((PARTITION,), (table,))
        self._group = uuid.uuid4().hex
        self._below = f"{self._partition}/{self._group}.parquet"
        self._rows = 0
        storage, path = fsspec.url_to_fs(f"{writing.directory}/{self._below}", auto_mkdir=True)
        self._target = storage.open(path, "wb")
        self._writer = pq.ParquetWriter(self._target, SCHEMA, compression="zstd")

    def write(self, rows: Sequence[Row]) -> None:
        """Writes a row group of changes, and one of what is said of them, so that who looks for that reads it alone."""
        for is_change in (False, True):
            if some := [each for each in rows if (each.op in CHANGES) is is_change]:
                self._write(some)

    def _write(self, rows: Sequence[Row]) -> None:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
        self._rows += len(rows)

    def close(self) -> DataFile:
        """Ends the file."""
        self._writer.close()
        size = self._target.tell()
        self._target.close()
        return DataFile(
            partition=self._partition,
            file_group=self._group,
            slice=self._writing.instant.timestamp,
            path=f"{self._writing.path}/{self._below}",
            size=int(size),
            rows=self._rows,
        )


def rows_of(lake: LakeTable, table: str) -> Iterator[pa.Table]:
    """The rows of a source's table in a raw table, file by file, in no order."""
    snapshot = lake.snapshot(partitions=[make_name((PARTITION,), (table,))], include_uncommitted=True)
    for each in snapshot:
        storage, path = fsspec.url_to_fs(f"{snapshot.location}/{each.path}")
        with storage.open(path, "rb") as opened:
            yield pq.ParquetFile(opened).read()

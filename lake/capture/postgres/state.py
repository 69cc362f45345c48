"""How far a capture has come. It is part of each of its instants: the raw table's timeline is the only checkpoint."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lake.capture.errors import CaptureError
from lake.capture.postgres.layouts import Layout

METADATA_KEY = "capture"
"""Of the JSON object in an instant's metadata."""


class Phase(StrEnum):
    """What the snapshot of a table has come to."""

    CHUNKS = "chunks"
    """Its rows are read in chunks, in the order of its key."""
    WHOLE = "whole"
    """It has no key: it is read as a whole, and its changes count from there on."""
    DONE = "done"


@dataclass(frozen=True)
class TableProgress:
    """How far a table has come.

    `oid`: pg_class's, by which a table that was made again is known. `membership`: as of the source's table; 0 if it
    isn't known, -1 while the publication doesn't have the table. `key` and `after`: the columns by which chunks are
    read, and their values in the last row read. `rows`: read so far. `start_lsn`: changes with earlier commits don't
    count. `shape`: a fingerprint of the columns that were last written down, empty if none were since the table was
    emptied. `layout`: by which the rows were read; None if none were read. `is_read_again`: what the raw table had
    before counts until all rows are read. `is_incomplete`: the raw table has an `incomplete` row, and nothing after it
    counts until all rows, and those of `rereads`, are read.
    """

    oid: int
    phase: Phase
    key: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None
    rows: int = 0
    start_lsn: int = 0
    shape: str = ""
    membership: int = 0
    layout: Layout | None = None
    is_read_again: bool = False
    is_incomplete: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a `complete` row has to say when the latest rows of the raw table count."""
        return self.is_read_again or self.is_incomplete


@dataclass
class State:
    """A capture after one of its instants.

    `system`: the source's identifier; `timeline` is another one after a standby took its place. `epoch` grows with each
    snapshot of all tables anew. `lsn`: commits before it are written. `batch`: the number of the instant. `rereads`:
    keys of rows that have to be read, by table. `publication_oid`: the publication's number in the source; 0 if it
    isn't known. `troubles`: why a table's rows can't be read, by table.
    """

    slot: str
    publication: str
    system: str
    timeline: int
    database: str
    epoch: int = 1
    batch: int = 0
    lsn: int = 0
    tables: dict[str, TableProgress] = field(default_factory=dict)
    rereads: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    publication_oid: int = 0
    troubles: dict[str, str] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        """The name of the stream whose batches are numbered."""
        return self.slot

    @property
    def is_snapshot_done(self) -> bool:
        """Whether all rows have been read that were there when their tables were first seen.

        Tables that can't be read don't count.
        """
        progress = [each for name, each in self.tables.items() if name not in self.troubles]
        rereads = [keys for name, keys in self.rereads.items() if name not in self.troubles]
        return all(each.phase is Phase.DONE for each in progress) and not any(rereads)

    def copy(self) -> "State":
        rereads = {name: set(keys) for name, keys in self.rereads.items()}
        return dataclasses.replace(self, tables=dict(self.tables), rereads=rereads, troubles=dict(self.troubles))

    def advance(self, table: str, **changes: Any) -> None:
        """Changes what is known of a table; fields as of TableProgress."""
        self.tables[table] = dataclasses.replace(self.tables[table], **changes)

    def metadata(self, rows: int) -> bytes:
        """The metadata of an instant that wrote some rows."""
        sent = dataclasses.asdict(self)
        sent["rereads"] = {name: sorted(keys) for name, keys in self.rereads.items() if keys}
        return json.dumps({"operation": "capture", "rows": rows, METADATA_KEY: sent}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, metadata: bytes | None) -> "State | None":
        """The state in an instant's metadata; None if it isn't one of a capture.

        Raises CaptureError for that of another kind of source.
        """
        sent = sent_state(metadata)
        if sent is None:
            return None
        if "kind" in sent:
            raise CaptureError("the raw table has the changes of another kind of source: give another with --into")
        tables = {name: sent_progress(each) for name, each in sent.pop("tables").items()}
        rereads = {name: {tuple(key) for key in keys} for name, keys in sent.pop("rereads").items()}
        return cls(**sent, tables=tables, rereads=rereads)


def sent_state(metadata: bytes | None) -> dict[str, Any] | None:
    """What an instant's metadata says of a capture; None if it isn't one of a capture."""
    try:
        found = json.loads(metadata or b"null")
    except ValueError:
        return None
    sent = found.get(METADATA_KEY) if isinstance(found, dict) else None
    return sent if isinstance(sent, dict) else None


def sent_progress(sent: Mapping[str, Any]) -> TableProgress:
    """A table's progress in an instant's metadata."""
    after = sent["after"]
    return TableProgress(
        **{
            **sent,
            "phase": Phase(sent["phase"]),
            "key": tuple(sent["key"]),
            "after": None if after is None else tuple(after),
            "layout": Layout.parse(sent.get("layout")),
        }
    )

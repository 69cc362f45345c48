"""How far a capture has come. It is part of each of its instants: the raw table's timeline is the only checkpoint."""

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Self

from lake.capture.errors import CaptureError
from lake.capture.postgres.layouts import Layout

_METADATA_KEY = "capture"  # of the JSON object in an instant's metadata


class CaptureState(ABC):
    """A capture after one of its instants. The dataclasses of the sources derive from it.

    `kind`: names the kind of source in the metadata; None for Postgres. `epoch` grows with each `--new-snapshot`.
    `batch`: the number of the instant. `tables`: what is known of each, by the name of the source's table.
    `troubles`: why a table's rows can't be read, by table.
    """

    kind: ClassVar[str | None] = None
    epoch: int
    batch: int
    tables: dict[str, Any]
    troubles: Mapping[str, str] = MappingProxyType({})

    @property
    def stream(self) -> str:
        """The name of the stream whose batches are numbered."""
        return str(self.kind)

    def advance(self, table: str, **changes: Any) -> None:
        """Changes what is known of a table; fields as of the values of `tables`."""
        self.tables[table] = dataclasses.replace(self.tables[table], **changes)

    def metadata(self, rows: int) -> bytes:
        """The metadata of an instant that wrote some rows."""
        sent = self.sent() if self.kind is None else {"kind": self.kind, **self.sent()}
        return json.dumps({"operation": "capture", "rows": rows, _METADATA_KEY: sent}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, metadata: bytes | None) -> Self | None:
        """The state in an instant's metadata; None if it isn't one of a capture.

        Raises CaptureError for that of another kind of source.
        """
        sent = sent_state(metadata)
        if sent is None:
            return None
        if sent.pop("kind", None) != cls.kind:
            raise CaptureError("the raw table has the changes of another kind of source: give another with --into")
        return cls.received(sent)

    @abstractmethod
    def sent(self) -> dict[str, Any]:
        """The fields, as JSON has them."""

    @classmethod
    @abstractmethod
    def received(cls, sent: dict[str, Any]) -> Self:
        """The state whose fields were sent."""


class DatabaseState(CaptureState):
    """A capture of a database, whose tables are read before their changes count."""

    tables: dict[str, "TableProgress"]
    troubles: dict[str, str]
    orders: dict[str, int]
    """The latest order to read each table again that was carried out, as of `rereads.ordered`."""

    @property
    def kept(self) -> tuple[object, ...]:
        """What is written soon once it has changed, even without rows."""
        return self.tables, self.troubles, self.orders

    @staticmethod
    def without_orders(sent: dict[str, Any]) -> dict[str, Any]:
        """The fields as they are sent: without orders if there are none, since earlier versions don't know them."""
        return sent if sent["orders"] else {name: value for name, value in sent.items() if name != "orders"}

    @abstractmethod
    def copy(self) -> Self:
        """A copy that later changes leave alone."""


class Phase(StrEnum):
    """What the snapshot of a table has come to."""

    CHUNKS = "chunks"
    """Its rows are read in chunks, in the order of its key."""
    WHOLE = "whole"
    """It has no key: it is read as a whole, and its changes count from there on."""
    DONE = "done"


@dataclass(frozen=True)
class TableProgress:
    """How far a table of a database has come.

    `oid`: pg_class's, by which a table that was made again is known. `membership`: as of the source's table; 0 if
    it isn't known, -1 while the publication doesn't have the table. `key` and `after`: the columns by which chunks
    are read, and their values in the last row read. `rows`: read so far. `start_lsn`: changes with earlier commits
    don't count. `shape`: a fingerprint of the columns that were last written down, empty if none were since the
    table was emptied, `widened` if others may follow them. `layout`: by which the rows were read; None if none were
    read. `is_read_again`: what the raw table had before counts until all rows are read. `is_incomplete`: the raw
    table has an `incomplete` row, and nothing after it counts until all rows, and those of `rereads`, are read.
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

    @classmethod
    def received(cls, sent: Mapping[str, Any]) -> Self:
        """A table's progress in an instant's metadata."""
        after = sent["after"]
        fields = {
            **sent,
            "phase": Phase(sent["phase"]),
            "key": tuple(sent["key"]),
            "after": None if after is None else tuple(after),
            "layout": Layout.parse(sent.get("layout")),
        }
        return cls(**fields)


def sent_state(metadata: bytes | None) -> dict[str, Any] | None:
    """What an instant's metadata says of a capture; None if it isn't one of a capture."""
    try:
        found = json.loads(metadata or b"null")
    except ValueError:
        return None
    sent = found.get(_METADATA_KEY) if isinstance(found, dict) else None
    return sent if isinstance(sent, dict) else None

"""How far a capture of Debezium's messages has come. Like that of a database, it is part of each of its instants."""

import dataclasses
import json
from dataclasses import dataclass, field

from lake.capture.errors import CaptureError
from lake.capture.postgres.state import METADATA_KEY, sent_state

KIND = "debezium"


@dataclass(frozen=True)
class Offset:
    """Where the next message of a file or of a partition of a topic begins.

    `head`: a checksum of the first bytes of a file, by which another file of the same name is known.
    """

    at: int
    head: int = 0


@dataclass(frozen=True)
class TableState:
    """`key`: the columns of a table's key. `shape`: a fingerprint of the columns that were last written down."""

    key: tuple[str, ...] = ()
    shape: str = ""
    rows: int = 0


@dataclass
class DebeziumState:
    """A capture after one of its instants.

    `epoch` grows with each `--new-snapshot`. `batch`: the number of the instant. `number`: of the last message; the
    messages of a raw table are numbered as they come. `offsets`: by file, or by topic and partition.
    """

    source: str
    epoch: int = 1
    batch: int = 0
    number: int = 0
    offsets: dict[str, Offset] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        """The name of the stream whose batches are numbered."""
        return KIND

    def metadata(self, rows: int) -> bytes:
        """The metadata of an instant that wrote some rows."""
        sent = {"kind": KIND, **dataclasses.asdict(self)}
        return json.dumps({"operation": "capture", "rows": rows, METADATA_KEY: sent}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, metadata: bytes | None) -> "DebeziumState | None":
        """The state in an instant's metadata; None if it isn't one of a capture.

        Raises CaptureError for that of another kind of source.
        """
        sent = sent_state(metadata)
        if sent is None:
            return None
        if sent.pop("kind", None) != KIND:
            raise CaptureError("the raw table has the changes of another kind of source: give another with --into")
        offsets = {name: Offset(**each) for name, each in sent.pop("offsets").items()}
        tables = {name: TableState(**{**each, "key": tuple(each["key"])}) for name, each in sent.pop("tables").items()}
        return cls(**sent, offsets=offsets, tables=tables)

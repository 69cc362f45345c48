"""How far a capture from MariaDB has come. Like that of the others, it is part of each of its instants."""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from lake.capture.errors import CaptureError
from lake.capture.mysql.positions import Position
from lake.capture.postgres.state import METADATA_KEY, Phase, TableProgress, sent_progress, sent_state

KIND = "mysql"


@dataclass
class MysqlState:
    """A capture after one of its instants.

    `server`: the source's server_id. `position`: what is before it in the log is written. `gtid`: of the last
    transaction before it; empty if there was none yet. `epoch` grows with each snapshot of all tables anew, `batch` is
    the number of the instant. `dropped`: tables that are made again when they come again. `troubles`: why a table's
    rows can't be read, by table. `cascading`: tables with a foreign key by which their rows may have changed without
    being in the log.
    """

    server: int
    position: Position
    gtid: str = ""
    epoch: int = 1
    batch: int = 0
    tables: dict[str, TableProgress] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    troubles: dict[str, str] = field(default_factory=dict)
    cascading: set[str] = field(default_factory=set)

    @property
    def stream(self) -> str:
        """The name of the stream whose batches are numbered."""
        return KIND

    @property
    def is_snapshot_done(self) -> bool:
        """Whether all rows have been read that were there when their tables were first seen. Tables that can't be read
        don't count."""
        return all(each.phase is Phase.DONE for name, each in self.tables.items() if name not in self.troubles)

    def copy(self) -> "MysqlState":
        return dataclasses.replace(
            self,
            tables=dict(self.tables),
            dropped=set(self.dropped),
            troubles=dict(self.troubles),
            cascading=set(self.cascading),
        )

    def advance(self, table: str, **changes: Any) -> None:
        """Changes what is known of a table; fields as of TableProgress."""
        self.tables[table] = dataclasses.replace(self.tables[table], **changes)

    def metadata(self, rows: int) -> bytes:
        """The metadata of an instant that wrote some rows."""
        sets = {"dropped": sorted(self.dropped), "cascading": sorted(self.cascading)}
        sent = {"kind": KIND, **dataclasses.asdict(self), **sets}
        return json.dumps({"operation": "capture", "rows": rows, METADATA_KEY: sent}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, metadata: bytes | None) -> "MysqlState | None":
        """The state in an instant's metadata; None if it isn't one of a capture.

        Raises CaptureError for that of another kind of source.
        """
        sent = sent_state(metadata)
        if sent is None:
            return None
        if sent.pop("kind", None) != KIND:
            raise CaptureError("the raw table has the changes of another kind of source: give another with --into")
        tables = {name: sent_progress(each) for name, each in sent.pop("tables").items()}
        position, dropped = Position(*sent.pop("position")), set(sent.pop("dropped"))
        cascading = set(sent.pop("cascading", ()))
        return cls(**sent, position=position, tables=tables, dropped=dropped, cascading=cascading)

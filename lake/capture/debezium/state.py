"""How far a capture of Debezium's messages has come."""

import dataclasses
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Self

from lake.capture.state import CaptureState


@dataclass(frozen=True)
class Offset:
    """Where the next message of a file or of a partition of a topic begins.

    `head`: a checksum of the first bytes of a file, by which another file of the same name is known.
    """

    at: int
    head: int = 0


class Follows(IntEnum):
    """What follows a message in Debezium's output."""

    ROWS = 0
    """More rows of the table, in a snapshot."""
    TABLES = 1
    """Rows of other tables, in a snapshot."""
    CHANGES = 2


@dataclass(frozen=True)
class TableState:
    """`key`: the columns of a table's key. `shape`: a fingerprint of the columns that were last written down.

    `is_read_again`: typed tables still show the rows of the epoch before. `sent_at`: when Debezium sent the latest
    message of this epoch, in milliseconds since 1970; -1 before there is one. `follows`: what follows that. `earlier`:
    fingerprints of the columns before, to which nullable ones were added since, each with the time of a commit after
    which no message has these columns, in microseconds since 1970.
    """

    key: tuple[str, ...] = ()
    shape: str = ""
    rows: int = 0
    is_read_again: bool = False
    sent_at: int = -1
    follows: Follows = Follows.CHANGES
    earlier: tuple[tuple[str, int], ...] = ()

    def is_late(self, form: str, committed_at: int) -> bool:
        """Whether a message with some columns was sent before the table got those that it has, and came after that by
        another partition. Later it would say that the table has lost columns."""
        return any(form == each and 0 < committed_at < until for each, until in self.earlier)

    def after(self, sent_at: int, follows: Follows) -> "TableState":
        """The state after a message; messages of several places come in any order."""
        if sent_at < self.sent_at or (sent_at == self.sent_at and follows < self.follows):
            return self
        return dataclasses.replace(self, sent_at=sent_at, follows=follows)


@dataclass
class DebeziumState(CaptureState):
    """A capture after one of its instants.

    `epoch` grows with each `--new-snapshot`. `batch`: the number of the instant. `number`: of the last message; the
    messages of a raw table are numbered as they come. `offsets`: by file, or by topic and partition.
    """

    kind: ClassVar[str] = "debezium"

    source: str
    epoch: int = 1
    batch: int = 0
    number: int = 0
    offsets: dict[str, Offset] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)

    def whole(self) -> set[str]:
        """The tables that are read again and whose snapshot Debezium has written to its end.

        A table without messages is one if changes have followed Debezium's snapshot of all others.
        """
        latest = max(self.tables.values(), key=lambda each: (each.sent_at, each.follows), default=TableState())
        is_over = latest.sent_at >= 0 and latest.follows is Follows.CHANGES
        return {
            name
            for name, each in self.tables.items()
            if each.is_read_again and (is_over if each.sent_at < 0 else each.follows is not Follows.ROWS)
        }

    def sent(self) -> dict[str, Any]:
        found = dataclasses.asdict(self)
        for each in found["tables"].values():
            if not each["earlier"]:  # versions without it go on with the capture
                del each["earlier"]
        return found

    @classmethod
    def received(cls, sent: dict[str, Any]) -> Self:
        offsets = {name: Offset(**each) for name, each in sent.pop("offsets").items()}
        tables = {name: _table(each) for name, each in sent.pop("tables").items()}
        return cls(**sent, offsets=offsets, tables=tables)


def _table(sent: dict[str, Any]) -> TableState:
    follows = Follows(sent.get("follows", Follows.CHANGES))
    earlier = tuple((form, until) for form, until in sent.get("earlier", ()))
    return TableState(**{**sent, "key": tuple(sent["key"]), "follows": follows, "earlier": earlier})

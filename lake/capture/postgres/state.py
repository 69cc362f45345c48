"""How far the capture of a Postgres has come."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

from lake.capture.postgres.layouts import Layout
from lake.capture.state import DatabaseState, Phase, TableProgress


@dataclass
class State(DatabaseState):
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
    orders: dict[str, int] = field(default_factory=dict)

    @property
    def stream(self) -> str:
        return self.slot

    @property
    def is_snapshot_done(self) -> bool:
        """Whether all rows have been read that were there when their tables were first seen.

        Tables that can't be read don't count.
        """
        progress = [each for name, each in self.tables.items() if name not in self.troubles]
        rereads = [keys for name, keys in self.rereads.items() if name not in self.troubles]
        return all(each.phase is Phase.DONE for each in progress) and not any(rereads)

    def copy(self) -> Self:
        rereads = {name: set(keys) for name, keys in self.rereads.items()}
        return dataclasses.replace(
            self,
            tables=dict(self.tables),
            rereads=rereads,
            troubles=dict(self.troubles),
            orders=dict(self.orders),
        )

    def sent(self) -> dict[str, Any]:
        rereads = {name: sorted(keys) for name, keys in self.rereads.items() if keys}
        sent = dataclasses.asdict(self)
        tables = {name: {**each, "layout": Layout.sent(each["layout"])} for name, each in sent["tables"].items()}
        return self.without_orders({**sent, "tables": tables, "rereads": rereads})

    @classmethod
    def received(cls, sent: dict[str, Any]) -> Self:
        tables = {name: TableProgress.received(each) for name, each in sent.pop("tables").items()}
        rereads = {name: {tuple(key) for key in keys} for name, keys in sent.pop("rereads").items()}
        return cls(**sent, tables=tables, rereads=rereads)

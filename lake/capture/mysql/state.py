"""How far a capture from MariaDB has come."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from lake.capture.mysql.positions import Position
from lake.capture.state import DatabaseState, Phase, TableProgress


@dataclass
class MysqlState(DatabaseState):
    """A capture after one of its instants.

    `server`: the source's server_id. `position`: what is before it in the log is written. `gtid`: of the last
    transaction before it; empty if there was none yet. `epoch` grows with each snapshot of all tables anew, and with
    orders to read some again; `batch` is the number of the instant. `dropped`: tables that are made again when they
    come again. `troubles`: why a table's rows can't be read, by table. `cascading`: tables with a foreign key by which
    their rows may have changed without being in the log.
    """

    kind: ClassVar[str] = "mysql"

    server: int
    position: Position
    gtid: str = ""
    epoch: int = 1
    batch: int = 0
    tables: dict[str, TableProgress] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    troubles: dict[str, str] = field(default_factory=dict)
    cascading: set[str] = field(default_factory=set)
    orders: dict[str, int] = field(default_factory=dict)

    @property
    def is_snapshot_done(self) -> bool:
        """Whether all rows have been read that were there when their tables were first seen. Tables that can't be read
        don't count."""
        return all(each.phase is Phase.DONE for name, each in self.tables.items() if name not in self.troubles)

    @property
    def kept(self) -> tuple[object, ...]:
        return *super().kept, self.dropped, self.cascading

    def copy(self) -> Self:
        return dataclasses.replace(
            self,
            tables=dict(self.tables),
            dropped=set(self.dropped),
            troubles=dict(self.troubles),
            cascading=set(self.cascading),
            orders=dict(self.orders),
        )

    def sent(self) -> dict[str, Any]:
        sets = {"dropped": sorted(self.dropped), "cascading": sorted(self.cascading)}
        return self.without_orders({**dataclasses.asdict(self), **sets})

    @classmethod
    def received(cls, sent: dict[str, Any]) -> Self:
        tables = {name: TableProgress.received(each) for name, each in sent.pop("tables").items()}
        position, dropped = Position(*sent.pop("position")), set(sent.pop("dropped"))
        cascading = set(sent.pop("cascading", ()))
        return cls(**sent, position=position, tables=tables, dropped=dropped, cascading=cascading)

"""The objects of a metastore that is left, as they are read, and what is to be said of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from lake.protocol.hive import ColumnStatistics, SQLAllTableConstraints, Table

DEFAULT_CATALOG = "hive"

MOVING_TO, MOVED_TO = "lake.moving.to", "lake.moved.to"
"""Parameters of a database at a metastore that it leaves, or has left. Their value says where clients find it."""


def without_marks(parameters: Mapping[str, str]) -> dict[str, str]:
    """A database's parameters without those: that it moves is no matter of the other metastore."""
    return {key: each for key, each in parameters.items() if key not in (MOVING_TO, MOVED_TO)}


class DatabaseKey(NamedTuple):
    """A database's name, in lower case."""

    catalog: str
    database: str

    def __str__(self) -> str:
        return self.database if self.catalog == DEFAULT_CATALOG else f"{self.catalog}.{self.database}"

    @property
    def on_the_wire(self) -> str:
        """As calls name it that have no field for a catalog."""
        return self.database if self.catalog == DEFAULT_CATALOG else f"@{self.catalog}#{self.database}"


def catalog_key(name: str) -> DatabaseKey:
    """A catalog, among databases: one without a name."""
    return DatabaseKey(name.lower(), "")


class TableKey(NamedTuple):
    """A table's name, in lower case."""

    catalog: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.of_database}.{self.table}"

    @property
    def of_database(self) -> DatabaseKey:
        return DatabaseKey(self.catalog, self.database)


@dataclass(frozen=True)
class TableParts:
    """A table, with what belongs to it beside partitions. `statistics`: of the table itself, one for each engine."""

    key: TableKey
    table: Table
    constraints: SQLAllTableConstraints
    statistics: Sequence[ColumnStatistics] = ()

    @property
    def columns(self) -> list[str]:
        """The names of its columns, without those of its partition keys."""
        return [(each.name or "").lower() for each in (self.table.sd and self.table.sd.cols) or ()]


@dataclass(frozen=True)
class Positions:
    """How far a metastore has come: its highest transaction, those that are open or aborted, its last notification.

    None: it doesn't tell.
    """

    transaction: int | None = None
    open: Sequence[int] = ()
    aborted: Sequence[int] = ()
    notification: int | None = None


@dataclass(frozen=True)
class WriteIds:
    """The write ids of a table: the highest, and those that readers must not see.

    `open`: whether some of these may still be committed.
    """

    highest: int
    invisible: Sequence[int] = ()
    open: bool = False


@dataclass(frozen=True)
class Remark:
    """Something to know of an object. `serious`: it isn't brought, or something of it is lost."""

    kind: str
    name: str
    text: str
    serious: bool = False

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Counts:
    """How many objects of each kind there are."""

    by_kind: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, count: int = 1) -> None:
        self.by_kind[kind] = self.by_kind.get(kind, 0) + count

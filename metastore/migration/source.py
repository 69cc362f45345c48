"""What a metastore is asked for, whichever way it is reached."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from lake.protocol.errors import UserError
from lake.protocol.hive import (
    Catalog,
    ColumnStatistics,
    Database,
    Function,
    HiveObjectPrivilege,
    NotificationEvent,
    Partition,
    Role,
    RolePrincipalGrant,
)
from metastore.migration.objects import DatabaseKey, Positions, Remark, TableKey, TableParts, WriteIds


class SourceFailed(UserError):
    """The other metastore doesn't answer, or answers what can't be understood."""


class TakenOver(UserError):
    """Somebody else follows the other metastore by now: nothing was changed."""


def error_text(error: Exception) -> str:
    """What a metastore answers, in a line: of an error in its database Hive tells the whole trace."""
    lines = str(getattr(error, "message", None) or error).splitlines()
    return lines[0] if lines else type(error).__name__


class Source(Protocol):
    """A metastore that is read. Several threads may use it.

    Every method raises SourceFailed where the metastore can't be reached, and Hive's exceptions.
    """

    def remarks(self) -> list[Remark]:
        """What this way of reading doesn't tell."""

    def engines(self) -> list[str]:
        """The engines whose statistics are told."""

    def catalogs(self) -> list[Catalog]: ...

    def databases(self, catalog: str) -> list[Database]: ...

    def database(self, key: DatabaseKey) -> Database | None:
        """None if there is none."""

    def functions(self, database: DatabaseKey) -> list[Function]: ...

    def tables(self, database: DatabaseKey) -> list[str]:
        """The names of a database's tables and views, in order."""

    def table(self, key: TableKey) -> TableParts | None:
        """None if it has been dropped meanwhile."""

    def bare_table(self, key: TableKey) -> TableParts | None:
        """As `table`, without constraints and statistics."""

    def partition_names(self, table: TableParts) -> list[str]:
        """In order; of uncommitted partitions, too."""

    def partitions(self, table: TableParts, names: Sequence[str]) -> list[Partition]:
        """Those of the named partitions that are there."""

    def partition_statistics(self, table: TableParts, names: Sequence[str]) -> list[ColumnStatistics]: ...

    def heard(self) -> AbstractContextManager[Callable[[], bytes | None]]:
        """A digest of all that the metastore answers to this thread meanwhile, once it has ended.

        Where it is the same again, so is what was made of the answers. None: the connection broke meanwhile.
        """

    def pass_over_partitions(self, table: TableParts, names: Sequence[str]) -> None:
        """Asks what `partitions` and then `partition_statistics` ask, for what is `heard`. Nothing is made of it."""

    def roles(self) -> list[Role]: ...

    def members(self, role: str) -> list[RolePrincipalGrant]: ...

    def global_grants(self) -> list[HiveObjectPrivilege]: ...

    def grants(self, database: DatabaseKey, tables: Sequence[str]) -> list[HiveObjectPrivilege]:
        """Those on a database, and on the named tables in it, their partitions and columns."""

    def positions(self) -> Positions: ...

    def last_event(self) -> int | None:
        """The number of the last entry of its notification log; 0: there is none; None: it doesn't tell."""

    def says_no_log(self) -> bool:
        """Whether a server says that it writes no notification log, also if there is one. False where nobody knows."""

    def events(self, after: int, limit: int) -> list[NotificationEvent]:
        """Entries of the notification log with higher numbers, in order, the first ones of them.

        Those of a log that is not kept, or that was emptied, aren't there.
        """

    def write_ids(self, key: TableKey, positions: Positions) -> WriteIds | None:
        """Of a table with transactions; None where there are none."""

    def timeline_position(self, table: TableParts) -> int:
        """Of a lake table of ours; 0 where there is no timeline, as of views."""

    def close(self) -> None: ...

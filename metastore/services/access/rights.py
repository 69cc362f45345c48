"""What decisions about access are about: privileges, actions, objects; and who decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from lake.protocol.privileges import ALL, Privilege
from metastore.services.access.caller import Caller
from metastore.store.engine.names import DatabaseName, TableName

ANONYMOUS = "anonymous"
"""How messages and the audit log call a caller whom nobody has proven."""


COVERING = ~(Privilege.CREATE | Privilege.SHOW_DATABASE)
"""The privileges that cover what an object contains: who may create tables doesn't see those of others for it."""


_WRITE = Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE


class Action(Enum):
    """What a call does to an object. The value: the name in refusals, and the privileges of which one is enough.

    SEE: to know that the object is there, and what it is. LIST: its partitions. WRITE: its data, in whatever way.
    REMOVE_ROWS: to drop or truncate partitions. RECORD: to write a timeline's instants. GRANT: to give rights to
    others, which takes the right itself with its grant option. ADMIN: nobody but administrators.
    """

    SEE = "SELECT", ALL
    LIST = "SELECT", Privilege.SELECT | _WRITE | Privilege.ALTER | Privilege.DROP | Privilege.COMMIT
    SELECT = "SELECT", Privilege.SELECT
    INSERT = "INSERT", Privilege.INSERT
    UPDATE = "UPDATE", Privilege.UPDATE
    DELETE = "DELETE", Privilege.DELETE
    WRITE = "INSERT", _WRITE | Privilege.ALTER
    REMOVE_ROWS = "DELETE", Privilege.DELETE | Privilege.DROP
    CREATE = "CREATE", Privilege.CREATE
    ALTER = "ALTER", Privilege.ALTER
    DROP = "DROP", Privilege.DROP
    INDEX = "INDEX", Privilege.INDEX | Privilege.ALTER
    LOCK = "LOCK", Privilege.LOCK | _WRITE | Privilege.ALTER | Privilege.DROP
    LOCATION = "LOCATION", Privilege.LOCATION
    READ_UNCOMMITTED = "READ_UNCOMMITTED", Privilege.READ_UNCOMMITTED | Privilege.COMMIT | _WRITE
    COMMIT = "COMMIT", Privilege.COMMIT
    RECORD = "TIMELINE", Privilege.TIMELINE | _WRITE
    TABLE_SERVICE = "TABLE_SERVICE", Privilege.TABLE_SERVICE | Privilege.TIMELINE | Privilege.INSERT
    ROLLBACK = "ROLLBACK", Privilege.ROLLBACK
    CLEAN = "CLEAN", Privilege.CLEAN
    SUBSCRIBE = "SUBSCRIBE", Privilege.SUBSCRIBE | Privilege.SELECT
    GROUPS = "SUBSCRIBE", Privilege.SUBSCRIBE
    TAKE_PART = "ANY", ALL
    GRANT = "GRANT", Privilege(0)
    ADMIN = "ADMIN", Privilege(0)

    __hash__ = object.__hash__  # a decision about a kept reply looks objects up by it: the one of `enum` is slower

    def __init__(self, name: str, allowed_by: Privilege) -> None:
        self.privilege = name
        self.allowed_by = allowed_by
        self.mask = int(allowed_by)  # operations of flags take ten times as long as those of numbers


class Kind(Enum):
    """What an object is. ROLE has its name as `database`."""

    EVERYTHING = "everything"
    CATALOG = "catalog"
    DATABASE = "database"
    TABLE = "table"
    ROLE = "role"

    __hash__ = object.__hash__  # as of Action


class Securable(NamedTuple):
    """An object about which is decided: `database.table` in a catalog, or less. Names are in the stored form.

    `partition`: the values of a partition, where only that is meant; `column`: a column. `granting`: for the action
    GRANT, the privileges that are given to others, with commas between. `place`: for the action LOCATION, the place
    that is named; where permissions of directories decide, a directory of one of the table's partitions.
    """

    kind: Kind
    catalog: str = ""
    database: str = ""
    table: str = ""
    partition: tuple[str, ...] | None = None
    column: str | None = None
    granting: str = ""
    place: str = ""

    @property
    def of_database(self) -> DatabaseName:
        return DatabaseName(self.catalog, self.database)

    @property
    def of_table(self) -> TableName:
        return TableName(self.catalog, self.database, self.table)

    def __str__(self) -> str:
        """The object as refusals name it: `database.table`, with the catalog where it is not Hive's own."""
        if self.kind is Kind.EVERYTHING:
            return "the metastore"
        if self.kind is Kind.CATALOG:
            return f"catalog {self.catalog}"
        if self.kind is Kind.ROLE:
            return f"role {self.database}"
        parts = [self.catalog] if self.catalog != "hive" else []
        return ".".join(part for part in (*parts, self.database, self.table, self.column or "") if part)


EVERYTHING = Securable(Kind.EVERYTHING)


def database(name: DatabaseName) -> Securable:
    return Securable(Kind.DATABASE, name.catalog, name.database)


def table(name: TableName) -> Securable:
    return Securable(Kind.TABLE, name.catalog, name.database, name.table)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action is allowed, and why. `reason` is for the audit log."""

    allowed: bool
    reason: str


class Authorizer(Protocol):
    """Decides who may do what. Called by many threads at once.

    An exception, or no answer in time, is a refusal.
    """

    def decide(self, caller: Caller, action: Action, object: Securable) -> Decision:
        """Whether a caller may do something with an object, which needn't exist."""

    def decide_all(self, caller: Caller, wanted: Sequence[tuple[Action, Securable]]) -> list[Decision]:
        """As `decide`, for several at one time, in their order."""

    def visible(self, caller: Caller, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """For each of the objects whether a caller may see it, or do `action` with it."""

    def roles(self, caller: Caller) -> frozenset[str]:
        """The roles of a caller that the authorizer knows of."""

    def trouble(self) -> str | None:
        """Why it doesn't decide by what the operator has written last; None if it does. Asked once a second."""

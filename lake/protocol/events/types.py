"""The value types of events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Self


class EventType(StrEnum):
    """What happened. A change of many partitions of one table is one event.

    BEGIN_EPOCH is about the log itself: a backup was restored (see `epochs`). Filters by table always accept it.
    """

    CREATE_CATALOG = "CREATE_CATALOG"
    ALTER_CATALOG = "ALTER_CATALOG"
    DROP_CATALOG = "DROP_CATALOG"
    CREATE_DATABASE = "CREATE_DATABASE"
    ALTER_DATABASE = "ALTER_DATABASE"
    DROP_DATABASE = "DROP_DATABASE"
    CREATE_TABLE = "CREATE_TABLE"
    ALTER_TABLE = "ALTER_TABLE"
    TRUNCATE_TABLE = "TRUNCATE_TABLE"
    DROP_TABLE = "DROP_TABLE"
    ADD_PARTITIONS = "ADD_PARTITIONS"
    ALTER_PARTITIONS = "ALTER_PARTITIONS"
    TRUNCATE_PARTITIONS = "TRUNCATE_PARTITIONS"
    DROP_PARTITIONS = "DROP_PARTITIONS"
    COMMIT_PARTITIONS = "COMMIT_PARTITIONS"
    REOPEN_PARTITIONS = "REOPEN_PARTITIONS"
    INSERT = "INSERT"
    COMPLETE_INSTANT = "COMPLETE_INSTANT"
    CREATE_FUNCTION = "CREATE_FUNCTION"
    ALTER_FUNCTION = "ALTER_FUNCTION"
    DROP_FUNCTION = "DROP_FUNCTION"
    CREATE_DATA_CONNECTOR = "CREATE_DATA_CONNECTOR"
    ALTER_DATA_CONNECTOR = "ALTER_DATA_CONNECTOR"
    DROP_DATA_CONNECTOR = "DROP_DATA_CONNECTOR"
    ADD_CONSTRAINTS = "ADD_CONSTRAINTS"
    DROP_CONSTRAINT = "DROP_CONSTRAINT"
    UPDATE_STATISTICS = "UPDATE_STATISTICS"
    DELETE_STATISTICS = "DELETE_STATISTICS"
    BEGIN_EPOCH = "BEGIN_EPOCH"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """A type that a later version has added. Its events are passed on; no filter knows its name."""
        if not isinstance(value, str) or not value:
            return None
        made = str.__new__(cls, value)
        made._name_ = made._value_ = value
        return made


class Origin(NamedTuple):
    """Who made a change: the user and the client's address. Both are None for a change by the server itself."""

    user: str | None = None
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before its commit. The fields are those of `Event`."""

    type: EventType
    time: int
    origin: Origin
    catalog: str | None
    database: str | None
    table: str | None
    notifications: int
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A committed change.

    `number`: the place in the order of commits, from 1, without gaps. `time`: milliseconds since 1970, by the clock of
    the server that made the change; it may decrease from one event to the next. `payload`: what changed, see
    docs/events.md. `notifications`: how many entries it makes in Hive's notification log; `first_notification`: the
    number of the first of them. Subscribers don't receive these two. `mark`: a random id that differs between copies of
    the log; None if it has none, or if it was not sent along.
    """

    number: int
    type: EventType
    time: int
    origin: Origin
    catalog: str | None
    database: str | None
    table: str | None
    payload: Mapping[str, Any]
    notifications: int = 0
    first_notification: int = 0
    mark: str | None = field(default=None, compare=False)

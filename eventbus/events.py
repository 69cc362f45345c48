"""What an event is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class EventType(StrEnum):
    """What happened. A change of many partitions of one table is one event."""

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


class Origin(NamedTuple):
    """Who made a change: the user of a connection. Without them it was the server itself."""

    user: str | None = None
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A change that is about to be committed; the fields are those of `Event`."""

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

    `number`: its place in the order of commits, without gaps, from 1. `time`: milliseconds since 1970, by the clock of
    the server that made the change; it may go back from one event to the next. `payload`: what changed, see
    docs/events.md. `first_notification`: the number of the first of the `notifications` that it makes in Hive's log;
    subscribers are not told.
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

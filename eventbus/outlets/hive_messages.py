"""Renders events as Hive's notifications, at the time they are read.

The messages have the format json-0.2 of Hive's JSONMessageFactory: JSON, in which tables, partitions and so on are
strings in Thrift's JSON protocol. The fields are the union of those of Hive 2.3 and Hive 4; clients of either ignore
unknown ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.clock import as_hive_seconds
from lake.protocol.codec.json_protocol import to_json
from lake.protocol.events.types import Event, EventType
from lake.protocol.hive import (
    Database,
    Function,
    NotificationEvent,
    Partition,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
)
from lake.protocol.struct import Struct

FORMAT = "json-0.2"

MAX_BYTES = 16 << 20
"""Size limit of the messages in one reply. A single bigger message is returned all the same."""

HIDDEN = "HIDDEN"
"""The type of a notification of which only number and time are shown."""

_CONSTRAINTS: dict[str, tuple[str, str, type[Struct]]] = {
    "primaryKeys": ("ADD_PRIMARYKEY", "primaryKeyListJson", SQLPrimaryKey),
    "foreignKeys": ("ADD_FOREIGNKEY", "foreignKeyListJson", SQLForeignKey),
    "uniqueConstraints": ("ADD_UNIQUECONSTRAINT", "uniqueConstraintListJson", SQLUniqueConstraint),
    "notNullConstraints": ("ADD_NOTNULLCONSTRAINT", "notNullConstraintListJson", SQLNotNullConstraint),
    "defaultConstraints": ("ADD_DEFAULTCONSTRAINT", "defaultConstraintListJson", SQLDefaultConstraint),
    "checkConstraints": ("ADD_CHECKCONSTRAINT", "checkConstraintListJson", SQLCheckConstraint),
}
"""By the kind of constraint: Hive's event type, the message's field, the Thrift type. In Hive's order of messages."""

HIVE_TYPES: Mapping[EventType, tuple[str, ...]] = {
    EventType.CREATE_DATABASE: ("CREATE_DATABASE",),
    EventType.ALTER_DATABASE: ("ALTER_DATABASE",),
    EventType.DROP_DATABASE: ("DROP_DATABASE",),
    EventType.CREATE_TABLE: ("CREATE_TABLE",),
    EventType.ALTER_TABLE: ("ALTER_TABLE",),
    EventType.TRUNCATE_TABLE: ("ALTER_TABLE",),
    EventType.DROP_TABLE: ("DROP_TABLE",),
    EventType.ADD_PARTITIONS: ("ADD_PARTITION",),
    EventType.COMMIT_PARTITIONS: ("ADD_PARTITION",),
    EventType.ALTER_PARTITIONS: ("ALTER_PARTITION",),
    EventType.TRUNCATE_PARTITIONS: ("ALTER_PARTITION",),
    EventType.DROP_PARTITIONS: ("DROP_PARTITION",),
    EventType.REOPEN_PARTITIONS: ("DROP_PARTITION",),
    EventType.INSERT: ("INSERT",),
    EventType.CREATE_FUNCTION: ("CREATE_FUNCTION",),
    EventType.DROP_FUNCTION: ("DROP_FUNCTION",),
    EventType.ADD_CONSTRAINTS: tuple(type for type, _, _ in _CONSTRAINTS.values()),
    EventType.DROP_CONSTRAINT: ("DROP_CONSTRAINT",),
}
"""Hive's event types for the notifications of our events. Events without notifications are not in it."""


def without_content(number: int | None, time: int | None, format: str | None) -> NotificationEvent:
    """What is left of a notification that the reader may not see: Hive's clients stop at a gap in the numbers."""
    return NotificationEvent(eventId=number, eventTime=time, eventType=HIDDEN, message="{}", messageFormat=format)


def check_kept(after: int, last: int, trimmed: int, *, filtered: bool) -> None:
    """Raises TApplicationException if notifications after a number were trimmed and the client could not see the gap.

    `last`, `trimmed`: the highest number, and the highest that is no longer kept. `filtered`: whether the client left
    some out itself.
    """
    if after < trimmed and (filtered or last == trimmed):
        raise TApplicationException(
            TApplicationException.INTERNAL_ERROR,
            f"the notifications after {after} are no longer kept, the oldest is {trimmed + 1}."
            f" Read the current state of the tables, then go on after {trimmed}",
        )


def notifications(event: Event, after: int = 0) -> Iterator[NotificationEvent]:
    """Yields an event's notifications with numbers greater than `after`. Each is rendered when it is requested."""
    rendered = _Event(event)
    for place in range(max(0, after + 1 - event.first_notification), event.notifications):
        type, message = rendered.message(place)
        yield NotificationEvent(
            eventId=event.first_notification + place,
            eventTime=as_hive_seconds(event.time),
            eventType=type,
            catName=event.catalog,
            dbName=event.database,
            tableName=event.table,
            message=json.dumps(message, separators=(",", ":"), ensure_ascii=False),
            messageFormat=FORMAT,
        )


class _Event:
    """Renders an event's messages. The parts that they share are rendered once."""

    def __init__(self, event: Event) -> None:
        self._event = event
        self._payload = event.payload

    def message(self, place: int) -> tuple[str, dict[str, Any]]:
        """Hive's event type and message for the event's notification with index `place`, from 0."""
        if self._event.type is EventType.ADD_CONSTRAINTS:
            payload = self._payload["constraints"]
            kind = [each for each in _CONSTRAINTS if each in payload][place]
            type, field, cls = _CONSTRAINTS[kind]
            return type, self._bare | {field: [to_json(cls, each) for each in payload[kind]]}
        if self._event.type not in HIVE_TYPES:  # of a later version; its notification's number must not be missing
            return self._event.type.value, self._bare
        [type] = HIVE_TYPES[self._event.type]
        return type, _FORMS[type](self, place)

    # --- what several forms share -----------------------------------------------------------------------------

    @cached_property
    def _bare(self) -> dict[str, Any]:
        # Hive has the server's URIs and principal here, which are empty where it knows none.
        return {"server": "", "servicePrincipal": "", "timestamp": self._event.time // 1000}

    @cached_property
    def _of_database(self) -> dict[str, Any]:
        return self._bare | {"db": self._event.database}

    @cached_property
    def _table(self) -> dict[str, Any]:
        """The table that the message is about; if it was changed itself, in its new state."""
        payload = self._payload
        found: dict[str, Any] = payload.get("table") or payload.get("after") or payload["before"]
        return found

    @cached_property
    def _of_table(self) -> dict[str, Any]:
        table = self._table
        return self._of_database | {"table": table.get("tableName"), "tableType": table.get("tableType")}

    @cached_property
    def _table_json(self) -> str:
        return to_json(Table, self._table)

    @cached_property
    def _partitions(self) -> list[dict[str, Any]]:
        """The partitions that Hive's readers see: ready ones, or those that have just been reopened."""
        all_of_them = self._event.type is EventType.REOPEN_PARTITIONS
        return [each for each in self._payload["partitions"] if each["ready"] or all_of_them]

    def _partition(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """A partition in plain form with its table's names and a complete storage descriptor."""
        names: dict[str, Any] = {
            name: self._table[name] for name in ("dbName", "tableName", "catName") if name in self._table
        }
        sd = plain.get("sd")
        if sd is None or "descriptor" not in sd:
            return {**plain, **names}
        whole = dict(self._payload["descriptors"][sd["descriptor"]])
        if sd.get("location") is not None:
            whole["location"] = sd["location"]
        return {**plain, **names, "sd": whole}

    def _key_values(self, plain: Mapping[str, Any]) -> dict[str, str]:
        keys = [key["name"] for key in self._table.get("partitionKeys") or ()]
        return dict(zip(keys, plain.get("values") or (), strict=False))

    # --- the forms --------------------------------------------------------------------------------------------

    def create_database(self, _: int) -> dict[str, Any]:
        return self._of_database | {"dbJson": to_json(Database, self._payload["after"])}

    def alter_database(self, _: int) -> dict[str, Any]:
        before, after = (to_json(Database, self._payload[each]) for each in ("before", "after"))
        return self._of_database | {"dbObjBeforeJson": before, "dbObjAfterJson": after}

    def drop_database(self, _: int) -> dict[str, Any]:
        # Hive 4 reads the database out of it, and so does Impala; Hive 2.3 has its name alone.
        return self._of_database | {"dbJson": to_json(Database, self._payload["before"])}

    def create_table(self, _: int) -> dict[str, Any]:
        return self._of_table | {"tableObjJson": self._table_json, "files": []}

    def drop_table(self, _: int) -> dict[str, Any]:
        return self._of_table | {"tableObjJson": self._table_json}

    def alter_table(self, _: int) -> dict[str, Any]:
        before, after = self._payload["before"], self._payload["after"]
        return self._bare | {
            # The names are the old ones; the notification itself has the new ones.
            "db": before.get("dbName"),
            "table": before.get("tableName"),
            "tableType": before.get("tableType"),
            "tableObjBeforeJson": to_json(Table, before),
            "tableObjAfterJson": to_json(Table, after),
            "isTruncateOp": _text(self._event.type is EventType.TRUNCATE_TABLE),
            "writeId": after.get("writeId", -1),
        }

    def add_partition(self, _: int) -> dict[str, Any]:
        payload = [each["after"] for each in self._partitions]
        return self._of_table | {
            "tableObjJson": self._table_json,
            "partitions": [self._key_values(each) for each in payload],
            "partitionListJson": [to_json(Partition, self._partition(each)) for each in payload],
            "partitionFiles": [{"partitionName": each["name"], "files": []} for each in self._partitions],
        }

    def drop_partition(self, _: int) -> dict[str, Any]:
        # One that was opened again without an alteration has no `before`; one that an alteration renamed has both.
        payload = [self._key_values(each.get("before") or each["after"]) for each in self._partitions]
        return self._of_table | {"tableObjJson": self._table_json, "partitions": payload}

    def alter_partition(self, place: int) -> dict[str, Any]:
        payload = self._partitions[place]
        before, after = payload["before"], payload["after"]
        return self._of_table | {
            "tableObjJson": self._table_json,
            "keyValues": self._key_values(before),
            "partitionObjBeforeJson": to_json(Partition, self._partition(before)),
            "partitionObjAfterJson": to_json(Partition, self._partition(after)),
            "isTruncateOp": _text(self._event.type is EventType.TRUNCATE_PARTITIONS),
            "writeId": after.get("writeId", -1),
        }

    def insert(self, _: int) -> dict[str, Any]:
        partition = self._payload.get("partition")
        message = self._of_table | {
            "tableObjJson": self._table_json,
            "replace": _text(self._payload["replace"]),
            "files": self._payload["files"],
            # Hive 2.3's form; later ones have the whole partition instead.
            "partKeyVals": self._key_values(partition or {}),
        }
        if partition is not None:
            message["ptnObjJson"] = to_json(Partition, self._partition(partition))
        return message

    def create_function(self, _: int) -> dict[str, Any]:
        return self._of_database | {"functionObjJson": to_json(Function, self._payload["after"])}

    def drop_function(self, _: int) -> dict[str, Any]:
        return self._of_database | {"functionName": self._payload["before"]["functionName"]}

    def drop_constraint(self, _: int) -> dict[str, Any]:
        return self._bare | {
            "dbName": self._event.database,
            "tableName": self._event.table,
            "constraintName": self._payload["constraint"],
        }


def _text(value: bool) -> str:
    """A boolean as Hive's messages have it: a string."""
    return "true" if value else "false"


_FORMS: Mapping[str, Callable[[_Event, int], dict[str, Any]]] = {
    "CREATE_DATABASE": _Event.create_database,
    "ALTER_DATABASE": _Event.alter_database,
    "DROP_DATABASE": _Event.drop_database,
    "CREATE_TABLE": _Event.create_table,
    "ALTER_TABLE": _Event.alter_table,
    "DROP_TABLE": _Event.drop_table,
    "ADD_PARTITION": _Event.add_partition,
    "ALTER_PARTITION": _Event.alter_partition,
    "DROP_PARTITION": _Event.drop_partition,
    "INSERT": _Event.insert,
    "CREATE_FUNCTION": _Event.create_function,
    "DROP_FUNCTION": _Event.drop_function,
    "DROP_CONSTRAINT": _Event.drop_constraint,
}

"""The names in the messages of Hive's notification log.

A message is JSON. In it databases and ids of transactions stand in fields of certain names, and whole tables,
partitions and so on as texts in Thrift's JSON protocol. Hive's later versions write the same JSON compressed.
"""

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

from eventbus.outlets.hive_messages import HIDDEN
from lake.protocol.codec import binary, json_transcoding
from lake.protocol.hive import (
    ColumnStatistics,
    Database,
    Function,
    Index,
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
from metastore.federation import translation
from metastore.federation.fields import Hidden
from metastore.federation.mapping import Mapping
from metastore.federation.names import normal

COMPRESSED = "gzip(json-2.0)"
PLAIN = frozenset({None, "", "json-0.2", "json-2.0"})

OF_TRANSACTIONS = frozenset({"OPEN_TXN", "COMMIT_TXN", "ABORT_TXN"})
"""Types of events that name no database, and yet are about what the front shows."""

OBJECTS: dict[str, type[Struct]] = {
    "dbJson": Database,
    "dbObjBeforeJson": Database,
    "dbObjAfterJson": Database,
    "tableObjJson": Table,
    "tableObjBeforeJson": Table,
    "tableObjAfterJson": Table,
    "tableObjs": Table,
    "ptnObjJson": Partition,
    "partitionObjJson": Partition,
    "partitionObjBeforeJson": Partition,
    "partitionObjAfterJson": Partition,
    "partitionListJson": Partition,
    "partitionObjs": Partition,
    "functionObjJson": Function,
    "colStatsJson": ColumnStatistics,
    "indexObjJson": Index,
    "beforeIndexObjJson": Index,
    "afterIndexObjJson": Index,
    "primaryKeyListJson": SQLPrimaryKey,
    "foreignKeyListJson": SQLForeignKey,
    "uniqueConstraintListJson": SQLUniqueConstraint,
    "notNullConstraintListJson": SQLNotNullConstraint,
    "defaultConstraintListJson": SQLDefaultConstraint,
    "checkConstraintListJson": SQLCheckConstraint,
}
"""Fields whose texts, or lists of texts, are structs in Thrift's JSON protocol."""

DATABASES = frozenset({"db", "dbName", "dbname", "database", "databases", "dbsUpdated"})
"""Fields that name a database, or several."""

TRANSACTIONS = frozenset({"txnid", "txnIds", "txnIdList", "fromTxnId", "toTxnId"})

OTHERS = frozenset({
    "server", "servicePrincipal", "timestamp", "table", "tableName", "tableType", "tables", "files", "partitions",
    "partitionFiles", "keyValues", "partKeyVals", "partVals", "partValues", "partName", "partition", "isTruncateOp",
    "replace", "functionName", "constraintName", "colName", "parameters", "type", "refreshEvent", "indexName",
    "origTableName", "indexTableName", "writeId", "writeIds", "writeIdList", "compactionId",
})  # fmt: skip
"""Fields that stay as they are."""

_PARALLEL = ("writeIds", "databases", "tables", "partitions", "tableObjs", "partitionObjs", "files")
"""Of a committed transaction: the n-th items are about one write."""


class NotUnderstood(Exception):
    """A message in which names can't be found for certain."""


def to_front(event: NotificationEvent, mapping: Mapping, backend: str) -> NotificationEvent:
    """An event of a backend's log with the front's names in its fields and its message.

    A table that an event renames from, or to, a database that has no name in the front is dropped, or made, for the
    front's clients. Raises Hidden for an event that is about nothing in the front, NotUnderstood.
    """
    if event.eventType == HIDDEN:
        return event
    if not event.dbName and event.eventType not in OF_TRANSACTIONS:
        raise Hidden(f"{event.eventType} names no database")
    as_it_is = mapping.is_identity(backend) and not mapping.number(backend)
    shown = event.replace()
    if event.eventType == "ALTER_TABLE" and event.message:
        message = decoded(event)
        if not (
            as_it_is and _is_shown(event.dbName, mapping, backend) and _is_shown(message.get("db"), mapping, backend)
        ):
            return _altered(event, message, mapping, backend)
        translation.to_front(shown, mapping, backend)
        return shown
    translation.to_front(shown, mapping, backend)
    if as_it_is and event.eventType not in _OF_SEVERAL:
        return shown
    message = decoded(event)
    if as_it_is and event.eventType != "ADD_FOREIGNKEY":
        kept = _without_hidden(message, mapping, backend)
        return shown if kept == message else shown.replace(message=_encoded(event, kept))
    return shown.replace(message=_encoded(event, _translated(message, mapping, backend)))


_OF_SEVERAL = frozenset({"ADD_FOREIGNKEY", "COMMIT_TXN", "ABORT_TXN"})
"""Types of events that may name several databases, beside ALTER_TABLE."""


_OF_ONE = frozenset({
    "CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE", "CREATE_TABLE", "DROP_TABLE", "ADD_PARTITION",
    "ALTER_PARTITION", "ALTER_PARTITIONS", "DROP_PARTITION", "INSERT", "LOAD_PARTITION_DONE", "CREATE_FUNCTION",
    "DROP_FUNCTION", "CREATE_INDEX", "ALTER_INDEX", "DROP_INDEX", "ADD_PRIMARYKEY", "ADD_UNIQUECONSTRAINT",
    "ADD_NOTNULLCONSTRAINT", "ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT", "DROP_CONSTRAINT", "ALLOC_WRITE_ID",
    "ACID_WRITE", "BATCH_ACID_WRITE", "UPDATE_TBL_COL_STAT", "UPDATE_TABLE_COLUMN_STAT", "DELETE_TBL_COL_STAT",
    "DELETE_TABLE_COLUMN_STAT", "UPDATE_PART_COL_STAT", "UPDATE_PARTITION_COLUMN_STAT",
    "UPDATE_PARTITION_COLUMN_STAT_BATCH", "DELETE_PART_COL_STAT", "DELETE_PARTITION_COLUMN_STAT",
    "DELETE_PARTITION_COLUMN_STAT_BATCH", "RELOAD", "COMMIT_COMPACTION", "MARK_PARTITION",
})  # fmt: skip
"""Types of events that are about the database or the table of their fields, and nothing else."""


def databases(event: NotificationEvent) -> tuple[str | None, str | None]:
    """The databases that an event of a backend is about, by their names there: that of its field `dbName`, and if it
    moves a table out of another one, that."""
    own = normal(event.dbName) if event.dbName else None
    if event.eventType != "ALTER_TABLE":
        return own, None
    try:
        before = decoded(event).get("db")
    except NotUnderstood:
        return own, None
    other = normal(before) if isinstance(before, str) else None
    return own, other if other != own else None


def tables(event: NotificationEvent) -> set[tuple[str, str]]:
    """The tables that an event names in its message beside its own: a rename and a foreign key name two.

    As database and name. Raises NotUnderstood, also for a type of which it isn't known what it names.
    """
    if event.eventType == "ALTER_TABLE":
        message = decoded(event)
        found = [_object(message, each) for each in ("tableObjBeforeJson", "tableObjAfterJson")]
        return {(each.dbName or "", each.tableName or "") for each in found}
    if event.eventType == "ADD_FOREIGNKEY":
        keys = [struct_of("foreignKeyListJson", each) for each in decoded(event).get("foreignKeyListJson") or ()]
        return {
            (getattr(key, f"{side}table_db") or "", getattr(key, f"{side}table_name") or "")
            for key in keys
            for side in ("pk", "fk")
        }
    if event.eventType not in _OF_ONE:
        raise NotUnderstood(f"what else an event {event.eventType} names is not known")
    return set()


def _altered(event: NotificationEvent, message: dict[str, Any], mapping: Mapping, backend: str) -> NotificationEvent:
    """An ALTER_TABLE, either of whose two databases may have no name in the front."""
    before, after = (_object(message, field) for field in ("tableObjBeforeJson", "tableObjAfterJson"))
    was_shown, is_shown = (_is_shown(each.dbName, mapping, backend) for each in (before, after))
    if was_shown and is_shown:
        shown = event.replace()
        translation.to_front(shown, mapping, backend)
        return shown.replace(message=_encoded(event, _translated(message, mapping, backend)))
    if not was_shown and not is_shown:
        raise Hidden(f"database {after.dbName} of backend {backend} has no name here")
    table = after if is_shown else before
    translation.to_front(table, mapping, backend)
    made = {key: message.get(key) for key in ("server", "servicePrincipal", "timestamp")}
    made |= {"db": table.dbName, "table": table.tableName, "tableType": table.tableType, "tableObjJson": _text(table)}
    if is_shown:
        made["files"] = []
    return event.replace(
        eventType="CREATE_TABLE" if is_shown else "DROP_TABLE",
        catName=table.catName if event.catName is not None else None,
        dbName=table.dbName,
        tableName=table.tableName,
        message=_encoded(event, made),
    )


def _object(message: dict[str, Any], field: str) -> Table:
    text = message.get(field)
    if not isinstance(text, str):
        raise NotUnderstood(f"it has no {field}")
    table: Table = struct_of(field, text)
    return table


def struct_of(field: str, text: str) -> Any:
    """The struct in a text of a field of `OBJECTS`. Raises NotUnderstood."""
    try:
        return binary.decode_preserving(OBJECTS[field], json_transcoding.to_binary(text))
    except (ValueError, TypeError, EOFError) as error:
        raise NotUnderstood(f"{field}: {error}") from None


def _text(value: Struct) -> str:
    return json_transcoding.from_binary(binary.encode(value))


def decoded(event: NotificationEvent) -> dict[str, Any]:
    """The message of an event. Raises NotUnderstood."""
    text: str | bytes = event.message or ""
    if event.messageFormat == COMPRESSED:
        try:
            text = gzip.decompress(base64.b64decode(text))
        except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as error:
            raise NotUnderstood(f"it can't be decompressed: {error}") from None
    elif event.messageFormat not in PLAIN:
        raise NotUnderstood(f"its format {event.messageFormat} is not known")
    try:
        message = json.loads(text)
    except ValueError as error:
        raise NotUnderstood(f"it is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise NotUnderstood("it is no JSON object")
    return message


def _encoded(event: NotificationEvent, message: dict[str, Any]) -> str:
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    if event.messageFormat != COMPRESSED:
        return text
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _translated(message: dict[str, Any], mapping: Mapping, backend: str) -> dict[str, Any]:
    """A message with the front's names. Raises Hidden if one object that it is about has no name there."""
    message = _without_hidden(message, mapping, backend)
    made = {}
    for field, value in message.items():
        if field in DATABASES:
            value = _each(value, lambda name: translation.name_to_front(name, mapping, backend))
        elif field in TRANSACTIONS:
            value = _each(value, lambda number: translation.identifier_to_front(number, mapping, backend))
        elif field in OBJECTS:
            value = _objects(field, value, mapping, backend)
        elif field not in OTHERS and not isinstance(value, int | float | None):
            raise NotUnderstood(f"it has a field {field}, which is not known")
        made[field] = value
    return made


def _without_hidden(message: dict[str, Any], mapping: Mapping, backend: str) -> dict[str, Any]:
    """A message about several databases without what it says of those that have no name in the front."""
    names = message.get("databases")
    if isinstance(message.get("dbsUpdated"), list):
        kept = [name for name in message["dbsUpdated"] if _is_shown(name, mapping, backend)]
        message = message | {"dbsUpdated": kept}
    if not isinstance(names, list):
        return message
    shown = [_is_shown(name, mapping, backend) for name in names]
    if all(shown):
        return message
    lists = {field: message[field] for field in _PARALLEL if message.get(field)}
    if any(len(items) != len(names) for items in lists.values()):
        raise NotUnderstood("it isn't certain which of its parts are about which database")
    return message | {
        field: [item for item, keep in zip(items, shown, strict=True) if keep] for field, items in lists.items()
    }


def _is_shown(name: Any, mapping: Mapping, backend: str) -> bool:
    if not isinstance(name, str):
        raise NotUnderstood("a database has no name")
    try:
        translation.name_to_front(name, mapping, backend)
    except Hidden:
        return False
    return True


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [change(item) if item else item for item in value]
    return change(value) if value else value


def _objects(field: str, value: Any, mapping: Mapping, backend: str) -> Any:
    """Texts with structs in them. Of a list, those that have no name in the front are left out, unless none is left."""

    def shown(text: str) -> str:
        found = struct_of(field, text)
        translation.to_front(found, mapping, backend)
        return _text(found)

    if not isinstance(value, list):
        return shown(value) if value else value
    made, hidden = [], None
    for text in value:
        try:
            made.append(shown(text) if text else text)
        except Hidden as reason:
            hidden = reason
    if hidden is not None and not made:
        raise hidden
    return made

"""A sequence of calls that makes most of Hive's notifications, and Hive's own classes to read them with."""

import json
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    DropPartitionsExpr,
    DropPartitionsRequest,
    Function,
    FunctionType,
    NotificationEvent,
    NotificationEventRequest,
    PrincipalType,
    RequestPartsSpec,
)
from tests.hive_client.conftest import HiveClient
from tests.support import builders
from tests.support.expressions import serialised

API = "org.apache.hadoop.hive.metastore.api."


def tell(client: ThriftClient, java: HiveClient, db: str) -> None:
    """Makes the changes, in database `db`, on any Hive metastore of version 2.3 or later."""
    client.create_database(builders.database(db, description="a story"))
    client.create_table(builders.table(db, "plain"))
    for name in ("t", "other"):
        client.create_table(builders.table(db, name, keys=("ds", "hr:int"), parameters={"a": "b"}))
    client.add_partition(builders.partition(db, "t", "a", "1"))
    client.add_partitions([builders.partition(db, "t", "b", str(hour), parameters={"k": "v"}) for hour in range(3)])
    client.append_partition(db, "t", ["c d/é", "1"])
    client.alter_partition(db, "t", client.get_partition(db, "t", ["a", "1"]).replace(parameters={"x": "1"}))
    two = [client.get_partition(db, "t", ["b", hour]).replace(parameters={"y": "2"}) for hour in ("0", "1")]
    client.alter_partitions(db, "t", two)
    client.rename_partition(db, "t", ["a", "1"], client.get_partition(db, "t", ["a", "1"]).replace(values=["z", "9"]))
    client.exchange_partition({"ds": "b", "hr": "0"}, db, "t", db, "other")
    insert(java, db, "t", ["b", "1"], ["file:/f1", "file:/f2"], ["c1", "c2"])
    insert(java, db, "plain", None, ["file:/f3"], ["c3"])
    client.drop_partition(db, "t", ["z", "9"], True)
    wanted = RequestPartsSpec(exprs=[DropPartitionsExpr(expr=serialised("ds is not null"))])
    client.drop_partitions_req(DropPartitionsRequest(db, "t", wanted, deleteData=True))
    value = client.get_table(db, "t")
    client.alter_table(db, "t", value.replace(parameters={**value.parameters, "changed": "1"}))
    client.alter_table(db, "other", client.get_table(db, "other").replace(tableName="renamed"))
    for name in ("f1", "f2"):
        client.create_function(function(db, name))
    client.drop_function(db, "f1")
    client.drop_table(db, "plain", True)
    client.drop_database(db, True, True)


def function(db: str, name: str) -> Function:
    return Function(name, db, "org.example.F", "me", PrincipalType.USER, 0, FunctionType.JAVA, [])


def insert(
    java: HiveClient, db: str, table: str, values: list[str] | None, files: list[str], checksums: list[str]
) -> None:
    """Reports an insert as Hive 2.3's client does."""
    api = java.jvm.org.apache.hadoop.hive.metastore.api
    inserted = api.InsertEventRequestData(java.to_java(files))
    inserted.setFilesAddedChecksum(java.to_java(checksums))
    request = api.FireEventRequest(True, api.FireEventRequestData.insertData(inserted))
    request.setDbName(db)
    request.setTableName(table)
    if values is not None:
        request.setPartitionVals(java.to_java(values))
    java.fireListenerEvent(request)


def notifications_after(client: ThriftClient, after: int) -> list[NotificationEvent]:
    found: list[NotificationEvent] = client.get_next_notification(NotificationEventRequest(after, 0)).events
    return found


class Reader:
    """Hive 2.3's deserializers."""

    def __init__(self, java: HiveClient) -> None:
        self._java = java
        self._json = java.jvm.org.apache.hadoop.hive.metastore.messaging.json

    def message(self, event: NotificationEvent) -> Any:
        """Hive's object for a message; its getters give Python values if called by `get`."""
        name = "".join(part.capitalize() for part in event.eventType.split("_"))
        return getattr(self._json.JSONMessageDeserializer(), f"get{name}Message")(event.message)

    def get(self, message: Any, getter: str) -> Any:
        return self._java.call(message, getter)

    def objects(self, message: Any, getter: str) -> list[Any]:
        """What an iterable of Hive's objects holds."""
        found, iterator = [], getattr(message, getter)().iterator()
        while iterator.hasNext():
            found.append(self._java.to_python(iterator.next()))
        return found

    def thrift(self, kind: str, text: str) -> Any:
        """An object that is a text within a message."""
        cls = self._java.jvm.java.lang.Class.forName(API + kind)
        return self._java.to_python(self._json.JSONMessageFactory.getTObj(text, cls))

    def whole(self, event: NotificationEvent) -> dict[str, Any]:
        """A message with the objects in it decoded."""
        found: dict[str, Any] = json.loads(event.message)
        for field, kind in _OBJECTS.items():
            if isinstance(part := found.get(field), str):
                found[field] = self.thrift(kind, part)
            elif part is not None:
                found[field] = [self.thrift(kind, each) for each in part]
        return found


_OBJECTS = {
    "dbJson": "Database",
    "tableObjJson": "Table",
    "tableObjBeforeJson": "Table",
    "tableObjAfterJson": "Table",
    "partitionListJson": "Partition",
    "partitionObjBeforeJson": "Partition",
    "partitionObjAfterJson": "Partition",
    "functionObjJson": "Function",
}

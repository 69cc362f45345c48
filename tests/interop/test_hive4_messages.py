"""Hive's notifications of every type, read by Hive 4's own classes: the deserializer, and each message's getters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaObject

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    DropConstraintRequest,
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    NotificationEventRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)
from tests.interop import java
from tests.metastore.services.subscriptions.hive_story import function
from tests.support.builders import database, partition, table
from tests.support.jvm import SMALL, running
from tests.support.reference import missing
from tests.support.reference4 import HADOOP, NEWEST, NOT_OF_HADOOP
from tests.support.server import MetastoreServer

CONSTRAINTS = {
    *("ADD_PRIMARYKEY", "ADD_FOREIGNKEY", "ADD_UNIQUECONSTRAINT", "ADD_NOTNULLCONSTRAINT"),
    *("ADD_DEFAULTCONSTRAINT", "ADD_CHECKCONSTRAINT"),
}
"""Hive's own classes for these have no database: `getDB` returns null, and `checkValid` throws for every message."""

EMPTY = {("INSERT", "getPtnObj"), *((each, "getDB") for each in CONSTRAINTS)}
"""What may be null: the partition of an insert into a table without partitions."""

TYPES = {
    *CONSTRAINTS,
    *("CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE", "CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"),
    *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "INSERT", "CREATE_FUNCTION", "DROP_FUNCTION"),
    "DROP_CONSTRAINT",
}
"""All that the server renders (`eventbus.outlets.hive_messages.HIVE_TYPES`)."""


@pytest.fixture(scope="module")
def jvm(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A JVM with Hive 4's classes."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    program = java.find(17, 24)
    if program is None:
        pytest.skip("Hive 4's classes need Java 17 (Debian: apt-get install openjdk-17-jre-headless)")
    jars = [*class_path(*NEWEST.server, exclusions=("*:*",)), *class_path(*HADOOP, exclusions=tuple(NOT_OF_HADOOP))]
    with running(jars, tmp_path_factory.mktemp("hive4"), java=program, options=["-Xmx1g", *SMALL]) as gateway:
        yield gateway.jvm


def change_everything(client: ThriftClient, db: str) -> None:
    """Makes a change of every kind of which Hive is notified."""
    client.create_database(database(db, description="messages"))
    client.alter_database(db, client.get_database(db).replace(description="changed"))
    for name in ("t", "plain", "referring"):
        client.create_table(table(db, name, keys=("ds", "hr:int") if name == "t" else ()))
    client.add_partitions([partition(db, "t", "a", str(hour)) for hour in range(3)])
    client.alter_partition(db, "t", client.get_partition(db, "t", ["a", "1"]).replace(parameters={"x": "1"}))
    client.truncate_table(db, "t", ["ds=a/hr=0"])
    for name, values in (("t", ["a", "1"]), ("plain", None)):
        inserted = InsertEventRequestData(filesAdded=["file:/f1"], filesAddedChecksum=["c1"], replace=False)
        data = FireEventRequestData(insertData=inserted)
        client.fire_listener_event(FireEventRequest(True, data, dbName=db, tableName=name, partitionVals=values))
    client.drop_partition(db, "t", ["a", "2"], True)
    value = client.get_table(db, "plain")
    client.alter_table(db, "plain", value.replace(parameters={**value.parameters, "changed": "1"}))
    client.truncate_table(db, "plain", [])
    of_column = {"catName": "hive", "table_db": db, "table_name": "plain", "column_name": "id"}
    state = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": False}
    client.add_primary_key(AddPrimaryKeyRequest([SQLPrimaryKey(**of_column, key_seq=1, pk_name="pk", **state)]))
    client.add_unique_constraint(
        AddUniqueConstraintRequest([SQLUniqueConstraint(**of_column, key_seq=1, uk_name="uk", **state)])
    )
    client.add_not_null_constraint(
        AddNotNullConstraintRequest([SQLNotNullConstraint(**of_column, nn_name="nn", **state)])
    )
    client.add_default_constraint(
        AddDefaultConstraintRequest([SQLDefaultConstraint(**of_column, default_value="1", dc_name="dc", **state)])
    )
    client.add_check_constraint(
        AddCheckConstraintRequest([SQLCheckConstraint(**of_column, check_expression="id > 0", dc_name="cc", **state)])
    )
    foreign = SQLForeignKey(
        *(db, "plain", "id", db, "referring", "id", 1, 0, 0, "fk", "pk", False, False, False), catName="hive"
    )
    client.add_foreign_key(AddForeignKeyRequest([foreign]))
    client.drop_constraint(DropConstraintRequest(db, "plain", "nn"))
    client.create_function(function(db, "f"))
    client.drop_function(db, "f")
    client.drop_table(db, "referring", True)
    client.drop_database(db, True, True)


def read_whole(jvm: Any, value: Any) -> Any:
    """What a getter returned, with what Hive makes only while it is read."""
    if isinstance(value, JavaObject) and jvm.java.lang.Class.forName("java.lang.Iterable").isInstance(value):
        iterator, found = value.iterator(), []
        while iterator.hasNext():
            found.append(read_whole(jvm, iterator.next()))
        return found
    return value.toString() if isinstance(value, JavaObject) else value


def test_every_getter_of_every_message(jvm: Any, metastore_server: MetastoreServer) -> None:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        begin = client.get_current_notificationEventId().eventId
        change_everything(client, "hive4_messages")
        events = client.get_next_notification(NotificationEventRequest(begin, 0)).events
    assert {each.eventType for each in events} == TYPES
    factory = jvm.org.apache.hadoop.hive.metastore.messaging.MessageFactory
    empty, names = set(), []
    for event in events:
        reader = factory.getInstance(event.messageFormat).getDeserializer()
        message = reader.getEventMessage(event.eventType, event.message)
        assert message.getTimestamp() == event.eventTime
        if event.eventType not in CONSTRAINTS:
            assert message.checkValid().getDB() == "hive4_messages"
        for method in message.getClass().getMethods():
            name = method.getName()
            if not name.startswith(("get", "is")) or name == "getClass" or list(method.getParameterTypes()):
                continue
            found = read_whole(jvm, getattr(message, name)())
            if found is None:
                empty.add((event.eventType, name))
            elif name in ("getDatabaseObject", "getTableObj"):
                names.append((event.eventType, name))
    assert empty <= EMPTY
    assert ("DROP_DATABASE", "getDatabaseObject") in names

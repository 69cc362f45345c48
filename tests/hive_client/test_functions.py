"""Functions through Hive's Java client."""

from typing import Any

import pytest

from lake.protocol.hive import (
    AlreadyExistsException,
    Function,
    FunctionType,
    InvalidObjectException,
    NoSuchObjectException,
    PrincipalType,
    ResourceType,
    ResourceUri,
)
from tests.hive_client.conftest import HiveClient


def function(db: str, name: str, **fields: Any) -> Function:
    defaults: dict[str, Any] = {
        "className": "org.example.F",
        "ownerName": "me",
        "ownerType": PrincipalType.USER,
        "createTime": 0,
        "functionType": FunctionType.JAVA,
        "resourceUris": [ResourceUri(ResourceType.JAR, "file:/x.jar"), ResourceUri(ResourceType.ARCHIVE, "file:/y")],
    }
    return Function(functionName=name, dbName=db, **(defaults | fields))


def test_life(client: HiveClient, db: str) -> None:
    client.createFunction(function(db, "f1"))
    client.createFunction(function(db, "f2"))
    got = client.getFunction(db, "f1")
    assert got.replace(createTime=0, catName=None) == function(db, "f1")
    with pytest.raises(AlreadyExistsException):
        client.createFunction(function(db, "f1"))

    client.alterFunction(db, "f1", function(db, "f1", className="org.example.G"))
    assert client.getFunction(db, "f1").className == "org.example.G"

    client.dropFunction(db, "f1")
    with pytest.raises(NoSuchObjectException):
        client.getFunction(db, "f1")
    with pytest.raises(NoSuchObjectException):
        client.dropFunction(db, "f1")


def test_lists(client: HiveClient, db: str) -> None:
    for name in ("one", "two", "three"):
        client.createFunction(function(db, name))
    assert sorted(client.getFunctions(db, "*")) == ["one", "three", "two"]
    assert sorted(client.getFunctions(db, "t*")) == ["three", "two"]
    everywhere = client.getAllFunctions().functions or []
    assert sorted(each.functionName for each in everywhere if each.dbName == db) == ["one", "three", "two"]


def test_mistakes(client: HiveClient, db: str) -> None:
    with pytest.raises(InvalidObjectException):
        client.createFunction(function(db, "no-name"))
    with pytest.raises(NoSuchObjectException):
        client.createFunction(function("no_such_database", "f"))

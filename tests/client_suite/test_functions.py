"""Functions: create, read, list, alter, drop."""

import time
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    Function,
    FunctionType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    ResourceType,
    ResourceUri,
)
from tests.support.builders import database
from tests.support.expect import UNDECLARED, refused

RESOURCES = [
    ResourceUri(resourceType=ResourceType.JAR, uri="/x.jar"),
    ResourceUri(resourceType=ResourceType.FILE, uri="/a"),
    ResourceUri(resourceType=ResourceType.ARCHIVE, uri="/z.zip"),
]


def function(db: str, name: str = "f", **fields: Any) -> Function:
    defaults: dict[str, Any] = {
        "className": "a.B",
        "ownerName": "alice",
        "ownerType": PrincipalType.USER,
        "functionType": FunctionType.JAVA,
        "resourceUris": [],
    }
    return Function(dbName=db, functionName=name, **(defaults | fields))


class TestCreate:
    def test_reads_back_as_sent_with_the_time_of_creation(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db.upper(), resourceUris=RESOURCES, createTime=5))
        found = client.get_function(db, "f")
        assert abs(time.time() - found.createTime) < 120
        found.catName = None
        assert found == function(db, resourceUris=RESOURCES, createTime=found.createTime)

    def test_found_in_any_case(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db))
        assert client.get_function(db.upper(), "F").functionName == "f"

    def test_exists(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db))
        with refused(AlreadyExistsException, message="Function f already exists"):
            client.create_function(function(db))

    @pytest.mark.parametrize("name", ["", "bad-name", "a.b"])
    def test_the_name_is_checked(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(InvalidObjectException, message=f"{name} is not a valid object name"):
            client.create_function(function(db, name))

    def test_a_class_is_needed(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException, message="Function class name cannot be null"):
            client.create_function(function(db, className=None))

    def test_missing_database(self, client: ThriftClient) -> None:
        with refused(NoSuchObjectException, message="no_such"):
            client.create_function(function("no_such"))


class TestFind:
    def test_missing(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(NoSuchObjectException, message=f"Function {name}.no_such does not exist"):
                client.get_function(name, "no_such")

    @pytest.mark.parametrize(
        ("pattern", "found"),
        [
            ("*", ["f1", "f2", "g"]),
            ("F*", ["f1", "f2"]),
            ("f1|g", ["f1", "g"]),
            ("f.", ["f1", "f2"]),
            ("f", []),
            ("", []),
        ],
    )
    def test_by_pattern(self, client: ThriftClient, db: str, pattern: str, found: list[str]) -> None:
        for name in ("f1", "f2", "g"):
            client.create_function(function(db, name))
        assert sorted(client.get_functions(db, pattern)) == found

    def test_a_missing_database_has_no_functions(self, client: ThriftClient) -> None:
        assert client.get_functions("no_such", "*") == []

    def test_all_of_all_databases(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db, "f", resourceUris=RESOURCES))
        client.create_function(function("default", f"f_{db}"))
        found = {(f.dbName, f.functionName): f for f in client.get_all_functions().functions}
        client.drop_function("default", f"f_{db}")
        assert {(db, "f"), ("default", f"f_{db}")} <= found.keys()
        assert found[db, "f"].resourceUris == RESOURCES


class TestAlter:
    def test_changes_class_and_owner(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db))
        client.alter_function(db, "f", function(db, className="c.D", ownerName="bob", ownerType=PrincipalType.ROLE))
        found = client.get_function(db, "f")
        assert (found.className, found.ownerName, found.ownerType) == ("c.D", "bob", PrincipalType.ROLE)

    def test_renames(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db))
        client.alter_function(db, "f", function(db, "g"))
        assert client.get_functions(db, "*") == ["g"]

    def test_moves_to_another_database(self, client: ThriftClient, db: str, unused_name: str) -> None:
        client.create_database(database(unused_name))
        client.create_function(function(db))
        client.alter_function(db, "f", function(unused_name))
        found = client.get_functions(db, "*"), client.get_functions(unused_name, "*")
        client.drop_database(unused_name, True, True)
        assert found == ([], ["f"])

    def test_missing(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, NoSuchObjectException, message="doesn't exist"):
            client.alter_function(db, "no_such", function(db, "no_such"))

    def test_to_a_bad_name(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db))
        with refused(InvalidOperationException, MetaException, UNDECLARED):
            client.alter_function(db, "f", function(db, "bad-name"))
        assert client.get_functions(db, "*") == ["f"]


class TestDrop:
    def test_drops(self, client: ThriftClient, db: str) -> None:
        client.create_function(function(db, resourceUris=RESOURCES))
        client.drop_function(db.upper(), "F")
        assert client.get_functions(db, "*") == []

    def test_missing(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(NoSuchObjectException, message="Function no_such does not exist"):
                client.drop_function(name, "no_such")

"""Stored procedures and packages. Expectations are those of Hive 4's source."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPackageRequest,
    DropPackageRequest,
    GetPackageRequest,
    InvalidOperationException,
    ListPackageRequest,
    ListStoredProcedureRequest,
    MetaException,
    NoSuchObjectException,
    Package,
    StoredProcedure,
    StoredProcedureRequest,
)
from tests.support.expect import UNDECLARED, refused

pytestmark = pytest.mark.hive4


def procedure(db: str, name: str = "P", source: str = "begin end") -> StoredProcedure:
    return StoredProcedure(name, db, "hive", "alice", source)


class TestProcedures:
    def test_reads_back(self, client: ThriftClient, db: str) -> None:
        client.create_stored_procedure(procedure(db.upper()))
        assert client.get_stored_procedure(StoredProcedureRequest("hive", db.upper(), "P")) == procedure(db)

    def test_made_anew(self, client: ThriftClient, db: str) -> None:
        client.create_stored_procedure(procedure(db))
        client.create_stored_procedure(procedure(db, source="other"))
        assert client.get_stored_procedure(StoredProcedureRequest("hive", db, "P")).source == "other"

    def test_listed(self, client: ThriftClient, db: str) -> None:
        for name in ("b", "A"):
            client.create_stored_procedure(procedure(db, name))
        assert client.get_all_stored_procedures(ListStoredProcedureRequest("hive", db)) == ["A", "b"]
        assert client.get_all_stored_procedures(ListStoredProcedureRequest("hive", "no_such")) == []
        assert {"A", "b"} <= set(client.get_all_stored_procedures(ListStoredProcedureRequest("hive")))

    def test_missing(self, client: ThriftClient, db: str) -> None:
        client.create_stored_procedure(procedure(db))
        with refused(NoSuchObjectException, message=f"HPL/SQL StoredProcedure {db}.p does not exist"):
            client.get_stored_procedure(StoredProcedureRequest("hive", db, "p"))
        with refused(NoSuchObjectException, message="There is no database hive.no_such"):
            client.create_stored_procedure(procedure("no_such"))

    def test_dropped(self, client: ThriftClient, db: str) -> None:
        client.create_stored_procedure(procedure(db))
        for _ in range(2):
            client.drop_stored_procedure(StoredProcedureRequest("hive", db, "P"))
        assert client.get_all_stored_procedures(ListStoredProcedureRequest("hive", db)) == []

    def test_keeps_its_database(self, client: ThriftClient, db: str) -> None:
        client.create_stored_procedure(procedure(db))
        message = f"Database {db} is not empty. One or more stored procedures exist."
        with refused(InvalidOperationException, message=message):
            client.drop_database(db, True, False)
        client.drop_database(db, True, True)
        assert client.get_all_stored_procedures(ListStoredProcedureRequest("hive", db)) == []


class TestPackages:
    def test_reads_back(self, client: ThriftClient, db: str) -> None:
        client.add_package(AddPackageRequest("hive", db, "P", "alice", "header", "body"))
        found = client.find_package(GetPackageRequest("hive", db, "P"))
        assert found == Package("hive", db, "P", "alice", "header", "body")
        client.add_package(AddPackageRequest("hive", db, "P", "bob", "header", "other"))
        assert client.find_package(GetPackageRequest("hive", db, "P")).body == "other"

    def test_listed_and_dropped(self, client: ThriftClient, db: str) -> None:
        for name in ("q", "P"):
            client.add_package(AddPackageRequest("hive", db, name, "alice", "h", "b"))
        assert client.get_all_packages(ListPackageRequest("hive", db)) == ["P", "q"]
        for _ in range(2):
            client.drop_package(DropPackageRequest("hive", db, "P"))
        assert client.get_all_packages(ListPackageRequest("hive", db)) == ["q"]

    def test_missing(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message=f"HPL/SQL package {db}.P does not exist"):
            client.find_package(GetPackageRequest("hive", db, "P"))
        with refused(MetaException, UNDECLARED):
            client.add_package(AddPackageRequest("hive", "no_such", "P"))

    def test_keeps_its_database(self, client: ThriftClient, db: str) -> None:
        client.add_package(AddPackageRequest("hive", db, "P", "alice", "h", "b"))
        with refused(InvalidOperationException, message="One or more packages exist."):
            client.drop_database(db, True, False)

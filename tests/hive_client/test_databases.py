"""Databases through Hive's Java client."""

from pathlib import Path

import pytest

from lake.protocol.hive import (
    AlreadyExistsException,
    Database,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from tests.hive_client.conftest import NUMBERS, HiveClient
from tests.support.builders import database, table


@pytest.fixture
def name() -> str:
    return f"java_{next(NUMBERS)}"


def test_life(client: HiveClient, name: str, warehouse: Path, tmp_path: Path) -> None:
    client.createDatabase(
        Database(
            name=name.upper(),
            description="ünïcode",
            locationUri=str(tmp_path / "here"),
            parameters={"k": "v"},
            ownerName="someone",
            ownerType=PrincipalType.ROLE,
        )
    )
    got = client.getDatabase(name)
    assert (got.name, got.description, got.locationUri) == (name, "ünïcode", f"file:{tmp_path}/here")
    assert (got.parameters, got.ownerName, got.ownerType) == ({"k": "v"}, "someone", PrincipalType.ROLE)
    assert (tmp_path / "here").is_dir()

    client.alterDatabase(name, Database(name=name, parameters={"k": "w"}, ownerName="another"))
    got = client.getDatabase(name)
    assert (got.parameters, got.ownerName, got.ownerType) == ({"k": "w"}, "another", PrincipalType.ROLE)

    client.dropDatabase(name)
    with pytest.raises(NoSuchObjectException):
        client.getDatabase(name)
    assert not (tmp_path / "here").exists()


def test_lists(client: HiveClient, db: str) -> None:
    assert db in client.getAllDatabases()
    assert client.getDatabases(f"{db[:-1]}*|nosuch").count(db) == 1
    assert client.getDatabases("no_such_*") == []


def test_default_is_there(client: HiveClient, warehouse: Path) -> None:
    assert client.getDatabase("default").locationUri == f"file:{warehouse}"
    with pytest.raises(MetaException, match="Can not drop default database"):
        client.dropDatabase("default")


def test_mistakes(client: HiveClient, db: str) -> None:
    with pytest.raises(AlreadyExistsException):
        client.createDatabase(database(db))
    with pytest.raises(InvalidObjectException, match="no/name is not a valid database name"):
        client.createDatabase(database("no/name"))


def test_drop_of_what_is_not_there(client: HiveClient) -> None:
    with pytest.raises(NoSuchObjectException):
        client.dropDatabase("no_such_database")
    client.dropDatabase("no_such_database", True, True)


def test_drop_with_tables(client: HiveClient, db: str, home: Path) -> None:
    client.createTable(table(db, "one"))
    client.createTable(table(db, "two"))
    with pytest.raises(InvalidOperationException, match="is not empty"):
        client.dropDatabase(db, True, False)
    assert client.getAllTables(db) == ["one", "two"]
    client.dropDatabase(db, True, False, True)
    assert db not in client.getAllDatabases()
    assert not home.exists()

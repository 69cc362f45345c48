"""Databases: create, read, list, alter, drop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    Database,
    Function,
    FunctionType,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from tests.support.builders import database, external_table, storage, table, view
from tests.support.expect import common, refused


def test_the_default_database_exists_from_the_start(client: ThriftClient, warehouse: Path) -> None:
    assert common(client.get_database("default")) == Database(
        name="default",
        description="Default Hive database",
        locationUri=f"file:{warehouse}",
        parameters={},
        ownerName="public",
        ownerType=PrincipalType.ROLE,
    )


class TestCreate:
    def test_fills_location_parameters_and_owner_type(self, client: ThriftClient, db: str, warehouse: Path) -> None:
        assert common(client.get_database(db)) == Database(
            name=db, locationUri=f"file:{warehouse}/{db}.db", parameters={}, ownerType=PrincipalType.USER
        )

    def test_keeps_what_the_client_sends(self, client: ThriftClient, unused_name: str, tmp_path: Path) -> None:
        sent = Database(
            name=unused_name,
            description="for tests",
            locationUri=f"file:{tmp_path}/there",
            parameters={"k": "v", "empty": ""},
            ownerName="alice",
            ownerType=PrincipalType.ROLE,
        )
        client.create_database(sent)
        assert common(client.get_database(unused_name)) == sent
        client.drop_database(unused_name, True, False)

    def test_makes_the_directory(self, client: ThriftClient, db: str, warehouse: Path) -> None:
        assert (warehouse / f"{db}.db").is_dir()

    def test_lowers_the_name(self, client: ThriftClient, unused_name: str, warehouse: Path) -> None:
        client.create_database(database(unused_name.upper()))
        assert client.get_database(unused_name).locationUri == f"file:{warehouse}/{unused_name}.db"
        client.drop_database(unused_name, True, False)

    @pytest.mark.parametrize("given", ["{}/x", "file:{}/x", "file://{}/x", "{}/x/"])
    def test_normalises_the_location(self, client: ThriftClient, unused_name: str, tmp_path: Path, given: str) -> None:
        client.create_database(database(unused_name, locationUri=given.format(tmp_path)))
        assert client.get_database(unused_name).locationUri == f"file:{tmp_path}/x"
        assert (tmp_path / "x").is_dir()
        client.drop_database(unused_name, True, False)

    def test_keeps_blanks_and_percent_signs_of_the_location(
        self, client: ThriftClient, unused_name: str, tmp_path: Path
    ) -> None:
        client.create_database(database(unused_name, locationUri=f"{tmp_path}/a b%20c"))
        assert client.get_database(unused_name).locationUri == f"file:{tmp_path}/a b%20c"
        assert (tmp_path / "a b%20c").is_dir()
        client.drop_database(unused_name, True, False)

    def test_takes_a_directory_that_exists(self, client: ThriftClient, unused_name: str, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("kept")
        client.create_database(database(unused_name, locationUri=str(tmp_path)))
        assert (tmp_path / "file").read_text() == "kept"
        client.drop_database(unused_name, False, False)

    @pytest.mark.parametrize("location", ["relative/path", "nosuchscheme://host/path"])
    def test_refuses_a_location_that_it_cannot_use(self, client: ThriftClient, unused_name: str, location: str) -> None:
        with refused(MetaException):
            client.create_database(database(unused_name, locationUri=location))
        assert unused_name not in client.get_all_databases()

    def test_refuses_a_name_that_exists_in_any_case(self, client: ThriftClient, db: str) -> None:
        with refused(AlreadyExistsException, message=f"Database {db.upper()} already exists"):
            client.create_database(database(db.upper()))

    @pytest.mark.parametrize("name", ["", "ü", "a\\b", "a\tb"])
    def test_refuses_names_that_no_version_takes(self, client: ThriftClient, name: str) -> None:
        with refused(InvalidObjectException, message=f"{name} is not a valid database name"):
            client.create_database(database(name))

    def test_refuses_a_missing_name(self, client: ThriftClient) -> None:
        with refused(MetaException, InvalidObjectException):
            client.create_database(Database())

    def test_a_name_may_begin_with_a_digit_and_be_128_long(self, client: ThriftClient) -> None:
        name = "1" + 127 * "x"
        client.create_database(database(name))
        assert name in client.get_all_databases()
        client.drop_database(name, True, False)

    def test_a_name_of_129_is_too_long(self, client: ThriftClient) -> None:
        with refused(MetaException, InvalidObjectException):
            client.create_database(database(129 * "x"))


class TestGet:
    def test_any_case_and_blanks_around_the_name(self, client: ThriftClient, db: str) -> None:
        assert client.get_database(f" {db.upper()} ").name == db

    def test_missing(self, client: ThriftClient) -> None:
        with refused(NoSuchObjectException, message="No_Such"):
            client.get_database("No_Such")


class TestLists:
    @pytest.fixture
    def names(self, client: ThriftClient, unused_name: str) -> list[str]:
        return [f"{unused_name}_{suffix}" for suffix in ("one", "two", "three")]

    @pytest.fixture(autouse=True)
    def databases(self, client: ThriftClient, names: list[str]) -> Iterator[None]:
        for name in names:
            client.create_database(database(name))
        yield
        for name in names:
            client.drop_database(name, True, False)

    def test_all_in_order_of_names(self, client: ThriftClient, names: list[str]) -> None:
        found = client.get_all_databases()
        assert found == sorted(found)
        assert set(names) | {"default"} <= set(found)

    def test_a_star_matches_anything(self, client: ThriftClient, unused_name: str, names: list[str]) -> None:
        assert client.get_databases(f"{unused_name}_*") == sorted(names)
        assert client.get_databases(f"{unused_name}_t*") == sorted(names[1:])
        assert client.get_databases("*") == client.get_all_databases()

    def test_a_bar_separates_alternatives(self, client: ThriftClient, names: list[str]) -> None:
        assert client.get_databases(f"{names[0]}|{names[2]}|nosuch") == sorted([names[0], names[2]])

    def test_patterns_ignore_case(self, client: ThriftClient, names: list[str]) -> None:
        assert client.get_databases(names[0].upper()) == [names[0]]

    def test_a_dot_matches_one_character(self, client: ThriftClient, unused_name: str, names: list[str]) -> None:
        assert client.get_databases(f"{unused_name}_.ne") == [names[0]]

    @pytest.mark.parametrize("pattern", ["", "nosuch", "on"])
    def test_a_pattern_covers_the_whole_name(self, client: ThriftClient, pattern: str) -> None:
        assert client.get_databases(pattern) == []

    def test_no_pattern_means_all(self, client: ThriftClient) -> None:
        assert client.get_databases() == client.get_all_databases()


class TestAlter:
    def test_changes_parameters_and_owner(self, client: ThriftClient, db: str) -> None:
        client.alter_database(db, database(db, parameters={"a": "b"}, ownerName="bob", ownerType=PrincipalType.ROLE))
        changed = client.get_database(db)
        assert changed.parameters == {"a": "b"}
        assert (changed.ownerName, changed.ownerType) == ("bob", PrincipalType.ROLE)

    def test_the_kind_of_owner_stays_if_none_is_given(self, client: ThriftClient, db: str) -> None:
        client.alter_database(db, database(db, ownerName="bob", ownerType=PrincipalType.ROLE))
        client.alter_database(db, database(db))
        changed = client.get_database(db)
        assert (changed.ownerName, changed.ownerType) == (None, PrincipalType.ROLE)

    def test_replaces_the_parameters_as_a_whole(self, client: ThriftClient, db: str) -> None:
        client.alter_database(db, database(db, parameters={"a": "b"}))
        client.alter_database(db, database(db, parameters={"c": "d"}))
        assert client.get_database(db).parameters == {"c": "d"}
        client.alter_database(db, database(db))
        assert client.get_database(db).parameters == {}

    def test_never_renames(self, client: ThriftClient, db: str, unused_name: str) -> None:
        client.alter_database(db, database(unused_name, parameters={"a": "b"}))
        assert client.get_database(db).name == db
        assert unused_name not in client.get_all_databases()


class TestDrop:
    def test_removes_database_and_directory(self, client: ThriftClient, unused_name: str, warehouse: Path) -> None:
        client.create_database(database(unused_name))
        client.drop_database(unused_name.upper(), True, False)
        assert unused_name not in client.get_all_databases()
        assert not (warehouse / f"{unused_name}.db").exists()

    def test_leaves_the_directory_without_delete_data(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        client.drop_database(db, False, True)
        assert db not in client.get_all_databases()
        assert (home / "t").is_dir()

    def test_missing(self, client: ThriftClient) -> None:
        with refused(NoSuchObjectException, MetaException):
            client.drop_database("no_such", True, False)

    def test_the_default_database_stays(self, client: ThriftClient) -> None:
        with refused(MetaException, message="Can not drop default database"):
            client.drop_database("default", True, True)

    def test_with_tables_needs_cascade(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        with refused(InvalidOperationException, message=f"Database {db} is not empty. One or more tables exist."):
            client.drop_database(db, True, False)
        assert client.get_all_tables(db) == ["t"]
        assert (home / "t").is_dir()

    def test_with_functions_needs_cascade(self, client: ThriftClient, db: str) -> None:
        client.create_function(
            Function(
                dbName=db,
                functionName="f",
                className="a.B",
                ownerName="me",
                ownerType=PrincipalType.USER,
                functionType=FunctionType.JAVA,
                resourceUris=[],
            )
        )
        with refused(InvalidOperationException, message=f"Database {db} is not empty. One or more functions exist."):
            client.drop_database(db, True, False)
        client.drop_database(db, True, True)
        assert db not in client.get_all_databases()

    def test_cascade_drops_tables_and_views(self, client: ThriftClient, db: str, home: Path, tmp_path: Path) -> None:
        client.create_table(table(db, "inside"))
        client.create_table(table(db, "managed_outside", sd=storage(location=f"{tmp_path}/managed")))
        client.create_table(external_table(db, "external_outside", sd=storage(location=f"{tmp_path}/external")))
        client.create_table(view(db))
        client.drop_database(db, True, True)
        assert db not in client.get_all_databases()
        assert not home.exists()
        assert not (tmp_path / "managed").exists()
        assert (tmp_path / "external").is_dir()

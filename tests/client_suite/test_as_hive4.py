"""What Hive 4 answers where Hive 2.3 was stricter, looser, or had no such call: found by Hive 4's own test suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    Catalog,
    CreateCatalogRequest,
    CreationMetadata,
    Database,
    DropCatalogRequest,
    DropConstraintRequest,
    DropDatabaseRequest,
    Function,
    FunctionType,
    GetCatalogRequest,
    GetDatabaseRequest,
    GetProjectionsSpec,
    GetTablesExtRequest,
    GetTablesRequest,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    SerDeInfo,
    UnknownDBException,
)
from tests.support.builders import columns, database, storage, table
from tests.support.expect import UNDECLARED, refused

pytestmark = pytest.mark.hive4


@pytest.fixture
def catalog(client: ThriftClient, unused_name: str, tmp_path: Path) -> Iterator[str]:
    """The name of a catalog of this test's alone, located in `tmp_path/catalog`."""
    name = f"as4_{unused_name}"
    client.create_catalog(CreateCatalogRequest(Catalog(name, None, str(tmp_path / "catalog"))))
    yield name
    for each in client.get_databases(f"@{name}#"):
        client.drop_database_req(DropDatabaseRequest(each, name, False, True, True))
    client.drop_catalog(DropCatalogRequest(name, True))


class TestCatalogs:
    def test_the_location_is_returned_as_it_was_given(self, client: ThriftClient, catalog: str, tmp_path: Path) -> None:
        assert client.get_catalog(GetCatalogRequest(catalog)).catalog.locationUri == str(tmp_path / "catalog")
        client.create_database(database("inside", catalogName=catalog))
        found = client.get_database_req(GetDatabaseRequest("inside", catalog))
        assert found.locationUri == f"file:{tmp_path}/catalog/inside.db"

    def test_its_default_database_can_be_dropped(self, client: ThriftClient, catalog: str) -> None:
        client.drop_database_req(DropDatabaseRequest("default", catalog, False, True, True))
        assert client.get_databases(f"@{catalog}#") == []

    def test_a_dropped_one_leaves_no_empty_directory(self, client: ThriftClient, catalog: str, tmp_path: Path) -> None:
        assert (tmp_path / "catalog").is_dir()
        client.drop_catalog(DropCatalogRequest(catalog))
        assert not (tmp_path / "catalog").exists()
        # What the fixture ends.
        client.create_catalog(CreateCatalogRequest(Catalog(catalog, None, str(tmp_path / "catalog"))))

    def test_a_database_needs_one(self, client: ThriftClient, unused_name: str) -> None:
        with refused(InvalidObjectException):
            client.create_database(database(unused_name, catalogName="no_such"))


class TestDatabases:
    def test_the_server_sets_the_time_of_making(self, client: ThriftClient, unused_name: str) -> None:
        client.create_database(database(unused_name, createTime=5))
        made = client.get_database(unused_name).createTime
        client.alter_database(unused_name, database(unused_name, createTime=7))
        kept = client.get_database(unused_name).createTime
        client.drop_database(unused_name, True, True)
        assert made > 1_000_000_000 and kept == made

    def test_altering_changes_text_and_places_that_are_given(
        self, client: ThriftClient, db: str, tmp_path: Path
    ) -> None:
        places = {"locationUri": f"file:{tmp_path}/one", "managedLocationUri": f"file:{tmp_path}/two"}
        client.alter_database(db, database(db, description="for tests", **places))
        changed = client.get_database(db)
        assert (changed.description, changed.locationUri, changed.managedLocationUri) == (
            "for tests",
            places["locationUri"],
            places["managedLocationUri"],
        )
        client.alter_database(db, Database(name=db, parameters={"a": "b"}))
        kept = client.get_database(db)
        assert (kept.description, kept.locationUri) == ("for tests", places["locationUri"])
        assert kept.managedLocationUri == places["managedLocationUri"]

    @pytest.mark.parametrize("suffix", ["-x", ".b", " c", "#d", "@e"])
    def test_names_may_have_signs(self, client: ThriftClient, unused_name: str, suffix: str) -> None:
        name = unused_name + suffix
        client.create_database(database(name))
        client.create_table(table(name, f"t{suffix}"))
        found = client.get_table(name, f"t{suffix}")
        assert client.get_all_tables(name) == [f"t{suffix}"]
        client.drop_database(name, True, True)
        assert (found.dbName, found.tableName) == (name, f"t{suffix}")
        assert name not in client.get_all_databases()

    def test_with_the_source_of_a_view_elsewhere_stays(self, client: ThriftClient, db: str, unused_name: str) -> None:
        client.create_database(database(unused_name))
        client.create_table(table(db))
        client.create_table(materialized(unused_name, f"{db}.t"))
        with refused(MetaException, message="used in the following materialized views"):
            client.drop_database(db, True, True)
        client.drop_database(unused_name, True, True)
        assert client.get_all_tables(db) == ["t"]
        client.drop_database(db, True, True)


class TestFunctions:
    @pytest.mark.parametrize("missing", ["ownerType", "functionType"])
    def test_kinds_are_needed(self, client: ThriftClient, db: str, missing: str) -> None:
        whole = Function("f", db, "a.B", "me", PrincipalType.USER, 0, FunctionType.JAVA, [])
        with refused(MetaException):
            client.create_function(whole.replace(**{missing: None}))
        client.create_function(whole)
        with refused(MetaException):
            client.alter_function(db, "f", whole.replace(**{missing: None}))

    @pytest.mark.parametrize(
        "changes",
        [{"functionName": "bad;name"}, {"className": None}, {"dbName": "no_such"}, {"dbName": None}],
        ids=["name", "class", "database", "no-database"],
    )
    def test_wrong_alterations(self, client: ThriftClient, db: str, changes: dict[str, str | None]) -> None:
        whole = Function("f", db, "a.B", "me", PrincipalType.USER, 0, FunctionType.JAVA, [])
        client.create_function(whole)
        with refused(MetaException):
            client.alter_function(db, "f", whole.replace(**changes))

    def test_to_a_name_that_is_taken(self, client: ThriftClient, db: str) -> None:
        whole = Function("f", db, "a.B", "me", PrincipalType.USER, 0, FunctionType.JAVA, [])
        client.create_function(whole)
        client.create_function(whole.replace(functionName="g"))
        with refused(MetaException):
            client.alter_function(db, "f", whole.replace(functionName="g"))


def materialized(db: str, *sources: str):  # type: ignore[no-untyped-def]
    metadata = CreationMetadata("hive", db, "mv", set(sources))
    return table(db, "mv", tableType="MATERIALIZED_VIEW", creationMetadata=metadata, rewriteEnabled=True)


class TestTables:
    def test_alteration_without_a_name_or_a_serde(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        found = client.get_table(db, "t")
        for new in (
            found.replace(tableName=None),
            found.replace(dbName=None),
            found.replace(sd=found.sd.replace(serdeInfo=None)),
        ):
            with refused(MetaException):
                client.alter_table(db, "t", new)

    def test_a_bucket_column_is_not_renamed_away(self, client: ThriftClient, db: str) -> None:
        sd = storage(bucketCols=["id"], numBuckets=2)
        client.create_table(table(db, sd=sd))
        found = client.get_table(db, "t")
        with refused(InvalidOperationException, message="id"):
            client.alter_table(db, "t", found.replace(sd=found.sd.replace(cols=columns("number:bigint", "name"))))
        kept = found.sd.replace(cols=columns("id:bigint", "name", "more"), bucketCols=["id"])
        client.alter_table(db, "t", found.replace(sd=kept))
        assert len(client.get_table(db, "t").sd.cols) == 3

    def test_stays_in_its_catalog(self, client: ThriftClient, db: str, catalog: str) -> None:
        client.create_table(table(db))
        found = client.get_table(db, "t")
        with refused(InvalidOperationException, message="between catalogs"):
            client.alter_table(db, "t", found.replace(catName=catalog))

    def test_its_write_id_is_set_though_no_transaction_wrote_it(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, "t"))
        assert client.get_table(db, "t").writeId == 0

    def test_the_source_of_a_materialized_view_stays(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        client.create_table(table(db, "other"))
        client.create_table(materialized(db, f"{db}.t"))
        with refused(MetaException, message="used in the following materialized views"):
            client.drop_table(db, "t", True)
        client.drop_table(db, "other", True)
        client.drop_table(db, "mv", True)
        client.drop_table(db, "t", True)
        assert client.get_all_tables(db) == []

    def test_a_setting_of_the_connection_allows_any_type(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        found = client.get_table(db, "t")
        changed = found.replace(sd=found.sd.replace(cols=columns("id:int", "name:int")))
        with refused(InvalidOperationException, message="incompatible"):
            client.alter_table(db, "t", changed)
        client.setMetaConf("metastore.disallow.incompatible.col.type.changes", "false")
        client.alter_table(db, "t", changed)
        assert [each.type for each in client.get_table(db, "t").sd.cols] == ["int", "int"]


class TestSettingsOfAConnection:
    def test_old_and_new_names_are_known(self, client: ThriftClient) -> None:
        for name in ("metastore.try.direct.sql", "hive.metastore.try.direct.sql.ddl"):
            client.setMetaConf(name, "false")
            assert client.getMetaConf(name) == "false"
        with refused(MetaException, message="Invalid configuration key metastore.warehouse.dir"):
            client.setMetaConf("metastore.warehouse.dir", "/")


class TestLists:
    @pytest.fixture
    def other(self, client: ThriftClient, db: str) -> Iterator[str]:
        """Another database whose name begins with that of `db`; both have tables."""
        client.create_table(table(db, "alpha", ownerType=PrincipalType.ROLE, owner="staff"))
        client.create_table(table(db, "beta"))
        name = f"{db}_more"
        client.create_database(database(name))
        client.create_table(table(name, "alpha"))
        yield name
        client.drop_database(name, True, True)

    @staticmethod
    def found(client: ThriftClient, db: str, **fields: object) -> list[tuple[str | None, str | None]]:
        request = GetTablesRequest(dbName=db, **fields)  # type: ignore[arg-type]
        return [(each.dbName, each.tableName) for each in client.get_table_objects_by_name_req(request).tables]

    def test_patterns_of_both_names(self, client: ThriftClient, db: str, other: str) -> None:
        assert sorted(self.found(client, db, tablesPattern="*")) == [(db, "alpha"), (db, "beta")]
        assert sorted(self.found(client, f"{db}*", tablesPattern="a*")) == [(db, "alpha"), (other, "alpha")]
        assert self.found(client, f"{db}*", tablesPattern="*", tblNames=["beta"]) == [(db, "beta")]
        assert self.found(client, db, tablesPattern="no_such*") == []

    def test_patterns_in_another_catalog(self, client: ThriftClient, db: str, catalog: str) -> None:
        client.create_database(database(db, catalogName=catalog))
        client.create_table(table(db, "gamma", catName=catalog))
        assert self.found(client, db, tablesPattern="*", catName=catalog) == [(db, "gamma")]

    def test_a_database_that_is_not_there(self, client: ThriftClient, db: str) -> None:
        with refused(UnknownDBException):
            self.found(client, "no_such", tablesPattern="*")

    def test_some_fields_alone(self, client: ThriftClient, db: str, other: str) -> None:
        def asked(*fields: str):  # type: ignore[no-untyped-def]
            request = GetTablesRequest(dbName=db, tblNames=["alpha"], projectionSpec=GetProjectionsSpec(list(fields)))
            (only,) = client.get_table_objects_by_name_req(request).tables
            return only

        place = asked("sd.location")
        assert place.sd.location.endswith("/alpha")
        assert (place.tableName, place.dbName, place.sd.cols) == (None, None, None)
        owner = asked("owner", "ownerType", "sd.serdeInfo.serializationLib")
        assert (owner.owner, owner.ownerType, owner.tableName) == ("staff", PrincipalType.ROLE, None)
        assert owner.sd.serdeInfo.serializationLib and owner.sd.location is None
        # A field with several values brings everything.
        assert asked("sd.cols.name").tableName == "alpha"

    def test_fields_that_tables_do_not_have(self, client: ThriftClient, db: str, other: str) -> None:
        wrong = GetProjectionsSpec(["sd.location", "colour"])
        with refused(MetaException, message="colour"):
            self.found(client, db, tblNames=["alpha"], projectionSpec=wrong)
        with refused(InvalidOperationException):
            of_parameters = GetProjectionsSpec(None, "a%", None)
            self.found(client, db, tblNames=["alpha"], projectionSpec=of_parameters)

    def test_the_kind_of_owner_in_summaries(self, client: ThriftClient, db: str, other: str) -> None:
        found = {each.tableName: each.ownerType for each in client.get_table_meta(db, "*", [])}
        assert found == {"alpha": PrincipalType.ROLE, "beta": PrincipalType.USER}

    @pytest.mark.hive4(differs="tells none with the limit -1")
    def test_no_limit_loses_no_table(self, client: ThriftClient, db: str, other: str) -> None:
        request = GetTablesExtRequest("hive", db, "*", 2147483647, limit=-1)
        assert sorted(each.tblName for each in client.get_tables_ext(request)) == ["alpha", "beta"]
        assert len(client.get_tables_ext(request.replace(limit=1))) == 1

    def test_by_filter_without_a_catalog_or_database(self, client: ThriftClient) -> None:
        for name in ("@#default", "@hive#", ""):
            with refused(UnknownDBException):
                client.get_table_names_by_filter(name, 'hive_filter_field_params__k = "v"', -1)


class TestConstraints:
    def test_what_is_missing_is_an_internal_error_that_says_why(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        for name, constraint in (("t", "no_such"), ("no_such", "c")):
            with refused(UNDECLARED):
                client.drop_constraint(DropConstraintRequest(db, name, constraint))


def test_a_table_without_serde_is_refused_when_it_is_made(client: ThriftClient, db: str) -> None:
    with refused(MetaException):
        client.create_table(table(db, sd=storage(serdeInfo=None)))
    with refused(NoSuchObjectException):
        client.get_table(db, "t")
    client.create_table(table(db, sd=storage(serdeInfo=SerDeInfo())))

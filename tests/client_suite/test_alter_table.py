"""alter_table: what may change, what moves, and what follows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Table,
)
from tests.support.builders import columns, database, external_table, partition, storage, table, view
from tests.support.expect import files_below, refused

Change = Callable[[Table], None]


def alter(client: ThriftClient, db: str, name: str, change: Change, **properties: str) -> None:
    """Reads a table, changes the copy, and alters the table to it."""
    new = client.get_table(db, name)
    change(new)
    if properties:
        context = EnvironmentContext(properties=properties)
        client.alter_table_with_environment_context(db, name, new, context)
    else:
        client.alter_table(db, name, new)


def setting(**fields: object) -> Change:
    def change(new: Table) -> None:
        for name, value in fields.items():
            setattr(new, name, value)

    return change


def new_columns(*specs: str) -> Change:
    def change(new: Table) -> None:
        new.sd.cols = columns(*specs)

    return change


def specs_of(fields: list[FieldSchema]) -> list[str]:
    return [f"{field.name}:{field.type}" for field in fields]


class TestAttributes:
    def test_stores_what_the_new_table_says(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        alter(
            client,
            db,
            "t",
            setting(owner="zoe", retention=9, lastAccessTime=77, viewOriginalText="q", viewExpandedText="r"),
        )
        stored = client.get_table(db, "t")
        assert (stored.owner, stored.retention, stored.lastAccessTime) == ("zoe", 9, 77)
        assert (stored.viewOriginalText, stored.viewExpandedText) == ("q", "r")

    def test_the_time_of_creation_stays(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        created = client.get_table(db, "t").createTime
        alter(client, db, "t", setting(createTime=1))
        assert client.get_table(db, "t").createTime == created

    def test_replaces_parameters_as_a_whole(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters={"a": "1", "b": "2"}))
        alter(client, db, "t", setting(parameters={"b": "3", "c": "4"}))
        stored = client.get_table(db, "t").parameters
        assert "a" not in stored
        assert (stored["b"], stored["c"]) == ("3", "4")

    def test_fills_transient_last_ddl_time_only_if_missing(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        alter(client, db, "t", setting(parameters={"transient_lastDdlTime": "7"}))
        assert client.get_table(db, "t").parameters["transient_lastDdlTime"] == "7"
        alter(client, db, "t", setting(parameters=None))
        assert int(client.get_table(db, "t").parameters["transient_lastDdlTime"]) > 7

    def test_serde_and_formats(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))

        def change(new: Table) -> None:
            new.sd.serdeInfo.serializationLib = "other.Lib"
            new.sd.serdeInfo.parameters = {"field.delim": ","}
            new.sd.inputFormat = "other.Format"
            new.sd.parameters = {"p": "q"}

        alter(client, db, "t", change)
        stored = client.get_table(db, "t").sd
        assert stored.serdeInfo.serializationLib == "other.Lib"
        assert stored.serdeInfo.parameters == {"field.delim": ","}
        assert (stored.inputFormat, stored.parameters) == ("other.Format", {"p": "q"})

    @pytest.mark.parametrize(
        ("external", "stored"), [("TRUE", "EXTERNAL_TABLE"), ("FALSE", "MANAGED_TABLE"), (None, "MANAGED_TABLE")]
    )
    def test_the_external_parameter_decides_the_type(
        self, client: ThriftClient, db: str, external: str | None, stored: str
    ) -> None:
        client.create_table(table(db))
        parameters = {} if external is None else {"EXTERNAL": external}
        alter(client, db, "t", setting(parameters=parameters))
        assert client.get_table(db, "t").tableType == stored

    def test_a_view_gets_another_query(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v"))
        alter(client, db, "v", setting(viewOriginalText="select 2"))
        stored = client.get_table(db, "v")
        assert (stored.viewOriginalText, stored.sd.location) == ("select 2", None)


class TestChecks:
    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidOperationException, message=f"{db}.no_such table not found"):
            client.alter_table(db, "no_such", table(db, "no_such"))

    def test_missing_database(self, client: ThriftClient) -> None:
        with refused(InvalidOperationException, message="no_such.t table not found"):
            client.alter_table("no_such", "t", table("no_such"))

    def test_column_types(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        with refused(InvalidOperationException, message="Invalid column type: bad"):
            alter(client, db, "t", new_columns("a:bad"))

    def test_repeated_columns(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, sd=storage("a:int")))
        with refused(MetaException, InvalidOperationException):
            alter(client, db, "t", new_columns("a:int", "A:int"))
        assert specs_of(client.get_table(db, "t").sd.cols) == ["a:int"]

    @pytest.mark.parametrize("missing", ["sd", "partitionKeys"])
    def test_what_must_be_there(self, client: ThriftClient, db: str, missing: str) -> None:
        client.create_table(table(db))
        with refused(MetaException, InvalidOperationException):
            alter(client, db, "t", setting(**{missing: None}))


class TestColumns:
    def test_names_and_comments_are_free(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, sd=storage("a:int", "b:string")))
        alter(client, db, "t", new_columns("X:int#said", "y:string"))
        assert client.get_table(db, "t").sd.cols == columns("x:int#said", "y:string")

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (["a:int"], ["a:int", "b:string"]),
            (["a:int", "b:string"], ["a:int"]),
            (["a:int", "b:int"], ["b:int", "a:int"]),
            (["a:int"], []),
        ],
    )
    def test_added_dropped_and_reordered(self, client: ThriftClient, db: str, old: list[str], new: list[str]) -> None:
        client.create_table(table(db, sd=storage(cols=columns(*old))))
        alter(client, db, "t", new_columns(*new))
        assert specs_of(client.get_table(db, "t").sd.cols) == new

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("tinyint", "smallint"),
            ("int", "bigint"),
            ("int", "double"),
            ("int", "decimal(10,2)"),
            ("float", "double"),
            ("decimal(10,2)", "decimal(12,3)"),
            ("decimal(10,2)", "double"),
            ("int", "string"),
            ("double", "varchar(9)"),
            ("date", "string"),
            ("timestamp", "string"),
            ("string", "double"),
            ("string", "char(5)"),
            ("varchar(5)", "varchar(9)"),
            ("varchar(9)", "varchar(5)"),
            ("void", "int"),
            ("struct<a:int>", "struct<a:int>"),
        ],
    )
    def test_types_widen(self, client: ThriftClient, db: str, old: str, new: str) -> None:
        client.create_table(table(db, sd=storage(f"a:{old}")))
        alter(client, db, "t", new_columns(f"a:{new}"))
        assert specs_of(client.get_table(db, "t").sd.cols) == [f"a:{new}"]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("bigint", "int"),
            ("double", "float"),
            ("float", "decimal(10,2)"),
            ("string", "int"),
            ("string", "date"),
            ("int", "date"),
            ("int", "timestamp"),
            ("date", "timestamp"),
            ("boolean", "string"),
            ("boolean", "int"),
            ("binary", "string"),
            ("string", "binary"),
            ("array<int>", "array<bigint>"),
            ("array<int>", "string"),
            ("struct<a:int>", "struct<a:int,b:int>"),
        ],
    )
    def test_types_do_not_narrow(self, client: ThriftClient, db: str, old: str, new: str) -> None:
        client.create_table(table(db, sd=storage("k:int", f"a:{old}")))
        with refused(
            InvalidOperationException,
            message="The following columns have types incompatible with the existing columns "
            "in their respective positions :\nb",
        ):
            alter(client, db, "t", new_columns("k:int", f"b:{new}"))
        assert specs_of(client.get_table(db, "t").sd.cols) == ["k:int", f"a:{old}"]

    def test_types_of_a_view_are_free(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v", sd=storage("a:string")))
        alter(client, db, "v", new_columns("a:int"))
        assert specs_of(client.get_table(db, "v").sd.cols) == ["a:int"]


class TestCascade:
    @pytest.fixture(autouse=True)
    def partitioned(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("k",), sd=storage("a:int")))
        client.add_partition(partition(db, "t", "1", sd=storage("a:int")))
        client.add_partition(partition(db, "t", "2", sd=storage("other:string")))

    def partition_columns(self, client: ThriftClient, db: str) -> list[list[str]]:
        return [specs_of(p.sd.cols) for p in client.get_partitions(db, "t", -1)]

    def test_partitions_keep_their_columns(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", new_columns("a:int", "b:int"))
        assert self.partition_columns(client, db) == [["a:int"], ["other:string"]]

    def test_with_cascade_they_get_the_table_s(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", new_columns("a:int", "b:int"), CASCADE="true")
        assert self.partition_columns(client, db) == [["a:int", "b:int"], ["a:int", "b:int"]]

    def test_alter_table_with_cascade(self, client: ThriftClient, db: str) -> None:
        new = client.get_table(db, "t")
        new.sd.cols = columns("a:int", "b:int")
        client.alter_table_with_cascade(db, "t", new, False)
        assert self.partition_columns(client, db) == [["a:int"], ["other:string"]]
        new.sd.cols = columns("a:int", "b:int", "c:int")
        client.alter_table_with_cascade(db, "t", new, True)
        assert self.partition_columns(client, db) == [["a:int", "b:int", "c:int"]] * 2

    def test_other_changes_do_not_cascade(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", setting(parameters={"x": "y"}), CASCADE="true")
        assert self.partition_columns(client, db) == [["a:int"], ["other:string"]]


class TestPartitionKeys:
    @pytest.mark.parametrize("keys", [(), ("other",), ("k", "l")])
    def test_names_and_number_stay(self, client: ThriftClient, db: str, keys: tuple[str, ...]) -> None:
        client.create_table(table(db, keys=("k",)))
        with refused(InvalidOperationException, message="partition keys can not be changed."):
            alter(client, db, "t", setting(partitionKeys=columns(*keys)))

    def test_types_and_comments_may_change(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("k",)))
        alter(client, db, "t", setting(partitionKeys=columns("k:int#said")))
        assert client.get_table(db, "t").partitionKeys == columns("k:int#said")


class TestLocation:
    def test_a_new_location_moves_nothing(self, client: ThriftClient, db: str, home: Path, tmp_path: Path) -> None:
        client.create_table(table(db))
        (home / "t" / "file").write_text("data")

        def change(new: Table) -> None:
            new.sd.location = f"{tmp_path}/new/"

        alter(client, db, "t", change)
        assert client.get_table(db, "t").sd.location == f"file:{tmp_path}/new"
        assert (home / "t" / "file").exists()
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("location", [None, ""])
    def test_a_table_without_one_is_refused(self, client: ThriftClient, db: str, location: str | None) -> None:
        client.create_table(table(db))

        def change(new: Table) -> None:
            new.sd.location = location

        with refused(MetaException, InvalidOperationException):
            alter(client, db, "t", change)


class TestRename:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db, parameters={"k": "v"}))
        (home / "t" / "file").write_text("data")

    def test_the_data_of_a_managed_table_moves(self, client: ThriftClient, db: str, home: Path) -> None:
        created = client.get_table(db, "t").createTime
        alter(client, db, "t", setting(tableName="New"))
        assert client.get_all_tables(db) == ["new"]
        renamed = client.get_table(db, "new")
        assert renamed.sd.location == f"file:{home}/new"
        assert (renamed.createTime, renamed.parameters["k"]) == (created, "v")
        assert files_below(home) == ["new/file"]

    def test_to_another_database(
        self, client: ThriftClient, db: str, home: Path, unused_name: str, warehouse: Path
    ) -> None:
        client.create_database(database(unused_name))
        alter(client, db, "t", setting(dbName=unused_name))
        assert client.get_all_tables(db) == []
        moved = client.get_table(unused_name, "t")
        client.drop_database(unused_name, False, True)
        assert moved.sd.location == f"file:{warehouse}/{unused_name}.db/t"
        assert files_below(warehouse / f"{unused_name}.db") == ["t/file"]
        assert not (home / "t").exists()

    def test_the_old_name_is_free(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", setting(tableName="new"))
        with refused(NoSuchObjectException):
            client.get_table(db, "t")
        client.create_table(table(db))
        assert client.get_all_tables(db) == ["new", "t"]

    def test_another_case_is_no_rename(self, client: ThriftClient, db: str, home: Path) -> None:
        alter(client, db, "t", setting(tableName="T", dbName=db.upper()))
        assert client.get_all_tables(db) == ["t"]
        assert files_below(home) == ["t/file"]

    def test_partitions_follow(self, client: ThriftClient, db: str, home: Path, tmp_path: Path) -> None:
        client.create_table(table(db, "p", keys=("k",)))
        client.add_partition(partition(db, "p", "inside"))
        client.add_partition(partition(db, "p", "outside", location=f"{tmp_path}/outside"))
        (home / "p" / "k=inside" / "file").write_text("data")
        alter(client, db, "p", setting(tableName="q"))
        locations = {p.values[0]: p.sd.location for p in client.get_partitions(db, "q", -1)}
        assert locations == {"inside": f"file:{home}/q/k=inside", "outside": f"file:{tmp_path}/outside"}
        assert {p.tableName for p in client.get_partitions(db, "q", -1)} == {"q"}
        assert files_below(home / "q") == ["k=inside/file"]
        assert (tmp_path / "outside").is_dir()

    def test_an_external_table_stays_where_it_is(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(external_table(db, "x"))
        alter(client, db, "x", setting(tableName="y"))
        assert client.get_table(db, "y").sd.location == f"file:{home}/x"
        assert (home / "x").is_dir()

    def test_a_managed_table_outside_its_database_too(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        client.create_table(table(db, "x", sd=storage(location=f"{tmp_path}/x")))
        alter(client, db, "x", setting(tableName="y"))
        assert client.get_table(db, "y").sd.location == f"file:{tmp_path}/x"
        assert (tmp_path / "x").is_dir()

    def test_with_a_new_location_nothing_moves(self, client: ThriftClient, db: str, home: Path, tmp_path: Path) -> None:
        def change(new: Table) -> None:
            new.tableName = "new"
            new.sd.location = f"file:{tmp_path}/elsewhere"

        alter(client, db, "t", change)
        assert client.get_table(db, "new").sd.location == f"file:{tmp_path}/elsewhere"
        assert files_below(home) == ["t/file"]

    def test_a_view(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v"))
        alter(client, db, "v", setting(tableName="w"))
        assert client.get_table(db, "w").sd.location is None

    @pytest.mark.parametrize("name", ["u", "U"])
    def test_onto_a_table_that_exists(self, client: ThriftClient, db: str, home: Path, name: str) -> None:
        client.create_table(table(db, "u"))
        with refused(InvalidOperationException, message="already exists"):
            alter(client, db, "t", setting(tableName=name))
        assert files_below(home) == ["t/file"]

    def test_onto_a_directory_that_exists(self, client: ThriftClient, db: str, home: Path) -> None:
        (home / "busy").mkdir()
        with refused(InvalidOperationException, message="already exists"):
            alter(client, db, "t", setting(tableName="busy"))
        assert client.get_table(db, "t").sd.location == f"file:{home}/t"
        assert files_below(home) == ["t/file"]

    def test_to_a_bad_name(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidOperationException, message="bäd is not a valid object name"):
            alter(client, db, "t", setting(tableName="bäd"))

    def test_to_a_database_that_does_not_exist(self, client: ThriftClient, db: str, home: Path) -> None:
        with refused(InvalidOperationException):
            alter(client, db, "t", setting(dbName="no_such"))
        assert files_below(home) == ["t/file"]


class TestQuickStatistics:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        (home / "t" / "file").write_text("abc")

    def test_are_refreshed(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", setting(parameters={"totalSize": "99", "numRows": "5"}))
        stored = client.get_table(db, "t").parameters
        assert (stored["numFiles"], stored["totalSize"], stored["numRows"]) == ("1", "3", "5")

    def test_unless_the_client_forbids_it(self, client: ThriftClient, db: str) -> None:
        sent = {"totalSize": "99", "numRows": "5", "transient_lastDdlTime": "7"}
        alter(client, db, "t", setting(parameters=sent), DO_NOT_UPDATE_STATS="true")
        assert client.get_table(db, "t").parameters == sent

    def test_not_of_partitioned_tables_and_views(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, "p", keys=("k",)))
        client.create_table(view(db, "v"))
        for name in ("p", "v"):
            alter(client, db, name, setting(parameters={"x": "y"}))
            assert client.get_table(db, name).parameters.keys() == {"x", "transient_lastDdlTime"}


class TestExpectedParameter:
    """How Iceberg commits without locks: the server compares a parameter before it alters."""

    @pytest.fixture(autouse=True)
    def versioned(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters={"version": "1"}))

    def commit(self, client: ThriftClient, db: str, expected: str, new: str | None) -> None:
        parameters = {"EXTERNAL": "FALSE"} if new is None else {"version": new}
        alter(
            client,
            db,
            "t",
            setting(parameters=parameters),
            expected_parameter_key="version",
            expected_parameter_value=expected,
        )

    def test_the_expected_value(self, client: ThriftClient, db: str) -> None:
        self.commit(client, db, "1", "2")
        assert client.get_table(db, "t").parameters["version"] == "2"

    def test_another_value(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="The table has been modified. The parameter value for key"):
            self.commit(client, db, "0", "2")
        assert client.get_table(db, "t").parameters["version"] == "1"

    def test_the_new_table_must_have_the_parameter(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="New value for expected key version is not set"):
            self.commit(client, db, "1", None)
        assert client.get_table(db, "t").parameters["version"] == "1"

    def test_a_key_alone_is_not_checked(self, client: ThriftClient, db: str) -> None:
        alter(client, db, "t", setting(parameters={"version": "2"}), expected_parameter_key="version")
        assert client.get_table(db, "t").parameters["version"] == "2"

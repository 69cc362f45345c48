"""Tables: what create_table checks, makes and stores, and how a table reads back."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    EnvironmentContext,
    FieldSchema,
    GetTableRequest,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from tests.support.builders import columns, external_table, partition, storage, table, view
from tests.support.expect import common, refused

Build = Callable[..., Table]

NOTHING_SKEWED = SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={})


def is_recent(seconds: int) -> bool:
    return abs(time.time() - seconds) < 120


class TestNormalForm:
    """What a client did not send comes back filled, so that clients never meet a null list or map."""

    def test_the_least_a_client_can_send(self, client: ThriftClient, db: str, home: Path) -> None:
        sent = StorageDescriptor(cols=[FieldSchema(name="a", type="string")], serdeInfo=SerDeInfo())
        client.create_table(Table(dbName=db, tableName="t", sd=sent))
        stored = client.get_table(db, "t")
        assert is_recent(stored.createTime)
        assert common(stored) == Table(
            tableName="t",
            dbName=db,
            createTime=stored.createTime,
            lastAccessTime=0,
            retention=0,
            sd=StorageDescriptor(
                cols=[FieldSchema(name="a", type="string")],
                location=f"file:{home}/t",
                compressed=False,
                numBuckets=0,
                serdeInfo=SerDeInfo(parameters={}),
                bucketCols=[],
                sortCols=[],
                parameters={},
                skewedInfo=NOTHING_SKEWED,
                storedAsSubDirectories=False,
            ),
            partitionKeys=[],
            parameters={"transient_lastDdlTime": str(stored.createTime)},
            tableType="MANAGED_TABLE",
            rewriteEnabled=False,
        )

    def test_all_a_client_can_send(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(
            Table(
                tableName="Full",
                dbName=db.upper(),
                owner="alice",
                createTime=5,
                lastAccessTime=7,
                retention=3,
                sd=StorageDescriptor(
                    cols=columns("Id:bigint#the id", "s:struct<A:int>"),
                    inputFormat="in.Format",
                    outputFormat="out.Format",
                    compressed=True,
                    numBuckets=4,
                    serdeInfo=SerDeInfo(name="s", serializationLib="ser.Lib", parameters={"p": "q"}),
                    bucketCols=["Id"],
                    sortCols=[Order(col="Id", order=1)],
                    parameters={"sp": "1"},
                    skewedInfo=SkewedInfo(
                        skewedColNames=["s"], skewedColValues=[["x"], ["y"]], skewedColValueLocationMaps={}
                    ),
                    storedAsSubDirectories=True,
                ),
                partitionKeys=columns("Ds:string#day", "hr:int"),
                parameters={"k": "v", "comment": "c"},
                viewOriginalText="original",
                viewExpandedText="expanded",
                tableType="MANAGED_TABLE",
            )
        )
        stored = client.get_table(db, "full")
        assert is_recent(stored.createTime)
        assert common(stored) == Table(
            tableName="full",
            dbName=db,
            owner="alice",
            createTime=stored.createTime,
            lastAccessTime=7,
            retention=3,
            sd=StorageDescriptor(
                cols=columns("id:bigint#the id", "s:struct<A:int>"),
                location=f"file:{home}/full",
                inputFormat="in.Format",
                outputFormat="out.Format",
                compressed=True,
                numBuckets=4,
                serdeInfo=SerDeInfo(name="s", serializationLib="ser.Lib", parameters={"p": "q"}),
                bucketCols=["Id"],
                sortCols=[Order(col="id", order=1)],
                parameters={"sp": "1"},
                skewedInfo=SkewedInfo(
                    skewedColNames=["s"], skewedColValues=[["x"], ["y"]], skewedColValueLocationMaps={}
                ),
                storedAsSubDirectories=True,
            ),
            partitionKeys=columns("ds:string#day", "hr:int"),
            parameters={"k": "v", "comment": "c", "transient_lastDdlTime": str(stored.createTime)},
            viewOriginalText="original",
            viewExpandedText="expanded",
            tableType="MANAGED_TABLE",
            rewriteEnabled=False,
        )

    def test_a_view_has_neither_location_nor_directory(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(view(db, "v"))
        stored = client.get_table(db, "v")
        assert stored.sd.location is None
        assert stored.tableType == "VIRTUAL_VIEW"
        assert stored.viewOriginalText == "select id from t"
        assert not (home / "v").exists()

    def test_empty_lists_and_maps_come_back_as_sent(self, client: ThriftClient, db: str) -> None:
        client.create_table(
            table(
                db,
                sd=storage(
                    bucketCols=[],
                    sortCols=[],
                    parameters={},
                    skewedInfo=SkewedInfo(),
                    serdeInfo=SerDeInfo(serializationLib="s", parameters={}),
                ),
            )
        )
        stored = client.get_table(db, "t").sd
        assert (stored.bucketCols, stored.sortCols, stored.parameters) == ([], [], {})
        assert stored.skewedInfo == NOTHING_SKEWED
        assert stored.serdeInfo.parameters == {}

    def test_text_of_any_script_and_length(self, client: ThriftClient, db: str) -> None:
        parameters = {"empty": "", "ключ": "ü€𝄞", "long": 5000 * "x"}
        client.create_table(table(db, sd=storage("a:string#größe"), parameters=parameters))
        stored = client.get_table(db, "t")
        assert {key: stored.parameters[key] for key in parameters} == parameters
        assert stored.sd.cols[0].comment == "größe"

    def test_transient_last_ddl_time_is_the_client_s_if_sent(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters={"transient_lastDdlTime": "42"}))
        assert client.get_table(db, "t").parameters["transient_lastDdlTime"] == "42"

    def test_temporary_and_privileges_do_not_come_back(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, temporary=True))
        stored = client.get_table(db, "t")
        assert not stored.temporary
        assert stored.privileges is None


class TestTableType:
    @pytest.mark.parametrize(
        ("sent", "external", "stored"),
        [
            (None, None, "MANAGED_TABLE"),
            ("MANAGED_TABLE", None, "MANAGED_TABLE"),
            ("MANAGED_TABLE", "TRUE", "EXTERNAL_TABLE"),
            ("EXTERNAL_TABLE", "TRUE", "EXTERNAL_TABLE"),
            ("EXTERNAL_TABLE", None, "MANAGED_TABLE"),
            ("EXTERNAL_TABLE", "FALSE", "MANAGED_TABLE"),
            ("MATERIALIZED_VIEW", None, "MATERIALIZED_VIEW"),
        ],
    )
    def test_the_external_parameter_decides(
        self, client: ThriftClient, db: str, sent: str | None, external: str | None, stored: str
    ) -> None:
        parameters = {} if external is None else {"EXTERNAL": external}
        client.create_table(table(db, tableType=sent, parameters=parameters))
        assert client.get_table(db, "t").tableType == stored


class TestLocation:
    def test_managed_tables_live_below_their_database(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db, "T"))
        assert client.get_table(db, "t").sd.location == f"file:{home}/t"
        assert (home / "t").is_dir()

    def test_external_tables_without_location_too(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(external_table(db))
        assert client.get_table(db, "t").sd.location == f"file:{home}/t"
        assert (home / "t").is_dir()

    def test_an_empty_location_is_none(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db, sd=storage(location="")))
        assert client.get_table(db, "t").sd.location == f"file:{home}/t"

    @pytest.mark.parametrize("given", ["{}/x", "file:{}/x", "file://{}/x", "{}/x/"])
    @pytest.mark.parametrize("build", [table, external_table])
    def test_a_given_location_is_normalised_and_made(
        self, client: ThriftClient, db: str, tmp_path: Path, build: Build, given: str
    ) -> None:
        client.create_table(build(db, sd=storage(location=given.format(tmp_path))))
        assert client.get_table(db, "t").sd.location == f"file:{tmp_path}/x"
        assert (tmp_path / "x").is_dir()

    @pytest.mark.parametrize("build", [table, external_table])
    @pytest.mark.parametrize("location", ["relative/path", "nosuchscheme://host/path"])
    def test_an_unusable_location_is_refused(self, client: ThriftClient, db: str, build: Build, location: str) -> None:
        with refused(MetaException):
            client.create_table(build(db, sd=storage(location=location)))
        assert client.get_all_tables(db) == []

    def test_a_file_in_the_way_is_refused(self, client: ThriftClient, db: str, home: Path) -> None:
        (home / "t").write_text("in the way")
        with refused(MetaException, message="is not a directory or unable to create one"):
            client.create_table(table(db))
        assert (home / "t").read_text() == "in the way"

    def test_a_table_may_lie_in_an_existing_directory(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("kept")
        client.create_table(external_table(db, sd=storage(location=str(tmp_path))))
        assert (tmp_path / "file").read_text() == "kept"

    def test_nothing_is_made_for_a_table_that_is_refused(self, client: ThriftClient, db: str, home: Path) -> None:
        with refused(InvalidObjectException):
            client.create_table(table(db, sd=storage("a:nosuchtype")))
        assert not (home / "t").exists()


class TestQuickStatistics:
    def test_a_new_directory_is_not_counted(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        assert client.get_table(db, "t").parameters.keys() == {"transient_lastDdlTime"}

    def test_files_of_an_existing_directory_are_counted(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        (tmp_path / "below").mkdir()
        (tmp_path / "file").write_text("abc")
        (tmp_path / "below" / "file").write_text("defgh")
        (tmp_path / "_SUCCESS").write_text("hidden")
        (tmp_path / ".hidden").write_text("hidden")
        client.create_table(external_table(db, sd=storage(location=str(tmp_path))))
        stored = client.get_table(db, "t").parameters
        assert (stored["numFiles"], stored["totalSize"]) == ("2", "8")

    def test_an_existing_empty_directory_counts_as_nothing(self, client: ThriftClient, db: str, home: Path) -> None:
        (home / "t").mkdir()
        client.create_table(table(db))
        stored = client.get_table(db, "t").parameters
        assert (stored["numFiles"], stored["totalSize"]) == ("0", "0")

    def test_partitioned_tables_are_not_counted(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("abc")
        client.create_table(table(db, keys=("k",), sd=storage(location=str(tmp_path))))
        assert "numFiles" not in client.get_table(db, "t").parameters

    def test_numbers_that_the_client_sends_are_kept_for_a_new_directory(self, client: ThriftClient, db: str) -> None:
        sent = {"numFiles": "9", "totalSize": "10", "numRows": "11", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
        client.create_table(table(db, parameters=sent))
        stored = client.get_table(db, "t").parameters
        assert {key: stored[key] for key in sent} == sent


class TestChecks:
    @pytest.mark.parametrize("name", ["", "ü", "a\\b", "a\tb"])
    def test_the_name(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(InvalidObjectException, message=f"{name} is not a valid object name"):
            client.create_table(table(db, name))

    def test_the_database(self, client: ThriftClient) -> None:
        with refused(InvalidObjectException, NoSuchObjectException, message="no_such"):
            client.create_table(table("no_such"))

    @pytest.mark.parametrize("name", ["t", "T"])
    def test_that_it_does_not_exist(self, client: ThriftClient, db: str, name: str) -> None:
        client.create_table(table(db))
        with refused(AlreadyExistsException, message=f"Table {name} already exists"):
            client.create_table(table(db, name))

    @pytest.mark.parametrize(
        "kind",
        [
            *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal"),
            *("string", "varchar(7)", "char(5)", "date", "timestamp", "binary", "interval_day_time", "void"),
            *("array<int>", "map<string,int>", "struct<a:int,B:array<string>>", "uniontype<int,string>"),
            *("double precision", "timestamp with local time zone", "decimal(10, 2)"),
        ],
    )
    def test_known_types(self, client: ThriftClient, db: str, kind: str) -> None:
        client.create_table(table(db, sd=storage(f"a:{kind}")))
        assert client.get_table(db, "t").sd.cols == [FieldSchema(name="a", type=kind)]

    @pytest.mark.parametrize("kind", ["footype", "INT", " int", "integer", "numeric", "any"])
    def test_unknown_types(self, client: ThriftClient, db: str, kind: str) -> None:
        with refused(InvalidObjectException, message=f"Invalid column type: {kind}"):
            client.create_table(table(db, sd=storage(f"a:{kind}")))

    def test_types_of_partition_keys(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException, message="Invalid partition column type: footype"):
            client.create_table(table(db, keys=("k:footype",)))

    @pytest.mark.parametrize("kind", [None, ""])
    def test_missing_types(self, client: ThriftClient, db: str, kind: str | None) -> None:
        with refused(MetaException, InvalidObjectException):
            client.create_table(table(db, sd=storage(cols=[FieldSchema(name="a", type=kind)])))

    @pytest.mark.parametrize("repeated", ["a", "A"])
    def test_column_names_are_unique(self, client: ThriftClient, db: str, repeated: str) -> None:
        with refused(MetaException, InvalidObjectException):
            client.create_table(table(db, sd=storage("a", repeated)))
        assert client.get_all_tables(db) == []

    def test_column_names_are_free_otherwise(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, sd=storage("a b!", "ü", "1")))
        assert [column.name for column in client.get_table(db, "t").sd.cols] == ["a b!", "ü", "1"]

    def test_skewed_columns_exist(self, client: ThriftClient, db: str) -> None:
        skewed = SkewedInfo(skewedColNames=["zzz"], skewedColValues=[["1"]], skewedColValueLocationMaps={})
        with refused(InvalidObjectException, message="Invalid skew column [zzz]"):
            client.create_table(table(db, sd=storage("a", skewedInfo=skewed)))

    def test_there_is_a_serde(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, InvalidObjectException, message="Invalid SerDeInfo object"):
            client.create_table(table(db, sd=storage(serdeInfo=None)))

    @pytest.mark.parametrize("missing", ["sd", "tableName", "dbName"])
    def test_what_must_be_there(self, client: ThriftClient, db: str, missing: str) -> None:
        broken = table(db)
        setattr(broken, missing, None)
        with refused(MetaException, InvalidObjectException):
            client.create_table(broken)

    def test_no_columns_at_all_is_fine_but_no_list_is_not(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, sd=storage(cols=[])))
        assert client.get_table(db, "t").sd.cols == []
        with refused(MetaException, InvalidObjectException):
            client.create_table(Table(dbName=db, tableName="u", sd=StorageDescriptor(serdeInfo=SerDeInfo())))

    def test_the_name_is_checked_before_the_columns(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException, message="tü is not a valid object name"):
            client.create_table(table(db, "tü", sd=storage("a:footype")))

    def test_the_columns_are_checked_before_database_and_existence(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        with refused(InvalidObjectException, message="Invalid column type: footype"):
            client.create_table(table(db, sd=storage("a:footype")))
        with refused(InvalidObjectException, message="Invalid column type: footype"):
            client.create_table(table("no_such", sd=storage("a:footype")))

    def test_a_name_of_128_is_fine(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, 128 * "t"))
        assert client.get_table(db, 128 * "t").tableName == 128 * "t"


class TestGet:
    def test_any_case(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        assert client.get_table(db.upper(), "T").tableName == "t"

    def test_blanks_around_names(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))
        assert client.get_table(f" {db}", "t ").tableName == "t"

    @pytest.mark.parametrize("name", ["no_such", "No_Such"])
    def test_missing_table(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(NoSuchObjectException, message=f"{db}.{name} table not found"):
            client.get_table(db, name)

    def test_missing_database(self, client: ThriftClient) -> None:
        with refused(NoSuchObjectException, message="no_such.t table not found"):
            client.get_table("no_such", "t")

    def test_as_a_request(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, parameters={"k": "v"}))
        found = client.get_table_req(GetTableRequest(dbName=db, tblName="t"))
        assert common(found.table) == common(client.get_table(db, "t"))
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.get_table_req(GetTableRequest(dbName=db, tblName="no_such"))


def test_create_table_with_environment_context(client: ThriftClient, db: str, home: Path) -> None:
    client.create_table_with_environment_context(table(db), EnvironmentContext(properties={"k": "v"}))
    client.create_table_with_environment_context(table(db, "u"))
    assert client.get_all_tables(db) == ["t", "u"]
    assert (home / "t").is_dir()


class TestDrop:
    def test_a_managed_table_goes_with_its_files(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        (home / "t" / "file").write_text("data")
        client.drop_table(db.upper(), "T", True)
        assert client.get_all_tables(db) == []
        assert not (home / "t").exists()

    def test_wherever_they_are(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        client.create_table(table(db, sd=storage(location=f"{tmp_path}/x")))
        client.drop_table(db, "t", True)
        assert not (tmp_path / "x").exists()

    def test_without_delete_data_the_files_stay(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        (home / "t" / "file").write_text("data")
        client.drop_table(db, "t", False)
        assert client.get_all_tables(db) == []
        assert (home / "t" / "file").read_text() == "data"

    @pytest.mark.parametrize("properties", [{}, {"ifPurge": "TRUE"}])
    def test_files_of_an_external_table_stay(
        self, client: ThriftClient, db: str, tmp_path: Path, properties: dict[str, str]
    ) -> None:
        (tmp_path / "file").write_text("data")
        client.create_table(external_table(db, sd=storage(location=str(tmp_path))))
        client.drop_table_with_environment_context(db, "t", True, EnvironmentContext(properties=properties))
        assert client.get_all_tables(db) == []
        assert (tmp_path / "file").read_text() == "data"

    @pytest.mark.parametrize("parameters", [{}, {"auto.purge": "true"}])
    def test_purge(self, client: ThriftClient, db: str, home: Path, parameters: dict[str, str]) -> None:
        client.create_table(table(db, parameters=parameters))
        (home / "t" / "file").write_text("data")
        context = EnvironmentContext(properties={"ifPurge": "TRUE"})
        client.drop_table_with_environment_context(db, "t", True, context)
        assert not (home / "t").exists()

    def test_a_view(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v"))
        client.drop_table(db, "v", True)
        assert client.get_all_tables(db) == []

    def test_a_directory_that_is_gone_already(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(table(db))
        (home / "t").rmdir()
        client.drop_table(db, "t", True)
        assert client.get_all_tables(db) == []

    def test_partitions_go_too_wherever_they_are(
        self, client: ThriftClient, db: str, home: Path, tmp_path: Path
    ) -> None:
        client.create_table(table(db, keys=("k",)))
        client.add_partition(partition(db, "t", "1"))
        client.add_partition(partition(db, "t", "2", location=f"{tmp_path}/outside"))
        client.drop_table(db, "t", True)
        assert not (home / "t").exists()
        assert not (tmp_path / "outside").exists()

    def test_partitions_of_external_tables_stay(
        self, client: ThriftClient, db: str, home: Path, tmp_path: Path
    ) -> None:
        client.create_table(external_table(db, keys=("k",)))
        client.add_partition(partition(db, "t", "1"))
        client.add_partition(partition(db, "t", "2", location=f"{tmp_path}/outside"))
        client.drop_table(db, "t", True)
        assert (home / "t" / "k=1").is_dir()
        assert (tmp_path / "outside").is_dir()

    def test_the_name_is_free_again(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("k",)))
        client.add_partition(partition(db, "t", "1"))
        client.drop_table(db, "t", True)
        client.create_table(table(db, keys=("k",)))
        assert client.get_partition_names(db, "t", -1) == []

    @pytest.mark.parametrize("missing_in", ["db", "no_such_db"])
    def test_missing(self, client: ThriftClient, db: str, missing_in: str) -> None:
        name = db if missing_in == "db" else missing_in
        with refused(NoSuchObjectException, message=f"{name}.no_such table not found"):
            client.drop_table(name, "no_such", True)

"""`lake_import`: what is kept, what a repetition does, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import (
    Catalog,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    FieldSchema,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    InvalidOperationException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    PrivilegeGrantInfo,
    Role,
    RolePrincipalGrant,
    SQLAllTableConstraints,
    SQLPrimaryKey,
    Table,
)
from lake.protocol.lake import ImportRequest, ImportResponse, ReadEventsRequest
from metastore.migration.importing import sharing_columns
from tests.support import builders
from tests.support.server import MetastoreServer

PLACE = "s3a://old/warehouse"


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as connection:
        yield connection


@pytest.fixture
def db(client: ThriftClient, request: pytest.FixtureRequest) -> str:
    name = f"mi_{abs(hash(request.node.name)) % 1_000_000}"
    client.lake_import(ImportRequest(databases=[builders.database(name, locationUri=f"{PLACE}/{name}", createTime=5)]))
    return name


def table(db: str, name: str = "t", **fields: object) -> Table:
    fields.setdefault("parameters", {"transient_lastDdlTime": "77", "odd ü": ""})
    storage = builders.storage(location=f"{PLACE}/{db}/{name}")
    return builders.table(db, name, sd=storage, keys=("dt",), createTime=11, owner="Ann", **fields)


def partition(db: str, value: str, place: str | None = None, **fields: object) -> Partition:
    fields.setdefault("parameters", {"numFiles": "3"})
    where = place or f"{PLACE}/{db}/t/dt={value}"
    return builders.partition(db, "t", value, location=where, createTime=12, lastAccessTime=13, **fields)


def outcome(answer: ImportResponse) -> tuple[int, int, int]:
    return answer.added, answer.same, len(answer.differences)


def test_all_is_kept_as_it_is_and_a_second_time_changes_nothing(client: ThriftClient, db: str) -> None:
    number = LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2, bitVectors=b"FM\x00")
    statistics = [
        ColumnStatistics(
            ColumnStatisticsDesc(isTblLevel=name is None, dbName=db, tableName="t", partName=name, lastAnalyzed=99),
            [ColumnStatisticsObj("id", "bigint", ColumnStatisticsData(longStats=number))],
            engine="impala",
        )
        for name in (None, "dt=2")
    ]
    info = PrivilegeGrantInfo("SELECT", 123, "boss", PrincipalType.USER, True)
    role, part = f"role_{db}", HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["2"])
    request = ImportRequest(
        functions=[Function("F", db, "a.B", "ann", PrincipalType.USER, 44, FunctionType.JAVA, [])],
        tables=[table(db)],
        partitions=[partition(db, "1"), partition(db, "2", "s3a://elsewhere/x")],
        statistics=statistics,
        constraints=SQLAllTableConstraints(primaryKeys=[SQLPrimaryKey(db, "t", "id", 1, "pk")]),
        roles=[Role(role, 33, "boss")],
        members=[RolePrincipalGrant(role, "ann", PrincipalType.USER, True, 34, "boss", PrincipalType.USER)],
        grants=[
            HiveObjectPrivilege(HiveObjectRef(HiveObjectType.TABLE, db, "t"), role, PrincipalType.ROLE, info),
            HiveObjectPrivilege(part, role, PrincipalType.ROLE, info),
        ],
    )
    before = client.lake_read_events(ReadEventsRequest(after=0)).last
    assert outcome(client.lake_import(request)) == (11, 0, 0)
    assert outcome(client.lake_import(request)) == (0, 11, 0)
    got = client.get_table(db, "t")
    assert (got.createTime, got.owner, got.parameters) == (11, "Ann", {"transient_lastDdlTime": "77", "odd ü": ""})
    assert client.get_database(db).createTime == 5
    one, two = client.get_partitions(db, "t", -1)
    assert (one.createTime, one.lastAccessTime, one.parameters) == (12, 13, {"numFiles": "3"})
    assert (one.sd.location, two.sd.location) == (f"{PLACE}/{db}/t/dt=1", "s3a://elsewhere/x")
    assert client.get_function(db, "f").createTime == 44
    [privilege] = client.list_privileges(None, None, HiveObjectRef(HiveObjectType.TABLE, db, "t"))
    assert privilege.grantInfo == info
    [made] = [each for each in client.list_roles("ann", PrincipalType.USER) if each.roleName == role]
    assert (made.createTime, made.ownerName) == (33, "boss")
    events = client.lake_read_events(ReadEventsRequest(after=before, tables=[f"{db}.*"])).events
    kinds = [each.type for each in events]
    assert kinds == ["CREATE_FUNCTION", "CREATE_TABLE", "ADD_PARTITIONS", "UPDATE_STATISTICS", "ADD_CONSTRAINTS"]


def test_what_differs_stays_until_it_is_to_be_replaced(client: ThriftClient, db: str) -> None:
    client.lake_import(ImportRequest(tables=[table(db)], partitions=[partition(db, "1")]))
    changed = ImportRequest(
        tables=[table(db, parameters={"new": "1"})],
        partitions=[partition(db, "1", "s3a://other/place"), partition(db, "2")],
    )
    answer = client.lake_import(changed)
    assert outcome(answer) == (1, 0, 2)
    assert [(each.kind, each.name, each.replaced) for each in answer.differences] == [
        ("table", f"{db}.t", False),
        ("partition", f"{db}.t dt=1", False),
    ]
    assert "parameters.new: here None, there '1'" in answer.differences[0].difference
    number = client.get_table(db, "t").id
    assert client.get_partition(db, "t", ["1"]).sd.location == f"{PLACE}/{db}/t/dt=1"
    answer = client.lake_import(changed.replace(overwrite=True))
    assert outcome(answer) == (0, 1, 2)
    assert all(each.replaced for each in answer.differences)
    got = client.get_table(db, "t")
    assert (got.id, got.parameters) == (number, {"new": "1"})
    assert client.get_partition(db, "t", ["1"]).sd.location == "s3a://other/place"
    assert outcome(client.lake_import(changed)) == (0, 3, 0)


def test_partitions_share_their_columns(client: ThriftClient, db: str) -> None:
    own = [FieldSchema("other", "int", "their own")]
    some = [partition(db, "1"), partition(db, "2"), partition(db, "3")]
    some[1].sd.cols = own
    wanted = [each.sd.cols for each in some]
    sent, columns, places = sharing_columns(some)
    assert (places, columns) == ([0, 1, 0], [wanted[0], own])
    request = ImportRequest(tables=[table(db)], partitions=sent, columns=columns, columnsOf=places)
    assert outcome(client.lake_import(request)) == (4, 0, 0)
    assert [each.sd.cols for each in client.get_partitions(db, "t", -1)] == wanted
    assert outcome(client.lake_import(request)) == (0, 4, 0)
    for wrong in ([0, 1], [0, 1, 2], [0, 1, -2]):
        with pytest.raises(MetaException, match="columnsOf"):
            client.lake_import(request.replace(columnsOf=wrong))
    with pytest.raises(MetaException, match="without their own"):
        client.lake_import(request.replace(partitions=[partition(db, "4")], columnsOf=[0]))


def test_partitions_stay_where_they_are_if_their_table_is_moved(client: ThriftClient, db: str) -> None:
    client.lake_import(ImportRequest(tables=[table(db)], partitions=[partition(db, "1")]))
    moved = table(db)
    moved.sd.location = "s3a://new/t"
    client.lake_import(ImportRequest(tables=[moved], overwrite=True))
    assert client.get_table(db, "t").sd.location == "s3a://new/t"
    assert client.get_partition(db, "t", ["1"]).sd.location == f"{PLACE}/{db}/t/dt=1"


@pytest.mark.parametrize(
    ("request_of", "error", "text"),
    [
        (lambda db: ImportRequest(tables=[table("no_such_db")]), NoSuchObjectException, "import the databases first"),
        (lambda db: ImportRequest(partitions=[partition(db, "1")]), NoSuchObjectException, "import the tables first"),
        (
            lambda db: ImportRequest(tables=[table(db)], partitions=[partition(db, "1", "cosn://b/x")]),
            MetaException,
            "--location",
        ),
        (
            lambda db: ImportRequest(tables=[table(db)], partitions=[partition(db, "1", "s3a://key:secret@b/x")]),
            MetaException,
            "must not carry a user's name or password",
        ),
        (lambda db: ImportRequest(tables=[table(db)], partitions=[partition(db, "1")] * 2), MetaException, "twice"),
        (
            lambda db: ImportRequest(
                tables=[
                    table(db, parameters={PRIMARY_KEY: "id"}).replace(
                        sd=builders.parquet("id:bigint", location=f"{PLACE}/{db}/t")
                    )
                ]
            ),
            MetaException,
            "primary key",
        ),
        (lambda db: ImportRequest(catalogs=[Catalog("c")]), MetaException, "valid name and a location"),
    ],
)
def test_refused_as_a_whole(client: ThriftClient, db: str, request_of, error, text: str) -> None:
    with pytest.raises(error, match=text):
        client.lake_import(request_of(db))
    assert client.get_all_tables(db) == []


def test_partitions_of_another_table_of_the_same_name_are_refused(client: ThriftClient, db: str) -> None:
    other = builders.table(db, "t", keys=("ds",), sd=builders.storage(location=f"{PLACE}/{db}/other"))
    client.lake_import(ImportRequest(tables=[other]))
    for overwrite in (None, True):
        with pytest.raises(InvalidOperationException, match="other partition keys here"):
            client.lake_import(ImportRequest(tables=[table(db)], partitions=[partition(db, "1")], overwrite=overwrite))
    assert client.get_partition_names(db, "t", -1) == []


def test_nothing_is_brought_past_a_timeline(client: ThriftClient, db: str, tmp_path: Path) -> None:
    sd = builders.parquet("id:bigint", location=f"file:{tmp_path}/t")
    keyed = builders.table(db, "t", keys=("dt",), sd=sd, parameters={PRIMARY_KEY: "id"})
    client.create_table(keyed)
    number = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2))
    of = ColumnStatisticsDesc(isTblLevel=True, dbName=db, tableName="t")
    statistics = [ColumnStatistics(of, [ColumnStatisticsObj("id", "bigint", number)])]
    before = client.get_table(db, "t")
    for request in (ImportRequest(partitions=[partition(db, "1")]), ImportRequest(statistics=statistics)):
        with pytest.raises(InvalidOperationException, match="has a timeline here"):
            client.lake_import(request.replace(overwrite=True))
    same = table(db).replace(createTime=before.createTime)
    answer = client.lake_import(ImportRequest(tables=[same], overwrite=True))
    assert [(each.kind, each.replaced) for each in answer.differences] == [("table", False)]
    assert client.get_table(db, "t") == before


def test_no_directory_is_made_and_none_is_deleted(client: ThriftClient, db: str, tmp_path: Path) -> None:
    place = tmp_path / "old" / "t"
    new = table(db)
    new.sd.location = f"file:{place}"
    client.lake_import(ImportRequest(tables=[new], partitions=[partition(db, "1", f"file:{place}/dt=1")]))
    assert not place.exists()
    (place / "dt=1").mkdir(parents=True)
    (place / "dt=1" / "rows").write_text("x")
    client.drop_table(db, "t", True)
    assert (place / "dt=1" / "rows").exists()


def test_a_hidden_partition_stays_hidden(client: ThriftClient, db: str) -> None:
    parameters = {"commit": "false", "commit.opened": "123"}
    ready = {"commit": "true", "commit.time": "456"}
    client.lake_import(
        ImportRequest(
            tables=[table(db)],
            partitions=[partition(db, "1", parameters=parameters), partition(db, "2", parameters=ready)],
        )
    )
    assert client.get_partition_names(db, "t", -1) == ["dt=2"]
    assert client.get_partition_names(db, "t@includeuncommit", -1) == ["dt=1", "dt=2"]
    assert client.get_partition(db, "t@includeuncommit", ["1"]).parameters == parameters
    assert client.get_partition(db, "t", ["2"]).parameters == ready


def test_the_default_database_becomes_that_of_the_other_metastore(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as server, ThriftClient(server.host, server.port) as own:
        other = builders.database(
            "default", description="Default Hive database", locationUri=PLACE, ownerName="public", ownerType=2
        )
        assert outcome(own.lake_import(ImportRequest(databases=[other]))) == (1, 0, 0)
        assert own.get_database("default").locationUri == PLACE
        assert outcome(own.lake_import(ImportRequest(databases=[other]))) == (0, 1, 0)
        other.locationUri = "s3a://third/place"
        assert outcome(own.lake_import(ImportRequest(databases=[other]))) in {(1, 0, 0), (0, 0, 1)}


def test_a_missing_write_id_is_told_in_several_ways(client: ThriftClient, db: str) -> None:
    client.lake_import(ImportRequest(tables=[table(db)]))
    for told in (0, -1, None):
        found = client.lake_import(ImportRequest(partitions=[partition(db, "1", writeId=told)]))
        assert (found.added, found.differences) == (int(told == 0), [])

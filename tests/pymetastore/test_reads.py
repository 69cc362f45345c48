"""pymetastore reads what another client wrote: an independent client, with generated types of its own."""

from collections.abc import Iterator

import pytest
from pymetastore.hive_metastore.ttypes import NoSuchObjectException
from pymetastore.htypes import (
    HCharType,
    HDecimalType,
    HListType,
    HMapType,
    HPrimitiveType,
    HStructType,
    HVarcharType,
    PrimitiveCategory,
)
from pymetastore.metastore import HMS, HPartition, HPrincipalType, HSortingColumn, HTable
from pymetastore.stats import DecimalTypeStats, LongTypeStats, StringTypeStats

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Decimal,
    DecimalColumnStatsData,
    LongColumnStatsData,
    Order,
    PrincipalType,
    SerDeInfo,
    StringColumnStatsData,
)
from tests.support import builders
from tests.support.server import MetastoreServer

DB = "pymetastore"
COLUMNS = {
    "id": ("bigint", HPrimitiveType(PrimitiveCategory.LONG)),
    "name": ("string", HPrimitiveType(PrimitiveCategory.STRING)),
    "small": ("smallint", HPrimitiveType(PrimitiveCategory.SHORT)),
    "price": ("decimal(10,2)", HDecimalType(10, 2)),
    "code": ("varchar(5)", HVarcharType(5)),
    "flag": ("char(1)", HCharType(1)),
    "at": ("timestamp", HPrimitiveType(PrimitiveCategory.TIMESTAMP)),
    "tags": ("array<string>", HListType(HPrimitiveType(PrimitiveCategory.STRING))),
    "counts": (
        "map<string,int>",
        HMapType(HPrimitiveType(PrimitiveCategory.STRING), HPrimitiveType(PrimitiveCategory.INT)),
    ),
    "place": (
        "struct<city:string,path:array<double>>",
        HStructType(
            ["city", "path"],
            [HPrimitiveType(PrimitiveCategory.STRING), HListType(HPrimitiveType(PrimitiveCategory.DOUBLE))],
        ),
    ),
}


@pytest.fixture(scope="module")
def written(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    """A database with a table that has six partitions, one without any, and a view."""
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(
            builders.database(
                DB, description="for reading", ownerName="ann", ownerType=PrincipalType.USER, parameters={"a": "1"}
            )
        )
        columns = [f"{name}:{kind}#about {name}" for name, (kind, _) in COLUMNS.items()]
        sd = builders.storage(
            *columns, inputFormat="in", outputFormat="out", bucketCols=["id"], numBuckets=4, sortCols=[Order("id", 1)]
        )
        client.create_table(
            builders.table(DB, "parted", keys=("ds:date", "hr:int"), sd=sd, owner="bob", parameters={"k": "v"})
        )
        client.add_partitions(
            [
                builders.partition(
                    *(DB, "parted", day, hour),
                    sd=builders.storage(*columns, inputFormat="in", outputFormat="out"),
                    parameters={"hour": hour},
                )
                for day in ("2024-01-01", "2024-01-02")
                for hour in ("1", "2", "3")
            ]
        )
        client.create_table(
            builders.table(DB, "whole", sd=builders.storage("id:bigint", inputFormat="in", outputFormat="out"))
        )
        described = builders.storage("id:bigint", inputFormat="in", outputFormat="out", serdeInfo=SerDeInfo())
        client.create_table(builders.view(DB, "seen", sd=described))
        yield client


@pytest.fixture
def hms(metastore_server: MetastoreServer, written: ThriftClient) -> Iterator[HMS]:
    with HMS.create(metastore_server.host, metastore_server.port) as hms:
        yield hms


def test_databases(hms: HMS) -> None:
    assert {"default", DB} <= set(hms.list_databases())
    database = hms.get_database(DB)
    assert database.name == DB
    assert database.comment == "for reading"
    assert (database.owner_name, database.owner_type) == ("ann", HPrincipalType.USER)
    assert database.parameters == {"a": "1"}
    assert database.location is not None and database.location.endswith(f"/{DB}.db")
    assert hms.get_database("default").owner_type is HPrincipalType.ROLE


def test_tables(hms: HMS) -> None:
    assert hms.list_tables(DB) == ["parted", "seen", "whole"]
    assert hms.list_columns(DB, "parted") == list(COLUMNS)


def test_table(hms: HMS) -> None:
    table = hms.get_table(DB, "parted")
    assert isinstance(table, HTable)
    assert (table.database_name, table.name, table.owner) == (DB, "parted", "bob")
    assert table.table_type == "MANAGED_TABLE"
    assert {column.name: column.type for column in table.columns} == {name: kind for name, (_, kind) in COLUMNS.items()}
    assert [column.comment for column in table.columns] == [f"about {name}" for name in COLUMNS]
    assert [column.name for column in table.partition_columns] == ["ds", "hr"]
    assert table.parameters["k"] == "v"
    storage = table.storage
    assert storage.location is not None and storage.location.endswith(f"/{DB}.db/parted")
    assert storage.storage_format.serde == builders.SERDE
    assert (storage.storage_format.input_format, storage.storage_format.output_format) == ("in", "out")
    assert storage.bucket_property is not None
    assert storage.bucket_property.bucketed_by == ["id"]
    assert storage.bucket_property.bucket_count == 4
    assert storage.bucket_property.sorting_columns == [HSortingColumn("id", 1)]


def test_table_without_partitions(hms: HMS) -> None:
    assert hms.get_table(DB, "whole").partition_columns == []
    assert hms.list_partitions(DB, "whole") == []


def test_view(hms: HMS) -> None:
    view = hms.get_table(DB, "seen")
    assert view.table_type == "VIRTUAL_VIEW"
    assert view.view_original_text == "select id from t"
    assert view.storage.storage_format.serde is None


def test_partition_names(hms: HMS) -> None:
    names = [f"ds=2024-01-0{day}/hr={hour}" for day in (1, 2) for hour in (1, 2, 3)]
    assert hms.list_partitions(DB, "parted") == names
    assert hms.list_partitions(DB, "parted", 2) == names[:2]


def test_partitions(hms: HMS) -> None:
    found = hms.get_partitions(DB, "parted")
    assert [partition.values for partition in found] == [
        [f"2024-01-0{day}", str(hour)] for day in (1, 2) for hour in (1, 2, 3)
    ]
    assert len(hms.get_partitions(DB, "parted", 4)) == 4
    for partition in found:
        _is_whole(partition)


def test_partition(hms: HMS) -> None:
    partition = hms.get_partition(DB, "parted", "ds=2024-01-02/hr=3")
    assert partition.values == ["2024-01-02", "3"]
    _is_whole(partition)


def _is_whole(partition: HPartition) -> None:
    assert (partition.cat_name, partition.database_name, partition.table_name) == ("hive", DB, "parted")
    assert partition.parameters["hour"] == partition.values[1]
    assert partition.create_time > 0
    assert partition.sd.storage_format.serde == builders.SERDE
    assert partition.sd.storage_format.input_format == "in"
    assert partition.sd.location is not None
    assert partition.sd.location.endswith("/parted/ds={}/hr={}".format(*partition.values))


def test_statistics(hms: HMS, written: ThriftClient) -> None:
    low, high = Decimal(scale=2, unscaled=b"\x01"), Decimal(scale=2, unscaled=b"\x7f\xff")
    data = {
        "id": ("bigint", ColumnStatisticsData(longStats=LongColumnStatsData(-5, 900, 3, 77))),
        "name": ("string", ColumnStatisticsData(stringStats=StringColumnStatsData(40, 12.5, 1, 60))),
        "price": ("decimal(10,2)", ColumnStatisticsData(decimalStats=DecimalColumnStatsData(low, high, 0, 9))),
    }
    written.update_table_column_statistics(
        ColumnStatistics(
            statsDesc=ColumnStatisticsDesc(isTblLevel=True, dbName=DB, tableName="parted"),
            statsObj=[ColumnStatisticsObj(name, kind, value) for name, (kind, value) in data.items()],
        )
    )
    table = hms.get_table(DB, "parted")
    wanted = [column for column in table.columns if column.name in data]
    found = {each.columnName: each for each in hms.get_table_stats(table, wanted)}
    assert found.keys() == data.keys()
    assert all((each.dbName, each.tableName, each.isTblLevel) == (DB, "parted", True) for each in found.values())
    assert found["id"].stats == LongTypeStats(lowValue=-5, highValue=900, numNulls=3, cardinality=77)
    assert found["name"].stats == StringTypeStats(maxColLen=40, avgColLen=12.5, numNulls=1, cardinality=60)
    price = found["price"].stats
    assert isinstance(price, DecimalTypeStats)
    assert (price.lowValue.unscaled, price.highValue.unscaled, price.highValue.scale) == (b"\x01", b"\x7f\xff", 2)


def test_missing(hms: HMS) -> None:
    with pytest.raises(NoSuchObjectException):
        hms.get_database("nowhere")
    with pytest.raises(NoSuchObjectException):
        hms.get_table(DB, "nothing")
    with pytest.raises(NoSuchObjectException):
        hms.get_partition(DB, "parted", "ds=2024-01-02/hr=9")
    assert hms.list_tables("nowhere") == []

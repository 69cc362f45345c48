"""Column statistics through Hive's Java client."""

import pytest

from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    LongColumnStatsData,
    NoSuchObjectException,
    SetPartitionsStatsRequest,
    StringColumnStatsData,
)
from tests.hive_client.conftest import HiveClient, JavaFailure
from tests.support.builders import partition, table


def numbers(low: int, high: int, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsObj:
    data = LongColumnStatsData(lowValue=low, highValue=high, numNulls=nulls, numDVs=distinct)
    return ColumnStatisticsObj("id", "bigint", ColumnStatisticsData(longStats=data))


def texts(longest: int, average: float, nulls: int = 0, distinct: int = 1) -> ColumnStatisticsObj:
    data = StringColumnStatsData(maxColLen=longest, avgColLen=average, numNulls=nulls, numDVs=distinct)
    return ColumnStatisticsObj("name", "string", ColumnStatisticsData(stringStats=data))


def of_table(db: str, *objects: ColumnStatisticsObj) -> ColumnStatistics:
    return ColumnStatistics(ColumnStatisticsDesc(True, db, "t"), list(objects))


def of_partition(db: str, name: str, *objects: ColumnStatisticsObj) -> ColumnStatistics:
    return ColumnStatistics(ColumnStatisticsDesc(False, db, "p", name), list(objects))


@pytest.fixture(autouse=True)
def filled(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "t"))
    client.createTable(table(db, "p", keys=("ds",)))
    client.add_partitions([partition(db, "p", "a"), partition(db, "p", "b"), partition(db, "p", "c")])


def test_of_a_table(client: HiveClient, db: str) -> None:
    assert client.updateTableColumnStatistics(of_table(db, numbers(1, 5, 2, 4), texts(9, 3.5))) is True
    assert client.getTableColumnStatistics(db, "t", ["id"]) == [numbers(1, 5, 2, 4)]
    found = client.getTableColumnStatistics(db, "t", ["name", "id", "nosuch"])
    assert sorted(each.colName for each in found) == ["id", "name"]
    assert '"COLUMN_STATS":{"id":"true","name":"true"}' in client.getTable(db, "t").parameters["COLUMN_STATS_ACCURATE"]

    client.updateTableColumnStatistics(of_table(db, numbers(0, 7)))
    assert client.getTableColumnStatistics(db, "t", ["id"]) == [numbers(0, 7)]

    assert client.deleteTableColumnStatistics(db, "t", "id") is True
    assert client.getTableColumnStatistics(db, "t", ["id"]) == []
    assert client.getTableColumnStatistics(db, "t", ["name"]) == [texts(9, 3.5)]
    with pytest.raises(NoSuchObjectException):
        client.deleteTableColumnStatistics(db, "t", "id")


def test_of_partitions(client: HiveClient, db: str) -> None:
    client.updatePartitionColumnStatistics(of_partition(db, "ds=a", numbers(1, 5), texts(9, 3.5)))
    client.updatePartitionColumnStatistics(of_partition(db, "ds=b", numbers(2, 6)))
    found = client.getPartitionColumnStatistics(db, "p", ["ds=a", "ds=b", "ds=c"], ["id", "name"])
    assert found.keys() == {"ds=a", "ds=b"}
    assert sorted(found["ds=a"], key=lambda each: each.colName) == [numbers(1, 5), texts(9, 3.5)]
    assert found["ds=b"] == [numbers(2, 6)]

    assert client.deletePartitionColumnStatistics(db, "p", "ds=a", None) is True
    assert client.getPartitionColumnStatistics(db, "p", ["ds=a"], ["id", "name"]) == {}
    with pytest.raises(NoSuchObjectException):
        client.updatePartitionColumnStatistics(of_partition(db, "ds=nosuch", numbers(1, 2)))


def test_of_many_at_once(client: HiveClient, db: str) -> None:
    both = [of_partition(db, "ds=a", numbers(1, 5)), of_partition(db, "ds=b", numbers(2, 6))]
    assert client.setPartitionColumnStatistics(SetPartitionsStatsRequest(both)) is True
    found = client.getPartitionColumnStatistics(db, "p", ["ds=a", "ds=b"], ["id"])
    assert found == {"ds=a": [numbers(1, 5)], "ds=b": [numbers(2, 6)]}


def test_aggregate(client: HiveClient, db: str) -> None:
    client.updatePartitionColumnStatistics(of_partition(db, "ds=a", numbers(1, 5, 2, 4), texts(9, 3.5)))
    client.updatePartitionColumnStatistics(of_partition(db, "ds=b", numbers(0, 4, 1, 3), texts(7, 4.5)))
    aggregate = client.getAggrColStatsFor(db, "p", ["id", "name"], ["ds=a", "ds=b"])
    assert aggregate.partsFound == 2
    assert sorted(aggregate.colStats, key=lambda each: each.colName) == [numbers(0, 5, 3, 4), texts(9, 4.5)]


def test_renaming_keeps_them_and_dropping_a_column_drops_its(client: HiveClient, db: str) -> None:
    client.updateTableColumnStatistics(of_table(db, numbers(1, 5), texts(9, 3.5)))
    changed = client.getTable(db, "t")
    changed.tableName = "renamed"
    client.alter_table(db, "t", changed)
    assert client.getTableColumnStatistics(db, "renamed", ["id"]) == [numbers(1, 5)]
    changed.sd.cols = changed.sd.cols[:1]
    changed.sd.location = client.getTable(db, "renamed").sd.location
    client.alter_table(db, "renamed", changed)
    assert [each.colName for each in client.getTableColumnStatistics(db, "renamed", ["id", "name"])] == ["id"]


def test_missing_table(client: HiveClient, db: str) -> None:
    with pytest.raises(NoSuchObjectException):
        client.getTableColumnStatistics(db, "no_such_table", ["id"])
    with pytest.raises((NoSuchObjectException, JavaFailure)):
        client.getAggrColStatsFor(db, "no_such_table", ["id"], ["ds=a"])

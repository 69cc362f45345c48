"""Column statistics that travel with tables and partitions, as Hive 4's clients send and ask for them."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateTableRequest,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    LongColumnStatsData,
    MetaException,
    Table,
)
from tests.support.builders import partition, table
from tests.support.expect import refused

pytestmark = pytest.mark.hive4


def statistics(db: str, nulls: int, part: str | None = None, column: str = "id") -> ColumnStatistics:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(1, 9, nulls, 5))
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=part is None, dbName=db, tableName="t", partName=part),
        statsObj=[ColumnStatisticsObj(column, "bigint", data)],
        engine="hive",
    )


def nulls(kept: ColumnStatistics | None) -> dict[str, int]:
    return {each.colName: each.statsData.longStats.numNulls for each in kept.statsObj} if kept else {}


def get(client: ThriftClient, db: str, *, with_statistics: bool = True) -> Table:
    return client.get_table_req(GetTableRequest(db, "t", getColumnStats=with_statistics, engine="hive")).table


class TestTables:
    @pytest.mark.parametrize("how", ["create_table", "create_table_req", "create_table_with_constraints"])
    def test_kept_and_returned(self, client: ThriftClient, db: str, how: str) -> None:
        new = table(db, colStats=statistics(db, 7))
        client.call(how, CreateTableRequest(new) if how == "create_table_req" else new)
        assert nulls(get(client, db).colStats) == {"id": 7}
        assert get(client, db, with_statistics=False).colStats is None

    def test_those_that_are_not_accurate_are_not_returned(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, colStats=statistics(db, 7)))
        changed = get(client, db, with_statistics=False)
        del changed.parameters["COLUMN_STATS_ACCURATE"]
        client.alter_table(db, "t", changed)
        assert get(client, db).colStats is None

    def test_of_another_column(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="Column zz doesn't exist in table t"):
            client.create_table(table(db, colStats=statistics(db, 7, column="zz")))
        assert get(client, db).colStats is None


class TestPartitions:
    def test_kept_and_returned(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, keys=("k",)))
        new = [partition(db, "t", value, colStats=statistics(db, int(value), f"k={value}")) for value in "12"]
        client.add_partitions_req(AddPartitionsRequest(db, "t", [*new, partition(db, "t", "3")], False))
        client.add_partitions([partition(db, "t", "4", colStats=statistics(db, 4, "k=4"))])
        names = [f"k={value}" for value in "1234"]
        request = GetPartitionsByNamesRequest(db, "t", names, get_col_stats=True, engine="hive")
        found = client.get_partitions_by_names_req(request).partitions
        assert [nulls(each.colStats) for each in found] == [{"id": 1}, {"id": 2}, {}, {"id": 4}]
        assert [each.colStats for each in client.get_partitions_by_names(db, "t", names)] == [None] * 4

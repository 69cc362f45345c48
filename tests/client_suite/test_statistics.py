"""Column statistics of tables and partitions, and their aggregates."""

import json
import time

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    InvalidObjectException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    StringColumnStatsData,
    TableStatsRequest,
)
from tests.support.builders import columns, partition, storage, table
from tests.support.expect import UNDECLARED, refused
from tests.support.target import Target


def statistics(kind: str, **numbers: object) -> ColumnStatisticsData:
    """Statistics of one of the kinds boolean, long, double, string, binary, decimal, date."""
    classes = {
        "boolean": BooleanColumnStatsData,
        "long": LongColumnStatsData,
        "double": DoubleColumnStatsData,
        "string": StringColumnStatsData,
        "binary": BinaryColumnStatsData,
        "decimal": DecimalColumnStatsData,
        "date": DateColumnStatsData,
    }
    return ColumnStatisticsData(**{f"{kind}Stats": classes[kind](**numbers)})


def decimal(unscaled: bytes, scale: int) -> Decimal:
    return Decimal(unscaled=unscaled, scale=scale)


# Column: its type, and statistics of it.
SAMPLES = {
    "bo": ("boolean", statistics("boolean", numTrues=3, numFalses=4, numNulls=5)),
    "lo": ("bigint", statistics("long", lowValue=-5, highValue=10, numNulls=2, numDVs=7)),
    "ti": ("int", statistics("long", numNulls=2, numDVs=7)),
    "fl": ("double", statistics("double", lowValue=-1.5, highValue=2.5, numNulls=1, numDVs=3)),
    "st": ("string", statistics("string", maxColLen=10, avgColLen=4.5, numNulls=1, numDVs=3)),
    "bi": ("binary", statistics("binary", maxColLen=10, avgColLen=4.5, numNulls=1)),
    "de": (
        "decimal(10,2)",
        statistics(
            "decimal", lowValue=decimal(b"\x30\x39", 2), highValue=decimal(b"\x7f\xff", 2), numNulls=1, numDVs=3
        ),
    ),
    "da": (
        "date",
        statistics(
            "date", lowValue=Date(daysSinceEpoch=-100), highValue=Date(daysSinceEpoch=200), numNulls=1, numDVs=3
        ),
    ),
}
COLUMNS = [f"{name}:{kind}" for name, (kind, _) in SAMPLES.items()]


def of_column(name: str, data: ColumnStatisticsData | None = None) -> ColumnStatisticsObj:
    kind, sample = SAMPLES[name.lower()]
    return ColumnStatisticsObj(colName=name, colType=kind, statsData=data or sample)


def of_table(db: str, *objects: ColumnStatisticsObj, name: str = "t") -> ColumnStatistics:
    description = ColumnStatisticsDesc(isTblLevel=True, dbName=db, tableName=name)
    return ColumnStatistics(statsDesc=description, statsObj=list(objects))


def of_partition(db: str, part: str | None, *objects: ColumnStatisticsObj, name: str = "p") -> ColumnStatistics:
    description = ColumnStatisticsDesc(isTblLevel=False, dbName=db, tableName=name, partName=part)
    return ColumnStatistics(statsDesc=description, statsObj=list(objects))


def plain(objects: list[ColumnStatisticsObj]) -> dict[str, ColumnStatisticsData]:
    """Column to its statistics, without bit vectors (a server may make up for missing ones)."""
    for each in objects:
        for field in each.statsData.field_names():
            if hasattr(data := getattr(each.statsData, field), "bitVectors"):
                data.bitVectors = None
    return {each.colName: each.statsData for each in objects}


@pytest.fixture(autouse=True)
def tables(client: ThriftClient, db: str) -> None:
    """Table `t`, and table `p` with partitions k=1, k=2 and k=3; a column of every type in both."""
    client.create_table(table(db, sd=storage(*COLUMNS)))
    client.create_table(table(db, "p", keys=("k",), sd=storage(*COLUMNS)))
    client.add_partitions([partition(db, "p", value, sd=storage(*COLUMNS)) for value in "123"])


class TestTables:
    @pytest.mark.parametrize("column", SAMPLES)
    def test_read_back_as_written(self, client: ThriftClient, db: str, column: str) -> None:
        assert client.update_table_column_statistics(of_table(db, of_column(column))) is True
        found = client.get_table_column_statistics(db, "t", column)
        assert plain(found.statsObj) == {column: SAMPLES[column][1]}
        assert found.statsObj[0].colType == SAMPLES[column][0]
        description = found.statsDesc
        assert (description.isTblLevel, description.dbName, description.tableName) == (True, db, "t")
        assert abs(time.time() - description.lastAnalyzed) < 120

    def test_names_in_any_case(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db.upper(), of_column("LO"), name="T"))
        assert plain(client.get_table_column_statistics(db.upper(), "T", "Lo").statsObj) == {"lo": SAMPLES["lo"][1]}

    def test_an_update_replaces(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, of_column("lo"), of_column("st")))
        new = statistics("long", lowValue=1, highValue=2, numNulls=3, numDVs=4)
        client.update_table_column_statistics(of_table(db, of_column("lo", new)))
        assert plain(client.get_table_column_statistics(db, "t", "lo").statsObj) == {"lo": new}
        assert plain(client.get_table_column_statistics(db, "t", "st").statsObj) == {"st": SAMPLES["st"][1]}

    def test_an_update_says_so_in_the_parameters(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, of_column("lo"), of_column("st")))
        accurate = json.loads(client.get_table(db, "t").parameters["COLUMN_STATS_ACCURATE"])
        assert accurate == {"COLUMN_STATS": {"lo": "true", "st": "true"}}

    def test_several_columns_in_one_request(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, *map(of_column, SAMPLES)))
        request = TableStatsRequest(dbName=db, tblName="t", colNames=["lo", "ST", "nosuch"])
        found = plain(client.get_table_statistics_req(request).tableStats)
        assert found == {"lo": SAMPLES["lo"][1], "st": SAMPLES["st"][1]}

    def test_no_columns(self, client: ThriftClient, db: str) -> None:
        request = TableStatsRequest(dbName=db, tblName="t", colNames=[])
        assert client.get_table_statistics_req(request).tableStats == []

    def test_a_column_without_statistics(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, UNDECLARED):
            client.get_table_column_statistics(db, "t", "lo")
        request = TableStatsRequest(dbName=db, tblName="t", colNames=["lo"])
        assert client.get_table_statistics_req(request).tableStats == []

    def test_an_unknown_column(self, client: ThriftClient, db: str) -> None:
        unknown = ColumnStatisticsObj(colName="nosuch", colType="int", statsData=SAMPLES["ti"][1])
        with refused(MetaException, message=f"Column nosuch doesn't exist in table t in database {db}"):
            client.update_table_column_statistics(of_table(db, unknown))

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        message = f"Specified database/table does not exist : {db}.no_such"
        with refused(NoSuchObjectException, message=message):
            client.update_table_column_statistics(of_table(db, of_column("lo"), name="no_such"))
        with refused(NoSuchObjectException, message=message):
            client.get_table_column_statistics(db, "no_such", "lo")
        with refused(NoSuchObjectException, message=message):
            client.get_table_statistics_req(TableStatsRequest(dbName=db, tblName="no_such", colNames=["lo"]))

    def test_delete_one(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, of_column("lo"), of_column("st")))
        assert client.delete_table_column_statistics(db, "t", "LO") is True
        request = TableStatsRequest(dbName=db, tblName="t", colNames=["lo", "st"])
        assert plain(client.get_table_statistics_req(request).tableStats).keys() == {"st"}
        with refused(NoSuchObjectException):
            client.delete_table_column_statistics(db, "t", "lo")

    def test_delete_all(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, of_column("lo"), of_column("st")))
        assert client.delete_table_column_statistics(db, "t", None) is True
        request = TableStatsRequest(dbName=db, tblName="t", colNames=["lo", "st"])
        assert client.get_table_statistics_req(request).tableStats == []

    def test_delete_in_a_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.delete_table_column_statistics(db, "no_such", "lo")


class TestFollowTheTable:
    @pytest.fixture(autouse=True)
    def written(self, client: ThriftClient, db: str) -> None:
        client.update_table_column_statistics(of_table(db, of_column("bo"), of_column("ti"), of_column("st")))

    def columns_with_statistics(self, client: ThriftClient, db: str, name: str = "t") -> set[str]:
        request = TableStatsRequest(dbName=db, tblName=name, colNames=[*SAMPLES, "renamed"])
        return set(plain(client.get_table_statistics_req(request).tableStats))

    def alter(self, client: ThriftClient, db: str, specs: list[str]) -> None:
        new = client.get_table(db, "t")
        new.sd.cols = columns(*specs)
        client.alter_table(db, "t", new)

    def test_a_renamed_table_keeps_them(self, client: ThriftClient, db: str) -> None:
        new = client.get_table(db, "t")
        new.tableName = "u"
        client.alter_table(db, "t", new)
        assert self.columns_with_statistics(client, db, "u") == {"bo", "ti", "st"}

    def test_a_changed_type_loses_them(self, client: ThriftClient, db: str) -> None:
        self.alter(client, db, [spec.replace("ti:int", "ti:bigint") for spec in COLUMNS])
        assert self.columns_with_statistics(client, db) == {"bo", "st"}

    def test_a_renamed_column_loses_them(self, client: ThriftClient, db: str) -> None:
        self.alter(client, db, [spec.replace("ti:int", "renamed:int") for spec in COLUMNS])
        assert self.columns_with_statistics(client, db) == {"bo", "st"}

    def test_a_dropped_column_loses_them(self, client: ThriftClient, db: str) -> None:
        self.alter(client, db, COLUMNS[:4])
        assert self.columns_with_statistics(client, db) == {"bo", "ti"}

    def test_an_added_column_costs_nothing(self, client: ThriftClient, db: str) -> None:
        self.alter(client, db, [*COLUMNS, "added:int"])
        assert self.columns_with_statistics(client, db) == {"bo", "ti", "st"}

    def test_a_dropped_table_takes_them_along(self, client: ThriftClient, db: str) -> None:
        client.drop_table(db, "t", True)
        client.create_table(table(db, sd=storage(*COLUMNS)))
        assert self.columns_with_statistics(client, db) == set()


class TestPartitions:
    def of(self, client: ThriftClient, db: str, names: list[str], parts: list[str]) -> dict[str, dict]:
        request = PartitionsStatsRequest(dbName=db, tblName="p", colNames=names, partNames=parts)
        found = client.get_partitions_statistics_req(request).partStats
        return {part: plain(objects) for part, objects in found.items()}

    @pytest.mark.parametrize("column", SAMPLES)
    def test_read_back_as_written(self, client: ThriftClient, db: str, column: str) -> None:
        assert client.update_partition_column_statistics(of_partition(db, "k=1", of_column(column))) is True
        found = client.get_partition_column_statistics(db, "p", "k=1", column)
        assert plain(found.statsObj) == {column: SAMPLES[column][1]}
        description = found.statsDesc
        assert (description.isTblLevel, description.dbName, description.tableName) == (False, db, "p")
        assert description.partName == "k=1"
        assert abs(time.time() - description.lastAnalyzed) < 120

    def test_an_update_says_so_in_the_parameters(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", of_column("lo")))
        accurate = json.loads(client.get_partition(db, "p", ["1"]).parameters["COLUMN_STATS_ACCURATE"])
        assert accurate == {"COLUMN_STATS": {"lo": "true"}}

    def test_several_partitions_in_one_request(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", of_column("lo"), of_column("st")))
        client.update_partition_column_statistics(of_partition(db, "k=2", of_column("lo")))
        assert self.of(client, db, ["LO", "st", "nosuch"], ["k=1", "k=2", "k=3", "k=9"]) == {
            "k=1": {"lo": SAMPLES["lo"][1], "st": SAMPLES["st"][1]},
            "k=2": {"lo": SAMPLES["lo"][1]},
        }

    def test_of_a_partition_key(self, client: ThriftClient, target: Target, db: str) -> None:
        if target.name == "hive":
            pytest.skip("Hive 2.3 loses its transaction over them")
        key = ColumnStatisticsObj(colName="k", colType="string", statsData=SAMPLES["st"][1])
        assert client.update_partition_column_statistics(of_partition(db, "k=1", key)) is True
        assert self.of(client, db, ["k"], ["k=1"]) == {"k=1": plain([key])}

    def test_no_columns_or_no_partitions(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", of_column("lo")))
        assert self.of(client, db, [], ["k=1"]) == {}
        assert self.of(client, db, ["lo"], []) == {}

    def test_none_there(self, client: ThriftClient, db: str) -> None:
        for part in ("k=1", "k=9"):
            with refused(NoSuchObjectException, UNDECLARED):
                client.get_partition_column_statistics(db, "p", part, "lo")

    def test_missing_partition(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.update_partition_column_statistics(of_partition(db, "k=9", of_column("lo")))
        with refused(MetaException, message="Partition name is invalid."):
            client.update_partition_column_statistics(of_partition(db, None, of_column("lo")))

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, InvalidObjectException):
            client.update_partition_column_statistics(of_partition(db, "k=1", of_column("lo"), name="no_such"))
        with refused(NoSuchObjectException):
            client.get_partition_column_statistics(db, "no_such", "k=1", "lo")

    def test_delete(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", *map(of_column, ("lo", "st", "bo"))))
        assert client.delete_partition_column_statistics(db, "p", "k=1", "lo") is True
        assert self.of(client, db, ["lo", "st", "bo"], ["k=1"])["k=1"].keys() == {"st", "bo"}
        assert client.delete_partition_column_statistics(db, "p", "k=1", None) is True
        assert self.of(client, db, ["st", "bo"], ["k=1"]) == {}
        with refused(NoSuchObjectException):
            client.delete_partition_column_statistics(db, "p", "k=1", "lo")
        with refused(NoSuchObjectException):
            client.delete_partition_column_statistics(db, "p", "k=9", "lo")

    def test_a_dropped_partition_takes_them_along(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", of_column("lo")))
        client.drop_partition(db, "p", ["1"], True)
        client.add_partition(partition(db, "p", "1"))
        assert self.of(client, db, ["lo"], ["k=1"]) == {}


class TestSetMany:
    def test_of_partitions(self, client: ThriftClient, db: str) -> None:
        first = of_partition(db, "k=1", of_column("lo"), of_column("st"))
        second = of_partition(db, "k=2", of_column("lo"))
        assert client.set_aggr_stats_for(SetPartitionsStatsRequest(colStats=[first, second])) is True
        wanted = PartitionsStatsRequest(dbName=db, tblName="p", colNames=["lo", "st"], partNames=["k=1", "k=2"])
        found = client.get_partitions_statistics_req(wanted).partStats
        assert {part: plain(objects).keys() for part, objects in found.items()} == {
            "k=1": {"lo", "st"},
            "k=2": {"lo"},
        }

    def test_of_a_table(self, client: ThriftClient, db: str) -> None:
        assert client.set_aggr_stats_for(SetPartitionsStatsRequest(colStats=[of_table(db, of_column("lo"))])) is True
        assert plain(client.get_table_column_statistics(db, "t", "lo").statsObj) == {"lo": SAMPLES["lo"][1]}

    def test_of_a_table_only_once(self, client: ThriftClient, db: str) -> None:
        twice = [of_table(db, of_column("lo")), of_table(db, of_column("st"))]
        with refused(MetaException, message="Expecting only 1 ColumnStatistics for table's column stats, but find 2"):
            client.set_aggr_stats_for(SetPartitionsStatsRequest(colStats=twice))

    def test_none(self, client: ThriftClient) -> None:
        assert client.set_aggr_stats_for(SetPartitionsStatsRequest(colStats=[])) is True

    def test_missing_partition(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.set_aggr_stats_for(SetPartitionsStatsRequest(colStats=[of_partition(db, "k=9", of_column("lo"))]))


class TestAggregate:
    @pytest.fixture(autouse=True)
    def written(self, client: ThriftClient, db: str) -> None:
        client.update_partition_column_statistics(of_partition(db, "k=1", *map(of_column, SAMPLES)))
        others = {
            "bo": statistics("boolean", numTrues=1, numFalses=1, numNulls=1),
            "lo": statistics("long", lowValue=1, highValue=100, numNulls=3, numDVs=20),
            "fl": statistics("double", lowValue=0.5, highValue=9.5, numNulls=1, numDVs=30),
            "st": statistics("string", maxColLen=20, avgColLen=8.5, numNulls=2, numDVs=9),
            "bi": statistics("binary", maxColLen=20, avgColLen=1.5, numNulls=1),
            "da": statistics(
                "date", lowValue=Date(daysSinceEpoch=1), highValue=Date(daysSinceEpoch=300), numNulls=1, numDVs=3
            ),
        }
        objects = [of_column(name, data) for name, data in others.items()]
        client.update_partition_column_statistics(of_partition(db, "k=2", *objects))

    def aggregate(self, client: ThriftClient, db: str, names: list[str], parts: list[str]) -> tuple[dict, int]:
        request = PartitionsStatsRequest(dbName=db, tblName="p", colNames=names, partNames=parts)
        found = client.get_aggr_stats_for(request)
        return plain(found.colStats), found.partsFound

    @pytest.mark.parametrize(
        ("column", "both"),
        [
            ("bo", statistics("boolean", numTrues=4, numFalses=5, numNulls=6)),
            ("lo", statistics("long", lowValue=-5, highValue=100, numNulls=5, numDVs=20)),
            ("fl", statistics("double", lowValue=-1.5, highValue=9.5, numNulls=2, numDVs=30)),
            ("st", statistics("string", maxColLen=20, avgColLen=8.5, numNulls=3, numDVs=9)),
            ("bi", statistics("binary", maxColLen=20, avgColLen=4.5, numNulls=2)),
            (
                "da",
                statistics(
                    "date",
                    lowValue=Date(daysSinceEpoch=-100),
                    highValue=Date(daysSinceEpoch=300),
                    numNulls=2,
                    numDVs=3,
                ),
            ),
        ],
    )
    def test_of_two_partitions(self, client: ThriftClient, db: str, column: str, both: ColumnStatisticsData) -> None:
        assert self.aggregate(client, db, [column.upper()], ["k=1", "k=2"]) == ({column: both}, 2)

    def test_counts_the_partitions_that_have_statistics(self, client: ThriftClient, db: str) -> None:
        assert self.aggregate(client, db, ["bo"], ["k=1", "k=2", "k=3"])[1] == 2

    def test_of_one_partition(self, client: ThriftClient, db: str) -> None:
        expected = {"lo": SAMPLES["lo"][1], "st": SAMPLES["st"][1]}
        assert self.aggregate(client, db, ["lo", "st"], ["k=1"]) == (expected, 1)

    @pytest.mark.parametrize(("names", "parts"), [(["lo"], ["k=9"]), (["lo"], ["k=3"]), ([], ["k=1"]), (["lo"], [])])
    def test_of_nothing(self, client: ThriftClient, db: str, names: list[str], parts: list[str]) -> None:
        assert self.aggregate(client, db, names, parts) == ({}, 0)

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        request = PartitionsStatsRequest(dbName=db, tblName="no_such", colNames=["lo"], partNames=["k=1"])
        with refused(NoSuchObjectException):
            client.get_aggr_stats_for(request)

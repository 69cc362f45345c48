"""Generated calls on column statistics of table `t` and of table `p` with partitions k=1, k=2."""

from hypothesis import strategies as st

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
    LongColumnStatsData,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    StringColumnStatsData,
    TableStatsRequest,
)
from tests.parity.calls import Call, Script
from tests.parity.values import FLAGS, Strategy, call, mostly, struct
from tests.support.builders import database, partition, storage, table

TYPES = {
    "bo": "boolean",
    "lo": "bigint",
    "fl": "double",
    "st": "string",
    "bi": "binary",
    "de": "decimal(10,2)",
    "da": "date",
}
COLUMNS = tuple(f"{name}:{kind}" for name, kind in TYPES.items())
SETUP: Script = [
    Call("create_database", database("N_a")),
    Call("create_table", table("N_a", "t", sd=storage(*COLUMNS))),
    Call("create_table", table("N_a", "p", keys=("k:int",), sd=storage(*COLUMNS))),
    Call("add_partitions", [partition("N_a", "p", value, sd=storage(*COLUMNS)) for value in ("1", "2", "3")]),
]

INTEGERS = st.sampled_from([0, 1, 2, 3, 10, -1, -5, 2**31, 2**63 - 1, -(2**63)])
COUNTS = st.sampled_from([0, 1, 2, 3, 10, 1000, -1])
DOUBLES = st.sampled_from([0.0, 1.5, -1.5, 1e300, -0.0, 4.25])
DECIMALS = st.builds(
    lambda unscaled, scale: Decimal(unscaled=unscaled, scale=scale),
    st.sampled_from([b"\x01", b"\x30\x39", b"\xff", b"\x00\x80"]),
    st.sampled_from([0, 2]),
)
DATES = st.sampled_from([0, 1, -100, 18262]).map(lambda days: Date(daysSinceEpoch=days))


def maybe(strategy: Strategy) -> Strategy:
    return st.one_of(strategy, strategy, strategy, st.none())


DATA: dict[str, Strategy] = {
    "booleanStats": struct(BooleanColumnStatsData, numTrues=COUNTS, numFalses=COUNTS, numNulls=COUNTS),
    "longStats": struct(
        LongColumnStatsData, lowValue=maybe(INTEGERS), highValue=maybe(INTEGERS), numNulls=COUNTS, numDVs=COUNTS
    ),
    "doubleStats": struct(
        DoubleColumnStatsData, lowValue=maybe(DOUBLES), highValue=maybe(DOUBLES), numNulls=COUNTS, numDVs=COUNTS
    ),
    "stringStats": struct(StringColumnStatsData, maxColLen=COUNTS, avgColLen=DOUBLES, numNulls=COUNTS, numDVs=COUNTS),
    "binaryStats": struct(BinaryColumnStatsData, maxColLen=COUNTS, avgColLen=DOUBLES, numNulls=COUNTS),
    "decimalStats": struct(
        DecimalColumnStatsData, lowValue=maybe(DECIMALS), highValue=maybe(DECIMALS), numNulls=COUNTS, numDVs=COUNTS
    ),
    "dateStats": struct(
        DateColumnStatsData, lowValue=maybe(DATES), highValue=maybe(DATES), numNulls=COUNTS, numDVs=COUNTS
    ),
}
FITTING = dict(zip(TYPES, DATA, strict=True))
KIND_OF_TYPE = {TYPES[name]: kind for name, kind in FITTING.items()}


@st.composite
def of_column(draw: st.DrawFn) -> ColumnStatisticsObj:
    name = draw(st.sampled_from(sorted(TYPES)))
    kind = FITTING[name]
    if draw(st.integers(0, 15)) == 15:
        kind = draw(st.sampled_from(sorted(DATA)))
    shown = draw(mostly(name, odd=(name.upper(), "nosuch", "")))
    return ColumnStatisticsObj(
        colName=shown, colType=TYPES[name], statsData=ColumnStatisticsData(**{kind: draw(DATA[kind])})
    )


TABLES = mostly("t", odd=("T", "p", "nosuch", ""))
PARTITIONED = mostly("p", odd=("P", "t", "nosuch"))
PARTITION_NAMES = mostly("k=1", "k=2", odd=("k=3", "k=9", "", None, "K=1", "nosuch", "k=1/x=1"))
COLUMN_NAMES = mostly(*TYPES, odd=("LO", "nosuch", "", None))
DB = mostly("N_a", odd=("N_A", "N_nosuch"))


def of_table() -> Strategy:
    description = struct(
        ColumnStatisticsDesc,
        isTblLevel=mostly(True, odd=(False,)),
        dbName=DB,
        tableName=TABLES,
        lastAnalyzed=st.sampled_from([None, 0, 5]),
    )
    return struct(
        ColumnStatistics,
        statsDesc=description,
        statsObj=st.lists(of_column(), max_size=3, unique_by=lambda each: each.colName.lower()),
    )


def of_partition() -> Strategy:
    description = struct(
        ColumnStatisticsDesc,
        isTblLevel=mostly(False, odd=(True,)),
        dbName=DB,
        tableName=PARTITIONED,
        partName=PARTITION_NAMES,
        lastAnalyzed=st.sampled_from([None, 0, 5]),
    )
    return struct(
        ColumnStatistics,
        statsDesc=description,
        statsObj=st.lists(of_column(), max_size=3, unique_by=lambda each: each.colName.lower()),
    )


def statistics_calls() -> Strategy:
    names = st.lists(COLUMN_NAMES.filter(lambda name: name is not None), max_size=3)
    parts = st.lists(PARTITION_NAMES.filter(lambda name: name is not None), max_size=3)
    several = st.lists(st.one_of(of_partition(), of_partition(), of_table()), min_size=1, max_size=2)
    return st.one_of(
        call("update_table_column_statistics", of_table()),
        call("update_table_column_statistics", of_table()),
        call("update_partition_column_statistics", of_partition()),
        call("update_partition_column_statistics", of_partition()),
        call(
            "set_aggr_stats_for",
            struct(SetPartitionsStatsRequest, colStats=several, needMerge=st.sampled_from([None, False, True])),
        ),
        call("get_table_column_statistics", DB, TABLES, COLUMN_NAMES),
        call("get_partition_column_statistics", DB, PARTITIONED, PARTITION_NAMES, COLUMN_NAMES),
        call("get_table_statistics_req", struct(TableStatsRequest, dbName=DB, tblName=TABLES, colNames=names)),
        call(
            "get_partitions_statistics_req",
            struct(PartitionsStatsRequest, dbName=DB, tblName=PARTITIONED, colNames=names, partNames=parts),
        ),
        call(
            "get_aggr_stats_for",
            struct(PartitionsStatsRequest, dbName=DB, tblName=PARTITIONED, colNames=names, partNames=parts),
        ),
        call("delete_table_column_statistics", DB, TABLES, COLUMN_NAMES),
        call("delete_partition_column_statistics", DB, PARTITIONED, PARTITION_NAMES, COLUMN_NAMES),
        call("drop_partition_by_name", st.just("N_a"), PARTITIONED, PARTITION_NAMES, FLAGS),
        call(
            "rename_partition",
            st.just("N_a"),
            st.just("p"),
            st.sampled_from([["1"], ["2"]]),
            st.sampled_from(["4", "1"]).map(lambda v: partition("N_a", "p", v, sd=storage(*COLUMNS))),
        ),
        call(
            "alter_table",
            st.just("N_a"),
            mostly("t", "p"),
            st.sampled_from(
                [
                    table("N_a", "t", sd=storage(*COLUMNS[:3], location="WAREHOUSE/N_a.db/t")),
                    table("N_a", "t", sd=storage("lo:string", location="WAREHOUSE/N_a.db/t")),
                    table("N_a", "p", keys=("k:int",), sd=storage(*COLUMNS[2:], location="WAREHOUSE/N_a.db/p")),
                    table("N_a", "t2", sd=storage(*COLUMNS)),
                ]
            ),
        ),
    )


LAST_READS: Script = [
    Call("get_table_statistics_req", TableStatsRequest(dbName="N_a", tblName="t", colNames=list(TYPES))),
    Call(
        "get_partitions_statistics_req",
        PartitionsStatsRequest(dbName="N_a", tblName="p", colNames=list(TYPES), partNames=["k=1", "k=2", "k=3", "k=4"]),
    ),
    Call(
        "get_aggr_stats_for",
        PartitionsStatsRequest(dbName="N_a", tblName="p", colNames=list(TYPES), partNames=["k=1", "k=2", "k=3", "k=4"]),
    ),
]

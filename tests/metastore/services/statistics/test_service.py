"""The statistics service on a real Postgres: what Hive does, and what must hold under concurrency."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import func, select, update

from lake.protocol.codec import binary
from lake.protocol.hive import (
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    FieldSchema,
    InvalidInputException,
    InvalidObjectException,
    LongColumnStatsData,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    SerDeInfo,
    SetPartitionsStatsRequest,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
    TableStatsRequest,
    Timestamp,
    TimestampColumnStatsData,
)
from metastore.api import statistics as api
from metastore.api.methods import Call
from metastore.api.session import Session
from metastore.services.access.caller import Caller
from metastore.services.model.visibility import Scope
from metastore.services.statistics import kept_statistics
from metastore.services.statistics.column_values import as_of_2_3, kind_of
from metastore.services.statistics.hyperloglog import HyperLogLog
from metastore.services.statistics.service import Merging, StatisticsService
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store import DatabaseUnavailable, schema
from tests.support.postgres import Postgres

COLUMNS = {
    "flag": ("boolean", ColumnStatisticsData(booleanStats=BooleanColumnStatsData(3, 4, 1))),
    "i": ("int", ColumnStatisticsData(longStats=LongColumnStatsData(1, 10, 2, 5))),
    "l": ("bigint", ColumnStatisticsData(longStats=LongColumnStatsData(-(2**63), 2**63 - 1, 0, 9))),
    "d": ("double", ColumnStatisticsData(doubleStats=DoubleColumnStatsData(1.5, 9.5, 2, 5))),
    "s": ("string", ColumnStatisticsData(stringStats=StringColumnStatsData(10, 2.5, 1, 7))),
    "v": ("varchar(10)", ColumnStatisticsData(stringStats=StringColumnStatsData(10, 2.5, 1, 7))),
    "bin": ("binary", ColumnStatisticsData(binaryStats=BinaryColumnStatsData(10, 2.5, 1))),
    "dec": (
        "decimal(10,2)",
        ColumnStatisticsData(decimalStats=DecimalColumnStatsData(Decimal(b"d", 2), Decimal(b"09", 2), 1, 3)),
    ),
    "dt": ("date", ColumnStatisticsData(dateStats=DateColumnStatsData(Date(100), Date(200), 1, 3))),
    "ts": (
        "timestamp",
        ColumnStatisticsData(timestampStats=TimestampColumnStatsData(Timestamp(1000), Timestamp(2000), 1, 3)),
    ),
    "arr": ("array<int>", None),
}
KEY = "COLUMN_STATS_ACCURATE"


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    directory = tmp_path_factory.mktemp("statistics")
    with postgres.fresh_database(upgraded=True) as url:
        opened = Metastore.open(
            Settings(data_dir=directory, warehouse_dir=str(directory / "warehouse"), database_url=url)
        )
        yield opened
        opened.close()


@pytest.fixture
def statistics(metastore: Metastore) -> StatisticsService:
    return metastore.statistics


@pytest.fixture
def db(metastore: Metastore, tmp_path: Path) -> Iterator[str]:
    """A database with a plain table `t`, and `p`, partitioned by day and hour, with hours 1 to 4."""
    name = tmp_path.name.lower().replace("-", "_")
    metastore.databases.create(Database(name=name))
    metastore.tables.create(Table(tableName="t", dbName=name, sd=descriptor()), {})
    keys = [FieldSchema("day", "string"), FieldSchema("hr", "int")]
    metastore.tables.create(Table(tableName="p", dbName=name, sd=descriptor(), partitionKeys=keys), {})
    hours = [Partition(["a/b", str(hour)], name, "p", sd=descriptor()) for hour in range(1, 5)]
    metastore.partitions.add(name, "p", hours, {})
    yield name
    metastore.databases.drop(name, delete_data=True, cascade=True)


def descriptor() -> StorageDescriptor:
    columns = [FieldSchema(name, type_) for name, (type_, _) in COLUMNS.items()]
    return StorageDescriptor(cols=columns, serdeInfo=SerDeInfo())


def hour(number: int) -> str:
    return f"day=a%2Fb/hr={number}"


def column(name: str, **changes: Any) -> ColumnStatisticsObj:
    """Statistics of a column as in COLUMNS, with some values changed."""
    type_, value = COLUMNS[name]
    assert value is not None
    kind, data = next((n, d) for n in value.field_names() if (d := getattr(value, n)) is not None)
    return ColumnStatisticsObj(name, type_, ColumnStatisticsData(**{kind: data.replace(**changes)}))


def of(db: str, table: str, *columns: ColumnStatisticsObj, partition: str | None = None) -> ColumnStatistics:
    description = ColumnStatisticsDesc(partition is None, db, table, partition)
    return ColumnStatistics(statsDesc=description, statsObj=list(columns))


def values(answer: ColumnStatistics | None) -> dict[str, Any]:
    """The data of an answer, by column."""
    columns = (answer and answer.statsObj) or []
    return {c.colName: next(d for n in c.statsData.field_names() if (d := getattr(c.statsData, n))) for c in columns}


def state(metastore: Metastore, db: str, table: str, hour: str | None = None) -> str | None:
    """What a table, or an hour of one, says of its statistics."""
    owner: Table | Partition = metastore.tables.get(db, table)
    if hour is not None:
        owner = metastore.partition_reads.get(Scope.READY, db, table, ["a/b", hour])
    return (owner.parameters or {}).get(KEY)


# --- tables ---------------------------------------------------------------------------------------------------


def test_every_kind_is_given_back(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    given = [column(name) for name, (_, value) in COLUMNS.items() if value is not None]
    before = int(time.time())
    upper = [c.replace(colName=c.colName.upper(), colType=c.colType.upper()) for c in given]
    statistics.update_table(of(db.upper(), "T", *upper))
    answer = statistics.of_table(db.upper(), "T", [name.upper() for name in COLUMNS])
    assert answer is not None and answer.statsDesc is not None
    assert answer.statsObj == given
    assert answer.engine == "hive"
    description = answer.statsDesc
    assert before <= (description.lastAnalyzed or 0) <= time.time()
    assert description == ColumnStatisticsDesc(True, db, "t", None, description.lastAnalyzed, "hive")


def test_columns_come_in_the_order_asked_for(statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("i"), column("s"), column("d")))
    answer = statistics.of_table(db, "t", ["s", "arr", "nope", "D", "i", "s"])
    assert list(values(answer)) == ["s", "d", "i"]
    assert statistics.of_table(db, "t", ["arr"]) is None
    assert statistics.of_table(db, "t", []) is None


def test_updated_columns_count_as_accurate(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("s"), column("i")))
    assert state(metastore, db, "t") == '{"COLUMN_STATS":{"i":"true","s":"true"}}'
    statistics.update_table(of(db, "t", column("d")))
    assert state(metastore, db, "t") == '{"COLUMN_STATS":{"d":"true","i":"true","s":"true"}}'


def test_an_update_replaces_all_but_bounds_that_are_missing(statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("i"), column("s")))
    statistics.update_table(of(db, "t", column("i", lowValue=None, highValue=12, numNulls=9, numDVs=1)))
    assert values(statistics.of_table(db, "t", ["i"])) == {"i": LongColumnStatsData(1, 12, 9, 1)}
    assert values(statistics.of_table(db, "t", ["s"])) == {"s": StringColumnStatsData(10, 2.5, 1, 7)}


def test_an_unknown_column_changes_nothing(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    with pytest.raises(MetaException, match=f"Column zz doesn't exist in table t in database {db}"):
        statistics.update_table(of(db, "t", column("i"), column("s").replace(colName="ZZ")))
    assert statistics.of_table(db, "t", ["i"]) is None
    assert state(metastore, db, "t") is None
    with pytest.raises(MetaException, match="Column day doesn't exist in table p"):
        statistics.update_table(of(db, "p", column("i").replace(colName="day")))


def test_a_missing_table(statistics: StatisticsService, db: str) -> None:
    missing = f"Specified database/table does not exist : {db}.nope"
    for call in (
        lambda: statistics.update_table(of(db, "Nope", column("i"))),
        lambda: statistics.of_table(db, "Nope", ["i"]),
        lambda: statistics.of_partitions(Scope.READY, db, "Nope", [hour(1)], ["i"]),
        lambda: statistics.aggregated(Scope.READY, db, "Nope", [hour(1)], ["i"]),
    ):
        with pytest.raises(NoSuchObjectException, match=missing):
            call()
    with pytest.raises(InvalidObjectException, match=f"{db}.nope table not found"):
        statistics.update_partitions([of(db, "Nope", column("i"), partition=hour(1))])
    with pytest.raises(NoSuchObjectException, match="for which stats deletion is requested doesn't exist"):
        statistics.delete_of_table(db, "nope", None)
    with pytest.raises(InvalidObjectException, match=f"{db}.nope table not found"):
        statistics.delete_of_partition(db, "nope", hour(1), None)


def test_statistics_without_data_are_refused(statistics: StatisticsService, db: str) -> None:
    for wrong in (ColumnStatisticsData(), None):
        with pytest.raises(InvalidObjectException, match="Invalid column stats object"):
            statistics.update_table(of(db, "t", ColumnStatisticsObj("i", "int", wrong)))
    with pytest.raises(InvalidObjectException, match="Invalid column stats object"):
        statistics.update_table(ColumnStatistics(statsObj=[column("i")]))


def test_what_this_server_does_not_know_survives(statistics: StatisticsService, db: str) -> None:
    given = column("i")
    unknown = b"\x0b\x00\x07\x00\x00\x00\x04\xff\x00ab"  # a field 7, as later versions may have
    given.statsData.longStats.unknown = unknown
    given.unknown = given.statsData.unknown = b""  # as the decoder marks what contains it
    sent = binary.decode_preserving(ColumnStatisticsObj, binary.encode(given))
    statistics.update_table(of(db, "t", sent))
    answer = statistics.of_table(db, "t", ["i"])
    assert answer is not None and answer.statsObj is not None
    assert answer.statsObj[0].statsData.longStats.unknown == unknown


def test_a_change_gives_the_table_a_new_version(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    def version(table: str) -> int:
        with metastore.database.read() as tx:
            return metastore.tables.row(tx, db, table).version

    for table, change in (
        ("t", lambda: statistics.update_table(of(db, "t", column("i")))),
        ("t", lambda: statistics.delete_of_table(db, "t", "i")),
        ("p", lambda: statistics.update_partitions([of(db, "p", column("i"), partition=hour(1))])),
        ("p", lambda: statistics.delete_of_partition(db, "p", hour(1), "i")),
    ):
        before = version(table)
        change()
        assert version(table) > before


def test_each_engine_has_its_own(statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("i", numDVs=1)))
    statistics.update_table(of(db, "t", column("i", numDVs=2)).replace(engine="impala"))
    statistics.update_table(of(db, "t", column("i", numDVs=3)), engine="spark")
    for engine, distinct in ((None, 1), ("hive", 1), ("impala", 2), ("spark", 3)):
        assert values(statistics.of_table(db, "t", ["i"], engine))["i"].numDVs == distinct
    statistics.delete_of_table(db, "t", "i", "impala")
    assert statistics.of_table(db, "t", ["i"], "impala") is None
    assert statistics.of_table(db, "t", ["i"]) is not None
    statistics.delete_of_table(db, "t", "i")
    assert statistics.of_table(db, "t", ["i"], "spark") is None


def test_deleting(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("i"), column("s"), column("d")))
    statistics.delete_of_table(db.upper(), "T", "I")
    assert list(values(statistics.of_table(db, "t", ["i", "s", "d"]))) == ["s", "d"]
    assert state(metastore, db, "t") == '{"COLUMN_STATS":{"d":"true","s":"true"}}'
    for column_name in ("I", "zz", ""):
        with pytest.raises(NoSuchObjectException, match="Column stats doesn't exist for db="):
            statistics.delete_of_table(db, "t", column_name)
    statistics.delete_of_table(db, "t", None)
    assert statistics.of_table(db, "t", ["i", "s", "d"]) is None
    assert state(metastore, db, "t") == "{}"
    statistics.delete_of_table(db, "t", None)
    with pytest.raises(InvalidInputException):
        statistics.delete_of_table(db, None, None)


# --- partitions -----------------------------------------------------------------------------------------------


def test_partitions_statistics(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    statistics.update_partitions([of(db, "p", column("i"), column("s"), partition="HR=1/DAY=a%2Fb")])
    found = statistics.of_partitions(Scope.READY, db, "p", [hour(2), "Day=a%2Fb/Hr=1", hour(9), "bla"], ["S", "i"])
    assert list(found) == [hour(1)]
    assert list(values(found[hour(1)])) == ["s", "i"]
    description = found[hour(1)].statsDesc
    assert description is not None
    assert description == ColumnStatisticsDesc(False, db, "p", hour(1), description.lastAnalyzed, "hive")
    assert state(metastore, db, "p", "1") == '{"COLUMN_STATS":{"i":"true","s":"true"}}'
    assert state(metastore, db, "p", "2") is None
    assert state(metastore, db, "p") is None
    assert statistics.of_table(db, "p", ["i"]) is None


@pytest.mark.parametrize(
    ("partition", "exception", "message"),
    [
        (hour(9), NoSuchObjectException, "Partition for which stats is gathered doesn't exist."),
        ("hr=1", InvalidObjectException, "incomplete partition name - missing day"),
        ("bla", MetaException, "Partition name is invalid."),
        ("", MetaException, "Partition name is invalid."),
        (None, MetaException, "Partition name is invalid."),
    ],
)
def test_a_bad_partition_keeps_out_the_good_ones(
    statistics: StatisticsService, db: str, partition: str | None, exception: type[Exception], message: str
) -> None:
    good = of(db, "p", column("i"), partition=hour(1))
    bad = of(db, "p", column("i"), partition=hour(1))
    assert bad.statsDesc is not None
    bad.statsDesc.partName = partition
    with pytest.raises(exception, match=message):
        statistics.update_partitions([good, bad])
    assert statistics.of_partitions(Scope.READY, db, "p", [hour(1)], ["i"]) == {}


def test_partition_changes_that_cannot_be(statistics: StatisticsService, db: str) -> None:
    with pytest.raises(MetaException, match="Column zz doesn't exist in table p"):
        statistics.update_partitions([of(db, "p", column("i").replace(colName="zz"), partition=hour(1))])
    with pytest.raises(MetaException, match="Invalid partition key & values"):
        statistics.update_partitions([of(db, "t", column("i"), partition=hour(1))])
    with pytest.raises(MetaException, match="2 tables"):
        statistics.update_partitions(
            [of(db, "p", column("i"), partition=hour(1)), of(db, "t", column("i"), partition=hour(1))]
        )


def test_reading_partitions_by_bad_names(statistics: StatisticsService, db: str) -> None:
    statistics.update_partitions([of(db, "p", column("i"), partition=hour(1))])
    assert statistics.of_partitions(Scope.READY, db, "p", ["hr=1", "bla", "day=a%2Fb"], ["i"]) == {}
    assert statistics.of_partitions(Scope.READY, db, "t", [hour(1)], ["i"]) == {}
    with pytest.raises(MetaException, match="Partition name is invalid"):
        statistics.of_partitions(Scope.READY, db, "p", [hour(1), ""], ["i"])


def test_deleting_of_partitions(metastore: Metastore, statistics: StatisticsService, db: str) -> None:
    for number in (1, 2):
        statistics.update_partitions([of(db, "p", column("i"), column("s"), partition=hour(number))])
    statistics.delete_of_partition(db.upper(), "P", "DAY=a%2Fb/HR=1", "I")
    assert list(values(statistics.of_partitions(Scope.READY, db, "p", [hour(1)], ["i", "s"])[hour(1)])) == ["s"]
    assert state(metastore, db, "p", "1") == '{"COLUMN_STATS":{"s":"true"}}'
    with pytest.raises(NoSuchObjectException, match=f"Column stats doesn't exist for db={db} table=p partition="):
        statistics.delete_of_partition(db, "p", hour(1), "i")
    with pytest.raises(NoSuchObjectException, match="for which stats deletion is requested doesn't exist"):
        statistics.delete_of_partition(db, "p", hour(9), "i")
    with pytest.raises(InvalidObjectException, match="incomplete partition name - missing day"):
        statistics.delete_of_partition(db, "p", "hr=1", "i")
    statistics.delete_of_partition(db, "p", hour(1), None)
    statistics.delete_of_partition(db, "p", hour(1), None)
    assert list(statistics.of_partitions(Scope.READY, db, "p", [hour(1), hour(2)], ["i", "s"])) == [hour(2)]


def kept_rows(metastore: Metastore) -> int:
    with metastore.database.read() as tx:
        return tx.execute(select(func.count()).select_from(schema.statistics.column_statistics)).scalar_one()


def test_statistics_follow_their_partition_and_go_with_it(
    metastore: Metastore, statistics: StatisticsService, db: str
) -> None:
    before = kept_rows(metastore)
    for number in (1, 2):
        statistics.update_partitions([of(db, "p", column("i"), partition=hour(number))])
    renamed = metastore.partition_reads.get(Scope.READY, db, "p", ["a/b", "1"]).replace(values=["c", "7"])
    metastore.partitions.rename(db, "p", ["a/b", "1"], renamed, {})
    assert list(statistics.of_partitions(Scope.READY, db, "p", [hour(1), "day=c/hr=7"], ["i"])) == ["day=c/hr=7"]
    metastore.partitions.drop(db, "p", values=["c", "7"], delete_data=True)
    assert kept_rows(metastore) == before + 1
    metastore.tables.drop(db, "p", delete_data=True)
    assert kept_rows(metastore) == before


def test_uncommitted_partitions_are_hidden_from_readers_only(
    metastore: Metastore, statistics: StatisticsService, db: str
) -> None:
    with metastore.database.write() as tx:
        hidden = schema.partition.partitions.c.name == hour(1)
        tx.execute(update(schema.partition.partitions).where(hidden).values(ready=False))
    both = [of(db, "p", column("i"), partition=hour(1)), of(db, "p", column("i", highValue=70), partition=hour(2))]
    statistics.update_partitions(both)
    assert list(statistics.of_partitions(Scope.READY, db, "p", [hour(1), hour(2)], ["i"])) == [hour(2)]
    answer = statistics.aggregated(Scope.READY, db, "p", [hour(1), hour(2)], ["i"])
    assert answer.partsFound == 1
    with metastore.database.write() as tx:
        tx.execute(update(schema.partition.partitions).where(hidden).values(ready=True))
    assert list(statistics.of_partitions(Scope.READY, db, "p", [hour(1), hour(2)], ["i"])) == [hour(1), hour(2)]


UNKNOWN = b"\x0b\x00\x09\x00\x00\x00\x02\xffa"
EXTRAS: dict[str, dict[str, Any]] = {
    "as given": {},
    "sketches": {"bitVectors": b"\xff sketch"},
    "histograms": {"histogram": b"\xff histogram"},
    "unknown": {"unknown": UNKNOWN},
    "bounds that look like sketches": {"lowValue": 0x0B0004, "highValue": 0x0B0005},
    "bounds that look like timestamps": {"lowValue": 0x0C0008},
}


@pytest.mark.parametrize("of_2_3", [False, True])
@pytest.mark.parametrize("extra", EXTRAS)
def test_encoded_ones_are_the_same_as_decoded_ones(
    statistics: StatisticsService, db: str, extra: str, of_2_3: bool
) -> None:
    given = [column(name) for name, (_, value) in COLUMNS.items() if value is not None]
    for each in given:
        data = kind_of(each).data
        for field, value in EXTRAS[extra].items():
            if field == "unknown":
                data.unknown, each.statsData.unknown, each.unknown = value, b"", b""
            elif isinstance(getattr(data, field, None), int) or (isinstance(value, bytes) and hasattr(data, field)):
                setattr(data, field, value)
    hours = [hour(1), hour(3)]
    statistics.update_partitions([of(db, "p", *given, partition=each) for each in hours])
    asked = (Scope.READY, db, "p", [hour(number) for number in range(1, 5)], [name.upper() for name in COLUMNS])
    decoded = statistics.of_partitions(*asked)
    understood = {
        name: [as_of_2_3(each) if of_2_3 else each for each in values.statsObj or ()]
        for name, values in decoded.items()
    }
    assert list(understood) == hours
    encoded = b"".join(kept_statistics.of_partitions(statistics.encoded_of_partitions(*asked, of_2_3=of_2_3)))
    assert binary.decode_preserving(PartitionsStatsResult, encoded).partStats == understood


# --- merging --------------------------------------------------------------------------------------------------


def test_merging_into_a_table(statistics: StatisticsService, db: str) -> None:
    statistics.set_aggregated([of(db, "t", column("i"))])
    statistics.set_aggregated([of(db, "t", column("I".lower(), lowValue=-5, numNulls=1), column("s"))], Merging.PRESENT)
    assert values(statistics.of_table(db, "t", ["i", "s"])) == {
        "i": LongColumnStatsData(-5, 10, 3, 5),
        "s": StringColumnStatsData(10, 2.5, 1, 7),
    }


def test_hive_4_merges_into_accurate_statistics_only(
    metastore: Metastore, statistics: StatisticsService, db: str
) -> None:
    statistics.set_aggregated([of(db, "t", column("i"))])
    statistics.set_aggregated([of(db, "t", column("i", highValue=70), column("s"))], Merging.ACCURATE)
    assert values(statistics.of_table(db, "t", ["i", "s"])) == {"i": LongColumnStatsData(1, 70, 4, 5)}
    assert state(metastore, db, "t") == '{"COLUMN_STATS":{"i":"true"}}'


def test_hive_4_takes_the_first_statistics_of_a_table_that_was_created_empty(
    metastore: Metastore, statistics: StatisticsService, db: str
) -> None:
    table = metastore.tables.get(db, "t")
    table.parameters = {KEY: '{"BASIC_STATS":"true","COLUMN_STATS":{"i":"true","s":"true"}}'}
    metastore.tables.alter(db, "t", table, {"DO_NOT_UPDATE_STATS": "true"})
    statistics.set_aggregated([of(db, "t", column("i"))], Merging.ACCURATE)
    assert values(statistics.of_table(db, "t", ["i"])) == {"i": LongColumnStatsData(1, 10, 2, 5)}


def test_sketches_are_merged_and_kept_back(statistics: StatisticsService, db: str) -> None:
    def sketch(*keys: int) -> bytes:
        return HyperLogLog(10, sparse=dict.fromkeys(keys, 1)).serialize()

    statistics.set_aggregated([of(db, "t", column("i", numDVs=3, bitVectors=sketch(1, 2, 3)))])
    for more, distinct in (((3, 4), 4), ((5, 6), 6), ((1, 6, 7), 7)):
        statistics.set_aggregated([of(db, "t", column("i", numDVs=2, bitVectors=sketch(*more)))], Merging.PRESENT)
        answer = values(statistics.of_table(db, "t", ["i"]))["i"]
        assert (answer.numDVs, answer.bitVectors) == (distinct, None)


def test_merging_into_partitions(statistics: StatisticsService, db: str) -> None:
    statistics.set_aggregated([of(db, "p", column("i"), partition=hour(1))])
    new = [of(db, "p", column("i", highValue=50, numNulls=1), partition=hour(n)) for n in (1, 2)]
    statistics.set_aggregated(new, Merging.PRESENT)
    found = statistics.of_partitions(Scope.READY, db, "p", [hour(1), hour(2)], ["i"])
    assert values(found[hour(1)]) == {"i": LongColumnStatsData(1, 50, 3, 5)}
    assert values(found[hour(2)]) == {"i": LongColumnStatsData(1, 50, 1, 5)}


def test_a_partition_that_comes_twice_is_merged_with_itself(statistics: StatisticsService, db: str) -> None:
    twice = [of(db, "p", column("i", highValue=high, numNulls=1), partition=hour(1)) for high in (50, 40)]
    statistics.set_aggregated(twice)
    found = statistics.of_partitions(Scope.READY, db, "p", [hour(1)], ["i"])
    assert values(found[hour(1)]) == {"i": LongColumnStatsData(1, 50, 2, 5)}


def test_merging_different_kinds_is_refused(statistics: StatisticsService, db: str) -> None:
    statistics.update_table(of(db, "t", column("i")))
    other = column("s").replace(colName="i")
    with pytest.raises(InvalidObjectException, match="column types must match"):
        statistics.set_aggregated([of(db, "t", other)], Merging.PRESENT)


def test_setting_nothing_and_too_much(statistics: StatisticsService, db: str) -> None:
    statistics.set_aggregated([])
    statistics.set_aggregated(None)
    with pytest.raises(MetaException, match="Expecting only 1 ColumnStatistics for table's column stats, but find 2"):
        statistics.set_aggregated([of(db, "t", column("i")), of(db, "t", column("s"))])
    with pytest.raises(MetaException, match="Partition name is invalid"):
        statistics.set_aggregated([of(db, "p", column("i"), partition=hour(1)), of(db, "p", column("i"))])


# --- aggregates -----------------------------------------------------------------------------------------------


def test_aggregates(statistics: StatisticsService, db: str) -> None:
    for number in (1, 2, 3):
        statistics.update_partitions([of(db, "p", column("i", highValue=10 * number), partition=hour(number))])
    statistics.update_partitions([of(db, "p", column("s"), partition=hour(1))])
    three = statistics.aggregated(
        Scope.READY, db.upper(), "P", ["DAY=a%2Fb/HR=1", hour(2), hour(3), hour(3)], ["I", "i"]
    )
    assert three.partsFound == 3
    assert values(ColumnStatistics(statsObj=three.colStats)) == {"i": LongColumnStatsData(1, 30, 6, 5)}
    four = statistics.aggregated(Scope.READY, db, "p", [hour(n) for n in (1, 2, 3, 4)], ["s", "i", "zz"])
    assert four.partsFound == 0
    assert values(ColumnStatistics(statsObj=four.colStats)) == {
        "s": StringColumnStatsData(10, 2.5, 1, 7),
        "i": LongColumnStatsData(1, 40, 8, 5),
    }
    assert statistics.aggregated(Scope.READY, db, "p", [hour(n) for n in (1, 2)], ["s", "i"]).partsFound == 1


@pytest.mark.parametrize(
    ("names", "columns"), [([], ["i"]), ([hour(1)], []), ([hour(4)], ["i"]), (["bla"], ["i"]), (None, None)]
)
def test_nothing_to_aggregate(
    statistics: StatisticsService, db: str, names: list[str] | None, columns: list[str] | None
) -> None:
    statistics.update_partitions([of(db, "p", column("i"), partition=hour(1))])
    answer = statistics.aggregated(Scope.READY, db, "p", names, columns)
    assert (answer.colStats, answer.partsFound) == ([], 0)


# --- calls ----------------------------------------------------------------------------------------------------


@pytest.fixture
def call(statistics: StatisticsService) -> Call:
    return Call(Session("1", Caller(None)), SimpleNamespace(statistics=statistics))  # type: ignore[arg-type]


def of_partitions(call: Call, request: PartitionsStatsRequest) -> dict[str, list[ColumnStatisticsObj]]:
    """What get_partitions_statistics_req answers."""
    encoded = b"".join(api.get_partitions_statistics_req(call, request).pieces)
    return binary.decode_preserving(PartitionsStatsResult, encoded).partStats or {}


AS_LONGS = LongColumnStatsData(1000, 2000, 1, 3)
AS_TIMESTAMPS = TimestampColumnStatsData(Timestamp(1000), Timestamp(2000), 1, 3)


@pytest.mark.parametrize(("hive4", "expected"), [(False, AS_LONGS), (True, AS_TIMESTAMPS)])
def test_each_client_gets_timestamps_as_it_knows_them(call: Call, db: str, hive4: bool, expected: object) -> None:
    call.session.hive4 = hive4
    engine = "hive" if hive4 else None
    sent = ColumnStatisticsObj("ts", "timestamp", ColumnStatisticsData(longStats=AS_LONGS))
    assert api.update_table_column_statistics(call, of(db, "t", sent)) is True
    assert api.update_partition_column_statistics(call, of(db, "p", sent, partition=hour(1))) is True
    answers = [
        api.get_table_column_statistics(call, db, "t", "ts"),
        api.get_partition_column_statistics(call, db, "p", hour(1), "ts"),
        api.get_table_statistics_req(call, TableStatsRequest(db, "t", ["ts"], engine=engine)).tableStats,
        api.get_aggr_stats_for(call, PartitionsStatsRequest(db, "p", ["ts"], [hour(1)], engine=engine)).colStats,
        of_partitions(call, PartitionsStatsRequest(db, "p", ["ts"], [hour(1)], engine=engine))[hour(1)],
    ]
    for answer in answers:
        found = answer if isinstance(answer, ColumnStatistics) else ColumnStatistics(statsObj=answer)
        assert values(found) == {"ts": expected}


def test_there_may_be_no_result(call: Call, db: str) -> None:
    assert api.get_table_column_statistics(call, db, "t", "i") is None
    assert api.get_table_column_statistics(call, db, "t", None) is None
    assert api.get_partition_column_statistics(call, db, "p", hour(9), "i") is None
    assert api.get_table_statistics_req(call, TableStatsRequest(db, "t", ["i"])).tableStats == []
    assert of_partitions(call, PartitionsStatsRequest(db, "p", ["i"], [hour(1)])) == {}
    with pytest.raises(MetaException, match="Partition name is invalid"):
        api.get_partition_column_statistics(call, db, "p", None, "i")


def test_requests_for_one_object(call: Call, db: str) -> None:
    table, partition = of(db, "t", column("i")), of(db, "p", column("i"), partition=hour(1))
    assert api.update_table_column_statistics_req(call, SetPartitionsStatsRequest([table], engine="x")).result
    assert api.update_partition_column_statistics_req(call, SetPartitionsStatsRequest([partition], engine="x")).result
    assert api.get_table_statistics_req(call, TableStatsRequest(db, "t", ["i"], engine="x")).tableStats != []
    for update_one in (api.update_table_column_statistics_req, api.update_partition_column_statistics_req):
        for wrong in (None, SetPartitionsStatsRequest([]), SetPartitionsStatsRequest([table, table])):
            with pytest.raises(InvalidInputException, match="Only one stats object expected"):
                update_one(call, wrong)
        with pytest.raises(InvalidInputException, match="Merge is not supported"):
            update_one(call, SetPartitionsStatsRequest([table], needMerge=True))


def test_a_request_that_names_an_engine_merges_as_hive_4_does(call: Call, db: str) -> None:
    new = SetPartitionsStatsRequest([of(db, "t", column("i"))], needMerge=True)
    assert api.set_aggr_stats_for(call, new.replace(engine="hive")) is True
    assert api.get_table_column_statistics(call, db, "t", "i") is None
    assert api.set_aggr_stats_for(call, new) is True
    assert api.get_table_column_statistics(call, db, "t", "i") is not None


def test_deleting_by_call(call: Call, db: str) -> None:
    api.update_table_column_statistics(call, of(db, "t", column("i")))
    api.update_partition_column_statistics(call, of(db, "p", column("i"), partition=hour(1)))
    assert api.delete_table_column_statistics(call, db, "t", "i", None) is True
    assert api.delete_partition_column_statistics(call, db, "p", hour(1), "i", None) is True
    assert api.get_table_column_statistics(call, db, "t", "i") is None


@pytest.mark.parametrize("update_one", [api.update_table_column_statistics, api.update_partition_column_statistics])
def test_a_missing_argument(call: Call, update_one: Callable[[Call, None], bool]) -> None:
    with pytest.raises(InvalidObjectException, match="Invalid column stats object"):
        update_one(call, None)


# --- concurrency ----------------------------------------------------------------------------------------------


def test_concurrent_merges_lose_nothing(statistics: StatisticsService, db: str) -> None:
    statistics.update_partitions([of(db, "p", column("i", numNulls=0), partition=hour(n)) for n in (1, 2)])

    def merge(_: int) -> None:
        new = [of(db, "p", column("i", numNulls=1), partition=hour(n)) for n in (1, 2)]
        statistics.set_aggregated(new, Merging.PRESENT)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(merge, range(20)))
    found = statistics.of_partitions(Scope.READY, db, "p", [hour(1), hour(2)], ["i"])
    assert [values(one)["i"].numNulls for one in found.values()] == [20, 20]


def test_no_statistics_outlive_a_table_that_is_dropped_meanwhile(
    metastore: Metastore, statistics: StatisticsService, db: str
) -> None:
    before = kept_rows(metastore)
    go = threading.Barrier(3)

    def update_until_gone(change: Callable[[], None]) -> None:
        go.wait()
        while True:
            try:
                change()
            except (NoSuchObjectException, InvalidObjectException):
                return
            except DatabaseUnavailable:
                continue

    with ThreadPoolExecutor(2) as pool:
        done = [
            pool.submit(update_until_gone, lambda: statistics.update_table(of(db, "p", column("i")))),
            pool.submit(
                update_until_gone,
                lambda: statistics.update_partitions([of(db, "p", column("i"), partition=hour(1))]),
            ),
        ]
        go.wait()
        time.sleep(0.1)  # in which the others are in the midst of it
        metastore.tables.drop(db, "p", delete_data=True)
        for future in done:
            future.result(timeout=30)
    assert kept_rows(metastore) == before

"""What is measured: the calls of Hive's own benchmarks (metastore-tools), with tables of our shapes."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bench.java_client import Call
from bench.shapes import DATABASE, HOURS, Shape
from bench.sides import Side
from lake.protocol.hive import (
    AbortTxnRequest,
    CheckLockRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    DropPartitionsRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    LongColumnStatsData,
    OpenTxnRequest,
    PartitionsStatsRequest,
    RequestPartsSpec,
    SetPartitionsStatsRequest,
    ShowLocksRequest,
    TableStatsRequest,
    UnlockRequest,
)

READ, WIDE, CHANGED = "orders", "wide_orders", "changed"
"""Tables: the first two stay as they are filled, the third is made for one call and dropped."""
COLUMNS, WIDE_COLUMNS = 50, 500
WITH_STATISTICS = 10
"""Columns that have statistics."""
ALL = -1
USER, HOST = "bench", "localhost"

Steps = Callable[[Side], Iterator[Call]]
"""Prepares, yields the call that is timed, tidies."""


@dataclass(frozen=True)
class Sizes:
    """How much there is, and how much of it is changed by one call; `described` partitions have statistics."""

    tables: int
    partitions: int
    named: int
    described: int
    bulk: tuple[int, ...]


FULL = Sizes(tables=1_000, partitions=10_000, named=1_000, described=100, bulk=(100, 1_000, 10_000))
QUICK = Sizes(tables=20, partitions=240, named=100, described=10, bulk=(10, 50))


@dataclass(frozen=True)
class Operation:
    """A call to be timed, and the ratio that is the aim for it.

    `repeats` says that the same call gets the same answer again. `warm` calls come before those that count, `most` of
    these are made. `in_java` is false where Hive's client has no such method, or would spend all the time itself.
    """

    name: str
    steps: Steps
    repeats: bool = False
    target: float | None = None
    warm: int = 5
    most: int = 400
    in_java: bool = True


def fill(side: Side, sizes: Sizes) -> None:
    """Makes what is read."""
    for number in range(sizes.tables):
        side.thrift.create_table(Shape(COLUMNS, 0).table(f"t{number:05d}"))
    side.fill(READ, Shape(COLUMNS, sizes.partitions))
    side.fill(WIDE, Shape(WIDE_COLUMNS, sizes.partitions))


def operations(sizes: Sizes) -> list[Operation]:
    """All of them, reads first."""
    return [
        *_table_reads(sizes),
        *_partition_reads(sizes),
        *_statistics(sizes),
        *_locks_and_transactions(),
        *_table_changes(sizes),
        *_partition_changes(sizes),
    ]


# -- reads -------------------------------------------------------------------------------------------------------


def get_table() -> Call:
    return Call("get_table", [DATABASE, READ], "getTable")


def get_partition() -> Call:
    return Call("get_partition", [DATABASE, READ, Shape(COLUMNS, 1).values(0)], "getPartition")


def get_all(table: str) -> Call:
    """All partitions. Those of many columns are too many for Hive's client: it would spend all the time itself."""
    return Call("get_partitions", [DATABASE, table, ALL], "listPartitions" if table == READ else None)


def _table_reads(sizes: Sizes) -> list[Operation]:
    prefix = [DATABASE, "t0000*"]
    return [
        *cold_and_hot("get table", READ, get_table(), hot=5),
        read("all table names", Call("get_all_tables", [DATABASE], "getAllTables")),
        read("table names by pattern", Call("get_tables", prefix, "getTables")),
    ]


def _partition_reads(sizes: Sizes) -> list[Operation]:
    shape = Shape(COLUMNS, sizes.partitions)
    day, _ = shape.values(sizes.partitions // 2)
    table = [DATABASE, READ]
    names = shape.names()[:: sizes.partitions // sizes.named][: sizes.named]
    everything = f"all {sizes.partitions:,} partitions"
    by_filter = Call("get_partitions_by_filter", [*table, f'dt = "{day}"', ALL], "listPartitionsByFilter")
    by_name = Call("get_partitions_by_names", [*table, names], "getPartitionsByNames")
    return [
        *cold_and_hot("get partition", READ, get_partition()),
        *cold_and_hot(
            f"{sizes.partitions:,} partition names",
            READ,
            Call("get_partition_names", [*table, ALL], "listPartitionNames"),
            hot=3,
        ),
        *cold_and_hot(f"{HOURS} partitions by filter", READ, by_filter, hot=10),
        *cold_and_hot(f"{sizes.named:,} partitions by name", READ, by_name, hot=10),
        read(
            f"{HOURS} partitions by part of their values",
            Call("get_partitions_ps", [*table, [day], ALL], "listPartitions"),
        ),
        *cold_and_hot(
            f"{everything} of {COLUMNS} columns",
            READ,
            get_all(READ),
            cold=8,
            hot=15,
        ),
        *cold_and_hot(
            f"{everything} of {WIDE_COLUMNS} columns",
            WIDE,
            get_all(WIDE),
            cold=8,
            hot=15,
        ),
    ]


def read(name: str, call: Call, target: float | None = None) -> Operation:
    """The same read again and again."""

    def steps(side: Side) -> Iterator[Call]:
        yield call

    return Operation(name, steps, repeats=True, target=target, warm=20, in_java=call.hive is not None)


def cold_and_hot(
    name: str, table: str, call: Call, *, cold: float | None = None, hot: float | None = None
) -> tuple[Operation, Operation]:
    """The same read after each change of the table and of one of its partitions, and again and again."""
    numbers = itertools.count()

    def touched(side: Side) -> Iterator[Call]:
        _touch(side, table, next(numbers))
        yield call

    again = read(f"{name}, hot", call, hot)
    return replace(again, name=f"{name}, cold", steps=touched, target=cold, most=100), again


def _touch(side: Side, name: str, number: int) -> None:
    table = side.thrift.get_table(DATABASE, name)
    table.parameters["touched"] = f"{number:06d}"
    side.thrift.alter_table(DATABASE, name, table)
    first = side.thrift.get_partition(DATABASE, name, Shape(COLUMNS, 1).values(0))
    first.parameters["touched"] = f"{number:06d}"
    side.thrift.alter_partition(DATABASE, name, first)


# -- statistics, locks, transactions -----------------------------------------------------------------------------


def _statistics(sizes: Sizes) -> list[Operation]:
    columns = [f"column_{5 * number:03d}" for number in range(WITH_STATISTICS)]
    shape = Shape(COLUMNS, sizes.described)
    of_table = TableStatsRequest(DATABASE, READ, columns)
    of_partitions = PartitionsStatsRequest(DATABASE, READ, columns, shape.names())
    set_for_table = _column_statistics(columns)
    set_for_partitions = SetPartitionsStatsRequest([_column_statistics(columns, name) for name in shape.names()])
    many = f"statistics of {WITH_STATISTICS} columns of {sizes.described} partitions"
    return [
        _change(
            f"set statistics of {WITH_STATISTICS} columns of a table",
            Call("update_table_column_statistics", [set_for_table], "updateTableColumnStatistics"),
        ),
        read(
            f"get statistics of {WITH_STATISTICS} columns of a table",
            Call("get_table_statistics_req", [of_table], "getTableColumnStatistics", [DATABASE, READ, columns]),
        ),
        _change(
            f"set {many}",
            Call("set_aggr_stats_for", [set_for_partitions], "setPartitionColumnStatistics"),
            most=20,
        ),
        read(
            f"get {many}",
            Call(
                "get_partitions_statistics_req",
                [of_partitions],
                "getPartitionColumnStatistics",
                [DATABASE, READ, shape.names(), columns],
            ),
        ),
        read(
            f"aggregate {many}",
            Call(
                "get_aggr_stats_for",
                [of_partitions],
                "getAggrColStatsFor",
                [DATABASE, READ, columns, shape.names()],
            ),
        ),
    ]


def _column_statistics(columns: list[str], partition: str | None = None) -> ColumnStatistics:
    described = ColumnStatisticsDesc(partition is None, DATABASE, READ, partition)
    numbers = LongColumnStatsData(lowValue=1, highValue=1_000_000, numNulls=5, numDVs=100_000)
    found = ColumnStatisticsData(longStats=numbers)
    return ColumnStatistics(described, [ColumnStatisticsObj(column, "bigint", found) for column in columns])


def _change(name: str, call: Call, most: int = 200) -> Operation:
    """One that may be made again without tidying."""

    def steps(side: Side) -> Iterator[Call]:
        yield call

    return Operation(name, steps, most=most)


def _locks_and_transactions() -> list[Operation]:
    component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, DATABASE, READ)
    request = LockRequest([component], user=USER, hostname=HOST)
    opening = OpenTxnRequest(1, USER, HOST)

    def lock(side: Side) -> Iterator[Call]:
        yield Call("lock", [request], "lock")
        for held in side.thrift.show_locks(ShowLocksRequest()).locks:
            side.thrift.unlock(UnlockRequest(held.lockid))

    def check_lock(side: Side) -> Iterator[Call]:
        held = side.thrift.lock(request).lockid
        yield Call("check_lock", [CheckLockRequest(held)], "checkLock", [held])
        side.thrift.unlock(UnlockRequest(held))

    def unlock(side: Side) -> Iterator[Call]:
        held = side.thrift.lock(request).lockid
        yield Call("unlock", [UnlockRequest(held)], "unlock", [held])

    def open_transaction(side: Side) -> Iterator[Call]:
        yield Call("open_txns", [opening], "openTxns", [USER, 1])
        for opened in side.thrift.get_open_txns_info().open_txns:
            side.thrift.abort_txn(AbortTxnRequest(opened.id))

    def commit_transaction(side: Side) -> Iterator[Call]:
        [opened] = side.thrift.open_txns(opening).txn_ids
        yield Call("commit_txn", [CommitTxnRequest(opened)], "commitTxn", [opened])

    return [
        Operation("lock a table", lock, most=200),
        Operation("check a lock", check_lock, most=200),
        Operation("unlock", unlock, most=200),
        Operation("open a transaction", open_transaction, most=200),
        Operation("commit a transaction", commit_transaction, most=200),
    ]


# -- changes -----------------------------------------------------------------------------------------------------


def _table_changes(sizes: Sizes) -> list[Operation]:
    table = Shape(COLUMNS, 0).table(CHANGED)
    renamed = f"re{CHANGED}"

    def create(side: Side) -> Iterator[Call]:
        yield Call("create_table", [table], "createTable")
        _drop(side)

    def drop(side: Side) -> Iterator[Call]:
        side.thrift.create_table(table)
        yield Call("drop_table", [DATABASE, CHANGED, True], "dropTable", [DATABASE, CHANGED, True, True])

    def alter(side: Side) -> Iterator[Call]:
        side.thrift.create_table(table)
        changed = side.thrift.get_table(DATABASE, CHANGED)
        changed.parameters["comment"] = "changed"
        yield Call("alter_table", [DATABASE, CHANGED, changed], "alter_table")
        _drop(side)

    def rename(side: Side) -> Iterator[Call]:
        side.thrift.create_table(table)
        changed = side.thrift.get_table(DATABASE, CHANGED)
        changed.tableName = renamed
        yield Call("alter_table", [DATABASE, CHANGED, changed], "alter_table")
        side.thrift.drop_table(DATABASE, renamed, True)

    def drop_full(side: Side) -> Iterator[Call]:
        side.fill(CHANGED, Shape(COLUMNS, sizes.partitions))
        yield Call("drop_table", [DATABASE, CHANGED, True])

    return [
        Operation("create a table", create, most=100),
        Operation("alter a table", alter, most=100),
        Operation("rename a table", rename, most=100),
        Operation("drop a table", drop, most=100),
        Operation(
            f"drop a table with {sizes.partitions:,} partitions",
            drop_full,
            target=100,
            warm=0,
            most=3,
            in_java=False,
        ),
    ]


def _drop(side: Side) -> None:
    side.thrift.drop_table(DATABASE, CHANGED, True)


def _partition_changes(sizes: Sizes) -> list[Operation]:
    shape = Shape(COLUMNS, sizes.partitions + 1)
    beyond = sizes.partitions
    values = shape.values(beyond)
    new = shape.partition(READ, beyond)

    def add(side: Side) -> Iterator[Call]:
        yield Call("add_partition", [new], "add_partition")
        side.thrift.drop_partition(DATABASE, READ, values, True)

    def alter(side: Side) -> Iterator[Call]:
        found = side.thrift.get_partition(DATABASE, READ, shape.values(1))
        found.parameters["source"] = "altered"
        yield Call("alter_partition", [DATABASE, READ, found], "alter_partition")

    def drop(side: Side) -> Iterator[Call]:
        side.thrift.add_partition(new)
        yield Call("drop_partition", [DATABASE, READ, values, True], "dropPartition")

    single = [
        Operation("add a partition", add, most=100),
        Operation("alter a partition", alter, most=100),
        Operation("drop a partition", drop, most=100),
    ]
    return single + [operation for count in sizes.bulk for operation in bulk(count)]


def bulk(count: int) -> list[Operation]:
    shape = Shape(COLUMNS, count)
    few = count <= 100

    def measured(name: str, steps: Steps, target: float, *, in_java: bool = few) -> Operation:
        return Operation(name, steps, target=target, warm=2 if few else 0, most=20 if few else 3, in_java=in_java)

    def add(side: Side) -> Iterator[Call]:
        side.thrift.create_table(shape.table(CHANGED))
        yield Call("add_partitions", [[shape.partition(CHANGED, number) for number in range(count)]], "add_partitions")
        _drop(side)

    def alter(side: Side) -> Iterator[Call]:
        side.fill(CHANGED, shape)
        altered = side.thrift.get_partitions(DATABASE, CHANGED, ALL)
        for partition in altered:
            partition.parameters["source"] = "altered"
        yield Call("alter_partitions", [DATABASE, CHANGED, altered], "alter_partitions")
        _drop(side)

    def drop(side: Side) -> Iterator[Call]:
        side.fill(CHANGED, shape)
        request = DropPartitionsRequest(
            DATABASE, CHANGED, RequestPartsSpec(names=shape.names()), deleteData=True, ifExists=True, needResult=False
        )
        yield Call("drop_partitions_req", [request])
        _drop(side)

    return [
        measured(f"add {count:,} partitions", add, 100),
        measured(f"alter {count:,} partitions", alter, 20),
        measured(f"drop {count:,} partitions", drop, 100, in_java=False),
    ]

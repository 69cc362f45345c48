"""A server with a cache answers as one without, whatever is written: no kept reply forgets what it depends on.

Writes go through one server, which keeps no replies, or through another one, which keeps its answers, partly in a small
memory and partly in Redis, and renews some by what it writes. Afterwards both are asked the same.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import NullPool, create_engine, text
from thrift.Thrift import TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DeleteColumnStatisticsRequest,
    GetDatabaseRequest,
    GetFieldsRequest,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesRequest,
    LongColumnStatsData,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    StringColumnStatsData,
    TableStatsRequest,
)
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    ListInstantsRequest,
    TableReference,
)
from metastore.api import load
from metastore.api.methods import HANDLERS
from tests.metastore.cache.cluster import answers_of
from tests.support.builders import database, partition, table, view
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer
from tests.visibility import recipes, writers
from tests.visibility.readers import CONNECTION, NAME, NONE, Ports, Reader, Readers

NUMBERS = itertools.count(1)
load()
CACHED = {name for name, handler in HANDLERS.items() if handler.cached}

Ask = Callable[[Reader], Any]


def call(method: str, *arguments: Any) -> tuple[str, Ask]:
    return method, lambda reader: reader.client.call(method, *arguments)


def of_database(method: str, *arguments: Any) -> tuple[str, Ask]:
    return method, lambda reader: reader.client.call(method, reader.db, *arguments)


def of_table(method: str, name: str, *arguments: Any) -> tuple[str, Ask]:
    return method, lambda reader: reader.client.call(method, reader.db, reader.table(name), *arguments)


def request(method: str, make: Callable[[Reader], Any]) -> tuple[str, Ask]:
    return method, lambda reader: reader.client.call(method, make(reader))


DAY, OTHER_DAY, NEW_DAY = writers.HIDDEN_NAME, "ds=2020-01-01/hr=2", "ds=2020-01-02/hr=1"


def of_columns(method: str, name: str, engine: str | None = None) -> tuple[str, Ask]:
    """Statistics of columns of a table, or of partitions."""
    columns = ["id", "name", "id2"]
    if method == "get_table_statistics_req":
        return request(method, lambda r: TableStatsRequest(r.db, r.table(name), columns, engine=engine))
    days = [DAY, OTHER_DAY, NEW_DAY]
    return request(method, lambda r: PartitionsStatsRequest(r.db, r.table(name), columns, days, engine=engine))


READS: list[tuple[str, Ask]] = [
    *((each.method, each.ask) for each in recipes.RECIPES if each.method in CACHED),
    *(
        each
        for name in ("t", "u", "k", "fresh")
        for each in (
            of_table("get_table", name),
            of_table("get_fields", name),
            of_table("get_partition", name, writers.HIDDEN),
            of_table("get_partition", name, writers.READY),
            of_table("get_partition_names", name, -1),
            of_table("get_partitions", name, -1),
            of_columns("get_table_statistics_req", name),
            of_columns("get_partitions_statistics_req", name),
            of_columns("get_aggr_stats_for", name),
        )
    ),
    *(
        of_columns(method, "t", engine)
        for method in ("get_table_statistics_req", "get_partitions_statistics_req", "get_aggr_stats_for")
        for engine in ("hive", "impala")
    ),
    of_table("get_table_column_statistics", "t", "id"),
    of_table("get_table_column_statistics", "t", "name"),
    of_table("get_partition_column_statistics", "t", DAY, "name"),
    of_table("get_partition_column_statistics", "t", OTHER_DAY, "id"),
    of_table("get_partition_column_statistics", "t", NEW_DAY, "id"),
    of_table("get_partition_with_auth", "t", writers.HIDDEN, "me", ["us"]),
    of_table("get_partition_by_name", "t", DAY),
    of_table("get_partition_by_name", "t", NEW_DAY),
    request("get_partition_req", lambda r: GetPartitionRequest(None, r.db, r.table(), writers.READY)),
    of_table("get_partitions_with_auth", "t", -1, "you", []),
    of_table("get_fields_with_environment_context", "t", None),
    of_table("get_schema", "t"),
    of_table("get_schema_with_environment_context", "t", None),
    request("get_fields_req", lambda r: GetFieldsRequest(dbName=r.db, tblName=r.table())),
    request("get_schema_req", lambda r: GetSchemaRequest(dbName=r.db, tblName=r.table())),
    request("get_table_req", lambda r: GetTableRequest(r.db, r.table())),
    request("get_table_req", lambda r: GetTableRequest(r.db, r.table(), getColumnStats=True, engine="hive")),
    request(
        "get_partitions_by_names_req",
        lambda r: GetPartitionsByNamesRequest(r.db, r.table(), [DAY], get_col_stats=True, engine="hive"),
    ),
    of_database("get_table_objects_by_name", ["t", "u", "fresh", "v"]),
    request("get_table_objects_by_name_req", lambda r: GetTablesRequest(r.db, ["t", "fresh"])),
    request("get_table_objects_by_name_req", lambda r: GetTablesRequest(r.db, None, tablesPattern="*")),
    of_database("get_tables", "*"),
    of_database("get_tables", "f*"),
    of_database("get_all_tables"),
    of_database("get_tables_by_type", "*", "VIRTUAL_VIEW"),
    of_database("get_tables_by_type", "*", "MANAGED_TABLE"),
    of_database("get_database"),
    request("get_database_req", lambda r: GetDatabaseRequest(r.db)),
    ("get_database", lambda reader: reader.client.get_database(reader.db + "b")),
    ("get_all_tables", lambda reader: reader.client.get_all_tables(reader.db + "b")),
    ("get_table", lambda reader: reader.client.get_table(reader.db + "b", "t")),
    ("get_partitions", lambda reader: reader.client.get_partitions(reader.db + "b", "t", -1)),
    ("get_table_column_statistics", lambda r: r.client.get_table_column_statistics(r.db + "b", "t", "id")),
    (
        "get_partitions_statistics_req",
        lambda r: r.client.get_partitions_statistics_req(PartitionsStatsRequest(r.db + "b", "t", ["id"], [DAY])),
    ),
    request("lake_timeline_position", lambda r: r.reference),
    request("lake_list_instants", lambda r: ListInstantsRequest(r.reference)),
    request(
        "lake_list_instants", lambda r: ListInstantsRequest(r.reference, includeArchived=True, states=["inflight"])
    ),
    call("get_databases", "d*"),
    call("get_all_databases"),
    of_database("lake_list_iceberg"),
    ("lake_list_iceberg", lambda reader: reader.client.lake_list_iceberg(reader.db + "b")),
]


def test_every_method_whose_replies_are_kept_is_compared() -> None:
    assert {method for method, _ in READS} == CACHED


# -- writes that tests/visibility has not ------------------------------------------------------------------------

Write = Callable[[ThriftClient, str], Any]


def files(client: ThriftClient, db: str) -> None:
    """An instant that adds a file to two partitions; it makes one of them."""
    reference = TableReference(database=db, table="t")
    begun = client.lake_begin_instant(BeginInstantRequest(reference, "commit", state="inflight"))
    added = [
        DataFile(
            partition=day, fileGroup=begun.timestamp, slice=begun.timestamp, path=f"{day}/{begun.timestamp}", size=9
        )
        for day in (DAY, "ds=2020-01-03/hr=1")
    ]
    client.lake_complete_instants(
        [CompleteInstantRequest(table=reference, timestamp=begun.timestamp, action="commit", added=added)]
    )


def columns(client: ThriftClient, db: str) -> None:
    """A column more, in all partitions, too."""
    value = client.get_table(db, "t")
    value.sd.cols.append(value.sd.cols[0].replace(name=f"c{next(NUMBERS)}"))
    client.alter_table_with_cascade(db, "t", value, True)


def moved(client: ThriftClient, db: str) -> None:
    """A table goes to another database."""
    client.alter_table(db, "t", client.get_table(db, "t").replace(dbName=db + "b"))


def back(client: ThriftClient, db: str) -> None:
    client.alter_table(db + "b", "t", client.get_table(db + "b", "t").replace(dbName=db))


def external(client: ThriftClient, db: str) -> None:
    """A table's type changes."""
    value = client.get_table(db, "k")
    client.alter_table(db, "k", value.replace(tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}))


def statistics(
    client: ThriftClient, db: str, engine: str | None = None, merged: bool = False, sketch: bytes | None = None
) -> None:
    """Of a table and two of its partitions, each time others."""
    for part in (None, DAY, OTHER_DAY):
        description = ColumnStatisticsDesc(isTblLevel=part is None, dbName=db, tableName="t", partName=part)
        count = next(NUMBERS)
        longs = ColumnStatisticsData(longStats=LongColumnStatsData(-count, count, count, count, sketch))
        strings = ColumnStatisticsData(stringStats=StringColumnStatsData(count, count / 2, count, count, sketch))
        given = [ColumnStatisticsObj("id", "bigint", longs), ColumnStatisticsObj("name", "string", strings)]
        client.set_aggr_stats_for(
            SetPartitionsStatsRequest([ColumnStatistics(description, given)], needMerge=merged, engine=engine)
        )


def renamed_column(client: ThriftClient, db: str) -> None:
    """A column gets another name: the statistics of the old one are dropped."""
    value = client.get_table(db, "t")
    value.sd.cols = [each.replace(name="id2") if each.name == "id" else each for each in value.sd.cols]
    client.alter_table_with_cascade(db, "t", value, True)


def dropped_column(client: ThriftClient, db: str) -> None:
    """Of the table alone; its partitions keep theirs."""
    value = client.get_table(db, "t")
    value.sd.cols = [each for each in value.sd.cols if each.name != "name"]
    client.alter_table(db, "t", value)


def owner(client: ThriftClient, db: str) -> None:
    client.alter_database(db, client.get_database(db).replace(description=str(next(NUMBERS))))


OTHERS: dict[str, Write] = {
    "files": files,
    "columns": columns,
    "moved": moved,
    "back": back,
    "external": external,
    "alter_database": owner,
    "statistics": statistics,
    "statistics-merged": lambda client, db: statistics(client, db, merged=True),
    "statistics-sketched": lambda client, db: statistics(client, db, sketch=b"\xff sketch"),
    "statistics-engine": lambda client, db: statistics(client, db, "impala"),
    "statistics-column": lambda client, db: client.delete_partition_column_statistics(db, "t", DAY, "name", "hive"),
    "statistics-dropped": lambda client, db: client.delete_table_column_statistics(db, "t", None, None),
    "statistics-engine-dropped": lambda client, db: client.delete_column_statistics_req(
        DeleteColumnStatisticsRequest(db_name=db, tbl_name="t", part_names=[DAY, OTHER_DAY], engine="impala")
    ),
    "column-renamed": renamed_column,
    "column-dropped": dropped_column,
    "rename": lambda client, db: client.alter_table(db, "t", client.get_table(db, "t").replace(tableName="fresh")),
    "create_database": lambda client, db: client.create_database(database(db + "b")),
    "drop_database": lambda client, db: client.drop_database(db + "b", True, True),
    "drop_database-own": lambda client, db: client.drop_database(db, True, True),
    "create_table-again": lambda client, db: client.create_table(table(db, "t", keys=("ds", "hr"))),
    "create_table-other": lambda client, db: client.create_table(table(db + "b", "t", keys=("ds", "hr"))),
    "create_view": lambda client, db: client.create_table(view(db)),
    "drop_view": lambda client, db: client.drop_table(db, "v", True),
    "rename_back": lambda client, db: client.alter_table(
        db, "fresh", client.get_table(db, "fresh").replace(tableName="u")
    ),
    "add_many": lambda client, db: client.add_partitions(
        [partition(db, "t", "2020-02-01", str(hour), parameters={"commit": "true"}) for hour in range(30)]
    ),
}
WRITES: dict[str, Write] = OTHERS | {
    str(each): lambda client, db, each=each: each.write(client, db, "t") for each in writers.WRITERS
}
BEFORE = {
    "back": ["create_database", "moved"],
    "create_table-again": ["drop_table"],
    "create_table-other": ["create_database"],
    "drop_database": ["create_database", "moved"],
    "drop_view": ["create_view"],
    "moved": ["create_database"],
    "rename": ["statistics"],
    "rename_back": ["alter_table-rename"],
    "rename_partition": ["statistics"],
    "statistics-column": ["statistics"],
    "statistics-dropped": ["statistics"],
    "statistics-engine-dropped": ["statistics-engine"],
    "statistics-merged": ["statistics-sketched"],
    "column-renamed": ["statistics"],
    "column-dropped": ["statistics"],
    "lake_commit_partitions": ["statistics"],
    "truncate_table": ["statistics"],
    "drop_partition": ["statistics"],
}
"""What has to be written first, else a write is refused."""


# -- the servers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Servers:
    keeping: MetastoreServer
    asking: MetastoreServer
    database_url: str


@pytest.fixture(scope="module")
def servers(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    directory = tmp_path_factory.mktemp("differential")
    with postgres.fresh_database(upgraded=True) as url, RedisServer(directory / "redis") as redis, ExitStack() as stack:

        def server(name: str, *options: str) -> MetastoreServer:
            common = ("--database-url", url, "--warehouse-dir", str(directory / "warehouse"), "--workers", "1")
            return MetastoreServer(directory / name, *common, "--http-port", "0", *options)

        keeping = server("keeping", "--cache-redis-url", redis.url, "--cache-memory", "24KiB")
        asking = server("asking", "--cache-memory", "0")
        with ThreadPoolExecutor() as threads:
            for started in threads.map(MetastoreServer.start, (keeping, asking)):
                stack.enter_context(started)
        yield Servers(keeping, asking, url)


class Comparison(RuleBasedStateMachine):
    servers: Servers
    everything: bool  # all reads after each write, or one of each method

    def __init__(self) -> None:
        super().__init__()
        self.db = f"d{next(NUMBERS)}"
        self.stack = ExitStack()
        servers = (self.servers.asking, self.servers.keeping)
        self.clients = [self.stack.enter_context(ThriftClient(each.host, each.port)) for each in servers]
        self.clients[0].create_database(database(self.db))
        writers.fill(self.clients[0], self.db)
        self.after = f"{self.db} as it was made"
        kept, asked = (self.readers(each) for each in (self.servers.keeping, self.servers.asking))
        self.chance = random.Random(self.db)
        self.reads = [(method, ask, *both) for method, ask in READS for both in zip(kept, asked, strict=True)]
        if not self.everything:
            self.chance.shuffle(self.reads)
            self.reads = list({each[0]: each for each in self.reads}.values())

    def readers(self, server: MetastoreServer) -> list[Reader]:
        """Of each scope one."""
        readers = Readers(Ports(server.host, server.port, 0), self.stack)
        return [scope.of(readers, self.db) for scope in (NONE, NAME, CONNECTION)]

    def teardown(self) -> None:
        self.stack.close()

    @rule(name=st.sampled_from(sorted(WRITES)), client=st.sampled_from([0, 1]))
    def write(self, name: str, client: int) -> None:
        self.after = name
        assert "internal error" not in str(outcome(WRITES[name], self.clients[client], self.db))

    @invariant()
    def both_answer_the_same(self) -> None:
        self.chance.shuffle(self.reads)  # else the small memory has lost each reply when it is its turn again
        for method, ask, kept, asked in self.reads:
            answer, right = outcome(ask, kept), outcome(ask, asked)
            assert answer == right, f"{method} of {kept.table()} after {self.after}"


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns or raises."""
    try:
        return function(*arguments)
    except TException as error:
        return type(error), str(error)


def run(servers: Servers, *, everything: bool, examples: int, steps: int) -> dict[str, int]:
    """How many replies came from where."""
    before = answers_of(servers.keeping)
    run_state_machine_as_test(
        type("Comparison", (Comparison,), {"servers": servers, "everything": everything}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return {level: count - before[level] for level, count in answers_of(servers.keeping).items()}


def test_random_writes(servers: Servers) -> None:
    answers = run(servers, everything=False, examples=2, steps=5)
    assert answers["memory"] > 0 and answers["redis"] > 0, f"the cache should have been of use: {answers}"


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE cache_changes",
        "DELETE FROM cache_changes",
        "TRUNCATE cache_state",
        "TRUNCATE cache_changes, cache_state",
        "UPDATE databases SET name = name || '_renamed' WHERE name = :db",
        "TRUNCATE tables CASCADE",
    ],
)
def test_what_an_operator_does_by_hand(servers: Servers, statement: str) -> None:
    """Before the worker has asked what a client has written."""
    db = f"d{next(NUMBERS)}"
    keeping, asking = (ThriftClient(each.host, each.port) for each in (servers.keeping, servers.asking))
    with keeping, asking, closing(create_engine(servers.database_url, poolclass=NullPool).connect()) as operator:
        asking.create_database(database(db))
        asking.create_table(table(db, "t"))
        asks = [(each, name) for each in (keeping, asking) for name in (db, f"{db}_renamed")]
        for _ in range(3):
            assert keeping.get_all_tables(db) == ["t"]
            assert keeping.get_table(db, "t").tableName == "t"
        asking.create_table(table(db, "u"))
        operator.execute(text(statement), {"db": db})
        operator.commit()
        tables, found = (
            [outcome(getattr(client, method), name, *more) for client, name in asks]
            for method, more in (("get_all_tables", ()), ("get_table", ("t",)))
        )
        assert tables[:2] == tables[2:]
        assert found[:2] == found[2:]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_writes(servers: Servers) -> None:
    answers = run(servers, everything=True, examples=8, steps=15)
    assert answers["memory"] > 0 and answers["redis"] > 0, f"the cache should have been of use: {answers}"


@pytest.mark.long
@pytest.mark.parametrize("through", ["asking", "keeping"])
@pytest.mark.parametrize("name", sorted(WRITES))
def test_every_write(servers: Servers, name: str, through: str) -> None:
    """Everything is read before and after it, which is done by the server that keeps replies or by the other one."""
    comparison = type("Comparison", (Comparison,), {"servers": servers, "everything": True})()
    client = comparison.clients[through == "keeping"]
    for each in (*BEFORE.get(name, ()), name):
        comparison.both_answer_the_same()
        WRITES[each](client, comparison.db)  # raises if it is refused
        comparison.after = each
    comparison.both_answer_the_same()
    comparison.teardown()

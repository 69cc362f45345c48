"""Tables of hourly partitions and their rows, written and looked at without an engine."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from examples.orders_stream.stream import OrderChange
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import SerDeInfo
from lake.protocol.lake import ListPartitionsRequest, PartitionState, TableReference
from tests.support import builders
from tests.support.target import local_path
from tests.support.waiting import wait_until

HOUR = 3_600_000
START = int(datetime(2025, 3, 1, tzinfo=UTC).timestamp() * 1000)
NUMBERS = itertools.count(1)

_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


def hour(number: int) -> str:
    """The name of the partition that begins so many hours after START."""
    return f"{datetime.fromtimestamp(START / 1000 + number * 3600, UTC):dt=%Y-%m-%d/hr=%H}"


def at(hours: float) -> int:
    """An event time so many hours after START."""
    return START + round(hours * HOUR)


def create_table(client: ThriftClient, name: str = "t", **properties: str) -> str:
    """A Parquet table of a new database, with hourly partitions that are ready by event time; `database.table`.

    `properties` are those of `parameters`.
    """
    database = f"pipeline_{next(NUMBERS)}"
    client.create_database(builders.database(database))
    storage = builders.storage(
        "id:bigint",
        "event_time:timestamp",
        inputFormat=f"{_PARQUET}.MapredParquetInputFormat",
        outputFormat=f"{_PARQUET}.MapredParquetOutputFormat",
        serdeInfo=SerDeInfo(serializationLib=f"{_PARQUET}.serde.ParquetHiveSerDe"),
    )
    table = builders.table(database, name, keys=("dt", "hr"), sd=storage, parameters=parameters(**properties))
    client.create_table(table)
    return f"{database}.{name}"


def parameters(late: str = "next", delay: str = "1 h", mode: str = "event-time") -> dict[str, str]:
    """A table's properties for hourly partitions in `dt` and `hr`."""
    return {
        "partition.commit.mode": mode,
        "partition.time-extractor.timestamp-pattern": "$dt $hr:00:00",
        "partition.late-rows": late,
        "sink.partition-commit.delay": delay,
        "sink.partition-commit.policy.kind": "metastore,success-file",
    }


def reference(table: str) -> TableReference:
    database, _, name = table.partition(".")
    return TableReference(database=database, table=name)


def states(client: ThriftClient, table: str) -> dict[str, PartitionState]:
    """All partitions of a table by name, ready or not."""
    request = ListPartitionsRequest(table=reference(table), includeUncommitted=True)
    return {state.name: state for state in client.lake_list_partitions(request).partitions}


def ready(client: ThriftClient, table: str) -> set[str]:
    return {name for name, state in states(client, table).items() if state.ready}


def wait_until_ready(client: ThriftClient, table: str, *names: str) -> None:
    """Returns once these partitions are ready and no others; usually at once, else within a round of the servers'."""
    wait_until(lambda: ready(client, table) == set(names), 20, f"{names} and no others are ready")


def data_files(location: str) -> list[Path]:
    """The files in a partition's directory that a reader reads."""
    found = local_path(location).iterdir()
    return sorted(file for file in found if file.is_file() and not file.name.startswith((".", "_")))


def ids(location: str) -> list[int]:
    """The rows in a partition's directory, by their ids."""
    return [number for file in data_files(location) for number in pq.read_table(file, columns=["id"])["id"].to_pylist()]


def rows(client: ThriftClient, table: str) -> dict[str, list[int]]:
    """The ids of all rows by partition, sorted; partitions without rows too."""
    return {name: sorted(ids(state.location)) for name, state in states(client, table).items()}


def orders(client: ThriftClient, table: str) -> Iterator[tuple[str, OrderChange]]:
    """Every row of a table of `examples.orders_stream.table`, with its partition."""
    for name, state in states(client, table).items():
        for file in data_files(state.location):
            data = pq.read_table(file)
            columns = [data[column].to_pylist() for column in ("id", "order_id", "status", "amount", "shard")]
            millis = data["event_time"].cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist()
            for number, order, status, amount, shard, event_time in zip(*columns, millis, strict=True):
                yield name, OrderChange(number, order, status, int(amount * 100), shard, event_time)

"""Shorthand for tests of the flag: tables, partitions, what a partition's flag is."""

from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Partition
from lake.protocol.lake import (
    CommitPartitionsRequest,
    ListPartitionsRequest,
    PartitionState,
    ReopenPartitionsRequest,
    TableReference,
)
from tests.support.builders import partition, table

MODE = "partition.commit.mode"
POLICY = "sink.partition-commit.policy.kind"
UNCOMMITTED = {"commit": "false"}
COMMITTED = {"commit": "true"}


def make_table(client: ThriftClient, db: str, name: str = "t", mode: str | None = None) -> None:
    """A managed table partitioned by `dt` and `hr`."""
    parameters = {} if mode is None else {MODE: mode}
    client.create_table(table(db, name, keys=("dt", "hr"), parameters=parameters))


def new(db: str, *values: str, name: str = "t", **parameters: str) -> Partition:
    return partition(db, name, *values, parameters=parameters)


def find(client: ThriftClient, db: str, *values: str, name: str = "t") -> Any:
    """A partition, whatever its flag."""
    return client.get_partition_with_auth(db, name, list(values), "me", [])


def reference(db: str, name: str = "t") -> TableReference:
    return TableReference(database=db, table=name)


def states(client: ThriftClient, db: str, name: str = "t") -> dict[str, PartitionState]:
    """All partitions' states by name."""
    listed = client.lake_list_partitions(ListPartitionsRequest(reference(db, name), includeUncommitted=True))
    return {state.name: state for state in listed.partitions}


def readiness(client: ThriftClient, db: str, name: str = "t") -> dict[str, bool]:
    """Which partitions there are, and whether they are ready."""
    return {name: state.ready for name, state in states(client, db, name).items()}


def of_flag(parameters: dict[str, str]) -> dict[str, str]:
    """Those parameters that belong to the flag."""
    return {key: value for key, value in parameters.items() if key == "commit" or key.startswith("commit.")}


def commit(client: ThriftClient, db: str, *names: str, by: str | None = None, table: str = "t", **more: Any) -> Any:
    request = CommitPartitionsRequest(reference(db, table), names=list(names), committedBy=by)
    return client.lake_commit_partitions(request.replace(**more))


def reopen(client: ThriftClient, db: str, *names: str, table: str = "t", **more: Any) -> Any:
    request = ReopenPartitionsRequest(reference(db, table), names=list(names))
    return client.lake_reopen_partitions(request.replace(**more))

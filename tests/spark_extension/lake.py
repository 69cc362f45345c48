"""What tests do to partitions beside Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from lake.protocol.hive import Partition
from lake.protocol.lake import (
    CommitPartitionsRequest,
    ListPartitionsRequest,
    ReaderLease,
    ReopenPartitionsRequest,
    TableReference,
)
from lake.tables.lake import LakeClient
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import Target, local_path


class Lake:
    """A server, asked as a writer of partitions does."""

    def __init__(self, server: MetastoreServer) -> None:
        self.server = server
        self._target = Target("ours", server.host, server.port, server.log)
        self.warehouse = self._target.warehouse()

    def reopen(self, database: str, table: str, *names: str) -> None:
        """Hides ready partitions."""
        with self._target.connect() as client:
            request = ReopenPartitionsRequest(TableReference(database=database, table=table), list(names))
            assert client.call("lake_reopen_partitions", request).reopened == list(names)

    def commit(self, database: str, table: str, *names: str) -> None:
        with self._target.connect() as client:
            request = CommitPartitionsRequest(TableReference(database=database, table=table), list(names))
            assert client.call("lake_commit_partitions", request).committed == list(names)

    def add_hidden(self, database: str, table: str, values: list[str], location: Path | None = None) -> None:
        """Adds an uncommitted partition, by default where the table has it."""
        with self._target.connect() as client:
            sd = client.get_table(database, table).sd
            sd.location = None if location is None else f"file:{location}"
            client.add_partition(
                Partition(
                    values, database, table, createTime=0, lastAccessTime=0, sd=sd, parameters={"commit": "false"}
                )
            )

    def alter_columns(self, database: str, table: str, *specs: str) -> None:
        """Gives a table these columns, as Hive does."""
        with self._target.connect() as client:
            known = client.get_table(database, table)
            changed = known.replace(sd=known.sd.replace(cols=builders.columns(*specs)))
            client.alter_table(database, table, changed)

    def states(self, database: str, table: str) -> dict[str, bool]:
        """Which partitions there are, and whether they are ready."""
        with self._target.connect() as client:
            request = ListPartitionsRequest(TableReference(database=database, table=table), includeUncommitted=True)
            return {state.name: state.ready for state in client.call("lake_list_partitions", request).partitions}

    def change_types(self, table: str, **types: str) -> None:
        """Gives columns other types as Hive does. Spark's own copy of the columns is left out: Hive's count."""
        database, name = table.split(".")
        with self._target.connect() as client:
            found = client.get_table(database, name)
            for column in found.sd.cols:
                column.type = types.get(column.name, column.type)
            found.parameters = {k: v for k, v in found.parameters.items() if not k.startswith("spark.sql.")}
            client.alter_table(database, name, found)

    def add_foreign_table(self, table: str, **properties: str) -> None:
        """A table in Parquet's format by another system's classes, with a column `id`."""
        database, name = table.split(".")
        with self._target.connect() as client:
            made = builders.table(database, name, parameters=properties)
            made.sd.inputFormat = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
            client.create_table(made)

    def upsert(self, table: str, **values: Any) -> None:
        """Writes one row of a keyed table, beside Spark."""
        with LakeClient(self.server.uri) as client:
            client.table(table).upsert(pa.Table.from_pylist([values]))

    def leases(self, table: str) -> list[ReaderLease]:
        """The readers' leases on a table, given as `database.table`."""
        database, name = table.split(".")
        with self._target.connect() as client:
            found: list[ReaderLease] = client.call("lake_list_leases", TableReference(database=database, table=name))
            return found

    def directory(self, database: str, table: str) -> Path:
        with self._target.connect() as client:
            return local_path(client.get_table(database, table).sd.location)

"""What tests do to partitions beside Spark."""

from pathlib import Path

from lake.protocol.hive import Partition
from lake.protocol.lake import CommitPartitionsRequest, ListPartitionsRequest, ReopenPartitionsRequest, TableReference
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

    def directory(self, database: str, table: str) -> Path:
        with self._target.connect() as client:
            return local_path(client.get_table(database, table).sd.location)

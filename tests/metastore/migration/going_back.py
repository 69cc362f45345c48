"""What was made here becomes the same at a Hive that a database goes back to, of each kind of object."""

from collections.abc import Callable
from pathlib import Path

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Role
from tests.metastore.migration.following import run
from tests.metastore.migration.random_catalog import Maker
from tests.support import builders
from tests.support.server import MetastoreServer

TIMES = ("createTime: ", "grantInfo.createTime: ")
"""When something was made is Hive's own affair."""


class InDatabase(Maker):
    """Makes objects in a database that is there, for roles that are there."""

    def _database(self, name: str) -> None:
        self._add(self.made.databases, name)

    def _role(self, name: str) -> None:
        self._add(self.made.roles, name)


def check_all_kinds_go_back(
    hive_uri: str,
    ours: MetastoreServer,
    place: Path,
    seed: int,
    more: Callable[[ThriftClient, str], None] = lambda client, database: None,
) -> None:
    """Objects are made here, and then made again in another form, and go back under the names and places there.

    `more`: makes further ones in a database.
    """
    there, here = f"goes_{seed}_0", f"went_{seed}_0"
    own = ("--uri", ours.uri, "--databases", there)
    names = ("--rename", f"{there}={here}", "--location", f"file:{place}/old=file:{place}/new")
    with ThriftClient.from_uri(hive_uri) as hive, ThriftClient.from_uri(ours.uri) as client:
        for number in range(2):
            hive.create_role(Role(f"went_{seed}_role_{number}", 0, "boss"))
        hive.create_database(builders.database(there, locationUri=f"file:{place}/old/{there}"))
        run("import", hive_uri, *own, *names)
        for turn in range(2):
            run("cut-over", hive_uri, there, *own, "--frozen-by-hand")
            for table in client.get_all_tables(here):
                client.drop_table(here, table, False)
            for function in client.get_functions(here, "*"):
                client.drop_function(here, function)
            maker = InDatabase(client, f"went_{seed}", place / "new", seed=seed * 10 + turn)
            made = maker.make(databases=1, tables=8, partitions=6)
            more(client, here)
            run("roll-back", hive_uri, there, *own, "--frozen-by-hand")
            found = run("verify", hive_uri, *own, *names, code=None)["differences"]
            assert [
                each for each in found if not all(part.startswith(TIMES) for part in each["text"].split("; "))
            ] == []
            assert sorted(hive.get_all_tables(there)) == sorted(made.tables[here])

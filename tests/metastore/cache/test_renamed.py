"""A name that a table had is another table's: no reply that was kept of the first is given for it."""

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetTableRequest, NoSuchObjectException
from tests.support import builders
from tests.support.server import MetastoreServer


def test_the_renamed_table_is_altered(metastore_server: MetastoreServer) -> None:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(builders.database("renamed"))
        asked = GetTableRequest("renamed", "old")

        def make() -> None:
            client.create_table(builders.external_table("renamed", "old", parameters={"n": "0"}))

        def count(name: str) -> None:
            table = client.get_table("renamed", name)
            new = {**table.parameters, "n": str(int(table.parameters["n"]) + 1)}
            client.alter_table("renamed", name, table.replace(parameters=new))

        make()
        for _ in range(2):  # replies that are read again are renewed with the next alteration
            first = client.get_table_req(asked).table
            assert client.get_table("renamed", "old").id == first.id
            count("old")
        client.alter_table("renamed", "old", client.get_table("renamed", "old").replace(tableName="new"))
        count("new")
        for ask in (lambda: client.get_table_req(asked), lambda: client.get_table("renamed", "old")):
            with pytest.raises(NoSuchObjectException):
                ask()
        make()
        count("new")
        for found in (client.get_table_req(asked).table, client.get_table("renamed", "old")):
            assert (found.id != first.id, found.parameters["n"]) == (True, "0")
        client.drop_database("renamed", True, True)

"""What the listener at a Hive that is left lets clients do with a database that is marked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    Function,
    FunctionType,
    GetTableRequest,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    Table,
)
from metastore.migration.objects import MOVED_TO, MOVING_TO
from tests.support import builders

ADDRESS = "thrift://elsewhere:9083"
Call = Callable[[], Any]
REFUSED = (MetaException, NoSuchObjectException)
"""Of Hive 2.3, which declares the exceptions of some calls in another way, a client of today reads the second."""


def check_refusals(client: ThriftClient, name: str, place: Path, *, functions: bool) -> None:
    """Changes are refused while a mark is there, reads in the way that it says; then all is as it was.

    `functions`: whether this Hive asks listeners about functions.
    """
    other = f"{name}_other"
    for database in (name, other):
        client.create_database(builders.database(database, locationUri=f"file:{place}/{database}"))
        client.create_table(builders.external_table(database, "t", keys=("dt",), sd=sd(place, database, "t")))
        client.add_partition(builders.partition(database, "t", "1", sd=sd(place, database, "t/dt=1")))
    before = state(client, name), state(client, other)
    for mark in (MOVING_TO, MOVED_TO):
        given = changes(client, name, other, place, functions=functions)
        marked(client, name, {mark: ADDRESS, "own": "kept"})
        for change in given:
            with pytest.raises(REFUSED, match=f"database {name} .* {ADDRESS}"):
                change()
        if mark == MOVING_TO:
            assert state(client, name) == before[0]
        else:
            for read in (lambda: table(client, name, "t"), lambda: client.get_partition_names(name, "t", -1)):
                with pytest.raises(REFUSED, match=f"database {name} has moved to {ADDRESS}: use it there"):
                    read()
        assert name in client.get_all_databases()
        # Others aren't touched by it.
        client.add_partition(builders.partition(other, "t", "2", sd=sd(place, other, "t/dt=2")))
        client.drop_partition(other, "t", ["2"], False)
        client.create_function(function_of(other))
        client.drop_function(other, "f")
        marked(client, name, {mark: ""})  # Hive's SQL can't take a property away
        assert (state(client, name), state(client, other)) == before
        client.add_partition(builders.partition(name, "t", "2", sd=sd(place, name, "t/dt=2")))
        client.drop_partition(name, "t", ["2"], False)
        client.create_function(function_of(name))
        client.drop_function(name, "f")


def changes(client: ThriftClient, name: str, other: str, place: Path, *, functions: bool) -> list[Call]:
    """What a client could do to a database; made before, since it needs the table."""
    one, theirs = table(client, name, "t"), table(client, other, "t")
    [partition] = client.get_partitions(name, "t", -1)
    new = builders.partition(name, "t", "9", sd=sd(place, name, "t/dt=9"))
    found: list[Call] = [
        lambda: client.create_table(builders.external_table(name, "new", sd=sd(place, name, "new"))),
        lambda: client.drop_table(name, "t", False),
        lambda: client.alter_table(name, "t", one.replace(parameters={**(one.parameters or {}), "a": "b"})),
        lambda: client.alter_table(name, "t", one.replace(tableName="renamed")),
        lambda: client.alter_table(name, "t", one.replace(dbName=other, tableName="from_there")),
        lambda: client.alter_table(other, "t", theirs.replace(dbName=name, tableName="from_there")),
        lambda: client.add_partitions([new]),
        lambda: client.drop_partition(name, "t", ["1"], False),
        lambda: client.alter_partition(name, "t", partition.replace(parameters={"a": "b"})),
        lambda: client.alter_partitions(name, "t", [partition.replace(parameters={"a": "b"})]),
        lambda: client.rename_partition(name, "t", ["1"], partition.replace(values=["8"])),
        lambda: client.drop_database(name, False, True),
    ]
    if functions:
        found.append(lambda: client.create_function(function_of(name)))
    return found


def function_of(database: str) -> Function:
    return Function("f", database, "a.B", "ann", PrincipalType.USER, 0, FunctionType.JAVA, [])


def marked(client: ThriftClient, name: str, parameters: dict[str, str]) -> None:
    client.alter_database(name, client.get_database(name).replace(parameters=parameters))


def state(client: ThriftClient, name: str) -> Any:
    tables = [table(client, name, each) for each in client.get_all_tables(name)]
    return tables, client.get_partitions(name, "t", -1), client.get_functions(name, "*")


def table(client: ThriftClient, database: str, name: str) -> Table:
    found: Table = client.get_table_req(GetTableRequest(database, name)).table
    return found


def sd(place: Path, database: str, path: str) -> Any:
    return builders.storage(location=f"file:{place}/{database}/{path}")

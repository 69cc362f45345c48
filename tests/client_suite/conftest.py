"""Every case gets a connection and a database of its own."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException
from tests.support.builders import database
from tests.support.target import Target

NUMBERS = itertools.count(1)


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    with target.connect() as connection:
        yield connection


@pytest.fixture(scope="session")
def warehouse(target: Target) -> Path:
    """The directory in which the server makes databases."""
    return target.warehouse()


@pytest.fixture
def unused_name() -> str:
    """A database name that nobody uses."""
    return f"db_{next(NUMBERS)}"


@pytest.fixture
def db(target: Target) -> Iterator[str]:
    """The name of an empty database in the default place.

    Our server drops it afterwards. Hive's needs longer for that than for most cases, and forgets all with the run.
    """
    name = f"db_{next(NUMBERS)}"
    with target.connect() as connection:
        connection.create_database(database(name))
    yield name
    if target.name == "ours":
        with target.connect() as connection, suppress(NoSuchObjectException):
            connection.drop_database(name, True, True)


@pytest.fixture
def home(warehouse: Path, db: str) -> Path:
    """The directory of `db`."""
    return warehouse / f"{db}.db"

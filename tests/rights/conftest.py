"""A server with rights, and what is in it: see `world`."""

import itertools
from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.rights.world import World, fill
from tests.support import builders
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
OPTIONS = ("--authorization", "sql-standard", "--admins", "root", "--trust-unproven-users")


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A server that decides by grants, and believes what users say of themselves."""
    directory = tmp_path_factory.mktemp("guarded")
    audit = ("--audit-log", str(directory / "audit.log"))
    roots = f"{directory}/all,database:rooted=file:{directory}/one,role:rooters={directory}/etl"
    others = ("--allowed-locations", roots, "--workers", "1", "--log-level", "warning")
    with MetastoreServer(directory / "data", *OPTIONS, *audit, *others) as server:
        yield server


@pytest.fixture(scope="session")
def world(guarded: MetastoreServer) -> Iterator[World]:
    with as_user(guarded, "root") as root:
        yield fill(guarded, root)


def as_user(server: MetastoreServer, user: str | None, *groups: str) -> ThriftClient:
    """A connection that claims to be a user's."""
    client = ThriftClient(server.host, server.port)
    if user is not None:
        client.set_ugi(user, list(groups))
    return client


@pytest.fixture(scope="module")
def root(guarded: MetastoreServer) -> Iterator[ThriftClient]:
    with as_user(guarded, "root") as client:
        yield client


@pytest.fixture
def db(root: ThriftClient) -> str:
    """A database of somebody's, with a table `t` that has a ready and an uncommitted partition."""
    name = f"lake{next(NUMBERS)}"
    root.create_database(builders.database(name, ownerName="somebody"))
    root.create_table(builders.table(name, keys=("dt",), owner="somebody", parameters={}))
    root.add_partition(builders.partition(name, "t", "1"))
    root.add_partition(builders.partition(name, "t", "2", parameters={"commit": "false"}))
    return name


@pytest.fixture
def user(guarded: MetastoreServer, db: str) -> Iterator[ThriftClient]:
    """A connection of a user without rights."""
    with as_user(guarded, f"u_{db}") as client:
        yield client

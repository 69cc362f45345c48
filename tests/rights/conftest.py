"""A server with rights, and what is in it: see `world`."""

from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.rights.world import World, fill
from tests.support.server import MetastoreServer

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

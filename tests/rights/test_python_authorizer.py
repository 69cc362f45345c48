"""An authorizer of the operator's: asked about every call, with a time limit, and failing closed."""

import time
from collections.abc import Iterator

import pytest

from lake.protocol.errors import UsageError
from lake.protocol.hive import MetaException, NoSuchObjectException
from metastore.services.access.caller import Caller
from metastore.services.access.python_authorizer import PythonAuthorizer
from metastore.services.access.rights import EVERYTHING, Action
from tests.rights.conftest import as_user
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    options = ("--admins", "root", "--trust-unproven-users", "--authorization-seconds", "0.3", "--workers", "1")
    place = ("--authorization", "python:tests.rights.policies:only_shop")
    with (
        MetastoreServer(tmp_path_factory.mktemp("policy") / "data", *place, *options) as server,
        as_user(server, "root") as root,
    ):
        for name in ("shop", "other"):
            root.create_database(builders.database(name))
            root.create_table(builders.table(name))
        yield server


def test_it_decides(server: MetastoreServer) -> None:
    with as_user(server, "alice") as alice, as_user(server, "root") as root:
        for _ in range(2):  # the second time the reply is kept
            assert root.get_table("other", "t").tableName == "t"
            assert alice.get_table("shop", "t").tableName == "t"
            with refused(NoSuchObjectException, message="other.t table not found"):
                alice.get_table("other", "t")
        assert alice.get_all_databases() == ["shop"]
        with refused(MetaException, message="Permission denied: user [alice] does not have [DROP] privilege on"):
            alice.drop_table("shop", "t", True)


@pytest.mark.parametrize("user", ["hang", "fail", "odd", "unsayable"])
def test_it_fails_closed(server: MetastoreServer, user: str) -> None:
    with as_user(server, user) as client, as_user(server, "root") as root:
        assert root.get_table("shop", "t").tableName == "t"
        began = time.monotonic()
        with refused(NoSuchObjectException, message="table not found"):
            client.get_table("shop", "t")
        assert client.get_all_databases() == []
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("place", ["no.such:thing", "tests.rights.policies:missing", "tests.rights.policies:nothing"])
def test_one_that_cannot_be_made(place: str) -> None:
    with pytest.raises(UsageError, match="authorization"):
        PythonAuthorizer(place, 1)


def test_all_decisions_of_a_call_share_its_time() -> None:
    authorizer = PythonAuthorizer("tests.rights.policies:only_shop", 0.2)
    began = time.monotonic()
    found = authorizer.decide_all(Caller("hang"), [(Action.SEE, EVERYTHING)] * 50)
    assert not any(each.allowed for each in found)
    assert "did not answer within 0.2 s" in found[0].reason
    assert time.monotonic() - began < 5


def test_a_list_without_an_end_shows_nothing() -> None:
    authorizer = PythonAuthorizer("tests.rights.policies:endless", 5)
    assert authorizer.visible(Caller("u"), [EVERYTHING] * 2) == [False, False]

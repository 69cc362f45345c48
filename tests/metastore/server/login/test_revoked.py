"""Tokens and connections end with their users, and administrators end them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.lake import CancelTokensRequest, ListTokensRequest
from metastore.server.credentials import password_file
from tests.support.called import complaint, output
from tests.support.expect import refused
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


class Place(NamedTuple):
    """A server whose administrator is root; trino may act as ann."""

    server: MetastoreServer
    users: Path

    def add(self, *names: str) -> None:
        for name in names:
            password_file.add(self.users, name, f"pw-{name}", (), allow_weak=True)

    def client(self, login: Login) -> ThriftClient:
        return ThriftClient(self.server.host, self.server.port, login=login)

    def as_user(self, name: str, *, acting_as: str | None = None) -> ThriftClient:
        return self.client(Login(user=name, password=f"pw-{name}", acting_as=acting_as))

    def token(self, name: str, owner: str | None = None) -> str:
        with self.as_user(name) as client:
            text: str = client.get_delegation_token(owner or name, "yarn")
            return text

    def variables(self, name: str) -> dict[str, str]:
        uri = f"thrift://{self.server.host}:{self.server.port}"
        return {"METASTORE_URI": uri, "METASTORE_USER": name, "METASTORE_PASSWORD": f"pw-{name}"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("revoked")
    found = Place(
        MetastoreServer(
            directory / "data",
            *("--authentication", "plain,token", "--password-file", str(directory / "users")),
            *("--credentials-without-tls", "--proxy-users", "trino=*", "--workers", "2"),
            *("--authorization", "sql-standard", "--admins", "root"),
        ),
        directory / "users",
    )
    found.add("root", "trino", "ann")
    with found.server as server:
        yield found
        assert "internal error" not in server.log.read_text()


def ended(client: ThriftClient) -> bool:
    try:
        client.getVersion()
    except (TTransportException, OSError):
        return True
    return False


def test_the_connections_and_tokens_of_a_removed_user_end(place: Place) -> None:
    place.add("bob")
    token, fetched = place.token("bob"), place.token("trino", "bob")
    connections = [
        place.as_user("bob"),
        place.client(Login(token=token)),
        place.client(Login(token=fetched)),
        place.as_user("trino", acting_as="bob"),
    ]
    others = [
        place.as_user("ann"),
        place.as_user("trino", acting_as="ann"),
        place.client(Login(token=place.token("ann"))),
    ]
    password_file.remove(place.users, "bob")
    for each in (token, fetched):
        with pytest.raises(LoginRefused, match="not valid"):
            place.client(Login(token=each))
    for each in connections:
        wait_until(lambda each=each: ended(each), 30, "the connection has ended")  # type: ignore[misc]
    assert not any(ended(each) for each in others)
    assert "bob was removed from the password file" in place.server.log.read_text()
    place.add("bob")  # somebody else of the same name, perhaps
    with pytest.raises(LoginRefused, match="not valid"):
        place.client(Login(token=token))


def test_a_changed_password_ends_them_too(place: Place) -> None:
    place.add("carl")
    token, connection = place.token("carl"), place.as_user("carl")
    job = place.client(Login(token=token))
    password_file.add(place.users, "carl", "another", ("group",), allow_weak=True)
    with place.client(Login(user="carl", password="another")) as carl:
        wait_until(lambda: ended(connection) and ended(job), 30, "both connections have ended")
        assert not ended(carl)
        [listed] = carl.lake_list_tokens(ListTokensRequest())
        assert listed.valid is False
    with pytest.raises(LoginRefused, match="not valid"):
        place.client(Login(token=token))


def test_other_groups_end_nothing(place: Place) -> None:
    place.add("dora")
    token, connection = place.token("dora"), place.as_user("dora")
    password_file.add(place.users, "dora", "pw-dora", ("ops",), allow_weak=True)
    time.sleep(4)  # two looks
    assert not ended(connection)
    place.client(Login(token=token)).close()


def test_no_token_is_issued_to_a_removed_user_whose_connection_is_still_open(place: Place) -> None:
    place.add("erik")
    with place.as_user("erik") as erik:
        password_file.remove(place.users, "erik")
        with pytest.raises((MetaException, TTransportException), match=r"log in again|read 0 bytes|closed"):
            erik.get_delegation_token("erik", "yarn")


def test_a_file_that_can_not_be_read_ends_no_connection(place: Place) -> None:
    content = place.users.read_text()
    token, connection = place.token("ann"), place.as_user("ann")
    try:
        place.users.write_text("nonsense")
        with pytest.raises(LoginRefused):
            place.client(Login(token=token))
        time.sleep(3)
        assert not ended(connection)
    finally:
        place.users.write_text(content)
    place.client(Login(token=token)).close()


def test_users_list_and_cancel_their_own_tokens(place: Place) -> None:
    place.add("fay", "gus")
    token = place.token("fay")
    place.token("gus")
    with place.as_user("fay") as fay, place.as_user("gus") as gus:
        [own] = fay.lake_list_tokens(ListTokensRequest())
        assert (own.owner, own.renewer, own.realUser, own.valid) == ("fay", "yarn", None, True)
        assert own.issuedAt < own.validUntil < own.renewableUntil
        assert fay.lake_list_tokens(ListTokensRequest(owner="fay")) == [own]
        for request in (ListTokensRequest(owner="fay"), ListTokensRequest(everybody=True)):
            with refused(MetaException, message="Permission denied"):
                gus.lake_list_tokens(request)
        assert gus.lake_cancel_tokens(CancelTokensRequest([own.id, 2**40, -1])) == []
        for request in (CancelTokensRequest([own.id], owner="fay"), CancelTokensRequest(everybody=True)):
            with refused(MetaException, message="Permission denied"):
                gus.lake_cancel_tokens(request)
        job = place.client(Login(token=token))
        assert fay.lake_cancel_tokens(CancelTokensRequest([own.id])) == [own.id]
        wait_until(lambda: ended(job), 30, "the job's connection has ended")
        assert fay.lake_list_tokens(ListTokensRequest()) == []
        assert len(gus.lake_list_tokens(ListTokensRequest())) == 1


def test_administrators_list_and_cancel_everybodys_by_the_command(place: Place) -> None:
    place.add("hal")
    place.token("hal")
    fetched = place.token("trino", "hal")
    place.token("ann")
    root = place.variables("root")
    listed = output("tokens", "list", "--owner", "hal", **root)
    assert "trino" in listed and "hal" in listed
    with place.as_user("root") as client:
        ids = [each.id for each in client.lake_list_tokens(ListTokensRequest(owner="hal"))]
        assert set(ids) < {each.id for each in client.lake_list_tokens(ListTokensRequest(everybody=True))}
    assert "Permission denied" in complaint("tokens", "cancel", str(ids[0]), **place.variables("ann"))
    assert output("tokens", "cancel", str(ids[1]), **root) == f"1 cancelled: {ids[1]}\n"
    with pytest.raises(LoginRefused, match="not valid"):
        place.client(Login(token=fetched))
    assert output("tokens", "cancel", "--owner", "hal", **root) == f"1 cancelled: {ids[0]}\n"
    assert f"there is no token {ids[0]}" in complaint("tokens", "cancel", str(ids[0]), **root)
    assert output("tokens", "list", "--owner", "hal", **root) == ""

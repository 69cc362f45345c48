"""The mechanism GSSAPI without a connection: who comes in as whom, and what is refused."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.protocol.connection.login import Login
from metastore.server.credentials.identity import Denied, Identity, Unavailable
from metastore.server.credentials.logins import Logins
from metastore.server.login import mechanisms
from metastore.server.login.mechanisms import Step
from metastore.settings import load
from tests.metastore.server.login.conftest import Keys
from tests.support import kerberos
from tests.support.kerberos import REALM, SERVER, Realm, has_tickets

if (reason := kerberos.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(autouse=True)
def as_ann(tickets: dict[str, dict[str, str]]) -> Iterator[None]:
    with has_tickets(tickets["ann"]):
        yield


def logins_of(realm: Realm, **options: Any) -> Logins:
    given = {"authentication": "kerberos", "kerberos_principal": SERVER, "kerberos_keytab": str(realm.keytab)}
    return Logins(load(given | options)[0])


@pytest.fixture
def logins(realm: Realm, keys: Keys) -> Logins:
    return logins_of(
        realm,
        password_file=str(keys.users),
        auth_to_local=["RULE:[2:$1;$2](trino;.*)s/;.*//", f"RULE:[1:$1@$0](.*@{REALM})s/@.*//"],
        proxy_users={"trino": ["ann", "group:ops", "host:127.0.0.0/8"], "bob": ["*", "host:10.0.0.0/8"]},
    )


def negotiate(logins: Logins, *, acting_as: str | None = None, layer: str | None = None) -> Step:
    """What a login ends with. Raises Denied."""
    from lake.protocol.connection.kerberos import Gssapi
    from lake.protocol.sasl.gssapi_layers import SecurityLayer

    mechanism = mechanisms.begin("GSSAPI", logins, "127.0.0.1:5", encrypted=False)
    client = Login(kerberos_principal=SERVER, acting_as=acting_as).sasl("localhost")
    assert isinstance(client, Gssapi)
    if layer is not None:
        client._layer = lambda offered: SecurityLayer[layer]  # type: ignore[method-assign]
    challenge = b""
    while (step := mechanism.step(client.respond(challenge))).identity is None:
        challenge = step.challenge
    client.finish(step.challenge)
    if step.protection is not None:
        assert client.protection is not None
        assert step.protection.unwrap(client.protection.wrap(b"to the server")) == b"to the server"
        assert client.protection.unwrap(step.protection.wrap(b"to the client")) == b"to the client"
    return step


ANN = Identity("ann", "kerberos", ("dev", "ops"))


@pytest.mark.parametrize(
    ("principal", "acting_as", "outcome"),
    [
        ("ann", None, ANN),
        ("trino/coordinator", None, Identity("trino", "kerberos")),
        ("trino/coordinator", "ann", Identity("ann", "kerberos", ("dev", "ops"), "trino")),
        ("trino/coordinator", f"ann@{REALM}", Identity("ann", "kerberos", ("dev", "ops"), "trino")),
        ("trino/coordinator", "bob", "user trino may not act as 'bob'"),
        ("trino/coordinator", "group:ops", "user trino may not act as 'group:ops'"),
        ("trino/coordinator", "ann@ELSEWHERE", "no rule of auth_to_local gives principal ann@ELSEWHERE a user"),
        ("bob", "ann", "user bob may not act as 'ann' from here"),
        ("bob", f"bob@{REALM}", Identity("bob", "kerberos")),
        ("ann", "bob", "user ann may not act as 'bob'"),
        ("job/one", None, f"no rule of auth_to_local gives principal job/one@{REALM} a user"),
    ],
)
def test_who_one_is(
    logins: Logins,
    tickets: dict[str, dict[str, str]],
    principal: str,
    acting_as: str | None,
    outcome: Identity | str,
) -> None:
    with has_tickets(tickets[principal]):
        if isinstance(outcome, str):
            with pytest.raises(Denied, match=outcome):
                negotiate(logins, acting_as=acting_as)
        else:
            identity = negotiate(logins, acting_as=acting_as).identity
            assert identity is not None
            assert replace(identity, passwords=()) == outcome
            # The file has ann: who acts as her comes in as long as she has her password.
            assert [user for user, _ in identity.passwords] == (["ann"] if outcome.real_user else [])


@pytest.mark.parametrize("offered", ["auth", "auth-int", "auth-conf", "auth-int,auth-conf"])
@pytest.mark.parametrize("chosen", ["auth", "auth-int", "auth-conf"])
def test_layers(realm: Realm, offered: str, chosen: str) -> None:
    logins = logins_of(realm, kerberos_protection=offered)
    layer = chosen.upper().replace("-", "_")
    if chosen in offered.split(","):
        assert (negotiate(logins, layer=layer).protection is None) == (chosen == "auth")
    else:
        with pytest.raises(Denied, match=f"the server wants {offered.replace(',', ' or ')} "):
            negotiate(logins, layer=layer)


def test_keytab_with_another_key(realm: Realm, tmp_path: Path, tickets: dict[str, dict[str, str]]) -> None:
    """A ticket that was issued for a key that the keytab doesn't have, and a keytab that has gone."""
    keytab = tmp_path / "keytab"
    keytab.write_bytes(realm.keytab.read_bytes())
    logins = logins_of(realm, kerberos_keytab=str(keytab))
    principal = f"other/localhost@{REALM}"
    realm.add(principal)
    keytab.unlink()
    realm.extract(principal, keytab)
    with pytest.raises(Unavailable, match="the server can't use its keytab"):
        negotiate(logins)
    keytab.unlink()
    with pytest.raises(Unavailable, match="the server can't use its keytab"):
        negotiate(logins)
    keytab.write_bytes(realm.keytab.read_bytes())
    assert negotiate(logins).identity == Identity("ann", "kerberos")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=3))
def test_random_tokens(logins: Logins, tokens: list[bytes]) -> None:
    mechanism = mechanisms.begin("GSSAPI", logins, "127.0.0.1:5", encrypted=False)
    with pytest.raises(Denied, match="GSS initiate failed"):
        for token in tokens:
            assert mechanism.step(token).identity is None


@pytest.mark.parametrize(("step", "wrong"), list(itertools.product(range(3), ("changed", "shorter", "longer"))))
def test_login_that_breaks_at_each_step(logins: Logins, monkeypatch: pytest.MonkeyPatch, step: int, wrong: str) -> None:
    """A client's response is wrong: its ticket, its empty response, its choice of a layer."""
    from lake.protocol.connection.kerberos import Gssapi

    respond = Gssapi.respond
    responses = itertools.count()

    def broken(self: Gssapi, challenge: bytes) -> bytes:
        response = respond(self, challenge)
        if next(responses) != step:
            return response
        if wrong == "longer" or not response:
            return response + b"\0" * 20
        return response[:-20] if wrong == "shorter" else response[:-20] + bytes(b ^ 0xFF for b in response[-20:])

    monkeypatch.setattr(Gssapi, "respond", broken)
    with pytest.raises(Denied):
        negotiate(logins)


def test_response_that_is_repeated(logins: Logins) -> None:
    """What somebody listened to is of no use in another login."""
    client = Login(kerberos_principal=SERVER).sasl("localhost")
    assert client is not None
    ticket = client.respond(b"")
    assert mechanisms.begin("GSSAPI", logins, "127.0.0.1:5", encrypted=False).step(ticket).challenge
    with pytest.raises(Denied, match=r"[Rr]eplay"):
        mechanisms.begin("GSSAPI", logins, "127.0.0.1:5", encrypted=False).step(ticket)

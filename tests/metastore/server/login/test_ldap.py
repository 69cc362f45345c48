"""Logins by passwords that a directory server (OpenLDAP's) checks."""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.protocol.connection.login import Login, LoginRefused
from metastore.server.credentials.identity import Denied, Identity, Unavailable
from metastore.server.credentials.logins import Passwords
from metastore.settings import load
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn
from tests.support import ldap
from tests.support.certificates import Authority
from tests.support.ldap import GROUPS, PEOPLE, SERVER_DN, SERVER_PASSWORD, Directory
from tests.support.waiting import wait_until

if (reason := ldap.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)

USERS = {"ann": "secret", "Bob": "bob's", "star*": "starry", "o,x=y": "comma", "trino": "proxy", "{user}": "braces"}
ANN = Identity("ann", "plain", ("dev", "ops"))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[Directory]:
    users = {name.replace(",", "\\,").replace("=", "\\="): password for name, password in USERS.items()}
    ldif = ldap.entries(users, {"ops": ["ann"], "dev": ["ann", "Bob"], "all": ["Bob", "{user}"]})
    ldif = ldif.replace("\nuid: o\\,x\\=y", "\nuid: o,x=y")
    with ldap.running(tmp_path_factory.mktemp("slapd"), keys.authority, ldif) as directory:
        yield directory


def by_search(directory: Directory) -> dict[str, Any]:
    return {"ldap_user_base": PEOPLE, "ldap_bind_dn": SERVER_DN, "ldap_bind_password": SERVER_PASSWORD}


def by_pattern(directory: Directory) -> dict[str, Any]:
    return {"ldap_user_dn": f"uid={{user}},{PEOPLE}"}


def options(directory: Directory, find: Callable[[Directory], dict[str, Any]], **more: Any) -> dict[str, Any]:
    common = {
        "authentication": "plain",
        "credentials_without_tls": True,
        "ldap_url": directory.url,
        "ldap_ca": str(directory.authority),
        "ldap_group_base": GROUPS,
    }
    return common | find(directory) | more


def asking(directory: Directory, find: Callable[[Directory], dict[str, Any]] = by_search, **more: Any) -> Passwords:
    from metastore.server.credentials.ldap_directory import LdapDirectory

    return LdapDirectory(load(options(directory, find, **more))[0])


@pytest.fixture(params=[by_search, by_pattern])
def passwords(request: pytest.FixtureRequest, directory: Directory) -> Passwords:
    return asking(directory, request.param)


@pytest.mark.parametrize(
    ("user", "password", "identity"),
    [
        ("ann", "secret", ANN),
        ("ANN", "secret", ANN),
        ("Bob", "bob's", Identity("Bob", "plain", ("all", "dev"))),
        ("star*", "starry", Identity("star*", "plain")),
        ("o,x=y", "comma", Identity("o,x=y", "plain")),
        ("{user}", "braces", Identity("{user}", "plain", ("all",))),
    ],
)
def test_right_password(passwords: Passwords, user: str, password: str, identity: Identity) -> None:
    """The name is the directory's, whatever the client's has of upper case."""
    assert passwords.check(user, password, "") == identity


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "wrong"),
        ("ann", ""),
        ("nobody", "secret"),
        ("*", "secret"),
        ("an*", "secret"),
        ("ann)(uid=*", "secret"),
        ("ann,ou=people", "secret"),
        ("ann ", "secret"),
        ("", ""),
        ("a\0nn", "secret"),
        ("x" * 5_000, "secret"),
        ("ann", "x" * 5_000),
    ],
)
def test_wrong_password(passwords: Passwords, user: str, password: str) -> None:
    with pytest.raises(Denied, match="wrong user or password") as denied:
        passwords.check(user, password, "")
    assert not isinstance(denied.value, Unavailable)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(user=st.text(st.characters(codec="utf-8"), max_size=20) | st.text('anN*()\\,=+ "{}', max_size=8))
def test_names_are_never_part_of_a_filter_or_entry(passwords: Passwords, user: str) -> None:
    if user.casefold() == "ann":
        return
    with pytest.raises(Denied, match="wrong user or password"):
        passwords.check(user, "secret", "")


def test_groups_of_who_has_not_logged_in(directory: Directory) -> None:
    passwords = asking(directory)
    assert passwords.groups("ann") == ("dev", "ops")
    assert passwords.groups("ANN") == passwords.groups("nobody") == passwords.groups("*") == ()


def test_encrypted_only(directory: Directory, tmp_path: Path) -> None:
    assert asking(directory, ldap_url=directory.tls_url).check("ann", "secret", "") == ANN
    assert asking(directory, ldap_start_tls=False).check("ann", "secret", "") == ANN
    stranger = Authority(tmp_path).file
    for url in (directory.url, directory.tls_url):
        with pytest.raises(Unavailable) as refused:
            asking(directory, ldap_url=url, ldap_ca=str(stranger)).check("ann", "secret", "")
        assert url in refused.value.cause
        with pytest.raises(Unavailable):  # the library takes it for this machine's own name
            asking(directory, ldap_url=url.replace("127.0.0.1", "localhost")).check("ann", "secret", "")


def test_search_as_somebody_wrong_is_nobodys_fault(directory: Directory) -> None:
    with pytest.raises(Unavailable) as refused:
        asking(directory, ldap_bind_password="wrong").check("ann", "secret", "")
    assert "Invalid credentials" in refused.value.cause
    assert "secret" not in refused.value.cause


def test_directory_away(directory: Directory) -> None:
    """What was right is remembered; others are refused in time, and soon without being asked for."""
    passwords = asking(directory, ldap_seconds=0.3)
    assert passwords.check("ann", "secret", "") == ANN
    directory.process.send_signal(signal.SIGSTOP)
    try:
        causes = []
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(Unavailable, match="the directory doesn't answer") as refused:
                passwords.check("Bob", "bob's", "")
            causes.append(refused.value.cause)
            assert time.monotonic() - began < 2
        assert "did not answer within 0.3 s" in causes[0] or "can't be reached" in causes[0]
        assert causes[-1] == "the LDAP directory didn't answer just now"
        assert passwords.check("ann", "secret", "") == ANN
        with pytest.raises(Unavailable):
            passwords.check("ann", "wrong", "")
    finally:
        directory.process.send_signal(signal.SIGCONT)

    def answers() -> bool:
        try:
            return passwords.check("Bob", "bob's", "").user == "Bob"
        except Unavailable:
            return False

    wait_until(answers, 20, "the directory is asked again")


def test_nothing_is_remembered_where_the_cache_is_off(directory: Directory) -> None:
    passwords = asking(directory, ldap_cache_seconds=0, ldap_seconds=0.3)
    assert passwords.check("ann", "secret", "") == ANN
    directory.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable):
            passwords.check("ann", "secret", "")
    finally:
        directory.process.send_signal(signal.SIGCONT)


def test_server_with_a_directory(directory: Directory, tmp_path: Path) -> None:
    """While the directory is away, who is connected goes on, and new logins are refused within two seconds."""
    given = options(directory, by_search, proxy_users={"trino": ["group:dev"]})
    with StandIn(tmp_path / "data", **given) as server:
        with server.client(Login(user="ann", password="secret")) as client:
            assert '"ann", ["dev", "ops"], "plain"' in client.get_config_value("", "")
            with server.client(Login(user="trino", password="proxy", acting_as="Bob")) as proxied:
                assert '"Bob", ["all", "dev"], "plain", "trino"' in proxied.get_config_value("", "")
            directory.process.send_signal(signal.SIGSTOP)
            try:
                began = time.monotonic()
                with pytest.raises(LoginRefused, match="the directory doesn't answer"):
                    server.client(Login(user="Bob", password="bob's"))
                assert time.monotonic() - began < 2
                assert client.getVersion() == "stand-in"
            finally:
                directory.process.send_signal(signal.SIGCONT)
        assert "LDAP directory" in server.lines("login refused")[-1]["cause"]
        text = server.log.read_text()
        assert not [each for each in ("secret", "bob's", SERVER_PASSWORD) if each in text]


def test_port_where_nobody_listens(directory: Directory) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        with pytest.raises(Unavailable) as refused:
            asking(directory, ldap_url=f"ldap://localhost:{port}").check("ann", "secret", "")
    assert "can't be reached" in refused.value.cause

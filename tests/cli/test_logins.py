"""Logging in by the command line and by what programs import, to a whole server; the files of logins."""

import json
import re
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.login import BadLogin, Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.spark.configuration import _server_warehouse, tls_settings
from lake.subscriptions import subscribe
from lake.tables.lake import LakeClient
from metastore.server.credentials import password_file
from metastore.settings import SettingsError, load
from tests.support import builders
from tests.support.called import complaint, output, run
from tests.support.certificates import Authority
from tests.support.server import MetastoreServer, ServerDidNotStart


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("users") / "users"
    output("users", "add", "--allow-weak", str(file), "ann", "--group", "dev", METASTORE_PASSWORD="secret")
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Authority, users: Path) -> Iterator[MetastoreServer]:
    """A whole server on which everybody has to encrypt and to log in."""
    certificate, key = authority.issue("server", "localhost", "127.0.0.1")
    options = {
        "--authentication": "plain",
        "--password-file": str(users),
        "--tls-certificate": str(certificate),
        "--tls-key": str(key),
        "--http-port": "0",
        "--workers": "1",
    }
    flat = [text for pair in options.items() for text in pair]
    with MetastoreServer(tmp_path_factory.mktemp("logins") / "data", *flat, "--tls-required") as server:
        yield server
        assert "internal error" not in server.log.read_text()


@pytest.fixture(scope="module")
def variables(authority: Authority) -> dict[str, str]:
    return {"METASTORE_TLS_CA": str(authority.file), "METASTORE_USER": "ann", "METASTORE_PASSWORD": "secret"}


@pytest.fixture
def logged_in(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.long
def test_commands_log_in(server: MetastoreServer, variables: dict[str, str], tmp_path: Path) -> None:
    found = json.loads(output("status", "--uri", server.uri, "--json", **variables))
    assert (found["authentication"], found["encryption"]) == ("plain", "TLS")
    file = tmp_path / "password"
    file.write_text("secret\n")
    flags = ("--tls-ca", variables["METASTORE_TLS_CA"], "--user", "ann", "--password-file", str(file))
    output("tables", "list", "--uri", server.uri, *flags)


def test_commands_that_are_refused(server: MetastoreServer, variables: dict[str, str], tmp_path: Path) -> None:
    status = ("status", "--uri", server.uri)
    assert "hive.metastore.use.SSL=true" in complaint(*status)
    ca = {"METASTORE_TLS_CA": variables["METASTORE_TLS_CA"]}
    assert "answers nobody who has not logged in" in complaint(*status, **ca)
    assert "wrong user or password" in complaint(*status, **variables | {"METASTORE_PASSWORD": "guess"})
    assert "needs a password" in complaint(*status, "--user", "ann", **ca)
    another = Authority(tmp_path).file
    assert "isn't trusted" in complaint(*status, **variables | {"METASTORE_TLS_CA": str(another)})
    assert "can't use the files of TLS" in complaint(*status, "--tls-ca", str(tmp_path / "none"))


@pytest.mark.usefixtures("logged_in")
def test_programs_log_in_by_the_environment(server: MetastoreServer) -> None:
    with ThriftClient.from_uri(server.uri) as client:
        client.create_database(builders.database("logins"))
        client.set_ugi("root", ["wheel"])
        with subscribe(server.uri, start="earliest") as events:
            [event] = [event for event in events.poll(10) if event.database == "logins"]
            assert event.origin.user == "ann"
        with subscribe(server.uri, group="some") as events:
            events.poll(0.1)
    with LakeClient(server.uri) as lake:
        assert lake.call(lambda client: client.get_database("logins")).name == "logins"
    assert _server_warehouse(server.uri).endswith("warehouse")


def test_programs_give_a_login(server: MetastoreServer, authority: Authority) -> None:
    login = Login(authorities=authority.file, user="ann", password="secret")
    with LakeClient(server.uri, login=login) as lake:
        assert lake.call(lambda client: client.getStatus()) == 2
    wrong = Login(authorities=authority.file, user="ann", password="guess")
    with LakeClient(server.uri, login=wrong) as lake, pytest.raises(LoginRefused, match="wrong user"):
        lake.call(lambda client: client.getStatus())  # at once: it isn't repeated for minutes
    with subscribe(server.uri, login=wrong) as events, pytest.raises(LoginRefused, match="wrong user"):
        events.poll()
    assert "guess" not in repr(wrong)


@pytest.mark.parametrize(
    "given",
    [
        {"user": "ann"},
        {"certificate": "c.pem"},
        {"certificate": "c.pem", "key": "k.pem"},
        {"user": "ann", "password": "x", "token": "y"},
    ],
    ids=["no password", "no key", "no authorities", "two logins"],
)
def test_logins_that_mean_nothing(given: dict[str, str]) -> None:
    with pytest.raises(BadLogin):
        Login(**given)


def test_probes_reach_the_workers(server: MetastoreServer) -> None:
    match = re.search(r"uri=(http://\S+)", server.log.read_text())
    assert match is not None
    for path in ("/health", "/ready"):
        with urllib.request.urlopen(match[1] + path, timeout=20) as answer:
            assert json.load(answer) == {"status": "ok"}
    assert 'mechanism="server"' in urllib.request.urlopen(match[1] + "/metrics", timeout=20).read().decode()


# -- files ---------------------------------------------------------------------------------------------------


def test_users_are_added_changed_listed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "users"
    for name in ("bob", "ann"):
        added = output(
            "users", "add", "--allow-weak", str(file), name, "--group", "a", "--group", "b", METASTORE_PASSWORD="secret"
        )
        assert added == f"{name} added to {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in file.read_text()
    password = tmp_path / "password"
    password.write_text("other\n")
    assert "changed in" in output("users", "add", "--allow-weak", str(file), "ann", "--password-file", str(password))
    listed = json.loads(output("users", "list", str(file), "--json"))
    assert listed == [{"name": "ann", "groups": []}, {"name": "bob", "groups": ["a", "b"]}]
    assert "removed from" in output("users", "remove", str(file), "bob")
    assert "has no user bob" in complaint("users", "remove", str(file), "bob")
    assert output("users", "list", str(file)).split() == ["user", "groups", "ann"]


@pytest.mark.parametrize("name", ["", "a|b", "a,b", "#a", "a\nb"])
def test_names_that_the_file_can_not_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="can't be the name"):
        password_file.add(tmp_path / "users", name, "secret", (), allow_weak=True)
    with pytest.raises(ValueError, match="can't be the name"):
        password_file.add(tmp_path / "users", "ann", "secret", (name,), allow_weak=True)
    assert not (tmp_path / "users").exists()


def test_bad_names_and_passwords_are_usage_errors(tmp_path: Path) -> None:
    for name, password in (("a|b", "secret"), ("ann", "x" * 2_000)):
        assert (
            run("users", "add", "--allow-weak", str(tmp_path / "users"), name, METASTORE_PASSWORD=password).returncode
            == 2
        )


WEAK = (
    "",
    "short",
    "elevenchars",
    "password1234",
    "Secret!!!!!!!",
    "annabella2026",
    "aaaaaaaaaaaaa",
    "123456789012",
    "abcdefgh1234",
)


@pytest.mark.parametrize("password", WEAK)
def test_weak_passwords_are_refused(tmp_path: Path, password: str) -> None:
    with pytest.raises(ValueError, match="too weak: use at least 12 characters, 5 different ones"):
        password_file.add(tmp_path / "users", "annabella", password, ())
    assert not (tmp_path / "users").exists()


@pytest.mark.parametrize(
    "password",
    ["nine grey geese", "Xk7-rT2-qW9z", "größe-über-alles", "日本語のとても長いパスワード", "7" + "x1y2z3" * 100],
)
def test_strong_passwords_are_taken(tmp_path: Path, password: str) -> None:
    assert password_file.add(tmp_path / "users", "annabella", password, ())


def test_a_weak_password_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "users"
    refused = run("users", "add", str(file), "ann", METASTORE_PASSWORD="secret")
    assert refused.returncode == 2
    assert "too weak" in refused.stderr
    assert not file.exists()
    assert "added to" in output("users", "add", "--allow-weak", str(file), "ann", METASTORE_PASSWORD="secret")


def test_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("some notes\n")
    assert "line 1 of" in complaint("users", "add", "--allow-weak", str(file), "ann", METASTORE_PASSWORD="secret")
    assert file.read_text() == "some notes\n"


def test_self_signed_certificate(tmp_path: Path) -> None:
    directory = tmp_path / "tls"
    said = output("tls", "self-signed", str(directory), "--host", "localhost", "--host", "127.0.0.1")
    assert "--tls-certificate" in said
    assert "hive.metastore.truststore.path" in said
    assert (directory / "key.pem").stat().st_mode & 0o777 == 0o600
    assert "exists already" in complaint("tls", "self-signed", str(directory))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate.pem", directory / "key.pem")
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    trusting = ssl.create_default_context(cafile=str(directory / "certificate.pem"))
    client = trusting.wrap_bio(outgoing, incoming, server_hostname="localhost")
    for side in (client, server):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    client.do_handshake()
    server.do_handshake()
    assert client.getpeercert()["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))  # type: ignore[index]


@pytest.mark.long
def test_files_that_can_not_be_used_stop_the_start(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("nothing")
    options = ("--tls-certificate", str(key), "--tls-key", str(key), "--workers", "1")
    with pytest.raises(ServerDidNotStart, match="no pair of a certificate and its key"):
        MetastoreServer(tmp_path / "data", *options).start()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"authentication": "plain"}, "needs one of password_file, password_hook and ldap_url"),
        ({"authentication": "kerberos"}, "needs kerberos_principal and kerberos_keytab"),
        ({"kerberos_principal": "metastore@REALM"}, "a server's principal has a host"),
        ({"auth_to_local": "RULE:[3:$1]"}, "auth-to-local: bad value"),
        ({"proxy_users": "trino=host:10.0.0.0/8"}, "it names hosts and no user"),
        ({"proxy_users": "trino=* host:gateway"}, "is no address or network"),
        ({"ldap_url": "ldap://x"}, "needs ldap_user_dn or ldap_user_base"),
        ({"ldap_url": "ldap://x", "ldap_user_dn": "uid=ann"}, "expected .user. in it"),
        ({"ldap_url": "ldap://x", "ldap_user_base": "o=x", "password_file": "x"}, "exclude one another"),
        ({"ldap_bind_dn": "cn=x"}, "ldap_bind_dn and ldap_bind_password need each other"),
        ({"authentication": "jwt"}, "needs jwt_keys, jwt_issuer and jwt_audience"),
        ({"authentication": "certificate"}, "needs tls_client_ca"),
        ({"authentication": "token,none"}, "needs another way"),
        ({"tls_required": True}, "tls_required needs tls_certificate"),
        ({"tls_certificate": "x"}, "need each other"),
        ({"authentication": "plain", "password_file": "x"}, "or credentials_without_tls"),
        ({"authentication": ""}, "authentication"),
        ({"proxy_users": "trino"}, "proxy-users: bad value"),
    ],
    ids=[
        "plain",
        "kerberos",
        "principal",
        "rules",
        "hosts alone",
        "no network",
        "entries",
        "user's entry",
        "directories",
        "bind",
        "jwt",
        "certificate",
        "token",
        "required",
        "key",
        "without TLS",
        "nothing",
        "nobody",
    ],
)
def test_settings_that_do_not_go_together(given: dict[str, object], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        load(given)


def test_settings_about_several_others_name_no_single_one() -> None:
    complained = complaint("settings", "--authentication", "plain", code=2)
    assert "authentication by plain needs one of password_file, password_hook and ldap_url" in complained


def test_sparks_settings_of_tls() -> None:
    assert tls_settings("trust.jks", "changeit") == {
        "spark.hadoop.hive.metastore.use.SSL": "true",
        "spark.hadoop.hive.metastore.truststore.path": "trust.jks",
        "spark.hadoop.hive.metastore.truststore.password": "changeit",
    }


def test_password_of_a_key_has_no_flag() -> None:
    assert "--tls-key-password" not in output("serve", "--help")
    assert "***" in output("settings", METASTORE_TLS_KEY_PASSWORD="secret")


def test_who_is_exposed() -> None:
    for host, authentication, exposed in (
        ("127.0.0.1", "none", False),
        ("::1", "none", False),
        ("localhost", "none", False),
        ("0.0.0.0", "none", True),
        ("::", "none,header", True),
        ("metastore.example", "none", True),
        ("0.0.0.0", "header", False),
    ):
        settings, _ = load({"host": host, "authentication": authentication})
        assert (settings.exposure is not None) == exposed, host


@pytest.mark.long
def test_server_that_is_open_to_everybody_says_so(tmp_path: Path) -> None:
    server = MetastoreServer(tmp_path / "data", "--workers", "1")
    server.host = "0.0.0.0"
    with server:
        assert "THE SERVER IS OPEN TO EVERYBODY" in server.log.read_text()
        status = run("status", "--uri", f"thrift://127.0.0.1:{server.port}")
        assert "anybody who reaches 0.0.0.0 may read, change and delete everything" in status.stderr
        assert status.returncode == 0

"""The steps in docs/security.md, as an operator would type them."""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from metastore.settings import Settings
from tests.metastore.server.login.conftest import Keys
from tests.support import ldap
from tests.support.json_web_keys import KeyServer
from tests.support.kerberos import REALM, Realm
from tests.support.server import MetastoreServer

PAGE = Path(__file__).resolve().parents[4] / "docs/security.md"
COMMAND = f"{shlex.quote(sys.executable)} -m lake.cli"


PASSWORD = "nine grey geese"


def block(heading: str, language: str, replaced: Mapping[str, str]) -> str:
    """The first block of a language in a section, with other names in it."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    text = found[1]
    for name, other in replaced.items():
        assert name in text, f"{name} is not in the steps to {heading} any more"
        text = text.replace(name, other)
    return text


def steps(heading: str, replaced: Mapping[str, str]) -> list[str]:
    """The commands of the first console block in a section, with other names in them."""
    text = block(heading, "console", replaced).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines()]


def follow(commands: list[str], directory: Path, environment: dict[str, str], answers: Mapping[str, str]) -> str:
    """Types the commands into one shell; the server runs meanwhile. `answers`: what programs ask for. The output."""
    [serve] = [command for command in commands if command.startswith("metastore serve")]
    at = commands.index(serve)
    before, after = commands[:at], commands[at + 1 :]
    run(before, environment, answers)
    options = shlex.split(serve)[2:]
    with MetastoreServer(directory / "data", *options, "--workers", "1", environment=environment) as server:
        usual = {"METASTORE_URI": f"thrift://localhost:{server.port}"}
        return run([each.replace(":9083", f":{server.port}") for each in after], usual | environment, answers)


def run(commands: list[str], environment: dict[str, str], answers: Mapping[str, str]) -> str:
    lines = ["set -e", "PATH=$PATH:/usr/sbin"]
    for command in commands:
        answer = next((text for name, text in answers.items() if command.startswith(name)), "")
        piped = f"printf '%s\\n' {shlex.quote(answer)} | " if answer else ""
        lines.append(piped + re.sub(r"^metastore (?=[a-z])", f"{COMMAND} ", command))
    done = subprocess.run(
        ["bash"], input="\n".join(lines), text=True, capture_output=True, env=os.environ | environment, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_encryption_and_passwords(tmp_path: Path) -> None:
    """From a certificate of one's own to a login, by three sections."""
    place = {"/srv/metastore": str(tmp_path)}
    make, without_logins = steps("Encryption", place | {"metastore.example": "localhost"})
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    passwords = steps("Passwords", place)
    assert any(command.startswith("metastore users add") for command in passwords)
    use = steps("What clients say", place | {"~/.metastore-password": str(password)})
    environment = {"METASTORE_PASSWORD": PASSWORD}
    assert "ready" in follow([make, *passwords, *use], tmp_path, environment, {})
    trusting = f"export METASTORE_TLS_CA={tmp_path}/tls/certificate.pem"
    (tmp_path / "open").mkdir()
    assert "ready" in follow([without_logins, trusting, "metastore status"], tmp_path / "open", {}, {})


@pytest.mark.long
def test_bearer_tokens(keys: Keys, tmp_path: Path) -> None:
    issuer = KeyServer()
    issuer.add("a")
    names = {"https://issuer.example/.well-known/jwks.json": issuer.url}
    configuration = tmp_path / "metastore.toml"
    configuration.write_text(block("Bearer tokens", "toml", names))
    tls = ("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key))
    with MetastoreServer(tmp_path / "data", "--config", str(configuration), *tls, "--workers", "1") as server:
        variables = {
            "METASTORE_TLS_CA": str(keys.authority.file),
            "METASTORE_TOKEN": issuer.token(),
            "METASTORE_URI": f"thrift://localhost:{server.port}",
        }
        assert "ready" in run(["metastore status"], variables, {})
    issuer.close()


@pytest.mark.long
def test_delegation_tokens(keys: Keys, tmp_path: Path) -> None:
    configuration = tmp_path / "metastore.toml"
    configuration.write_text(block("Delegation tokens", "toml", {}))
    options = (
        *("--config", str(configuration), "--password-file", str(keys.users), "--workers", "1"),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key)),
    )
    with MetastoreServer(tmp_path / "data", *options) as server:
        scope: dict[str, object] = {"login": keys.login("ann", "secret")}
        exec(block("Delegation tokens", "python", {'"metastore.example"': f'"localhost", {server.port}'}), scope)
        variables = {
            "METASTORE_TLS_CA": str(keys.authority.file),
            "METASTORE_TOKEN": str(scope["token"]),
            "METASTORE_URI": f"thrift://localhost:{server.port}",
        }
        assert "ready" in run(["metastore status"], variables, {})


def test_certificates_of_clients(keys: Keys, tmp_path: Path) -> None:
    certificate, key = keys.authority.issue("operator", common_name="operator")
    options = (
        *("--authentication", "certificate", "--tls-client-ca", str(keys.authority.file), "--workers", "1"),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key)),
    )
    with MetastoreServer(tmp_path / "data", *options) as server:
        variables = {
            "METASTORE_TLS_CA": str(keys.authority.file),
            "METASTORE_CLIENT_CERTIFICATE": str(certificate),
            "METASTORE_CLIENT_KEY": str(key),
            "METASTORE_URI": f"thrift://localhost:{server.port}",
        }
        assert "ready" in run(["metastore status"], variables, {})


def test_kerberos(realm: Realm, tickets: dict[str, dict[str, str]], tmp_path: Path) -> None:
    realm.set_password(f"bob@{REALM}", "typed")
    names = {
        "/srv/metastore": str(tmp_path),
        "metastore.example": "localhost",
        "EXAMPLE.COM": REALM,
        "kinit ann": "kinit bob",
    }
    environment = realm.of_administrator | {"KRB5CCNAME": str(tmp_path / "tickets")}
    found = follow(steps("Kerberos", names), tmp_path, environment, {"kinit": "typed"})
    assert "ready" in found


def test_ldap(keys: Keys, tmp_path: Path) -> None:
    if (reason := ldap.missing()) is not None:
        pytest.skip(reason)
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "slapd").mkdir()
    ldif = ldap.entries({"ann": "secret"}, {"ops": ["ann"]})
    with ldap.running(tmp_path / "slapd", keys.authority, ldif) as directory:
        names = {
            "ldap://ldap.example": directory.url,
            "dc=example,dc=org": ldap.BASE,
            "/srv/metastore/tls/authority.pem": str(keys.authority.file),
            "/srv/metastore/tls/certificate.pem": str(keys.certificate),
            "/srv/metastore/tls/key.pem": str(keys.key),
            "/srv/metastore/password": str(tmp_path / "password"),
            "metastore.example": "127.0.0.1",
        }
        assert "ready" in follow(steps("LDAP", names), tmp_path, {}, {})


@pytest.mark.long
def test_the_http_port(keys: Keys, tmp_path: Path) -> None:
    """A password is asked for on the loopback interface, too, with one flag more than where others reach the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    names = {
        "/srv/metastore/users": str(tmp_path / "users"),
        "/srv/metastore/netrc": str(tmp_path / "netrc"),
        "/srv/metastore/tls/certificate.pem": str(keys.certificate),
        "/srv/metastore/tls/key.pem": str(keys.key),
        "--http-host 0.0.0.0": "--http-host 127.0.0.1 --no-metrics-anonymous",
        "metastore.example": "localhost",
        "9084": str(port),
    }
    commands = steps("The HTTP port", names)
    commands = [each.replace(f"--cacert {keys.certificate}", f"--cacert {keys.authority.file}") for each in commands]
    assert sum(each.startswith("curl") for each in commands) == 2
    words = PASSWORD.replace(" ", "-")  # netrc has no quotes
    (tmp_path / "netrc").write_text(f"machine localhost login prometheus password {words}\n")
    found = follow(commands, tmp_path, {"METASTORE_PASSWORD": words}, {})
    assert '{"status": "ok"}' in found and "metastore_requests_total" in found
    (tmp_path / "netrc").write_text("machine localhost login prometheus password guess\n")
    commands[0] = "metastore users list /dev/null"
    (tmp_path / "again").mkdir()
    with pytest.raises(AssertionError, match="401"):
        follow(commands, tmp_path / "again", {}, {})


def test_settings_on_the_page_exist() -> None:
    names = set(re.findall(r"`((?:kerberos|ldap|auth_to|proxy)_[a-z_]+)`", PAGE.read_text()))
    assert {"kerberos_protection", "ldap_cache_seconds"} <= names <= set(Settings.model_fields)

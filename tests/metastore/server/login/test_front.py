"""A front that logs in to its backends by password and TLS, and by Kerberos, and acts as its callers there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn
from tests.support.certificates import Authority
from tests.support.front import FrontServer
from tests.support.kerberos import SERVER, Realm

PROXIES = {"trino": ["ann", "host:127.0.0.0/8"]}


class Setting(NamedTuple):
    """A front, and the file with its password at the backend."""

    front: FrontServer
    password: Path

    def asked_by(self, user: str, password: str, backend: str) -> list[object]:
        """Who a backend says that a caller of the front is: name, groups, how it logged in, and who acts for it."""
        login = Login(user=user, password=password)
        with ThriftClient(self.front.host, self.front.port, timeout=30, login=login) as client:
            client.setMetaConf("federation.backend", backend)
            found: list[object] = json.loads(client.get_config_value("", ""))
            return found


@pytest.fixture(scope="module")
def setting(
    tmp_path_factory: pytest.TempPathFactory, realm: Realm, tickets: dict[str, dict[str, str]], keys: Keys
) -> Iterator[Setting]:
    directory = tmp_path_factory.mktemp("front")
    password = directory / "password"
    password.write_text("proxy\n")
    strangers = Authority(tmp_path_factory.mktemp("strangers"))
    of_passwords = {"authentication": "plain", "password_file": str(keys.users), "proxy_users": PROXIES, **keys.tls}
    of_tickets = {
        "authentication": "kerberos",
        "kerberos_principal": SERVER,
        "kerberos_keytab": str(realm.keytab),
        "auth_to_local": ["RULE:[2:$1;$2](trino;.*)s/;.*//"],
        "proxy_users": PROXIES,
    }
    with (
        StandIn(directory / "passwords", **of_passwords) as passwords,
        StandIn(directory / "tickets", os.environ | realm.environment, **of_tickets) as by_ticket,
    ):
        logs_in = f'user = "trino"\npassword_file = "{password}"\nconnections = 1'
        there = f'uris = "thrift://localhost:{passwords.port}"\n{logs_in}'
        backends = {
            "passwords": f'{there}\ntls_ca = "{keys.authority.file}"\nprefix = "p_"',
            "strangers": f'{there}\ntls_ca = "{strangers.file}"\nprefix = "s_"',
            "tickets": f'uris = "thrift://localhost:{by_ticket.port}"\nkerberos_principal = "{SERVER}"\nprefix = "t_"',
        }
        own = f'[server]\nauthentication = "plain"\npassword_file = "{keys.users}"\ncredentials_without_tls = true\n'
        with FrontServer(directory / "front", backends, more=own, environment=tickets["trino/coordinator"]) as front:
            yield Setting(front, password)


@pytest.mark.parametrize(("backend", "mechanism"), [("passwords", "plain"), ("tickets", "kerberos")])
def test_it_acts_as_its_caller(setting: Setting, backend: str, mechanism: str) -> None:
    name, _, by, real = setting.asked_by("ann", "secret", backend)
    assert (name, by, real) == ("ann", mechanism, "trino")


@pytest.mark.parametrize("backend", ["passwords", "tickets"])
def test_not_as_one_whom_it_may_not_act_for(setting: Setting, backend: str) -> None:
    with pytest.raises(TApplicationException, match=f"can't log in at backend {backend} for its caller: .*bob"):
        setting.asked_by("bob", "bob's", backend)
    assert setting.asked_by("ann", "secret", backend)[0] == "ann", "others are not shut out"


def test_a_password_that_is_wrong_until_somebody_mends_it(setting: Setting) -> None:
    right = setting.password.read_text()
    setting.password.write_text("yesterday's\n")
    try:
        for user, own in (("bob", "bob's"), ("ann", "secret")):  # the first has the only connection closed
            with pytest.raises(TApplicationException, match="can't log in at backend passwords for its caller"):
                setting.asked_by(user, own, "passwords")
    finally:
        setting.password.write_text(right)
    assert setting.asked_by("ann", "secret", "passwords")[0] == "ann"


def test_a_server_with_a_certificate_of_strangers(setting: Setting) -> None:
    with pytest.raises(TApplicationException, match=r"at backend strangers .* certificate of .* isn't trusted"):
        setting.asked_by("ann", "secret", "strangers")

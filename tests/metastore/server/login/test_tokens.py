"""Delegation tokens: issued, used, renewed, cancelled; through a restart and on another server."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from lake.protocol.connection.login import BadLogin, Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.sasl import delegation_token
from lake.protocol.sasl.delegation_token import Identifier
from metastore.services.access.issued_tokens import DAY
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.metastore.server.login.conftest import Keys
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

ANN, BOB, TRINO = (
    Login(user=user, password=password) for user, password in (("ann", "secret"), ("bob", "bob's"), ("trino", "proxy"))
)


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.fresh_database(upgraded=True) as url:
        yield url


@pytest.fixture(scope="module")
def options(url: str, keys: Keys) -> tuple[str, ...]:
    return (
        *("--authentication", "plain,token", "--password-file", str(keys.users), "--credentials-without-tls"),
        *("--proxy-users", "trino=ann", "--database-url", url, "--workers", "1"),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, options: tuple[str, ...]) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("tokens") / "data", *options) as server:
        yield server
        assert "internal error" not in server.log.read_text()


def connected(server: MetastoreServer, login: Login) -> ThriftClient:
    return ThriftClient.from_uri(server.uri, login=login)


@pytest.mark.long
def test_job_logs_in_with_a_token_alone(server: MetastoreServer) -> None:
    with connected(server, ANN) as client:
        token = client.get_delegation_token("ann", "scheduler")
    with connected(server, Login(token=token)) as job:
        job.create_database(builders.database("by_token"))
        for refused in (lambda: job.get_delegation_token("ann", "x"), lambda: job.renew_delegation_token(token)):
            with pytest.raises(MetaException, match="log in with one"):
                refused()
        job.set_ugi("root", [])
    lines = [line for line in server.log.read_text().splitlines() if "mechanism=token" in line]
    assert "user=ann" in lines[-1]


@pytest.mark.long
def test_token_outlives_restarts_and_is_known_to_all_servers(
    server: MetastoreServer, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with connected(server, ANN) as client:
        token = client.get_delegation_token("ann", "ann")
    with MetastoreServer(tmp_path / "data", *options) as other, connected(other, Login(token=token)) as job:
        assert job.getStatus() == 2
        job.cancel_delegation_token(token)
    with pytest.raises(LoginRefused, match="not valid"):
        connected(server, Login(token=token))


def test_who_may_have_a_token(server: MetastoreServer) -> None:
    with connected(server, TRINO) as trino:
        token = trino.get_delegation_token("ann", "trino/host@REALM")
        identifier = Identifier.decode(delegation_token.from_text(token).identifier)
        assert (identifier.owner, identifier.renewer, identifier.real_user) == ("ann", "trino", "trino")
        with pytest.raises(MetaException, match="trino is not allowed to impersonate bob"):
            trino.get_delegation_token("bob", "trino")
    with connected(server, ANN) as ann, pytest.raises(MetaException, match="not allowed to impersonate root"):
        ann.get_delegation_token("root", "")


def test_renewing_and_cancelling(server: MetastoreServer) -> None:
    with connected(server, ANN) as ann, connected(server, BOB) as bob, connected(server, TRINO) as trino:
        token = ann.get_delegation_token("ann", "bob")
        issued = Identifier.decode(delegation_token.from_text(token).identifier).issue_date
        assert DAY <= bob.renew_delegation_token(token) - issued <= DAY + 60_000
        with pytest.raises(MetaException, match="ann tries to renew a token with renewer bob"):
            ann.renew_delegation_token(token)
        with pytest.raises(MetaException, match="trino is not authorized to cancel"):
            trino.cancel_delegation_token(token)
        ann.cancel_delegation_token(token)
        for again in (lambda: ann.cancel_delegation_token(token), lambda: bob.renew_delegation_token(token)):
            with pytest.raises(MetaException, match="was cancelled"):
                again()


def test_forged_tokens(server: MetastoreServer) -> None:
    with connected(server, BOB) as bob:
        token = delegation_token.from_text(bob.get_delegation_token("bob", "bob"))
        own = Identifier.decode(token.identifier)
        for field, value in (("owner", "ann"), ("max_date", own.max_date * 2), ("key_id", 99), ("sequence", 10**9)):
            changed = Identifier(**{name: getattr(own, name) for name in Identifier.__slots__} | {field: value})
            forged = delegation_token.to_text(token._replace(identifier=changed.encode()))
            with pytest.raises(LoginRefused, match="not valid"):
                connected(server, Login(token=forged))
            with pytest.raises(MetaException):
                bob.renew_delegation_token(forged)
        for nonsense in ("", "abc", base64.b64encode(b"x" * 100).decode(), "é", "x" * 10_000):
            with pytest.raises(MetaException, match="no delegation token"):
                bob.cancel_delegation_token(nonsense)
    with pytest.raises(BadLogin):
        connected(server, Login(token="nonsense"))


def test_tokens_and_keys_end(server: MetastoreServer, url: str) -> None:
    engine = create_engine(url)

    def change(statement: str) -> None:
        with engine.begin() as tx:
            tx.execute(text(statement))

    with connected(server, ANN) as ann:
        token = ann.get_delegation_token("ann", "ann")
        change(f"UPDATE issued_tokens SET renew_until = renew_until - {2 * DAY}")
        with pytest.raises(LoginRefused, match="not valid"):
            connected(server, Login(token=token))
        ann.renew_delegation_token(token)
        connected(server, Login(token=token)).close()
        change(f"UPDATE token_keys SET made = made - {2 * DAY}")
        newer = ann.get_delegation_token("ann", "ann")
        keys = [Identifier.decode(delegation_token.from_text(each).identifier).key_id for each in (token, newer)]
        assert keys[0] < keys[1], "a key signs for a day"
        connected(server, Login(token=token)).close()
        change(f"UPDATE issued_tokens SET max_date = max_date - {8 * DAY}")
        change(f"UPDATE token_keys SET made = made - {10 * DAY} WHERE id = {keys[0]}")
    settings = Settings(database_url=url, authentication=("plain", "token"), credentials_without_tls=True,
                        password_file="x", warehouse_dir=str(server.data_dir))  # fmt: skip
    metastore = Metastore.open(settings)
    metastore.issued_tokens.sweep()
    metastore.close()
    with engine.connect() as tx:
        assert tx.execute(text("SELECT count(*) FROM issued_tokens")).scalar_one() == 0
        assert tx.execute(text("SELECT array_agg(id) FROM token_keys")).scalar_one() == [keys[1]]
    engine.dispose()


def test_keys_are_shown_to_nobody(server: MetastoreServer) -> None:
    with connected(server, ANN) as ann:
        ann.get_delegation_token("ann", "ann")
        assert ann.get_master_keys() == []
        assert ann.get_all_token_identifiers() == []

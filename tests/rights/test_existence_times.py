"""How long an answer takes doesn't tell what is hidden from what isn't there: both ask the database the same."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS, Call
from metastore.api.rights.guard import Guard, Verdict
from metastore.api.session import Session
from metastore.postgres.joined_messages import JoiningCursor
from metastore.services.access.caller import Caller
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.rights import calls
from tests.rights.calls import Name
from tests.rights.conftest import OPTIONS, as_user
from tests.rights.test_cedar_policy import POLICIES
from tests.rights.test_matrix import HIDDEN_FROM, NAMED
from tests.rights.test_storage import path_of
from tests.rights.world import HIDDEN, HIDDEN_TABLE, OPEN, OPEN_TABLE, fill
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

load()


class Counting(JoiningCursor):
    """Counts what is sent."""

    messages = 0

    def execute(self, *args: Any) -> None:
        Counting.messages += 1
        super().execute(*args)


def by_grants(directory: Path, root: ThriftClient) -> dict[str, Any]:
    return {"authorization": "sql-standard"}


def by_policy(directory: Path, root: ThriftClient) -> dict[str, Any]:
    (directory / "world.cedar").write_text(POLICIES)
    return {"authorization": "policy", "policy_file": directory / "world.cedar"}


def by_storage(directory: Path, root: ThriftClient) -> dict[str, Any]:
    """Only root may read what is hidden."""
    path_of(root.get_database(HIDDEN).locationUri).chmod(0o700)
    path_of(root.get_table(OPEN, HIDDEN_TABLE).sd.location).chmod(0o700)
    return {"authorization": "storage"}


@pytest.fixture(
    scope="module",
    params=[
        by_grants,
        by_policy,
        pytest.param(by_storage, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what is hidden")),
    ],
)
def metastore(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Metastore]:
    """The services on a database that was filled by a server."""

    def count(connection: Any, _record: object) -> None:
        connection.cursor_factory = Counting

    with (
        tempfile.TemporaryDirectory(prefix="existence-", dir="/tmp") as name,  # which everybody can reach
        postgres.fresh_database() as url,
    ):
        directory = Path(name)
        directory.chmod(0o755)
        warehouse = ("--warehouse-dir", str(directory / "warehouse"))
        with (
            MetastoreServer(
                directory / "data", *OPTIONS, *warehouse, "--workers", "1", "--database-url", url
            ) as server,
            as_user(server, "root") as root,
        ):
            fill(server, root)
            authorization = request.param(directory, root)
        event.listen(Engine, "connect", count)
        settings = Settings(
            database_url=url,
            data_dir=directory / "mine",
            warehouse_dir=str(directory / "warehouse"),
            admins=("root",),
            trust_unproven_users=True,
            **authorization,
        )
        try:
            opened = Metastore.open(settings)
            yield opened
            opened.close()
        finally:
            event.remove(Engine, "connect", count)


def messages(metastore: Metastore, guard: Guard, user: str | None, made: calls.Made) -> int:
    """How often a call asks the database."""
    session = Session("1", Caller(user))
    call, handler, method = Call(session, metastore, False), HANDLERS[made.method], METHODS[made.method]
    before = Counting.messages
    with contextlib.suppress(Exception):  # what it answers is compared elsewhere
        guard.answer(
            call,
            method,
            made.arguments,
            lambda: handler.function(call, *[getattr(made.arguments, each) for each in method.argument_names]),
            Verdict(),
        )
    return Counting.messages - before


def forms(method: str, name: Name) -> list[calls.Made]:
    """The call by name, and with this name as a pattern where a method takes one."""
    found = [calls.made(method, name)]
    for field in ("pattern", "tableNamePattern", "tablesPattern"):
        other = calls.made(method, name)
        for arguments in (other.arguments, getattr(other.arguments, "req", None)):
            if hasattr(arguments, field):
                setattr(arguments, field, name.table)
                found.append(other)
    return found


@pytest.mark.long
@pytest.mark.parametrize("role", HIDDEN_FROM, ids=list(HIDDEN_FROM))
def test_what_is_hidden_takes_what_is_missing_takes(metastore: Metastore, role: str) -> None:
    user, hidden, missing = HIDDEN_FROM[role]
    assert metastore.access_control is not None
    guard = Guard(metastore.access_control)
    wrong = []
    messages(metastore, guard, user, calls.made("get_table", Name(OPEN, OPEN_TABLE)))  # prepares statements
    for unrelated in (Name("unrelated", "t"), Name(OPEN, "unrelated")):  # what isn't about the object is read once
        for method in NAMED:
            messages(metastore, guard, user, calls.made(method, unrelated))
    for method in NAMED:
        found = []
        for names in (hidden, missing):
            made = [each for _ in range(2) for each in forms(method, Name(*names))]
            # The first reads what is granted, the second has that in memory.
            found.append([messages(metastore, guard, user, each) for each in made])
        if found[0] != found[1]:
            wrong.append((method, found))
    assert wrong == []
    assert Counting.messages > len(NAMED), "nothing was counted"

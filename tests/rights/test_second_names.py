"""Every text of every request as the name or place of a hidden object: answered like a missing one, changing nothing.

In the ordinary run a sample, whose seed is printed; in the long one all of it, under each authorizer.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from tests.rights import sweep
from tests.rights.conftest import as_user
from tests.rights.sweep import OWN, USER, Case, Target
from tests.rights.wire import RawConnection
from tests.rights.world import HIDDEN, HIDDEN_TABLE, OPEN, OPEN_TABLE, fill, grant
from tests.support.server import MetastoreServer

load()

SAMPLE = 80
"""Calls of the ordinary run, under each authorizer."""

RISING = {"compact", "compact2", "lock", "open_txns", "allocate_table_write_ids", "createNewInstantTime"}
"""Their replies have numbers that rise."""
OF_EVENTS = {"lake_read_group_events", "lake_read_events", "get_next_notification", "get_current_notificationEventId"}
"""Their replies tell of the calls before."""
ADDING = ("create", "add", "drop", "append", "exchange", "rename", "lake_complete", "lake_begin", "truncate")
"""Methods after whose success the next call would find another state."""

POLICY = f"""
permit(principal, action, resource) when {{ principal in resource.owner }};
permit(principal == User::"{USER}", action, resource in Database::"hive.{OWN}");
permit(principal == User::"{USER}", action == Action::"TAKE_PART", resource);
permit(principal == User::"{USER}", action == Action::"SEE", resource == Database::"hive.{OPEN}");
permit(principal == User::"{USER}", action in Action::"reading", resource in Table::"hive.{OPEN}.{OPEN_TABLE}");
"""


def started(authorizer: str, directory: Path) -> MetastoreServer:
    chosen = {"python": "python:tests.rights.policies:own_and_shown"}.get(authorizer, authorizer)
    options = ["--authorization", chosen, "--admins", "root", "--trust-unproven-users", "--workers", "1"]
    if authorizer == "policy":
        (directory / "own.cedar").write_text(POLICY)
        options += ["--policy-file", str(directory / "own.cedar")]
    return MetastoreServer(directory / "data", *options, "--log-level", "error")


class Sweep:
    """A world under one authorizer, and a user in it who owns a database and may read one table of another."""

    def __init__(self, server: MetastoreServer, root: ThriftClient, authorizer: str) -> None:
        self._server, self._root = server, root
        self._by_storage = authorizer == "storage"
        fill(server, root)
        sweep.put_files(root)
        if authorizer == "sql-standard":
            grant(root, USER, "SELECT", OPEN, OPEN_TABLE)
        if self._by_storage:
            for location in (root.get_database(HIDDEN).locationUri, root.get_table(OPEN, HIDDEN_TABLE).sd.location):
                place = Path(location.removeprefix("file:"))
                for each in (place, place.with_name(sweep.MISSING_TABLE)):
                    if each.exists():
                        each.chmod(0o700)
        self._user = RawConnection(server.host, server.port, USER)
        self._home = ""
        self.targets = sweep.targets(root)
        self.renew()

    def renew(self) -> None:
        """The user's database as it was."""
        sweep.make_own(self._root)
        self._home = self._root.get_database(OWN).locationUri
        if self._by_storage:
            place = Path(self._home.removeprefix("file:"))
            for each in (place, *place.rglob("*")):
                each.chmod(0o777)
        self._new = True

    def close(self) -> None:
        self._user.close()

    def state(self) -> dict[str, object]:
        return sweep.state(self._root)

    def _ask(self, case: Case, target: Target, instead: Target) -> object:
        if not self._new:
            self.renew()
        reply = self._user.reply(case.method, case.arguments(target, self._home))
        self._new = not (case.method.startswith(ADDING) and sweep.succeeded(case.method, reply))
        return sweep.comparable(case.method, reply, target, instead)

    def difference(self, case: Case, hidden: Target, missing: Target) -> tuple[object, object] | None:
        """The answers for what is missing and for what is hidden, if they differ whatever was called before."""
        for again in (False, True):
            self._new = self._new and not again
            of_missing = self._ask(case, missing, hidden)
            self._new = self._new and not again
            of_hidden = self._ask(case, hidden, hidden)
            if of_missing == of_hidden:
                return None
        return of_missing, of_hidden


@pytest.fixture(scope="module", params=["sql-standard", "storage", "policy", "python"])
def swept(request: pytest.FixtureRequest) -> Iterator[Sweep]:
    if request.param == "storage" and os.geteuid() != 0:
        pytest.skip("only root can give directories to others")
    directory = Path(tempfile.mkdtemp(prefix="second-names-", dir="/tmp"))  # which everybody can reach
    directory.chmod(0o755)
    with started(request.param, directory) as server, as_user(server, "root") as root:
        found = Sweep(server, root, request.param)
        yield found
        found.close()
    shutil.rmtree(directory)


def all_cases() -> list[Case]:
    methods = sorted(METHODS.keys() - sweep.NOT_CALLED - RISING - OF_EVENTS)
    return [case for method in methods for case in sweep.cases(method)]


def compare(swept: Sweep, cases: list[Case], chosen: random.Random) -> None:
    wrong: list[object] = []
    before = swept.state()
    changing: list[str] = []
    for number, case in enumerate(cases, 1):
        hidden, missing = chosen.choice(swept.targets)
        if (found := swept.difference(case, hidden, missing)) is not None:
            wrong.append((str(case), hidden.database, found))
        if HANDLERS[case.method].rule.changes:
            changing.append(f"{case} of {hidden.database}")
        if number % 250 == 0 or number == len(cases):
            now = swept.state()
            if now != before:
                wrong.append(([key for key in before if now.get(key) != before[key]], "changed after one of", changing))
            before, changing = now, []
    assert wrong == []


def test_a_sample(swept: Sweep) -> None:
    seed = os.environ.get("SEED") or str(random.randrange(10**9))
    print(f"SEED={seed}")
    chosen = random.Random(seed)
    compare(swept, chosen.sample(all_cases(), SAMPLE), chosen)


@pytest.mark.long
def test_all(swept: Sweep) -> None:
    chosen = random.Random(1)
    compare(swept, all_cases(), chosen)


@pytest.mark.parametrize(
    "method", ["create_table", "create_table_with_constraints", "add_partitions", "add_partitions_req"]
)
def test_statistics_that_come_along(swept: Sweep, method: str) -> None:
    """They are about the new object, whatever they name."""
    cases = [case for case in sweep.cases(method) if "statsDesc" in str(case) and len(case.named) > 1]
    assert cases
    compare(swept, cases, random.Random(1))

"""Every text of every request as the name or place of a hidden object: answered like a missing one, changing nothing.

In the ordinary run a sample, whose seed is printed; in the long one all of it, under each authorizer.
"""

import os
import random
import re
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

SAMPLE = 40
"""Calls of the ordinary run, under each authorizer."""

PINNED = {
    "lake_complete_instants: requests.0.added.0.slice = database",
    "lake_complete_instants: requests.0.added.0.partition = file",
    "lake_complete_instants: requests.0.replacedPartitions.0 = file",
}
"""Calls of the ordinary run besides the sample."""

RISING = {"compact", "compact2", "lock", "open_txns", "allocate_table_write_ids", "createNewInstantTime"}
"""Their replies have numbers that rise."""
OF_EVENTS = {"lake_read_group_events", "lake_read_events", "get_next_notification", "get_current_notificationEventId"}
"""Their replies tell of the calls before."""
ADDING = ("create", "add", "drop", "append", "exchange", "rename", "lake_complete", "lake_begin", "truncate")
"""Methods after whose success the next call would find another state."""

CONFINING = ("storage", "confined")
"""Authorizers under which a user may not name the places of others. The second one is sql-standard, with a setting."""

POLICY = f"""
permit(principal, action, resource) when {{ principal in resource.owner }};
permit(principal == User::"{USER}", action, resource in Database::"hive.{OWN}");
permit(principal == User::"{USER}", action == Action::"TAKE_PART", resource);
permit(principal == User::"{USER}", action == Action::"SEE", resource == Database::"hive.{OPEN}");
permit(principal == User::"{USER}", action in Action::"reading", resource in Table::"hive.{OPEN}.{OPEN_TABLE}");
"""


def started(authorizer: str, directory: Path) -> MetastoreServer:
    chosen = {"python": "python:tests.rights.policies:own_and_shown", "confined": "sql-standard"}.get(
        authorizer, authorizer
    )
    options = ["--only-allowed-locations"] if authorizer == "confined" else []
    options += ["--authorization", chosen, "--admins", "root", "--trust-unproven-users", "--workers", "1"]
    if authorizer == "policy":
        (directory / "own.cedar").write_text(POLICY)
        options += ["--policy-file", str(directory / "own.cedar")]
    return MetastoreServer(directory / "data", *options, "--log-level", "error")


class Sweep:
    """A world under one authorizer, and a user in it who owns a database and may read one table of another."""

    def __init__(self, server: MetastoreServer, root: ThriftClient, authorizer: str) -> None:
        self._server, self._root = server, root
        self._by_storage = authorizer == "storage"
        # A user who may name any place finds out what is there, but not whose it is. So the same is there.
        self._names_any_place = authorizer not in CONFINING
        fill(server, root)
        self.targets = sweep.targets(root)
        for hidden, _ in self.targets:
            sweep.put_file(hidden)
        if authorizer in ("sql-standard", "confined"):
            grant(root, USER, "SELECT", OPEN, OPEN_TABLE)
        if self._by_storage:
            for location in (root.get_database(HIDDEN).locationUri, root.get_table(OPEN, HIDDEN_TABLE).sd.location):
                Path(location.removeprefix("file:")).chmod(0o700)
        self._user = RawConnection(server.host, server.port, USER)
        self._home = ""
        self.renew()

    def renew(self) -> None:
        """The user's database as it was, and the files that were deleted with a table which a call had placed there."""
        sweep.make_own(self._root)
        if self._names_any_place:
            for _, missing in self.targets:
                sweep.put_file(missing)
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
    """All calls, or those in whose text the expression ONLY of the environment is found."""
    methods = sorted(METHODS.keys() - sweep.NOT_CALLED - RISING - OF_EVENTS)
    only = re.compile(os.environ.get("ONLY", ""))
    return [case for method in methods for case in sweep.cases(method) if only.search(str(case))]


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
            print(f"{number} of {len(cases)}", flush=True)
    assert wrong == []


@pytest.mark.sampled(2)
def test_a_sample(swept: Sweep) -> None:
    seed = os.environ.get("SEED") or str(random.randrange(10**9))
    print(f"SEED={seed}")
    chosen = random.Random(seed)
    cases = all_cases()
    compare(swept, [*chosen.sample(cases, SAMPLE), *(each for each in cases if str(each) in PINNED)], chosen)


@pytest.mark.long
def test_all(swept: Sweep) -> None:
    chosen = random.Random(1)
    compare(swept, all_cases(), chosen)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("swept", ["sql-standard", *CONFINING], indirect=True)
def test_places(swept: Sweep) -> None:
    """Nobody learns whose a place is, nor what lies there from a call that may not name it."""
    places = re.compile(r"([lL]ocation|[uU]ri|[pP]ath)$")
    named = [(case, *case.named[0]) for case in all_cases() if len(case.named) == 1]
    cases = [case for case, path, kind in named if kind in ("location", "file") and places.search(str(path[-1]))]
    assert cases
    compare(swept, cases, random.Random(1))


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "method", ["create_table", "create_table_with_constraints", "add_partitions", "add_partitions_req"]
)
def test_statistics_that_come_along(swept: Sweep, method: str) -> None:
    """They are about the new object, whatever they name."""
    cases = [case for case in sweep.cases(method) if "statsDesc" in str(case) and len(case.named) > 1]
    assert cases
    compare(swept, cases, random.Random(1))

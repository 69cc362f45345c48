"""Random histories of SQL in which drivers, executors, Python workers, calls and servers die at any step.

A statement whose outcome is known counts in a plain model; of another one all is there, or nothing.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient
from tests.crash.sql.cuts import CuttingRelay
from tests.crash.sql.history import EVENTS, History, World
from tests.crash.sql.statements import KINDS
from tests.spark.session import LINES, require
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.spark

#: After so many seconds without a heartbeat an instant is aborted. The extension sends one every 20 seconds.
PATIENCE, IMPATIENCE = "60", "1"

#: Histories that share a server, and a driver as long as it lives.
TOGETHER = 10

ROUNDS = 5


@contextmanager
def world(directory: Path, jar: Path, chance: random.Random, clusters: float = 0.3) -> Iterator[World]:
    """`clusters`: how likely a driver's tasks run in executors of their own."""
    server = MetastoreServer(directory / "data", "--instant-heartbeat-seconds", PATIENCE)
    with server, CuttingRelay(server) as relay:
        made = World(server, relay, directory, jar, chance, clusters=clusters)
        try:
            made.driver().ask("spark.sql('CREATE DATABASE k')\nresult = None")
            yield made
        finally:
            made.close()


def check_leftovers(made: World, histories: list[History]) -> None:
    """By a server that doesn't wait for the dead."""
    made.server.stop()
    options = ("--instant-heartbeat-seconds", IMPATIENCE)
    with MetastoreServer(made.server.data_dir, *options, port=made.server.port):
        for each in histories:
            each.check_leftovers()


@pytest.mark.long
def test_a_history(released_jar: Path, tmp_path: Path, seed: int) -> None:
    """Of a random kind of table, with a call that is cut off, or a driver that is killed; more in the long run."""
    require("4")
    chance = random.Random(seed)
    kind = os.environ.get("CRASH_KIND") or chance.choice(list(KINDS))
    with world(tmp_path, released_jar, chance, clusters=0.0) as made, LakeClient(made.server.uri) as client:
        history = History(made, client, "k.t", kind, chance)
        print(kind)
        history.round(chance.choice(("cut at a step", "driver killed at a step")))
        made.close()
        check_leftovers(made, [history])


@pytest.mark.long
@pytest.mark.timeout(24 * 3600)
def test_many_histories(released_jar: Path, tmp_path: Path, seed: int) -> None:
    """A minute each. CRASH_HISTORIES and CRASH_KIND say how many there are, and of which tables."""
    total = int(os.environ.get("CRASH_HISTORIES") or share_of(500))
    chance = random.Random(seed)
    kinds = chance.sample(list(KINDS), len(KINDS))
    for first in range(0, total, TOGETHER):
        with world(tmp_path / str(first), released_jar, chance) as made, LakeClient(made.server.uri) as client:
            made.lines = [line for line, python in LINES.items() if python.exists()]
            histories = []
            for number in range(first, min(first + TOGETHER, total)):
                each = random.Random(f"{seed} {number}")
                kind = os.environ.get("CRASH_KIND") or kinds[number % len(kinds)]
                print(f"history {number}: {kind}")
                histories.append(History(made, client, f"k.t{number}", kind, each))
                for _ in range(ROUNDS):
                    (event,) = each.choices(list(EVENTS), list(EVENTS.values()))
                    histories[-1].round(event)
                histories[-1].finish()
            made.close()
            check_leftovers(made, histories)
            print(made.counts, made.errors.most_common(30))
            assert made.counts["done"] > sum(made.counts[each] for each in ("killed", "failed")), made.errors

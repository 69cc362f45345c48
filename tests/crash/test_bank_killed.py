"""The bank of tests/lake/client/test_bank.py, whose writers and whose server are killed: no money is lost or made."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import pytest
from thrift.Thrift import TException

from lake.client.lake_types import Moment
from lake.protocol.struct import ExceptionStruct
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.crash import processes
from tests.lake.client.test_bank import ACCOUNTS, BALANCE, COLUMNS, now, rows, total
from tests.lake.tables.keyed.histories import make_table
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ALL = 2 * ACCOUNTS * BALANCE
WRITERS = 2


class Writer:
    """A process that moves money; its transfers are counted in a file."""

    def __init__(self, uri: str, names: list[str], seed: int, log: Path) -> None:
        command = [sys.executable, "-m", "tests.crash.bank_writer", uri, str(seed), *names]
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def moved(self) -> int:
        return self._log.read_text().count("moved\n")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Bank:
    """Two tables on a server, and the processes that change them."""

    def __init__(self, server: MetastoreServer, names: list[str], directory: Path, chance: random.Random) -> None:
        self.names = names
        self.writers: list[Writer] = []
        self._server = server
        self._directory = directory
        self._chance = chance
        self._started = 0
        self._moved = 0

    def hire(self) -> None:
        """One writer more."""
        self._started += 1
        log = self._directory / f"writer-{self._started}.log"
        self.writers.append(Writer(self._server.uri, self.names, self._chance.randrange(1_000_000), log))

    def kill_writer(self) -> None:
        writer = self.writers.pop(self._chance.randrange(len(self.writers)))
        writer.kill()
        self._moved += writer.moved()

    def kill_server(self) -> None:
        doomed = processes.everything(self._server)
        self._chance.shuffle(doomed)
        processes.kill(doomed)
        self._server.start()

    def moved(self) -> int:
        """The transfers of all writers so far."""
        return self._moved + sum(each.moved() for each in self.writers)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Reads the total and compacts all the while. Raises AssertionError if the total isn't what it was."""
        stop = Event()
        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(self._watch, stop)
            try:
                yield
            finally:
                stop.set()
            assert watching.result(timeout=120) > 0

    def _watch(self, stop: Event) -> int:
        seen = 0
        with LakeClient(self._server.uri) as client:
            tables = [client.table(name) for name in self.names]
            while not stop.is_set():
                assert total(tables, now(tables)) == ALL
                seen += 1
                # A plan whose runner lost its server is requested again by and by.
                with suppress(ExceptionStruct, TException, OSError):
                    _compact(tables[seen % 2])
        return seen


@pytest.mark.long
@pytest.mark.parametrize("kills", [3, pytest.param(25, marks=pytest.mark.long)])
def test_the_total_never_moves(kills: int, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    options = ("--drain-seconds", "5", "--instant-heartbeat-seconds", "30")
    server = MetastoreServer(tmp_path / "data", *options)
    with server, LakeClient(server.uri) as client:
        tables = [_table(client, kind) for kind in ("copy-on-write", "merge-on-read")]
        everybody = rows(dict.fromkeys(range(ACCOUNTS), BALANCE))
        client.write_together([(each, everybody, "upsert") for each in tables])
        bank = Bank(server, [each.name for each in tables], tmp_path, chance)
        try:
            with bank.watched():
                for number in range(kills):
                    while len(bank.writers) < WRITERS:
                        bank.hire()
                    before = bank.moved()
                    wait_until(lambda before=before: bank.moved() > before, 60, "money moves")  # type: ignore[misc]
                    time.sleep(chance.uniform(0, 0.5))  # a random moment of a transfer
                    if number % 2:
                        bank.kill_server()
                    else:
                        bank.kill_writer()
        finally:
            for each in bank.writers:
                each.kill()
        _check(tables)


def _table(client: LakeClient, kind: str) -> LakeTable:
    return make_table(client, {"primary-key": "id", "bucket": "3", "table-type": kind}, COLUMNS, partitioned=False)


def _compact(table: LakeTable) -> None:
    plan_compaction(table, min_log_files=5)
    for plan in table.instants(actions=["compaction"], states=["requested"]):
        run_compaction(table, plan.timestamp)


def _check(tables: list[LakeTable]) -> None:
    """At each moment there is all the money, and no transfer is in one table alone."""
    moments = {each.moment or 0 for table in tables for each in table.instants(states=["completed"])}
    for moment in sorted(moments):
        assert total(tables, Moment(moment)) == ALL
    for table in tables:
        assert sorted(table.scan().to_arrow().column("id").to_pylist()) == list(range(ACCOUNTS))

"""The server is killed while writers and a compactor change a keyed table: no row is lost, or there twice."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from thrift.Thrift import TException

from lake.protocol.struct import ExceptionStruct
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient
from tests.lake.tables.keyed.histories import COLUMNS, TABLES, History, make_table, written_at
from tests.lake.tables.keyed.model import Record
from tests.support.server import MetastoreServer

KILLS = 3


@pytest.mark.long
@pytest.mark.parametrize("kind", [pytest.param("copy-on-write", marks=pytest.mark.long), "merge-on-read"])
def test_rows_are_those_of_the_completed_batches(kind: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    batches: dict[int, list[Record]] = {}
    stop = threading.Event()
    server = MetastoreServer(tmp_path / "data", "--drain-seconds", "5")
    with server, LakeClient(server.uri) as client:
        properties = {"primary-key": "id,part", "bucket": "2", "table-type": kind, **TABLES["latest"]}
        lake = make_table(client, properties, COLUMNS)

        def write(number: int) -> None:
            with LakeClient(server.uri) as own:
                mine = History(own.table(lake.name), seed + number)
                while not stop.is_set():
                    position, batch = mine.merge(mine.lake)
                    if position is not None:
                        batches[position] = batch

        def compact() -> None:
            with LakeClient(server.uri) as own:
                table = own.table(lake.name)
                while not stop.is_set():
                    # A plan whose runner lost its server is requested again by and by; others are run meanwhile.
                    with suppress(ExceptionStruct, TException, OSError):
                        plan_compaction(table)
                        for plan in table.instants(actions=["compaction"], states=["requested"]):
                            run_compaction(table, plan.timestamp)
                    stop.wait(0.05)

        with ThreadPoolExecutor() as pool:
            workers = [pool.submit(write, 1), pool.submit(write, 2), pool.submit(compact)]
            try:
                for _ in range(KILLS):
                    time.sleep(chance.uniform(0.3, 1.5))  # a random moment of the work
                    server.kill()
                    server.start()
                time.sleep(0.5)
            finally:
                stop.set()
            for each in workers:
                each.result(timeout=120)
        assert batches
        history = written_at(lake, batches)
        history.model.rows = history.states[max(history.states)]
        history.check()

"""A stream into hundreds of partitions while the job, the server and Postgres are killed at random moments.

An offline reader looks all the time. What it must never see: a partition that isn't complete. What must be true at the
end: each generated row is in exactly one partition.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from examples.orders_stream.files import write_files
from examples.orders_stream.proof import compare
from examples.orders_stream.stream import OrderStream
from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import CommitPartitionsRequest
from tests.crash import processes
from tests.crash.conftest import seed
from tests.orders_stream import lake
from tests.orders_stream.job import Job
from tests.orders_stream.offline_reader import OfflineReader
from tests.spark.session import require
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

__all__ = ["seed"]
pytestmark = pytest.mark.spark

TABLE = "shop.orders"
#: Ten rows a minute of event time.
STEP = 6_000
ROWS_PER_HOUR = 3_600_000 // STEP


class Deaths:
    """The ways in which a part of the whole dies."""

    def __init__(self, server: MetastoreServer, job: Job, chance: random.Random) -> None:
        self._server, self._job, self._chance = server, job, chance
        self.all: list[Callable[[], None]] = [self.job, self.server, self.postgres, self.worker]

    def job(self) -> None:
        self._job.kill()
        self._job.start()

    def server(self) -> None:
        """All of it, its Postgres too."""
        doomed = processes.everything(self._server)
        self._chance.shuffle(doomed)
        processes.kill(doomed)
        time.sleep(self._chance.uniform(0, 1))  # a random moment of the work
        self._server.start()

    def postgres(self) -> None:
        """The server starts it again."""
        processes.kill([processes.postmaster(self._server)])

    def worker(self) -> None:
        """The supervisor starts another."""
        processes.kill([self._chance.choice(processes.workers(self._server))])


def stored_rows(client: ThriftClient) -> int:
    """How many rows the table's files say they have."""
    found = lake.states(client, TABLE).values()
    return sum(pq.read_metadata(file).num_rows for state in found for file in lake.data_files(state.location))


def wait_for_rows(client: ReconnectingClient, job: Job, rows: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (found := client.call(stored_rows)) < rows:
        assert job.running(), f"the job ended by itself:\n{job.said()[-4000:]}"
        assert time.monotonic() < deadline, f"{found} of {rows} rows are stored:\n{job.said()[-4000:]}"
        time.sleep(0.5)


def soak(directory: Path, seed: int, *, partitions: int, deaths: int, rows_per_second: float) -> None:
    """Runs the whole; `deaths` is how often each part dies."""
    chance = random.Random(seed)
    stream = OrderStream(seed=seed, step=STEP)
    rows = partitions * ROWS_PER_HOUR
    source = directory / "source"
    options = ["--input", str(source), "--checkpoint", str(directory / "checkpoint"), "--every", "0.2"]
    options += ["--table", TABLE, "--files-per-batch", "3"]
    with ExitStack() as stack:
        server = stack.enter_context(MetastoreServer(directory / "data", "--housekeeping-seconds", "2"))
        job = stack.enter_context(Job(server.uri, directory / "job.log", *options))
        client = stack.enter_context(ReconnectingClient(connect_to(server.uri), retry_seconds=60))
        generator = threading.Thread(
            target=write_files, args=(stream, source, rows), kwargs={"rows_per_second": rows_per_second}, daemon=True
        )
        reader = OfflineReader(server.uri, TABLE)
        job.start()
        generator.start()
        wait_until(lambda: "batch 0" in job.said(), 120, "the first batch")
        reader.start()

        to_come = Deaths(server, job, chance).all * deaths
        chance.shuffle(to_come)
        for die in to_come:
            time.sleep(chance.uniform(0.5, 7))  # a random moment of the work
            print(f"{time.monotonic():.1f} {die.__name__}")
            die()

        generator.join()
        wait_for_rows(client, job, rows, 300)
        before_the_end = len(reader.seen)
        job.kill()
        late = client.call(lambda each: each.lake_get_watermark(lake.reference(TABLE))).late
        still_open = [
            name for name, state in client.call(lambda each: lake.states(each, TABLE)).items() if not state.ready
        ]
        request = CommitPartitionsRequest(table=lake.reference(TABLE), names=still_open)
        client.call(lambda each: each.lake_commit_partitions(request))
        wait_until(lambda: len(reader.seen) >= partitions or bool(reader.complaints), 30, "all is visible")
        reader.stop()
        found = client.call(lambda each: list(lake.orders(each, TABLE)))

    assert reader.complaints == []
    proof = compare(stream, rows, found)
    assert proof.holds, str(proof)
    by_partition: dict[str, list[int]] = {}
    for name, row in found:
        by_partition.setdefault(name, []).append(row.id)
    assert {name: list(seen.ids) for name, seen in reader.seen.items()} == {
        name: sorted(numbers) for name, numbers in by_partition.items()
    }
    assert before_the_end >= partitions - 4, "hardly anything turned ready by event time"
    assert (late.rerouted, late.reopened, late.dropped) == (proof.elsewhere, 0, 0)
    assert proof.elsewhere > 0
    print(f"{proof}; {reader.looks} looks, {reader.missed} without an answer")


@pytest.mark.long
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    require("4")
    soak(tmp_path, seed, partitions=24, deaths=1, rows_per_second=700)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_hundred_partitions(tmp_path: Path, seed: int) -> None:
    require("4")
    soak(tmp_path, seed, partitions=200, deaths=6, rows_per_second=900)

"""`python -m examples.orders_stream.orders` as a user runs it."""

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.orders_stream.files import write_files
from examples.orders_stream.proof import compare
from examples.orders_stream.stream import OrderStream
from lake.protocol.connection.thrift_client import ThriftClient
from tests.crash.conftest import seed
from tests.orders_stream import lake
from tests.orders_stream.job import ROOT, Job
from tests.spark.session import require
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

__all__ = ["seed"]
pytestmark = pytest.mark.spark


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    require("4")
    with ThriftClient(metastore_server.host, metastore_server.port) as opened:
        yield opened


def program(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program of the pipeline to its end."""
    command = [sys.executable, "-m", f"examples.orders_stream.{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


@pytest.mark.long  # under the policy `next` the soak does it every time
@pytest.mark.parametrize("late", ["reopen", "drop"])
def test_a_job_killed_at_random_moments_writes_each_row_once(
    metastore_server: MetastoreServer, client: ThriftClient, tmp_path: Path, seed: int, late: str
) -> None:
    chance = random.Random(seed)
    stream, rows, table = OrderStream(seed=seed), 10_000, f"jobs.{late}"
    source = tmp_path / "source"
    write_files(stream, source, rows)
    options = ["--input", str(source), "--checkpoint", str(tmp_path / "checkpoint"), "--table", table, "--late", late]
    with Job(metastore_server.uri, tmp_path / "log", *options, "--files-per-batch", "2", "--available-now") as job:
        for batch in (0, 6):
            job.start()
            wait_until(lambda number=batch: f"batch {number}:" in job.said(), 120, f"batch {batch}")
            time.sleep(chance.uniform(0, 2))  # a random moment of the work
            job.kill()
        job.start()
        assert job.wait() == 0, job.said()[-4000:]
    proof = compare(stream, rows, lake.orders(client, table))
    counted = client.lake_get_watermark(lake.reference(table)).late
    assert (proof.doubled, proof.altered, proof.unknown, proof.elsewhere) == (set(), set(), set(), 0)
    assert len(proof.missing) == counted.dropped
    assert (counted.dropped > 0, counted.reopened > 0) == (late == "drop", late == "reopen")
    wait_until(lambda: len(lake.ready(client, table)) >= 7, 20, "partitions turn ready")


@pytest.mark.long
def test_rate_source(metastore_server: MetastoreServer, client: ThriftClient, tmp_path: Path) -> None:
    """Rows by the number that Spark counts to; the table holds the stream's beginning, whenever the job is stopped."""
    options = ["--from", "rate", "--rows-per-second", "200", "--seed", "3", "--table", "jobs.rate"]
    with Job(metastore_server.uri, tmp_path / "log", *options, "--checkpoint", str(tmp_path / "checkpoint")) as job:
        for batch in (3, 6):
            job.start()
            wait_until(lambda number=batch: f"batch {number}:" in job.said(), 120, f"batch {batch}")
            assert job.stop() == 0, job.said()[-4000:]
    found = list(lake.orders(client, "jobs.rate"))
    assert len(found) >= 600
    assert compare(OrderStream(seed=3), len(found), found).holds


@pytest.mark.long
def test_generate_write_and_prove(metastore_server: MetastoreServer, client: ThriftClient, tmp_path: Path) -> None:
    """The three programs, as the documentation shows them; and the proof fails where something is missing."""
    source, rows = tmp_path / "source", "1500"
    shape = ["--seed", "9", "--step", "7.2", "--shards", "3"]
    assert program("generate", str(source), "--rows", rows, *shape).returncode == 0
    where = ["--uri", metastore_server.uri, "--table", "jobs.proved"]
    job = [*where, "--input", str(source), "--checkpoint", str(tmp_path / "checkpoint"), "--available-now"]
    written = program("orders", *job, "--files-per-batch", "2")
    assert written.returncode == 0, written.stderr[-4000:]
    assert "created jobs.proved" in written.stdout
    assert re.search(r"^batch 2: 500 rows, watermark 2025-01-01 01:5", written.stdout, re.MULTILINE)
    lake.wait_until_ready(client, "jobs.proved", "dt=2025-01-01/hr=00")
    proved = program("proof", *where, "--rows", rows, *shape)
    assert proved.returncode == 0, proved.stdout + proved.stderr
    assert re.search(r"1500 rows in \d partitions", proved.stdout)
    wrong = program("proof", *where, "--rows", "1501", *shape)
    assert (wrong.returncode, "1 missing (such as 1500)" in wrong.stdout) == (1, True)
    sources = {each.source for each in client.lake_get_watermark(lake.reference("jobs.proved")).sources}
    assert sources == {"shard-0", "shard-1", "shard-2"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "files"], "--from files needs --input"),
        (["--from", "kafka"], "--from kafka needs --kafka-servers"),
        (["--input", "x", "--conf", "oops"], "'oops' is not of the form name=value"),
        pytest.param(
            ["--from", "kafka", "--kafka-servers", "127.0.0.1:1"],
            r"hasn't its Kafka package; give it with --packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13:4",
            marks=pytest.mark.long,
        ),
        (["--input", "x", "--table", "orders"], r"'orders' is not of the form database\.table"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    metastore_server: MetastoreServer, client: ThriftClient, tmp_path: Path, options: list[str], message: str
) -> None:
    failed = program("orders", "--uri", metastore_server.uri, "--checkpoint", str(tmp_path / "c"), *options)
    assert failed.returncode == 1
    assert re.search(f"^Error: .*{message}", failed.stderr, re.MULTILINE), failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("thrift://127.0.0.1:1", "no metastore answers at thrift://127.0.0.1:1"),
        ("nowhere", "not of the form thrift://"),
    ],
)
def test_a_metastore_that_is_not_there(tmp_path: Path, uri: str, message: str) -> None:
    options = ["--checkpoint", str(tmp_path / "c"), "--from", "rate", "--retry-seconds", "0.5"]
    failed = program("orders", "--uri", uri, *options)
    assert (failed.returncode, "Traceback" in failed.stderr) == (1, False)
    assert message in failed.stderr.splitlines()[-1]


@pytest.mark.long
def test_a_line_that_is_no_row_ends_the_job(
    metastore_server: MetastoreServer, client: ThriftClient, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "orders.json").write_text("this is no JSON\n")
    options = ["--input", str(source), "--checkpoint", str(tmp_path / "c"), "--table", "jobs.broken", "--available-now"]
    failed = program("orders", "--uri", metastore_server.uri, *options)
    assert failed.returncode == 1
    assert "Error: the query ended" in failed.stderr
    assert lake.states(client, "jobs.broken") == {}

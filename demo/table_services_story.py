"""Table services beside a writer: small commits pile up files until a service merges and deletes them.

    python demo/table_services_story.py --uri thrift://HOST:PORT

writes to a merge-on-read table of its own (`--database`), first alone and then with `metastore table-services run`
beside it, and reads the table in between. It removes the database again. Needs no Spark.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import click
import pyarrow as pa
from ending import ending
from narrator import Narrator
from rich.console import Console
from stop_sign import StopSign

from lake.protocol.hive import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from lake.protocol.lake import ListJobsRequest, ServiceJob
from lake.tables.lake import LakeClient, LakeTable

BUCKETS = 4
ROWS = 40_000
ROWS_PER_COMMIT = 400
COMMITS = 30
"""In each of the two parts."""

LOGS_TO_COMPACT = 5
SECONDS_BETWEEN_COMMITS = 0.15
SECONDS_TO_START = 30.0
SECONDS_TO_FINISH = 30.0

_PARQUET = "org.apache.hadoop.hive.ql.io.parquet."
_PROPERTIES = {
    "primary-key": "id",
    "bucket": str(BUCKETS),
    "table-type": "merge-on-read",
    "compaction.delta-commits": str(LOGS_TO_COMPACT),
    "clean.commits-retained": "3",
}
_COLUMNS = (("id", "bigint"), ("status", "string"), ("version", "bigint"))


class Look(NamedTuple):
    """The table at one time. `files`: that a reader opens. `stored`: those that are superseded, too."""

    commits: int
    files: int
    stored: int
    read_seconds: float


@dataclass
class Story:
    """What was written and seen. `expected`: each row's version. `seconds`: of each commit, by part."""

    table: LakeTable
    stop_sign: StopSign
    expected: dict[int, int] = field(default_factory=dict)
    seconds: list[list[float]] = field(default_factory=list)
    commits: int = 0

    def commit(self, ids: range) -> float:
        """Upserts the rows of some ids, with the next version. Returns how many seconds that took."""
        self.stop_sign.check()
        self.commits += 1
        version = self.commits
        columns = {"id": list(ids), "status": [f"state {version}"] * len(ids), "version": [version] * len(ids)}
        begun = time.perf_counter()
        self.table.upsert(pa.table(columns))
        seconds = time.perf_counter() - begun
        self.expected.update(dict.fromkeys(ids, version))
        return seconds

    def stream(self, looks: int) -> list[Look]:
        """Small commits one after another; looks at the table so many times meanwhile."""
        taken: list[float] = []
        found = []
        self.seconds.append(taken)
        for number in range(COMMITS):
            first = self.commits * 7_919 % (ROWS - ROWS_PER_COMMIT)
            taken.append(self.commit(range(first, first + ROWS_PER_COMMIT)))
            time.sleep(SECONDS_BETWEEN_COMMITS)
            if (number + 1) % (COMMITS // looks) == 0:
                found.append(self.look())
        return found

    def look(self) -> Look:
        files = len(list(self.table.snapshot()))
        stored = len(list(self.table.snapshot(all_versions=True)))
        return Look(self.commits, files, stored, min(self.read()[0] for _ in range(3)))

    def read(self) -> tuple[float, dict[int, int]]:
        """How many seconds it takes to read the table, and each row's version."""
        begun = time.perf_counter()
        rows = self.table.scan().to_arrow()
        seconds = time.perf_counter() - begun
        return seconds, dict(zip(rows["id"].to_pylist(), rows["version"].to_pylist(), strict=True))

    def jobs(self, *states: str) -> list[ServiceJob]:
        request = ListJobsRequest(table=self.table.reference, states=list(states), limit=1_000)
        return list(self.table.client.call(lambda client: client.lake_list_jobs(request)).jobs or ())


@contextmanager
def running_service(uri: str, scratch: Path) -> Iterator[None]:
    """`metastore table-services run` as a process of its own. Raises RuntimeError if it isn't ready soon.

    It shares this machine with the writer, and leaves the processors to it.
    """
    command = [
        "nice",
        "-n",
        "10",
        str(Path(sys.executable).with_name("metastore")),
        "table-services",
        "run",
        "--uri",
        uri,
    ]
    command += ["--executor", "arrow", "--log-level", "warning"]
    output = scratch / "table-services.out"
    with output.open("wb") as written:
        service = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while "table services ready" not in output.read_text(errors="replace"):
            if service.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the service didn't start:\n{output.read_text(errors='replace')[-2_000:]}")
            time.sleep(0.05)
        yield
    finally:
        service.terminate()
        try:
            service.wait(SECONDS_TO_FINISH)
        except subprocess.TimeoutExpired:
            service.kill()
            service.wait()


def tell(story: Story, narrator: Narrator, uri: str, scratch: Path) -> None:
    narrator.section(
        "Table services", "A stream of small commits into a merge-on-read table: each adds files that readers merge."
    )
    with narrator.step(f"Load {ROWS:,} rows into {BUCKETS} buckets") as step:
        story.commit(range(ROWS))
        loaded = story.look()
        step.note(f"{loaded.files} files")
    with narrator.step(f"{COMMITS} commits of {ROWS_PER_COMMIT} rows, and no service") as step:
        alone = story.stream(looks=2)
        step.note(f"a commit takes {in_milliseconds(story.seconds[0])}")
    with running_service(uri, scratch):
        with narrator.step(f"{COMMITS} more, with `metastore table-services run` beside them") as step:
            beside = story.stream(looks=3)
            step.note(f"a commit takes {in_milliseconds(story.seconds[1])}")
        with narrator.step("The service goes on until nothing is due") as step:
            last = finish(story)
            states = [each.state for each in story.jobs()]
            step.check("jobs that failed", states.count("failed"), 0)
            done = story.jobs("succeeded")
            compactions = sum(each.action == "compaction" for each in done)
            step.note(f"{compactions} compactions, {len(done) - compactions} cleans")
    conclude(story, narrator, [loaded, *alone, *beside, last])


def finish(story: Story) -> Look:
    """Waits until readers open few files again. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS_TO_FINISH
    while time.monotonic() < deadline:
        story.stop_sign.check()
        look = story.look()
        # A bucket has a base file, and fewer log files than make a compaction due.
        if look.files <= BUCKETS * LOGS_TO_COMPACT and not story.jobs("pending", "running"):
            return look
        time.sleep(0.2)
    raise TimeoutError(f"after {SECONDS_TO_FINISH:g} s readers still open {story.look().files} files")


def conclude(story: Story, narrator: Narrator, looks: list[Look]) -> None:
    narrator.rows(
        ("commits", "files per bucket", "files stored", "reading takes"),
        [
            (each.commits, f"{each.files / BUCKETS:.1f}", each.stored, f"{each.read_seconds * 1000:.0f} ms")
            for each in looks
        ],
        title="the service starts after the third line",
    )
    with narrator.step("Each row is as it was written last") as step:
        step.check("rows", story.read()[1], story.expected)
        worst, last = max(looks[:3], key=lambda each: each.files), looks[-1]
        step.check("fewer files than before", last.files < worst.files, True)
        step.note(f"{worst.files} files to read became {last.files}")


def in_milliseconds(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ms in the median, {max(seconds) * 1000:.0f} ms at most"


def create_table(client: LakeClient, database: str) -> LakeTable:
    """Makes the database with its table. Raises UsageError if there is one of that name."""
    if database in client.call(lambda opened: opened.get_all_databases()):
        raise click.UsageError(f"the database {database} exists already; choose with --database")
    storage = StorageDescriptor(
        cols=[FieldSchema(name=name, type=kind) for name, kind in _COLUMNS],
        inputFormat=f"{_PARQUET}MapredParquetInputFormat",
        outputFormat=f"{_PARQUET}MapredParquetOutputFormat",
        serdeInfo=SerDeInfo(serializationLib=f"{_PARQUET}serde.ParquetHiveSerDe", parameters={}),
    )
    made = Table(dbName=database, tableName="orders", tableType="MANAGED_TABLE", partitionKeys=[], sd=storage)
    client.call(lambda opened: opened.create_database(Database(name=database)))
    client.call(lambda opened: opened.create_table(made.replace(parameters=dict(_PROPERTIES))))
    return client.table(f"{database}.orders")


@click.command(context_settings={"max_content_width": 100})
@click.option("--uri", required=True, metavar="thrift://HOST:PORT", help="The metastore to use.")
@click.option("--database", default="lake_services", show_default=True, help="Name of the database to make.")
def main(uri: str, database: str) -> None:
    """Watch a service compact and clean a table beside its writer."""
    narrator = Narrator(Console(highlight=False))
    stop_sign = StopSign()
    stop_sign.watch()
    with tempfile.TemporaryDirectory(prefix="table-services-") as scratch, LakeClient(uri) as client:
        table = create_table(client, database)
        try:
            with ending(narrator, stop_sign):
                tell(Story(table, stop_sign), narrator, uri, Path(scratch))
        finally:
            with suppress(Exception):  # what went wrong before is what to tell
                client.call(lambda opened: opened.drop_database(database, True, True))
    narrator.summary("Readers opened few files again, and no commit failed.")


if __name__ == "__main__":
    main()

"""A stream fills partitions, and each is seen when it is complete: shown live, and proved at the end.

    python demo/stream_story.py --uri thrift://HOST:PORT

runs the job of `examples.orders_stream.orders` against a lake metastore, on a stream that it generates, in a database
of its own (`--database`), which it removes again.
"""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
from ending import ending
from narrator import Narrator
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from spark_session import spark_session
from stop_sign import StopSign
from stream_view import Moment, View

from examples.orders_stream import sources
from examples.orders_stream.files import write_files
from examples.orders_stream.orders import start_query
from examples.orders_stream.proof import prove
from examples.orders_stream.stream import OrderStream
from examples.orders_stream.table import TIME_ZONE, create_table
from lake.client.references import reference
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import CommitPartitionsRequest, ListPartitionsRequest, SnapshotRequest
from lake.spark import configure

STREAM = OrderStream(seed=7)
ROWS = 12_000
ROWS_PER_SECOND = 350
ROWS_PER_HOUR = 3_600_000 // STREAM.step
FILES_PER_BATCH = 2
SECONDS_BETWEEN_COUNTS = 2.0
#: After the last file was written.
SECONDS_TO_FINISH = 180.0


@dataclass
class Story:
    """What is going on: the generator's and the job's progress, and what an offline reader saw when."""

    spark: SparkSession
    client: ThriftClient
    table: str
    stop_sign: StopSign
    generated: int = 0
    seen_complete: dict[str, int] = field(default_factory=dict)  # rows of a partition when it was first visible
    changed: set[str] = field(default_factory=set)  # visible partitions whose rows changed

    @property
    def written(self) -> int:
        """The rows of the table's files."""
        counts = self.client.lake_get_snapshot(SnapshotRequest(reference(self.table), includeUncommitted=True)).files
        return sum(each.rows or 0 for each in counts)

    def file_written(self, rows: int) -> None:
        self.generated = rows

    def count(self, hint: str = "") -> dict[str, int]:
        """Rows by partition, as Spark SQL counts them."""
        query = f"SELECT {hint} concat('dt=', dt, '/hr=', hr), count(*) FROM {self.table} GROUP BY dt, hr"
        return dict(map(tuple, self.spark.sql(query).collect()))

    def offline(self) -> dict[str, int]:
        counts = self.count()
        for name, rows in counts.items():
            if self.seen_complete.setdefault(name, rows) != rows:
                self.changed.add(name)
        return counts

    def hinted(self) -> dict[str, int]:
        return self.count("/*+ includeUnCommit(true) */")

    def look(self, offline: dict[str, int], hinted: dict[str, int]) -> Moment:
        table, written = reference(self.table), self.written
        watermark = self.client.lake_get_watermark(table)
        listed = self.client.lake_list_partitions(ListPartitionsRequest(table=table, includeUncommitted=True))
        return Moment(
            generated=self.generated,
            total=ROWS,
            written=written,
            watermark=watermark.watermark,
            rerouted=watermark.late.rerouted,
            ready={partition.name: partition.ready for partition in listed.partitions},
            offline=offline,
            hinted=hinted,
        )


@contextmanager
def generating(story: Story, directory: Path) -> Iterator[None]:
    """Writes the stream's files beside everything else, until all are written or the context ends."""
    stop = threading.Event()

    def write() -> None:
        write_files(
            STREAM,
            directory,
            ROWS,
            rows_per_second=ROWS_PER_SECOND,
            written=story.file_written,
            stopped=stop.is_set,
        )

    thread = threading.Thread(target=write, name="generator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def watch(story: Story, query: StreamingQuery, view: View) -> Moment:
    """Shows what happens until every row is written. Raises what ended the job, TimeoutError if it gets stuck."""
    deadline = time.monotonic() + ROWS / ROWS_PER_SECOND + SECONDS_TO_FINISH
    offline: dict[str, int] = {}
    hinted: dict[str, int] = {}
    next_count = 0.0
    with view.moving():
        while True:
            story.stop_sign.check()
            done = story.written >= ROWS
            if done or time.monotonic() >= next_count:
                offline, hinted = story.offline(), story.hinted()
                next_count = time.monotonic() + SECONDS_BETWEEN_COUNTS
            moment = story.look(offline, hinted)
            view.show(moment)
            if done:
                return moment
            if (failure := query.exception()) is not None:
                raise failure
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {story.written} of {ROWS} rows were written")
            time.sleep(0.4)


def tell(story: Story, narrator: Narrator, uri: str, scratch: Path) -> None:
    narrator.section(
        "A stream", "Order changes arrive out of order, some hours late. An offline job must see complete hours only."
    )
    with narrator.step("CREATE TABLE … PARTITIONED BY (dt, hr), ready by event time") as step:
        create_table(story.spark, uri, story.table, delay="70 min", late="next")
        step.check("rows", story.count(), {})
        step.note("ready 70 minutes of event time after an hour began; later rows go to the next open hour")
    source, checkpoint = scratch / "input", scratch / "checkpoint"
    lines = sources.files(story.spark, source, FILES_PER_BATCH)
    with generating(story, source):
        query = start_query(lines, story.table, str(checkpoint), seconds=0.5)
        try:
            moment = watch(story, query, View(narrator.console, ROWS_PER_HOUR))
        finally:
            query.stop()
    conclude(story, narrator, moment)


def conclude(story: Story, narrator: Narrator, moment: Moment) -> None:
    still_open = sorted(name for name, ready in moment.ready.items() if not ready)
    with narrator.step("What an offline query saw while the hours filled") as step:
        step.check("visible partitions whose rows changed", sorted(story.changed), [])
        step.check("visible partitions", sorted(moment.offline), sorted(set(moment.ready) - set(still_open)))
        step.note(f"{len(moment.offline)} hours, each whole from the first moment on; {len(still_open)} still hidden")
    with narrator.step("Commit the last hours by hand: no more is coming") as step:
        request = CommitPartitionsRequest(table=reference(story.table), names=still_open, committedBy="the demo")
        committed = story.client.lake_commit_partitions(request).committed
        step.check("committed", sorted(committed), still_open)
        step.check("offline query", sum(story.offline().values()), ROWS)
    with narrator.step("Every generated row is in exactly one partition") as step:
        proof = prove(story.spark, story.table, STREAM, ROWS)
        step.check("missing rows", len(proof.missing), 0)
        step.check("rows in two places", len(proof.doubled), 0)
        step.check("rows unlike those generated", len(proof.altered | proof.unknown), 0)
        step.check("rows in a later partition", proof.elsewhere, moment.rerouted)
        step.note(
            f"{ROWS} rows, {len(proof.partitions)} hours; {proof.elsewhere} late rows in a later hour than theirs"
        )


def run(uri: str, database: str, narrator: Narrator, stop_sign: StopSign, scratch: Path) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(ThriftClient.from_uri(uri))
        if database in client.get_all_databases():
            raise click.UsageError(f"the database {database} exists already; choose with --database")
        narrator.section("Spark", "A session that reads and writes through the metastore.")
        with narrator.step("Start a session") as step:
            builder = configure(SparkSession.builder, uri).config("spark.sql.session.timeZone", TIME_ZONE)
            spark = stack.enter_context(spark_session(builder, scratch))
            stop_sign.watch()
            step.note(f"Spark {spark.version}")
        story = Story(spark, client, f"{database}.orders", stop_sign)
        try:
            tell(story, narrator, uri, scratch)
        finally:
            with suppress(Exception):  # what went wrong before is what to tell
                spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


@click.command(context_settings={"max_content_width": 100})
@click.option("--uri", required=True, metavar="thrift://HOST:PORT", help="The metastore to use.")
@click.option("--database", default="lake_stream", show_default=True, help="Name of the database to make.")
def main(uri: str, database: str) -> None:
    """Watch a stream fill partitions, and offline queries see each when it is complete."""
    narrator = Narrator(Console(highlight=False))
    stop_sign = StopSign()
    stop_sign.watch()
    with tempfile.TemporaryDirectory(prefix="stream-story-") as scratch, ending(narrator, stop_sign):
        run(uri, database, narrator, stop_sign, Path(scratch))
    narrator.summary("A visible partition was a complete partition, and no row was lost or doubled.")


if __name__ == "__main__":
    main()

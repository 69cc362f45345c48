"""The job: writes the order-change stream into a table. `python -m examples.orders_stream.orders --help`."""

import logging
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import click
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from thrift.transport.TTransport import TTransportException

from examples.orders_stream import sources
from examples.orders_stream.session import start_session
from examples.orders_stream.stream import stream_of, stream_options
from examples.orders_stream.table import LATE_POLICIES, PARTITIONS, create_table
from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.client.references import reference
from lake.protocol.errors import UserError
from lake.protocol.hive import MetaException


def start_query(
    lines: DataFrame, table: str, checkpoint: str, *, seconds: float | None = 1.0, chain: str | None = None
) -> StreamingQuery:
    """Starts to write JSON lines (from `examples.orders_stream.sources`) into `table`, a batch each so many seconds.

    `seconds` None: takes what there is, and ends. `chain` names the copy of the stream, where several jobs write the
    same.
    """
    keys = (sf.expr(value).alias(key) for key, value in PARTITIONS.items())
    query = (
        sources.orders(lines)
        .select("*", *keys)
        .writeStream.option("checkpointLocation", checkpoint)
        .option("event-time", "event_time")
        .option("source-column", "shard")
    )
    if chain is not None:
        query = query.option("chain", chain)
    if seconds is None:
        return query.trigger(availableNow=True).toTable(table)
    return query.trigger(processingTime=f"{round(seconds * 1000)} milliseconds").toTable(table)


class Teller:
    """Tells what became of the batches of a query, as far as they are done."""

    def __init__(self, uri: str, table: str) -> None:
        self._metastore = ReconnectingClient(connect_to(uri), retry_seconds=5.0)
        self._table = reference(table)
        self._told = -1

    def tell(self, query: StreamingQuery) -> bool:
        """Tells of the batches since the last call; whether there were any."""
        done = [each for each in query.recentProgress if each["batchId"] > self._told and each["numInputRows"]]
        if not done:
            return False
        self._told = done[-1]["batchId"]
        for each in done[:-1]:
            click.echo(f"batch {each['batchId']}: {each['numInputRows']} rows")
        click.echo(f"batch {self._told}: {done[-1]['numInputRows']} rows{self._state()}")
        return True

    def _state(self) -> str:
        """The table's watermark and what became of late rows; empty while the metastore is away."""
        try:
            found = self._metastore.call(lambda client: client.lake_get_watermark(self._table))
        except (TTransportException, OSError, MetaException):
            return ""
        words = []
        if found.watermark is not None:
            words.append(f"watermark {datetime.fromtimestamp(found.watermark / 1000, UTC):%Y-%m-%d %H:%M:%S}")
        counts = {"rerouted": found.late.rerouted, "reopened": found.late.reopened, "dropped": found.late.dropped}
        words += [f"{count} late rows {what} so far" for what, count in counts.items() if count]
        return "".join(f", {each}" for each in words)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--uri",
    envvar="METASTORE_URI",
    default="thrift://127.0.0.1:9083",
    show_default=True,
    help="The metastore; several servers with commas. [env: METASTORE_URI]",
)
@click.option("--table", default="shop.orders", show_default=True, help="Where to; created if it isn't there.")
@click.option("--checkpoint", required=True, help="Directory in which Spark keeps how far the job is.")
@click.option(
    "--from", "origin", type=click.Choice(["files", "rate", "kafka"]), default="files", show_default=True,
    help="Where the stream comes from.",
)  # fmt: skip
@click.option("--input", "directory", type=click.Path(path_type=Path), help="files: the directory they appear in.")
@click.option("--files-per-batch", type=click.IntRange(1), default=4, show_default=True, help="files: at most.")
@click.option("--rows-per-second", type=click.IntRange(1), default=500, show_default=True, help="rate: how many.")
@stream_options
@click.option("--kafka-servers", help="kafka: host:port of its servers, with commas.")
@click.option("--topic", default="orders", show_default=True, help="kafka: the topic, with a JSON object per record.")
@click.option(
    "--delay",
    default="70 min",
    show_default=True,
    help="New table: how far the watermark must be past a partition's start.",
)
@click.option(
    "--late", type=click.Choice(LATE_POLICIES), default="next", show_default=True,
    help="New table: where rows go whose partition is ready already.",
)  # fmt: skip
@click.option("--chain", help="Which copy of the stream this is, where several jobs write the same. [default: the job]")
@click.option("--every", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds from batch to batch.")
@click.option("--available-now", is_flag=True, help="Write what there is, and end.")
@click.option(
    "--retry-seconds",
    type=click.FloatRange(0),
    default=300.0,
    show_default=True,
    help="How long a metastore that is away is waited for.",
)
@click.option("--master", default="local[2]", show_default=True, help="Spark's master.")
@click.option("--packages", help="Maven coordinates that Spark loads, such as its Kafka package.")
@click.option("--conf", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's; may be repeated.")
def main(**options: Any) -> None:
    """Write the order-change stream into an hourly partitioned table, each row once, whatever is killed meanwhile.

    Run again with the same --checkpoint, the job goes on where it was.
    """
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    try:
        run(**options)
    except UserError as error:
        raise click.ClickException(str(error)) from None


def run(
    *,
    uri: str,
    table: str,
    checkpoint: str,
    origin: str,
    directory: Path | None,
    files_per_batch: int,
    rows_per_second: int,
    seed: int,
    shards: int,
    step: float,
    kafka_servers: str | None,
    topic: str,
    delay: str,
    late: str,
    chain: str | None,
    every: float,
    available_now: bool,
    retry_seconds: float,
    master: str,
    packages: str | None,
    settings: tuple[str, ...],
) -> None:
    if origin == "files" and directory is None:
        raise UserError("--from files needs --input, the directory that files appear in")
    try:
        reference(table)
    except ValueError as error:
        raise UserError(str(error)) from None
    if origin == "kafka" and kafka_servers is None:
        raise UserError("--from kafka needs --kafka-servers")
    with Console(stderr=True).status("Starting Spark …"):
        spark = start_session(
            "orders", uri, master=master, packages=packages, settings=settings, retry_seconds=retry_seconds
        )
    if directory is not None and origin == "files":
        lines = sources.files(spark, directory, files_per_batch)
    elif kafka_servers is not None and origin == "kafka":
        lines = sources.kafka(spark, kafka_servers, topic)
    else:
        lines = sources.rate(spark, stream_of(seed, shards, step), rows_per_second)
    if create_table(spark, uri, table, delay=delay, late=late):
        click.echo(f"created {table}")
    seconds = None if available_now else every
    watch(
        lambda: start_query(lines, table, checkpoint, seconds=seconds, chain=chain),
        Teller(uri, table),
        retry_seconds,
    )
    spark.stop()


#: What a query says that ended because its metastore, or the database, was away.
AWAY = ("did not answer", "was completed is not known", "try again", "longer than its time limit")


def watch(start: Callable[[], StreamingQuery], teller: Teller, retry_seconds: float) -> None:
    """Returns when the query has ended or somebody stops it; UserError says why it failed.

    A query that ended because the metastore was away is started again, for so long without a batch that is done.
    """
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    deadline = time.monotonic() + retry_seconds
    while not asked:
        try:
            query = start()
            while not asked and not query.awaitTermination(1):
                if teller.tell(query):
                    deadline = time.monotonic() + retry_seconds
                sys.stdout.flush()
            teller.tell(query)
            if asked:
                query.stop()  # a batch in the middle is repeated by the next run
            return
        except (StreamingQueryException, AnalysisException) as error:
            reason = str(error).split("JVM stacktrace")[0].strip()
            if time.monotonic() > deadline or not any(each in reason for each in AWAY):
                raise UserError(f"the query ended: {reason}") from None
            time.sleep(1)


if __name__ == "__main__":
    main()

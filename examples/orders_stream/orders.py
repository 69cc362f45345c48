"""The job: writes the order-change stream into a table. `python -m examples.orders_stream.orders --help`."""

import logging
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import click
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from examples.orders_stream import sources
from examples.orders_stream.session import start_session
from examples.orders_stream.stream import stream_of, stream_options
from examples.orders_stream.table import LATE_POLICIES, PARTITIONS, create_table
from lake.client.batches import reference
from lake.protocol.errors import UserError
from lake.spark.streams.streaming import BatchSummary, partitioned_writer


def start_query(
    lines: DataFrame,
    uri: str,
    table: str,
    checkpoint: str,
    *,
    seconds: float | None = 1.0,
    writer: str | None = None,
    chain: str | None = None,
    retry_seconds: float = 300.0,
    after_batch: Any = None,
) -> StreamingQuery:
    """Starts to write JSON lines (from `examples.orders_stream.sources`) into `table`, a batch each so many seconds.

    `seconds` None: takes what there is, and ends. The other arguments are those of `partitioned_writer`.
    """
    write = partitioned_writer(
        uri,
        table,
        event_time="event_time",
        partitions=PARTITIONS,
        source="shard",
        writer=writer,
        chain=chain,
        retry_seconds=retry_seconds,
        after_batch=after_batch,
    )
    query = sources.orders(lines).writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    if seconds is None:
        return query.trigger(availableNow=True).start()
    return query.trigger(processingTime=f"{round(seconds * 1000)} milliseconds").start()


def describe(summary: BatchSummary) -> str:
    """A batch in one line."""
    if summary.outcome is None:
        return f"batch {summary.batch}: accepted in an earlier run"
    outcome = summary.outcome
    words = [f"batch {summary.batch}: {summary.rows} rows"]
    if outcome.watermark is not None:
        words.append(f"watermark {datetime.fromtimestamp(outcome.watermark / 1000, UTC):%Y-%m-%d %H:%M:%S}")
    counts = {"rerouted": outcome.late.rerouted, "reopened": outcome.late.reopened, "dropped": outcome.late.dropped}
    words += [f"{count} late rows {what}" for what, count in counts.items() if count]
    words += [f"ready: {', '.join(sorted(outcome.committed))}"] if outcome.committed else []
    return ", ".join(words)


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
@click.option("--writer", help="The job's name in the metastore. [default: the query's id in the checkpoint]")
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
    writer: str | None,
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
    query = start_query(
        lines,
        uri,
        table,
        checkpoint,
        seconds=None if available_now else every,
        writer=writer,
        chain=chain,
        retry_seconds=retry_seconds,
        after_batch=lambda summary: click.echo(describe(summary)),
    )
    wait(query)
    spark.stop()


def wait(query: StreamingQuery) -> None:
    """Returns when the query has ended or somebody stops it; UserError says why it failed."""
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    try:
        while not asked and not query.awaitTermination(1):
            sys.stdout.flush()
        if asked:
            query.stop()  # a batch in the middle is repeated by the next run
    except StreamingQueryException as error:
        raise UserError(f"the query ended: {str(error).split('JVM stacktrace')[0].strip()}") from None


if __name__ == "__main__":
    main()

"""Compares the table with the stream: every row is in exactly one partition.

`python -m examples.orders_stream.proof --help` lists its options.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click
from pyspark.sql import SparkSession
from rich.console import Console

from examples.orders_stream.session import start_session
from examples.orders_stream.stream import OrderChange, OrderStream, stream_of, stream_options
from lake.client.references import reference
from lake.protocol.errors import UserError


@dataclass
class Proof:
    """What a comparison found: row numbers that are missing, there more than once, unlike what was generated, or never
    generated; how many rows are in a later partition than their own; and rows by partition."""

    missing: set[int] = field(default_factory=set)
    doubled: set[int] = field(default_factory=set)
    altered: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    elsewhere: int = 0
    partitions: Counter[str] = field(default_factory=Counter)

    @property
    def holds(self) -> bool:
        return not (self.missing or self.doubled or self.altered or self.unknown)

    def __str__(self) -> str:
        rows = self.partitions.total()
        words = [
            f"{rows} rows in {len(self.partitions)} partitions, {self.elsewhere} of them in another than their own"
        ]
        for what in ("missing", "doubled", "altered", "unknown"):
            if numbers := getattr(self, what):
                words.append(f"{len(numbers)} {what} (such as {min(numbers)})")
        return "; ".join(words)


def own_partition(at: int) -> str:
    """The name of the partition that an event time, in milliseconds, belongs to."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):dt=%Y-%m-%d/hr=%H}"


def compare(stream: OrderStream, rows: int, found: Iterable[tuple[str, OrderChange]]) -> Proof:
    """Compares the first `rows` rows of a stream with what was found: partition names and rows."""
    proof = Proof()
    seen: set[int] = set()
    for partition, row in found:
        number = row.id
        proof.partitions[partition] += 1
        if not 0 <= number < rows:
            proof.unknown.add(number)
            continue
        if number in seen:
            proof.doubled.add(number)
        seen.add(number)
        expected = stream.order(number)
        if row != expected:
            proof.altered.add(number)
        proof.elsewhere += partition != own_partition(expected.at)
    proof.missing = set(range(rows)) - seen
    return proof


def prove(spark: SparkSession, table: str, stream: OrderStream, rows: int) -> Proof:
    """Reads the table with its uncommitted partitions, and compares. `rows` is how many rows the stream has."""
    place = reference(table)
    found = spark.sql(
        "SELECT concat('dt=', dt, '/hr=', hr), id, order_id, status, cast(amount * 100 AS BIGINT), shard, "
        f"unix_millis(event_time) FROM {place.database}.`{place.table}@includeuncommit`"
    )
    pairs = ((name, OrderChange(*values)) for name, *values in found.toLocalIterator(prefetchPartitions=True))
    return compare(stream, rows, pairs)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--uri", envvar="METASTORE_URI", default="thrift://127.0.0.1:9083", show_default=True, help="The metastore."
)
@click.option("--table", default="shop.orders", show_default=True, help="The table.")
@click.option("--rows", type=click.IntRange(1), required=True, help="How many rows were generated.")
@stream_options
def main(uri: str, table: str, rows: int, seed: int, shards: int, step: float) -> None:
    """Show that every generated row is in exactly one partition of the table; exit with 1 if it isn't so."""
    try:
        with Console(stderr=True).status("Starting Spark …"):
            spark = start_session("proof", uri)
    except UserError as error:
        raise click.ClickException(str(error)) from None
    proof = prove(spark, table, stream_of(seed, shards, step), rows)
    spark.stop()
    click.echo(str(proof))
    sys.exit(0 if proof.holds else 1)


if __name__ == "__main__":
    main()

"""The order-change stream: which rows there are. The same seed gives the same rows, each on its own.

Rows arrive in the order of their numbers. Their event times are disordered by a little throughout, and in some
stretches of the stream some rows are late by minutes to hours, as when a device comes back after a break. Between two
such stretches nothing is late, so that the smallest event time of what arrives gets ahead.
"""

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import click

STATUSES = ("placed", "paid", "shipped", "delivered")
#: So many orders are under way at the same time.
ORDERS_AT_ONCE = 100
#: Rows per stretch.
STRETCH = 250

Command = TypeVar("Command", bound=Callable[..., Any])


class OrderChange(NamedTuple):
    """One row: its number in the stream, the order, what became of it, its worth in cents, where it came from, and
    when it happened, in milliseconds since 1970."""

    id: int
    order_id: int
    status: str
    cents: int
    shard: str
    at: int

    def as_json(self) -> str:
        return json.dumps(self._asdict(), separators=(",", ":"))


@dataclass(frozen=True)
class OrderStream:
    """A stream by its seed and shape. `start` and the durations are milliseconds."""

    seed: int = 1
    shards: int = 2
    start: int = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)
    step: int = 3_600  # of event time from one row to the next
    disorder: int = 5 * 60_000  # by which any row may come behind its time
    late_stretch: int = 8  # one stretch in so many has late rows; 0: none has
    latest: int = 4 * 3_600_000  # by which a late row may be late

    def order(self, number: int) -> OrderChange:
        """The row of this number, from 0."""
        digest = hashlib.blake2b(f"{self.seed}/{number}".encode(), digest_size=16).digest()
        disorder, worth, chance, lateness = struct.unpack("<4I", digest)
        behind = disorder % (self.disorder + 1)
        if self._has_late_rows(number // STRETCH) and chance % 10 == 0:
            behind = self.disorder + lateness % (self.latest - self.disorder + 1)
        rank = number // ORDERS_AT_ONCE
        return OrderChange(
            id=number,
            order_id=rank // len(STATUSES) * ORDERS_AT_ONCE + number % ORDERS_AT_ONCE,
            status=STATUSES[rank % len(STATUSES)],
            cents=100 + worth % 99_900,
            shard=f"shard-{number % self.shards}",
            at=max(self.start, self.start + number * self.step - behind),
        )

    def _has_late_rows(self, stretch: int) -> bool:
        # Not the first one of each round: there must be something to be late for.
        return self.late_stretch > 0 and stretch % self.late_stretch == self.late_stretch - 1


def stream_options(command: Command) -> Command:
    """The options that say which stream a command is about; `stream_of` makes one of them."""
    options = [
        click.option("--seed", default=1, show_default=True, help="Which stream."),
        click.option("--shards", type=click.IntRange(1), default=2, show_default=True, help="Sources it comes from."),
        click.option(
            "--step",
            type=click.FloatRange(0.001),
            default=3.6,
            show_default=True,
            help="Seconds of event time from a row to the next.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def stream_of(seed: int, shards: int, step: float) -> OrderStream:
    return OrderStream(seed=seed, shards=shards, step=round(step * 1000))

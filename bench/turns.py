"""Times calls in turn, so that whatever else the machine does meets all of them alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from thrift.Thrift import TException

from bench.comparison import RAW
from bench.java_client import Call, CallFailed, ReplyChanged
from bench.operations import Operation
from bench.options import Options
from bench.sides import Side

WALKED_BYTES = 1 << 16
"""A reply up to this long is walked to its end, which takes some microseconds; a longer one is read by its length."""
LEAST = 3
SLOW_SECONDS = 30.0
"""What takes longer is measured once."""
_WAKING = Call("getStatus", [])
"""Comes right before a call that counts: while the other server has its turn, processors and processes fall asleep, and
what it takes to wake each of them would be most of a short call."""


@dataclass(frozen=True)
class Turns:
    """As many as fit into `seconds`, but three at least, or as many as the user wants."""

    seconds: float
    options: Options

    def samples(self, measured: Sequence[tuple[Side, Operation]], client: str) -> list[list[float]]:
        """The milliseconds of every call, for each of what is measured. Raises CallFailed, or what a client of ours
        raises, if a call or what it takes fails.
        """
        timed = [_timing(side, operation, client) for side, operation in measured]
        operation = measured[0][1]
        began = time.monotonic()
        for _ in range(operation.warm):
            for one in timed:
                one()
            if time.monotonic() - began > self.seconds / 4:
                break
        samples: list[list[float]] = [[] for _ in timed]
        began = time.monotonic()
        for number in range(operation.most):
            spent = time.monotonic() - began
            if spent > SLOW_SECONDS or (number >= (self.options.rounds or LEAST) and spent > self.seconds):
                break
            for found, one in zip(samples, timed, strict=True):
                found.append(1000 * one())
        return samples


def _timing(side: Side, operation: Operation, client: str) -> Callable[[], float]:
    """What makes the call once, with all that comes before and after it; the call's seconds."""
    read = side.hive.time if client != RAW else _reading(side, operation)

    def once() -> float:
        nonlocal read
        try:
            return attempt()
        except ReplyChanged:  # Hive's CachedStore does so when it renews what it keeps
            read = _reading(side, operation)
            return attempt()

    def attempt() -> float:
        steps = operation.steps(side)
        call = next(steps)
        side.raw.walk(_WAKING)
        try:
            return read(call)
        except ReplyChanged:
            raise
        except (CallFailed, TException) as error:
            raise CallFailed(f"{side.name}: {error}") from None
        finally:
            next(steps, None)  # tidies

    return once


def _reading(side: Side, operation: Operation) -> Callable[[Call], float]:
    """What times a call to the last byte of its reply: a long one by its length, which takes no time of its own."""
    if operation.repeats and (length := _length(side, operation)) > WALKED_BYTES:
        return partial(side.raw.time, length=length)
    return partial(_walk, side)


def _walk(side: Side, call: Call) -> float:
    seconds, _ = side.raw.walk(call)
    return seconds


def _length(side: Side, operation: Operation) -> int:
    """The reply's length, on a call that is not timed."""
    steps = operation.steps(side)
    _, length = side.raw.walk(next(steps))
    next(steps, None)
    return length

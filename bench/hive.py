"""Calls of every kind on our server and on Hive's own, on the same Postgres, call by call in turn."""

import logging
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import structlog

from bench import java_client, operations, sides
from bench.comparison import HIVE_CLIENT, PER_SECOND, RAW, Compared, Comparison, ComparisonReport
from bench.figures import Figure, Report, readable
from bench.java_client import Call, CallFailed, Java
from bench.operations import Operation
from bench.options import Options
from bench.postgres import HOST, LoopbackPostgres
from bench.shapes import DATABASE
from bench.sides import Side
from tests.support.reference import pyspark_jars

WALKED_BYTES = 1 << 16
"""A reply up to this long is walked to its end, which takes some microseconds; a longer one is read by its length."""
LEAST = 3
SLOW_SECONDS = 30.0
"""An operation that takes longer is measured once."""


@dataclass(frozen=True)
class Effort:
    """`seconds` for one operation by one client; `clients` at once for `load_seconds`, in so many rounds."""

    seconds: float
    clients: tuple[int, ...]
    load_seconds: float
    rounds: int


FULL = Effort(seconds=4, clients=(1, 4, 16, 64), load_seconds=2, rounds=3)
QUICK = Effort(seconds=0.2, clients=(1, 4), load_seconds=0.2, rounds=1)
THROUGHPUT_TARGETS = {("get table", 16): 10.0}


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    sizes = operations.QUICK if options.quick else operations.FULL
    effort = QUICK if options.quick else FULL
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        home.chmod(0o755)
        postgres = LoopbackPostgres(home / "postgres")
        stack.callback(postgres.close)
        (home / "classes").mkdir()
        classes = java_client.compiled(home / "classes")
        java = stack.enter_context(java_client.running(classes, home / "client"))
        with _noted("starting both servers"):
            both = [stack.enter_context(open_side) for open_side in _sides(options, java, home, postgres)]
        for side in both:
            with _noted(f"filling the tables of {side.name}"):
                operations.fill(side, sizes)
        report = ComparisonReport("hive", versions=_versions(postgres))
        measure = _Measure(both, effort, options)
        report.sections.append(measure.each(operations.operations(sizes)))
        report.sections += measure.together(java)
        with java_client.running(classes, home / "echo", memory="512m") as other:
            report.sections.append(measure.floor(java, other, sizes))
    return report


def _sides(
    options: Options, java: Java, home: Path, postgres: LoopbackPostgres
) -> Iterator[AbstractContextManager[Side]]:
    if options.against == "hive":
        yield sides.hive(java, home / "hive", postgres.create("hive"))
    else:
        source = None if options.against == "ours" else Path(options.against).absolute()
        yield sides.ours(java, home / "other", postgres.create("other"), source=source, name="other")
    yield sides.ours(java, home / "ours", postgres.create("ours"))


class _Measure:
    def __init__(self, both: Sequence[Side], effort: Effort, options: Options) -> None:
        self._both = both
        self._names = (both[0].name, both[1].name)
        self._effort = effort
        self._options = options

    # -- one call at a time --------------------------------------------------------------------------------------

    def each(self, chosen: Sequence[Operation]) -> Comparison:
        """One client, one call at a time, the servers in turn."""
        section = Comparison(
            "One call at a time",
            "Until the last byte is read (client: raw) and until Hive's own Java client has decoded the result. The"
            " servers are called in turn; an aim is meant for the raw client. Cold: after a change of the table and of"
            " one of its partitions. Each server has a table with the given partitions by day and hour, and"
            " 1,000 small ones.",
            self._names,
        )
        for operation in chosen:
            for client in (RAW, HIVE_CLIENT) if operation.in_java else (RAW,):
                if not self._options.wants(operation.name):
                    continue
                try:
                    found = self._samples(operation, client)
                except CallFailed as error:
                    section.missed[operation.name] = str(error)
                    _say(f"{operation.name} ({client}): {error}")
                    continue
                target = operation.target if client == RAW else None
                section.compared.append(_compared(operation.name, client, "ms", found, target, samples=True))
                _say_last(section)
        return section

    def _samples(self, operation: Operation, client: str) -> list[list[float]]:
        """Milliseconds by side."""
        timed = [self._timing(side, operation, client) for side in self._both]
        began = time.monotonic()
        for _ in range(operation.warm):
            for one in timed:
                one()
            if time.monotonic() - began > self._effort.seconds / 4:
                break
        samples: list[list[float]] = [[] for _ in timed]
        began = time.monotonic()
        least = self._options.rounds or LEAST
        for number in range(operation.most):
            spent = time.monotonic() - began
            if spent > SLOW_SECONDS or (number >= least and spent > self._effort.seconds):
                break
            for found, one in zip(samples, timed, strict=True):
                found.append(1000 * one())
        return samples

    def _timing(self, side: Side, operation: Operation, client: str) -> Callable[[], float]:
        """What makes the call once, with all that comes before and after it; the call's seconds."""
        read: Callable[[Call], float] = side.hive.time
        if client == RAW:
            read = partial(_raw, side)
            if operation.repeats and (length := self._length(side, operation)) > WALKED_BYTES:
                read = partial(side.raw.time, length=length)

        def once() -> float:
            steps = operation.steps(side)
            seconds = read(next(steps))
            for _ in steps:
                raise AssertionError("an operation has one call")
            return seconds

        return once

    def _length(self, side: Side, operation: Operation) -> int:
        steps = operation.steps(side)
        _, length = side.raw.walk(next(steps))
        next(steps, None)
        return length

    # -- many clients --------------------------------------------------------------------------------------------

    def together(self, java: Java) -> tuple[Comparison, Comparison]:
        """Many clients at once: how many calls are answered, and how long each takes."""
        rates = Comparison(
            "Many clients",
            "Raw clients, each sends its next call as soon as it was answered, for"
            f" {self._effort.load_seconds:g} s at a time, the servers in turn. Clients, servers and Postgres share the"
            " machine.",
            self._names,
        )
        times = Comparison(
            "Many clients: each call", "How long the calls of these clients took.", self._names, charted=False
        )
        for name, call in {"get table": operations.get_table(), "get partition": operations.get_partition()}.items():
            for clients in self._effort.clients:
                label = _with_clients(name, clients)
                if not self._options.wants(label):
                    continue
                calls, took = self._load(java, call, clients)
                target = THROUGHPUT_TARGETS.get((name, clients))
                rates.compared.append(_compared(label, RAW, PER_SECOND, calls, target))
                times.compared.append(_compared(label, RAW, "ms", took, samples=True))
                _say_last(rates)
        return rates, times

    def _load(self, java: Java, call: Call, clients: int) -> tuple[list[list[float]], list[list[float]]]:
        """Calls per second in each round, and the milliseconds of each call, both by side."""
        rates: list[list[float]] = [[], []]
        times: list[list[float]] = [[], []]
        for _ in range(self._options.rounds or self._effort.rounds):
            for side, rate, took in zip(self._both, rates, times, strict=True):
                seconds = java.load(side.host, side.port, call, clients, self._effort.load_seconds)
                rate.append(len(seconds) / self._effort.load_seconds)
                took += [1000 * each for each in seconds]
        return rates, times

    # -- what can't be beaten ------------------------------------------------------------------------------------

    def floor(self, java: Java, other: Java, sizes: operations.Sizes) -> Comparison:
        """The same clients with a server, in another virtual machine, that has the reply ready."""
        ours = self._both[1]
        section = Comparison(
            "The floor",
            "Our server beside one that answers with the same bytes without a look at the call: what sockets and the"
            " raw client cost alone.",
            ("echo", ours.name),
            charted=False,
        )
        everything = Call("get_partitions", [DATABASE, operations.READ, operations.ALL])
        for name, call, clients in (
            ("get table", operations.get_table(), self._effort.clients),
            (f"all {sizes.partitions:,} partitions of {operations.COLUMNS} columns", everything, (1,)),
        ):
            if not self._options.wants(name):
                continue
            _, length = ours.raw.walk(call)
            echo = other.echo(len(call.encoded()), _exchange(ours, call.encoded(), length))
            for count in clients:
                took = [
                    [1000 * each for each in java.load(HOST, port, call, count, self._effort.load_seconds)]
                    for port in (echo.port(), ours.port)
                ]
                section.compared.append(_compared(_with_clients(name, count), RAW, "ms", took, samples=True))
                _say_last(section)
            echo.close()
        return section


def _raw(side: Side, call: Call) -> float:
    seconds, _ = side.raw.walk(call)
    return seconds


def _exchange(side: Side, request: bytes, length: int) -> bytes:
    """The reply of so many bytes to an encoded call."""
    with socket.create_connection((side.host, side.port)) as connection, connection.makefile("rb") as replies:
        connection.sendall(request)
        return replies.read(length)


def _compared(
    name: str,
    client: str,
    unit: str,
    found: Sequence[Sequence[float]],
    target: float | None = None,
    *,
    samples: bool = False,
) -> Compared:
    """Of what was found on either side."""
    theirs, ours = (Figure.of(name, unit, values, samples=samples) for values in found)
    return Compared.of(name, client, theirs, ours, target)


def _with_clients(name: str, count: int) -> str:
    return f"{name}, {count} client{'s' if count > 1 else ''}"


def _versions(postgres: LoopbackPostgres) -> dict[str, str]:
    jars = pyspark_jars()
    assert jars is not None
    [metastore] = jars.glob("hive-metastore-*.jar")
    return {"Hive": metastore.stem.removeprefix("hive-metastore-"), "Postgres": postgres.version}


@contextmanager
def _noted(doing: str) -> Iterator[None]:
    began = time.monotonic()
    _say(f"{doing} …")
    yield
    _say(f"{doing}: {time.monotonic() - began:.0f} s")


def _say_last(section: Comparison) -> None:
    last = section.compared[-1]
    (their_name, our_name), unit = section.names, last.ours.unit
    figures = f"{their_name} {readable(last.theirs.median)} {unit}, {our_name} {readable(last.ours.median)} {unit}"
    _say(f"{last.operation} ({last.client}): {figures}, {readable(last.ratio)}×")


def _say(line: str) -> None:
    click.echo(line, err=True)

"""The event log: what it costs writers, how soon subscribers get events, how fast it is numbered and read back."""

import logging
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Engine, NullPool, create_engine, text
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from bench import subscribers
from bench.figures import Figure, Report
from bench.options import Options
from eventbus import EventType, NewEvent
from eventbus.log import log as event_log
from eventbus.outlets.delivery import Delivery
from eventbus.outlets.redis_streams import StreamOutlet
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.streams import STATE
from lake.protocol.events.types import Origin
from lake.protocol.hive import NotificationEventRequest
from lake.protocol.lake import ReadEventsRequest
from lake.protocol.services import METHODS
from lake.subscriptions import subscribe
from metastore.server.embedded_postgres import running_url
from tests.support import builders
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer

WRITERS = 8
DATABASE = "bench"
PAUSE_SECONDS = 0.05
"""Between two changes whose latency is measured: one at a time is on its way."""
PATIENCE_SECONDS = 120.0
_LISTENER = f"{subscribers.__name__}:{subscribers.Noting.__name__}"


@dataclass(frozen=True)
class Sizes:
    """`seconds` of one round of writing, `samples` of a latency, `log` events read back, `waiting` subscribers."""

    rounds: int
    seconds: float
    samples: int
    log: int
    waiting: tuple[int, ...]


FULL = Sizes(rounds=5, seconds=3, samples=300, log=100_000, waiting=(100, 1_000))
QUICK = Sizes(rounds=1, seconds=0.2, samples=5, log=500, waiting=(20,))


def run(options: Options) -> Report:
    """All of it, on a server with a Postgres of its own."""
    sizes = QUICK if options.quick else replace(FULL, rounds=options.rounds or FULL.rounds)
    report = Report("events")
    _allow_open_files()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        progress = stack.enter_context(Progress(TextColumn("{task.description}"), TimeElapsedColumn(), transient=True))
        server = stack.enter_context(MetastoreServer(directory / "data", "--log-level", "warning"))
        redis = stack.enter_context(RedisServer(directory / "redis"))
        url = running_url(directory / "data")
        assert url is not None
        engine = create_engine(url, poolclass=NullPool)
        report.versions = _versions(engine, redis)
        _prepare(server)
        parts: dict[str, Callable[[], None]] = {
            "writers and readers": lambda: _writers(report, sizes, server, redis, url, directory),
            "numbers": lambda: _numbers(report, sizes, engine),
            "reading back": lambda: _reading(report, sizes, server, url, directory),
        }
        for name, measure in parts.items():
            task = progress.add_task(name)
            measure()
            progress.stop_task(task)
    return report


# -- writing -----------------------------------------------------------------------------------------------------


def _writers(report: Report, sizes: Sizes, server: MetastoreServer, redis: RedisServer, url: str, home: Path) -> None:
    """Throughput with nobody reading, with many that wait, one that reads, and all ways; with these, the latencies."""
    quiet: dict[int, list[float]] = {count: [] for count in (0, *sizes.waiting)}
    for _ in range(sizes.rounds):
        for count, rates in quiet.items():
            with _idle(server, count):
                rates.append(_write(server, sizes.seconds))
    ways = {"thrift://": home / "thrift", "redis://": home / "redis-noted", "webhook": home / "webhook"}
    ways["listener"] = home / subscribers.LISTENER
    with ExitStack() as stack:
        stack.enter_context(subscribers.follower(server.uri, ways["thrift://"]))
        followed = [_write(server, sizes.seconds) for _ in range(sizes.rounds)]
        hook = stack.enter_context(subscribers.receiver(ways["webhook"]))
        outlets = ("--redis-url", redis.url, "--event-webhooks", f"bench={hook}", "--event-listeners", _LISTENER)
        stack.enter_context(_dispatcher(home, "--database-url", url, *outlets))
        _wait_for(lambda: _delivered(server) == 3)
        stack.enter_context(subscribers.follower(redis.url, ways["redis://"]))
        written = _one_at_a_time(server, sizes.samples)
        _wait_for(lambda: all(len(subscribers.noted(file)) == sizes.samples for file in ways.values()))
        everybody = []
        for _ in range(sizes.rounds):
            everybody.append(_write(server, sizes.seconds))
            _wait_for(lambda: _delivered(server) == 3)
    section = report.section(
        "Writers",
        f"{WRITERS} clients alter a table each, as fast as they are answered, while so many long polls wait for events"
        " of another table, or while everything is followed. All four ways: a thrift:// and a redis:// subscriber, a"
        " webhook and a listener. All of it, the clients too, is on the same machine.",
    )
    names = {count: f"{count:,} wait for other events" if count else "nobody reads" for count in quiet}
    section.figures += [Figure.of(names[count], "events/s", rates) for count, rates in quiet.items()]
    section.figures.append(Figure.of("a thrift:// subscriber reads", "events/s", followed))
    section.figures.append(Figure.of("all four ways are followed", "events/s", everybody))
    section = report.section(
        "Latency",
        "From the answer to a writer until a subscriber has the event (below zero: it has it before the writer), one"
        " change"
        " at a time, all four ways followed at once.",
    )
    for way, file in ways.items():
        received = subscribers.noted(file)
        late = [(received[number] - answered) / 1e6 for number, answered in written.items()]
        section.figures.append(Figure.of(way, "ms", late, samples=True))


def _prepare(server: MetastoreServer) -> None:
    with _client(server) as client:
        client.create_database(builders.database(DATABASE))
        for number in range(WRITERS):
            client.create_table(builders.table(DATABASE, f"t{number}"))


def _write(server: MetastoreServer, seconds: float) -> float:
    """Events per second of all writers together."""
    counts = [0] * WRITERS
    begin = threading.Barrier(WRITERS + 1)
    stop = threading.Event()

    def alter(number: int) -> None:
        with _client(server) as client:
            table = client.get_table(DATABASE, f"t{number}")
            begin.wait()
            while not stop.is_set():
                client.alter_table(DATABASE, f"t{number}", table)
                counts[number] += 1

    threads = [threading.Thread(target=alter, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    begin.wait()
    began = time.monotonic()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def _one_at_a_time(server: MetastoreServer, samples: int) -> dict[int, int]:
    """When each change was acknowledged, in ns of the monotonic clock."""
    answered = {}
    with _client(server) as client:
        table = client.get_table(DATABASE, "t0")
        for number in range(samples):
            table.parameters[subscribers.PARAMETER] = str(number)
            client.alter_table(DATABASE, "t0", table)
            answered[number] = time.monotonic_ns()
            time.sleep(PAUSE_SECONDS)
        del table.parameters[subscribers.PARAMETER]
        client.alter_table(DATABASE, "t0", table)
    return answered


@contextmanager
def _idle(server: MetastoreServer, count: int) -> Iterator[None]:
    """So many connections with a long poll that nothing ends for a minute."""
    with _client(server) as client:
        last = client.lake_event_positions(None).last
    method = METHODS["lake_read_events"]
    arguments: Any = method.args()
    arguments.request = ReadEventsRequest(after=last, tables=["nobody.nothing"], maxWait=60_000)
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocolAccelerated(buffer, fallback=False)
    protocol.writeMessageBegin("lake_read_events", TMessageType.CALL, 1)
    buffer.write(protocol._fast_encode(arguments, [method.args, method.args_spec]))
    protocol.writeMessageEnd()
    with ExitStack() as stack:
        for _ in range(count):
            waiting = stack.enter_context(closing(socket.create_connection((server.host, server.port))))
            waiting.sendall(buffer.getvalue())
        with _client(server) as client:  # which is answered after them
            client.getName()
        time.sleep(0.2 + count / 1000)
        yield


# -- numbering and reading ---------------------------------------------------------------------------------------


def _numbers(report: Report, sizes: Sizes, engine: Engine) -> None:
    """The log becomes as long as it is to be read back."""
    with engine.connect() as tx:
        last = event_log.positions(tx).last
        [example] = event_log.read(tx, last - 1, 1)
    new = NewEvent(
        EventType.ALTER_TABLE, example.time, Origin("bench"), "hive", DATABASE, "t0", 1, dict(example.payload)
    )
    rates, single = [], []
    for _ in range(sizes.rounds):
        with engine.connect() as tx:
            event_log.append(tx, [new] * (sizes.log // sizes.rounds))
            began = time.monotonic()
            event_log.number(tx)
            tx.commit()
            rates.append(sizes.log // sizes.rounds / (time.monotonic() - began))
    for _ in range(sizes.samples):
        with engine.connect() as tx:
            event_log.append(tx, [new])
            tx.commit()
            began = time.monotonic()
            event_log.number(tx)
            tx.commit()
            single.append((time.monotonic() - began) * 1000)
    section = report.section(
        "Sequencer",
        f"Giving numbers: to {sizes.log // sizes.rounds:,} events that are there at once, and to single ones.",
    )
    section.figures.append(Figure.of("many at once", "events/s", rates))
    section.figures.append(Figure.of("one", "ms", single, samples=True))


def _reading(report: Report, sizes: Sizes, server: MetastoreServer, url: str, home: Path) -> None:
    rates: dict[str, list[float]] = {"thrift://": [], "into Redis": [], "redis://": [], "Hive's notifications": []}
    with _client(server) as client:
        last = client.lake_event_positions(None).last
        last_notification = client.get_current_notificationEventId().eventId
    fewer = sizes.log // 10
    for round in range(min(3, sizes.rounds)):
        rates["thrift://"].append(_rate(sizes.log, partial(_read, server.uri, last, sizes.log)))
        with RedisServer(home / f"filled-{round}") as redis:
            rates["into Redis"].append(_rate(last, partial(_fill, url, redis, last)))
            rates["redis://"].append(_rate(sizes.log, partial(_read, redis.url, last, sizes.log)))
        rates["Hive's notifications"].append(
            _rate(fewer, partial(_read_notifications, server, last_notification, fewer))
        )
    section = report.section(
        "Reading back",
        f"The last {sizes.log:,} events of the log with a subscription, the whole log into an empty Redis, and"
        f" {sizes.log // 10:,} of Hive's notifications.",
    )
    section.figures += [Figure.of(name, "events/s", found) for name, found in rates.items()]


def _rate(count: int, act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    return count / (time.monotonic() - began)


def _read(uri: str, last: int, count: int) -> None:
    found = 0
    with subscribe(uri, start=last - count) as events:
        while found < count:
            found += len(events.poll(1))


def _fill(url: str, redis: RedisServer, last: int) -> None:
    delivery = Delivery(url, StreamOutlet(redis.url), after_restore=lambda _: None)
    delivery.begin()
    thread = threading.Thread(target=delivery.run)
    thread.start()
    with redis.client() as client:
        _wait_for(lambda: client.hget(STATE, "position") == str(last))
    delivery.stop()
    thread.join()


def _read_notifications(server: MetastoreServer, last: int, count: int) -> None:
    with _client(server) as client:
        position = last - count
        while position < last:
            position = client.get_next_notification(NotificationEventRequest(position, 1000)).events[-1].eventId


# -- what is needed for it ---------------------------------------------------------------------------------------


def _client(server: MetastoreServer) -> ThriftClient:
    return ThriftClient(server.host, server.port)


@contextmanager
def _dispatcher(home: Path, *options: str) -> Iterator[None]:
    """`metastore outlets run`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lake.cli", "outlets", "run", "--log-level", "warning", *options],
        env={**os.environ, subscribers.DIRECTORY: str(home)},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _delivered(server: MetastoreServer) -> int:
    """How many outlets have delivered everything."""
    with _client(server) as client:
        last = client.lake_event_positions(None).last
        return sum(group.position == last for group in client.lake_event_groups())


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("a subscriber does not get its events")
        time.sleep(0.02)


def _versions(engine: Engine, redis: RedisServer) -> dict[str, str]:
    with engine.connect() as connection, redis.client() as client:
        info: Any = client.info("server")
        postgres = connection.execute(text("SHOW server_version")).scalar_one()
        return {"Postgres": str(postgres).split()[0], "Redis": info["redis_version"]}


def _allow_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

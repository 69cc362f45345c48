"""What a front of several metastores costs: calls, long replies, a backend that hangs, and many clients."""

import multiprocessing
import resource
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from bench.figures import Figure, Report
from bench.options import Options
from bench.progress import noted, say
from lake.protocol.codec import binary
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Table
from lake.protocol.services import METHODS
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

COLUMNS = 50
AT_ONCE = 2_000
"""Partitions in one call that fills a table."""
MIB = 1 << 20


class Sizes(NamedTuple):
    calls: int
    partitions: int
    clients: int
    rounds: int


FULL = Sizes(2_000, 100_000, 5_000, 5)
QUICK = Sizes(100, 2_000, 50, 1)


def run(options: Options) -> Report:
    """A server of ours, directly and through fronts, and fronts of light stand-ins."""
    sizes = QUICK if options.quick else FULL
    report = Report("federation", arguments=options.arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        if options.wants("calls") or options.wants("partitions"):
            _one_backend(report, home, sizes, options)
        if options.wants("hanging"):
            _hanging(report, home, sizes)
        if options.wants("clients"):
            _many_clients(report, home, sizes)
    return report


# -- one backend -------------------------------------------------------------------------------------------------


def _one_backend(report: Report, home: Path, sizes: Sizes, options: Options) -> None:
    with ExitStack() as stack:
        options_of_server = ("--workers", "1", "--log-level", "error")
        server = stack.enter_context(MetastoreServer(home / "ours", *options_of_server))
        same = {"a": f'uris = "{server.uri}"'}
        other = {"a": f'uris = "{server.uri}"\nprefix = "eu_"'}
        plain = stack.enter_context(FrontServer(home / "same", same, "--log-level", "error"))
        renaming = stack.enter_context(FrontServer(home / "other", other, "--log-level", "error"))
        _fill(server, sizes.partitions)
        ways = [("direct", server, "bench"), ("same names", plain, "bench"), ("other names", renaming, "eu_bench")]
        if options.wants("calls"):
            _calls(report, ways, sizes)
        if options.wants("partitions"):
            _partitions(report, ways, sizes, options.rounds or sizes.rounds)


def _fill(server: MetastoreServer, partitions: int) -> None:
    columns = [f"c{number}:string" for number in range(COLUMNS)]
    with ThriftClient(server.host, server.port, timeout=600) as client, noted(f"filling {partitions:,} partitions"):
        client.create_database(builders.database("bench"))
        client.create_table(builders.table("bench", sd=builders.storage(*columns), keys=("a",)))
        for start in range(0, partitions, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, partitions))
            sd = builders.storage(*columns)
            client.add_partitions([builders.partition("bench", "t", str(each), sd=sd) for each in numbers])


def _calls(report: Report, ways: list[tuple[str, MetastoreServer, str]], sizes: Sizes) -> None:
    section = report.section(
        "Calls", f"`get_table` of {COLUMNS} columns, one after the other, in turn: until the last byte is read."
    )
    found: dict[str, list[float]] = {name: [] for name, _, _ in ways}
    with ExitStack() as stack:
        raws = [
            (name, stack.enter_context(_raw(server)), _request("get_table", database, "t"))
            for name, server, database in ways
        ]
        lengths = {name: _length(raw, request) for name, raw, request in raws}
        for turn in range(sizes.calls):
            for name, raw, request in raws:
                began = time.perf_counter()
                raw.sendall(request)
                _read(raw, lengths[name])
                if turn > sizes.calls // 10:
                    found[name].append((time.perf_counter() - began) * 1000)
    direct = statistics.median(found["direct"])
    for name, values in found.items():
        aim = None if name == "direct" else direct + 0.5
        section.figures.append(Figure.of(name, "ms", values, samples=True, aim=aim))
        say(f"get_table, {name}: {statistics.median(values):.3f} ms")


def _partitions(report: Report, ways: list[tuple[str, MetastoreServer, str]], sizes: Sizes, rounds: int) -> None:
    section = report.section(
        "Long replies",
        f"All {sizes.partitions:,} partitions of {COLUMNS} columns, to the last byte. Memory: what the front's worker"
        " takes more at its highest than before.",
    )
    rates: dict[str, list[float]] = {name: [] for name, _, _ in ways}
    memory: dict[str, float] = {}
    for _ in range(rounds):
        for name, server, database in ways:
            with _raw(server) as raw, _highest(server) as highest:
                began = time.perf_counter()
                raw.sendall(_request("get_partitions", database, "t", -1))
                size = _until_quiet(raw)
                spent = time.perf_counter() - began - _QUIET_SECONDS
            rates[name].append(size / MIB / spent)
            memory[name] = max(memory.get(name, 0), highest() / MIB)
    aim = 0.8 * statistics.median(rates["direct"])
    for name, values in rates.items():
        section.figures.append(Figure.of(name, "MiB/s", values, aim=None if name == "direct" else aim))
        say(f"{sizes.partitions:,} partitions, {name}: {statistics.median(values):.0f} MiB/s")
        if name != "direct":
            section.figures.append(Figure.of(f"{name}, memory", "MiB", [memory[name]], aim=8))


_QUIET_SECONDS = 1.0


@contextmanager
def _raw(server: MetastoreServer) -> Iterator[socket.socket]:
    with socket.create_connection((server.host, server.port)) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield raw


def _request(name: str, *values: Any) -> bytes:
    cls: Any = METHODS[name].args
    return binary.message_header(name, binary.CALL, 1) + binary.encode(cls(*values))


def _read(raw: socket.socket, length: int) -> None:
    while length:
        length -= len(raw.recv(min(length, 1 << 20)))


def _length(raw: socket.socket, request: bytes) -> int:
    raw.sendall(request)
    return _until_quiet(raw)


def _until_quiet(raw: socket.socket) -> int:
    """How many bytes come before nothing comes for a while."""
    size = 0
    raw.settimeout(60)
    try:
        while data := raw.recv(1 << 20):
            size += len(data)
            raw.settimeout(_QUIET_SECONDS)
    except TimeoutError:
        pass
    raw.settimeout(None)
    return size


@contextmanager
def _highest(server: MetastoreServer) -> Iterator[Callable[[], int]]:
    """How many bytes the largest process of a server takes more, at most, while the block runs."""
    processes = psutil.Process(server.pid).children(recursive=True) or [psutil.Process(server.pid)]
    worker = max(processes, key=lambda each: each.memory_info().rss)
    before = most = worker.memory_info().rss
    ended = threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.01):
            most = max(most, worker.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: most - before
    finally:
        ended.set()
        thread.join()


# -- stand-ins ---------------------------------------------------------------------------------------------------


def _answer_for_ever(listener: socket.socket, opened: Any) -> None:
    """A light backend: it answers each message, which comes in one piece, with a table."""
    table = binary.encode_result("success", Table(dbName="d", tableName="t"), METHODS["get_table"].result)

    def serve(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                header = binary.read_message_header(data)
                connection.sendall(binary.message_header(header.name, binary.REPLY, header.sequence) + table)
        with opened.get_lock():
            opened.value -= 1

    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with opened.get_lock():
            opened.value += 1
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


@contextmanager
def _stand_ins(count: int) -> Iterator[tuple[list[int], Any]]:
    """Their ports, and a shared number of the connections that are open to all of them."""
    context = multiprocessing.get_context("fork")
    opened = context.Value("i", 0)
    with ExitStack() as stack:
        ports = []
        for _ in range(count):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=500))
            ports.append(listener.getsockname()[1])
            process = context.Process(target=_answer_for_ever, args=(listener, opened), daemon=True)
            process.start()
            stack.callback(process.terminate)
        yield ports, opened


def _hanging(report: Report, home: Path, sizes: Sizes) -> None:
    section = report.section(
        "One of five backends hangs",
        "`get_table` of the four others, by one client after the other, while 20 clients ask the one that accepts"
        " connections and never answers, and without it.",
    )
    with (
        _stand_ins(4) as (ports, _),
        closing(socket.create_server(("127.0.0.1", 0), backlog=500)) as silent,
    ):
        backends = {
            f"b{number}": f'uris = "thrift://127.0.0.1:{port}"\nprefix = "b{number}_"'
            for number, port in enumerate([*ports, silent.getsockname()[1]])
        }
        more = "[server]\ndrain_seconds = 1"
        with FrontServer(home / "hanging", backends, "--log-level", "error", more=more) as front, ExitStack() as stack:
            before = _times(front, sizes.calls)
            for _ in range(20):
                stack.enter_context(_raw(front)).sendall(_request("get_table", "b4_d", "t"))
            time.sleep(0.5)
            after = _times(front, sizes.calls)
    first = Figure.of("all answer", "ms", before, samples=True)
    section.figures += [first, Figure.of("one hangs", "ms", after, samples=True)]
    say(f"p99: {first.p99:.2f} ms, with one that hangs {section.figures[-1].p99:.2f} ms")


def _times(front: MetastoreServer, calls: int) -> list[float]:
    found = []
    with _raw(front) as raw:
        requests = [_request("get_table", f"b{number}_d", "t") for number in range(4)]
        lengths = [_length(raw, each) for each in requests]
        for turn in range(calls):
            began = time.perf_counter()
            raw.sendall(requests[turn % 4])
            _read(raw, lengths[turn % 4])
            found.append((time.perf_counter() - began) * 1000)
    return found


def _many_clients(report: Report, home: Path, sizes: Sizes) -> None:
    section = report.section(
        "Many clients", f"{sizes.clients:,} connections, each with one `get_table` at once, over 20 backends."
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with _stand_ins(20) as (ports, opened):
        backends = {
            f"b{number}": f'uris = "thrift://127.0.0.1:{port}"\nprefix = "b{number}_"\nconnections = 5'
            for number, port in enumerate(ports)
        }
        with (
            FrontServer(home / "many", backends, "--log-level", "error", "--workers", "2") as front,
            ExitStack() as stack,
        ):
            clients = [stack.enter_context(_raw(front)) for _ in range(sizes.clients)]
            requests = [_request("get_table", f"b{number}_d", "t") for number in range(20)]
            lengths = [_length(clients[0], each) for each in requests]
            began, most = time.perf_counter(), 0
            for number, each in enumerate(clients):
                each.sendall(requests[number % 20])
                most = max(most, opened.value)
            for number, each in enumerate(clients):
                _read(each, lengths[number % 20])
                most = max(most, opened.value)
            spent = time.perf_counter() - began
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    section.figures.append(Figure.of("answers", "calls/s", [sizes.clients / spent]))
    section.figures.append(Figure.of("connections to backends, at most", "connections", [float(most)], aim=200))
    say(f"{sizes.clients:,} clients: {sizes.clients / spent:.0f} calls/s over {most} connections")

"""What large tables, large databases and many connections cost beside small ones; our server alone."""

import resource
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from sqlalchemy import URL

from bench import bulk, operations, sides, stage
from bench.comparison import PER_SECOND, RAW, Compared, Comparison
from bench.figures import Figure, Report, Section
from bench.java_client import Call, Java
from bench.operations import ALL, Operation
from bench.options import Options
from bench.progress import noted, say
from bench.shapes import DATABASE, HOURS, Shape
from bench.sides import Side
from bench.turns import Turns
from lake.protocol.errors import UserError
from lake.protocol.hive import Database

BUSY = 16
"""Clients that work while others do nothing."""
MIB = 1 << 20


@dataclass(frozen=True)
class Sizes:
    """Partitions of a small, a streamed and a large table; tables of a small and a large database; idle connections."""

    small: int
    streamed: int
    large: int
    few_tables: int
    many_tables: int
    idle: int
    seconds: float
    rounds: int


FULL = Sizes(10_000, 200_000, 1_000_000, 100, 100_000, 5_000, seconds=3, rounds=5)
QUICK = Sizes(240, 480, 2_400, 20, 200, 50, seconds=0.2, rounds=1)
SMALL, STREAMED, LARGE = "small", "streamed", "large"
FEW, MANY = "few_tables", "many_tables"


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing."""
    sizes = QUICK if options.quick else FULL
    with stage.opened() as on:
        url = on.postgres.create("ours")
        report = Report("scale", versions={"Postgres": on.postgres.version}, arguments=options.arguments)
        with sides.ours(on.java, on.home / "ours", url, on.warehouses / "ours") as side:
            _fill(side, sizes, url)
        # Started anew: nothing is in its caches, and its memory is not that of filling.
        with sides.ours(on.java, on.home / "again", url, on.warehouses / "ours", redis=options.redis) as side:
            turns = Turns(sizes.seconds, options)
            if options.wants("partitions"):
                report.sections.append(_partitions(side, sizes, turns))
            if options.wants("tables"):
                report.sections.append(_tables(side, sizes, turns))
            if options.wants("connections"):
                report.sections += _connections(side, on.java, sizes, options.rounds or sizes.rounds)
            if options.wants("streaming"):
                report.sections.append(_streaming(side, sizes))
    return report


def _fill(side: Side, sizes: Sizes, url: URL) -> None:
    side.thrift.create_database(Database(name=DATABASE))
    for table, count in ((SMALL, sizes.small), (STREAMED, sizes.streamed), (LARGE, sizes.large)):
        shape = Shape(operations.COLUMNS, count)
        with noted(f"filling a table with {count:,} partitions"):
            side.thrift.create_table(shape.table(table))
            side.thrift.add_partition(shape.partition(table, 0))
            bulk.partitions(url, table, count)
    for database, count in ((FEW, sizes.few_tables), (MANY, sizes.many_tables)):
        with noted(f"filling a database with {count:,} tables"):
            side.thrift.create_database(Database(name=database))
            first = Shape(operations.COLUMNS, 0).table("t000000")
            side.thrift.create_table(first.replace(dbName=database))
            bulk.tables(url, database, count)


# -- cost grows with what is asked for ---------------------------------------------------------------------------


def _partitions(side: Side, sizes: Sizes, turns: Turns) -> Comparison:
    section = Comparison(
        "Large tables",
        "The same call in a table of few and in one of many partitions, in turn, until the last byte is read. A ratio"
        " of 1 says that size costs nothing. Cold: after a change of the table and of one of its partitions.",
        (f"{sizes.small:,} partitions", f"{sizes.large:,} partitions"),
    )
    names = Shape(operations.COLUMNS, sizes.small).names()[:: sizes.small // HOURS][:HOURS]
    [day, hour] = Shape(operations.COLUMNS, 1).values(sizes.small // 2)
    for name, target, method, arguments in (
        (f"{HOURS} partitions by filter", 0.5, "get_partitions_by_filter", [f'dt = "{day}"', ALL]),
        (f"{HOURS} partitions by name", None, "get_partitions_by_names", [names]),
        (f"{HOURS} partitions by part of their values", None, "get_partitions_ps", [[day], ALL]),
        ("get partition", None, "get_partition", [[day, hour]]),
        ("get table", None, "get_table", []),
    ):
        small, large = (
            operations.cold_and_hot(name, table, Call(method, [DATABASE, table, *arguments]))
            for table in (SMALL, LARGE)
        )
        for pair in zip(small, large, strict=True):
            _compare(section, side, pair, turns, target)
    return section


def _tables(side: Side, sizes: Sizes, turns: Turns) -> Comparison:
    section = Comparison(
        "Large databases",
        "The same call in a database of few and in one of many tables; the pattern finds ten.",
        (f"{sizes.few_tables:,} tables", f"{sizes.many_tables:,} tables"),
    )
    for name, method, argument in (
        ("table names by prefix", "get_tables", "t00001*"),
        ("get table", "get_table", "t000010"),
    ):
        pair = tuple(operations.read(name, Call(method, [database, argument])) for database in (FEW, MANY))
        _compare(section, side, pair, turns, 0.67)
    return section


def _compare(
    section: Comparison, side: Side, pair: Sequence[Operation], turns: Turns, target: float | None = None
) -> None:
    found = turns.samples([(side, operation) for operation in pair], RAW)
    section.compared.append(Compared.of(pair[0].name, RAW, "ms", found, target, samples=True))
    say(str(section.compared[-1]))


# -- connections -------------------------------------------------------------------------------------------------


def _connections(side: Side, java: Java, sizes: Sizes, rounds: int) -> tuple[Section, Comparison]:
    memory = Section(
        "Idle connections",
        f"Memory of all processes of the server together (unique set size) before and while {sizes.idle:,} connections"
        " are open; each has made one call.",
    )
    busy = Comparison(
        "Beside idle connections",
        f"{BUSY} raw clients, with and without those, in turn.",
        ("alone", f"beside {sizes.idle:,} idle"),
    )
    call = Call("get_table", [DATABASE, SMALL])
    java.load(side.host, side.port, call, BUSY, sizes.seconds)
    rates: list[list[float]] = [[], []]
    before, grown = [], []
    for _ in range(rounds):
        before.append(_memory(side))
        rates[0].append(len(java.load(side.host, side.port, call, BUSY, sizes.seconds)) / sizes.seconds)
        with noted(f"opening {sizes.idle:,} connections"), _idle(side, sizes.idle):
            grown.append(_memory(side) - before[-1])
            rates[1].append(len(java.load(side.host, side.port, call, BUSY, sizes.seconds)) / sizes.seconds)
    memory.figures += [Figure.of("before", "MiB", before), Figure.of(f"more with {sizes.idle:,}", "MiB", grown)]
    busy.compared.append(Compared.of("get table", RAW, PER_SECOND, rates, 0.9))
    say(f"{sizes.idle:,} idle connections: {max(grown):.0f} MiB; {busy.compared[-1]}")
    return memory, busy


@contextmanager
def _idle(side: Side, count: int) -> Iterator[None]:
    """So many connections that were answered once."""
    _allow_open_files()
    request = Call("getName", []).encoded()
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            opened.append(stack.enter_context(socket.create_connection((side.host, side.port))))
            opened[-1].sendall(request)
        for connection in opened:
            if not connection.recv(1 << 10):
                raise UserError(f"the server closed one of {count} idle connections: see its setting max_connections")
        yield


def _memory(side: Side) -> float:
    """MiB that the server's processes would give back if they ended."""
    return float(sum(process.memory_full_info().uss for process in _processes(side))) / MIB


def _processes(side: Side) -> list[psutil.Process]:
    server = psutil.Process(side.pid)
    return [server, *server.children(recursive=True)]


def _allow_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# -- long replies ------------------------------------------------------------------------------------------------


def _streaming(side: Side, sizes: Sizes) -> Section:
    section = Section(
        "Long replies",
        f"All of {sizes.streamed:,} partitions of {operations.COLUMNS} columns in one reply, and the largest memory"
        " (resident set) that a worker had meanwhile.",
    )
    call = Call("get_partitions", [DATABASE, STREAMED, ALL])
    with noted(f"reading {sizes.streamed:,} partitions"):
        _, length = side.raw.walk(call)
        workers = _processes(side)[1:]
        for worker in workers:
            Path(f"/proc/{worker.pid}/clear_refs").write_text("5")  # the peak starts again
        seconds = side.raw.time(call, length)
        peak = max(_peak(worker.pid) for worker in workers)
    section.figures += [
        Figure.of("the reply", "MiB", [length / MIB]),
        Figure.of("to its last byte", "s", [seconds]),
        Figure.of("a worker's memory at most", "MiB", [peak]),
    ]
    say(f"{length / MIB:.0f} MiB in {seconds:.1f} s, a worker had {peak:.0f} MiB at most")
    return section


def _peak(pid: int) -> float:
    """The largest resident set of a process, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1024
    raise AssertionError("Linux tells it of every process")

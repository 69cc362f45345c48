"""Calls of every kind on our server and on Hive's own, on the same Postgres, call by call in turn."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from thrift.Thrift import TException

from bench import java_client, operations, sides, stage
from bench.comparison import HIVE_CLIENT, PER_SECOND, RAW, Compared, Comparison, ComparisonReport
from bench.figures import Report
from bench.java_client import Call, CallFailed, Java
from bench.operations import Operation
from bench.options import Options
from bench.postgres import HOST, LoopbackPostgres
from bench.progress import noted, say
from bench.shapes import DATABASE
from bench.sides import Side
from bench.stage import Stage
from bench.turns import Turns
from tests.support import builders
from tests.support.jvm import pyspark_jars


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
    sizes = operations.QUICK if options.quick else operations.FULL
    effort = QUICK if options.quick else FULL
    with stage.opened() as on, ExitStack() as stack:
        with noted("starting both servers"):
            both = [stack.enter_context(side) for side in _sides(options, on)]
        for side in both:
            with noted(f"filling the tables of {side.name}"):
                side.thrift.create_database(builders.database(DATABASE))
                operations.fill(side, sizes)
        report = ComparisonReport("hive", versions=_versions(on.postgres, options), arguments=options.arguments)
        measure = _Measure(report, both, effort, options)
        try:
            measure.each(operations.operations(sizes))
            measure.together(on.java)
            with java_client.running(on.classes, on.home / "echo", memory="2g") as other:
                measure.floor(on.java, other, sizes)
        except KeyboardInterrupt:
            say("interrupted: the report ends here")
    return report


def _sides(options: Options, on: Stage) -> Iterator[AbstractContextManager[Side]]:
    java, home, postgres, warehouses = on.java, on.home, on.postgres, on.warehouses
    if options.against == "hive":
        yield sides.hive(java, home / "hive", postgres.create("hive"), warehouses / "hive")
    else:
        source = None if options.against == "ours" else Path(options.against).absolute()
        other = warehouses / "other"
        yield sides.ours(
            java, home / "other", postgres.local(postgres.create("other")), other, source=source, name="other"
        )
    # Java knows no Unix sockets. Ours, beside its Postgres, uses one.
    yield sides.ours(
        java, home / "ours", postgres.local(postgres.create("ours")), warehouses / "ours", redis=options.redis
    )


class _Measure:
    """Adds sections to a report, and rows to these one by one."""

    def __init__(self, report: Report, both: Sequence[Side], effort: Effort, options: Options) -> None:
        self._report = report
        self._both = both
        self._names = (both[0].name, both[1].name)
        self._turns = Turns(effort.seconds, options)
        self._effort = effort
        self._options = options

    # -- one call at a time --------------------------------------------------------------------------------------

    def each(self, chosen: Sequence[Operation]) -> None:
        """One client, one call at a time, the servers in turn."""
        section = Comparison(
            "One call at a time",
            "Until the last byte is read (client: raw) and until Hive's own Java client has decoded the result. The"
            " servers are called in turn; an aim is meant for the raw client. Cold: after a change of the table and of"
            " one of its partitions. Partitions are by day and hour; there are many small tables, too. Both"
            " servers make their directories in memory.",
            self._names,
        )
        self._report.sections.append(section)
        for operation in chosen:
            for client in (RAW, HIVE_CLIENT) if operation.in_java else (RAW,):
                if not self._options.wants(operation.name):
                    continue
                try:
                    found = self._turns.samples([(side, operation) for side in self._both], client)
                except (CallFailed, TException) as error:
                    section.missed[operation.name] = str(error)
                    say(f"{operation.name} ({client}): {error}")
                    continue
                target = operation.target if client == RAW else None
                section.compared.append(Compared.of(operation.name, client, "ms", found, target, samples=True))
                say(str(section.compared[-1]))

    # -- many clients --------------------------------------------------------------------------------------------

    def together(self, java: Java) -> None:
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
        self._report.sections += [rates, times]
        for name, call in {"get table": operations.get_table(), "get partition": operations.get_partition()}.items():
            for clients in self._effort.clients:
                label = _with_clients(name, clients)
                if not self._options.wants(label):
                    continue
                calls, took = self._load(java, call, clients)
                target = THROUGHPUT_TARGETS.get((name, clients))
                rates.compared.append(Compared.of(label, RAW, PER_SECOND, calls, target))
                times.compared.append(Compared.of(label, RAW, "ms", took, samples=True))
                say(str(rates.compared[-1]))

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

    def floor(self, java: Java, other: Java, sizes: operations.Sizes) -> None:
        """The same clients with a server, in another virtual machine, that has the reply ready."""
        ours = self._both[1]
        section = Comparison(
            "The floor",
            "Our server beside one that answers with the same bytes without a look at the call: what sockets and the"
            " raw client cost alone.",
            ("echo", ours.name),
            charted=False,
        )
        self._report.sections.append(section)
        everything = f"all {sizes.partitions:,} partitions"
        for name, call, clients in (
            ("get table", operations.get_table(), self._effort.clients),
            (f"{everything} of {operations.COLUMNS} columns", operations.get_all(operations.READ), (1,)),
            (f"{everything} of {operations.WIDE_COLUMNS} columns", operations.get_all(operations.WIDE), (1,)),
        ):
            if not self._options.wants(name):
                continue
            _, length = ours.raw.walk(call)
            echo = other.echo(ours.host, ours.port, call, length)
            for count in clients:
                took = [
                    [1000 * each for each in java.load(HOST, port, call, count, self._effort.load_seconds)]
                    for port in (echo.port(), ours.port)
                ]
                section.compared.append(Compared.of(_with_clients(name, count), RAW, "ms", took, samples=True))
                say(str(section.compared[-1]))
            echo.close()


def _with_clients(name: str, count: int) -> str:
    return f"{name}, {count} client{'s' if count > 1 else ''}"


def _versions(postgres: LoopbackPostgres, options: Options) -> dict[str, str]:
    if options.against != "hive":
        return {"Postgres": postgres.version}
    jars = pyspark_jars()
    assert jars is not None
    [metastore] = jars.glob("hive-metastore-*.jar")
    return {"Hive": metastore.stem.removeprefix("hive-metastore-"), "Postgres": postgres.version}

"""Reads and small writes beside Hive 4's own server, with its CachedStore and without, on the same Postgres.

Hive reaches Postgres over TCP, since Java knows no Unix sockets. Ours is measured both ways.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from bench import operations, sides, stage
from bench.comparison import PER_SECOND, RAW, Compared, Comparison, ComparisonReport
from bench.figures import Report
from bench.java_client import Call, Java
from bench.operations import ALL, CHANGED, COLUMNS, READ, Operation
from bench.options import Options
from bench.progress import noted, say
from bench.shapes import DATABASE, HOURS, Shape
from bench.sides import Side
from bench.turns import Turns
from lake.protocol.hive import GetTableRequest
from tests.support import builders
from tests.support.reference4 import NEWEST, RELEASES

NAMED = 1_000
WRITERS = (1, 8, 16)
TCP = "ours, Postgres over TCP"


@dataclass(frozen=True)
class Effort:
    """`partitions` of the table that is read. `seconds` for one operation; `load_seconds` for many clients, each
    `rounds` times; `warm_seconds` before that, in which Java compiles what it runs often."""

    partitions: int
    seconds: float
    load_seconds: float
    warm_seconds: float
    rounds: int


FULL = Effort(partitions=5_000, seconds=4, load_seconds=3, warm_seconds=20, rounds=3)
QUICK = Effort(partitions=1_000, seconds=0.2, load_seconds=0.3, warm_seconds=0.3, rounds=1)


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing."""
    effort = QUICK if options.quick else FULL
    release = RELEASES[options.hive4] if options.hive4 else NEWEST
    with stage.opened() as on, ExitStack() as stack:
        java, home, postgres, warehouses = on.java, on.home, on.postgres, on.warehouses
        opened = [
            sides.hive4(java, home / name, postgres.create(name), warehouses / name, release, cached=name == "cached")
            for name in ("hive4", "cached")
        ]
        opened.append(sides.ours(java, home / "ours", postgres.local(postgres.create("ours")), warehouses / "ours"))
        opened.append(sides.ours(java, home / "tcp", postgres.create("tcp"), warehouses / "tcp", name=TCP))
        with noted("starting the servers"):
            plain, cached, ours, tcp = servers = [stack.enter_context(each) for each in opened]
        for side in servers:
            with noted(f"filling the tables of {side.name}"):
                side.thrift.create_database(builders.database(DATABASE))
                side.fill(READ, Shape(COLUMNS, effort.partitions))
                for number in range(max(WRITERS)):
                    side.thrift.create_table(Shape(COLUMNS, 0).table(_own_table(number)))
        versions = {"Hive": release.version, "Postgres": postgres.version}
        name = "hive4" if release is NEWEST else f"hive{release.version}"
        report = ComparisonReport(name, versions=versions, arguments=options.arguments)
        measure = _Measure(report, java, effort, options)
        try:
            for beside in (ours, tcp):
                measure.one_at_a_time([plain, beside], [*_reads(effort), *_writes(effort)])
                measure.one_at_a_time([cached, beside], _reads(effort))
                measure.readers([plain, beside], {1: None, 16: None})
                measure.readers([cached, beside], {1: None, 16: 1.5})
                measure.writers([plain, beside])
        except KeyboardInterrupt:
            say("interrupted: the report ends here")
    return report


class _Measure:
    """Adds sections to a report, and rows to these one by one."""

    def __init__(self, report: Report, java: Java, effort: Effort, options: Options) -> None:
        self._report = report
        self._java = java
        self._effort = effort
        self._options = options
        self._turns = Turns(effort.seconds, options)

    def one_at_a_time(self, both: Sequence[Side], chosen: Sequence[Operation]) -> None:
        """One client, one call at a time, the servers in turn."""
        title = f"One call at a time: {_versus(both)}"
        about = "Until the last byte is read. The servers are called in turn; all keep their directories in memory."
        section = self._section(title, about, both)
        for operation in chosen:
            if self._options.wants(operation.name):
                found = self._turns.samples([(side, operation) for side in both], RAW)
                self._add(section, Compared.of(operation.name, RAW, "ms", found, operation.target, samples=True))

    def readers(self, both: Sequence[Side], targets: dict[int, float | None]) -> None:
        """Many clients that read a table, each as soon as it was answered."""
        title = f"Reading a table: {_versus(both)}"
        about = (
            f"`get_table_req` of {COLUMNS} columns, the servers in turn for {self._effort.load_seconds:g} s. Clients,"
            " servers and Postgres share the machine."
        )
        section = self._section(title, about, both)
        for clients, target in targets.items():
            name = f"{title}, {clients}"
            if self._options.wants(name):
                self._load(section, both, [[_get_table(READ)]] * clients, target)

    def writers(self, both: Sequence[Side]) -> None:
        """Many clients that read and alter a table of their own."""
        about = "Each client reads its table by `get_table_req` and alters it by `alter_table`, again and again."
        title = f"Small writes: {_versus(both)}"
        section = self._section(title, about, both)
        for clients in WRITERS:
            if self._options.wants(f"{title}, {clients}"):
                self._load(section, both, None, 3.5 if clients > 1 else None, writers=clients)

    def _load(
        self,
        section: Comparison,
        both: Sequence[Side],
        rounds: Sequence[Sequence[Call]] | None,
        target: float | None,
        *,
        writers: int = 0,
    ) -> None:
        """`rounds`: the calls of each client; None: those of `writers`."""
        rates: list[list[float]] = [[] for _ in both]
        times: list[list[float]] = [[] for _ in both]
        prepared = [
            rounds if rounds is not None else [_alterations(side, each) for each in range(writers)] for side in both
        ]
        for side, calls in zip(both, prepared, strict=True):
            self._java.load_rounds(side.host, side.port, calls, self._effort.warm_seconds)
        for _ in range(self._options.rounds or self._effort.rounds):
            for side, calls, rate, took in zip(both, prepared, rates, times, strict=True):
                seconds = self._java.load_rounds(side.host, side.port, calls, self._effort.load_seconds)
                together = 1 if rounds is not None else 2  # a read and an alteration are one
                rate.append(len(seconds) / together / self._effort.load_seconds)
                took += [1000 * each for each in seconds]
        count = len(prepared[0])
        label = f"{count} client{'s' if count > 1 else ''}"
        self._add(section, Compared.of(label, RAW, PER_SECOND, rates, target))
        self._add(section, Compared.of(f"{label}, each call", RAW, "ms", times, samples=True))

    def _section(self, title: str, about: str, both: Sequence[Side]) -> Comparison:
        section = Comparison(title, about, (both[0].name, both[1].name))
        self._report.sections.append(section)
        return section

    @staticmethod
    def _add(section: Comparison, compared: Compared) -> None:
        section.compared.append(compared)
        say(f"{section.title}: {compared}")


def _versus(both: Sequence[Side]) -> str:
    return " and ".join(side.name for side in both)


def _get_table(name: str) -> Call:
    return Call("get_table_req", [_request(name)])


def _request(name: str) -> GetTableRequest:
    return GetTableRequest(dbName=DATABASE, tblName=name, catName="hive")


def _own_table(number: int) -> str:
    return f"own{number:02d}"


def _alterations(side: Side, number: int) -> list[Call]:
    """Reads of a table and alterations of it, each to another state than the one before."""
    name = _own_table(number)
    calls = []
    for mark in ("5", "6"):
        table = side.thrift.get_table_req(_request(name)).table
        table.parameters["mark"] = mark
        calls += [_get_table(name), Call("alter_table", [DATABASE, name, table])]
    return calls


def _reads(effort: Effort) -> list[Operation]:
    shape = Shape(COLUMNS, effort.partitions)
    day, _ = shape.values(effort.partitions // 2)
    names = shape.names()[:NAMED]
    table = [DATABASE, READ]
    return [
        operations.read("get a table", _get_table(READ)),
        operations.read(f"all {effort.partitions:,} partitions", operations.get_all(READ)),
        operations.read(f"{effort.partitions:,} partition names", Call("get_partition_names", [*table, ALL]), 3),
        operations.read(
            f"{HOURS} partitions by filter", Call("get_partitions_by_filter", [*table, f'dt = "{day}"', ALL])
        ),
        operations.read(f"{len(names):,} partitions by name", Call("get_partitions_by_names", [*table, names])),
    ]


def _writes(effort: Effort) -> list[Operation]:
    bulk = {operation.name: operation for count in (100, 1_000) for operation in operations.bulk(count)}
    targets = {"alter 100 partitions": 3.0, "add 1,000 partitions": 3.0}
    full = Shape(COLUMNS, effort.partitions)

    def drop(side: Side) -> Iterator[Call]:
        side.fill(CHANGED, full)
        yield Call("drop_table", [DATABASE, CHANGED, True])

    return [
        *(replace(bulk[name], target=target, in_java=False) for name, target in targets.items()),
        Operation(f"drop a table with {effort.partitions:,} partitions", drop, warm=0, most=3, in_java=False),
    ]

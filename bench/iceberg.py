"""Iceberg's REST catalog beside Iceberg's reference server, on the same Postgres."""

import http.client
import json
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import structlog
from sqlalchemy import URL

from bench.comparison import PER_SECOND, Compared, Comparison, ComparisonReport
from bench.figures import Report
from bench.hive_server import DRIVER, why_not
from bench.iceberg_scan import compare
from bench.options import Options
from bench.postgres import HOST, LoopbackPostgres, free_port
from bench.progress import noted, say
from lake.protocol.errors import UserError
from metastore.iceberg.routes import BASE
from tests.interop import maven
from tests.support.server import MetastoreServer

VERSION = "1.11.0"
JARS = [
    f"org.apache.iceberg:iceberg-open-api:{VERSION}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{VERSION}",
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.12",
    "org.apache.hadoop:hadoop-client-api:3.4.3",
    "org.apache.hadoop:hadoop-client-runtime:3.4.3",
    "org.slf4j:slf4j-nop:2.0.17",
]
PROGRAM = Path(__file__).with_name("iceberg_java") / "ReferenceCatalog.java"
NAMESPACE, TABLE = "bench", "t0"
TOGETHER = 5
"""Tables that one transaction changes."""
CLIENT = "HTTP"
SCAN = "scan by DuckDB"
SCHEMA = {
    "type": "struct",
    "fields": [{"id": n, "name": f"c{n:02d}", "type": "string", "required": False} for n in range(1, 51)],
}


@dataclass(frozen=True)
class Effort:
    """`tables` of the namespace, `snapshots` of the large table, `calls` for each measurement, `clients` at once.

    `rows` of the table that DuckDB scans.
    """

    tables: int
    snapshots: int
    calls: int
    seconds: float
    clients: int
    rows: int


FULL = Effort(tables=1_000, snapshots=1_000, calls=300, seconds=5, clients=8, rows=4_000_000)
QUICK = Effort(tables=20, snapshots=10, calls=20, seconds=0.5, clients=4, rows=20_000)


class Client:
    """One connection to a REST catalog, kept alive."""

    def __init__(self, name: str, host: str, port: int, base: str, prefix: str) -> None:
        self.name = name
        self._place = (host, port, base, prefix)
        self._connection = http.client.HTTPConnection(host, port, timeout=120)

    def another(self) -> Self:
        return type(self)(self.name, *self._place)

    def call(self, method: str, path: str, body: Any = None) -> bytes:
        """The response's body. Raises UserError for a refusal."""
        _, _, base, prefix = self._place
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        self._connection.request(method, f"{base}/v1{prefix}{path}", content, headers)
        response = self._connection.getresponse()
        found = response.read()
        if response.status >= 300:
            raise UserError(f"{self.name}: {method} {path} answers {response.status}: {found[:300]!r}")
        return found

    def load(self, table: str = TABLE) -> bytes:
        return self.call("GET", f"/namespaces/{NAMESPACE}/tables/{table}")

    def list(self) -> bytes:
        return self.call("GET", f"/namespaces/{NAMESPACE}/tables")

    def create(self, table: str) -> None:
        self.call("POST", f"/namespaces/{NAMESPACE}/tables", {"name": table, "schema": SCHEMA})

    def set_property(self, value: str, table: str = TABLE) -> None:
        self.call("POST", f"/namespaces/{NAMESPACE}/tables/{table}", _change(table, value))

    def set_together(self, value: str) -> None:
        """Changes several tables in one transaction."""
        changes = [_change(f"t{number}", value) for number in range(TOGETHER)]
        self.call("POST", "/transactions/commit", {"table-changes": changes})

    def add_snapshot(self, table: str, number: int) -> None:
        snapshot = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": int(time.time() * 1000),
            "manifest-list": f"file:///nowhere/{number}.avro",
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        if number > 1:
            snapshot["parent-snapshot-id"] = number - 1
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
        updates = [{"action": "add-snapshot", "snapshot": snapshot}, ref]
        self.call("POST", f"/namespaces/{NAMESPACE}/tables/{table}", {"requirements": [], "updates": updates})


def _change(table: str, value: str) -> dict[str, Any]:
    return {
        "identifier": {"namespace": [NAMESPACE], "name": table},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"mark": value}}],
    }


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing."""
    effort = QUICK if options.quick else FULL
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        home.chmod(0o755)
        postgres = LoopbackPostgres(home / "postgres")
        stack.callback(postgres.close)
        with noted("starting both servers"):
            theirs = stack.enter_context(_reference(home / "reference", postgres.create("reference")))
            ours = stack.enter_context(_ours(home / "ours", postgres.local(postgres.create("ours"))))
        both = [theirs, ours]
        for each in both:
            with noted(f"making the tables of {each.name}"):
                _fill(each, effort)
        both = [each.another() for each in both]  # either server may have ended a connection that rested meanwhile
        report = ComparisonReport(
            "iceberg", versions={"Iceberg": VERSION, "Postgres": postgres.version}, arguments=options.arguments
        )
        try:
            _one_at_a_time(report, both, effort, options)
            _at_once(report, both, effort, options)
            if options.wants(SCAN):
                database = postgres.local(postgres.create("scan"))
                report.sections.append(compare(home / "scan", database, effort.rows, options.rounds or 20))
        except KeyboardInterrupt:
            say("interrupted: the report ends here")
    return report


def _fill(client: Client, effort: Effort) -> None:
    client.call("POST", "/namespaces", {"namespace": [NAMESPACE]})
    for number in range(effort.tables):
        client.create(f"t{number}")
    client.create("large")
    for number in range(1, effort.snapshots + 1):
        client.add_snapshot("large", number)


def _one_at_a_time(report: Report, both: Sequence[Client], effort: Effort, options: Options) -> None:
    about = "One client, the servers in turn. Each commit sets a property."
    section = Comparison("One call at a time", about, (both[0].name, both[1].name))
    report.sections.append(section)
    parts: dict[str, tuple[Callable[[Client, int], object], float]] = {
        "load a table of 50 columns": (lambda client, _: client.load(), 2.0),
        f"load a table of {effort.snapshots:,} snapshots": (lambda client, _: client.load("large"), 2.0),
        f"list {effort.tables + 1:,} tables": (lambda client, _: client.list(), 2.0),
        "commit": (lambda client, number: client.set_property(str(number)), 1.0),
        f"commit {TOGETHER} tables together": (lambda client, number: client.set_together(f"all {number}"), 1.0),
    }
    for name, (act, target) in parts.items():
        if not options.wants(name):
            continue
        found: list[list[float]] = [[], []]
        for number in range(-10, options.rounds or effort.calls):  # the first ones warm up
            for client, samples in zip(both, found, strict=True):
                began = time.perf_counter()
                act(client, number)
                if number >= 0:
                    samples.append((time.perf_counter() - began) * 1000)
        compared = Compared.of(name, CLIENT, "ms", found, target, samples=True)
        section.compared.append(compared)
        say(f"{section.title}: {compared}")


def _at_once(report: Report, both: Sequence[Client], effort: Effort, options: Options) -> None:
    about = f"{effort.clients} clients for {effort.seconds:g} s, three times; a client commits to a table of its own."
    section = Comparison(f"{effort.clients} clients at once", about, (both[0].name, both[1].name))
    report.sections.append(section)
    parts: dict[str, tuple[Callable[[Client, int, int], object], float]] = {
        "load": (lambda client, who, number: client.load(f"t{who}"), 2.0),
        "commit": (lambda client, who, number: client.set_property(str(number), f"t{who}"), 1.0),
    }
    for name, (act, target) in parts.items():
        if not options.wants(name):
            continue
        rates: list[list[float]] = [[], []]
        for client in both:
            _rate(client, act, effort, effort.seconds)
        for _ in range(options.rounds or 3):
            for client, found in zip(both, rates, strict=True):
                found.append(_rate(client, act, effort, effort.seconds))
        compared = Compared.of(f"{name}, {effort.clients} clients", CLIENT, PER_SECOND, rates, target)
        section.compared.append(compared)
        say(f"{section.title}: {compared}")


def _rate(client: Client, act: Callable[[Client, int, int], object], effort: Effort, seconds: float) -> float:
    def work(who: int) -> int:
        own, number = client.another(), 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            act(own, who, time.monotonic_ns())
            number += 1
        return number

    with ThreadPoolExecutor(effort.clients) as pool:
        return sum(pool.map(work, range(effort.clients))) / seconds


@contextmanager
def _ours(directory: Path, url: URL) -> Iterator[Client]:
    directory.mkdir()
    options = ["--database-url", url.render_as_string(hide_password=False), "--log-level", "warning"]
    port = free_port()
    options += ["--warehouse-dir", str(directory / "warehouse"), "--http-port", str(port)]
    with MetastoreServer(directory / "data", *options):
        yield Client("ours", HOST, port, BASE, "/hive")


@contextmanager
def _reference(directory: Path, url: URL) -> Iterator[Client]:
    if (reason := why_not()) is not None:
        raise UserError(reason)
    try:
        jars = maven.class_path(JARS)
    except maven.Unavailable as error:
        raise UserError(str(error)) from None
    directory.mkdir()
    log = directory / "log"
    # `setpriv`: it ends with this process, however that ends.
    command = ["setpriv", "--pdeathsig=KILL", "java", "-Xmx2g", "-cp", os.pathsep.join(map(str, [DRIVER, *jars]))]
    command += [str(PROGRAM), f"jdbc:postgresql://{url.host}:{url.port}/{url.database}"]
    command += [url.username or "", str(url.password), f"file://{directory}/warehouse"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("port "):
            raise UserError(f"Iceberg's server doesn't start: {log.read_text()[-2000:]}")
        yield Client("Iceberg's reference server", "127.0.0.1", int(line.split()[1]), "", "")
    finally:
        process.terminate()
        process.wait(timeout=60)

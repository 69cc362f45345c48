"""What logins, encryption and rights cost: calls, logins, and connections that never log in."""

import multiprocessing
import resource
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from bench.comparison import PER_SECOND, Compared, Comparison
from bench.costs import cpu_seconds
from bench.figures import Figure, Report, Section
from bench.java_client import Call
from bench.options import Options
from bench.postgres import LoopbackPostgres
from bench.progress import noted, say
from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.connection.transports import SaslTransport, transport
from lake.protocol.errors import UserError
from lake.protocol.hive import Database, Table
from metastore.server.credentials import password_file
from tests.support import builders
from tests.support.certificates import Authority
from tests.support.server import MetastoreServer

PROCESSES, CONNECTIONS = 2, 8
"""Clients: processes, and connections of each."""
NOBODY = Login()
USER, ADMIN, PASSWORD = "ann", "root", "secret"
CALL = Call("get_table", ["bench", "t"])
LOGINS_PER_SECOND, LOGINS_AT_ONCE = 500, 4
BEGINNINGS = (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x01\x00\x00\x00\x05PLA")
"""What half-open connections have said: nothing, and parts of TLS and SASL. HTTP is off, and refused at once."""


class Sizes(NamedTuple):
    seconds: float
    rounds: int
    half_open: int


FULL = Sizes(3, 5, 10_000)
QUICK = Sizes(0.3, 1, 50)


class Way(NamedTuple):
    """A way to reach a server."""

    name: str
    port: int
    login: Login


def run(options: Options) -> Report:
    """An open server and a closed one on one Postgres; each way in turn."""
    sizes = QUICK if options.quick else FULL
    rounds = options.rounds or sizes.rounds
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        postgres = LoopbackPostgres(home / "postgres")
        stack.callback(postgres.close)
        report = Report("security", versions={"Postgres": postgres.version}, arguments=options.arguments)
        authority = Authority(home)
        certificate, key = authority.issue("server", "localhost", "127.0.0.1")
        mine = authority.issue("client", common_name=USER)
        for user in (USER, ADMIN):
            password_file.add(home / "users", user, PASSWORD, ("staff",), allow_weak=True)
        closed = (
            *("--authentication", "plain,token,certificate", "--password-file", str(home / "users")),
            *("--tls-certificate", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(authority.file)),
            *("--authorization", "sql-standard", "--admins", ADMIN, "--credentials-without-tls"),
            *("--audit-log", str(home / "audit.log"), "--login-timeout-seconds", "120"),
            *("--max-connections", str(2 * FULL.half_open)),
        )
        audited = ("--audit-log", str(home / "audited.log"), "--audit")
        servers = []
        for name, more in (
            ("open", ()),
            ("closed", closed),
            ("audited", (*audited, "changes")),
            ("all_audited", (*audited, "all")),
        ):
            url = postgres.create(name).render_as_string(hide_password=False)
            environment = {"METASTORE_DATABASE_URL": url}
            common = ("--warehouse-dir", str(home / name / "warehouse"), "--workers", "1", "--log-level", "error")
            servers.append(stack.enter_context(MetastoreServer(home / name, *common, *more, environment=environment)))
        plain, password = Way("open", servers[0].port, NOBODY), Login(user=USER, password=PASSWORD)
        within = Login(user=USER, password=PASSWORD, authorities=authority.file)
        for server in servers:
            _fill(server.port, Login(user=ADMIN, password=PASSWORD) if server is servers[1] else NOBODY)
        with ThriftClient("127.0.0.1", servers[1].port, login=within) as client:
            token = client.get_delegation_token(USER, USER)
        ways = [
            Way("login and rights", servers[1].port, password),
            Way("the same within TLS", servers[1].port, within),
        ]
        logins = [
            Way("password", servers[1].port, password),
            Way("password within TLS", servers[1].port, within),
            Way("client certificate", servers[1].port, Login(authority.file, str(mine[0]), str(mine[1]))),
            Way("delegation token", servers[1].port, Login(token=token)),
        ]
        clients = stack.enter_context(ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")))
        report.sections.append(_calls(clients, plain, ways, sizes.seconds, rounds))
        audits = [plain, *(Way("audited", each.port, NOBODY) for each in servers[2:])]
        report.sections.append(_audit(clients, audits, sizes.seconds, rounds))
        report.sections += _logins(clients, psutil.Process(servers[1].pid), logins, sizes.seconds, rounds)
        report.sections += _half_open(clients, ways[1], sizes, rounds)
    return report


def _fill(port: int, login: Login) -> None:
    """A database of USER's, with a table."""
    columns = [f"c{number}:string" for number in range(50)]
    with ThriftClient("127.0.0.1", port, login=login) as client:
        client.create_database(Database(name="bench", ownerName=USER))
        client.create_table(builders.table("bench", owner=USER, sd=builders.storage(*columns)))
        for number in range(CONNECTIONS):
            client.create_table(_changed(number))


def _changed(number: int) -> Table:
    """The table that a connection alters."""
    return builders.table("bench", f"changed{number}", owner=USER)


# -- calls -------------------------------------------------------------------------------------------------------


def _calls(clients: ProcessPoolExecutor, plain: Way, ways: Sequence[Way], seconds: float, rounds: int) -> Comparison:
    section = Comparison(
        "Calls",
        f"`get_table` of 50 columns by {PROCESSES} processes with {CONNECTIONS} connections each, in turn. The open"
        " server knows neither logins nor rights; the closed one decides on each call by grants, and keeps an audit"
        " log of changes.",
        ("open", "closed"),
    )
    rates: dict[str, list[float]] = {each.name: [] for each in (plain, *ways)}
    with noted("calls"):
        for each in (plain, *ways):
            _rate(clients, each, _call, seconds)
        for _ in range(rounds):
            for each in (plain, *ways):
                rates[each.name].append(_rate(clients, each, _call, seconds))
    for each, target in zip(ways, (0.95, 0.7), strict=True):
        found = [rates[plain.name], rates[each.name]]
        section.compared.append(Compared.of(each.name, "Python", PER_SECOND, found, target))
        say(str(section.compared[-1]))
    return section


def _audit(clients: ProcessPoolExecutor, ways: Sequence[Way], seconds: float, rounds: int) -> Comparison:
    """`ways`: to a server without an audit log, to one that records changes, and to one that records all calls."""
    section = Comparison(
        "The audit log",
        "Records go to a file; nobody logs in, and no rights are decided on. `get_table` is answered from the cache,"
        " which is the quickest call there is.",
        ("without", "with"),
    )
    without, changes, everything = ways
    for name, way, act in (
        ("alter_table", changes, _change),
        ("get_table, audit = changes", changes, _call),
        ("get_table, audit = all", everything, _call),
    ):
        rates: list[list[float]] = [[], []]
        with noted(name):
            for each in (without, way):
                _rate(clients, each, act, seconds)
            for _ in range(rounds):
                for found, each in zip(rates, (without, way), strict=True):
                    found.append(_rate(clients, each, act, seconds))
        section.compared.append(Compared.of(name, "Python", PER_SECOND, rates, 0.97))
        say(str(section.compared[-1]))
    return section


def _rate(clients: ProcessPoolExecutor, way: Way, act: Callable[[Way, float], float], seconds: float) -> float:
    """What all client processes do per second."""
    sent = way._replace(login=replace(way.login))  # without what it has made of its files
    return sum(clients.map(partial(act, sent), [seconds] * PROCESSES))


def _call(way: Way, seconds: float) -> float:
    """Calls per second over several connections, each of which has one call under way."""
    return _calls_per_second(way, [CALL] * CONNECTIONS, seconds)


def _change(way: Way, seconds: float) -> float:
    """As `_call`, of a call that changes a table, another one for each connection."""
    calls = [Call("alter_table", ["bench", f"changed{each}", _changed(each)]) for each in range(CONNECTIONS)]
    return _calls_per_second(way, calls, seconds)


def _calls_per_second(way: Way, calls: Sequence[Call], seconds: float) -> float:
    requests = [each.encoded() for each in calls]
    if way.login.user is not None:
        requests = [len(each).to_bytes(4) + each for each in requests]  # SASL's frame
    with _connected(way) as connections:
        length = _length_of_reply(connections[0], requests[0])
        count = 0
        began = time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            for each, request in zip(connections, requests, strict=True):
                each.write(request)
                each.flush()
            for each in connections:
                each.readAll(length)
            count += len(connections)
        return count / spent


def _length_of_reply(connection: Any, request: bytes) -> int:
    """The bytes of a reply, which comes at once and is the same each time."""
    connection.write(request)
    connection.flush()
    found = 0
    connection.setTimeout(500)
    try:
        while True:
            found += len(connection.read(1 << 16))
    except Exception:  # nothing more came
        if not found:
            raise
    connection.setTimeout(60_000)
    return found


@contextmanager
def _connected(way: Way) -> Iterator[list[Any]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(CONNECTIONS):
            one = transport("localhost", way.port, way.login)
            one.setTimeout(60_000)
            one.open()
            stack.callback(one.close)
            # Frames are made once, so that the clients cost the same.
            opened.append(one._below if isinstance(one, SaslTransport) else one)
        yield opened


# -- logins ------------------------------------------------------------------------------------------------------


def _logins(
    clients: ProcessPoolExecutor, server: psutil.Process, ways: Sequence[Way], seconds: float, rounds: int
) -> tuple[Section, Section]:
    rates = Section(
        "Logins",
        f"By {PROCESSES} processes, {LOGINS_AT_ONCE} at a time in each: connect, log in, call once, close. Server and"
        " clients share the processors, and a handshake of TLS costs the client more than the server.",
    )
    costs = Section("What a login costs the server", "Processor time of all its processes, with the call.")
    processes = [server, *server.children(recursive=True)]
    for way in ways:
        values, spent = [], []
        with noted(f"logins by {way.name}"):
            for _ in range(rounds):
                before = cpu_seconds(processes)
                values.append(_rate(clients, way, _logins_at_once, seconds))
                used = cpu_seconds(processes) - before
                spent.append(used / (values[-1] * seconds) * 1000)
        rates.figures.append(Figure.of(way.name, PER_SECOND, values, aim=LOGINS_PER_SECOND))
        costs.figures.append(Figure.of(way.name, "ms", spent))
        say(f"logins by {way.name}: {statistics.median(values):.0f}/s")
    return rates, costs


def _logins_at_once(way: Way, seconds: float) -> float:
    with ThreadPoolExecutor(LOGINS_AT_ONCE) as threads:
        return sum(threads.map(partial(_login, way), [seconds] * LOGINS_AT_ONCE))


def _login(way: Way, seconds: float) -> float:
    count = 0
    began = time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        _log_in(way)
        count += 1
    return count / spent


def _log_in(way: Way) -> None:
    with ThriftClient("localhost", way.port, login=way.login) as client:
        client.getStatus()


# -- who never logs in -------------------------------------------------------------------------------------------


def _half_open(clients: ProcessPoolExecutor, way: Way, sizes: Sizes, rounds: int) -> tuple[Comparison, Section]:
    beside = f"beside {sizes.half_open:,} half-open"
    calls = Comparison(
        "Beside half-open logins",
        f"Calls within TLS, alone and while {sizes.half_open:,} connections have said nothing, or the first bytes of a"
        " handshake of TLS or SASL.",
        ("alone", beside),
    )
    logins = Section("A login beside them", "By password within TLS, until the first reply.")
    rates: list[list[float]] = [[], []]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        rates[0].append(_rate(clients, way, _call, sizes.seconds))
        times[0] += _login_times(way)
        with noted(f"opening {sizes.half_open:,} connections"), _opened(way.port, sizes.half_open):
            rates[1].append(_rate(clients, way, _call, sizes.seconds))
            times[1] += _login_times(way)
    calls.compared.append(Compared.of("get table", "Python", PER_SECOND, rates, 0.9))
    for name, values in zip(("alone", beside), times, strict=True):
        logins.figures.append(Figure.of(name, "ms", values, samples=True))
    say(str(calls.compared[-1]))
    return calls, logins


def _login_times(way: Way) -> list[float]:
    found = []
    for _ in range(20):
        began = time.perf_counter()
        _log_in(way)
        found.append((time.perf_counter() - began) * 1000)
    return found


@contextmanager
def _opened(port: int, count: int) -> Iterator[None]:
    """So many connections that have begun in one of several ways. Raises UserError if the server closes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        opened = []
        for number in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(BEGINNINGS[number % len(BEGINNINGS)])
            opened.append(one)
        yield
        for one in opened:
            one.setblocking(False)
            try:
                one.recv(1)
            except BlockingIOError:
                continue
            begun = BEGINNINGS[opened.index(one) % len(BEGINNINGS)]
            raise UserError(f"the server closed a half-open connection that said {begun!r} while calls were measured")

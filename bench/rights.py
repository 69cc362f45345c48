"""Rights: what a decision takes, what it takes to filter names, and what the audit log costs."""

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import structlog
from sqlalchemy import NullPool, create_engine, text

from bench import services
from bench.figures import Figure, Report
from bench.options import Options
from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from metastore.api import load
from metastore.api.rights.guard import Verdict
from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.server.monitoring.audit import About, AuditLog
from metastore.services.access.caller import Caller
from metastore.services.access.rights import Action, Kind, Securable
from metastore.services.access.sql_standard import SqlStandard
from metastore.services.access.storage import StoragePermissions
from metastore.services.wiring import Metastore
from metastore.store.access import locations
from metastore.store.cache import cache_changes
from metastore.warehouse import Warehouse
from tests.support import builders

FULL, QUICK = 100_000, 1_000
AT_ONCE = 1_000
"""Decisions of one measurement."""

DECISION_MICROSECONDS, FILTER_MILLISECONDS = 20, 100
"""What is aimed at: for one decision, and for so many names as FULL says."""

CALLER = Caller("reader", ("staff",), "jwt")
STRANGER = Caller("nobody", (), "jwt")
"""A user whom the operating system knows, and who owns nothing."""


def run(options: Options) -> Report:
    """A database with many tables, every second of which is granted, on a Postgres of its own."""
    report = Report("rights")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    tables = QUICK if options.quick else FULL
    rounds = options.rounds or (3 if options.quick else 20)
    with services.opened() as (metastore, url), tempfile.TemporaryDirectory(prefix="bench-") as home:
        _fill(metastore, url, tables)
        _decisions(metastore, report, rounds)
        _filters(metastore, report, tables, rounds)
        _directories(metastore, url, Path(home), report, tables, min(rounds, 5))
        _audit(Path(home), report, rounds)
    return report


def _fill(metastore: Metastore, url: str, count: int) -> None:
    """One table made by the service; the others are copies of its row. Privileges are granted on every second one."""
    metastore.databases.create(builders.database("bench", ownerName="somebody"))
    metastore.tables.create(builders.table("bench", "t", owner="somebody"), {})
    info = PrivilegeGrantInfo("SELECT", 0, "root", PrincipalType.USER, False)
    ref = HiveObjectRef(HiveObjectType.TABLE, "bench", "t")
    metastore.privileges.grant(PrivilegeBag([HiveObjectPrivilege(ref, "reader", PrincipalType.USER, info)]))
    columns = "database_id, type, owner, last_access_time, storage_descriptor_id, parameters, body"
    granted = "object_type, principal_type, principal_name, privilege, grant_time, grant_option"
    with create_engine(url, poolclass=NullPool).begin() as tx:
        tx.execute(
            text(
                f"INSERT INTO tables (name, {columns}) SELECT 't' || number, {columns}"
                " FROM tables, generate_series(1, :count) AS number WHERE name = 't'"
            ),
            {"count": count},
        )
        tx.execute(
            text(
                f"INSERT INTO privileges (table_id, {granted}) SELECT tables.id, {granted}"
                " FROM privileges, tables WHERE tables.name <> 't' AND tables.id % 2 = 0"
                " AND principal_name = 'reader'"
            )
        )


def _decisions(metastore: Metastore, report: Report, rounds: int) -> None:
    section = report.section("A decision", f"About a table, in microseconds; the mean of {AT_ONCE:,} at a time.")
    authorizer = SqlStandard(metastore.database)
    wanted = ((Action.LIST, _table("t")),)
    authorizer.decide_all(CALLER, wanted)
    loop = Changes()
    with metastore.database.read() as tx:
        found = cache_changes.poll(tx, 0, [])
    assert found is not None
    loop.add(Stamp.of(found.incarnation, found.snapshot), found.floor, found.changes, complete=True)

    def from_memory() -> None:
        for _ in range(AT_ONCE):
            authorizer.allowed_now(CALLER, wanted, loop.holds)

    def with_a_poll() -> None:
        for _ in range(AT_ONCE):
            authorizer.decide_all(CALLER, wanted)

    for name, action, clock, aim in (
        ("for a kept reply, in memory: processor", from_memory, time.thread_time, DECISION_MICROSECONDS),
        ("for other calls, with a poll", with_a_poll, time.perf_counter, None),
    ):
        values = [_seconds(action, clock) * 1e6 / AT_ONCE for _ in range(rounds)]
        section.figures.append(Figure.of(name, "µs", values, aim=aim))


def _filters(metastore: Metastore, report: Report, tables: int, rounds: int) -> None:
    section = report.section(
        f"Filtering {tables:,} names of tables", "Every second one is visible to the caller, by a privilege of its own."
    )
    authorizer = SqlStandard(metastore.database)
    names = [_table(f"t{number}") for number in range(1, tables + 1)]

    def cold() -> None:
        SqlStandard(metastore.database).visible(CALLER, names)

    def warm() -> None:
        authorizer.visible(CALLER, names)

    warm()
    for name, action, clock, aim in (
        ("what is granted is known: processor", warm, time.thread_time, FILTER_MILLISECONDS),
        ("what is granted is read first", cold, time.perf_counter, None),
    ):
        values = [_seconds(action, clock) * 1000 for _ in range(rounds)]
        section.figures.append(Figure.of(name, "ms", values, aim=aim))


def _directories(metastore: Metastore, url: str, home: Path, report: Report, tables: int, rounds: int) -> None:
    section = report.section(
        f"Filtering {tables:,} names of tables by their directories",
        "`authorization = storage`, on a local disk whose directories are in the system's memory. Every second one may "
        "be read by the caller. Nothing is remembered from list to list.",
    )
    root = home / "warehouse"
    for number in range(tables + 1):
        (root / f"bench.db/t{number}").mkdir(0o755 if number % 2 else 0o750, parents=True)
    home.chmod(0o755)
    with create_engine(url, poolclass=NullPool).begin() as tx:
        tx.execute(text("UPDATE tables SET location = :root || name"), {"root": f"file:{root}/bench.db/"})
    authorizer = StoragePermissions(metastore.database, Warehouse(str(root)))
    names = [_table(f"t{number}") for number in range(1, tables + 1)]

    def look() -> None:
        if sum(authorizer.visible(STRANGER, names)) != tables // 2:
            raise AssertionError("another half is visible")

    def read() -> None:
        with metastore.database.read() as tx:
            locations.of_tables(tx, names[0].of_database, {each.table for each in names})

    look()
    for name, action, clock, aim in (
        ("all of it: processor", look, time.thread_time, FILTER_MILLISECONDS),
        ("all of it", look, time.perf_counter, None),
        ("of that, reading where the tables lie: processor", read, time.thread_time, None),
    ):
        values = [_seconds(action, clock) * 1000 for _ in range(rounds)]
        section.figures.append(Figure.of(name, "ms", values, aim=aim))


def _audit(home: Path, report: Report, rounds: int) -> None:
    section = report.section(
        "The audit log", f"A record in a file, in microseconds; the mean of {AT_ONCE:,} at a time."
    )
    load()
    log = AuditLog("changes", home / "audit.log")
    verdict = Verdict(True, "SELECT on bench.t")

    def record() -> None:
        for _ in range(AT_ONCE):
            log.record("drop_table", CALLER, lambda: About("bench.t"), "ok", verdict)

    values = [_seconds(record) * 1e6 / AT_ONCE for _ in range(rounds)]
    section.figures.append(Figure.of("a record", "µs", values))


def _table(name: str) -> Securable:
    return Securable(Kind.TABLE, "hive", "bench", name)


def _seconds(action: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    action()
    return clock() - began

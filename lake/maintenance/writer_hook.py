"""Hudi's writers hand their plans over by HTTP, by their own configuration alone.

A writer with `hoodie.table.service.manager.enabled` sends `GET /v1/hoodie/service/{compact,cluster,clean}` with the
plans that wait, and holds the table's lock until it has the answer; one that isn't 200 fails its commit. So each
request is answered at once, and becomes a job afterwards. Nothing depends on it: the plans are on Hudi's timeline, and
the metastore finds them there, too. Hudi 0.15.0, 1.0.2 and 1.2.0 fail before they send anything.
https://github.com/apache/hudi/blob/master/rfc/rfc-43/rfc-43.md
"""

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import structlog
from thrift.Thrift import TException

from lake.maintenance.decisions.decisions import CLEAN, CLUSTERING, COMPACTION
from lake.maintenance.decisions.policy import BadPolicy, Policy
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import JobRequest, ServiceJob, TableReference

PREFIX = "/v1/hoodie/service/"
SERVICES: Mapping[str, str] = {"compact": COMPACTION, "cluster": CLUSTERING, "clean": CLEAN}

AT_ONCE = 10_000
"""Tables and services that wait to become jobs. More are left to the next look at their tables."""

RETRY_SECONDS = 5.0

log = structlog.get_logger(__name__)


class HandedOver(NamedTuple):
    """A service that a writer leaves to us. `instants`: the plans that wait, for people."""

    table: TableReference
    action: str
    instants: str


def parse(target: str) -> HandedOver:
    """What a request's path and query say. Raises ValueError for one that isn't Hudi's."""
    address = urlsplit(target)
    action = SERVICES.get(address.path.removeprefix(PREFIX))
    if action is None:
        raise ValueError(f"there are {', '.join(PREFIX + each for each in SERVICES)}")
    given = {name: values[-1] for name, values in parse_qs(address.query).items()}
    if given.get("action", "REQUEST").upper() != "REQUEST":
        raise ValueError("only the action REQUEST is known")
    table = given.get("table_name")
    if not table:
        raise ValueError("table_name is missing")
    # Many of Hudi's tables have no name of a database: then the one that the configured address has.
    database = given.get("db_name") or given.get("database") or "default"
    return HandedOver(TableReference(database=database, table=table), action, given.get("instant", ""))


class WriterHook:
    """Takes services over. `accept` may be called by any thread; jobs are submitted by one of the hook's own."""

    def __init__(
        self,
        submit: Callable[[TableReference, JobRequest], ServiceJob],
        policy: Callable[[TableReference], Policy],
        stop: threading.Event,
    ) -> None:
        """`submit`: enqueues a job. `policy`: of a table. Both raise what the metastore raises."""
        self._submit = submit
        self._policy = policy
        self._stop = stop
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._waiting: dict[tuple[str | None, str | None, str], HandedOver] = {}
        threading.Thread(target=self._run, name="writer-hook", daemon=True).start()

    def accept(self, target: str) -> None:
        """Takes a request in. Raises ValueError for one that isn't Hudi's."""
        given = parse(target)
        key = given.table.database, given.table.table, given.action
        with self._lock:
            if key in self._waiting or len(self._waiting) < AT_ONCE:
                self._waiting[key] = given
        self._some.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._some.wait(1.0):
                continue
            self._some.clear()
            with self._lock:
                found, self._waiting = self._waiting, {}
            while found and not self._stop.is_set():
                key = next(iter(found))
                try:
                    self._enqueue(found[key])
                    del found[key]
                except (NoSuchObjectException, InvalidOperationException, MetaException) as error:
                    given = found.pop(key)
                    table = f"{given.table.database}.{given.table.table}"
                    named = {"table": table, "action": given.action}
                    log.warning("a writer's plan isn't taken over", **named, error=error.message)
                except (TException, OSError) as error:
                    log.warning("the metastore can't be reached: writers' plans wait", error=str(error))
                    self._stop.wait(RETRY_SECONDS)

    def _enqueue(self, given: HandedOver) -> None:
        reason = f"a writer handed the plans {given.instants or 'of its own'} over"
        request = JobRequest(action=given.action, reason=reason[:1_000])
        try:
            policy = self._policy(given.table)
        except BadPolicy:
            pass  # `explain` says so; the job runs at once
        else:
            request = request.replace(priority=policy.priority, windows=policy.windows.get(given.action))
        self._submit(given.table, request)

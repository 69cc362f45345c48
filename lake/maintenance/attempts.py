"""One attempt at a job: plans if need be, has the plan run, judges by the timeline, and says how it ended.

Whatever happens to the process, nothing is done twice at once: the queue gives each attempt a number, and the timeline
gives each run of a plan one of its own.
"""

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from thrift.Thrift import TException

from lake.maintenance import metrics
from lake.maintenance.decisions.decisions import CLEAN, CLUSTERING, COMPACTION, ICEBERG, ORPHANS, PUBLISH
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.hudi import is_hudi
from lake.maintenance.decisions.iceberg import UnreadableMetadata, is_iceberg, why_not_alone
from lake.maintenance.decisions.policy import (
    BadPolicy,
    CleaningPolicy,
    ClusteringPolicy,
    OrphansPolicy,
    Policy,
    policy_of,
)
from lake.maintenance.executors.base import Executor, Stopped, Task, tag_of
from lake.maintenance.executors.hudi import HudiExecutor, RunElsewhere
from lake.maintenance.executors.hudi import WritersWon as HudisWritersWon
from lake.maintenance.executors.iceberg import IcebergExecutor, WritersWon
from lake.maintenance.queue import Queue
from lake.maintenance.scheduling import is_open
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import InstantConflict, ServiceFactsRequest, ServiceJob, TableReplaced
from lake.tables.clustering import NotClusterable, Planned, plan_clustering
from lake.tables.compaction import plan_compaction
from lake.tables.iceberg_overlays import write_overlays
from lake.tables.keyed_tables import NotKeyed
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish

FIRST_PAUSE, LONGEST_PAUSE = 10, 3_600
"""Seconds before a failed job is run again: these double with each failure in a row."""

AFTER_CONFLICT = 60
"""The same after writers won."""

WHILE_BUSY = 5
"""Seconds until a plan is looked at again that another process runs."""

CLEANED_AT_ONCE = 10_000
"""Files that one clean deletes."""

MAX_CLEANS = 100
"""Cleans that one job makes."""

LOG_CHARACTERS = 20_000

_TIMES = 3
_HOPELESS = (NotKeyed, NotClusterable, BadPolicy, UnreadableMetadata, ValueError)

log = structlog.get_logger(__name__)


class Ended(NamedTuple):
    """How an attempt ended: the job's state from now on, the outcome of the attempt, and the pause before the next."""

    state: str
    outcome: str
    retry_seconds: int = 0


class Attempt:
    """An attempt at a job that was taken. `run` in a thread of its own."""

    def __init__(
        self,
        job: ServiceJob,
        queue: Queue,
        client: LakeClient,
        executor: Executor,
        defaults: Mapping[str, str],
        clock: Callable[[], float],
        iceberg: IcebergExecutor | None = None,
        hudi: HudiExecutor | None = None,
    ) -> None:
        """`defaults`: of policies. `clock`: the database's time in seconds since 1970. `iceberg`, `hudi`: for
        their tables."""
        self.job = job
        self._queue = queue
        self._client = client
        self._executor = executor
        self._defaults = defaults
        self._clock = clock
        self._iceberg = iceberg
        self._hudi = hudi
        self._stop = threading.Event()
        self._over = threading.Event()
        self._lost = False
        self._lines: list[str] = []

    def stop(self) -> None:
        """Asks it to end soon; the job waits to be run again."""
        self._stop.set()

    def run(self) -> ServiceJob | None:
        """Runs it to its end. Returns the job as it is then; None if another attempt has taken it over."""
        begun, job = time.monotonic(), self.job
        named = {"job": job.id, "table": _name(job), "action": job.action, "attempt": job.attempts}
        metrics.started(job.action or "", self._lag())
        log.info("a job starts", **named)
        beating = threading.Thread(target=self._beat, name=f"job-{job.id}", daemon=True)
        beating.start()
        try:
            ended = self._ended()
        finally:
            self._over.set()
        seconds = time.monotonic() - begun
        metrics.ended(job.action or "", ended.outcome, seconds, job.bytes or 0, self._lag())
        log.info("a job ends", **named, state=ended.state, outcome=ended.outcome, seconds=round(seconds, 3))
        return None if self._lost else self._finished(ended, seconds)

    def _lag(self) -> float:
        """Seconds since the job was enqueued."""
        return self._clock() - (self.job.enqueuedAt or 0) / 1000

    def _finished(self, ended: Ended, seconds: float) -> ServiceJob | None:
        try:
            return self._queue.finish(
                self.job,
                ended.state,
                ended.outcome,
                log="\n".join(self._lines)[-LOG_CHARACTERS:],
                retry_seconds=ended.retry_seconds,
                cost=seconds if ended.outcome == "succeeded" else None,
            )
        except (TException, OSError) as error:
            log.warning("the end of a job can't be stored: it will count as lost", job=self.job.id, error=str(error))
            return None

    def _beat(self) -> None:
        """The thread that says that the job is run, and hears when to stop."""
        lease = self._queue.lease_seconds
        heard = time.monotonic()
        while not self._over.wait(min(5.0, lease / 4)):
            if not is_open(self.job, datetime.fromtimestamp(self._clock(), UTC)):
                self._say("its window has closed")
                self._stop.set()
            try:
                stop = self._queue.heartbeat(self.job)
                heard = time.monotonic()
                if stop:
                    self._say("asked to stop")
                    self._stop.set()
            except (InvalidOperationException, NoSuchObjectException) as error:
                self._say(f"lost: {error.message}")
                self._lost = True
                self._stop.set()
                return
            except (TException, OSError) as error:
                log.warning("no heartbeat of a job was heard", job=self.job.id, error=str(error))
                if time.monotonic() - heard > lease:
                    self._stop.set()  # by now it is another's

    def _ended(self) -> Ended:
        try:
            facts = self._facts()
            if is_iceberg(facts.parameters):
                return self._procedure(facts)
            if is_hudi(facts):
                return self._hudis(facts)
            if self.job.action == CLEAN:
                return self._clean(self._policy(facts).cleaning)
            if self.job.action == PUBLISH:
                return self._publish()
            if self.job.action == ICEBERG:
                return self._show()
            if self.job.action == ORPHANS:
                return self._remove_orphans(self._policy(facts).orphans)
            return self._rewrite(facts)
        except Stopped:
            return Ended("pending", "stopped")
        except (NoSuchObjectException, TableReplaced) as error:
            self._say(f"gone: {error.message}")
            return Ended("failed", "error")
        except _HOPELESS as error:
            self._say(f"{type(error).__name__}: {error}")
            return Ended("failed", "error")
        except Exception:
            self._say(traceback.format_exc())
            return self._again("error", FIRST_PAUSE)

    def _again(self, outcome: str, pause: int) -> Ended:
        return Ended("pending", outcome, min(pause << min(self.job.failures or 0, 20), LONGEST_PAUSE))

    # --- Iceberg's tables -----------------------------------------------------------------------------------------

    def _procedure(self, facts: Facts) -> Ended:
        """Iceberg's own services: they have no plans, and each commit of theirs is one of Iceberg's."""
        if self.job.action not in (CLEAN, CLUSTERING, ORPHANS):
            self._say(f"an Iceberg table has no {self.job.action}: submit {CLUSTERING}, {CLEAN} or {ORPHANS}")
            return Ended("failed", "error")
        if self._iceberg is None:
            return Ended("pending", "busy", WHILE_BUSY)
        if self.job.action == ORPHANS and (reason := why_not_alone(self._facts(shared=True))) is not None:
            self._say(f"no orphan file is deleted: {reason}")
            return Ended("failed", "error")
        try:
            self._say(self._iceberg.run(self.job, facts, self._policy(facts), self._stop))
        except WritersWon as lost:
            self._say(str(lost))
            return self._again("conflict", AFTER_CONFLICT)
        return Ended("succeeded", "succeeded")

    # --- Hudi's tables --------------------------------------------------------------------------------------------

    def _hudis(self, facts: Facts) -> Ended:
        """Hudi's own services. A plan is the job's before it is run, so that an attempt after a crash runs it again."""
        if self.job.action not in (CLEAN, CLUSTERING, COMPACTION):
            self._say(f"a Hudi table has no {self.job.action}: submit {COMPACTION}, {CLUSTERING} or {CLEAN}")
            return Ended("failed", "error")
        if self._hudi is None:
            return Ended("pending", "busy", WHILE_BUSY)
        policy = self._policy(facts)
        try:
            instant = self.job.instant or ""
            if self.job.action != CLEAN and not instant:
                planned, said = self._hudi.plan(self.job, facts, policy, self._stop)
                self._say(said)
                if planned is None:
                    return Ended("succeeded", "succeeded")
                if not self._queue.claim_plan(self.job, planned):
                    self._say(f"another job runs the plan {planned}")
                    return Ended("succeeded", "succeeded")
                instant = planned
            self._say(self._hudi.run(self.job, facts, policy, instant, self._stop))
            self._say(self._hudi.import_timeline(facts))
        except RunElsewhere as busy:
            self._say(str(busy))  # never again by this job, which would take it for its own
            return Ended("failed", "error")
        except HudisWritersWon as lost:
            self._say(str(lost))
            return self._again("conflict", AFTER_CONFLICT)
        return Ended("succeeded", "succeeded")

    # --- cleans ---------------------------------------------------------------------------------------------------

    def _clean(self, policy: CleaningPolicy) -> Ended:
        table = self._table()
        for _ in range(MAX_CLEANS):
            if self._stop.is_set():
                raise Stopped
            done = self._clean_once(table, policy.commits, policy.hours, policy.versions)
            if done < CLEANED_AT_ONCE:
                break
        return Ended("succeeded", "succeeded")

    def _clean_once(self, table: LakeTable, commits: int | None, hours: int | None, versions: int | None) -> int:
        for number in range(1, _TIMES + 1):
            files = table.plan_clean(
                keep_commits=commits, keep_hours=hours, keep_versions=versions, limit=CLEANED_AT_ONCE
            )
            if not files:
                self._say("no file is left to delete")
                return 0
            try:
                done = table.clean(files)
            except InvalidOperationException as error:
                self._say(f"refused: {error.message}")  # a reader came, or a plan: look again at what is needed
                if number == _TIMES:
                    raise
                continue
            self._say(f"deleted {len(files)} files, position {done.instant.position}")
            self._queue.claim_plan(self.job, done.instant.timestamp)
            return len(files)
        raise AssertionError("the last one returns or raises")

    # --- orphan files ---------------------------------------------------------------------------------------------

    def _remove_orphans(self, policy: OrphansPolicy) -> Ended:
        table = self._table()
        removed = size = 0
        for some in table.find_orphans(hours=policy.hours):
            if self._stop.is_set():
                raise Stopped
            removed += table.remove_orphans([each.path for each in some], hours=policy.hours)
            size += sum(each.size for each in some)
        self._say(f"removes {removed} orphan files of {size} bytes that are {policy.hours} hours old")
        return Ended("succeeded", "succeeded")

    # --- publishes ------------------------------------------------------------------------------------------------

    def _publish(self) -> Ended:
        done = publish(self._table())
        if done.instant is None:
            self._say("nothing is left to publish")
        else:
            self._say(
                f"published {len(done.partitions)} partitions, {done.files} files, {done.linked} of them as links"
            )
            self._queue.claim_plan(self.job, done.instant.timestamp)
        if done.advice is not None:
            self._say(done.advice)
        return Ended("succeeded", "succeeded")

    # --- log files for Iceberg's readers --------------------------------------------------------------------------

    def _show(self) -> Ended:
        done = write_overlays(self._table(), stop=self._stop.is_set)
        self._say(
            f"merged {done.buckets} buckets at position {done.position}, {done.kept} were, and removed {done.removed}"
            " files that nothing needs"
        )
        if self._stop.is_set():
            raise Stopped
        return Ended("succeeded", "succeeded")

    # --- compactions and clusterings ------------------------------------------------------------------------------

    def _rewrite(self, facts: Facts) -> Ended:
        table, action = self._table(), self.job.action or ""
        if action not in self._executor.actions:
            return Ended("pending", "busy", WHILE_BUSY)
        instant = self.job.instant or self._planned(table, action, facts)
        if instant is None:
            return Ended("succeeded", "succeeded")
        if (ended := self._judged(table, action, instant)) is not None:
            return ended
        conflict = False
        failure: Exception | None = None
        try:
            task = Task(table.reference, action, instant, tag_of(instant, self.job.attempts or 0))
            self._say(self._executor.run(task, self._stop))
        except Stopped as stopped:
            failure = stopped
        except Exception as error:
            conflict, failure = isinstance(error, InstantConflict), error
            self._say(traceback.format_exc())
        if (ended := self._judged(table, action, instant, conflict=conflict)) is not None:
            return ended
        if self._stop.is_set() or isinstance(failure, Stopped):
            return Ended("pending", "stopped")
        return self._again("conflict", AFTER_CONFLICT) if conflict else self._again("error", FIRST_PAUSE)

    def _judged(self, table: LakeTable, action: str, instant: str, *, conflict: bool = False) -> Ended | None:
        """What the timeline says of a plan: that it is over, or run by others. None if it waits to be run."""
        try:
            found = table.details(instant, action).instant
        except NoSuchObjectException:
            self._say(f"the plan {instant} is no more: it was aborted")
            return Ended("failed", "conflict" if conflict else "error")
        if found.position is not None:
            self._say(f"{action} {instant} is complete at position {found.position}")
            return Ended("succeeded", "succeeded")
        if found.state == "inflight":
            self._say(f"{action} {instant} is run by another process, its attempt {found.attempt}")
            return Ended("pending", "busy", WHILE_BUSY)
        return None

    def _planned(self, table: LakeTable, action: str, facts: Facts) -> str | None:
        """A plan for a job without one: one that nobody knows of, or a new one. None if there is nothing to do."""
        for known in table.instants(actions=[action], states=["requested"]):
            if self._queue.claim_plan(self.job, known.timestamp):
                self._say(f"takes up the plan {known.timestamp}, which had no job")
                return known.timestamp
        if action == COMPACTION:
            made, _, reason = plan_compaction(table)
        else:
            made, _, _, reason = self._clustering(table, self._policy(facts).clustering)
        self._say(reason)
        if made is None:
            return None
        if not self._queue.claim_plan(self.job, made.timestamp):
            raise Stopped  # another service was quicker to give it a job
        return made.timestamp

    @staticmethod
    def _clustering(table: LakeTable, policy: ClusteringPolicy) -> Planned:
        return plan_clustering(
            table,
            small_file_bytes=policy.small_file_bytes,
            target_file_bytes=policy.target_file_bytes,
            order_by=list(policy.order_by) or None,
            curve=policy.curve,
        )

    def _table(self) -> LakeTable:
        assert self.job.table is not None
        return self._client.table(self.job.table)

    def _facts(self, *, shared: bool = False) -> Facts:
        """What is known of the table now, but for what a policy asks. Raises NoSuchObjectException.

        `shared`: also whether its directory is another's, too.
        """
        request = ServiceFactsRequest(table=self.job.table, shared=shared or None)
        return Facts.of(self._client.call(lambda client: client.lake_service_facts(request)))

    def _policy(self, facts: Facts) -> Policy:
        """The table's policy. Raises BadPolicy."""
        return policy_of(facts.parameters, facts.database_parameters, self._defaults)

    def _say(self, text: str) -> None:
        self._lines.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text.rstrip()}")


def _name(job: ServiceJob) -> str:
    return f"{job.table.database}.{job.table.table}" if job.table else ""

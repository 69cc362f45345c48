"""The queue of table services' jobs: submitted, listed, taken, run under an attempt's number, finished, cancelled."""

from collections.abc import Mapping, Sequence

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import (
    FinishJobRequest,
    JobRequest,
    ListJobsRequest,
    ListJobsResponse,
    ServiceJob,
    TableReference,
    TakeJobRequest,
    TakeJobResponse,
)
from metastore.services.instant_rules import states as rules
from metastore.services.table.service import TableService
from metastore.services.table_services import limits
from metastore.services.table_services.thrift_objects import to_thrift_job
from metastore.services.timeline.lookup import end_expired, lake_table, no_instant, written_lake_table
from metastore.store import Database
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.table import tables
from metastore.store.table_services import decisions, jobs
from metastore.store.table_services.jobs import JobRow
from metastore.store.table_services.lost_plans import LostPlan, lost_plans
from metastore.store.timeline import instants

MAX_LISTED = 10_000
"""Jobs in one reply."""

MAX_LISTED_WITH_LOGS = 1_000
"""Jobs in one reply with their logs."""

MAX_TAKEN = 1_000
"""Jobs of which one is to be taken, and databases and pools with a quota, that one call may name."""

MAX_LEASE = 3_600
"""The longest time without a heartbeat after which a running job counts as lost, in seconds."""

MAX_PAUSE = 7 * 86_400
"""The longest pause before a job is run again, in seconds."""

KEPT = 200
"""The latest jobs of a table that have ended and are kept."""

SWEEP_SECONDS = 2.0
"""Time between looks for jobs of which nothing was heard any more."""

SILENT_SECONDS = 60.0
"""How long whoever runs a plan may be silent once its job is lost: three of the heartbeats that runs of plans send.

A run may outlive the service that started it, so the loss of the job alone is no proof of its end.
"""

MAX_LOST = 1_000
"""Plans that are requested again in one sweep."""

_OUTCOMES = ("succeeded", "conflict", "error", "stopped", "busy", "cancelled")
_FAILURES = ("conflict", "error")


class JobQueue:
    """The queue. Each call is one transaction."""

    def __init__(self, database: Database, tables: TableService, *, heartbeat_seconds: float) -> None:
        """`heartbeat_seconds`: after so long without a heartbeat an instant ends that nobody has a job for."""
        self._database = database
        self._tables = tables
        self._silent_seconds = min(heartbeat_seconds, SILENT_SECONDS)

    def submit(self, table: TableReference | None, request: JobRequest | None) -> ServiceJob:
        """Enqueues a job, to be run as soon as there is room.

        Raises NoSuchObjectException without the table or its plan, InvalidOperationException if the table is paused.
        """
        job = limits.new_job(request or JobRequest())
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            if (paused := decisions.standing(tx, row.id).paused) is not None:
                raise InvalidOperationException(
                    f"table services of {row.name} are paused ({paused}): resume them first"
                )
            if job.instant is not None:
                plan = instants.find(tx, row.id, job.instant, job.action)
                if plan is None or not plan.planned:
                    raise no_instant(row, job.instant, job.action)
                if plan.state == rules.COMPLETED:
                    raise InvalidOperationException(
                        f"the {job.action} {job.instant} of {row.name} is completed already"
                    )
            found = jobs.enqueue(tx, row.id, job, at_once=True)
            if found is None:
                raise InvalidOperationException(f"the {job.action} {job.instant} of {row.name} is running")
            return to_thrift_job(_known(tx, found))

    def listing(self, request: ListJobsRequest) -> ListJobsResponse:
        """Jobs, of one table or all, with the database's time. Raises NoSuchObjectException."""
        if unknown := set(request.states or ()) - set(jobs.STATES):
            raise InvalidOperationException(f"{min(unknown)!r} is no state of a job: they are {', '.join(jobs.STATES)}")
        most = MAX_LISTED_WITH_LOGS if request.withLogs else MAX_LISTED
        limit = limits.check_within("limit", most if request.limit is None else request.limit, 1, MAX_LISTED)
        with self._database.read() as tx:
            table_id = None if request.table is None else lake_table(self._tables, tx, request.table).id
            found = jobs.listing(
                tx,
                table_id=table_id,
                states=request.states,
                limit=min(limit, most),
                latest_first=bool(request.latestFirst),
                with_logs=bool(request.withLogs),
            )
            return ListJobsResponse([to_thrift_job(each) for each in found], now_ms(tx))

    def take(self, request: TakeJobRequest) -> TakeJobResponse:
        """Takes the first of some jobs that can run now, with a new attempt number; none if there is none.

        Repeated with the same `call`, it gives the same job. Raises InvalidOperationException.
        """
        worker = limits.check_name("worker", request.worker)
        call = limits.check_name("call", request.call)
        wanted = _at_most("jobs", request.jobs or [])
        lease = limits.check_within("leaseSeconds", request.leaseSeconds, 1, MAX_LEASE)
        quotas, pool_quotas = _quotas(request.quotas or {}), _quotas(request.poolQuotas or {})
        with self._database.write() as tx:
            found = jobs.take(tx, wanted, worker, call, lease, database_quotas=quotas, pool_quotas=pool_quotas)
            return TakeJobResponse(None if found is None else to_thrift_job(_known(tx, found)))

    def heartbeat(self, job: int | None, attempt: int | None, lease_seconds: int | None) -> bool:
        """Says that a job is being run; answers whether to stop it, because it was cancelled or its table paused.

        Raises NoSuchObjectException, InvalidOperationException if this attempt doesn't run it any more.
        """
        lease = limits.check_within("leaseSeconds", lease_seconds, 1, MAX_LEASE)
        with self._database.write() as tx:
            stop = jobs.renew(tx, job or 0, attempt or 0, lease)
            if stop is None:
                raise _not_run(_known(tx, job), attempt)
            return stop

    def claim_plan(self, job: int | None, attempt: int | None, instant: str | None) -> bool:
        """Says which plan a job runs; False if that is another job's.

        Raises NoSuchObjectException, InvalidOperationException if this attempt doesn't run it any more.
        """
        timestamp = rules.check_timestamp(instant)
        with self._database.write() as tx:
            claimed = jobs.claim_plan(tx, job or 0, attempt or 0, timestamp)
            if claimed is None:
                raise _not_run(_known(tx, job), attempt)
            return claimed

    def finish(self, request: FinishJobRequest) -> ServiceJob:
        """Ends an attempt at a job. The same call again succeeds.

        `pending` asks for another attempt; after too many failures the job is set aside: failed. Raises
        NoSuchObjectException, InvalidOperationException if this attempt doesn't run it any more.
        """
        if request.state not in (*jobs.ENDED, jobs.PENDING):
            raise InvalidOperationException(f"{request.state!r} is no state in which an attempt ends")
        if request.outcome not in _OUTCOMES:
            raise InvalidOperationException(f"{request.outcome!r} is no outcome: they are {', '.join(_OUTCOMES)}")
        cost = limits.check_number("cost", request.cost)
        pause = limits.check_within("retrySeconds", request.retrySeconds or 0, 0, MAX_PAUSE)
        with self._database.write() as tx:
            done = jobs.finish(
                tx,
                request.job or 0,
                request.attempt or 0,
                request.state,
                request.outcome,
                log=None if request.log is None else request.log[-limits.MAX_LOG :],
                cost=cost,
                failed=request.outcome in _FAILURES,
                retry_seconds=pause,
            )
            found = _known(tx, request.job)
            repeated = found.attempt == request.attempt and found.state != jobs.RUNNING
            if not done and not (repeated and found.outcome == request.outcome):
                raise _not_run(found, request.attempt)
            table_id = jobs.table_of(tx, found.id)
            if table_id is not None:
                jobs.trim(tx, table_id, KEPT)
            return to_thrift_job(found)

    def cancel(self, job: int | None) -> ServiceJob:
        """Ends a pending job, and asks whoever runs a running one to stop.

        Raises NoSuchObjectException, InvalidOperationException for one that has ended.
        """
        with self._database.write() as tx:
            done = jobs.cancel(tx, job or 0)
            found = _known(tx, job)
            if not done:
                raise InvalidOperationException(f"job {found.id} has ended: it is {found.state}")
            return to_thrift_job(found)

    def sweep(self) -> None:
        """Makes jobs pending again of which nothing was heard any more, and requests plans again that they ran."""
        with self._database.write() as tx:
            jobs.give_back_lost(tx)
        with self._database.read() as tx:
            lost = lost_plans(tx, self._silent_seconds, MAX_LOST)
        for plan in lost:
            with self._database.write() as tx:
                self._request_again(tx, plan)

    def _request_again(self, tx: Transaction, plan: LostPlan) -> None:
        """Takes a plan back from a run that has been silent for too long; whatever that run still says is refused."""
        row = tables.find_by_id(tx, plan.table_id)
        silent = instants.dead(tx, self._silent_seconds, plan.table_id)
        same = [each for each in silent if (each.timestamp, each.action) == (plan.timestamp, plan.action)]
        if row is not None:
            end_expired(tx, row, same)


def _known(tx: Transaction, job_id: int | None) -> JobRow:
    found = jobs.find(tx, job_id or 0)
    if found is None:
        raise NoSuchObjectException(f"there is no job {job_id}")
    return found


def _not_run(job: JobRow, attempt: int | None) -> InvalidOperationException:
    return InvalidOperationException(
        f"job {job.id} is not run by attempt {attempt} any more: it is {job.state}, at attempt {job.attempt}"
    )


def _at_most(what: str, given: Sequence[int]) -> Sequence[int]:
    if len(given) > MAX_TAKEN:
        raise InvalidOperationException(f"give at most {MAX_TAKEN} {what}, not {len(given)}")
    return given


def _quotas(given: Mapping[str, int]) -> dict[str, int]:
    if len(given) > MAX_TAKEN:
        raise InvalidOperationException(f"give at most {MAX_TAKEN} quotas, not {len(given)}")
    return {name.lower(): limits.check_within("quota", number, 0, 1 << 20) for name, number in given.items()}

"""The metastore's queue of jobs, as a service uses it. Several threads may use one; each call is one of the server."""

import json
import uuid
from collections.abc import Sequence

from lake.maintenance.decisions.decisions import Decision
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import Policy
from lake.maintenance.scheduling import NO_QUOTAS, Quotas
from lake.protocol.lake import (
    FinishJobRequest,
    JobRequest,
    ListJobsRequest,
    ListJobsResponse,
    RecordDecisionsRequest,
    ServiceDecision,
    ServiceFactsRequest,
    ServiceJob,
    TableReference,
    TakeJobRequest,
)
from lake.tables.lake import LakeClient

AT_ONCE = 1_000
"""Jobs, and tables, that one call names."""


class Queue:
    """Facts, decisions and jobs. Raises the server's exceptions."""

    def __init__(self, client: LakeClient, worker: str, *, lease_seconds: int = 60) -> None:
        """`worker`: the name of this service. `lease_seconds`: after so long without a heartbeat a job is another's."""
        self._client = client
        self._worker = worker
        self._lease_seconds = lease_seconds

    @property
    def lease_seconds(self) -> int:
        return self._lease_seconds

    def facts(self, table: TableReference, policy: Policy, order: bytes | None) -> Facts:
        """What is known of a table. `order`: what statistics of files in the wanted order are."""
        clustering, cleaning = policy.clustering, policy.cleaning
        request = ServiceFactsRequest(
            table=table,
            smallFileBytes=clustering.small_file_bytes,
            targetFileBytes=clustering.target_file_bytes,
            order=order,
            keepCommits=cleaning.commits,
            keepHours=cleaning.hours,
            keepVersions=cleaning.versions,
        )
        return Facts.of(self._client.call(lambda client: client.lake_service_facts(request)))

    def record(
        self,
        table: TableReference,
        position: int,
        decisions: Sequence[Decision],
        policy: Policy | None,
        again_at: int | None,
    ) -> list[ServiceJob]:
        """Stores decisions, and enqueues what they say is to be done. Returns the table's pending jobs."""
        kept = [each for each in decisions if each.instant is None]
        request = RecordDecisionsRequest(
            table=table,
            position=position,
            decisions=[_sent(each) for each in kept],
            jobs=[_job(each, policy) for each in decisions if each.action is not None][:AT_ONCE],
            lookAgainAt=again_at,
        )
        found: list[ServiceJob] = self._client.call(lambda client: client.lake_record_decisions(request))
        return found

    def due(self) -> list[TableReference]:
        """Tables to look at."""
        found: list[TableReference] = self._client.call(lambda client: client.lake_due_tables(AT_ONCE))
        return found

    def submit(self, table: TableReference, job: JobRequest) -> ServiceJob:
        """Enqueues a job, whatever was decided; if one of its kind waits, that one is changed."""
        found: ServiceJob = self._client.call(lambda client: client.lake_submit_job(table, job))
        return found

    def pending(self) -> ListJobsResponse:
        """Jobs that wait, in the order in which they are to be run, and the database's time."""
        request = ListJobsRequest(states=["pending"], limit=AT_ONCE)
        found: ListJobsResponse = self._client.call(lambda client: client.lake_list_jobs(request))
        return found

    def take(self, jobs: Sequence[int], quotas: Quotas = NO_QUOTAS) -> ServiceJob | None:
        """Takes the first of some jobs that can run now; None if there is none."""
        request = TakeJobRequest(
            worker=self._worker,
            call=uuid.uuid4().hex,
            jobs=list(jobs[:AT_ONCE]),
            leaseSeconds=self._lease_seconds,
            quotas=dict(quotas.databases) or None,
            poolQuotas=dict(quotas.pools) or None,
        )
        found: ServiceJob | None = self._client.call(lambda client: client.lake_take_job(request)).job
        return found

    def heartbeat(self, job: ServiceJob) -> bool:
        """Says that a job is being run. Returns whether to stop it."""
        lease = self._lease_seconds
        return bool(self._client.call(lambda client: client.lake_heartbeat_job(job.id, job.attempts, lease)))

    def claim_plan(self, job: ServiceJob, instant: str) -> bool:
        """Says which plan a job runs. Returns False if that is another job's."""
        return bool(self._client.call(lambda client: client.lake_claim_plan(job.id, job.attempts, instant)))

    def finish(
        self,
        job: ServiceJob,
        state: str,
        outcome: str,
        *,
        log: str,
        retry_seconds: int = 0,
        cost: float | None = None,
    ) -> ServiceJob:
        """Ends this attempt at a job."""
        request = FinishJobRequest(
            job=job.id,
            attempt=job.attempts,
            state=state,
            outcome=outcome,
            log=log,
            retrySeconds=retry_seconds,
            cost=cost,
        )
        found: ServiceJob = self._client.call(lambda client: client.lake_finish_job(request))
        return found


def _sent(decision: Decision) -> ServiceDecision:
    return ServiceDecision(
        tableService=decision.service,
        action=decision.action,
        reason=decision.reason,
        figures=json.dumps(decision.figures),
        gain=decision.gain,
        cost=decision.cost,
    )


def _job(decision: Decision, policy: Policy | None) -> JobRequest:
    return JobRequest(
        action=decision.action,
        instant=decision.instant,
        reason=decision.reason,
        gain=decision.gain,
        cost=decision.cost,
        priority=policy.priority if policy else 0,
        windows=policy.windows.get(decision.service) if policy else None,
        pool=policy.pool if policy else None,
        bytes=decision.bytes,
    )

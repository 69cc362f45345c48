"""Our own calls: the table management service's decisions and jobs, and readers' leases."""

from lake.protocol.lake import (
    EngineFigures,
    FinishJobRequest,
    JobRequest,
    LeaseRequest,
    ListJobsRequest,
    ListJobsResponse,
    ReaderLease,
    RecordDecisionsRequest,
    ServiceDecision,
    ServiceFacts,
    ServiceFactsRequest,
    ServiceJob,
    TableReference,
    TakeJobRequest,
    TakeJobResponse,
)
from metastore.api.methods import Call, answers
from metastore.api.rights import audited


@answers(
    "lake_lease_snapshot",
    changes="SELECT lake request.table; lease request.table id=request.id",
    uncommitted="table services",
)
def lake_lease_snapshot(call: Call, request: LeaseRequest) -> ReaderLease:
    return call.metastore.reader_leases.take(request, call.owner)


@answers("lake_release_lease", changes="SELECT lake table; lease table id=id", uncommitted="table services")
def lake_release_lease(call: Call, table: TableReference, id: str | None) -> None:
    call.metastore.reader_leases.release(table, id)


@answers("lake_list_leases", reads="LIST lake table", uncommitted="table services")
def lake_list_leases(call: Call, table: TableReference) -> list[ReaderLease]:
    return call.metastore.reader_leases.listing(table)


@answers("lake_service_facts", reads="TABLE_SERVICE lake request.table", uncommitted="table services")
def lake_service_facts(call: Call, request: ServiceFactsRequest) -> ServiceFacts:
    return call.metastore.table_looks.facts(request)


@answers("lake_report_figures", changes="LIST lake table", uncommitted="table services")
def lake_report_figures(call: Call, table: TableReference, figures: EngineFigures) -> None:
    with call.once():
        call.metastore.table_looks.report(table, figures)


@answers(
    "lake_record_decisions",
    changes="TABLE_SERVICE lake request.table; submitted_jobs request.table action=request.jobs[].action",
    uncommitted="table services",
)
def lake_record_decisions(call: Call, request: RecordDecisionsRequest) -> list[ServiceJob]:
    return call.metastore.table_looks.record(request)


@answers("lake_list_decisions", reads="LIST lake table", uncommitted="table services")
def lake_list_decisions(call: Call, table: TableReference, limit: int | None) -> list[ServiceDecision]:
    return call.metastore.table_looks.decisions(table, limit)


@answers("lake_due_tables", reads="TABLE_SERVICE everything", uncommitted="table services")
def lake_due_tables(call: Call, limit: int | None) -> list[TableReference]:
    return call.metastore.table_looks.due(limit)


@answers(
    "lake_submit_job",
    changes="TABLE_SERVICE lake table; submitted_jobs table action=job.action",
    uncommitted="table services",
)
def lake_submit_job(call: Call, table: TableReference, job: JobRequest) -> ServiceJob:
    return call.metastore.job_queue.submit(table, job)


@answers("lake_list_jobs", reads="jobs request.table", uncommitted="table services")
def lake_list_jobs(call: Call, request: ListJobsRequest) -> ListJobsResponse:
    return call.metastore.job_queue.listing(request)


@answers("lake_take_job", changes="TABLE_SERVICE everything", uncommitted="table services")
def lake_take_job(call: Call, request: TakeJobRequest) -> TakeJobResponse:
    return call.metastore.job_queue.take(request)


@answers("lake_heartbeat_job", changes="TABLE_SERVICE everything", uncommitted="table services", audit=audited.job)
def lake_heartbeat_job(call: Call, job: int | None, attempt: int | None, lease_seconds: int | None) -> bool:
    return call.metastore.job_queue.heartbeat(job, attempt, lease_seconds)


@answers("lake_claim_plan", changes="TABLE_SERVICE everything", uncommitted="table services", audit=audited.job)
def lake_claim_plan(call: Call, job: int | None, attempt: int | None, instant: str | None) -> bool:
    return call.metastore.job_queue.claim_plan(job, attempt, instant)


@answers("lake_finish_job", changes="TABLE_SERVICE everything", uncommitted="table services", audit=audited.job)
def lake_finish_job(call: Call, request: FinishJobRequest) -> ServiceJob:
    return call.metastore.job_queue.finish(request)


@answers("lake_cancel_job", changes="TABLE_SERVICE everything", uncommitted="table services", audit=audited.job)
def lake_cancel_job(call: Call, job: int | None) -> ServiceJob:
    return call.metastore.job_queue.cancel(job)


@answers("lake_pause_table_services", changes="TABLE_SERVICE lake table", uncommitted="table services")
def lake_pause_table_services(call: Call, table: TableReference, reason: str | None) -> None:
    call.metastore.table_looks.pause(table, reason)

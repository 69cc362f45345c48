"""Jobs and tables in the form that clients receive."""

from lake.protocol.lake import ServiceJob, TableReference
from metastore.store.engine.names import TableName
from metastore.store.table_services.jobs import JobRow


def to_reference(table_id: int, name: TableName) -> TableReference:
    """A table by its name and id."""
    return TableReference(name.catalog, name.database, name.table, table_id)


def to_thrift_job(job: JobRow) -> ServiceJob:
    """A job."""
    return ServiceJob(
        id=job.id,
        table=to_reference(job.table_id, job.table),
        action=job.action,
        state=job.state,
        instant=job.instant,
        reason=job.reason,
        gain=job.gain,
        cost=job.cost,
        priority=job.priority,
        attempts=job.attempt,
        failures=job.failures,
        worker=job.worker,
        enqueuedAt=job.enqueued_at,
        startedAt=job.started_at,
        finishedAt=job.finished_at,
        notBefore=job.not_before,
        outcome=job.outcome,
        log=job.log,
        stopping=job.stopping,
        windows=job.windows,
        pool=job.pool,
        bytes=job.bytes,
    )

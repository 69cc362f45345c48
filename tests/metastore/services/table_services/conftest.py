"""Tables with timelines, and shorthands for the queue."""

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from lake.protocol.lake import FinishJobRequest, JobRequest, ServiceJob, TakeJobRequest
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import LakeTable
from tests.support import builders
from tests.support.pair import opened_pair
from tests.support.postgres import Postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def pair(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Metastore, Metastore]]:
    """Two servers' services on one database and one warehouse."""
    with opened_pair(postgres, tmp_path_factory.mktemp("warehouse")) as both:
        yield both


@pytest.fixture
def metastore(pair: tuple[Metastore, Metastore]) -> Metastore:
    return pair[0]


@pytest.fixture
def db(metastore: Metastore) -> str:
    """The name of an empty database."""
    name = f"services{next(_numbers)}"
    metastore.databases.create(builders.database(name))
    return name


@pytest.fixture
def table(metastore: Metastore, db: str) -> LakeTable:
    return LakeTable(metastore, db)


class Queue:
    """The queue, as a table management service uses it."""

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore

    def submit(self, table: LakeTable, action: str = "compaction", **fields: Any) -> ServiceJob:
        return self.metastore.job_queue.submit(table.reference, JobRequest(action=action, **fields))

    def take(self, *jobs: ServiceJob, call: str | None = None, lease: int = 60, **fields: Any) -> ServiceJob | None:
        request = TakeJobRequest(
            worker="w",
            call=call or uuid4().hex,
            jobs=[each.id or 0 for each in jobs],
            leaseSeconds=lease,
            **fields,
        )
        return self.metastore.job_queue.take(request).job

    def taken(self, job: ServiceJob, **fields: Any) -> ServiceJob:
        found = self.take(job, **fields)
        assert found is not None
        return found

    def finish(self, job: ServiceJob, state: str, outcome: str, **fields: Any) -> ServiceJob:
        request = FinishJobRequest(job=job.id, attempt=job.attempts, state=state, outcome=outcome, **fields)
        return self.metastore.job_queue.finish(request)


@pytest.fixture
def queue(metastore: Metastore) -> Queue:
    return Queue(metastore)

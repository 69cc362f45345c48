"""What housekeeping forgets: executions of scheduled queries that went silent, and reports of engines that are old."""

from collections.abc import Iterator

import pytest

from lake.protocol.hive import (
    GetReplicationMetricsRequest,
    InvalidOperationException,
    MetaException,
    QueryState,
    ReplicationMetrics,
    RuntimeStat,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryProgressInfo,
)
from metastore.services.registry import engine_reports, scheduled_queries
from metastore.services.registry.scheduled_queries import ScheduledQueryService
from metastore.services.wiring import Metastore
from tests.support.expect import refused

QUERY = ScheduledQuery(ScheduledQueryKey("q", "n"), True, "0 0 0 1 1 ? *", "alice", "select 1")


@pytest.fixture
def queries(metastore: Metastore) -> Iterator[ScheduledQueryService]:
    metastore.scheduled_queries.create(QUERY)
    yield metastore.scheduled_queries
    metastore.scheduled_queries.drop(QUERY)


def begin(queries: ScheduledQueryService) -> int | None:
    """The execution of the query, made due, if it may be executed."""
    queries.alter(QUERY.replace(nextExecution=17))
    return queries.poll("n").executionId


def finish(queries: ScheduledQueryService, execution: int | None) -> None:
    queries.progress(ScheduledQueryProgressInfo(execution, QueryState.FINISHED, "id"))


class TestExecutions:
    def test_who_reports_in_time_goes_on(self, metastore: Metastore, queries: ScheduledQueryService) -> None:
        execution = begin(queries)
        metastore.housekeeping.run()
        assert begin(queries) is None
        finish(queries, execution)

    def test_who_is_silent_has_timed_out(
        self, metastore: Metastore, queries: ScheduledQueryService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        execution = begin(queries)
        monkeypatch.setattr(scheduled_queries, "PROGRESS_TIMEOUT", -1)
        metastore.housekeeping.run()
        assert begin(queries) is not None
        with refused(InvalidOperationException, message="Invalid state change: TIMED_OUT=>FINISHED"):
            finish(queries, execution)

    def test_old_ones_are_forgotten(
        self, metastore: Metastore, queries: ScheduledQueryService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        execution = begin(queries)
        monkeypatch.setattr(scheduled_queries, "MAX_AGE", -1)
        metastore.housekeeping.run()
        with refused(MetaException, message=f"There is no scheduled execution {execution}"):
            finish(queries, execution)
        assert begin(queries) is not None


class TestReports:
    def test_old_ones_are_forgotten(self, metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
        reports = metastore.engine_reports
        reports.add_statistics(RuntimeStat(weight=1, payload=b"x"))
        reports.add_metrics([ReplicationMetrics(1, "p", 2)])

        def counts() -> tuple[int, int]:
            metrics = reports.metrics(GetReplicationMetricsRequest(policy="p"))
            return len(reports.statistics(-1, -1)), len(metrics or [])

        metastore.housekeeping.run()
        assert counts() == (1, 1)
        monkeypatch.setattr(engine_reports, "STATISTICS_MAX_AGE", -1)
        metastore.housekeeping.run()
        assert counts() == (0, 1)
        monkeypatch.setattr(engine_reports, "METRICS_MAX_AGE", -1)
        metastore.housekeeping.run()
        assert counts() == (0, 0)

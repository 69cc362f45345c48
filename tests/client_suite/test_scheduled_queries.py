"""Scheduled queries. Expectations are those of Hive 4's source."""

import time
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryMaintenanceRequestType,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from tests.support.expect import refused

pytestmark = pytest.mark.hive4

EVERY_SECOND = "* * * * * ? *"
NEW_YEAR = "0 0 0 1 1 ? *"


class Queries:
    """The calls of one client within a namespace of its own."""

    def __init__(self, client: ThriftClient, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    def query(self, name: str = "q", **fields: Any) -> ScheduledQuery:
        defaults: dict[str, Any] = {"enabled": True, "schedule": NEW_YEAR, "user": "alice", "query": "select 1"}
        return ScheduledQuery(ScheduledQueryKey(name, self.namespace), **(defaults | fields))

    def _maintain(self, kind: ScheduledQueryMaintenanceRequestType, query: ScheduledQuery) -> None:
        self._client.scheduled_query_maintenance(ScheduledQueryMaintenanceRequest(kind, query))

    def create(self, **fields: Any) -> None:
        self._maintain(ScheduledQueryMaintenanceRequestType.CREATE, self.query(**fields))

    def alter(self, **fields: Any) -> None:
        self._maintain(ScheduledQueryMaintenanceRequestType.ALTER, self.query(**fields))

    def drop(self, name: str = "q") -> None:
        self._maintain(ScheduledQueryMaintenanceRequestType.DROP, self.query(name))

    def get(self, name: str = "q") -> ScheduledQuery:
        return self._client.get_scheduled_query(ScheduledQueryKey(name, self.namespace))

    def poll(self) -> ScheduledQueryPollResponse:
        return self._client.scheduled_query_poll(ScheduledQueryPollRequest(self.namespace))

    def progress(self, execution: int | None, state: QueryState, message: str | None = None) -> None:
        assert execution is not None
        self._client.scheduled_query_progress(ScheduledQueryProgressInfo(execution, state, "hive_1", message))


@pytest.fixture
def queries(client: ThriftClient, unused_name: str) -> Queries:
    return Queries(client, unused_name)


class TestMaintenance:
    def test_reads_back_with_the_time_when_it_is_due(self, queries: Queries) -> None:
        queries.create(nextExecution=17)
        found = queries.get()
        due = time.localtime(found.nextExecution)
        assert (due.tm_year, due.tm_yday, due.tm_hour) == (time.localtime().tm_year + 1, 1, 0)
        found.nextExecution = None
        assert found == queries.query()

    def test_names_keep_their_case(self, queries: Queries) -> None:
        queries.create()
        with refused(NoSuchObjectException, message=f"There is no scheduled query for: Q@{queries.namespace}"):
            queries.get("Q")

    def test_exists(self, queries: Queries) -> None:
        queries.create()
        message = f"Scheduled query with name: q@{queries.namespace} already exists."
        with refused(AlreadyExistsException, message=message):
            queries.create(schedule="whatever")

    @pytest.mark.parametrize("schedule", ["", "x", "* * * * *", "0 0 0 1 1 1", "61 * * * * ?"])
    def test_the_schedule_is_checked(self, queries: Queries, schedule: str) -> None:
        message = f"Invalid QUARTZ schedule expression: '{schedule}'"
        with refused(InvalidInputException, message=message):
            queries.create(schedule=schedule)
        queries.create()
        with refused(InvalidInputException, message=message):
            queries.alter(schedule=schedule)

    def test_altered(self, queries: Queries) -> None:
        queries.create()
        queries.alter(enabled=False, user="bob", query="select 2", nextExecution=17)
        expected = queries.query(enabled=False, user="bob", query="select 2", nextExecution=17)
        assert queries.get() == expected
        queries.alter()
        assert queries.get().nextExecution > time.time()

    def test_missing(self, queries: Queries) -> None:
        message = f"Scheduled query with name: q@{queries.namespace} doesn't exists."
        with refused(NoSuchObjectException, message=message):
            queries.alter()
        with refused(NoSuchObjectException, message=message):
            queries.drop()

    def test_dropped(self, queries: Queries) -> None:
        queries.create()
        queries.drop()
        with refused(NoSuchObjectException):
            queries.get()


class TestExecutions:
    def test_what_is_due_is_handed_out_once(self, queries: Queries) -> None:
        queries.create()
        assert queries.poll() == ScheduledQueryPollResponse()
        queries.alter(nextExecution=17)
        due = queries.poll()
        assert due.scheduleKey == ScheduledQueryKey("q", queries.namespace)
        assert (due.query, due.user) == ("/* schedule: q */select 1", "alice")
        assert due.executionId is not None
        assert queries.get().nextExecution > time.time()
        assert queries.poll() == ScheduledQueryPollResponse()

    def test_the_most_overdue_first(self, queries: Queries) -> None:
        for name, due in (("b", 20), ("a", 30), ("c", 10)):
            queries.create(name=name)
            queries.alter(name=name, nextExecution=due)
        assert [queries.poll().scheduleKey.scheduleName for _ in range(3)] == ["c", "b", "a"]

    def test_not_what_is_disabled(self, queries: Queries) -> None:
        queries.create()
        queries.alter(enabled=False, nextExecution=17)
        assert queries.poll() == ScheduledQueryPollResponse()

    def test_not_again_while_it_runs(self, queries: Queries) -> None:
        queries.create(schedule=EVERY_SECOND)
        queries.alter(schedule=EVERY_SECOND, nextExecution=17)
        execution = queries.poll().executionId
        queries.alter(schedule=EVERY_SECOND, nextExecution=17)
        assert queries.poll() == ScheduledQueryPollResponse()
        queries.progress(execution, QueryState.EXECUTING)
        assert queries.poll() == ScheduledQueryPollResponse()
        queries.progress(execution, QueryState.FAILED, "too bad " * 1000)
        again = queries.poll().executionId
        assert again is not None and execution is not None and again > execution

    @pytest.mark.parametrize(
        ("steps", "refused_step"),
        [
            ([], "INITED=>INITED"),
            ([QueryState.EXECUTING], "EXECUTING=>INITED"),
            ([QueryState.EXECUTING, QueryState.EXECUTING, QueryState.FINISHED], "FINISHED=>EXECUTING"),
            ([QueryState.TIMED_OUT], "TIMED_OUT=>FINISHED"),
            ([QueryState.FAILED], "FAILED=>FAILED"),
        ],
    )
    def test_states_follow_each_other(self, queries: Queries, steps: list[QueryState], refused_step: str) -> None:
        queries.create()
        queries.alter(nextExecution=17)
        execution = queries.poll().executionId
        for state in steps:
            queries.progress(execution, state)
        with refused(InvalidOperationException, message=f"Invalid state change: {refused_step}"):
            queries.progress(execution, QueryState[refused_step.rpartition("=>")[2]])

    def test_an_unknown_execution(self, queries: Queries) -> None:
        with refused(MetaException):
            queries.progress(77_777_777, QueryState.FINISHED)

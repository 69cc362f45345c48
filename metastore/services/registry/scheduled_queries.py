"""Scheduled queries: HiveServer2 polls for due queries, executes them, and reports the results."""

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    QueryState,
    ScheduledQuery,
    ScheduledQueryKey,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
)
from metastore.services.registry import quartz
from metastore.store import Conflict, Database
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction
from metastore.store.registry import scheduled_queries
from metastore.store.registry.scheduled_queries import ExecutionRow, QueryRow

# Hive's defaults, in seconds: metastore.scheduled.queries.execution.timeout and .max.age
PROGRESS_TIMEOUT = 120
MAX_AGE = 30 * 86_400
MAX_ERROR_MESSAGE = 1000  # characters

_ENDED = (QueryState.FAILED, QueryState.FINISHED, QueryState.TIMED_OUT)
_NEXT = {
    QueryState.INITED: (QueryState.EXECUTING, *_ENDED),
    QueryState.EXECUTING: (QueryState.EXECUTING, *_ENDED),
}
"""Which state an execution may have next."""


class ScheduledQueryService:
    """Hive's calls for scheduled queries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, query: ScheduledQuery) -> None:
        """Adds a query, due when its schedule says. Raises AlreadyExistsException, InvalidInputException."""
        name, namespace = _key(query)
        body = _body(query)
        try:
            with self._database.write() as tx:
                # What is there already is found first, as in Hive.
                if scheduled_queries.find(tx, namespace, name) is not None:
                    raise AlreadyExistsException(f"Scheduled query with name: {name}@{namespace} already exists.")
                due = _next_time(tx, query.schedule)
                scheduled_queries.add(tx, namespace, name, enabled=bool(query.enabled), next_execution=due, body=body)
        except Conflict:
            raise AlreadyExistsException(f"Scheduled query with name: {name}@{namespace} already exists.") from None

    def alter(self, query: ScheduledQuery) -> None:
        """Replaces a query, due when it says or its schedule does.

        Raises NoSuchObjectException, InvalidInputException.
        """
        with self._database.write() as tx:
            row = _existing(tx, query)
            due = _next_time(tx, query.schedule) if query.nextExecution is None else query.nextExecution
            scheduled_queries.change(tx, row.id, enabled=bool(query.enabled), next_execution=due, body=_body(query))

    def drop(self, query: ScheduledQuery) -> None:
        """Removes a query with its executions. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            scheduled_queries.remove(tx, _existing(tx, query).id)

    def get(self, key: ScheduledQueryKey) -> ScheduledQuery:
        """One query. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = scheduled_queries.find(tx, key.clusterNamespace or "", key.scheduleName or "")
        if row is None:
            raise NoSuchObjectException(f"There is no scheduled query for: {key.scheduleName}@{key.clusterNamespace}")
        return _query(row)

    def poll(self, namespace: str) -> ScheduledQueryPollResponse:
        """What is due is handed to whoever asks first; the answer is empty if nothing is."""
        with self._database.write() as tx:
            now = clock.seconds(tx)
            row = scheduled_queries.due(tx, namespace, now)
            if row is None:
                return ScheduledQueryPollResponse()
            query = _query(row)
            execution = scheduled_queries.begin(tx, row.id, QueryState.INITED, now, _next_time(tx, query.schedule))
        return ScheduledQueryPollResponse(
            scheduleKey=query.scheduleKey,
            executionId=execution,
            query=f"/* schedule: {row.name} */{query.query}",
            user=query.user,
        )

    def progress(self, info: ScheduledQueryProgressInfo) -> None:
        """Notes what became of an execution.

        Raises InvalidOperationException for a state that can't follow, MetaException for an unknown execution.
        """
        with self._database.write() as tx:
            execution = scheduled_queries.find_execution(tx, info.scheduledExecutionId or 0)
            if execution is None:
                raise MetaException(f"There is no scheduled execution {info.scheduledExecutionId}")
            if info.state not in _NEXT.get(QueryState(execution.state), ()):
                raise InvalidOperationException(
                    f"Invalid state change: {QueryState(execution.state).name}=>{_state_name(info.state)}"
                )
            assert info.state is not None
            _set_progress(tx, execution, info.state, info.executorQueryId, info.errorMessage)

    def sweep(self) -> None:
        """Executions that went silent have timed out; old ones are forgotten."""
        with self._database.write() as tx:
            now = clock.seconds(tx)
            for execution in scheduled_queries.find_silent(tx, now - PROGRESS_TIMEOUT, tuple(_NEXT)):
                state = QueryState(execution.state).name
                message = f"Query stuck in: {state} state for >{PROGRESS_TIMEOUT} seconds. Execution timed out."
                _set_progress(tx, execution, QueryState.TIMED_OUT, None, message)
            scheduled_queries.forget_executions(tx, now - MAX_AGE)


def _set_progress(
    tx: Transaction, execution: ExecutionRow, state: int, executor_query_id: str | None, message: str | None
) -> None:
    if message is not None and len(message) >= MAX_ERROR_MESSAGE:
        message = message.split("\n", 1)[0]
        if len(message) > MAX_ERROR_MESSAGE:
            message = message[: MAX_ERROR_MESSAGE - 3] + "..."
    scheduled_queries.progress(
        tx,
        execution,
        state,
        clock.seconds(tx),
        ended=state in _ENDED,
        executor_query_id=executor_query_id,
        error_message=message,
    )


def _state_name(state: int | None) -> str:
    return QueryState(state).name if state in set(QueryState) else str(state)


def _next_time(tx: Transaction, schedule: str | None) -> int | None:
    try:
        return quartz.next_time(schedule, clock.seconds(tx))
    except ValueError as error:
        raise InvalidInputException(str(error)) from None


def _key(query: ScheduledQuery) -> tuple[str, str]:
    """A query's name and namespace, which are compared as they are given."""
    key = query.scheduleKey or ScheduledQueryKey()
    return key.scheduleName or "", key.clusterNamespace or ""


def _existing(tx: Transaction, query: ScheduledQuery) -> QueryRow:
    name, namespace = _key(query)
    row = scheduled_queries.find(tx, namespace, name, lock=True)
    if row is None:
        raise NoSuchObjectException(f"Scheduled query with name: {name}@{namespace} doesn't exists.")
    return row


def _body(query: ScheduledQuery) -> bytes:
    return binary.encode(query.replace(scheduleKey=None, enabled=None, nextExecution=None))


def _query(row: QueryRow) -> ScheduledQuery:
    value = binary.decode_preserving(ScheduledQuery, row.body)
    value.scheduleKey = ScheduledQueryKey(row.name, row.namespace)
    value.enabled, value.nextExecution = row.enabled, row.next_execution
    return value

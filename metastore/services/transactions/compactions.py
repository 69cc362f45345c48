"""The queue of compactions of Hive's transactional tables: merging the delta files of a table or partition.

Clients request compactions. Hive's workers execute them and report their progress. These workers are Hive's processes,
not this server's.

A compaction is initiated, then working, ready for cleaning, and succeeded; or it is failed, refused or aborted.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lake.protocol.hive import (
    AbortCompactionResponseElement,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    MetaException,
    ShowCompactRequest,
    ShowCompactResponseElement,
)
from metastore.services.model import names as given
from metastore.services.model.client_texts import hint
from metastore.services.transactions.write_sets import partition as partition_name
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import tables
from metastore.store.transactions import compactions, transactions, write_ids
from metastore.store.transactions.compactions import CompactionRow, State
from metastore.store.transactions.transactions import Operation, Written

NAMES = {
    State.INITIATED: "initiated",
    State.WORKING: "working",
    State.READY_FOR_CLEANING: "ready for cleaning",
    State.FAILED: "failed",
    State.SUCCEEDED: "succeeded",
    State.DID_NOT_INITIATE: "did not initiate",
    State.REFUSED: "refused",
    State.ABORTED: "aborted",
}
"""Each state's name in replies to clients."""

KEEP = {State.SUCCEEDED: 3, State.FAILED: 3, State.DID_NOT_INITIATE: 2, State.REFUSED: 2, State.ABORTED: 2}
"""How many finished compactions are kept per table or partition, by state (hive.compactor.history.retention.*)."""

REFUSED_ID = -1

POOL_TIMEOUT = timedelta(hours=12)
"""After this time in the queue, workers without a pool may take a pool's compaction too
(hive.compactor.worker.pool.timeout)."""

DEFAULT_POOL = "default"  # as which no pool is shown

_TYPES_OF_2_3 = (CompactionType.MINOR, CompactionType.MAJOR)
_TYPES = (*_TYPES_OF_2_3, CompactionType.REBALANCE, CompactionType.SMART_OPTIMIZE)


class CompactionService:
    """Hive's calls for compactions. Any number of servers and workers may share the queue."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- asking -----------------------------------------------------------------------------------------------

    def ask(self, request: CompactionRequest, *, hive4: bool = False) -> CompactionResponse:
        """Puts a compaction into the queue, unless there is one of the same table or partition.

        If there is one, the request isn't accepted. Hive 4's clients receive the reason, older ones the existing
        compaction's id and state. Raises MetaException for an unknown type.
        """
        name, partition = _place(request.dbname, request.tablename, request.partitionname)
        if request.type not in _TYPES:
            raise MetaException(f"there is no compaction type {request.type}")
        with self._database.write() as tx:
            compactions.enter_queue(tx, name, partition)
            known = compactions.scheduled(tx, name, partition, write_ids.highest(tx, name))
            if known is not None:
                state = NAMES[known.state]
                return CompactionResponse(
                    id=REFUSED_ID if hive4 else known.id,
                    state=NAMES[State.REFUSED] if hive4 else state,
                    accepted=False,
                    errormessage=f"Compaction is already scheduled with state='{state}' and id={known.id}",
                )
            number = compactions.add(tx, name, partition, {"state": State.INITIATED, **_asked(request)})
        return CompactionResponse(id=number, state=NAMES[State.INITIATED], accepted=True)

    def ask_for_cleanup(self, request: CompactionRequest, highest_write_id: int, transaction_id: int) -> None:
        """Queues the cleanup of files that a transaction has replaced: a compaction that is done up to a write id.

        Raises MetaException for an unknown type.
        """
        name, partition = _place(request.dbname, request.tablename, request.partitionname)
        if request.type not in _TYPES:
            raise MetaException(f"there is no compaction type {request.type}")
        values = {
            "state": State.READY_FOR_CLEANING,
            "highest_write_id": highest_write_id,
            "transaction_id": transaction_id,
            **_asked(request),
        }
        with self._database.write() as tx:
            compactions.add(tx, name, partition, values)

    def abort(self, compaction_ids: Sequence[int]) -> dict[int, AbortCompactionResponseElement]:
        """Aborts compactions that no worker has begun. Returns the outcome for each id."""
        with self._database.write() as tx:
            aborted = compactions.abort_waiting(tx, compaction_ids, "aborted by a client")
            states = compactions.states(tx, compaction_ids)
        outcomes: dict[int, AbortCompactionResponseElement] = {}
        for number in compaction_ids:
            if number in aborted:
                status, message = "Success", "Successfully aborted compaction"
            elif number in states:
                status, message = "Error", f"It is {NAMES[states[number]]}; only one that waits can be aborted"
            else:
                status, message = "Error", "No such compaction"
            outcomes[number] = AbortCompactionResponseElement(number, status, message)
        return outcomes

    # --- looking ----------------------------------------------------------------------------------------------

    def show(self, request: ShowCompactRequest, limit: int | None, *, hive4: bool) -> list[ShowCompactResponseElement]:
        """The compactions that satisfy all conditions of a request, the latest first, at most `limit`.

        Clients before Hive 4 know only MINOR and MAJOR. For them every other type is shown as MAJOR.
        """
        conditions = {
            "id": request.id,
            "database_name": request.dbName and given.database_name(request.dbName).database,
            "table_name": request.tbName and given.plain_table(request.tbName),
            "partition_name": request.partName and partition_name(request.partName),
            "type": request.type,
            "state": request.state,
            "pool": request.poolName,
        }
        with self._database.read() as tx:
            rows = compactions.find_all(tx, {column: value for column, value in conditions.items() if value}, limit)
        return [_shown(row, hive4=hive4) for row in rows]

    def latest(self, request: GetLatestCommittedCompactionInfoRequest) -> list[CompactionInfoStruct]:
        """The last compaction that readers see, of a table or of each of its partitions. The latest comes first."""
        name, _ = _place(request.dbname, request.tablename, None)
        wanted = [partition_name(each) for each in request.partitionnames or ()]
        with self._database.read() as tx:
            rows = compactions.latest_done(tx, name, wanted, request.lastCompactionId)
        return [
            CompactionInfoStruct(
                id=row.id,
                dbname=row.table.database,
                tablename=row.table.table,
                partitionname=row.partition or None,
                type=row.type,
            )
            for row in rows
        ]

    def columns_with_statistics(self, what: CompactionInfoStruct) -> list[str]:
        """The columns whose statistics a compaction should gather anew: those that have statistics."""
        name, partition = _place(what.dbname, what.tablename, what.partitionname)
        with self._database.read() as tx:
            row = tables.find(tx, name)
            return compactions.columns_with_statistics(tx, row.id, partition) if row is not None else []

    # --- workers ----------------------------------------------------------------------------------------------

    def next(self, request: FindNextCompactRequest) -> CompactionInfoStruct | None:
        """Gives a worker the compaction that has waited longest in its pool. Returns None if none waits."""
        pool = (request.poolName or "").strip() or None
        with self._database.write() as tx:
            row = compactions.take_next(
                tx,
                request.workerId and hint(request.workerId),
                request.workerVersion and hint(request.workerVersion),
                pool,
                POOL_TIMEOUT,
            )
        return None if row is None else _info(row)

    def begin(self, what: CompactionInfoStruct, transaction_id: int) -> None:
        """Records that a worker has opened a transaction for a compaction, and the highest write id that it compacts.

        Raises MetaException if the compaction is not in the queue.
        """
        name, partition = _place(what.dbname, what.tablename, what.partitionname)
        with self._database.write() as tx:
            known = compactions.change(
                tx,
                what.id or 0,
                highest_write_id=what.highestWriteId,
                run_as=what.runas,
                transaction_id=transaction_id,
            )
            if not known:
                raise MetaException(f"there is no compaction {what.id} in the queue")
            # So that what it leaves is cleaned up if it is aborted, as after any other writer.
            transactions.add_written(
                tx, transaction_id, [Written(name, partition, Operation.COMPACT, what.highestWriteId)]
            )

    def compacted(self, what: CompactionInfoStruct) -> None:
        """Records that a compaction is done. The files that it replaces can be cleaned up."""
        with self._database.write() as tx:
            compactions.change(tx, what.id or 0, state=State.READY_FOR_CLEANING, worker_id=None)

    def cleaned(self, what: CompactionInfoStruct) -> None:
        """Records that the files a compaction has replaced are deleted, with those of aborted transactions."""
        name, partition = _place(what.dbname, what.tablename, what.partitionname)
        with self._database.write() as tx:
            compactions.finish(tx, what.id or 0, State.SUCCEEDED)
            compactions.clean_up(tx, name, partition, what.highestWriteId or None)

    def failed(self, what: CompactionInfoStruct) -> None:
        """Records that a compaction has failed, or, without an id, was never begun.

        Raises MetaException if it has an id and isn't in the queue."""
        self._end(what, State.FAILED if what.id else State.DID_NOT_INITIATE)

    def refused(self, what: CompactionInfoStruct) -> None:
        """Records that a compaction is refused. Raises MetaException if it has an id and isn't in the queue."""
        self._end(what, State.REFUSED)

    def _end(self, what: CompactionInfoStruct, state: State) -> None:
        with self._database.write() as tx:
            if not what.id:
                self._note_failure(tx, what, state)
            elif not compactions.finish(tx, what.id, state, error_message=what.errorMessage):
                raise MetaException(f"there is no compaction {what.id} in the queue")

    @staticmethod
    def _note_failure(tx: Transaction, what: CompactionInfoStruct, state: State) -> None:
        name, partition = _place(what.dbname, what.tablename, what.partitionname)
        number = compactions.add(
            tx,
            name,
            partition,
            {
                "type": what.type or CompactionType.MINOR,
                "state": State.INITIATED,
                "properties": what.properties,
                "run_as": what.runas,
                "error_message": what.errorMessage,
            },
        )
        compactions.finish(tx, number, state)

    def set_job(self, compaction_id: int, job: str | None) -> None:
        """Stores the id of the Hadoop job that executes a compaction."""
        with self._database.write() as tx:
            compactions.change(tx, compaction_id, hadoop_job_id=job)

    # --- metrics ----------------------------------------------------------------------------------------------

    def put_metric(self, data: CompactionMetricsDataStruct) -> None:
        """Stores the number of delta files of a kind that a table or partition has, while it exceeds the threshold."""
        name, partition = _place(data.dbname, data.tblname, data.partitionname)
        kind, value = data.type or 0, data.metricvalue or 0
        with self._database.write() as tx:
            compactions.enter_queue(tx, name, partition)
            if value >= (data.threshold or 0):
                compactions.put_metric(tx, name, partition, kind, value)
            else:
                compactions.remove_metric(tx, name, partition, kind)

    def remove_metric(self, request: CompactionMetricsDataRequest) -> None:
        """Removes the stored number of delta files of a kind of a table or partition."""
        name, partition = _place(request.dbName, request.tblName, request.partitionName)
        with self._database.write() as tx:
            compactions.remove_metric(tx, name, partition, request.type or 0)

    def sweep(self) -> None:
        """Removes old finished compactions, see KEEP."""
        with self._database.write() as tx:
            compactions.forget_old(tx, KEEP)


def _place(database: str | None, table: str | None, partition: str | None) -> tuple[TableName, str]:
    return given.base(given.decorated_name(database, table)), partition_name(partition)


def _asked(request: CompactionRequest) -> dict[str, Any]:
    """The options of a request, by column of the queue's table."""
    return {
        "type": request.type,
        "properties": _encoded(request.properties),
        "pool": request.poolName or None,
        "bucket_count": request.numberOfBuckets,
        "order_by": request.orderByClause,
        "run_as": request.runas,
        "initiator_id": request.initiatorId and hint(request.initiatorId),
        "initiator_version": request.initiatorVersion and hint(request.initiatorVersion),
    }


def _encoded(properties: dict[str, str] | None) -> str | None:
    """Properties as Hive's StringableMap writes them: the number of pairs, then lengths and texts."""
    if properties is None:
        return None
    parts = [f"{len(properties)}:"]
    for key, value in properties.items():
        for text in (key, value):
            parts.append(f"{0 if text is None else len(text)}:{text or ''}")
    return "".join(parts)


def _info(row: CompactionRow) -> CompactionInfoStruct:
    return CompactionInfoStruct(
        id=row.id,
        dbname=row.table.database,
        tablename=row.table.table,
        partitionname=row.partition or None,
        type=row.type,
        runas=row.run_as,
        properties=row.properties,
        toomanyaborts=False,
        hasoldabort=False,
        state=row.state.value,
        workerId=row.worker_id,
        start=row.started_at,
        highestWriteId=row.highest_write_id or 0,
        errorMessage=row.error_message,
        enqueueTime=row.enqueued_at,
        retryRetention=0,
        poolname=row.pool,
        numberOfBuckets=row.bucket_count,
        orderByClause=row.order_by,
    )


def _shown(row: CompactionRow, *, hive4: bool) -> ShowCompactResponseElement:
    unknown = row.type not in _TYPES_OF_2_3 and not hive4
    return ShowCompactResponseElement(
        dbname=row.table.database,
        tablename=row.table.table,
        partitionname=row.partition or None,
        type=CompactionType.MAJOR if unknown else row.type,
        state=NAMES[row.state],
        workerid=row.worker_id,
        start=row.started_at,
        runAs=row.run_as,
        hightestTxnId=row.highest_write_id,
        endTime=row.ended_at,
        hadoopJobId=row.hadoop_job_id,
        id=row.id,
        errorMessage=row.error_message,
        enqueueTime=row.enqueued_at,
        workerVersion=row.worker_version,
        initiatorId=row.initiator_id,
        initiatorVersion=row.initiator_version,
        poolName=row.pool or DEFAULT_POOL,
        nextTxnId=row.next_transaction_id,
        txnId=row.transaction_id,
        commitTime=row.committed_at,
        hightestWriteId=row.highest_write_id,
    )

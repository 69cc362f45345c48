"""Hive's transactions: open, commit, abort, heartbeat, and the snapshots of readers.

The rules are those of Hive's TxnHandler. A transaction that updates or deletes conflicts with one that did the same to
the same partition, or unpartitioned table, and was committed after it began: the first commit wins.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from lake.protocol.hive import (
    AbortTxnRequest,
    CommitTxnKeyValue,
    CommitTxnRequest,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsResponse,
    HeartbeatTxnRangeResponse,
    LockComponent,
    MetaException,
    NoSuchTxnException,
    OpenTxnRequest,
    TxnAbortedException,
    TxnInfo,
    TxnType,
)
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.model.client_texts import MAX_HINT, hint
from metastore.services.model.rising_numbers import check_brought
from metastore.services.transactions import write_sets
from metastore.services.transactions.valid_txns import NOTHING_OPEN, Snapshot, bits
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.store.transactions import compactions, materializations, transactions, write_ids
from metastore.store.transactions.transactions import WHOLE, Operation, State, TransactionRow, Written

TIMEOUT_SECONDS = 300.0
"""Hive's hive.txn.timeout: the deadline of a transaction after its last heartbeat."""

REPLICATION_TIMEOUT_SECONDS = 11 * 24 * 3600.0
"""Hive's hive.repl.txn.timeout, for transactions that replay those of another warehouse."""

KEEP_ENDED_SECONDS = 3600.0
"""So long a commit may be repeated by a client that did not get its answer."""

LARGEST_BATCH = 1000
"""Hive's hive.txn.max.open.batch: who asks for more gets so many."""

LONGEST_RANGE = 1_000_000
"""So many transactions may be named in one heartbeat."""

KEY_VALUE_PREFIX = "_meta"
"""Begins the table parameters that a commit may set (Hive's TxnStore.TXN_KEY_START)."""

UNKNOWN_AGENT = "Unknown"  # TxnInfo's default

_COMPACTIONS = (TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION)
_LETTERS = {Operation.UPDATE: "u", Operation.DELETE: "d"}


class TransactionService:
    """Hive's calls for transactions. Any number of servers may share a database."""

    def __init__(self, database: Database, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """A transaction without a heartbeat for `timeout_seconds` is aborted when somebody looks."""
        self._database = database
        self._timeout = timedelta(seconds=timeout_seconds)

    # --- opening ----------------------------------------------------------------------------------------------

    def open(self, request: OpenTxnRequest) -> list[int]:
        """Opens transactions and returns their ids, without a gap between them.

        For a replication policy those that replay the given ones of another warehouse: if they are there already,
        they are returned. Raises MetaException for a number below zero, or a replay without its sources.
        """
        count = min(request.num_txns or 0, LARGEST_BATCH)
        if count < 0:
            raise MetaException(f"Invalid input for number of txns: {count}")
        kind = request.txn_type or TxnType.DEFAULT
        sources = list(request.replSrcTxnIds or ())
        policy = request.replPolicy
        if len(policy or "") > MAX_HINT:
            raise MetaException(f"a replication policy of {len(policy or '')} characters; {MAX_HINT} are allowed")
        with self._database.write() as tx:
            if kind == TxnType.REPL_CREATED:
                if policy is None or len(sources) != count:
                    raise MetaException("a transaction that replays others needs a policy and as many source ids")
                known = transactions.replicated(tx, policy, sources)
                if known:
                    return list(known.values())
            if count == 0:
                return []
            ids = self.open_in(tx, count, type=kind, user=hint(request.user), host=hint(request.hostname))
            if kind == TxnType.REPL_CREATED and policy is not None:
                transactions.add_replicated(tx, policy, zip(sources, ids, strict=True))
        return ids

    def open_in(self, tx: Transaction, count: int, *, type: int, user: str, host: str) -> list[int]:
        """Opens transactions within a change; others wait for it until it is committed."""
        ids = list(transactions.take_ids(tx, count))
        transactions.add(tx, ids, type=type, user=user, host=host)
        return ids

    def seed(self, first: int) -> None:
        """The next transaction gets this id. Raises MetaException unless it is higher than all, and leaves room."""
        check_brought("the next transaction's id", first, lowest=1)
        with self._database.write() as tx:
            highest = transactions.hold_counter(tx)
            if first <= highest:
                raise MetaException(f"Invalid txnId seed {first}, the highWaterMark is {highest}")
            transactions.continue_at(tx, first)

    # --- looking ----------------------------------------------------------------------------------------------

    def shown(self, excluded_types: Sequence[int] = (TxnType.READ_ONLY,)) -> GetOpenTxnsResponse:
        """Which transactions are open or aborted, those of some types apart, and the highest id."""
        with self._database.read() as tx:
            rows, highest = transactions.uncommitted(tx), transactions.highest_id(tx)
        shown = [row for row in rows if row.type not in excluded_types]
        return GetOpenTxnsResponse(
            txn_high_water_mark=highest,
            open_txns=[row.id for row in shown],
            min_open_txn=next((row.id for row in rows if row.state is State.OPEN), None),
            abortedBits=bits([place for place, row in enumerate(shown) if row.state is State.ABORTED]),
        )

    def details(self) -> GetOpenTxnsInfoResponse:
        """Which transactions are open or aborted, by id, with all that is known of them."""
        with self._database.read() as tx:
            rows, highest = transactions.uncommitted(tx), transactions.highest_id(tx)
        return GetOpenTxnsInfoResponse(highest, [_info(row) for row in rows])

    def snapshot(self, tx: Transaction) -> Snapshot:
        """What a reader sees at this moment."""
        rows = [row for row in transactions.uncommitted(tx) if row.type != TxnType.READ_ONLY]
        return Snapshot(
            transactions.highest_id(tx),
            [row.id for row in rows],
            frozenset(row.id for row in rows if row.state is State.ABORTED),
            next((row.id for row in rows if row.state is State.OPEN), NOTHING_OPEN),
        )

    def latest_conflict(self, transaction_id: int) -> int:
        """The highest id of a committed transaction that this one conflicts with, 0 for none."""
        with self._database.read() as tx:
            return transactions.latest_conflict(tx, transaction_id)

    # --- being alive ------------------------------------------------------------------------------------------

    def require_open(self, tx: Transaction, transaction_id: int) -> TransactionRow:
        """Holds an open transaction, so that nobody ends it meanwhile.

        Raises NoSuchTxnException, TxnAbortedException if it is not open.
        """
        row = transactions.find(tx, transaction_id, lock=True)
        if row is None or row.state is not State.OPEN:
            raise _unexpected(transaction_id, row)
        return row

    def heartbeat(self, tx: Transaction, transaction_id: int) -> None:
        """The holder of a transaction is alive. Raises NoSuchTxnException, TxnAbortedException."""
        if not transactions.heartbeat(tx, [transaction_id]):
            raise _unexpected(transaction_id, transactions.find(tx, transaction_id))

    def heartbeat_range(self, first: int, last: int) -> HeartbeatTxnRangeResponse:
        """The holder of a range of transactions, both ends included, is alive; those that are not open are returned.

        Raises MetaException for a range that is too long or none.
        """
        if not 0 <= last - first < LONGEST_RANGE:
            raise MetaException(f"{first} to {last} is no range of at most {LONGEST_RANGE} transactions")
        wanted = range(first, last + 1)
        with self._database.write() as tx:
            alive = transactions.heartbeat(tx, wanted)
            missing = [each for each in wanted if each not in alive]
            aborted = {row.id for row in transactions.find_many(tx, missing) if row.state is State.ABORTED}
        return HeartbeatTxnRangeResponse(aborted=aborted, nosuch=set(missing) - aborted)

    def abort_expired(self, tx: Transaction) -> int:
        """Aborts transactions whose deadline has passed, and returns how many; it waits for nobody."""
        replication = timedelta(seconds=REPLICATION_TIMEOUT_SECONDS)
        ids = transactions.expired(tx, self._timeout, [TxnType.REPL_CREATED], replication)
        self._abort(tx, ids)
        return len(ids)

    def sweep(self) -> None:
        """Aborts transactions whose deadline has passed, and forgets what nobody needs to know any more."""
        with self._database.write() as tx:
            self.abort_expired(tx)
        with self._database.write() as tx:
            transactions.forget_ended(tx, timedelta(seconds=KEEP_ENDED_SECONDS))
            transactions.merge_completed(tx)
        with self._database.write() as tx:
            materializations.remove_stale(tx, self._timeout)

    # --- what they write --------------------------------------------------------------------------------------

    def note_locks(
        self, tx: Transaction, transaction_id: int, components: Sequence[LockComponent], *, hive4: bool
    ) -> None:
        """What a transaction locks tells what it is going to write. The transaction is held already."""
        noted = write_sets.by_locks(components, hive4=hive4)
        known = {name: self._write_id(tx, name, transaction_id) for name in {each.table for each in noted}}
        transactions.add_written(tx, transaction_id, [each._replace(write_id=known[each.table]) for each in noted])

    @staticmethod
    def _write_id(tx: Transaction, name: TableName, transaction_id: int) -> int | None:
        found = write_ids.of_transactions(tx, name, [transaction_id])
        return found[0].write_id if found else None

    def add_partitions(
        self,
        transaction_id: int,
        database: str | None,
        table: str | None,
        partitions: Iterable[str],
        *,
        kind: int | None,
        write_id: int | None,
    ) -> None:
        """The partitions that a write into partitions unknown before has changed; `kind` is a DataOperationType.

        Raises NoSuchTxnException, TxnAbortedException.
        """
        name = given.base(given.decorated_name(database, table))
        done = write_sets.operation(kind)
        with self._database.write() as tx:
            self.require_open(tx, transaction_id)
            transactions.remove_written_whole(tx, transaction_id, name)
            transactions.add_written(
                tx, transaction_id, [Written(name, write_sets.partition(each), done, write_id) for each in partitions]
            )

    # --- ending -----------------------------------------------------------------------------------------------

    def commit(self, request: CommitTxnRequest, *, hive4: bool) -> None:
        """Commits a transaction with its locks; nothing happens if it is committed already.

        A client that holds exclusive locks for its writes (`exclWriteEnabled`) needs no look for conflicts. `hive4`:
        whether two transactions that only delete conflict, as in Hive 4. Raises NoSuchTxnException, and
        TxnAbortedException also if another was first, in which case this one is aborted.
        """
        replays = request.txn_type == TxnType.REPL_CREATED
        conflict: str | None = None
        with self._database.write() as tx:
            transaction_id = self._target(tx, request.txnid or 0, request.replPolicy) if replays else request.txnid or 0
            if transaction_id is None:  # replayed before
                return
            row = transactions.find(tx, transaction_id, lock=True)
            if row is not None and row.state is State.COMMITTED:
                return
            if row is None or row.state is not State.OPEN:
                raise _unexpected(transaction_id, row)
            # Before the counter, which nobody else may have to wait for.
            table = _held_table(tx, request.keyValue) if request.keyValue is not None else None
            done = transactions.wrote(tx, transaction_id)
            compacts = row.type in (*_COMPACTIONS, TxnType.SOFT_DELETE)
            # Held until the commit, so that whoever begins later, and only he, sees what this one wrote.
            highest = transactions.hold_counter(tx) if done or compacts else transactions.highest_id(tx)
            changes = not replays and not compacts and not done.isdisjoint(transactions.CHANGES)
            if changes and not request.exclWriteEnabled:
                conflict = self._conflict(tx, transaction_id, highest, hive4=hive4)
            if conflict is not None:
                self._abort(tx, [transaction_id])
            else:
                if compacts:
                    compactions.committed(tx, row.id, highest)
                if done and row.type not in _COMPACTIONS:
                    transactions.complete(tx, row.id, highest, changes_rows=changes)
                transactions.end(tx, [row.id], State.COMMITTED, commit_id=highest)
                if table is not None and request.keyValue is not None:
                    _set_parameter(tx, table, request.keyValue)
        if conflict is not None:
            raise TxnAbortedException(conflict)

    def replayed(self, policy: str | None) -> dict[int, int]:
        """The open transactions that replay those of another warehouse, by the ids of those."""
        with self._database.read() as tx:
            return transactions.replicated(tx, policy or "")

    @staticmethod
    def _target(tx: Transaction, source_id: int, policy: str | None) -> int | None:
        """The transaction that replays one of another warehouse."""
        return transactions.replicated(tx, policy or "", [source_id]).get(source_id)

    @staticmethod
    def _conflict(tx: Transaction, transaction_id: int, highest: int, *, hive4: bool) -> str | None:
        found = transactions.find_conflict(tx, transaction_id, deletes_conflict=hive4)
        if found is None:
            return None
        place = f"{found.table.database}/{found.table.table}"
        if found.partition != WHOLE:
            place = f"{place}/{found.partition}"
        return (
            f"Aborting [txnid:{transaction_id},{highest}] due to a write conflict on {place} committed by"
            f" [txnid:{found.transaction_id},{found.commit_id}]"
            f" {_LETTERS[found.operation]}/{_LETTERS[found.committed_operation]}"
        )

    def abort(self, request: AbortTxnRequest) -> None:
        """Aborts a transaction with its locks; nothing happens if it is aborted already. Raises NoSuchTxnException."""
        with self._database.write() as tx:
            transaction_id = request.txnid or 0
            if request.txn_type == TxnType.REPL_CREATED:
                target = self._target(tx, transaction_id, request.replPolicy)
                if target is None:  # replayed before
                    return
                transaction_id = target
            row = transactions.find(tx, transaction_id, lock=True)
            if row is not None and row.state is State.ABORTED:
                return
            if row is None or row.state is not State.OPEN:
                raise _unexpected(transaction_id, row)
            self._abort(tx, [transaction_id])

    def abort_many(self, ids: Sequence[int]) -> None:
        """Aborts those of the transactions that are open."""
        with self._database.write() as tx:
            held = transactions.find_many(tx, ids, lock=True)
            self._abort(tx, [row.id for row in held if row.state is State.OPEN])

    def abort_in(self, tx: Transaction, ids: Sequence[int]) -> None:
        """Aborts transactions that the same change has opened."""
        self._abort(tx, ids)

    @staticmethod
    def _abort(tx: Transaction, ids: Sequence[int]) -> None:
        """What they wrote stays noted until a compaction has cleaned it up."""
        if ids:
            transactions.end(tx, ids, State.ABORTED)


def _held_table(tx: Transaction, wanted: CommitTxnKeyValue) -> TableRow:
    """The table of which a commit sets a parameter: how streaming writers keep their offsets."""
    key = wanted.key or ""
    if not key.startswith(KEY_VALUE_PREFIX):
        raise MetaException(f"the key {key} of a commit does not start with {KEY_VALUE_PREFIX}")
    row = tables.find_by_id(tx, wanted.tableId or 0, RowLock.EXCLUSIVE)
    if row is None or key not in row.parameters:
        raise MetaException(f"there is no table {wanted.tableId} with a parameter {key}")
    return row


def _set_parameter(tx: Transaction, row: TableRow, wanted: CommitTxnKeyValue) -> None:
    value = hive_objects.table_of(row)
    value.parameters = {**row.parameters, wanted.key or "": wanted.value or ""}
    tables.change(tx, row.id, row.database_id, hive_objects.table_values(value, row.descriptor_id))


def _unexpected(transaction_id: int, row: TransactionRow | None) -> NoSuchTxnException | TxnAbortedException:
    if row is None:
        return NoSuchTxnException(f"No such transaction txnid:{transaction_id}")
    if row.state is State.ABORTED:
        return TxnAbortedException(f"Transaction txnid:{transaction_id} already aborted")
    return NoSuchTxnException(f"Transaction txnid:{transaction_id} is already committed.")


def _info(row: TransactionRow) -> TxnInfo:
    return TxnInfo(
        id=row.id,
        state=row.state,
        user=row.user,
        hostname=row.host,
        agentInfo=UNKNOWN_AGENT,
        startedTime=_milliseconds(row.started_at),
        lastHeartbeatTime=_milliseconds(row.heartbeat_at),
    )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)

"""Write ids: each table numbers the transactions that write to it, and readers see data by these numbers."""

from collections.abc import Sequence

from lake.protocol.hive import (
    AllocateTableWriteIdsRequest,
    CompactionRequest,
    CompactionType,
    GetValidWriteIdsRequest,
    MetaException,
    NoSuchTxnException,
    ReplTblWriteIdStateRequest,
    SeedTableWriteIdsRequest,
    TableValidWriteIds,
    TxnAbortedException,
    TxnToWriteId,
    TxnType,
)
from metastore.services.model import names as given
from metastore.services.model.rising_numbers import check_brought
from metastore.services.transactions.compactions import CompactionService
from metastore.services.transactions.transactions import TransactionService
from metastore.services.transactions.valid_txns import NOTHING_OPEN, Snapshot, bits, parse, parse_write_ids
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.transactions import transactions, write_ids
from metastore.store.transactions.transactions import WHOLE, Operation, State, Written
from metastore.store.transactions.write_ids import WriteId

MAX_TABLES = 1_000
"""Whose write ids one call tells: each takes several statements."""
MAX_INVALID = 1_000_000
"""Write ids that one answer lists."""


def full_name(text: str) -> TableName:
    """The table that `database.table` names, decorated or not. Raises MetaException if the text is no such name."""
    database, dot, table = text.rpartition(".")
    if not dot or not database or not table:
        raise MetaException(f"{text!r} is no name of the form database.table")
    return given.base(given.decorated_name(database, table))


class WriteIdService:
    """Hive's calls for write ids: allocate them, and list the valid ones."""

    def __init__(self, database: Database, service: TransactionService, compactions: CompactionService) -> None:
        self._database = database
        self._transactions = service
        self._compactions = compactions

    # --- giving -----------------------------------------------------------------------------------------------

    def allocate(self, request: AllocateTableWriteIdsRequest) -> list[TxnToWriteId]:
        """A write id of a table for each transaction; those that have one keep it, unless it is to be another.

        Transactions of a replication policy get those of their sources; nothing, if they are over already.
        Raises NoSuchTxnException, TxnAbortedException, MetaException for one that only reads.
        """
        name = given.base(given.decorated_name(request.dbName, request.tableName))
        sources = sorted(request.srcTxnToWriteIdList or (), key=lambda each: each.txnId or 0)
        with self._database.write() as tx:
            if request.replPolicy is not None:
                targets = transactions.replicated(tx, request.replPolicy, [each.txnId or 0 for each in sources])
                if not sources or len(targets) != len(sources):
                    return []
                ids = sorted(targets.values())
            else:
                ids = sorted(set(request.txnIds or ()))
            self._require_writers(tx, ids)
            if request.reallocate:
                write_ids.remove(tx, name, ids)
            had = write_ids.of_transactions(tx, name, ids)
            missing = sorted(set(ids) - {each.transaction_id for each in had})
            if missing:
                first = None
                if request.replPolicy is not None:
                    first = check_brought("a write id of the source", sources[0].writeId or 0, lowest=1)
                had += self._give(tx, name, missing, first)
        return [TxnToWriteId(*each) for each in sorted(had)]

    def _require_writers(self, tx: Transaction, ids: Sequence[int]) -> None:
        held = {row.id: row for row in transactions.find_many(tx, ids, lock=True)}
        for each in ids:
            row = held.get(each)
            if row is None:
                raise NoSuchTxnException(f"No such transaction txnid:{each}")
            if row.state is State.ABORTED:
                raise TxnAbortedException(f"Transaction txnid:{each} already aborted")
            if row.state is State.COMMITTED:
                raise NoSuchTxnException(f"Transaction txnid:{each} is already committed.")
            if row.type == TxnType.READ_ONLY:
                raise MetaException(f"Transaction txnid:{each} is read-only: it gets no write id")

    @staticmethod
    def _give(tx: Transaction, name: TableName, ids: Sequence[int], first: int | None) -> list[WriteId]:
        following = write_ids.hold_next(tx, name)
        if first is not None and first != following:
            # The source has gone on without us, as when the table was dropped there: what we know of it is stale.
            write_ids.remove_all(tx, name)
            following = first
        new = [WriteId(each, following + place) for place, each in enumerate(ids)]
        write_ids.continue_at(tx, name, following + len(new))
        write_ids.add(tx, name, new)
        return new

    def seed(self, request: SeedTableWriteIdsRequest) -> None:
        """A table that becomes transactional begins after this write id. Raises MetaException if it has begun."""
        name = given.base(given.decorated_name(request.dbName, request.tableName))
        seed = check_brought("the write id before a table's first", request.seedWriteId or 0, lowest=0)
        with self._database.write() as tx:
            if not write_ids.begin(tx, name, seed + 1):
                raise MetaException(f"write ids of {name} have been given already")

    def replicate(self, request: ReplTblWriteIdStateRequest) -> None:
        """A replicated table begins with the write ids of its source; aborted ones are aborted here, and compacted.

        Nothing happens if the table has begun. Raises MetaException for a list of write ids that is none.
        """
        name = given.base(given.decorated_name(request.dbName, request.tableName))
        _, state = parse_write_ids(request.validWriteIdlist or "")
        check_brought("the highest write id of the source", state.highest, lowest=0)
        aborted = sorted(state.aborted)
        with self._database.write() as tx:
            if not write_ids.begin(tx, name, state.highest + 1):
                return
            if not aborted:
                return
            ids = self._transactions.open_in(
                tx, len(aborted), type=TxnType.DEFAULT, user=request.user or "", host=request.hostName or ""
            )
            write_ids.add(tx, name, map(WriteId, ids, aborted))
            for each, write_id in zip(ids, aborted, strict=True):
                # They have left rows. Without this note they would be forgotten, and their rows seen.
                transactions.add_written(tx, each, [Written(name, WHOLE, Operation.UPDATE, write_id)])
            self._transactions.abort_in(tx, ids)
        partitions: Sequence[str | None] = request.partNames or (None,)
        for partition in partitions:
            self._compactions.ask(
                CompactionRequest(
                    dbname=request.dbName,
                    tablename=request.tableName,
                    partitionname=partition,
                    type=CompactionType.MAJOR,
                )
            )

    # --- looking ----------------------------------------------------------------------------------------------

    def highest(self, database: str | None, table: str | None) -> int:
        """The highest write id that a table has given, 0 for none."""
        name = given.base(given.decorated_name(database, table))
        with self._database.read() as tx:
            return write_ids.highest(tx, name)

    def valid(self, request: GetValidWriteIdsRequest) -> list[TableValidWriteIds]:
        """What of tables a reader sees: by his list of valid transactions, as of a write id of the first table, or now.

        Raises MetaException for a list that is none, or an unknown write id, and beyond MAX_TABLES and MAX_INVALID.
        """
        wanted = list(dict.fromkeys(request.fullTableNames or ()))
        if len(wanted) > MAX_TABLES:
            raise MetaException(f"write ids of {len(wanted)} tables are too many at once; {MAX_TABLES} are allowed")
        with self._database.read() as tx:
            if request.validTxnList is not None:
                snapshot = parse(request.validTxnList)
            else:
                snapshot = self._transactions.snapshot(tx)
                if request.writeId is not None and wanted:
                    writer = write_ids.transaction_of(tx, full_name(wanted[0]), request.writeId)
                    if writer is None:
                        raise MetaException(f"invalid write id {request.writeId} for table {wanted[0]}")
                    snapshot = snapshot.before(writer)
            found, invalid = [], 0
            by_name: dict[TableName, Snapshot] = {}  # which may be spelled in many ways
            for each in wanted:
                name = full_name(each)
                if name not in by_name:
                    by_name[name] = valid_write_ids(tx, name, snapshot)
                valid = by_name[name]
                invalid += len(valid.invalid)
                if invalid > MAX_INVALID:
                    raise MetaException(
                        f"the tables have more than {MAX_INVALID} write ids that are open or aborted: ask for fewer "
                        "tables at once, or compact them"
                    )
                found.append(valid_struct(each, valid))
            return found


def valid_write_ids(tx: Transaction, name: TableName, snapshot: Snapshot) -> Snapshot:
    """What a reader with a snapshot of transactions sees of a table (Hive's getValidWriteIdsForTable)."""
    highest = write_ids.highest_of(tx, name, snapshot.highest)
    invalid: list[int] = []
    aborted: set[int] = set()
    oldest = NOTHING_OPEN
    sees_any = False
    for each in write_ids.up_to(tx, name, highest):
        if snapshot.sees(each.transaction_id):
            sees_any = True
            continue
        invalid.append(each.write_id)
        if each.transaction_id in snapshot.aborted:
            aborted.add(each.write_id)
        else:
            oldest = min(oldest, each.write_id)
    if invalid and not sees_any and highest - invalid[0] < len(invalid):
        # All that is valid, also of what is forgotten, lies below: the first invalid one says as much as all of them.
        highest, invalid = invalid[0], invalid[:1]
        aborted.intersection_update(invalid)
    return Snapshot(highest, invalid, frozenset(aborted), oldest)


def valid_struct(asked: str, snapshot: Snapshot) -> TableValidWriteIds:
    """A snapshot of a table as clients get it, under the name by which they asked."""
    return TableValidWriteIds(
        fullTableName=asked,
        writeIdHighWaterMark=snapshot.highest,
        invalidWriteIds=list(snapshot.invalid),
        minOpenWriteId=snapshot.oldest_open if snapshot.oldest_open != NOTHING_OPEN else None,
        abortedBits=bits([place for place, each in enumerate(snapshot.invalid) if each in snapshot.aborted]),
    )

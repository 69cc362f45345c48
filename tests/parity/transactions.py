"""Generated calls on transactions, locks and compactions."""

from hypothesis import strategies as st

from lake.protocol.hive import (
    AbortTxnRequest,
    AbortTxnsRequest,
    CheckLockRequest,
    CommitTxnRequest,
    CompactionRequest,
    CompactionType,
    DataOperationType,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    ShowCompactRequest,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.parity.calls import Call, Lock, Script, Txn
from tests.parity.values import Strategy, call, mostly, struct
from tests.support.builders import database, storage, table

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
ACID = storage(inputFormat=f"{ORC}InputFormat", outputFormat=f"{ORC}OutputFormat", numBuckets=2, bucketCols=["id"])
SETUP: Script = [
    Call("create_database", database("N_a")),
    Call(
        "create_table",
        table("N_a", "t", keys=("k",), sd=ACID, parameters={"transactional": "true"}),
    ),
    Call("open_txns", OpenTxnRequest(num_txns=2, user="alice", hostname="here")),
]

TXNS = mostly(Txn(0), Txn(1), odd=(Txn(2), Txn(3), Txn(9), 0, -1))
MAYBE_TXN = mostly(None, Txn(0), Txn(1), odd=(Txn(2), Txn(9), 0))
LOCKS = mostly(Lock(0), Lock(1), odd=(Lock(2), Lock(3), Lock(9), 0))
DB = mostly("N_a", odd=("N_b",))
TABLES = mostly("t", "u", odd=(None,))
PARTITIONS = st.sampled_from([None, None, "k=1", "k=2"])
OPERATIONS = st.sampled_from(
    [None, DataOperationType.SELECT, DataOperationType.INSERT, DataOperationType.UPDATE, DataOperationType.DELETE]
)
KINDS = st.sampled_from([LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCLUSIVE])


@st.composite
def components(draw: st.DrawFn) -> LockComponent:
    db, name, part = draw(DB), draw(TABLES), draw(PARTITIONS)
    level = draw(st.sampled_from([LockLevel.DB, LockLevel.TABLE, LockLevel.TABLE, LockLevel.PARTITION]))
    return LockComponent(
        type=draw(KINDS),
        level=level,
        dbname=db,
        tablename=None if level == LockLevel.DB else name,
        partitionname=part if level == LockLevel.PARTITION else None,
        operationType=draw(OPERATIONS),
        isTransactional=draw(st.sampled_from([None, True, False])),
        isDynamicPartitionWrite=draw(st.sampled_from([None, True, False])),
    )


def transaction_calls() -> Strategy:
    lock = struct(
        LockRequest,
        component=st.lists(components(), min_size=1, max_size=2),
        txnid=MAYBE_TXN,
        user=st.just("alice"),
        hostname=st.just("here"),
        agentInfo=st.sampled_from([None, "agent"]),
    )
    compaction = struct(
        CompactionRequest,
        dbname=DB,
        tablename=mostly("t", odd=("nosuch",)),
        partitionname=st.sampled_from([None, "k=1"]),
        type=st.sampled_from([CompactionType.MINOR, CompactionType.MAJOR]),
        runas=st.sampled_from([None, "bob"]),
        properties=st.sampled_from([None, {}, {"a": "b"}]),
    )
    return st.one_of(
        call(
            "open_txns",
            struct(OpenTxnRequest, num_txns=mostly(1, 2, odd=(0, -1)), user=st.just("alice"), hostname=st.just("here")),
        ),
        call("abort_txn", struct(AbortTxnRequest, txnid=TXNS)),
        call("abort_txns", struct(AbortTxnsRequest, txn_ids=st.lists(TXNS, max_size=3))),
        call("commit_txn", struct(CommitTxnRequest, txnid=TXNS)),
        call("commit_txn", struct(CommitTxnRequest, txnid=TXNS)),
        call("lock", lock),
        call("lock", lock),
        call("lock", lock),
        call("check_lock", struct(CheckLockRequest, lockid=LOCKS, txnid=MAYBE_TXN)),
        call("unlock", struct(UnlockRequest, lockid=LOCKS)),
        call("heartbeat", struct(HeartbeatRequest, lockid=st.one_of(st.none(), LOCKS), txnid=MAYBE_TXN)),
        call("heartbeat_txn_range", struct(HeartbeatTxnRangeRequest, min=st.just(Txn(0)), max=mostly(Txn(0), Txn(1)))),
        call(
            "show_locks",
            struct(ShowLocksRequest, dbname=st.sampled_from([None, "N_a"]), tablename=st.sampled_from([None, "t"])),
        ),
        call("get_open_txns"),
        call("get_open_txns_info"),
        call("compact", compaction),
        call("compact2", compaction),
        call("show_compact", st.just(ShowCompactRequest())),
        call("drop_table", st.just("N_a"), mostly("t"), st.just(True)),
    )


LAST_READS: Script = [
    Call("show_locks", ShowLocksRequest(dbname="N_a")),
    Call("get_open_txns_info"),
    Call("show_compact", ShowCompactRequest()),
]

"""The write set of a transaction: tables and partitions, derived from its locks and calls."""

from collections.abc import Sequence

from lake.protocol.hive import DataOperationType, LockComponent
from metastore.services.model import names as given
from metastore.store.engine.names import TableName
from metastore.store.transactions.transactions import WHOLE, Operation, Written

_OPERATIONS = {
    DataOperationType.INSERT: Operation.INSERT,
    DataOperationType.UPDATE: Operation.UPDATE,
    DataOperationType.DELETE: Operation.DELETE,
}
_READS = (DataOperationType.SELECT, DataOperationType.NO_TXN)


def partition(name: str | None) -> str:
    """A partition's name as locks and transactions keep it: its keys in lower case; empty for none."""
    steps = (step.partition("=") for step in (name or WHOLE).split("/"))
    return "/".join(f"{key.lower()}{sign}{value}" for key, sign, value in steps)


def operation(kind: int | None) -> Operation:
    """The operation that a client names. UPDATE without one, as the most restrictive (Hive's addDynamicPartitions)."""
    return _OPERATIONS.get(kind, Operation.UPDATE)  # type: ignore[call-overload,no-any-return]


def by_locks(components: Sequence[LockComponent], *, hive4: bool) -> list[Written]:
    """What a transaction that requests these locks is going to write, without write ids.

    Only transactional tables count. With dynamic partitions, the written partitions are known only later. Hive 4 then
    counts the whole table until the partitions are reported (`add_dynamic_partitions`). Hive 2.3 counts nothing.
    """
    found: list[Written] = []
    updated = {
        _table(each)
        for each in components
        if each.isDynamicPartitionWrite
        and operation(each.operationType)
        in (
            Operation.UPDATE,
            Operation.DELETE,
        )
        and each.tablename
    }
    seen: set[TableName] = set()
    for each in components:
        if each.isTransactional is False or each.operationType in _READS or not each.tablename:
            continue
        table, part, done = _table(each), partition(each.partitionname), operation(each.operationType)
        if each.isDynamicPartitionWrite:
            if not hive4 or table in seen:
                continue
            part, done = WHOLE, Operation.UPDATE if table in updated else Operation.INSERT
        seen.add(table)
        found.append(Written(table, part, done, None))
    return found


def _table(component: LockComponent) -> TableName:
    return given.base(given.decorated_name(component.dbname, component.tablename))

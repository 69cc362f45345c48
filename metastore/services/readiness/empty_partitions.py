"""Adds empty partitions for times without rows, for tables with the property `partition.create-empty`."""

from collections.abc import Sequence

import structlog

from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.formats.partition_names import make_name
from lake.protocol.hive import Partition
from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.commit_flag.transitions import properties_of
from metastore.services.model import hive_objects
from metastore.services.partition.writes import PartitionService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.commit_flag import readiness
from metastore.store.commit_flag.readiness import Readiness
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.table import tables
from metastore.store.table.tables import TableRow

MAX_EMPTY = 1_000
"""The most partitions that one call adds."""

EXAMPLES = 100
"""The most existing partitions that are searched for one whose values state a time."""

log = structlog.get_logger(__name__)


class EmptyPartitions:
    """Adds the partitions that a table lacks between its first one and the watermark."""

    def __init__(self, database: Database, partitions: PartitionService) -> None:
        self._database = database
        self._partitions = partitions

    def add(self, table_id: int) -> bool:
        """Adds a table's missing partitions whose time has passed, at most MAX_EMPTY, if its properties ask for it.

        Returns whether there are more. Raises what `PartitionService.add` does.
        """
        with self._database.read() as tx:
            row = tables.find_by_id(tx, table_id)
            if row is None:
                return False
            properties, state = properties_of(row), readiness.get(tx, table_id)
            if not properties.create_empty or properties.mode is not CommitMode.EVENT_TIME or state.watermark is None:
                return False
            clock = PartitionClock(properties)
            try:
                passed, more = _passed(tx, row, properties, clock, state)
            except ValueError as error:
                # The existing values have no room for the interval: hourly partitions named dt=2024-01-31.
                log.warning("empty partitions can't be added", table=str(row.name), error=str(error))
                return False
            if not passed:
                return False
            keys = hive_objects.key_names(hive_objects.table_of(row))
            named = {make_name(keys, values): values for values in passed}
            existing = partitions.existing(tx, table_id, list(named))
        missing = [values for name, values in named.items() if name not in existing]
        if missing:
            database, table, catalog = row.name.database, row.name.table, row.name.catalog
            self._partitions.add(database, table, _empty(row, missing), {}, if_not_exists=True, catalog=catalog)
        last = clock.start(passed[-1])
        assert last is not None
        with self._database.write() as tx:
            if tables.find_by_id(tx, table_id, RowLock.SHARED) is not None:
                held = readiness.hold(tx, table_id)
                readiness.put(tx, table_id, held._replace(filled_until=max(last, held.filled_until or last)))
        return more


def _passed(
    tx: Transaction, row: TableRow, properties: ReadinessProperties, clock: PartitionClock, state: Readiness
) -> tuple[list[list[str]], bool]:
    """The values of due partitions that were not checked before, existing or not; and whether there are more.

    The first call starts with the table's first partition, but at most MAX_EMPTY partitions back: an older one may come
    from a single wrong row. Raises ValueError if the values can't express the times.
    """
    assert state.watermark is not None and properties.interval is not None
    if state.filled_until is None:
        values = partitions.values(tx, Selection(row.id))
        starts = {start: own for own in values if (start := clock.start(own)) is not None}
        if not starts:
            return [], False
        interval = properties.interval.milliseconds or properties.interval.months * 31 * 86_400_000
        first = max(min(starts), state.watermark - MAX_EMPTY * interval)
        current = clock.values_at(first, like=starts[min(starts)])
    else:
        values = partitions.values(tx, Selection(row.id), EXAMPLES)
        like = next((own for own in values if clock.start(own) is not None), None)
        if like is None:
            return [], False
        current = clock.next(clock.values_at(state.filled_until, like=like))
    passed: list[list[str]] = []
    while clock.is_due(current, state.watermark):
        if len(passed) == MAX_EMPTY:
            return passed, True
        passed.append(current)
        current = clock.next(current)
    return passed, False


def _empty(row: TableRow, values: Sequence[list[str]]) -> list[Partition]:
    owner = hive_objects.table_of(row)
    assert owner.sd is not None
    return [
        Partition(values=own, dbName=owner.dbName, tableName=owner.tableName, sd=owner.sd.replace(location=None))
        for own in values
    ]

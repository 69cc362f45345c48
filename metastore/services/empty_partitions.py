"""Partitions that got no row: they are added, empty, once their time has passed, where a table wants them."""

from collections.abc import Sequence

import structlog

from metastore.services import objects
from metastore.services.commits import properties_of
from metastore.services.partition_names import make_name
from metastore.services.partition_time import PartitionClock
from metastore.services.partitions import PartitionService
from metastore.services.readiness_properties import CommitMode, ReadinessProperties
from metastore.store import Database, partitions, readiness, tables
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.partitions import Selection
from metastore.store.readiness import Readiness
from metastore.store.tables import TableRow
from metastore.wire.hive import Partition

MAX_EMPTY = 1_000
"""At most so many are added at a time."""

EXAMPLES = 100
"""So many partitions are looked at for one whose values say a time."""

log = structlog.get_logger(__name__)


class EmptyPartitions:
    """Fills the gaps between a table's partitions, and what comes after the last."""

    def __init__(self, database: Database, partitions: PartitionService) -> None:
        self._database = database
        self._partitions = partitions

    def add(self, table_id: int) -> bool:
        """Adds those of a table that are missing although their time has passed, if the table wants them.

        Whether there are more to be added: at most MAX_EMPTY are at a time. Raises what adding partitions does.
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
                # An example's values have a form in which the next one's can't be said: dt=2024-01-31, hourly.
                log.warning("empty partitions can't be added", table=str(row.name), error=str(error))
                return False
            if not passed:
                return False
            keys = objects.key_names(objects.table_of(row))
            named = {make_name(keys, values): values for values in passed}
            existing = partitions.existing(tx, table_id, list(named))
        missing = [values for name, values in named.items() if name not in existing]
        if missing:
            database, table, catalog = row.name.database, row.name.table, row.name.catalog
            self._partitions.add(database, table, _empty(row, missing), {}, if_not_exists=True, catalog=catalog)
        last = clock.start(passed[-1])
        assert last is not None
        with self._database.write() as tx:
            if tables.find_by_id(tx, table_id, Hold.SHARED) is not None:
                held = readiness.hold(tx, table_id)
                readiness.put(tx, table_id, held._replace(filled_until=max(last, held.filled_until or last)))
        return more


def _passed(
    tx: Transaction, row: TableRow, properties: ReadinessProperties, clock: PartitionClock, state: Readiness
) -> tuple[list[list[str]], bool]:
    """Values of partitions that have passed and weren't looked at yet, be they there or not; whether there are more.

    The first time they begin with the first partition, but not with one that lies MAX_EMPTY partitions back: the time
    of a single wrong row. Raises ValueError if their values can't be said.
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
    owner = objects.table_of(row)
    assert owner.sd is not None
    return [
        Partition(values=own, dbName=owner.dbName, tableName=owner.tableName, sd=owner.sd.replace(location=None))
        for own in values
    ]

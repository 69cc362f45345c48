"""Routes rows to partitions. Rows for a partition that is ready already follow the table's policy for late rows."""

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.formats.partition_names import make_name
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import Route, TableReference
from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import LATE_ROWS, LatePolicy, ReadinessProperties
from metastore.services.commit_flag.transitions import properties_of
from metastore.services.instant_rules.keyed_tables import is_keyed, is_table_wide
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.partition.reads import values_of_existing
from metastore.services.readiness.partition_states import exact_name
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.commit_flag import readiness
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.table.tables import TableRow

MAX_STEPS = 10_000
"""Partitions that are searched for one that takes late rows."""

_STEPS_AT_ONCE = 200


def follows(row: TableRow, properties: ReadinessProperties) -> bool:
    """Whether rows for ready partitions follow `partition.late-rows`.

    A keyed table without that property takes them: an upsert changes the row of its key, wherever that is.
    """
    partitioned = bool(hive_objects.key_names_of(row))
    keyed = is_keyed(row) and LATE_ROWS not in row.parameters
    return partitioned and not keyed and properties.mode is not CommitMode.NONE


def _check_key(row: TableRow, properties: ReadinessProperties) -> None:
    """Raises InvalidOperationException for a rule that a key doesn't go together with."""
    if is_table_wide(row) and properties.late_rows is LatePolicy.DROP:
        raise InvalidOperationException(
            f"rows of {row.name} may move from one partition to another, so that late ones can't be left out: set"
            f" {LATE_ROWS} to {LatePolicy.REOPEN}"
        )


class Routes:
    """Tells writers of streams where their rows go."""

    def __init__(self, database: Database, tables: TableService) -> None:
        self._database = database
        self._tables = tables

    def route(self, table: TableReference, names: Sequence[str]) -> list[Route]:
        """Says where rows for partitions go, in the order of the names. The partitions needn't exist.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        given.table_name(table.database, table.table, table.catalog)  # rejects a decorated, read-only name
        with self._database.read() as tx:
            row = self._tables.row_of(tx, table)
            properties = properties_of(row)
            keys = hive_objects.key_names_of(row)
            if not keys:
                raise InvalidOperationException(f"{row.name} has no partitions, between which rows could be routed")
            exact = [exact_name(row, keys, name) for name in names]
            if not follows(row, properties):
                return [Route(name, name, False, "write") for name in exact]
            _check_key(row, properties)
            router = Router(tx, row, properties, exact)
            return [router.route(name, values_of_existing(name, keys)) for name in exact]


class Router:
    """Routes the rows of one table, by its state in one transaction."""

    def __init__(
        self, tx: Transaction, row: TableRow, properties: ReadinessProperties, expected: Sequence[str]
    ) -> None:
        """`expected`: the names of all partitions that `route` will be called for."""
        self._tx = tx
        self._row = row
        self._policy = properties.late_rows
        self._delay = properties.delay
        self._clock = PartitionClock(properties)
        self._keys = hive_objects.key_names(hive_objects.table_of(row))
        self._open = {each.name: each.values for each in readiness.open_partitions(tx, row.id)}
        by_event_time = properties.mode is CommitMode.EVENT_TIME
        self._watermark = readiness.get(tx, row.id).watermark if by_event_time else None
        self._existing = partitions.existing(tx, row.id, expected)

    def route(self, name: str, values: Sequence[str]) -> Route:
        """Says where rows for a partition go, given by its name and values.

        Raises InvalidOperationException if no partition takes them.
        """
        if not self._is_closed(name, values, self._existing):
            return Route(name, name, False, "write")
        if self._policy is LatePolicy.NEXT:
            return Route(name, self._next(values), True, "next")
        if self._policy is LatePolicy.REOPEN and name not in self._existing:
            return Route(name, name, True, "write")  # it is late, but nobody has seen it as ready
        return Route(name, name, True, self._policy)

    def _is_closed(self, name: str, values: Sequence[str], existing: set[str]) -> bool:
        """Whether a partition takes no more rows: it is ready, or doesn't exist and its time has passed."""
        if name in self._open:
            return False
        if name in existing:
            return True
        return self._watermark is not None and self._clock.is_due(values, self._watermark)

    def _next(self, values: Sequence[str]) -> str:
        """The earliest partition after a closed one that still takes rows."""
        start = self._clock.start(values)
        if start is None:
            raise InvalidOperationException(
                f"{self._row.name}: rows for the ready partition {list(values)} can't go to the next one, since no time"
                " can be read from its values: set partition.time-extractor.timestamp-pattern, or partition.late-rows"
            )
        others = self._others(values)
        open_later = min(
            (each for each in self._open_by_start if each[0] > start and self._others(self._open[each[1]]) == others),
            default=None,
        )
        try:
            upcoming = itertools.islice(self._after(start, values), MAX_STEPS)
            # Mostly it is one of the first.
            for size in itertools.chain([2], itertools.repeat(_STEPS_AT_ONCE)):
                chunk = list(itertools.islice(upcoming, size))
                if not chunk:
                    break
                names = [make_name(self._keys, each) for each in chunk]
                existing = partitions.existing(self._tx, self._row.id, names)
                for name, each in zip(names, chunk, strict=True):
                    if open_later is not None and open_later[0] <= (self._clock.start(each) or 0):
                        return open_later[1]
                    if not self._is_closed(name, each, existing):
                        return name
        except ValueError as error:
            raise InvalidOperationException(f"{self._row.name}: late rows have nowhere to go: {error}") from None
        raise InvalidOperationException(
            f"{self._row.name}: late rows have nowhere to go: the partitions after {list(values)} are all ready"
        )

    def _after(self, start: int, values: Sequence[str]) -> Iterator[list[str]]:
        """The values of the partitions after one, in order, without those that are surely closed."""
        current = self._clock.next(values)
        if self._watermark is not None and self._watermark - self._delay > start:
            passed = self._clock.values_at(self._watermark - self._delay, like=values)
            current = max(current, passed, key=lambda each: self._clock.start(each) or 0)
        while True:
            yield current
            try:
                current = self._clock.next(current)
            except ValueError:  # the values can't express a later time
                return

    @cached_property
    def _open_by_start(self) -> list[tuple[int, str]]:
        starts = ((self._clock.start(values), name) for name, values in self._open.items())
        return [(start, name) for start, name in starts if start is not None]

    def _others(self, values: Sequence[str]) -> list[str]:
        """The values of the keys that aren't part of the time."""
        return [value for position, value in enumerate(values) if position not in self._clock.positions]

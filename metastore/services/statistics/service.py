"""Hive's calls for column statistics: store, merge, read, aggregate and delete them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum, auto

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary, splice
from lake.protocol.events.types import EventType
from lake.protocol.formats import partition_names
from lake.protocol.hive import (
    AggrStats,
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    InvalidInputException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
)
from metastore.services.events.recorder import Events
from metastore.services.model import hive_objects, statistics_state
from metastore.services.model import names as given
from metastore.services.model.visibility import Scope, readable
from metastore.services.statistics import column_values, kept_statistics
from metastore.services.statistics.aggregate import ColumnAggregate
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.statistics import statistics
from metastore.store.statistics.statistics import KeptStatistics, NewStatistics
from metastore.store.table import tables
from metastore.store.table.tables import TableRow

DEFAULT_ENGINE = "hive"

# Statistics by the name of their column.
_Columns = dict[str, ColumnStatisticsObj]


class Merging(Enum):
    """How new statistics combine with existing ones."""

    NONE = auto()
    """New statistics replace existing ones."""
    PRESENT = auto()
    """New statistics are merged with existing ones, if there are any. As in Hive 2.3."""
    ACCURATE = auto()
    """New statistics are merged if the table or partition is marked as having accurate ones. As in Hive 4.

    Otherwise they are discarded, because they would describe only a part of the data."""


class StatisticsService:
    """Hive's calls for column statistics.

    Each change is one transaction, which locks the table's row: no statistics outlive their table or partition. Each
    engine has its own statistics; the default engine is `hive`. Readers see the statistics of visible partitions,
    while writers may use every partition by its exact name.
    """

    def __init__(self, database: Database, events: Events) -> None:
        self._events = events
        self._database = database

    # --- changing ---------------------------------------------------------------------------------------------

    def update_table(self, new: ColumnStatistics, merging: Merging = Merging.NONE, engine: str | None = None) -> None:
        """Keeps statistics of a table's own columns and marks them accurate.

        Raises NoSuchObjectException (no such table), MetaException (no such column), InvalidObjectException.
        """
        description = _description(new)
        columns, engine = _checked(new), _engine(new, engine)
        name = given.table_name(description.dbName, description.tableName, description.catName)
        with self._database.write() as tx:
            row = _existing(tables.find(tx, name, RowLock.EXCLUSIVE), name)
            _check_columns(row, columns)
            value = hive_objects.table_of(row)
            assert value.parameters is not None
            old = statistics.of_table(tx, row.id, list(columns), engine)
            kept = _combined(columns, _by_column(old), value.parameters, merging)
            if not kept:
                return
            statistics.put(tx, row.id, _encoded(statistics.OF_TABLE, kept, engine))
            statistics_state.mark_columns(value.parameters, kept)
            self._events.statistics(tx, EventType.UPDATE_STATISTICS, row, [], list(kept))
            tables.change(tx, row.id, row.database_id, hive_objects.table_values(value, row.descriptor_id))

    def update_partitions(
        self, new: Sequence[ColumnStatistics], merging: Merging = Merging.NONE, engine: str | None = None
    ) -> None:
        """Keeps statistics of partitions of one table, all or none, and marks them accurate.

        If a partition comes twice, its statistics are merged, as in Hive 4. Raises InvalidObjectException (no such
        table unless they are to be merged, a name that lacks a key), NoSuchObjectException (no such partition; no such
        table if they are to be merged), MetaException (no such column).
        """
        name = _one_table(new)
        with self._database.write() as tx:
            row = tables.find(tx, name, RowLock.EXCLUSIVE)
            if merging != Merging.NONE:
                row = _existing(row, name)  # what Hive raises where it looks for earlier statistics first
            if row is None:
                raise InvalidObjectException(f"{name} table not found")
            keys = _keys(row)
            by_engine: dict[str, dict[str, _Columns]] = {}
            for one in new:
                partition = _partition_name(_description(one).partName, keys)
                of_partition = by_engine.setdefault(_engine(one, engine), {}).setdefault(partition, {})
                for column, value in _checked(one).items():
                    earlier = of_partition.get(column)
                    of_partition[column] = value if earlier is None else column_values.merged(value, earlier)
            found = _held_partitions(tx, row, {partition for wanted in by_engine.values() for partition in wanted})
            for engine_name, wanted in by_engine.items():
                self._write_partitions(tx, row, found, wanted, merging, engine_name)
            tables.touch(tx, row.id)

    def _write_partitions(
        self,
        tx: Transaction,
        row: TableRow,
        found: Mapping[str, "_HeldPartition"],
        wanted: Mapping[str, _Columns],
        merging: Merging,
        engine: str,
    ) -> None:
        columns = sorted({column for of_partition in wanted.values() for column in of_partition})
        _check_columns(row, columns, _keys(row))  # Hive 4 keeps statistics of a partition's own values, too
        selection = Selection(row.id, names=list(wanted))
        old = {kept.partition: kept for kept in statistics.of_partitions(tx, selection, columns, engine)}
        rows: list[NewStatistics] = []
        changed: list[tuple[int, bytes]] = []
        for name, new in wanted.items():
            partition = found[name]
            kept = _combined(new, _by_column(old.get(name)), partition.parameters, merging)
            if kept:
                rows += _encoded(partition.id, kept, engine)
                changed += partition.marked(kept)
        statistics.put(tx, row.id, rows)
        partitions.change_bodies(tx, changed)
        if rows:
            self._events.statistics(tx, EventType.UPDATE_STATISTICS, row, sorted(wanted), columns)

    def set_aggregated(
        self, new: Sequence[ColumnStatistics] | None, merging: Merging = Merging.NONE, engine: str | None = None
    ) -> None:
        """Keeps statistics of one table, or of partitions of one; the first ones' description says which.

        Raises as `update_table` and `update_partitions` do.
        """
        if not new:
            return
        if not _description(new[0]).isTblLevel:
            self.update_partitions(new, merging, engine)
        elif len(new) == 1:
            self.update_table(new[0], merging, engine)
        else:
            raise MetaException(f"Expecting only 1 ColumnStatistics for table's column stats, but find {len(new)}")

    def delete_of_table(
        self,
        database: str | None,
        table: str | None,
        column: str | None,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> None:
        """Removes a table's own statistics of one column, or of all if none is named; of all engines if none is named.

        Unlike in Hive they also stop to count as accurate: the next merge would take a part for the whole.
        Raises NoSuchObjectException if there is no such table, or there are none of the named column.
        """
        if table is None:
            raise InvalidInputException("Table name is null.")
        name, column = given.table_name(database, table, catalog), column and column.lower()
        with self._database.write() as tx:
            row = tables.find(tx, name, RowLock.EXCLUSIVE)
            if row is None:
                raise NoSuchObjectException(f"Table {name.table}  for which stats deletion is requested doesn't exist")
            removed = statistics.remove(tx, row.id, [statistics.OF_TABLE], _one(column), engine)
            if not removed:
                if column is None:
                    return
                raise NoSuchObjectException(
                    f"Column stats doesn't exist for db={name.database} table={name.table} col={column}"
                )
            self._unmark_table(tx, row, [column] if column else [], engine)

    def delete_of_partition(
        self,
        database: str | None,
        table: str | None,
        partition: str | None,
        column: str | None,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> None:
        """Removes a partition's statistics, as `delete_of_table` does a table's.

        Raises NoSuchObjectException (no such partition, no statistics of the column), InvalidObjectException (no such
        table, a name that lacks a key), MetaException.
        """
        name, column = given.table_name(database, table, catalog), column and column.lower()
        with self._database.write() as tx:
            row = tables.find(tx, name, RowLock.EXCLUSIVE)
            if row is None:
                raise InvalidObjectException(f"{name} table not found")
            wanted = _partition_name(partition, _keys(row))
            found = {p.name: p for p in partitions.rows(tx, Selection(row.id, names=[wanted]), lock=True)}
            if wanted not in found:
                raise NoSuchObjectException(f"Partition {wanted} for which stats deletion is requested doesn't exist")
            held = _HeldPartition(found[wanted])
            removed = statistics.remove(tx, row.id, [held.id], _one(column), engine)
            if not removed:
                if column is None:
                    return
                raise NoSuchObjectException(
                    f"Column stats doesn't exist for db={name.database} table={name.table}"
                    f" partition={wanted} col={column}"
                )
            self._events.statistics(tx, EventType.DELETE_STATISTICS, row, [wanted], [column] if column else [])
            if engine in (None, DEFAULT_ENGINE):
                partitions.change_bodies(tx, held.unmarked(_named(column, held.parameters)))
            tables.touch(tx, row.id)

    def delete(
        self,
        database: str | None,
        table: str | None,
        *,
        names: Sequence[str],
        columns: Sequence[str],
        of_table: bool,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> None:
        """Removes statistics of one engine. If there are none, nothing happens.

        `columns`: empty means all columns. `names`: the partitions; empty means all. `of_table`: removes the
        table's own statistics instead. A table without partition keys has no others.

        Raises NoSuchObjectException (no such table or partition), MetaException for a table with transactions, whose
        statistics belong to what was written when they were gathered; InvalidObjectException for a name that lacks a
        key.
        """
        name, wanted, engine = given.table_name(database, table, catalog), _lowered(columns), engine or DEFAULT_ENGINE
        with self._database.write() as tx:
            row = _existing(tables.find(tx, name, RowLock.EXCLUSIVE), name)
            if hive_objects.is_true(row.parameters.get("transactional")):
                raise MetaException(f"{name} is transactional: this call can't delete its statistics")
            keys = _keys(row)
            if of_table or not keys:
                if statistics.remove(tx, row.id, [statistics.OF_TABLE], wanted or None, engine):
                    self._unmark_table(tx, row, wanted, engine)
                return
            selected = [_partition_name(each, keys) for each in names]
            if not names:
                selected = statistics.partitions_with(tx, row.id, wanted or None, engine)
            held = _held_partitions(tx, row, set(selected))
            if not statistics.remove(tx, row.id, [one.id for one in held.values()], wanted or None, engine):
                return
            self._events.statistics(tx, EventType.DELETE_STATISTICS, row, sorted(held), wanted)
            if engine == DEFAULT_ENGINE:
                partitions.change_bodies(
                    tx,
                    [
                        change
                        for one in held.values()
                        for change in one.unmarked(wanted or statistics_state.accurate_columns(one.parameters))
                    ],
                )
            tables.touch(tx, row.id)

    def _unmark_table(self, tx: Transaction, row: TableRow, columns: Sequence[str], engine: str | None) -> None:
        """Statistics of a table's own columns are gone, of all if none is named."""
        value = hive_objects.table_of(row)
        assert value.parameters is not None
        self._events.statistics(tx, EventType.DELETE_STATISTICS, row, [], columns)
        if engine in (None, DEFAULT_ENGINE):
            unmarked = columns or statistics_state.accurate_columns(value.parameters)
            statistics_state.unmark_columns(value.parameters, unmarked)
        tables.change(tx, row.id, row.database_id, hive_objects.table_values(value, row.descriptor_id))

    # --- reading ----------------------------------------------------------------------------------------------

    def of_table(
        self,
        database: str | None,
        table: str | None,
        columns: Sequence[str] | None,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> ColumnStatistics | None:
        """A table's own statistics of the given columns, in their order. Columns without statistics are left out.

        Returns None if no column has any.

        Raises NoSuchObjectException if there is no such table.
        """
        wanted, engine = _lowered(columns), engine or DEFAULT_ENGINE
        with self._database.read() as tx:
            row = self._row(tx, database, table, catalog)
            kept = statistics.of_table(tx, row.id, wanted, engine)
        return kept and _answer(row.name, kept, engine)

    def of_partitions(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        names: Sequence[str] | None,
        columns: Sequence[str] | None,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> dict[str, ColumnStatistics]:
        """Statistics of some columns of some partitions, by the partitions' names; what has none is left out.

        Raises NoSuchObjectException if there is no such table, MetaException for an empty name.
        """
        engine = engine or DEFAULT_ENGINE
        selected = self._select_partitions(scope, database, table, names, columns, engine, catalog)
        with selected as (row, kept):
            return {one.partition: _answer(row.name, one, engine) for one in kept}

    def encoded_of_partitions(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        names: Sequence[str] | None,
        columns: Sequence[str] | None,
        engine: str | None = None,
        catalog: str | None = None,
        *,
        of_2_3: bool = False,
    ) -> list[tuple[str, int, bytes]]:
        """As `of_partitions`, encoded: for each partition (name, number of columns, encoded statistics).

        `of_2_3`: in the form that Hive 2.3 knows. Most stored bytes are returned without being decoded.
        """
        selected = self._select_partitions(scope, database, table, names, columns, engine or DEFAULT_ENGINE, catalog)
        with selected as (_, kept):
            return [(one.partition, one.columns, _encoded_answer(one, of_2_3=of_2_3)) for one in kept]

    @contextmanager
    def _select_partitions(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        names: Sequence[str] | None,
        columns: Sequence[str] | None,
        engine: str,
        catalog: str | None,
    ) -> Iterator[tuple[TableRow, Iterator[KeptStatistics]]]:
        """The table, and what is kept for partitions of it, which is read while the block consumes it."""
        with self._database.read() as tx:
            row = self._row(tx, database, table, catalog)
            selection = readable(row, scope, names=_partition_names(names, row))
            yield row, statistics.of_partitions(tx, selection, _lowered(columns), engine)

    def aggregated(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        names: Sequence[str] | None,
        columns: Sequence[str] | None,
        engine: str | None = None,
        catalog: str | None = None,
    ) -> AggrStats:
        """Statistics of some columns over all of some partitions, extrapolated to those that have none.

        `partsFound` is the number of partitions that have statistics of every column asked for.
        Raises NoSuchObjectException if there is no such table, MetaException for an empty name.
        """
        wanted = _lowered(columns)
        complete = 0
        gathered: dict[str, ColumnAggregate] = {}
        with self._database.read() as tx:
            row = self._row(tx, database, table, catalog)
            places = {name: place for place, name in enumerate(_partition_names(names, row))}
            selection = readable(row, scope, names=list(places))
            for kept in statistics.of_partitions(tx, selection, wanted, engine or DEFAULT_ENGINE):
                complete += kept.columns == len(wanted)
                place = places[kept.partition]
                for value in kept_statistics.decoded_in_part(kept.columns, kept.bodies):
                    column = value.colName or ""
                    if column not in gathered:
                        gathered[column] = ColumnAggregate(value)
                    gathered[column].take(value, place)
        results = [gathered[column].result(len(places)) for column in wanted if column in gathered]
        return AggrStats(colStats=results, partsFound=complete)

    def _row(self, tx: Transaction, database: str | None, table: str | None, catalog: str | None) -> TableRow:
        name = given.decorated_name(database, table, catalog)
        return replace(_existing(tables.find(tx, given.base(name)), name), name=name)


class _HeldPartition:
    """A partition that is held for a change of its parameters."""

    def __init__(self, row: PartitionRow) -> None:
        self.id = row.id
        self._value = binary.decode_preserving(Partition, row.stored.body + binary.STOP)
        self._value.parameters = self.parameters = dict(self._value.parameters or {})

    def marked(self, columns: Iterable[str]) -> list[tuple[int, bytes]]:
        """What to write so that the statistics of these columns count as accurate."""
        before = dict(self.parameters)
        statistics_state.mark_columns(self.parameters, columns)
        return self._change(before)

    def unmarked(self, columns: Iterable[str]) -> list[tuple[int, bytes]]:
        """What to write so that the statistics of these columns don't count as accurate any more."""
        before = dict(self.parameters)
        statistics_state.unmark_columns(self.parameters, columns)
        return self._change(before)

    def _change(self, before: Mapping[str, str]) -> list[tuple[int, bytes]]:
        return [] if self.parameters == before else [(self.id, splice.partition_body(self._value))]


def _held_partitions(tx: Transaction, row: TableRow, names: Collection[str]) -> dict[str, _HeldPartition]:
    """The named partitions, held until the transaction ends. Raises NoSuchObjectException unless all are there."""
    found = {p.name: _HeldPartition(p) for p in partitions.rows(tx, Selection(row.id, names=list(names)), lock=True)}
    if len(found) < len(names):
        raise NoSuchObjectException("Partition for which stats is gathered doesn't exist.")
    return found


# --- what clients send ----------------------------------------------------------------------------------------


def _description(statistics: ColumnStatistics) -> ColumnStatisticsDesc:
    if statistics.statsDesc is None:
        raise InvalidObjectException("Invalid column stats object: it doesn't say what it describes")
    return statistics.statsDesc


def _engine(statistics: ColumnStatistics, engine: str | None) -> str:
    return statistics.engine or engine or DEFAULT_ENGINE


def _checked(statistics: ColumnStatistics) -> _Columns:
    """The statistics by column, in the form in which they are kept."""
    checked = map(column_values.checked, statistics.statsObj or ())
    return {value.colName or "": value for value in checked}


def _one_table(new: Sequence[ColumnStatistics]) -> TableName:
    descriptions = map(_description, new)
    found = {given.table_name(d.dbName, d.tableName, d.catName) for d in descriptions}
    if len(found) != 1:
        raise MetaException(f"Expecting statistics of partitions of one table, but find {len(found)} tables")
    return found.pop()


def _lowered(columns: Sequence[str] | None) -> list[str]:
    """Column names in lower case, each once."""
    return list(dict.fromkeys(column.lower() for column in columns or ()))


def _one(column: str | None) -> list[str] | None:
    return None if column is None else [column]


def _named(column: str | None, parameters: Mapping[str, str]) -> Collection[str]:
    return statistics_state.accurate_columns(parameters) if column is None else [column]


def _partition_name(name: str | None, keys: Sequence[str]) -> str:
    """A partition's name as it is kept, keys in lower case and in the table's order.

    Raises InvalidObjectException if a key is missing, MetaException if the name is none.
    """
    values = {key.lower(): value for key, value in partition_names.parse_name(name).items()}
    if not values:
        raise MetaException("Partition name is invalid. ")
    for key in keys:
        if key not in values:
            raise InvalidObjectException(f"incomplete partition name - missing {key}")
    return partition_names.make_name(keys, [values[key] for key in keys])


def _partition_names(names: Sequence[str] | None, row: TableRow) -> list[str]:
    """Partitions' names as they are kept, each once; one that is no partition's stays as it is, and finds nothing.

    Raises MetaException for an empty name.
    """
    keys = _keys(row)
    return list(dict.fromkeys(_name_to_find(name, keys) for name in names or ()))


def _name_to_find(name: str | None, keys: Sequence[str]) -> str:
    values = {key.lower(): value for key, value in partition_names.parse_name(name).items()}
    if not keys or any(key not in values for key in keys):
        return name or ""
    return partition_names.make_name(keys, [values[key] for key in keys])


# --- what is kept ---------------------------------------------------------------------------------------------


def _existing(row: TableRow | None, name: TableName) -> TableRow:
    if row is None:
        raise NoSuchObjectException(f"Specified database/table does not exist : {name}")
    return row


def _keys(row: TableRow) -> list[str]:
    return [field.name or "" for field in hive_objects.table_of(row).partitionKeys or ()]


def _check_columns(row: TableRow, columns: Iterable[str], keys: Iterable[str] = ()) -> None:
    """Raises MetaException for a column that is neither the table's nor one of its `keys` that may have statistics."""
    descriptor = splice.descriptor(row.descriptor, None)
    own = {field.name for field in descriptor.cols or ()}.union(keys)
    for column in columns:
        if column not in own:
            raise MetaException(
                f"Column {column} doesn't exist in table {row.name.table} in database {row.name.database}"
            )


def _combined(
    new: _Columns, old: Mapping[str, ColumnStatisticsObj], parameters: Mapping[str, str], merging: Merging
) -> _Columns:
    """What to keep of new statistics where there are old ones of some columns."""
    if merging is Merging.ACCURATE:
        accurate = statistics_state.accurate_columns(parameters)
        new = {column: value for column, value in new.items() if column in accurate}
    combine = column_values.completed if merging is Merging.NONE else column_values.merged
    return {column: combine(value, old[column]) if column in old else value for column, value in new.items()}


def _encoded(partition_id: int, columns: _Columns, engine: str) -> list[NewStatistics]:
    now = now_seconds()
    return [NewStatistics(partition_id, column, engine, now, binary.encode(value)) for column, value in columns.items()]


def _by_column(kept: KeptStatistics | None) -> _Columns:
    if kept is None:
        return {}
    return {value.colName or "": value for value in kept_statistics.decoded(kept.columns, kept.bodies)}


def _answer(name: TableName, kept: KeptStatistics, engine: str) -> ColumnStatistics:
    """Statistics as clients get them."""
    return ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(
            isTblLevel=not kept.partition,
            dbName=name.database,
            tableName=name.table,
            partName=kept.partition or None,
            lastAnalyzed=kept.last_analyzed,
            catName=name.catalog,
        ),
        statsObj=_without_sketches(kept),
        engine=engine,
    )


def _encoded_answer(kept: KeptStatistics, *, of_2_3: bool) -> bytes:
    """Statistics as clients get them, encoded."""
    changes = kept_statistics.may_hold_sketches(kept.bodies)
    if not changes and not (of_2_3 and kept_statistics.may_hold_timestamps(kept.bodies)):
        return kept.bodies
    values = _without_sketches(kept)
    return b"".join([binary.encode(column_values.as_of_2_3(value) if of_2_3 else value) for value in values])


def _without_sketches(kept: KeptStatistics) -> list[ColumnStatisticsObj]:
    return list(map(column_values.without_sketch, kept_statistics.decoded(kept.columns, kept.bodies)))

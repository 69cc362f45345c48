"""A plain model of keyed tables: one Python dictionary, one record at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lake.protocol.formats.keyed_table import DELETED, INSTANT, Aggregate, KeyedTable, MergeEngine

Record = Mapping[str, Any]
"""Values by column; with DELETED true, a delete."""

Key = tuple[Any, ...]


class Model:
    """The rows of a table, to which records are applied in their order.

    `rows`: the values of the columns by key. `instants`: by key, the instant that last changed the row.
    """

    def __init__(self, table: KeyedTable, columns: Sequence[str]) -> None:
        """`columns`: all of the data, those of the key among them."""
        self.table = table
        self.columns = columns
        self.rows: dict[Key, dict[str, Any]] = {}
        self.instants: dict[Key, str] = {}
        self.sequences: dict[Key, Key] = {}

    def apply(self, records: Iterable[Record], instant: str) -> None:
        for record in records:
            key = key_of(self.table, record)
            before = self.rows.get(key)
            if record.get(DELETED):
                self._delete(key, record)
            else:
                self._put(key, {name: record.get(name) for name in self.columns})
            if self.rows.get(key) != before:
                self.instants[key] = instant

    def _delete(self, key: Key, record: Record) -> None:
        table = self.table
        if table.ignore_delete:
            return
        if table.sequence:
            if record[table.sequence[0]] is None:  # by key alone: what is there is deleted
                if key not in self.rows:
                    return
            else:
                given = tuple(record[name] for name in table.sequence)
                if key in self.sequences and given < self.sequences[key]:
                    return
                self.sequences[key] = given
        self.rows.pop(key, None)

    def _put(self, key: Key, values: dict[str, Any]) -> None:
        table = self.table
        there = self.rows.get(key)
        match table.engine:
            case MergeEngine.DEDUPLICATE:
                if table.sequence:
                    given = tuple(values[name] for name in table.sequence)
                    if key in self.sequences and given < self.sequences[key]:
                        return
                    self.sequences[key] = given
                self.rows[key] = values
            case MergeEngine.FIRST_ROW:
                self.rows.setdefault(key, values)
            case MergeEngine.PARTIAL_UPDATE:
                self.rows[key] = self._updated(there or dict.fromkeys(self.columns), values)
            case MergeEngine.AGGREGATION:
                self.rows[key] = values if there is None else self._aggregated(there, values)

    def _updated(self, there: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(there)
        grouped = set()
        for version, members in self.table.sequence_groups:
            grouped |= {version, *members}
            given = values[version]
            if given is not None and (there[version] is None or given >= there[version]):
                found.update({name: values[name] for name in (version, *members)})
        found.update({name: value for name, value in values.items() if value is not None and name not in grouped})
        return found

    def _aggregated(self, there: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        functions = dict(self.table.aggregates)
        return {
            name: values[name]
            if name in (*self.table.key, *self.table.partition_columns)
            else _aggregate(functions.get(name, Aggregate.LAST_NON_NULL_VALUE), there[name], values[name])
            for name in self.columns
        }


def _aggregate(function: Aggregate, old: Any, new: Any) -> Any:
    match function:
        case Aggregate.LAST_VALUE:
            return new
        case Aggregate.FIRST_VALUE:
            return old
    if old is None or new is None:
        return new if old is None else old
    match function:
        case Aggregate.SUM:
            return old + new
        case Aggregate.MIN:
            return min(old, new)
        case Aggregate.MAX:
            return max(old, new)
        case Aggregate.BOOL_AND:
            return old and new
        case Aggregate.BOOL_OR:
            return old or new
        case Aggregate.LAST_NON_NULL_VALUE:
            return new
        case Aggregate.FIRST_NON_NULL_VALUE:
            return old
    raise AssertionError(function)


def key_of(table: KeyedTable, record: Record) -> Key:
    names = table.key if table.is_table_wide else (*table.key, *table.partition_columns)
    return tuple(record[name] for name in names)


def rows_by_key(table: KeyedTable, rows: pa.Table) -> dict[Key, dict[str, Any]]:
    """The rows of an Arrow table by their keys. Fails if a key is there twice."""
    found = {}
    for row in rows.to_pylist():
        key = key_of(table, row)
        assert key not in found, f"{key} is there twice"
        found[key] = {name: value for name, value in row.items() if name not in (INSTANT, DELETED)}
    return found


def instants_by_key(table: KeyedTable, rows: pa.Table) -> dict[Key, str]:
    """The instants that last changed the rows."""
    return {key_of(table, row): row[INSTANT] for row in rows.to_pylist()}

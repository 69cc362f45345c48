"""The rows of a table as plain models have them, and as its readers find them."""

import copy
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from lake.protocol.formats.keyed_table import KeyedTable
from lake.tables.lake import LakeTable
from tests.lake.tables.keyed.model import Key, Model, Record, key_of, rows_by_key
from tests.support.target import local_path

#: Columns that every table has; others are added, renamed and dropped.
NAMES = ["id", "v", "n", "dt"]
TYPES = {"id": pa.int64(), "n": pa.int32(), "dt": pa.int32()}

State = dict[Any, Any]
"""Rows that can be compared: of a keyed table by key, of another how often each is there."""


class Keyed:
    """The rows of a keyed table."""

    def __init__(self, table: KeyedTable, columns: Sequence[str]) -> None:
        self.model = Model(table, list(columns))

    @property
    def rows(self) -> dict[Key, dict[str, Any]]:
        return self.model.rows

    @property
    def state(self) -> State:
        return self.model.rows

    @property
    def columns(self) -> list[str]:
        return list(self.model.columns)

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def key(self, record: Record) -> Key:
        return key_of(self.model.table, record)

    def put(self, records: Iterable[Record]) -> Self:
        """The rows after some more were written."""
        found = self.copy()
        found.model.apply(records, "")
        return found

    def without(self, holds: Any) -> Self:
        """The rows without those for which `holds`, whose deletes nobody remembers."""
        found = self.copy()
        named = [*self.model.table.key, *self.model.table.partition_columns]
        for key in {*found.rows, *found.model.sequences}:
            if holds(found.rows.get(key) or dict(zip(named, key, strict=False))):
                found.rows.pop(key, None)
                found.model.sequences.pop(key, None)
        return found

    def change_columns(self, before: str | None, after: str | None) -> None:
        """A column is renamed; None in place of one of the names: it is dropped, or added."""
        self.model.columns = _changed(self.columns, before, after)
        for key, row in self.rows.items():
            self.rows[key] = _row_changed(row, before, after)

    @staticmethod
    def changed_state(state: State, before: str | None, after: str | None) -> State:
        return {key: _row_changed(row, before, after) for key, row in state.items()}

    def read(self, lake: LakeTable, position: int) -> State:
        """What the Arrow reader finds at a position."""
        return rows_by_key(self.model.table, lake.scan(as_of=position).to_arrow().select(self.model.columns))

    def listed(self, state: State) -> list[list[Any]]:
        """A state as Spark's rows, in the order of `sorted_rows`."""
        return sorted_rows([[row[name] for name in self.model.columns] for row in state.values()])


class Plain:
    """The rows of a table without a key: a row may be there several times."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self.records: list[dict[str, Any]] = []

    @property
    def state(self) -> State:
        return Counter(self._tuple(each) for each in self.records)

    def _tuple(self, row: Record) -> tuple[Hashable, ...]:
        return tuple(row.get(name) for name in self.columns)

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def put(self, records: Iterable[Record]) -> Self:
        found = self.copy()
        found.records += [dict(each) for each in records]
        return found

    def without(self, holds: Any) -> Self:
        found = self.copy()
        found.records = [each for each in self.records if not holds(each)]
        return found

    def change_columns(self, before: str | None, after: str | None) -> None:
        assert before is None, "tables without a key keep their columns"
        self.columns = _changed(self.columns, before, after)

    def changed_state(self, state: State, before: str | None, after: str | None) -> State:
        names = [name for name in self.columns if name != after]
        rows = [dict(zip(names, row, strict=True)) for row in Counter(state).elements()]
        return Counter(self._tuple(each) for each in rows)

    def read(self, lake: LakeTable, position: int) -> State:
        """The rows of the files of the snapshot at a position."""
        place = local_path(lake.location())
        found: Counter[tuple[Hashable, ...]] = Counter()
        for file in lake.snapshot(position, include_uncommitted=True):
            rows = pq.ParquetFile(place / file.path).read().to_pylist()
            assert len(rows) == file.rows
            partition = {"dt": int(file.partition.partition("=")[2])} if file.partition else {}
            found.update(self._tuple({**each, **partition}) for each in rows)
        return found

    def listed(self, state: State) -> list[list[Any]]:
        return sorted_rows([list(row) for row in Counter(state).elements()])


def sorted_rows(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return sorted((list(row) for row in rows), key=repr)


def _changed(names: Sequence[str], before: str | None, after: str | None) -> list[str]:
    """The partition's column stays last, new ones come before it."""
    if before is None:
        assert after is not None
        return [*names[:-1], after, names[-1]]
    return [after if name == before else name for name in names if name != before or after is not None]  # type: ignore[misc]


def _row_changed(row: Record, before: str | None, after: str | None) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name != before}
    if after is not None:
        found[after] = None if before is None else row[before]
    return found

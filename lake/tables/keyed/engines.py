"""Merge engines: what becomes of the versions of each key. Versions are applied in their order.

State and versions are numpy arrays, indexed by the number of a key. A value of the state is the number of the row that
it was taken from, so that values of all types are moved by Arrow alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import DELETED, INSTANT, Aggregate, KeyedTable, MergeEngine
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.versions import NONE, Indices, Mask, Versions, same_values

_MARKS = (INSTANT, DELETED)
_WIDE = 60  # digits


class Merging(ABC):
    """The state of some keys, into which versions are merged.

    `keys`, wherever it is a parameter, are the numbers of the keys of `rows`; no key is there twice.
    """

    def __init__(self, table: KeyedTable, versions: Versions, count: int) -> None:
        """`count`: of keys. The state has no rows in the beginning."""
        self.table = table
        self.versions = versions
        self.count = count
        self.values = [name for name in versions.rows.column_names if name not in _MARKS and name not in table.key]
        self.newest = np.full(count, NONE, np.int64)
        """By key, the row that last changed it; it has the key itself, and the instant."""
        self.gone = np.full(count, NONE, np.int64)
        """By key without a row, the version that deleted the row, or the first one that found none to delete."""

    def apply(self, keys: Indices, rows: Indices) -> None:
        """Merges one version of each of some keys."""
        before = self.live()[keys]
        self._apply(keys, rows)
        after = self.live()[keys]
        went = ~after & (before | (self.gone[keys] == NONE))
        self.gone[keys[went]] = rows[went]
        self.gone[keys[after]] = NONE

    @abstractmethod
    def _apply(self, keys: Indices, rows: Indices) -> None:
        """Merges one version of each of some keys into the rows."""

    @abstractmethod
    def live(self) -> Mask:
        """Which keys have a row."""

    @abstractmethod
    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        """The values of a column, beside those of the key, for some keys that have a row."""

    @abstractmethod
    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        """Which of the versions that were merged would have given another result in another order."""


class RowMerging(Merging):
    """Engines for which one version is the row: deduplicate and first-row."""

    def __init__(self, table: KeyedTable, versions: Versions, count: int) -> None:
        super().__init__(table, versions, count)
        self._ranks = versions.ranks(table.sequence)

    def _apply(self, keys: Indices, rows: Indices) -> None:
        old = self.newest[keys]
        if self.table.engine is MergeEngine.FIRST_ROW:
            wins = old == NONE
        else:
            # A later version wins a tie. One with the same content changes nothing; its sequence is the same, too.
            wins = (old == NONE) | (self._ranks[rows] >= self._ranks[old])
            compared = np.flatnonzero((old != NONE) & (self._ranks[rows] == self._ranks[old]))
            wins[compared] = ~self._same(rows[compared], old[compared])
        self.newest[keys[wins]] = rows[wins]

    def live(self) -> Mask:
        found: Mask = self.newest != NONE
        found[found] = ~self.versions.deleted[self.newest[found]]
        return found

    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        return self.versions.take(name, self.newest[keys])

    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        winners = self.newest[keys]
        ties = self._ranks[rows] == self._ranks[winners]
        found: Mask = ties & ~self._same(rows, winners)
        return found

    def _same(self, some: Indices, others: Indices) -> Mask:
        found: Mask = self.versions.same(self.values, some, others)
        found &= self.versions.deleted[some] == self.versions.deleted[others]
        return found


class ColumnMerging(Merging):
    """Engines that merge column by column: partial-update and aggregation."""

    def __init__(self, table: KeyedTable, versions: Versions, count: int) -> None:
        super().__init__(table, versions, count)
        self._present = np.zeros(count, bool)
        self._rules = list(_rules(table, versions, count, self.values))
        self._rule_of = {name: rule for rule in self._rules for name in rule.columns}

    def _apply(self, keys: Indices, rows: Indices) -> None:
        deleted = self.versions.deleted[rows]
        gone = keys[deleted & self._present[keys]]
        self._present[gone] = False
        self.newest[keys[deleted]] = rows[deleted]
        for rule in self._rules:
            rule.clear(gone)
        keys, rows = keys[~deleted], rows[~deleted]
        present = self._present[keys]
        changed: Mask = ~present
        for rule in self._rules:
            changed |= rule.apply(keys, rows, present)
        self.newest[keys[changed]] = rows[changed]
        self._present[keys] = True

    def live(self) -> Mask:
        return self._present

    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        return self._rule_of[name].column(name, keys)

    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        found: Mask = self.versions.deleted[rows] & self._present[keys]
        # A key that is deleted by one version and set by another depends on their order, whichever came last.
        found |= ~self.versions.deleted[rows] & ~self._present[keys]
        for rule in self._rules:
            found |= rule.ambiguous(keys, rows)
        return found


class _Rule(ABC):
    """How columns that change together are merged."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns

    @abstractmethod
    def apply(self, keys: Indices, rows: Indices, present: Mask) -> Mask:
        """Merges versions. `present`: the keys that had a row before. Returns whose values changed."""

    @abstractmethod
    def clear(self, keys: Indices) -> None:
        """Sets the values of some keys to null."""

    @abstractmethod
    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        """The values of some keys."""

    @abstractmethod
    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        """Which versions would have given another result in another order."""


_Chooses = Callable[[Indices, Indices, Mask], Mask]
"""Says which new values are taken: of new rows, the rows of the old values (or NONE), and which keys had a row."""


class _Taken(_Rule):
    """The values are those of one version, as `chooses` decides."""

    def __init__(
        self,
        versions: Versions,
        count: int,
        columns: Sequence[str],
        chooses: _Chooses,
        competes: Callable[[Indices, Indices], Mask] | None,
    ) -> None:
        """`competes`: which versions are as good as the one that was taken (rows, taken rows), so that the order
        decides between them; None if it never does."""
        super().__init__(columns)
        self._versions = versions
        self._taken = np.full(count, NONE, np.int64)
        self._chooses = chooses
        self._competes = competes

    def apply(self, keys: Indices, rows: Indices, present: Mask) -> Mask:
        old = self._taken[keys]
        wins = self._chooses(rows, old, present)
        self._taken[keys[wins]] = rows[wins]
        changed: Mask = wins.copy()
        compared = np.flatnonzero(wins & (old != NONE))
        changed[compared] = ~self._versions.same(self.columns, rows[compared], old[compared])
        return changed

    def clear(self, keys: Indices) -> None:
        self._taken[keys] = NONE

    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        return self._versions.take(name, self._taken[keys])

    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        found: Mask = np.zeros(len(rows), bool)
        taken = self._taken[keys]
        if self._competes is not None:
            some = np.flatnonzero(taken != NONE)
            some = some[self._competes(rows[some], taken[some])]
            found[some] = ~self._versions.same(self.columns, rows[some], taken[some])
        return found


class _Summed(_Rule):
    """The sum of all values that aren't null."""

    def __init__(self, versions: Versions, count: int, name: str) -> None:
        super().__init__([name])
        self._name = name
        self._versions = versions
        self._values = versions.rows.column(name).combine_chunks()
        self._has = versions.has(name)
        self._sums = pa.nulls(count, self._values.type)

    def apply(self, keys: Indices, rows: Indices, present: Mask) -> Mask:
        has = self._has[rows]
        keys, rows = keys[has], rows[has]
        old, new = self._sums.take(pa.array(keys)), self._values.take(pa.array(rows))
        try:
            total = pc.if_else(old.is_null(), new, _added(old, new))
        except pa.ArrowInvalid:
            raise UnfitRows(
                f"the sums of the column {self._name} are out of the range of {self._values.type}"
            ) from None
        changed: Mask = np.zeros(len(has), bool)
        changed[has] = ~same_values(old, total)
        self._put(keys, total)
        return changed

    def clear(self, keys: Indices) -> None:
        self._put(keys, pa.nulls(len(keys), self._values.type))

    def column(self, name: str, keys: Indices) -> pa.ChunkedArray:
        return pa.chunked_array([self._sums.take(pa.array(keys))])

    def ambiguous(self, keys: Indices, rows: Indices) -> Mask:
        return np.zeros(len(rows), bool)

    def _put(self, keys: Indices, values: pa.Array) -> None:
        places = np.arange(len(self._sums))
        places[keys] = len(self._sums) + np.arange(len(keys))
        self._sums = pa.concat_arrays([self._sums, values]).take(pa.array(places))


def _added(some: pa.Array, others: pa.Array) -> pa.Array:
    """Sums of the same type. Raises pa.ArrowInvalid for one out of its range."""
    if not pa.types.is_decimal(some.type):
        return pc.add_checked(some, others)
    wide = pa.decimal256(_WIDE, some.type.scale)  # a sum has one digit more, which the widest type wouldn't take
    return pc.add_checked(some.cast(wide), others.cast(wide)).cast(some.type)


def merging(table: KeyedTable, versions: Versions, count: int) -> Merging:
    """The state of a table's merge engine, for so many keys."""
    if table.engine in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW):
        return RowMerging(table, versions, count)
    return ColumnMerging(table, versions, count)


def _rules(table: KeyedTable, versions: Versions, count: int, columns: Sequence[str]) -> list[_Rule]:
    grouped = {name for version, members in table.sequence_groups for name in (version, *members)}
    found: list[_Rule] = []
    for version, members in table.sequence_groups:
        if version in columns:
            found.append(_group(versions, count, version, [name for name in (version, *members) if name in columns]))
    functions = dict(table.aggregates)
    for name in columns:
        if name not in grouped:
            found.append(_rule(versions, count, name, functions.get(name, Aggregate.LAST_NON_NULL_VALUE)))
    return found


def _group(versions: Versions, count: int, version: str, columns: Sequence[str]) -> _Rule:
    """Columns with a version of their own: the greatest wins, of equal ones the later. None is taken with a null."""
    has, ranks = versions.has(version), versions.ranks([version])

    def chooses(rows: Indices, old: Indices, present: Mask) -> Mask:
        found: Mask = has[rows] & ((old == NONE) | (ranks[rows] >= ranks[old]))
        return found

    def competes(rows: Indices, taken: Indices) -> Mask:
        found: Mask = has[rows] & (ranks[rows] == ranks[taken])
        return found

    return _Taken(versions, count, columns, chooses, competes)


def _rule(versions: Versions, count: int, name: str, function: Aggregate) -> _Rule:
    if function is Aggregate.SUM:
        return _Summed(versions, count, name)
    has = versions.has(name)

    def all_compete(rows: Indices, taken: Indices) -> Mask:
        return np.ones(len(rows), bool)

    def those_with_values_compete(rows: Indices, taken: Indices) -> Mask:
        found: Mask = has[rows]
        return found

    def takes(chooses: _Chooses, competes: Callable[[Indices, Indices], Mask] | None) -> _Rule:
        return _Taken(versions, count, [name], chooses, competes)

    match function:
        case Aggregate.LAST_VALUE:
            return takes(lambda rows, old, present: np.ones(len(rows), bool), all_compete)
        case Aggregate.FIRST_VALUE:
            return takes(lambda rows, old, present: ~present, all_compete)
        case Aggregate.LAST_NON_NULL_VALUE:
            return takes(lambda rows, old, present: has[rows], those_with_values_compete)
        case Aggregate.FIRST_NON_NULL_VALUE:
            return takes(lambda rows, old, present: has[rows] & (old == NONE), those_with_values_compete)
    ranks = versions.ranks([name])
    if function in (Aggregate.MAX, Aggregate.BOOL_OR):
        return takes(lambda rows, old, present: has[rows] & ((old == NONE) | (ranks[rows] > ranks[old])), None)
    return takes(lambda rows, old, present: has[rows] & ((old == NONE) | (ranks[rows] < ranks[old])), None)

"""The net changes between two states of a bucket."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import INSTANT, KeyedTable, MergeEngine
from lake.tables.keyed.versions import Indices, Mask, as_mask, key_codes, same_values

CHANGE_TYPE = "_change_type"


_WHOLE_ROWS = (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW)
"""The engines for which a key's row is one version, whole: its instant says which. Comparing that is enough.

Not so with column families: two updates of different ones may complete in another order than they began.
"""


class ChangeType(StrEnum):
    """What happened to a row. The names are those of Delta Lake's change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"


def net_changes(table: KeyedTable, before: pa.Table, after: pa.Table, deletes: pa.Table) -> pa.Table:
    """The rows that differ between two states, with CHANGE_TYPE, and INSTANT as the instant of the change.

    `before`, `after`: data columns and INSTANT, one row per key. `deletes`: key columns and INSTANT of the deletes
    between the two, in their order; a row that disappeared without one has a null instant. Rows with the same content
    in both are left out. A delete and a pre-image have the old content.
    """
    names = [name for name in before.column_names if name != INSTANT]
    values = [name for name in names if name not in table.key]
    codes = key_codes([before, after, deletes], table.key)
    count = int(codes.max(initial=-1)) + 1
    parts = np.split(codes, np.cumsum([before.num_rows, after.num_rows]))
    old, new, deleted = (_places(part, count) for part in parts)
    both = np.flatnonzero((old >= 0) & (new >= 0))
    if table.engine in _WHOLE_ROWS and not table.families:
        both = both[~_of_one_instant(before, after, old[both], new[both])]
    same = np.ones(len(both), bool)
    for name in values:
        same &= same_values(before.column(name).take(pa.array(old[both])), after.column(name).take(pa.array(new[both])))
    changed = both[~same]
    gone, came = np.flatnonzero((old >= 0) & (new < 0)), np.flatnonzero((old < 0) & (new >= 0))
    changed_by, came_by = (after.column(INSTANT).take(pa.array(new[keys])) for keys in (changed, came))
    gone_by = deletes.column(INSTANT).take(pa.array(deleted[gone], mask=deleted[gone] < 0))
    return pa.concat_tables(
        [
            _of_kind(ChangeType.DELETE, before, names, old[gone], gone_by),
            _of_kind(ChangeType.UPDATE_PREIMAGE, before, names, old[changed], changed_by),
            _of_kind(ChangeType.UPDATE_POSTIMAGE, after, names, new[changed], changed_by),
            _of_kind(ChangeType.INSERT, after, names, new[came], came_by),
        ]
    )


def net_of_changelog(table: KeyedTable, changes: pa.Table) -> pa.Table:
    """What the changes of several commits in one bucket come to, as `net_changes` gives it.

    `changes`: data columns, INSTANT and CHANGE_TYPE, commit by commit in their order; of each commit, pre-images come
    before post-images.
    """
    columns = [name for name in changes.column_names if name != CHANGE_TYPE]
    codes = key_codes([changes], table.key)
    numbers = np.arange(len(codes), dtype=np.int64)
    count = int(codes.max(initial=-1)) + 1
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    first[codes[::-1]] = numbers[::-1]
    last[codes] = numbers
    came = as_mask(pc.is_in(changes.column(CHANGE_TYPE), pa.array([ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE])))
    # A pre-image doesn't know the instant that wrote its row; without one, the contents are compared.
    before = changes.select(columns).take(pa.array(first[~came[first]]))
    instants = before.schema.get_field_index(INSTANT)
    before = before.set_column(instants, before.schema.field(INSTANT), pa.nulls(before.num_rows, pa.string()))
    after = changes.select(columns).take(pa.array(last[came[last]]))
    deletes = changes.select([*table.key, INSTANT]).take(pa.array(last[~came[last]]))
    return net_changes(table, before, after, deletes)


def _of_one_instant(before: pa.Table, after: pa.Table, old: Indices, new: Indices) -> Mask:
    """Which pairs of rows are known to come from the same instant."""
    instants = (side.column(INSTANT).take(pa.array(rows)) for side, rows in ((before, old), (after, new)))
    return as_mask(pc.fill_null(pc.equal(*instants), False))


def _places(codes: Indices, count: int) -> Indices:
    """By key, the last row that has it, or -1."""
    found = np.full(count, -1, np.int64)
    found[codes] = np.arange(len(codes))
    return found


def _of_kind(
    kind: ChangeType, rows: pa.Table, names: Sequence[str], some: Indices, instants: pa.ChunkedArray
) -> pa.Table:
    found = rows.select([*names]).take(pa.array(some))
    found = found.append_column(INSTANT, instants)
    return found.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(str(kind)), len(some)))

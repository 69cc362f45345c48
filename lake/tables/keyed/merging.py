"""Merges the files of one bucket: a base file, then log files in their order, to one row per key."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.protocol.formats.keyed_table import DELETED, INSTANT, KeyedTable
from lake.tables.keyed.engines import Merging, merging
from lake.tables.keyed.versions import Indices, Mask, Versions, key_codes, order_of


class Merged(NamedTuple):
    """The rows of a bucket, sorted by key, with the instant that last changed each; and which keys were deleted.

    `tombstones`: key, sequence, INSTANT and DELETED; empty for tables that need none. `deletes`: key and INSTANT of the
    deletes that removed a row. The instant of both is that of the version that removed the row.
    """

    rows: pa.Table
    tombstones: pa.Table
    deletes: pa.Table


def merge(table: KeyedTable, schema: pa.Schema, versions: Sequence[pa.Table]) -> Merged:
    """Merges versions, in each of which a key has one row at most.

    `schema`: the data columns, which all versions have, and INSTANT; those of log files have DELETED, too. Where a
    later version has the same content as what was there, the earlier instant stays. Raises UnfitRows if a sum is out of
    its type's range.
    """
    names = [*schema.names, INSTANT]
    base, logs = _apart(schema, versions)
    if not any(each.num_rows for each in logs):
        empty = base.schema.empty_table()
        return Merged(base.select(names), _tombstones(table, empty, None), empty.select([*table.key, INSTANT]))
    tables = [base, *(each.select([*names, DELETED]) for each in logs)]
    codes = key_codes(tables, table.key)
    in_base, in_logs = codes[: base.num_rows], codes[base.num_rows :]
    wanted, logged = np.unique(in_logs, return_inverse=True)
    touched = np.isin(in_base, wanted)
    rows = pa.concat_tables([base.filter(pa.array(touched)), *tables[1:]], promote_options="default")
    keys = np.concatenate([np.searchsorted(wanted, in_base[touched]), logged]).astype(np.int64)
    state = merging(table, Versions(rows), len(wanted))
    apply_in_order(state, keys, [int(touched.sum()), *(each.num_rows for each in logs)])
    untouched = base.filter(pa.array(~touched)).select(names)
    found = pa.concat_tables([untouched, live_rows(state, names)])
    removed = np.zeros(len(wanted), bool)
    removed[keys[: int(touched.sum())]] = True  # had a row in the base file
    return Merged(_sorted(table, found), _sorted(table, _tombstones(table, base, state)), _removed_rows(state, removed))


def apply_in_order(state: Merging, keys: Indices, counts: Sequence[int]) -> None:
    """Merges versions that lie one after the other, of so many rows each. `keys`: the numbers of all rows' keys."""
    start = 0
    for count in counts:
        rows = np.arange(start, start + count, dtype=np.int64)
        if count:
            state.apply(keys[rows], rows)
        start += count


def live_rows(state: Merging, names: Sequence[str]) -> pa.Table:
    """The rows of a state, with some of its columns."""
    keys = np.flatnonzero(state.live()).astype(np.int64)
    newest = state.newest[keys]
    own = {*state.table.key, INSTANT}
    schema = state.versions.rows.schema
    return pa.table(
        [state.versions.take(name, newest) if name in own else state.column(name, keys) for name in names],
        schema=pa.schema([schema.field(name) for name in names]),
    )


def deleted_rows(state: Merging) -> pa.Table:
    """The versions that deleted keys which have no row now; key, sequence, INSTANT and DELETED of each."""
    keys = np.flatnonzero(~state.live() & (state.newest >= 0))
    names = [*state.table.key, *state.table.sequence, INSTANT, DELETED]
    found = state.versions.rows.select(names).take(pa.array(state.newest[keys]))
    instants = state.versions.rows.column(INSTANT).take(pa.array(state.gone[keys]))
    return found.set_column(found.column_names.index(INSTANT), found.schema.field(INSTANT), instants)


def _removed_rows(state: Merging, were: Mask) -> pa.Table:
    """Key and INSTANT of the deletes that removed rows. `were`: the keys that had a row in the beginning."""
    keys = np.flatnonzero(~state.live() & (state.gone >= 0) & were)
    return state.versions.rows.select([*state.table.key, INSTANT]).take(pa.array(state.gone[keys]))


def _apart(schema: pa.Schema, versions: Sequence[pa.Table]) -> tuple[pa.Table, list[pa.Table]]:
    """The base file, which is empty if there is none, and the log files."""
    if versions and DELETED not in versions[0].column_names:
        return versions[0], list(versions[1:])
    return pa.schema([*schema, pa.field(INSTANT, pa.string())]).empty_table(), list(versions)


def _tombstones(table: KeyedTable, base: pa.Table, state: Merging | None) -> pa.Table:
    if state is not None and table.keeps_tombstones:
        return deleted_rows(state)
    fields = [base.schema.field(name) for name in (*table.key, *table.sequence, INSTANT) if name in base.schema.names]
    return pa.schema([*fields, pa.field(DELETED, pa.bool_())]).empty_table()


def _sorted(table: KeyedTable, rows: pa.Table) -> pa.Table:
    return rows.take(order_of(rows, table.key))

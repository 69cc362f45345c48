"""Turns a batch of rows into log records: one per key, whatever their order was.

The rows of a batch have no order: Spark gives them none. So several versions of a key in one batch must give the same
result in any order, or the batch is refused.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import (
    DELETED,
    IGNORE_DELETE,
    INSTANT,
    REMOVE_ON_DELETE,
    SEQUENCE_FIELD,
    KeyedTable,
    MergeEngine,
)
from lake.tables.keyed.engines import merging
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.merging import apply_in_order, deleted_rows, live_rows
from lake.tables.keyed.versions import Versions, as_mask, key_codes, order_of, text_of


def log_records(table: KeyedTable, rows: pa.Table, instant: str) -> pa.Table:
    """The log records of a batch of one bucket: its data columns, INSTANT and DELETED, one per key, sorted by key.

    `rows`: data columns, and DELETED unless all are upserts. A record of a delete has its key and sequence only. Raises
    UnfitRows for nulls in key or sequence, for deletes that the merge engine doesn't take, for several versions of a
    key between which only their order would decide.
    """
    if DELETED not in rows.column_names:
        rows = rows.append_column(DELETED, pa.repeat(pa.scalar(False), rows.num_rows))
    rows = _deletes_checked(table, rows)
    _check_nulls(table, rows)
    rows = rows.append_column(INSTANT, pa.repeat(pa.scalar(instant), rows.num_rows))
    rows = _once(table, rows)
    names = [name for name in rows.column_names if name not in (INSTANT, DELETED)]
    return rows.select([*names, INSTANT, DELETED]).take(order_of(rows, table.key))


def _deletes_checked(table: KeyedTable, rows: pa.Table) -> pa.Table:
    """The rows without deletes that are ignored, and without values in the others. Raises UnfitRows."""
    deleted = rows.column(DELETED)
    if not pc.any(deleted).as_py():
        return rows
    if table.ignore_delete:
        return rows.filter(pc.invert(deleted))
    if table.engine is not MergeEngine.DEDUPLICATE and not table.remove_on_delete:
        also = f" or {REMOVE_ON_DELETE}=true" if table.engine is MergeEngine.PARTIAL_UPDATE else ""
        raise UnfitRows(f"the merge engine {table.engine} takes no deletes: set {IGNORE_DELETE}=true{also}")
    kept = {*table.key, *table.sequence, DELETED}
    # No if_else: in pyarrow 19 it reads past the texts of a column that is a slice, and answers other texts.
    live = pa.array(np.arange(rows.num_rows), mask=as_mask(deleted))
    for index, field in enumerate(rows.schema):
        if field.name not in kept:
            rows = rows.set_column(index, field, rows.column(index).take(live))
    return rows


def _check_nulls(table: KeyedTable, rows: pa.Table) -> None:
    for name in table.key:
        if rows.column(name).null_count:
            raise UnfitRows(f"the column {name} belongs to the key and is null in some rows")
    for name in table.sequence:
        if rows.column(name).null_count:
            raise UnfitRows(f"the column {name} orders versions ({SEQUENCE_FIELD}) and is null in some rows")


def _once(table: KeyedTable, rows: pa.Table) -> pa.Table:
    """One record per key. Raises UnfitRows."""
    codes = key_codes([rows], table.key)
    counts = np.bincount(codes)
    often = counts[codes] > 1
    if not often.any():
        return rows
    names = [name for name in rows.column_names if name != DELETED]
    several = rows.filter(pa.array(often))
    codes = np.unique(codes[often], return_inverse=True)[1].astype(np.int64)
    # The first version of every key, then the second ones, and so on.
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(np.bincount(codes)) - np.bincount(codes)
    turn = np.empty(len(codes), np.int64)
    turn[order] = np.arange(len(codes)) - starts[codes[order]]
    by_turn = np.argsort(turn, kind="stable")
    versions, keys = Versions(several.take(pa.array(by_turn))), codes[by_turn]
    state = merging(table, versions, int(codes.max()) + 1)
    apply_in_order(state, keys, np.bincount(turn).tolist())
    unclear = np.flatnonzero(state.ambiguous(keys, np.arange(len(keys), dtype=np.int64)))
    if len(unclear):
        raise UnfitRows(_unclear(table, versions.rows, int(unclear[0])))
    found = live_rows(state, names)
    found = found.append_column(DELETED, pa.repeat(pa.scalar(False), found.num_rows))
    gone = deleted_rows(state)
    once = rows.filter(pa.array(~often))
    return pa.concat_tables([once.select([*names, DELETED]), found, gone], promote_options="default")


def _unclear(table: KeyedTable, rows: pa.Table, row: int) -> str:
    key = ", ".join(f"{name}={text_of(rows.column(name)[row])}" for name in table.key)
    versions: Sequence[str] = table.sequence or [version for version, _ in table.sequence_groups]
    if versions:
        return f"the key {key} has rows of one {', '.join(versions)} with different values: make them differ in it"
    advice = {
        MergeEngine.DEDUPLICATE: f"set {SEQUENCE_FIELD}, or write",
        MergeEngine.PARTIAL_UPDATE: "set fields.<f>.sequence-group, or write",
    }.get(table.engine, "write")
    return f"the key {key} has several rows with different values, and nothing orders them: {advice} one of them"

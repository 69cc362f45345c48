"""Puts the rows of a batch into partitions, for tables whose key is unique over all of them.

A row whose partition changes leaves the old place and comes to the new one in the same instant: a delete there, a row
here. So a writer has to know where each key of its batch is now.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import DELETED, INSTANT, KeyedTable
from lake.tables.keyed.batches import log_records
from lake.tables.keyed.merging import Merged
from lake.tables.keyed.versions import NONE, Indices, Mask, Versions, as_mask, key_codes

_PLACE, _LIVE = "_metastore_place", "_metastore_live"


def placed(
    table: KeyedTable, rows: pa.Table, places: pa.ChunkedArray, states: Mapping[str, Merged]
) -> dict[str, pa.Table]:
    """The rows that a batch writes into the bucket of each partition, by the partitions' names.

    `rows`: the batch's rows of one bucket: the data columns, the partition columns, and DELETED unless all are upserts.
    `places`: the names of their partitions, null for deletes that don't say theirs. `states`: what the bucket of each
    partition has, with the columns of the key and the sequence. The result has data columns and DELETED, one row per
    key and partition, and nothing that is older than what is there. Raises UnfitRows as `log_records` does.
    """
    if DELETED not in rows.column_names:
        rows = rows.append_column(DELETED, pa.repeat(pa.scalar(False), rows.num_rows))
    rows = _without_moves(table, rows.append_column(_PLACE, places))
    current = _current(table, rows, states)
    if table.sequence:
        rows = _with_sequences(table, rows, current)
    given = rows.select([*table.key, _PLACE])
    records = log_records(table, rows.drop_columns([*table.partition_columns]), "").drop_columns([INSTANT])
    return _by_place(_written(table, records, current, given, min(states, default=None)))


def _written(
    table: KeyedTable, records: pa.Table, current: pa.Table, given: pa.Table, anywhere: str | None
) -> pa.Table:
    """What is written, with _PLACE. `records`: one per key; of deletes, `given` has the places."""
    codes = key_codes([records, current, given], table.key)
    count = int(codes.max(initial=-1)) + 1
    mine, theirs, named = np.split(codes, np.cumsum([records.num_rows, current.num_rows]))
    ranks = Versions(
        pa.concat_tables([records.select([*table.sequence]), current.select([*table.sequence])])
        if table.sequence
        else pa.table({"": pa.nulls(len(mine) + len(theirs))})
    ).ranks(table.sequence)
    mine_ranks, their_ranks = np.split(ranks, [records.num_rows])
    live = as_mask(current.column(_LIVE))
    # The greatest version of a key is its state; of two equal ones the row, since a row that moved left a tombstone.
    order = np.lexsort((live, their_ranks))
    best = np.full(count, NONE, np.int64)
    best[theirs[order]] = order
    found = best[mine]
    known = found != NONE
    is_new = ~known
    is_new[known] = mine_ranks[known] >= their_ranks[found[known]]
    has_row = known.copy()
    has_row[known] = live[found[known]]
    places = current.column(_PLACE).take(pa.array(found, mask=~known))
    deleted = as_mask(records.column(DELETED))
    own = records.column(_PLACE)
    moved = is_new & ~deleted & has_row & as_mask(pc.fill_null(pc.not_equal(own, places), False))
    gone = is_new & deleted & has_row
    parts = [records.filter(pa.array(is_new & ~deleted)), _at(_deletes(table, records), moved | gone, places)]
    if table.keeps_tombstones:
        said = np.full(count, NONE, np.int64)
        said[named] = np.arange(len(named))
        texts = given.column(_PLACE).take(pa.array(said[mine]))
        somewhere = pc.fill_null(pc.coalesce(places, texts), anywhere) if anywhere else pc.coalesce(places, texts)
        parts.append(_at(records, is_new & deleted & ~has_row, somewhere))
    return pa.concat_tables(parts)


def _without_moves(table: KeyedTable, rows: pa.Table) -> pa.Table:
    """The rows without deletes of keys that come to another partition in the same batch: a feed of changes has both."""
    deleted = as_mask(rows.column(DELETED))
    if not deleted.any() or deleted.all():
        return rows
    codes = key_codes([rows], table.key)
    ranks = Versions(rows).ranks(table.sequence)
    places = rows.column(_PLACE).combine_chunks().dictionary_encode().indices.fill_null(NONE).to_numpy()
    upserts = np.flatnonzero(~deleted)
    last = np.full(int(codes.max()) + 1, NONE, np.int64)
    last[codes[upserts]] = upserts
    other = last[codes]
    moved = deleted & (other != NONE) & (places != places[other]) & (ranks <= ranks[other])
    return rows.filter(pa.array(~moved))


def _current(table: KeyedTable, rows: pa.Table, states: Mapping[str, Merged]) -> pa.Table:
    """What partitions have of the keys of some rows: key, sequence, _PLACE, and _LIVE, false for tombstones."""
    names = [*table.key, *table.sequence]
    wanted = rows.select([*table.key])
    parts = []
    for place, state in states.items():
        for versions, live in ((state.rows, True), (state.tombstones, False)):
            if not versions.num_rows:
                continue
            codes = key_codes([wanted, versions], table.key)
            asked, theirs = codes[: wanted.num_rows], codes[wanted.num_rows :]
            some = versions.filter(pa.array(np.isin(theirs, asked))).select(names)
            some = some.append_column(_PLACE, pa.repeat(pa.scalar(place), some.num_rows))
            parts.append(some.append_column(_LIVE, pa.repeat(pa.scalar(live), some.num_rows)))
    schema = pa.schema(
        [*(rows.schema.field(name) for name in names), pa.field(_PLACE, pa.string()), pa.field(_LIVE, pa.bool_())]
    )
    return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in parts)])


def _with_sequences(table: KeyedTable, rows: pa.Table, current: pa.Table) -> pa.Table:
    """Gives deletes by key alone the sequence of the row that they delete. Without a row there is nothing to do."""
    bare = as_mask(pc.and_(rows.column(DELETED), rows.column(table.sequence[0]).is_null()))
    if not bare.any():
        return rows
    there = current.filter(current.column(_LIVE))
    codes = key_codes([rows, there], table.key)
    place = np.full(int(codes.max(initial=-1)) + 1, NONE, np.int64)
    place[codes[rows.num_rows :]] = np.arange(there.num_rows)
    found = place[codes[: rows.num_rows]]
    for name in table.sequence:
        values = there.column(name).take(pa.array(np.where(bare, found, NONE), mask=~bare | (found == NONE)))
        column = pc.if_else(pa.array(bare), values, rows.column(name))
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    return rows.filter(pa.array(~bare | (found != NONE)))


def _deletes(table: KeyedTable, records: pa.Table) -> pa.Table:
    """The records as deletes: their keys and sequences alone."""
    kept = {*table.key, *table.sequence, _PLACE}
    columns = [
        records.column(field.name) if field.name in kept else pa.nulls(records.num_rows, field.type)
        for field in records.schema
    ]
    columns[records.column_names.index(DELETED)] = pa.repeat(pa.scalar(True), records.num_rows)
    return pa.table(columns, schema=records.schema)


def _at(records: pa.Table, some: Mask, places: pa.ChunkedArray) -> pa.Table:
    """Some of the records, at the places that are given for all; those without a place are left out."""
    index = records.column_names.index(_PLACE)
    there = records.set_column(index, records.schema.field(_PLACE), places).filter(pa.array(some))
    return there.filter(there.column(_PLACE).is_valid())


def _by_place(rows: pa.Table) -> dict[str, pa.Table]:
    encoded = rows.column(_PLACE).combine_chunks().dictionary_encode()
    numbers: Indices = encoded.indices.to_numpy().astype(np.int64)
    data = rows.drop_columns([_PLACE])
    found = {
        name: data.filter(pa.array(numbers == number)) for number, name in enumerate(encoded.dictionary.to_pylist())
    }
    return dict(sorted(found.items()))

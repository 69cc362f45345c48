"""The changes of a batch whose rows come with pre-images: `changelog-producer=input`.

Nothing is looked up: what the rows say was there is taken for it. So they are checked for being whole.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import CHANGELOG_PRODUCER, KeyedTable
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.versions import Indices, Mask, key_codes, same_values, text_of

_OLD = (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
_NEW = (ChangeType.UPDATE_POSTIMAGE, ChangeType.INSERT)


def given_changes(table: KeyedTable, rows: pa.Table) -> pa.Table:
    """The changes that the rows of a bucket say: data columns and CHANGE_TYPE, without updates that change nothing.

    `rows`: data columns and CHANGE_TYPE. Pre-images come before post-images. Raises UnfitRows for an update without one
    of its two images, for several rows of a key that don't agree, and for nulls in the key.
    """
    for name in table.key:
        if rows.column(name).null_count:
            raise UnfitRows(f"the column {name} belongs to the key and is null in some rows")
    names = [name for name in rows.column_names if name != CHANGE_TYPE]
    codes = key_codes([rows], table.key)
    found = {kind: _one_per_key(table, rows, names, codes, kind) for kind in (*_OLD, *_NEW)}
    _check_pairs(table, rows, codes, found[ChangeType.UPDATE_PREIMAGE], found[ChangeType.UPDATE_POSTIMAGE])
    old, new = found[ChangeType.UPDATE_PREIMAGE], found[ChangeType.UPDATE_POSTIMAGE]
    both = new[np.isin(codes[new], codes[found[ChangeType.INSERT]])]
    if len(both):
        raise UnfitRows(f"the key {_key(table, rows, int(both[0]))} is inserted and updated: write one of the two")
    differs = ~_same(rows, names, old, new)
    kept = {**found, ChangeType.UPDATE_PREIMAGE: old[differs], ChangeType.UPDATE_POSTIMAGE: new[differs]}
    return pa.concat_tables([rows.take(pa.array(kept[kind])) for kind in (*_OLD, *_NEW)])


def _one_per_key(table: KeyedTable, rows: pa.Table, names: Sequence[str], codes: Indices, kind: ChangeType) -> Indices:
    """The rows of a kind, the first one of each key, in the order of keys. Raises UnfitRows if others differ."""
    numbers = np.flatnonzero(np.asarray(pc.equal(rows.column(CHANGE_TYPE), str(kind))))
    _, firsts, inverse = np.unique(codes[numbers], return_index=True, return_inverse=True)
    unlike = ~_same(rows, names, numbers, numbers[firsts][inverse])
    if unlike.any():
        raise UnfitRows(
            f"the key {_key(table, rows, int(numbers[unlike][0]))} has several rows of the kind {kind} with different"
            " values: write one of them"
        )
    return numbers[firsts].astype(np.int64)


def _check_pairs(table: KeyedTable, rows: pa.Table, codes: Indices, old: Indices, new: Indices) -> None:
    """Raises UnfitRows unless the same keys have pre-images and post-images."""
    for some, others, missing in ((new, old, ChangeType.UPDATE_PREIMAGE), (old, new, ChangeType.UPDATE_POSTIMAGE)):
        alone = some[~np.isin(codes[some], codes[others])]
        if len(alone):
            raise UnfitRows(
                f"the key {_key(table, rows, int(alone[0]))} has no {missing}: with {CHANGELOG_PRODUCER}=input an"
                " update comes with both of its images"
            )


def _same(rows: pa.Table, names: Sequence[str], some: Indices, others: Indices) -> Mask:
    found = np.ones(len(some), bool)
    for name in names:
        column = rows.column(name)
        found &= same_values(column.take(pa.array(some)), column.take(pa.array(others)))
    return found


def _key(table: KeyedTable, rows: pa.Table, row: int) -> str:
    return ", ".join(f"{name}={text_of(rows.column(name)[row])}" for name in table.key)

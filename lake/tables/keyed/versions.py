"""Versions of rows with some keys, and comparisons among them."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import DELETED

Indices: TypeAlias = npt.NDArray[np.int64]
"""Numbers of rows or keys. A row -1 is none."""

Mask: TypeAlias = npt.NDArray[np.bool_]

NONE = -1

_MOST_CODES = 1 << 62


class Versions:
    """A table in which a key may have several rows, its versions. Rows are given by their numbers."""

    def __init__(self, rows: pa.Table) -> None:
        """`rows`: may have the column DELETED."""
        self.rows = rows.combine_chunks()

    @cached_property
    def deleted(self) -> Mask:
        """Which rows say that their key was deleted."""
        if DELETED not in self.rows.column_names:
            return np.zeros(self.rows.num_rows, bool)
        return as_mask(pc.fill_null(self.rows.column(DELETED), False))

    def has(self, name: str) -> Mask:
        """Which rows have a value that isn't null in a column."""
        return as_mask(self.rows.column(name).is_valid())

    def ranks(self, names: Sequence[str]) -> Indices:
        """The rank of each row in the order of some columns; equal values have equal ranks."""
        count = self.rows.num_rows
        found = np.zeros(count, np.int64)
        if not names or not count:
            return found
        order = order_of(self.rows, names).to_numpy()
        rises = ~self.same(names, order[1:], order[:-1])
        found[order[1:]] = np.cumsum(rises)
        return found

    def same(self, names: Sequence[str], some: npt.NDArray[np.integer], others: npt.NDArray[np.integer]) -> Mask:
        """Whether pairs of rows have the same values in all of some columns. Nulls are the same, and so are NaNs."""
        found = np.ones(len(some), bool)
        for name in names if len(some) else ():
            column = self.rows.column(name)
            found &= same_values(column.take(pa.array(some)), column.take(pa.array(others)))
        return found

    def take(self, name: str, rows: Indices) -> pa.ChunkedArray:
        """The values of a column in some rows; null where there is none."""
        return self.rows.column(name).take(pa.array(rows, mask=rows == NONE))


def key_codes(tables: Sequence[pa.Table], key: Sequence[str]) -> Indices:
    """A number for the key of each row of all tables, the same for equal keys. Numbers are from 0, without gaps."""
    together = pa.concat_tables([each.select([*key]) for each in tables])
    codes = np.zeros(together.num_rows, np.int64)
    count = 1
    for name in key:
        encoded = together.column(name).combine_chunks().dictionary_encode()
        size = len(encoded.dictionary) or 1
        if count * size >= _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            count = int(codes.max(initial=0)) + 1
        codes = codes * size + encoded.indices.to_numpy().astype(np.int64)
        count *= size
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def order_of(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """The rows' numbers in the order of some columns."""
    # By numbers: Arrow takes a name such as `.a` or `[b` for a path.
    columns = [str(number) for number in range(len(names))]
    keys = pa.table([rows.column(name) for name in names], names=columns)
    return pc.sort_indices(keys, sort_keys=[(each, "ascending") for each in columns])


def same_values(some: pa.ChunkedArray, others: pa.ChunkedArray) -> Mask:
    """Whether values at the same places are the same. Nulls are the same, and so are NaNs."""
    if pa.types.is_nested(some.type):
        return _same_nested(_whole(some), _whole(others))
    if pa.types.is_null(some.type):
        return np.ones(len(some), bool)
    equal = pc.fill_null(pc.equal(some, others), False)
    both_null = pc.and_(some.is_null(), others.is_null())
    if pa.types.is_floating(some.type):
        nan = pc.and_(pc.fill_null(pc.is_nan(some), False), pc.fill_null(pc.is_nan(others), False))
        equal = pc.or_(equal, nan)
    return as_mask(pc.or_(equal, both_null))


def _same_nested(some: pa.Array, others: pa.Array) -> Mask:
    """`same_values` for nested ones, which Arrow doesn't compare. They aren't made values of Python's, which have other
    limits: no time after the year 9999, for example."""
    missing, also = as_mask(some.is_null()), as_mask(others.is_null())
    found: Mask = missing & also
    both = np.flatnonzero(~missing & ~also)
    if pa.types.is_struct(some.type):
        same = np.ones(len(both), bool)
        mine, theirs = (each.take(pa.array(both)) for each in (some, others))
        for number in range(some.type.num_fields):
            same &= same_values(*(pa.chunked_array([each.field(number)]) for each in (mine, theirs)))
        found[both] = same
        return found
    lengths, others_lengths = (
        np.diff(each.offsets.to_numpy(zero_copy_only=False).astype(np.int64))[both] for each in (some, others)
    )
    alike = both[lengths == others_lengths]
    lengths = lengths[lengths == others_lengths]
    same = np.ones(len(alike), bool)
    mine, theirs = (each.take(pa.array(alike)) for each in (some, others))
    owners = np.repeat(np.arange(len(alike)), lengths)
    for one, other in zip(_items(mine), _items(theirs), strict=True):
        same[owners[~same_values(pa.chunked_array([one]), pa.chunked_array([other]))]] = False
    found[alike] = same
    return found


def _items(lists: pa.Array) -> Sequence[pa.Array]:
    """The items of lists, or the keys and the values of maps. The lists are the result of `take`, and none is null."""
    return [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.flatten()]


def _whole(values: pa.ChunkedArray) -> pa.Array:
    """The values as one array without an offset."""
    return (
        pa.concat_arrays(values.chunks)
        if values.num_chunks > 1
        else values.combine_chunks().take(pa.array(np.arange(len(values))))
    )


def text_of(value: pa.Scalar) -> str:
    """A value of a key for a message. Python has no dates and times after the year 9999."""
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        text = str(value.cast(pa.string()).as_py())
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_mask(values: pa.Array | pa.ChunkedArray) -> Mask:
    """Arrow's booleans, none of which is null, as numpy's."""
    found: Mask = np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values)
    return found.astype(bool, copy=False)

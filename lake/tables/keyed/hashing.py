"""The bucket of a key: the CRC-32 of its text, modulo the number of buckets.

The text of a key is that of its columns, or of those that `bucket-key` names, in the order of the key, joined by the
control character U+001F. Whole numbers are written in decimal, booleans as true or false, dates as days since 1970,
timestamps as microseconds since 1970; strings and binary values are taken as they are.
"""

import zlib

import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.keyed_table import KeyedTable
from lake.tables.keyed.errors import UnfitRows

SEPARATOR = b"\x1f"


def buckets_of(rows: pa.Table, table: KeyedTable) -> pa.Array:
    """The bucket of each row, as int32. Raises UnfitRows for a key with nulls."""
    texts = [_texts(rows.column(name), name) for name in table.bucket_key]
    joined = (
        pc.binary_join_element_wise(*texts, pa.scalar(SEPARATOR, pa.large_binary())) if len(texts) > 1 else texts[0]
    )
    return pa.array([zlib.crc32(text) % table.buckets for text in joined.to_pylist()], pa.int32())


def _texts(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The values of a column of the key as bytes. Raises UnfitRows."""
    if column.null_count:
        raise UnfitRows(f"the column {name} belongs to the key and is null in some rows")
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        column = column.cast(pa.large_string())
    return column.cast(pa.large_binary())

"""Arrow's types with offsets of 64 bits, in which buckets are merged, and tables in pieces of a bounded size.

The texts of a column of `string` are at most 2 GiB together, and so are those of lists. A bucket may have more. So
its columns are `large_string`, `large_binary` and `large_list` while they are merged. Files and callers get the usual
types, in pieces that fit them.
"""

from collections.abc import Iterator

import pyarrow as pa

PIECE_BYTES = 1 << 28
"""The most that a piece of a table has, in bytes: of a row group of a file, of a batch that Spark is sent."""


def wide(kind: pa.DataType) -> pa.DataType:
    """A type with offsets of 64 bits."""
    return _mapped(kind, pa.large_string(), pa.large_binary(), pa.large_list)


def narrow(kind: pa.DataType) -> pa.DataType:
    """The usual type for one with offsets of 64 bits."""
    return _mapped(kind, pa.string(), pa.binary(), pa.list_)


def narrow_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each.with_type(narrow(each.type)) for each in schema])


def narrowed(rows: pa.Table) -> pa.Table:
    """The same rows in the usual types. Columns have several chunks if one can't have all."""
    schema = narrow_schema(rows.schema)
    return pa.concat_tables([schema.empty_table(), *(each.cast(schema) for each in pieces(rows))])


def pieces(rows: pa.Table, most_rows: int | None = None) -> Iterator[pa.Table]:
    """The rows in order, in parts of at most PIECE_BYTES and `most_rows`. A row that is larger is a part of its own."""
    count = rows.num_rows
    if not count:
        return
    size = rows.nbytes
    step = count if size <= PIECE_BYTES else max(1, count * PIECE_BYTES // size)
    step = min(step, most_rows or step)
    if step >= count:
        # A copy, whose offsets begin at 0: Arrow doesn't cast a slice that lies beyond 2 GiB of its array.
        yield rows if _begins_at_0(rows) else rows.take(pa.array(range(count), pa.int64()))
        return
    for start in range(0, count, step):
        yield from pieces(rows.slice(start, step), most_rows)


def _begins_at_0(rows: pa.Table) -> bool:
    return all(not chunk.offset for column in rows.columns for chunk in column.chunks)


def _mapped(kind: pa.DataType, text: pa.DataType, binary: pa.DataType, list_of: "type[pa.DataType]") -> pa.DataType:
    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_mapped(field.type, text, binary, list_of))

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return binary
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return list_of(inner(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([inner(each) for each in kind])
    return kind

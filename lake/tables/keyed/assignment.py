"""Converts the columns of a batch to those of a table. A value that doesn't fit is an error, never null or another one.

The rules are those of Spark's store assignment (ANSI), as far as Arrow converts alike: a text isn't read as a number, a
number isn't a date, and numbers are checked. Where Spark rounds, here a value that would be changed is refused.
"""

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lake.protocol.formats.hive_types import parts_of
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.wide_types import narrow

_LENGTH = re.compile(r"(char|varchar)\((\d+)\)")

_WHOLE = pa.decimal128(20, 0)
"""What has all whole numbers of 64 bits."""


def assigned(rows: pa.Table, schema: pa.Schema, lengths: Mapping[str, str]) -> pa.Table:
    """The columns of a schema in its order and types; those that are missing are null.

    `lengths`: Hive's types of columns with CHAR or VARCHAR in them. Raises UnfitRows, which names the column.
    """
    columns = []
    for field in schema:
        if field.name not in rows.column_names:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
            continue
        found = converted(field.name, rows.column(field.name), field.type)
        if text := lengths.get(field.name):
            found = pa.chunked_array([_limited(field.name, each, text) for each in found.chunks], field.type)
        columns.append(found)
    return pa.table(columns, schema=schema)


def converted(name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """A column in another type. Raises UnfitRows for a type that can't be assigned, and for values that don't fit."""
    check_types(name, column.type, wanted)
    try:
        column.validate(full=True)  # Arrow itself takes texts that aren't UTF-8
        found = column.cast(_between(column.type, wanted)).cast(wanted)
    except pa.ArrowException as error:
        raise UnfitRows(
            f"the column {name} is {narrow(wanted)}, and some values don't fit: {str(error).splitlines()[0]}"
        ) from None
    if _infinities(found) > _infinities(column):
        raise UnfitRows(f"the column {name} is {narrow(wanted)}, and some values don't fit: they are too large")
    return found


def check_types(name: str, given: pa.DataType, wanted: pa.DataType) -> None:
    """Raises UnfitRows unless values of a type can be assigned to a column. `name`: the column's, for messages."""
    given = _plain(given)
    if pa.types.is_null(given):
        return
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        for field in given:
            if wanted.get_field_index(field.name) < 0:
                raise UnfitRows(f"the column {name} has no field {field.name}; fields are spelled as in the table")
            if len(given.get_all_field_indices(field.name)) > 1:
                raise UnfitRows(f"the rows have several fields {name}.{field.name}")
            check_types(f"{name}.{field.name}", field.type, wanted.field(field.name).type)
    elif pa.types.is_map(given) and pa.types.is_map(wanted):
        check_types(f"{name}'s keys", given.key_type, wanted.key_type)
        check_types(f"{name}'s values", given.item_type, wanted.item_type)
    elif _is_list(given) and _is_list(wanted):
        check_types(f"{name}'s items", given.value_type, wanted.value_type)
    elif not _fits(given, wanted):
        raise UnfitRows(f"the column {name} is {narrow(wanted)}, and values of {given} don't fit: convert them first")


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    kinds = pa.types
    if _is_number(wanted):
        return _is_number(given)
    if kinds.is_date(wanted) or kinds.is_timestamp(wanted):
        return bool(kinds.is_date(given) or kinds.is_timestamp(given))
    if kinds.is_string(wanted) or kinds.is_large_string(wanted):
        # Arrow writes floats and times otherwise than Spark does.
        exact = kinds.is_integer(given) or kinds.is_boolean(given) or kinds.is_decimal(given) or kinds.is_date(given)
        return bool(exact or _is_text(given) or _is_binary(given))
    if kinds.is_binary(wanted) or kinds.is_large_binary(wanted):
        return _is_binary(given)
    return bool(given == wanted)


def _between(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The type by way of which Arrow converts: it makes no short decimals of whole numbers."""
    if pa.types.is_integer(given) and pa.types.is_decimal(wanted):
        return _WHOLE
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        return pa.struct([each.with_type(_between(each.type, wanted.field(each.name).type)) for each in given])
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return pa.map_(_between(given.key_type, wanted.key_type), _between(given.item_type, wanted.item_type))
    if _is_list(given) and _is_list(wanted):
        item = _between(given.value_type, wanted.value_type)
        return given if item == given.value_type else pa.large_list(item)
    return _plain(given)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of dictionaries and of extensions."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return _plain(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


# Views are known by their names: pyarrow 15 has no functions that tell them.


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view")


def _is_binary(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    )


def _is_list(kind: pa.DataType) -> bool:
    """Whether a type is of lists. Lists by views aren't: Arrow casts slices of them to other values."""
    kinds = pa.types
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _infinities(column: pa.ChunkedArray) -> int:
    """How many values are infinite, in nested ones too."""
    return sum(
        pc.sum(pc.is_inf(each)).as_py() or 0
        for chunk in column.chunks
        for each in _leaves(chunk)
        if pa.types.is_floating(each.type)
    )


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The values of which nested ones are made, without those that a null hides."""
    if not _may_overflow(values.type):
        return
    if pa.types.is_struct(values.type):
        for each in values.flatten():
            yield from _leaves(each)
    elif pa.types.is_map(values.type):
        there = values.drop_null()
        yield from _leaves(there.keys)
        yield from _leaves(there.items)
    elif _is_list(values.type):
        yield from _leaves(values.flatten())
    else:
        yield values.cast(_plain(values.type))


def _may_overflow(kind: pa.DataType) -> bool:
    kind = _plain(kind)
    if not pa.types.is_nested(kind):
        return bool(pa.types.is_floating(kind))
    return any(_may_overflow(kind.field(number).type) for number in range(kind.num_fields))


def _limited(name: str, values: pa.Array, text: str) -> pa.Array:
    """Values whose texts are as long as a type says: CHAR is filled with spaces, and further ones are cut off.

    Raises UnfitRows for a text that is longer.
    """
    if found := _LENGTH.fullmatch(text.strip().lower().replace(" ", "")):
        return _of_length(name, values, int(found[2]), fills=found[1] == "char")
    if "char(" not in text.lower().replace(" ", ""):
        return values
    outer, parts = parts_of(text)
    missing = values.is_null()
    if outer == "struct":
        fields = [
            _limited(f"{name}.{field.name}", values.field(number), parts[number].partition(":")[2])
            for number, field in enumerate(values.type)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(values.type), mask=missing)
    whole = values.take(pa.array(range(len(values)), pa.int64())) if values.offset else values
    if outer == "map":
        keys, items = (
            _limited(f"{name}'s keys", whole.keys, parts[0]),
            _limited(f"{name}'s values", whole.items, parts[1]),
        )
        return pa.MapArray.from_arrays(_offsets(whole), keys, items, values.type)
    items = _limited(f"{name}'s items", whole.values, parts[0])
    of = pa.LargeListArray if pa.types.is_large_list(values.type) else pa.ListArray
    return of.from_arrays(_offsets(whole), items, values.type)


def _offsets(values: pa.Array) -> pa.Array:
    """The offsets of lists, null where a list is."""
    if not values.null_count:
        return values.offsets
    mask = pa.concat_arrays([values.is_null(), pa.array([False])])
    return pc.if_else(mask, pa.scalar(None, values.offsets.type), values.offsets)


def _of_length(name: str, values: pa.Array, length: int, *, fills: bool) -> pa.Array:
    longer = pc.fill_null(pc.greater(pc.utf8_length(values), length), False)
    if pc.any(longer).as_py():
        cut = pc.utf8_slice_codeunits(values, 0, length)
        rest = pc.utf8_slice_codeunits(values, length, None)
        if pc.any(pc.not_equal(pc.utf8_rtrim(rest, " "), "")).as_py():
            raise UnfitRows(f"the column {name} takes {length} characters, and some texts are longer: shorten them")
        values = cut
    return pc.utf8_rpad(values, length, " ") if fills else values

"""Every struct of the IDL survives decoding and encoding, with all that its sender put into it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.hive import FieldSchema, InsertEventRequestData, SkewedInfo, StorageDescriptor, Table
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import (
    ALL_STRUCTS,
    STRUCTS,
    Field,
    Tree,
    any_struct,
    canonical,
    encoded_tree,
    filled,
    read_tree,
    structs,
    typed_values,
)


def test_every_struct_with_all_fields_round_trips() -> None:
    assert len(ALL_STRUCTS) > 800
    for cls in ALL_STRUCTS:
        value = filled(cls)
        encoded = binary.encode(value)
        for decode in (binary.decode, binary.decode_strict, binary.decode_preserving):
            assert decode(cls, encoded) == value
        assert len(read_tree(encoded)) == len(cls.field_names()), cls


@settings(max_examples=150, deadline=None)
@given(any_struct())
def test_random_struct_round_trips(value: Struct) -> None:
    encoded = binary.encode(value)
    assert binary.decode(type(value), encoded) == value
    assert binary.decode_preserving(type(value), encoded) == value
    assert binary.decode_strict(type(value), b"before" + encoded, 6) == value


@st.composite
def trees_with_unknown_fields(draw: st.DrawFn) -> tuple[type[Struct], Tree]:
    """A struct of the IDL as a tree, with fields added that the IDL doesn't have, here or deeper."""
    cls = draw(st.sampled_from(STRUCTS))
    tree = read_tree(binary.encode(draw(structs(cls))))
    for _ in range(draw(st.integers(1, 3))):
        _add_field(draw, cls, tree)
    return cls, tree


def _add_field(draw: st.DrawFn, cls: type[Struct], tree: Tree) -> None:
    inner = list(_structs_within(cls, tree))
    cls, tree = draw(st.sampled_from(inner))
    known = {entry[0] for entry in cls.thrift_spec if entry is not None} | {field.id for field in tree}
    number = draw(st.integers(-(1 << 15), (1 << 15) - 1).filter(lambda number: number not in known))
    ttype, value = draw(typed_values())
    tree.insert(draw(st.integers(0, len(tree))), Field(number, ttype, value))


def _structs_within(cls: type[Struct], tree: Tree) -> Iterator[tuple[type[Struct], Tree]]:
    yield cls, tree
    spec = {entry[0]: entry for entry in cls.thrift_spec if entry is not None}
    for field in tree:
        if field.id in spec and field.type == spec[field.id][1]:
            yield from _structs_in(field.type, spec[field.id][3], field.value)


def _structs_in(ttype: int, argument: Any, value: Any) -> Iterator[tuple[type[Struct], Tree]]:
    if ttype == TType.STRUCT:
        yield from _structs_within(argument[0], value)
    elif ttype in (TType.LIST, TType.SET):
        for item in value.values:
            yield from _structs_in(argument[0], argument[1], item)
    elif ttype == TType.MAP:
        for _, item in value.values:
            yield from _structs_in(argument[2], argument[3], item)


@settings(max_examples=60, deadline=None)
@given(trees_with_unknown_fields())
def test_unknown_fields_survive(case: tuple[type[Struct], Tree]) -> None:
    cls, tree = case
    value = binary.decode_preserving(cls, encoded_tree(tree))
    assert canonical(read_tree(binary.encode(value))) == canonical(read_tree(encoded_tree(tree)))


def test_unknown_field_beside_one_that_is_named_like_a_method_survives() -> None:
    tree = [Field(1, TType.BOOL, True), Field(900, TType.I32, 5)]
    value = binary.decode_preserving(InsertEventRequestData, encoded_tree(tree))
    assert value.replace is True
    assert canonical(read_tree(binary.encode(value))) == canonical(tree)


def test_field_of_another_type_than_the_idl_says_survives() -> None:
    tree = [Field(1, TType.STRING, b"t"), Field(4, TType.STRING, b"not a number"), Field(2, TType.STRING, b"db")]
    value = binary.decode_preserving(Table, encoded_tree(tree))
    assert (value.tableName, value.dbName, value.createTime) == ("t", "db", None)
    assert canonical(read_tree(binary.encode(value))) == canonical(tree)


def test_unknown_field_survives_the_change_of_a_known_one() -> None:
    tree = [Field(1, TType.STRING, b"t"), Field(900, TType.I32, 5)]
    value = binary.decode_preserving(Table, encoded_tree(tree)).replace(tableName="u")
    assert read_tree(binary.encode(value)) == [Field(1, TType.STRING, b"u"), Field(900, TType.I32, 5)]


def test_unknown_field_of_a_part_survives_in_a_new_whole() -> None:
    column = binary.decode_preserving(
        FieldSchema, encoded_tree([Field(1, TType.STRING, b"c"), Field(9, TType.BOOL, True)])
    )
    whole = binary.encode(Table(sd=StorageDescriptor(cols=[column])))
    assert binary.decode_preserving(Table, whole).sd.cols == [column]


def test_map_with_lists_for_keys() -> None:
    value = SkewedInfo(skewedColValueLocationMaps={("a", "b"): "file:/x"})
    encoded = binary.encode(value)
    assert binary.decode(SkewedInfo, encoded) == value
    unknown = encoded[:-1] + b"\x02\x03\x84\x01\x00"  # field 900
    assert binary.decode_preserving(SkewedInfo, unknown).skewedColValueLocationMaps == {("a", "b"): "file:/x"}


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"abc\xc3", b"\xed\xa0\x80", b"\xf0\x90\x80x"],
    ids=["no UTF-8", "cut short", "surrogate", "replacement of the same length"],
)
def test_text_that_is_not_utf8_is_refused_not_changed(text: bytes) -> None:
    encoded = encoded_tree([Field(1, TType.STRING, text)])
    with pytest.raises(UnicodeDecodeError):
        binary.decode_preserving(FieldSchema, encoded)
    with pytest.raises(UnicodeDecodeError):
        binary.decode_strict(FieldSchema, encoded)


def test_generated_types_are_those_of_the_idl() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "tools.generate_types", "--check"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_copies_that_vary_are_those_with_another_value() -> None:
    tree = [Field(1, TType.STRING, b"t"), Field(900, TType.I32, 5)]
    for table in (Table(tableName="t", owner="o"), binary.decode_preserving(Table, encoded_tree(tree))):
        copies = table.varying("owner")
        for owner in ("p", None):
            assert copies(owner) == table.replace(owner=owner)
            assert binary.encode(copies(owner)) == binary.encode(table.replace(owner=owner))


def test_only_fields_can_be_replaced() -> None:
    for name in ("colour", "unknown", "thrift_spec"):
        with pytest.raises(TypeError, match=f"Table has no field {name}"):
            Table().replace(**{name: 1})


def test_a_copy_has_all_fields() -> None:
    for cls in ALL_STRUCTS:
        names = cls.field_names()
        value = cls(**{name: object() for name in names})
        value.unknown = b"kept"
        copy = Struct.replace(value)  # one has a field of that name
        assert copy is not value
        assert all(getattr(copy, name) is getattr(value, name) for name in names), cls
        assert copy.unknown == b"kept"

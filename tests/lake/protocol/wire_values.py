"""Random structs of the IDL, and random encoded structs as trees that say all that is on the wire.

The trees are read and written with thrift's own protocol classes: an opinion that is independent of ours.
"""

import struct as layouts
from typing import Any, NamedTuple

from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from lake.protocol.generated import fb303_types, hive_metastore_types, hudi_metaserver_types
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct

STRUCTS = [
    cls
    for module in (fb303_types, hive_metastore_types, hudi_metaserver_types)
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Struct) and cls.__module__ == module.__name__
]
ALL_STRUCTS = STRUCTS + [cls for method in METHODS.values() for cls in (method.args, method.result)]

_SCALARS = {
    TType.BOOL: st.booleans(),
    TType.BYTE: st.integers(-(1 << 7), (1 << 7) - 1),
    TType.I16: st.integers(-(1 << 15), (1 << 15) - 1),
    TType.I32: st.integers(-(1 << 31), (1 << 31) - 1),
    TType.I64: st.integers(-(1 << 63), (1 << 63) - 1),
    TType.DOUBLE: st.floats(allow_nan=False),
}


@st.composite
def structs(draw: st.DrawFn, cls: type[Struct], depth: int = 4) -> Struct:
    """An instance of a class of the IDL with some of its fields set."""
    value = cls()
    entries = [entry for entry in cls.thrift_spec if entry is not None]
    if entries:
        for entry in draw(st.lists(st.sampled_from(entries), max_size=6)):
            setattr(value, entry[2], draw(_values(entry[1], entry[3], depth)))
    return value


def any_struct() -> st.SearchStrategy[Struct]:
    return st.sampled_from(ALL_STRUCTS).flatmap(structs)


def _values(ttype: int, argument: Any, depth: int) -> st.SearchStrategy[Any]:
    if ttype in _SCALARS:
        return _SCALARS[ttype]
    if ttype == TType.STRING:
        return st.text(max_size=20) if argument == "UTF8" else st.binary(max_size=20)
    if ttype == TType.STRUCT:
        return structs(argument[0], depth - 1) if depth else st.builds(argument[0])
    size = 3 if depth else 0
    if ttype == TType.LIST:
        items = st.lists(_values(argument[0], argument[1], depth - 1), max_size=size)
        return items.map(tuple) if argument[2] else items
    if ttype == TType.SET:
        return st.sets(_values(argument[0], argument[1], depth - 1), max_size=size)
    assert ttype == TType.MAP
    key, item = _values(argument[0], argument[1], depth - 1), _values(argument[2], argument[3], depth - 1)
    return st.dictionaries(key, item, max_size=size)


def filled(cls: type[Struct], depth: int = 3) -> Struct:
    """An instance with every field set, as deep as `depth`."""
    value = cls()
    for entry in cls.thrift_spec:
        if entry is not None:
            setattr(value, entry[2], _filled(entry[1], entry[3], depth))
    return value


def _filled(ttype: int, argument: Any, depth: int) -> Any:
    if ttype == TType.STRUCT:
        return filled(argument[0], depth - 1) if depth else argument[0]()
    if ttype in (TType.LIST, TType.SET):
        items = [_filled(argument[0], argument[1], depth)]
        return tuple(items) if argument[2] else items if ttype == TType.LIST else set(items)
    if ttype == TType.MAP:
        return {_filled(argument[0], argument[1], depth): _filled(argument[2], argument[3], depth)}
    if ttype == TType.STRING:
        return "größe" if argument == "UTF8" else b"\xff\x00"
    return {TType.BOOL: True, TType.DOUBLE: -0.5}.get(ttype, -7)


class Field(NamedTuple):
    """A field of a tree. A value is a scalar, bytes, a list of fields (a struct), `Items` or `Pairs`."""

    id: int
    type: int
    value: Any


class Items(NamedTuple):
    type: int
    values: list[Any]


class Pairs(NamedTuple):
    key_type: int
    value_type: int
    values: list[tuple[Any, Any]]


Tree = list[Field]

_TYPES = [*_SCALARS, TType.STRING, TType.STRUCT, TType.LIST, TType.SET, TType.MAP]


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> Tree:
    """Any struct at all, known to the IDL or not. Field ids in any order."""
    ids = draw(st.lists(st.integers(-(1 << 15), (1 << 15) - 1) | st.integers(1, 40), max_size=5, unique=True))
    return [Field(number, ttype := draw(_types(depth)), draw(_tree_values(ttype, depth))) for number in ids]


def typed_values(depth: int = 3) -> st.SearchStrategy[tuple[int, Any]]:
    """A wire type and a value of it."""
    return _types(depth).flatmap(lambda ttype: st.tuples(st.just(ttype), _tree_values(ttype, depth)))


def _types(depth: int) -> st.SearchStrategy[int]:
    return st.sampled_from(_TYPES if depth else _TYPES[: len(_SCALARS) + 1])


def _tree_values(ttype: int, depth: int) -> st.SearchStrategy[Any]:
    if ttype in _SCALARS:
        return _SCALARS[ttype]
    if ttype == TType.STRING:
        return st.binary(max_size=20)
    if ttype == TType.STRUCT:
        return trees(depth - 1)
    if ttype == TType.MAP:
        return st.tuples(_types(depth - 1), _types(depth - 1)).flatmap(
            lambda types: st.lists(
                st.tuples(_tree_values(types[0], depth - 1), _tree_values(types[1], depth - 1)), max_size=3
            ).map(lambda values: Pairs(*(types if values else (0, 0)), values))
        )
    return _types(depth - 1).flatmap(
        lambda inner: st.lists(_tree_values(inner, depth - 1), max_size=20 if inner in _SCALARS else 4).map(
            lambda values: Items(inner, values)
        )
    )


def write_tree(protocol: Any, tree: Tree) -> None:
    """Writes a tree with one of thrift's protocols."""
    protocol.writeStructBegin("")
    for number, ttype, value in tree:
        protocol.writeFieldBegin("", ttype, number)
        _write(protocol, ttype, value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _write(protocol: Any, ttype: int, value: Any) -> None:
    if ttype == TType.STRUCT:
        write_tree(protocol, value)
    elif ttype in (TType.LIST, TType.SET):
        (protocol.writeListBegin if ttype == TType.LIST else protocol.writeSetBegin)(value.type, len(value.values))
        for item in value.values:
            _write(protocol, value.type, item)
        (protocol.writeListEnd if ttype == TType.LIST else protocol.writeSetEnd)()
    elif ttype == TType.MAP:
        protocol.writeMapBegin(value.key_type, value.value_type, len(value.values))
        for key, item in value.values:
            _write(protocol, value.key_type, key)
            _write(protocol, value.value_type, item)
        protocol.writeMapEnd()
    elif ttype == TType.STRING:
        protocol.writeBinary(value)
    else:
        _writers(protocol)[ttype](value)


def _writers(protocol: Any) -> dict[int, Any]:
    return {
        TType.BOOL: protocol.writeBool,
        TType.BYTE: protocol.writeByte,
        TType.I16: protocol.writeI16,
        TType.I32: protocol.writeI32,
        TType.I64: protocol.writeI64,
        TType.DOUBLE: protocol.writeDouble,
    }


def encoded_tree(tree: Tree, protocol: Any = TBinaryProtocol) -> bytes:
    transport = TMemoryBuffer()
    write_tree(protocol(transport), tree)
    return bytes(transport.getvalue())


def read_tree(data: bytes) -> Tree:
    """Reads an encoded struct of the binary protocol."""
    transport = TMemoryBuffer(data)
    tree = read_fields(TBinaryProtocol(transport))
    assert transport.cstringio_buf.read() == b"", "something follows the struct"
    return tree


def read_fields(protocol: Any) -> Tree:
    """Reads a struct with one of thrift's protocols."""
    tree = []
    protocol.readStructBegin()
    while (field := protocol.readFieldBegin())[1] != TType.STOP:
        _, ttype, number = field
        tree.append(Field(number, ttype, _read(protocol, ttype)))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return tree


def _read(protocol: Any, ttype: int) -> Any:
    if ttype == TType.STRUCT:
        return read_fields(protocol)
    if ttype in (TType.LIST, TType.SET):
        inner, count = protocol.readListBegin()
        items = Items(inner, [_read(protocol, inner) for _ in range(count)])
        protocol.readListEnd()
        return items
    if ttype == TType.MAP:
        key, item, count = protocol.readMapBegin()
        pairs = Pairs(key, item, [(_read(protocol, key), _read(protocol, item)) for _ in range(count)])
        protocol.readMapEnd()
        return pairs
    if ttype == TType.STRING:
        return protocol.readBinary()
    readers = {
        TType.BOOL: protocol.readBool,
        TType.BYTE: protocol.readByte,
        TType.I16: protocol.readI16,
        TType.I32: protocol.readI32,
        TType.I64: protocol.readI64,
        TType.DOUBLE: protocol.readDouble,
    }
    return readers[ttype]()


def canonical(value: Any, ttype: int = TType.STRUCT) -> Any:
    """What of a tree counts: not the order of a struct's fields, of a set's items, of a map's entries."""
    if ttype == TType.STRUCT:
        fields = [(field.id, field.type, canonical(field.value, field.type)) for field in value]
        return sorted(fields, key=repr)
    if ttype in (TType.LIST, TType.SET):
        items = [canonical(item, value.type) for item in value.values]
        return (value.type if items else 0, items if ttype == TType.LIST else sorted(items, key=repr))
    if ttype == TType.MAP:
        pairs = [(canonical(key, value.key_type), canonical(item, value.value_type)) for key, item in value.values]
        return sorted(pairs, key=repr)
    return layouts.pack(">d", value) if ttype == TType.DOUBLE else value  # zero has two signs

"""Structs with fields that the IDL doesn't know: read and written without losing them.

A client newer than this server may send fields we have no name for. What is stored must survive the round
trip, so these fields are kept encoded, beside the known ones. Pure Python and slow; `lake.protocol.codec.binary`
calls it only for the rare message that needs it.
"""

import struct
from collections.abc import Container
from functools import cache
from typing import Any, TypeVar

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from lake.protocol.codec.shared_list import SharedList
from lake.protocol.struct import Struct

S = TypeVar("S", bound=Struct)

_FORMS = {
    TType.BOOL: ">?", TType.BYTE: ">b", TType.DOUBLE: ">d", TType.I16: ">h", TType.I32: ">i", TType.I64: ">q",
}  # fmt: skip
_LAYOUTS = {form: struct.Struct(form) for form in _FORMS.values()}
_SIZES = {TType.BOOL: 1, TType.BYTE: 1, TType.DOUBLE: 8, TType.I16: 2, TType.I32: 4, TType.I64: 8}


def has_unknown(value: Any, *, without: Container[str] = ()) -> bool:
    """Whether a struct, or anything it contains but for some of its fields, carries unknown fields.

    The decoder marks every struct on the way down to one; what was built here of such parts is looked through
    one level.
    """
    if hasattr(value, "unknown"):
        return True
    for name in _holders_of_structs(type(value)):  # type: ignore[arg-type]  # mypy: unhashable instances
        if name in without:
            continue
        part = getattr(value, name)
        if type(part) is SharedList:
            if part.of(_any_unknown):
                return True
        elif isinstance(part, list):
            for item in part:
                if hasattr(item, "unknown"):
                    return True
        elif part is not None and has_unknown(part):
            return True
    return False


def _any_unknown(items: SharedList) -> bool:
    return any(hasattr(item, "unknown") for item in items)


@cache
def _holders_of_structs(cls: type[Struct]) -> tuple[str, ...]:
    """The fields that are structs, or lists of them."""
    return tuple(
        entry[2]
        for entry in cls.thrift_spec
        if entry is not None and (entry[1] == TType.STRUCT or (entry[1] == TType.LIST and entry[3][0] == TType.STRUCT))
    )


def decode_with_unknown(cls: type[S], data: bytes, offset: int = 0) -> S:
    """Decodes one struct in pure Python; unknown fields go to `unknown` of the struct they stood in."""
    return Decoder(data, offset).struct(cls)


def encode_with_unknown(value: Struct) -> bytes:
    """Encodes a struct; unknown fields follow the known ones of the struct they belong to."""
    transport = TMemoryBuffer()
    protocol = TBinaryProtocol(transport)
    _write_struct(protocol, value)
    return bytes(transport.getvalue())


def _write_struct(protocol: TBinaryProtocol, value: Struct) -> None:
    for entry in value.thrift_spec:
        if entry is None:
            continue
        field_id, ttype, name, argument, _ = entry
        part = getattr(value, name)
        if part is None:
            continue
        protocol.writeFieldBegin(name, ttype, field_id)
        _write_value(protocol, ttype, argument, part)
    protocol.trans.write(getattr(value, "unknown", b""))
    protocol.writeFieldStop()


def _write_value(protocol: TBinaryProtocol, ttype: int, argument: Any, value: Any) -> None:
    if ttype == TType.STRUCT:
        _write_struct(protocol, value)
    elif ttype in (TType.LIST, TType.SET):
        item_type, item_argument, _ = argument
        (protocol.writeListBegin if ttype == TType.LIST else protocol.writeSetBegin)(item_type, len(value))
        for item in value:
            _write_value(protocol, item_type, item_argument, item)
    elif ttype == TType.MAP:
        key_type, key_argument, value_type, value_argument, _ = argument
        protocol.writeMapBegin(key_type, value_type, len(value))
        for key, item in value.items():
            _write_value(protocol, key_type, key_argument, key)
            _write_value(protocol, value_type, value_argument, item)
    elif ttype == TType.STRING:
        protocol.writeBinary(value if isinstance(value, bytes) else value.encode())
    else:
        protocol.writeFieldByTType(ttype, value, argument)


class Decoder:
    """Reads encoded values one after the other; `at` is where the next begins."""

    def __init__(self, data: bytes, offset: int) -> None:
        self.data = data
        self.at = offset

    def number(self, form: str) -> Any:
        layout = _LAYOUTS[form]
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return value

    def struct(self, cls: type[S]) -> S:
        value = cls()
        unknown = b""
        marked = False
        spec = {entry[0]: entry for entry in cls.thrift_spec if entry is not None}
        while True:
            start = self.at
            ttype = self.number(">b")
            if ttype == TType.STOP:
                break
            field_id = self.number(">h")
            entry = spec.get(field_id)
            if entry is None or entry[1] != ttype:
                self.skip(ttype)
                unknown += self.data[start : self.at]
                marked = True
                continue
            part, inner = self.value(ttype, entry[3])
            marked = marked or inner
            setattr(value, entry[2], part)
        if marked:
            value.unknown = unknown
        return value

    def value(self, ttype: int, argument: Any) -> tuple[Any, bool]:
        """A value, and whether it contains unknown fields."""
        if ttype == TType.STRUCT:
            value = self.struct(argument[0])
            return value, hasattr(value, "unknown")
        if ttype in (TType.LIST, TType.SET):
            item_type, count = self.number(">b"), self.number(">i")
            items = [self.value(item_type, argument[1]) for _ in range(count)]
            marked = any(inner for _, inner in items)
            values = [item for item, _ in items]
            if argument[2]:  # a map's key
                return (tuple if ttype == TType.LIST else frozenset)(values), marked
            return (values if ttype == TType.LIST else set(values)), marked
        if ttype == TType.MAP:
            key_type, value_type, count = self.number(">b"), self.number(">b"), self.number(">i")
            key, item = argument[1], argument[3]
            pairs = [(self.value(key_type, key), self.value(value_type, item)) for _ in range(count)]
            return {key: item for (key, _), (item, _) in pairs}, any(inner for _, (_, inner) in pairs)
        if ttype == TType.STRING:
            length = self.number(">i")
            raw = self.data[self.at : self.at + length]
            self.at += length
            return (raw.decode() if argument == "UTF8" else raw), False
        return self.number(_FORMS[ttype]), False

    def skip(self, ttype: int) -> None:
        if ttype in _SIZES:
            self.at += _SIZES[ttype]
        elif ttype == TType.STRING:
            length = self.number(">i")
            self.at += length
        elif ttype == TType.STRUCT:
            while (inner := self.number(">b")) != TType.STOP:
                self.at += 2
                self.skip(inner)
        elif ttype in (TType.LIST, TType.SET):
            inner, count = self.number(">b"), self.number(">i")
            for _ in range(count):
                self.skip(inner)
        elif ttype == TType.MAP:
            key_type, value_type, count = self.number(">b"), self.number(">b"), self.number(">i")
            for _ in range(count):
                self.skip(key_type)
                self.skip(value_type)
        else:
            raise ValueError(f"no wire type {ttype}")

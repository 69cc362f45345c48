"""HyperLogLog sketches of distinct values as Hive keeps them in `bitVectors`: reading, merging, counting, writing.

Hive's format (HyperLogLogUtils):

    HLL                    three bytes
    p, encoding            four bits each: 2^p registers; 0 sparse, 1 to 6 bits a register, 7 a byte a register
    count                  the estimate when it was written, a variable-length integer
    dense: the registers   packed, the first one in the highest bits
    sparse: their number   and then, each a variable-length integer, the differences from one entry to the next.
                           An entry is 25 low bits of the hash and, below them, 6 bits of register value.

The values' hashes are not needed here. Hive's other sketch, Flajolet and Martin's, is not read.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Self

_MAGIC = b"HLL"
_MIN_P = 4
_MOST = (1 << 63) - 1
_HASH_BITS = 64
_SPARSE_P = 25  # a sparse sketch keeps so many bits of each hash
_VALUE_BITS = 6
_VALUE_MASK = (1 << _VALUE_BITS) - 1


class HyperLogLog:
    """A sketch. `sparse` maps low bits of hashes to register values; once they are many, `dense` has the registers."""

    def __init__(self, p: int, *, sparse: Mapping[int, int] | None = None, dense: bytes | None = None) -> None:
        self.p = p
        self.sparse = sparse
        self.dense = dense
        if sparse is not None and len(sparse) > self._most_sparse():
            self.sparse, self.dense = None, self.registers()

    def _most_sparse(self) -> int:
        """How many entries are kept sparse: no more than take less room than packed registers, at five bytes each."""
        return ((1 << self.p) * 6 // 8) // 5

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Reads a sketch. Raises ValueError for anything else than a HyperLogLog of Hive's."""
        if len(data) < 5 or data[:3] != _MAGIC:
            raise ValueError("not a HyperLogLog")
        p, encoding = data[3] >> 4, data[3] & 7
        if p < _MIN_P:
            raise ValueError(f"a HyperLogLog of 2^{p} registers")
        _, at = _read_integer(data, 3 + 1)
        if encoding == 0:
            return cls(p, sparse=_read_sparse(data, at))
        width = 8 if encoding == 7 else encoding
        size = (1 << p) * width // 8
        if len(data) - at != size:
            raise ValueError(f"{len(data) - at} bytes of registers instead of {size}")
        return cls(p, dense=bytes(_unpack(data[at:], width)))

    def registers(self) -> bytes:
        """The registers, one byte each."""
        if self.dense is not None:
            return self.dense
        registers = bytearray(1 << self.p)
        for key, value in (self.sparse or {}).items():
            index = key & ((1 << self.p) - 1)
            registers[index] = max(registers[index], value)
        return bytes(registers)

    def merged(self, other: Self) -> Self:
        """The sketch of the values of both. Raises ValueError if they differ in the number of registers."""
        if self.p != other.p:
            raise ValueError("sketches of different sizes")
        if self.sparse is not None and other.sparse is not None:
            union = dict(self.sparse)
            for key, value in other.sparse.items():
                union[key] = max(union.get(key, 0), value)
            return type(self)(self.p, sparse=union)
        return type(self)(self.p, dense=bytes(map(max, self.registers(), other.registers())))

    def estimate(self) -> int:
        """How many distinct values there were, at least 1.

        A sparse sketch counts as Hive does. For a dense one Hive corrects the bias of its estimate by a table; here
        it is Ertl's estimator ("New cardinality estimation algorithms for HyperLogLog sketches", 2017), which has
        none to correct. Both err by the same 1.04 / sqrt(2^p).
        """
        if self.sparse is not None:
            slots = 1 << _SPARSE_P
            return max(1, round(slots * math.log(slots / (slots - len(self.sparse)))))
        return max(1, round(min(_MOST, _ertl(self.registers(), self.p))))

    def serialize(self) -> bytes:
        """The sketch in Hive's format."""
        parts = [_integer(self.estimate())]
        width = 0
        if self.sparse is not None:
            parts.append(_integer(len(self.sparse)))
            previous = 0
            for entry in sorted(key << _VALUE_BITS | value for key, value in self.sparse.items()):
                parts.append(_integer(entry - previous))
                previous = entry
        else:
            registers = self.registers()
            width = max(1, max(registers).bit_length())
            if width > _VALUE_BITS:
                width = 8
            parts.append(_pack(registers, width))
        return b"".join((_MAGIC, bytes([self.p << 4 | min(width, 7)]), *parts))


def _read_integer(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer, seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a HyperLogLog that is cut short")


def _integer(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(0x80 | value & 0x7F)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_sparse(data: bytes, at: int) -> dict[int, int]:
    count, at = _read_integer(data, at)
    if count > len(data) - at:
        raise ValueError(f"{count} entries in {len(data) - at} bytes")
    entries: dict[int, int] = {}
    entry = 0
    for _ in range(count):
        # Hive writes them in no particular order: a difference may be negative, in two's complement.
        difference, at = _read_integer(data, at)
        entry = (entry + difference) & 0xFFFFFFFF
        if entry >> (_SPARSE_P + _VALUE_BITS):
            raise ValueError("an entry that is no hash")
        key, value = entry >> _VALUE_BITS, entry & _VALUE_MASK
        entries[key] = max(entries.get(key, 0), value)
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes too many")
    return entries


def _unpack(packed: bytes, width: int) -> Iterator[int]:
    """Registers of `width` bits: eight at a time, because eight fill whole bytes."""
    mask = (1 << width) - 1
    shifts = range(7 * width, -1, -width)
    for at in range(0, len(packed), width):
        word = int.from_bytes(packed[at : at + width])
        for shift in shifts:
            yield word >> shift & mask


def _pack(registers: bytes, width: int) -> bytes:
    out = bytearray()
    for at in range(0, len(registers), 8):
        word = 0
        for register in registers[at : at + 8]:
            word = word << width | register
        out += word.to_bytes(width)
    return bytes(out)


def _ertl(registers: bytes, p: int) -> float:
    """Ertl's improved raw estimate (algorithm 6 of the paper)."""
    size, largest = len(registers), _HASH_BITS - p + 1
    count = [0] * (largest + 1)
    for register in registers:
        count[min(register, largest)] += 1
    if count[0] == size:
        return 0.0
    z = size * _tau(1 - count[largest] / size)
    for k in range(largest - 1, 0, -1):
        z = (z + count[k]) / 2
    z += size * _sigma(count[0] / size)
    return size * size / (2 * math.log(2) * z) if z else math.inf


def _sigma(x: float) -> float:
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y /= 2
        z -= (1 - x) ** 2 * y
    return z / 3

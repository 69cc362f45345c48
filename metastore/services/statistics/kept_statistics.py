"""Stored column statistics, encoded one after the other, and their encoding into replies without decoding."""

import re
import struct
from collections.abc import Iterable, Iterator

from thrift.Thrift import TType

from lake.protocol.codec import binary, splice
from lake.protocol.hive import ColumnStatistics, ColumnStatisticsData, ColumnStatisticsObj

_field = struct.Struct(">bh").pack


def _any_of(fields: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, sorted(set(fields)))))


_KINDS = {entry[2]: entry for entry in ColumnStatisticsData.thrift_spec if entry is not None}
_SKETCHES = _any_of(
    _field(TType.STRING, entry[0])
    for _, _, _, (kind, _), _ in _KINDS.values()
    for entry in kind.thrift_spec
    if entry is not None and entry[2] in ("bitVectors", "histogram")
)
_TIMESTAMPS = _any_of([_field(TType.STRUCT, _KINDS["timestampStats"][0])])


def may_hold_sketches(bodies: bytes) -> bool:
    """Whether a sketch or a histogram may be among the statistics. Wrong only where none is."""
    return _SKETCHES.search(bodies) is not None


def may_hold_timestamps(bodies: bytes) -> bool:
    """Whether statistics of the kind that is for timestamps may be among them. Wrong only where none are."""
    return _TIMESTAMPS.search(bodies) is not None


def decoded(count: int, bodies: bytes) -> list[ColumnStatisticsObj]:
    """So many statistics, fields that the IDL doesn't know included."""
    return binary.decode_preserving(ColumnStatistics, _in_struct(count, bodies)).statsObj or []


def decoded_in_part(count: int, bodies: bytes) -> list[ColumnStatisticsObj]:
    """So many statistics, without fields that the IDL doesn't know."""
    return binary.decode(ColumnStatistics, _in_struct(count, bodies)).statsObj or []


def _in_struct(count: int, bodies: bytes) -> bytes:
    """A ColumnStatistics that holds nothing else."""
    return b"".join((_field(TType.LIST, 2), splice.list_of_structs(count), bodies, binary.STOP))


def of_partitions(found: list[tuple[str, int, bytes]]) -> Iterator[bytes]:
    """A PartitionsStatsResult: of each partition the name, how many columns' statistics, and these, encoded."""
    yield _field(TType.MAP, 1) + struct.pack(">bbi", TType.STRING, TType.LIST, len(found))
    for partition, count, bodies in found:
        name = partition.encode()
        yield b"".join((struct.pack(">i", len(name)), name, splice.list_of_structs(count), bodies))
    yield binary.STOP

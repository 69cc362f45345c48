"""The stored form of event payloads: compressed JSON, with each storage descriptor stored once, and partitions packed.

Readers see a complete storage descriptor in the `before` of an altered partition. Stored so, ten thousand altered
partitions would repeat a table's columns ten thousand times, and the payload would cost more than the change. The
stored form has the index of a shared descriptor instead; `unpack` fills it in. So it is with the columns of an altered
table, which are mostly those of before.
"""

import copy
import json
import secrets
import zlib
from collections.abc import Mapping
from typing import Any

from lake.protocol.codec.packed_partitions import PackedPartitions, unpacked
from lake.protocol.codec.plain import PlainJson, PlainList

_COLUMNS_OF_BEFORE = "colsOfBefore"
_PACKED = b"\n"
"""What parts the JSON, which has no line break, from packed partitions."""
_SHORT = 8_192  # bytes: texts that the window holds
_WINDOW_BITS, _MEMORY_LEVEL = 13, 5
_PLACE = secrets.token_hex(16)  # no text that a client sends can be the same


def pack(payload: Mapping[str, Any]) -> bytes:
    """Encodes a payload for storage. Columns are stored once if `before` and `after` have the same object."""
    columns = _descriptor(payload.get("before")).get("cols")
    if columns is not None and _descriptor(payload.get("after")).get("cols") is columns:
        payload = _with_descriptor(payload, "after", cols=None, **{_COLUMNS_OF_BEFORE: True})
    for name in ("before", "table"):
        if sd := _descriptor(payload.get(name)):
            payload = {**payload, name: {**payload[name], "sd": _with_ready_columns(sd)}}
    partitions, packed = payload.get("partitions"), b""
    if isinstance(partitions, PackedPartitions):
        descriptors = [*map(_with_ready_columns, payload["descriptors"])]
        payload = {**payload, "descriptors": descriptors, "partitions": partitions.plain}
        packed = _PACKED + partitions.encoded
    return _compressed(_json(payload).encode() + packed)


def _compressed(data: bytes) -> bytes:
    """As `zlib.compress` at level 1, which sets up 270 KB of memory before: that takes longer than a short text."""
    if len(data) > _SHORT:
        return zlib.compress(data, 1)
    compressor = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    return compressor.compress(data) + compressor.flush()


def _json(payload: Mapping[str, Any]) -> str:
    ready: list[str] = []

    def place(value: object) -> str:
        if not isinstance(value, PlainJson):
            raise TypeError(f"{type(value).__name__} is no plain value")
        ready.append(value.json)
        return _PLACE

    between = iter(json.dumps(payload, separators=(",", ":"), default=place).split(f'"{_PLACE}"'))
    return next(between) + "".join([part for pair in zip(ready, between, strict=True) for part in pair])


def _with_descriptor(payload: Mapping[str, Any], which: str, **values: Any) -> Mapping[str, Any]:
    """The payload with other values in the storage descriptor of its `before` or `after`; without those of None."""
    sd = {**payload[which]["sd"], **values}
    return {**payload, which: {**payload[which], "sd": {name: each for name, each in sd.items() if each is not None}}}


def _with_ready_columns(sd: dict[str, Any]) -> dict[str, Any]:
    """The storage descriptor, with its columns as JSON if that was made."""
    columns = sd.get("cols")
    return {**sd, "cols": PlainJson(columns.json)} if isinstance(columns, PlainList) else sd


def _descriptor(value: Any) -> Any:
    """The storage descriptor of a table; empty for what isn't one: `after` is a number where an epoch begins."""
    return (value.get("sd") if isinstance(value, dict) else None) or {}


def unpack(kept: bytes) -> dict[str, Any]:
    """Decodes a stored payload into the form that readers see."""
    text, _, packed = zlib.decompress(kept).partition(_PACKED)
    payload: dict[str, Any] = json.loads(text)
    if packed:
        payload["partitions"] = unpacked(payload["partitions"], packed)
    return whole(payload)


def read_ahead(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The form that readers see of a payload that is not stored yet. It is the caller's own."""
    return whole(copy.deepcopy(dict(payload)))


def whole(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload with complete storage descriptors in the `after` of a table, and the `before` of each partition."""
    altered = _descriptor(payload.get("after"))
    if altered.pop(_COLUMNS_OF_BEFORE, False):
        altered["cols"] = payload["before"]["sd"]["cols"]
    descriptors = payload.get("descriptors")
    if descriptors is None:
        return payload
    return {**payload, "partitions": [_whole(each, descriptors) for each in payload["partitions"]]}


def _whole(partition: dict[str, Any], descriptors: list[dict[str, Any]]) -> dict[str, Any]:
    before = partition.get("before")
    if before is None or "after" not in partition or "descriptor" not in before.get("sd", ()):
        return partition
    sd = dict(before["sd"])
    sd = {**descriptors[sd.pop("descriptor")], **sd}
    return {**partition, "before": {**before, "sd": sd}}

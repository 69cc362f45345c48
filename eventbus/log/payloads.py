"""The stored form of event payloads: compressed JSON, with each storage descriptor stored once.

Readers see a complete storage descriptor in the `before` of an altered partition. Stored so, ten thousand altered
partitions would repeat a table's columns ten thousand times, and the payload would cost more than the change. The
stored form has the index of a shared descriptor instead; `unpack` fills it in.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any


def pack(payload: Mapping[str, Any]) -> bytes:
    """Encodes a payload for storage."""
    return zlib.compress(json.dumps(payload, separators=(",", ":")).encode(), 1)


def unpack(kept: bytes) -> dict[str, Any]:
    """Decodes a stored payload into the form that readers see."""
    return whole(json.loads(zlib.decompress(kept)))


def whole(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload with a complete storage descriptor in the `before` of each partition."""
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

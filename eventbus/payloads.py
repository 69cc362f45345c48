"""Payloads as the log keeps them: JSON, compressed, with what partitions have in common once.

To who reads, `before` of an alteration has a whole storage descriptor, which may be another one than that of `after`.
With the columns of a table once for each of ten thousand altered partitions, the payload would cost more than the
alteration; so it is kept like that of `after`, and made whole when it is read.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any


def pack(payload: Mapping[str, Any]) -> bytes:
    """A payload as it is kept."""
    return zlib.compress(json.dumps(payload, separators=(",", ":")).encode(), 1)


def unpack(kept: bytes) -> dict[str, Any]:
    """A payload as it is told."""
    return whole(json.loads(zlib.decompress(kept)))


def whole(payload: dict[str, Any]) -> dict[str, Any]:
    """A payload with whole descriptors in each `before` of an alteration."""
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

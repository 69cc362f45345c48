"""A reply that the cache keeps, in memory or in Redis."""

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, Self

from metastore.cache.stamp import Stamp

Object = tuple[str, int]
"""An object that a reply was read from: its kind (`metastore.store.engine.read_set.Kind`) and its number."""

Renew = Callable[[Any], bytes | None]
"""The encoded body of a reply for another state of the table that it is about, of that table's stored row."""

_FORMAT = b"\x03"
_lengths = struct.Struct(">IQ")  # of what follows: the header, and the body


class Entry:
    """A reply's encoded body, with the objects that it was read from.

    `stamp`: the snapshot that it was read in, or a later one at which it held. `proved`: the number of the last poll of
    `Changes` at which it held, 0 for none. `sent_at`: when it was sent to the shared level, by `time.monotonic`; 0 for
    never. `renew`: what makes the next such reply once the table is altered, until a read has found this one.
    """

    __slots__ = ("body", "objects", "proved", "renew", "sent_at", "stamp")

    def __init__(self, body: bytes, stamp: Stamp, objects: Iterable[Object], renew: Renew | None = None) -> None:
        self.body = body
        self.stamp = stamp
        self.objects = tuple(objects)
        self.proved = 0
        self.sent_at = 0.0
        self.renew = renew

    def __len__(self) -> int:
        return len(self.body)

    def to_bytes(self) -> bytes:
        """The entry as the shared level stores it."""
        stamp = self.stamp
        facts = [stamp.incarnation, str(stamp), stamp.ahead, self.objects]
        header = json.dumps(facts, separators=(",", ":")).encode()
        return b"".join((_FORMAT, _lengths.pack(len(header), len(self.body)), header, self.body))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of `to_bytes`. Raises ValueError for other bytes."""
        try:
            if data[:1] != _FORMAT:
                raise ValueError("another format")
            of_header, of_body = _lengths.unpack_from(data, 1)
            begin = 1 + _lengths.size
            body = begin + of_header
            if len(data) != body + of_body:
                raise ValueError("cut short")
            incarnation, snapshot, ahead, objects = json.loads(data[begin:body])
            stamp = Stamp.of(str(incarnation), snapshot)._replace(ahead=bool(ahead))
            return cls(data[body:], stamp, [(str(kind), int(number)) for kind, number in objects])
        except (struct.error, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"no entry of a cache: {error}") from None

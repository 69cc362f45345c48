"""Changed partitions as an event keeps them: by the bytes in which they are stored, which are there already.

Most of an event's partitions are read by nobody, or much later. To make JSON of them, as they were and as they are,
would take a writer as long as a fifth of all else that it does to them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lake.protocol.codec import splice
from lake.protocol.codec.binary import decode
from lake.protocol.codec.plain import to_plain
from lake.protocol.hive import Partition, PartitionListComposingSpec

_NOT_IN_BODIES = ("dbName", "tableName", "catName", "sd")


@dataclass(frozen=True, slots=True)
class PackedStates:
    """Partitions, as they were before a change or are after it.

    `locations` and `descriptors` are None for partitions without a storage descriptor. The latter are places in a list
    that is kept beside. `bodies`: as of `splice.partition_body`.
    """

    locations: Sequence[str | None]
    descriptors: Sequence[int | None]
    bodies: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class PackedPartitions:
    """Changed partitions. A deep copy is the list of their plain values, which `unpacked` returns.

    `fields`: by the name of a plain field, its value for each partition, or None. `states`: by the name of the plain
    field, such as `before`. All are in the same order. Raises ValueError if some are missing.
    """

    fields: Mapping[str, Sequence[Any]]
    states: Mapping[str, PackedStates]

    def __post_init__(self) -> None:
        counts = {*map(len, self.fields.values())}
        for each in self.states.values():
            counts |= {len(each.locations), len(each.descriptors), len(each.bodies)}
        if len(counts) > 1:
            raise ValueError("each changed partition needs all that others have")

    @property
    def plain(self) -> dict[str, Any]:
        """All but the bodies."""
        states = {name: [each.locations, each.descriptors] for name, each in self.states.items()}
        return {"fields": self.fields, "states": states}

    @property
    def encoded(self) -> bytes:
        """The bodies, in one piece."""
        return splice.joined_bodies([body for state in self.states.values() for body in state.bodies])

    def __deepcopy__(self, _memo: object) -> list[dict[str, Any]]:
        return unpacked(self.plain, self.encoded)


def unpacked(plain: Mapping[str, Any], encoded: bytes) -> list[dict[str, Any]]:
    """The plain values of changed partitions: of each its fields, and its states.

    A state is as by `to_plain`, without the table's names, and with the place of its descriptor: {"location":
    "file:/t/ds=1", "descriptor": 0}.
    """
    fields: dict[str, Iterable[Any]] = dict(plain["fields"])
    bodies = iter(decode(PartitionListComposingSpec, encoded).partitions or ())
    for name, (locations, descriptors) in plain["states"].items():
        fields[name] = [*map(_plain, islice(bodies, len(locations)), locations, descriptors)]
    return [
        {name: value for name, value in zip(fields, values, strict=True) if value is not None}
        for values in zip(*fields.values(), strict=True)
    ]


def _plain(value: Partition, location: str | None, descriptor: int | None) -> dict[str, Any]:
    plain = to_plain(value, without=_NOT_IN_BODIES)
    if descriptor is not None:
        plain["sd"] = {"location": location, "descriptor": descriptor}
    return plain

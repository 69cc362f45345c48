"""Histories of a register: what one writer put into it, one value after the other, and what readers found there.

A history is linearizable if every operation may be thought to have happened at one moment between its begin and its
end. With one writer, who never writes a value twice, that comes to three rules, which `errors` looks at. Times are
`time.monotonic`'s, of one process.
"""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf


@dataclass
class Write:
    begun: float
    acknowledged: float = inf  # it may have happened, may happen yet, or never


@dataclass(frozen=True)
class Read:
    begun: float
    ended: float
    value: Hashable


@dataclass
class History:
    """The register called `name`, which holds `first` before anybody writes. Values are never written twice."""

    name: str
    first: Hashable
    reads: list[Read] = field(default_factory=list)
    _writes: list[Write] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._numbers[self.first] = 0
        self._writes.append(Write(-inf, -inf))

    def write(self, value: Hashable) -> Write:
        """The writer begins to write a value; it says so in what this returns when that is acknowledged."""
        with self._lock:
            assert self._writes[-1].acknowledged < inf, "nobody knows what became of the value before"
            self._numbers[value] = len(self._writes)
            self._writes.append(Write(time.monotonic()))
            return self._writes[-1]

    def read(self, begun: float, value: Hashable) -> None:
        """A reader that began then has just got a value."""
        with self._lock:
            self.reads.append(Read(begun, time.monotonic(), value))

    def errors(self) -> list[str]:
        """What can't be, in words."""
        found = []
        newest: list[tuple[float, int]] = []  # when a read ended that found a newer value than all before
        for read in sorted(self.reads, key=lambda each: each.ended):
            number = self._numbers.get(read.value)
            if number is None:
                found.append(f"{self.name}: {read.value!r} was read, which nobody wrote")
                continue
            if self._writes[number].begun > read.ended:
                found.append(f"{self.name}: {read.value!r} was read before it was written")
            if number + 1 < len(self._writes) and (late := read.begun - self._writes[number + 1].acknowledged) > 0:
                found.append(f"{self.name}: {read.value!r} was read {late:.3f} s after it had been replaced")
            before = max((seen for ended, seen in newest if ended < read.begun), default=0)
            if number < before:
                found.append(f"{self.name}: {read.value!r} was read after the value {before - number} later had been")
            if number > (newest[-1][1] if newest else 0):
                newest.append((read.ended, number))
        return found

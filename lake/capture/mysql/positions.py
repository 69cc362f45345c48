"""Positions in a binary log: a file and a place in it, and both as one number."""

import re
from typing import NamedTuple

from lake.capture.errors import CaptureError

_NUMBERED = re.compile(r"(?P<base>.+)\.(?P<number>[0-9]{1,9})")
_PLACE_BITS = 36  # 64 GB: a transaction isn't divided, so a file may be longer than the source's max_binlog_size


class Position(NamedTuple):
    """`file`: the name of a file of the log, such as `mariadb-bin.000007`; `at`: a byte in it."""

    file: str
    at: int

    @property
    def number(self) -> int:
        """A number that grows along the log, as long as its files keep the beginning of their names."""
        found = _NUMBERED.fullmatch(self.file)
        if found is None or int(found["number"]) >= 1 << 27:
            raise CaptureError(f"the file {self.file!r} of the source's log has no number that can be used")
        return int(found["number"]) << _PLACE_BITS | self.at

    def __str__(self) -> str:
        return f"{self.file}:{self.at}"

"""Files for Iceberg's readers that stand for the log files of a bucket, and their names.

Iceberg's readers merge nothing. So of a bucket with log files they get its base file, a file with the places of the
rows in it that the log files replace or delete, and a file with the rows that come of the log files. The names of the
two say of exactly which files they were made: whoever finds them needn't know more.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

FOLDER = ".iceberg/merged"
"""Where the files lie, below the table."""

PATH, POSITION = "file_path", "pos"
PATH_ID, POSITION_ID = 2147483546, 2147483545
"""The columns of a file of deletes, and their field ids, by Iceberg's specification of tables."""

_RULES = ("primary-key", "bucket", "merge-engine", "sequence.field", "ignore-delete")
_NAME = re.compile(r"([0-9a-f]{40})-([0-9]{1,18})-([0-9]{1,18})-(rows|deletes)\.parquet")


class OverlayName(NamedTuple):
    """What the two files of a bucket are called. `rows`, `deletes`: how many there are.

    The file of the rows is always there, and written last; that of the deletes is there if there are some.
    """

    key: str
    rows: int
    deletes: int

    @property
    def rows_file(self) -> str:
        return f"{self.key}-{self.rows}-{self.deletes}-rows.parquet"

    @property
    def deletes_file(self) -> str:
        return f"{self.key}-{self.rows}-{self.deletes}-deletes.parquet"

    @classmethod
    def of(cls, file: str) -> "OverlayName | None":
        """The name that a file is part of; None for other files."""
        found = _NAME.fullmatch(file)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))


def overlay_key(base: str, files: Iterable[tuple[str, int]], properties: Mapping[str, str]) -> str:
    """What names the files that stand for a bucket. `base`: the table's location, as `uri` has it.

    `files`: paths and sizes of the bucket's files, without tombstones that the base file has applied. `properties`: of
    the table.
    """
    rules = [properties.get(each, "").strip() for each in _RULES]
    return hashlib.sha256(json.dumps([base, sorted(files), rules]).encode()).hexdigest()[:40]


def uri(location: str) -> str:
    """A location as Iceberg's clients read it."""
    return (
        location.replace("file:/", "file:///", 1)
        if location.startswith("file:/") and location[6:7] != "/"
        else location
    )

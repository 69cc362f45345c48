"""The names of Hudi's files, by its format specification.

A base file is `<file id>_<write token>_<instant>.<extension>`, a log file
`.<file id>_<instant>.log.<version>_<write token>`. Where tables have version 6 or less (Hudi 0.x) a log file's instant
is that of the base file it changes, or of the compaction that is going to write one; later it is the instant that wrote
the log file itself.
"""

import re
from typing import NamedTuple

_BASE = re.compile(r"(?P<file_id>[^_./][^_/]*)_(?P<token>[^_/]*)_(?P<instant>[^_./]+)\.[^_/]+")
_LOG = re.compile(r"\.(?P<file_id>[^_/]+)_(?P<instant>[^_./]+)\.log\.(?P<version>\d{1,9})(_(?P<token>[^_/.]+))?")


class BaseName(NamedTuple):
    """What a base file's name says."""

    file_id: str
    token: str
    instant: str


class LogName(NamedTuple):
    """What a log file's name says; in old tables log files may have no write token."""

    file_id: str
    instant: str
    version: int
    token: str | None


def parse(name: str) -> BaseName | LogName | None:
    """What a file's name says, None for a file that holds no rows of the table: change data, marks, strangers."""
    if found := _LOG.fullmatch(name):
        return LogName(found["file_id"], found["instant"], int(found["version"]), found["token"])
    if found := _BASE.fullmatch(name):
        return BaseName(found["file_id"], found["token"], found["instant"])
    return None

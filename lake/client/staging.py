"""Removes what earlier batches left in staging (`formats/staging.py`), where files wait until a report is accepted."""

import logging
from collections.abc import Iterable
from typing import Protocol

import fsspec

from lake.protocol.formats import staging

logger = logging.getLogger(__name__)


class Directories(Protocol):
    """The two things that clearing up needs of a file system."""

    def names(self, location: str) -> Iterable[str]:
        """The names of what lies directly in a directory; none if it isn't there."""

    def remove(self, location: str) -> None:
        """Removes a directory with all below it."""


class FsspecDirectories:
    """Directories on any file system that fsspec knows."""

    def names(self, location: str) -> list[str]:
        fs, path = fsspec.url_to_fs(location)
        fs.invalidate_cache()  # the server moves files, too
        try:
            found = fs.ls(path, detail=False)
        except FileNotFoundError:
            return []
        return [each.rstrip("/").rpartition("/")[2] for each in found]

    def remove(self, location: str) -> None:
        fs, path = fsspec.url_to_fs(location)
        fs.rm(path, recursive=True)


def clear_earlier(staging_location: str, directories: Directories) -> None:
    """Removes what batches before this one left in staging.

    Nobody needs it: a batch begins only after the one before it was accepted, and the server has its files in their
    partitions by then. Other attempts at the same batch stay: one of them may just be reporting. What can't be removed
    is logged and left for the next batch.
    """
    try:
        writer_directory, batch = staging.parse(staging_location)
        for name in directories.names(writer_directory):
            if name.isdecimal() and int(name) < batch:
                directories.remove(f"{writer_directory}/{name}")
    except Exception as error:  # whatever the file system raises: garbage is no reason to stop
        logger.warning("can't clear up before %s: %s", staging_location, str(error).split("\n", 1)[0])

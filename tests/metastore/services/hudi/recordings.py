"""What Hudi's releases wrote into `.hoodie` folders, as `recorded/` keeps it."""

import json
import shutil
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from metastore.warehouse.hudi_files import metadata as hudi_metadata

DIRECTORY = Path(__file__).with_name("recorded")
VERSIONS = ("0.15.0", "1.2.0")


class Recording:
    """A table that a release wrote, stage by stage."""

    def __init__(self, version: str, table: str) -> None:
        with tarfile.open(DIRECTORY / version / f"{table}.tar.xz") as archive:
            self._content = {
                name: file.read() for name in archive.getnames() if (file := archive.extractfile(name)) is not None
            }
        self.stages: dict[str, dict[str, Any]] = json.loads(self._content["stages.json"])

    def files(self, stage: str) -> dict[str, bytes]:
        """The files of the folder at a stage, by their path below the table."""
        prefix = f"{stage}/"
        return {name[len(prefix) :]: data for name, data in self._content.items() if name.startswith(prefix)}

    def put(self, stage: str, directory: Path) -> None:
        """Makes a table's folder what it was at a stage, and data files of the size of those that Hudi read."""
        shutil.rmtree(directory, ignore_errors=True)
        for name, size in self.listed_by_hudi(stage).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(size)
        for name, data in self.files(stage).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def listed_by_hudi(self, stage: str) -> dict[str, int]:
        """The files that Hudi opened to read the table at a stage, and their sizes."""
        return dict(self.stages[stage]["files"])

    def read_by_hudi(self, stage: str) -> dict[str, int]:
        """The same without log files of which it read nothing.

        Hudi 0.x leaves log files of what is rolled back where they are, and writes into another one that they are void.
        """
        void = set()
        for name, data in self.files(stage).items():
            if name.endswith((".rollback", ".restore")):
                void |= set(_void_logs(hudi_metadata.decode(data)))
        return {path: size for path, size in self.listed_by_hudi(stage).items() if path.rpartition("/")[2] not in void}


def _void_logs(metadata: Any) -> Iterator[str]:
    """The names of log files that a rollback's or restore's metadata calls void, or that say so."""
    if isinstance(metadata, dict):
        for name in ("rollbackLogFiles", "logFilesFromFailedCommit"):
            yield from (path.rpartition("/")[2] for path in metadata.get(name) or ())
    for each in metadata.values() if isinstance(metadata, dict) else metadata if isinstance(metadata, list) else ():
        yield from _void_logs(each)


@cache
def recording(version: str, table: str) -> Recording:
    return Recording(version, table)


def callbacks(version: str) -> list[dict[str, Any]]:
    """The requests of Hudi's commit callback: path, headers, body."""
    found: list[dict[str, Any]] = json.loads((DIRECTORY / version / "callback.json").read_text())
    return found

"""Files and directories as a Spark session reaches them: through Hadoop, with the session's own settings."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class FoundFile(NamedTuple):
    """A file by its path below the directory that was looked at, and its size in bytes."""

    path: str
    size: int


class HadoopFiles:
    """The little that writers and checkpoints need."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._new_path = jvm.org.apache.hadoop.fs.Path
        self._spark = spark

    def _path(self, location: str) -> Any:
        return self._new_path(location)

    def _file_system(self, path: Any) -> Any:
        return path.getFileSystem(self._spark._jsc.hadoopConfiguration())

    def names(self, location: str) -> list[str]:
        """The names of what lies directly in a directory; none if it isn't there."""
        path = self._path(location)
        file_system = self._file_system(path)
        if not file_system.exists(path):
            return []
        return [status.getPath().getName() for status in file_system.listStatus(path)]

    def exists(self, location: str) -> bool:
        """Whether there is a file or directory."""
        path = self._path(location)
        return bool(self._file_system(path).exists(path))

    def remove(self, location: str) -> None:
        """Removes a file, or a directory with all below it."""
        path = self._path(location)
        self._file_system(path).delete(path, True)

    def remove_all(self, locations: Iterable[str]) -> None:
        """As `remove`, for several."""
        for each in locations:
            self.remove(each)

    def copy(self, source: str, target: str) -> None:
        """Copies a file. Raises FileNotFoundError without it, OSError if it can't be done."""
        old, new = self._path(source), self._path(target)
        if not self._file_system(old).exists(old):
            raise FileNotFoundError(source)
        jvm: Any = self._spark._jvm
        copied = jvm.org.apache.hadoop.fs.FileUtil.copy(
            self._file_system(old), old, self._file_system(new), new, False, self._spark._jsc.hadoopConfiguration()
        )
        if not copied:
            raise OSError(f"can't copy {source} to {target}")

    def found(self, location: str, suffix: str) -> list[FoundFile]:
        """The files below a directory whose names end so; none if the directory isn't there."""
        root = self._path(location)
        file_system = self._file_system(root)
        if not file_system.exists(root):
            return []
        start = len(file_system.makeQualified(root).toUri().getPath().rstrip("/")) + 1
        found = []
        listed = file_system.listFiles(root, True)
        while listed.hasNext():
            status = listed.next()
            if (path := status.getPath().toUri().getPath()).endswith(suffix):
                found.append(FoundFile(path[start:], status.getLen()))
        return sorted(found)

    def spellings(self, location: str) -> tuple[str, str]:
        """A file's location as Spark may spell it (`_metadata.file_path`): encoded as a URI, or not."""
        path = self._path(location)
        return path.toUri().toString(), path.toString()

    def read(self, location: str) -> str:
        """The text of a small file."""
        path = self._path(location)
        stream = self._file_system(path).open(path)
        try:
            return str(self._spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))  # type: ignore[union-attr]
        finally:
            stream.close()

    def write(self, location: str, text: str) -> None:
        """Makes a small file, or replaces it. A process that dies meanwhile may leave a part of the text."""
        path = self._path(location)
        stream = self._file_system(path).create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

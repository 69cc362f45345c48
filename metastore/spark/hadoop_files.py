"""Files and directories as a Spark session reaches them: through Hadoop, with the session's own settings."""

from typing import Any

from pyspark.sql import SparkSession


class HadoopFiles:
    """The little that a writer of staged files needs (`metastore.client.staging.Directories` among it)."""

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

    def remove(self, location: str) -> None:
        """Removes a directory with all below it."""
        path = self._path(location)
        self._file_system(path).delete(path, True)

    def files(self, location: str, suffix: str) -> list[str]:
        """The files below a directory whose names end so, as sorted paths relative to it."""
        root = self._path(location)
        file_system = self._file_system(root)
        start = len(file_system.makeQualified(root).toUri().getPath().rstrip("/")) + 1
        found = []
        listed = file_system.listFiles(root, True)
        while listed.hasNext():
            path = listed.next().getPath().toUri().getPath()
            if path.endswith(suffix):
                found.append(path[start:])
        return sorted(found)

    def rename(self, location: str, old: str, new: str) -> None:
        """Renames a file; both names are relative to the directory. Raises OSError if it can't be done."""
        root = self._path(location)
        if not self._file_system(root).rename(self._new_path(root, old), self._new_path(root, new)):
            raise OSError(f"can't rename {old} to {new} in {location}")

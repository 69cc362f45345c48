"""What the client suite runs against: our server, or Hive's."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from metastore.client.thrift_client import ThriftClient


@dataclass(frozen=True)
class Target:
    """A running metastore server, ours or Hive's own."""

    name: str
    host: str
    port: int
    log: Path

    def connect(self) -> ThriftClient:
        return ThriftClient(self.host, self.port)

    def warehouse(self) -> Path:
        """The directory in which the server makes databases."""
        with self.connect() as client:
            return local_path(client.get_database("default").locationUri)


def local_path(location: str) -> Path:
    """The path of a `file:` location."""
    parts = urlsplit(location)
    assert parts.scheme == "file", location
    return Path(parts.path)

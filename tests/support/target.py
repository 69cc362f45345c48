"""What the client suite runs against: our server, or Hive's."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetTableRequest, Table


class NewerClient(ThriftClient):
    """Uses Hive 4's form of a call if Hive 4 no longer knows the older form."""

    def get_table(self, dbname: str | None, tbl_name: str | None) -> Table:
        request = GetTableRequest(dbname, tbl_name)
        return self.call("get_table_req", request).table


@dataclass(frozen=True)
class Target:
    """A running metastore server, ours or Hive's own."""

    name: str
    host: str
    port: int
    log: Path

    def connect(self) -> ThriftClient:
        kind = NewerClient if self.name == "hive4" else ThriftClient
        return kind(self.host, self.port)

    def warehouse(self) -> Path:
        """The directory in which the server makes databases."""
        with self.connect() as client:
            return local_path(client.get_database("default").locationUri)


def local_path(location: str) -> Path:
    """The path of a `file:` location."""
    parts = urlsplit(location)
    assert parts.scheme == "file", location
    return Path(parts.path)

"""An offline job that looks all the time: what it sees of a partition once, it must see for ever."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from thrift.Thrift import TException

from lake.client.reconnecting import connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from tests.orders_stream import lake
from tests.support.target import local_path


@dataclass(frozen=True)
class Seen:
    """A partition when it was first visible: its rows' ids, and its files with their sizes."""

    ids: tuple[int, ...]
    files: tuple[tuple[str, int], ...]


@dataclass
class OfflineReader:
    """Polls a table's visible partitions as any Hive client does, in a thread of its own.

    The first sight of a partition reads its rows; each later one compares its files. `complaints` tells what no
    offline reader may see. A server that is away is no complaint.
    """

    uri: str
    table: str
    seen: dict[str, Seen] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    looks: int = 0
    missed: int = 0  # looks that got no answer

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="offline reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        connect = connect_to(self.uri, timeout=10)
        while not self._stop.is_set():
            try:
                with connect() as client:
                    while not self._stop.is_set():
                        self.look(client)
                        time.sleep(0.05)
            except (TException, OSError):
                self.missed += 1
                time.sleep(0.1)

    def look(self, client: ThriftClient) -> None:
        database, _, name = self.table.partition(".")
        found = client.get_partitions(database, name, -1)
        visible = {f"dt={partition.values[0]}/hr={partition.values[1]}": partition.sd.location for partition in found}
        for partition, location in visible.items():
            try:
                self._compare(partition, location)
            except Exception as error:  # a file that is gone, or not whole
                self.complaints.append(f"{partition} can't be read: {error!r}")
        self.complaints += [f"{partition} is gone" for partition in self.seen.keys() - visible.keys()]
        self.looks += 1

    def _compare(self, partition: str, location: str) -> None:
        files = tuple((file.name, file.stat().st_size) for file in lake.data_files(location))
        if partition not in self.seen:
            self.seen[partition] = Seen(tuple(sorted(lake.ids(location))), files)
            if not Path(local_path(location), "_SUCCESS").exists():
                self.complaints.append(f"{partition} is visible without _SUCCESS")
        elif files != self.seen[partition].files:
            self.complaints.append(f"{partition} had {self.seen[partition].files}, now has {files}")

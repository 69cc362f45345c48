"""A Hudi table's own files about itself: its properties and its timeline."""

from collections.abc import Mapping

from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.warehouse import Warehouse
from metastore.wire import hudi_names, hudi_timeline
from metastore.wire.hudi_metadata import MAX_BYTES

MAX_PROPERTIES = 1 << 20


class HudiFolder:
    """The `.hoodie` folder of a table as it was when it was opened; what is read of instants is read when asked for."""

    def __init__(self, warehouse: Warehouse, location: str) -> None:
        """Raises WarehouseError, also where there is no table of Hudi's."""
        self._warehouse = warehouse
        self.location = warehouse.qualify(location)
        content = self._read(f"{hudi_timeline.FOLDER}/{hudi_timeline.PROPERTIES}", MAX_PROPERTIES)
        if content is None:
            raise WarehouseError(
                f"{self.location} is no table of Hudi's: it has no {hudi_timeline.FOLDER}/{hudi_timeline.PROPERTIES}"
            )
        self.properties: Mapping[str, str] = hudi_timeline.properties(content)
        self._timeline = hudi_timeline.timeline_folder(self.properties)
        self.instants = hudi_timeline.instants(warehouse.names(self._place(self._timeline)))
        self.has_archive = bool(warehouse.names(self._place(hudi_timeline.archive_folder(self.properties))))

    def content(self, name: str | None) -> bytes | None:
        """What is in a file of the timeline, None if it is gone. Raises WarehouseError if it is too large."""
        return b"" if name is None else self._read(f"{self._timeline}/{name}", MAX_BYTES)

    def older_files(self) -> dict[str, int]:
        """The data files whose names say that they are older than every instant on the timeline, and their sizes.

        Hudi takes them for committed: their instants have been archived. Lists the whole table.
        """
        first = min((each.timestamp for each in self.instants), default=None)
        if first is None:
            return {}
        return {path: size for path, size in self._warehouse.sizes(self.location).items() if _is_older(path, first)}

    def _read(self, path: str, at_most: int) -> bytes | None:
        found = self._warehouse.read_file(self._place(path), at_most + 1)
        if found is not None and len(found) > at_most:
            raise WarehouseError(f"{self._place(path)} is too large: at most {at_most:,} bytes are read")
        return found

    def _place(self, path: str) -> str:
        return self._warehouse.join(self.location, path)


def _is_older(path: str, first: str) -> bool:
    if path.startswith(f"{hudi_timeline.FOLDER}/"):
        return False
    name = hudi_names.parse(path.rpartition("/")[2])
    return name is not None and name.instant < first

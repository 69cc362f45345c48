"""A Hudi table's own files about itself: its properties and its timeline."""

from collections.abc import Collection, Mapping

from lake.protocol.lake import HudiInstant
from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.hudi_files import names as hudi_names
from metastore.warehouse.hudi_files import timeline as hudi_timeline
from metastore.warehouse.hudi_files.metadata import MAX_BYTES
from metastore.warehouse.hudi_files.timeline import Step
from metastore.warehouse.warehouse import Warehouse

MAX_PROPERTIES = 1 << 20


class HudiFolder:
    """The `.hoodie` folder of a table as it was when it was opened.

    The contents of instants are read when they are needed.
    """

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

    def steps(self, done: Collection[tuple[str, str]]) -> list[Step]:
        """What happened, one after the other, but for instants that are `done`: their timestamps and first actions."""
        return hudi_timeline.history(each for each in self.instants if (each.timestamp, each.action) not in done)

    def to_thrift(self, step: Step) -> HudiInstant | None:
        """A step with what Hudi wrote; None if its file has gone meanwhile. Raises WarehouseError."""
        each = step.instant
        content = self._content(each.completed if step.completed else each.requested)
        if content is None:
            return None
        state = "completed" if step.completed else "requested" if each.inflight is None else "inflight"
        other = each.completed_as if step.completed and each.completed_as != each.action else None
        return HudiInstant(each.timestamp, each.action, state, other, content or None)

    def older_files(self) -> dict[str, int]:
        """The data files whose names say that they are older than every instant on the timeline, and their sizes.

        Hudi takes them for committed: their instants have been archived. Lists the whole table.
        """
        first = min((each.timestamp for each in self.instants), default=None)
        if first is None:
            return {}
        return {path: size for path, size in self._warehouse.sizes(self.location).items() if _is_older(path, first)}

    def _content(self, name: str | None) -> bytes | None:
        return b"" if name is None else self._read(f"{self._timeline}/{name}", MAX_BYTES)

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

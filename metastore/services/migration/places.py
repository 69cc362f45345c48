"""The directories of objects that are brought from another metastore. They are there already, and are somebody's."""

from collections.abc import Collection

from lake.protocol.hive import MetaException
from metastore.services.access.locations import has_credentials
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.instant_rules.paths import is_of_instant
from metastore.services.model.names import DEFAULT_DATABASE
from metastore.store.engine.database import Transaction
from metastore.warehouse import Warehouse, WarehouseError


class NewPlaces:
    """Gives places to objects without making directories there, and without looking into them.

    So a drop deletes what lies there only below the warehouse's roots (`delete_roots`).
    """

    def __init__(self, warehouse: Warehouse, mover: Mover, deletable: Deletable) -> None:
        self._warehouse = warehouse
        self._mover = mover
        self._deletable = deletable

    def qualified(self, location: str) -> str:
        """A location as it is kept. Raises MetaException for one of a storage that the server doesn't know."""
        if "@" in location and has_credentials(location):
            raise MetaException("a location must not carry a user's name or password: leave out what is before the @")
        try:
            found = self._warehouse.place(location)
        except WarehouseError as error:
            raise MetaException(f"{error}. Map the location to one that can be used: --location") from None
        place = str(found)
        if found.parent is None:
            raise MetaException(f"{place} is the root of a storage: no object may lie there")
        if is_of_instant(place):
            raise MetaException(f"{place} is the directory of an instant, which belongs to the table around it")
        return place

    def check(self, location: str) -> None:
        """Raises MetaException as `qualified`."""
        self.qualified(location)

    def is_root(self, location: str) -> bool:
        """Whether a location is where the server itself puts the database `default`."""
        return location == self._warehouse.database_location(DEFAULT_DATABASE)

    def taken(self, tx: Transaction, places: Collection[str]) -> None:
        """New objects lie there: what still had to be deleted or moved there is done before."""
        if places:
            self._deletable.hold(tx, places)
            self._mover.settle_within(tx, places)
            self._deletable.record_given(tx, places)

    def settle(self, tx: Transaction, places: Collection[str | None]) -> None:
        """What still had to be deleted or moved at some places is done now."""
        self._mover.settle_within(tx, places)

    given = taken
    """Objects that are there get these places."""

"""Which places a caller may name: the usual ones, those below the operator's roots, and with a right all others."""

from collections.abc import Collection, Iterable

from lake.protocol.hive import MetaException
from metastore.services.access.locations import AllowedLocations, has_credentials
from metastore.services.access.rights import Securable
from metastore.warehouse import Warehouse, WarehouseError


class Places:
    """Says which locations need the privilege LOCATION.

    `confined`: nobody has it but the operator's administrators, whatever an authorizer says.
    """

    def __init__(self, warehouse: Warehouse, allowed: AllowedLocations, *, confined: bool = False) -> None:
        self._warehouse = warehouse
        self._allowed = allowed
        self.confined = confined

    def needs_right(
        self, location: str | None, object: Securable, roles: Collection[str], usual: Iterable[str | None]
    ) -> bool:
        """Whether a location is another than the usual ones of an object, and outside of the roots for these roles.

        Raises MetaException for a malformed location, and for one with a name or password before its host.
        """
        if not location:
            return False
        wanted = self._qualified(location)
        if wanted in {self._qualified(each) for each in usual if each}:
            return False
        return not self._allowed.include(wanted, object.database, roles)

    def lies_within(self, location: str, base: str | None) -> bool:
        """Whether a location lies strictly below a directory. Raises MetaException as `needs_right` does."""
        wanted = self._qualified(location)
        return base is not None and self._warehouse.relative_to(wanted, base) is not None

    def are_same(self, one: str | None, other: str | None) -> bool:
        """Whether two locations name one place. Raises MetaException as `needs_right` does."""
        return (self._qualified(one) if one else None) == (self._qualified(other) if other else None)

    def of_table(self, database_locations: Iterable[str | None], database: str, table: str) -> list[str]:
        """The usual places of a new table."""
        parents = [*database_locations, self._warehouse.external_database_location(database)]
        return [self._warehouse.table_location(each, table) for each in parents if each]

    def of_database(self, database: str) -> list[str]:
        """The usual places of a new database."""
        return [self._warehouse.database_location(database), self._warehouse.external_database_location(database)]

    def _qualified(self, location: str) -> str:
        if has_credentials(location):
            raise MetaException("a location must not carry a user's name or password: leave out what is before the @")
        try:
            return self._warehouse.qualify(location)
        except WarehouseError as error:
            raise MetaException(str(error)) from None

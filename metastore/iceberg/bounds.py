"""Which metadata files a front of other metastores reads and writes: their tables may name any place."""

from collections.abc import Callable, Sequence

from metastore.iceberg.errors import RestError
from metastore.warehouse import Warehouse, WarehouseError


class Bounds:
    """`roots`: the directories that the operator allows, as of now."""

    def __init__(self, warehouse: Warehouse, roots: Callable[[], Sequence[str]]) -> None:
        self._warehouse = warehouse
        self._roots = roots

    def check(self, location: str, table: str) -> None:
        """Raises RestError (403) unless a file or directory lies below the roots, and at or below a table's location.

        Backends let their users name any place as a table's metadata: it isn't to show the file of another table.
        """
        try:
            roots = self._roots()
            # Links are followed: below a root they may lead anywhere.
            true = self._warehouse.true_locations([location, table, *roots])
            below = any(self._is_below(location, root) and self._is_below(true[location], true[root]) for root in roots)
            own = self._is_below(true[location], true[table])
        except WarehouseError as error:
            raise _refused(str(error)) from None
        if not below:
            raise _refused(f"{location} isn't below federation.iceberg_locations of this front's file")
        if not own:
            raise _refused(f"{location} isn't below the table's location {table}, so a front leaves it alone")

    def _is_below(self, location: str, root: str) -> bool:
        return self._warehouse.relative_to(location, root) is not None or (
            self._warehouse.qualify(location) == self._warehouse.qualify(root)
        )


def _refused(text: str) -> RestError:
    return RestError(403, "ForbiddenException", text)

"""What a reader sees of a table's partitions: those that are ready, unless it asks for the others, too."""

from enum import Enum
from typing import Any

from metastore.services import names as given
from metastore.store.names import TableName
from metastore.store.partitions import Selection
from metastore.store.tables import TableRow


class Scope(Enum):
    """Which partitions a reader asks for."""

    READY = "ready partitions"
    UNCOMMITTED = "uncommitted partitions, too"


def hides_uncommitted(scope: Scope, name: TableName | None = None) -> bool:
    """The one function that decides what a reader sees: whether uncommitted partitions are hidden from it.

    `name` is that by which it asked for the table, if it asked for one: a decorated name shows them whatever the scope.
    """
    return scope is Scope.READY and (name is None or not given.is_decorated(name))


def readable(row: TableRow, scope: Scope, **conditions: Any) -> Selection:
    """What a reader sees of a table's partitions, under further conditions of `Selection`.

    `row` bears the name by which the reader asked for the table.
    """
    return Selection(row.id, only_ready=hides_uncommitted(scope, row.name), **conditions)

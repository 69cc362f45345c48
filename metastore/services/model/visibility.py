"""The visibility of partitions: readers see ready ones only, unless their scope includes uncommitted ones."""

from enum import Enum
from typing import Any

from metastore.services.model import names as given
from metastore.store.engine.names import TableName
from metastore.store.partition.partitions import Selection
from metastore.store.table.tables import TableRow


class Scope(Enum):
    """Which partitions a reader asks for."""

    READY = "ready partitions"
    UNCOMMITTED = "uncommitted partitions, too"


def hides_uncommitted(scope: Scope, name: TableName | None = None) -> bool:
    """Whether uncommitted partitions are hidden from a reader. Every decision about visibility is made here.

    `name`: the name by which the reader asked for the table. A decorated name shows them in any scope.
    """
    return scope is Scope.READY and (name is None or not given.is_decorated(name))


def readable(row: TableRow, scope: Scope, **conditions: Any) -> Selection:
    """Selects the partitions that a reader sees, with further conditions of `Selection`.

    `row.name` is the name by which the reader asked for the table.
    """
    return Selection(row.id, only_ready=hides_uncommitted(scope, row.name), **conditions)

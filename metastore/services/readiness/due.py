"""Which uncommitted partitions are due to turn ready."""

from collections.abc import Sequence

from lake.protocol.formats.commit_mode import CommitMode
from metastore.services.commit_flag.commit_flag import OPENED
from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.model.partition_codec import decoded
from metastore.store.commit_flag.readiness import Readiness
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.partition.partitions import PartitionRow
from metastore.store.table.tables import TableRow


def due_partitions(
    tx: Transaction, row: TableRow, properties: ReadinessProperties, held: Sequence[PartitionRow], state: Readiness
) -> list[PartitionRow]:
    """The due ones among some uncommitted partitions."""
    if properties.mode is CommitMode.PROCESS_TIME:
        now = now_ms(tx)
        return [partition for partition, opened in opening_times(tx, row, held) if now > opened + properties.delay]
    if properties.mode is not CommitMode.EVENT_TIME or state.watermark is None:
        return []
    clock = PartitionClock(properties)
    return [partition for partition in held if clock.is_due(partition.values, state.watermark)]


def opening_times(tx: Transaction, row: TableRow, held: Sequence[PartitionRow]) -> list[tuple[PartitionRow, int]]:
    """Uncommitted partitions, each with the time since when it is uncommitted, in milliseconds since 1970.

    The time is the server's own (`commit.opened`). The creation time isn't used, because clients can alter it.
    """
    opened = [(value.parameters or {}).get(OPENED) or "0" for value in decoded(tx, row, held)]
    return [(partition, int(text)) for partition, text in zip(held, opened, strict=True)]

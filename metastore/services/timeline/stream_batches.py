"""Batches of streams: each becomes part of a table once, however often its writer is killed and starts again.

A writer that repeats a batch can't know whether its earlier completion succeeded. So a completion names its stream and
the number of its batch, and both are stored in the same transaction.
"""

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest
from metastore.store.engine.database import Transaction
from metastore.store.table.tables import TableRow
from metastore.store.timeline import stream_batches

MAX_STREAM_LENGTH = 256
"""Characters of a stream's name."""

MAX_STREAMS = 1_000
"""Streams that are known per table. Those that wrote last stay."""


def is_repeated(tx: Transaction, row: TableRow, request: CompleteInstantRequest) -> bool:
    """Whether a completion's batch, or a later one of its stream, is part of the table already.

    False for one that names no stream. The caller holds the table's timeline. Raises InvalidOperationException.
    """
    if request.stream is None and request.batch is None:
        return False
    if not request.stream or request.batch is None or request.batch < 0:
        raise InvalidOperationException("a batch has the name of its stream and a number, 0 or more")
    if len(request.stream) > MAX_STREAM_LENGTH:
        raise InvalidOperationException(f"the name of a stream has at most {MAX_STREAM_LENGTH} characters")
    last = stream_batches.last(tx, row.id, request.stream)
    return last is not None and request.batch <= last


def record(tx: Transaction, row: TableRow, request: CompleteInstantRequest, position: int) -> None:
    """Stores that a completion's batch is part of the table, at `position`."""
    if request.stream is not None and request.batch is not None:
        stream_batches.put(
            tx,
            row.id,
            request.stream,
            request.batch,
            timestamp=request.timestamp or "",
            position=position,
            keep=MAX_STREAMS,
        )

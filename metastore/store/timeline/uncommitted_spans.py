"""At which positions of a lake table its partitions were uncommitted. At all others they were ready."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, false, func, insert, literal, or_, select, update

from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.partition import partitions
from metastore.store.schema.timeline import uncommitted_spans

_SPAN = uncommitted_spans.c


class Span(NamedTuple):
    """A partition was uncommitted from a position on until another one; None: it still is."""

    partition: str
    opened_at: int
    committed_at: int | None


def of_all_uncommitted(tx: Connection, table_id: int) -> None:
    """Begins the spans of a table that gets its timeline now. The caller has locked the table's row."""
    now = select(partitions.c.table_id, partitions.c.name, literal(0)).where(
        partitions.c.table_id == table_id, partitions.c.ready == false()
    )
    tx.execute(insert(uncommitted_spans).from_select(["table_id", "partition_name", "opened_at"], now))


def begin(tx: Connection, table_id: int, names: Collection[str], position: int) -> None:
    """Partitions are uncommitted from a position on."""
    end(tx, table_id, names, position)
    rows = [{"table_id": table_id, "partition_name": each, "opened_at": position} for each in sorted(names)]
    if rows:
        tx.execute(insert(uncommitted_spans), rows)


def end(tx: Connection, table_id: int, names: Collection[str], position: int) -> None:
    """Partitions are ready, or gone, from a position on."""
    open_ones = (
        _SPAN.table_id == table_id,
        _SPAN.partition_name == func.any(list(names)),
        _SPAN.committed_at.is_(None),
    )
    tx.execute(delete(uncommitted_spans).where(*open_ones, _SPAN.opened_at >= position))  # at no position at all
    tx.execute(update(uncommitted_spans).where(*open_ones).values(committed_at=position))


def at(tx: Connection, table_id: int, position: int) -> list[str]:
    """The names of the partitions that were uncommitted at a position."""
    return [each.partition for each in between(tx, table_id, position, position)]


def between(tx: Connection, table_id: int, first: int, last: int) -> Sequence[Span]:
    """The spans that have at least one position from `first` to `last`, by partition and in their order."""
    record_read(Kind.TIMELINE, table_id)
    query = (
        select(_SPAN.partition_name, _SPAN.opened_at, _SPAN.committed_at)
        .where(
            _SPAN.table_id == table_id,
            _SPAN.opened_at <= last,
            or_(_SPAN.committed_at.is_(None), _SPAN.committed_at > first),
        )
        .order_by(_SPAN.partition_name, _SPAN.opened_at)
    )
    return [Span(*row) for row in tx.execute(query)]

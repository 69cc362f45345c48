"""SQL for column statistics of tables and partitions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY

from metastore.store.engine import binary_rows, bulk
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.partition.partitions import Selection, record_partitions_read
from metastore.store.schema.base import NAME
from metastore.store.schema.partition import partitions
from metastore.store.schema.statistics import column_statistics

OF_TABLE = 0  # the partition id under which a table's own statistics are kept
_PAGE = 1_000  # partitions


class NewStatistics(NamedTuple):
    """Statistics of one column, to be stored. `last_analyzed`: in seconds since 1970. `body`: the encoded struct."""

    partition_id: int
    column: str
    engine: str
    last_analyzed: int
    body: bytes


class KeptStatistics(NamedTuple):
    """Statistics of some columns of one partition as they are kept, encoded one after the other.

    `partition` is the partition's name, empty for the table's own; `last_analyzed` when the oldest of them were made.
    """

    partition: str
    columns: int
    last_analyzed: int
    bodies: bytes


def of_table(tx: Connection, table_id: int, columns: Sequence[str], engine: str) -> KeptStatistics | None:
    """The table's own statistics of some columns, in the order asked for; None if it has none."""
    return _kept(tx, table_id, {OF_TABLE: ""}, columns, engine)[OF_TABLE]


def of_partitions(
    tx: Connection, selection: Selection, columns: Sequence[str], engine: str
) -> Iterator[KeptStatistics]:
    """The selected partitions' statistics of some columns, for each in the order asked for.

    Partitions without statistics are left out. The order is that of the partitions' names. Rows are fetched in pages
    while they are consumed, which bounds the memory. It isn't a join: after a table has grown, Postgres' planner would
    choose a slow plan.
    """
    record_partitions_read(selection)
    query = select(partitions.c.id, partitions.c.name).where(selection.condition()).order_by(partitions.c.name)
    selected = [(row[0], row[1]) for row in tx.execute(query)]
    for start in range(0, len(selected), _PAGE):
        page = dict(selected[start : start + _PAGE])
        yield from filter(None, _kept(tx, selection.table_id, page, columns, engine).values())


def _kept(
    tx: Connection, table_id: int, names: Mapping[int, str], columns: Sequence[str], engine: str
) -> dict[int, KeptStatistics | None]:
    """What is kept for partitions, by their ids and in the order of these, None where nothing is."""
    record_read(Kind.STATISTICS, table_id)
    kept = column_statistics.c
    wanted = literal(list(columns), ARRAY(NAME))
    place = func.array_position(wanted, kept.column_name)
    query = (
        select(
            kept.partition_id,
            func.count(),
            func.min(kept.last_analyzed),
            func.string_agg(kept.body, literal(b"")).aggregate_order_by(place),
        )
        .where(
            kept.table_id == table_id,
            kept.partition_id == func.any(list(names)),
            kept.column_name == func.any(wanted),
            kept.engine == engine,
        )
        .group_by(kept.partition_id)
    )
    found: dict[int, KeptStatistics | None] = dict.fromkeys(names)
    for row in binary_rows.fetch(tx, query):
        partition, count, last_analyzed, bodies = (value or b"" for value in binary_rows.values(row))
        number = int.from_bytes(partition)
        analyzed = int.from_bytes(last_analyzed, signed=True)
        found[number] = KeptStatistics(names[number], int.from_bytes(count), analyzed, bodies)
    return found


def put(tx: Connection, table_id: int, new: Iterable[NewStatistics]) -> None:
    """Stores statistics. They replace those of the same partition, column and engine, which must not occur twice."""
    bulk.execute_for_rows(
        tx,
        "INSERT INTO column_statistics (table_id, partition_id, column_name, engine, last_analyzed, body)"
        " SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bytea[])"
        " ON CONFLICT (table_id, partition_id, column_name, engine)"
        " DO UPDATE SET last_analyzed = excluded.last_analyzed, body = excluded.body",
        ((table_id, *statistics) for statistics in new),
    )


def remove(
    tx: Connection, table_id: int, partition_ids: Sequence[int], columns: Sequence[str] | None, engine: str | None
) -> int:
    """Removes statistics of partitions, or of the table itself; None stands for every column or engine.

    Returns how many columns' statistics were removed, counted for each engine.
    """
    doomed = delete(column_statistics).where(
        column_statistics.c.table_id == table_id, column_statistics.c.partition_id == func.any(list(partition_ids))
    )
    if columns is not None:
        doomed = doomed.where(column_statistics.c.column_name == func.any(list(columns)))
    if engine is not None:
        doomed = doomed.where(column_statistics.c.engine == engine)
    return tx.execute(doomed).rowcount


def partitions_with(tx: Connection, table_id: int, columns: Sequence[str] | None, engine: str) -> list[str]:
    """The names of the partitions that have statistics, or some of those columns."""
    query = (
        select(partitions.c.name)
        .join(column_statistics, column_statistics.c.partition_id == partitions.c.id)
        .where(partitions.c.table_id == table_id, column_statistics.c.table_id == table_id)
        .where(column_statistics.c.engine == engine)
        .distinct()
    )
    if columns is not None:
        query = query.where(column_statistics.c.column_name == func.any(list(columns)))
    return list(tx.execute(query).scalars())


def remove_columns(tx: Connection, table_id: int, columns: Sequence[str], *, partitions_too: bool) -> None:
    """Removes the statistics of some columns: the table's own, or all its partitions' as well."""
    doomed = delete(column_statistics).where(
        column_statistics.c.table_id == table_id, column_statistics.c.column_name == func.any(list(columns))
    )
    if not partitions_too:
        doomed = doomed.where(column_statistics.c.partition_id == OF_TABLE)
    tx.execute(doomed)

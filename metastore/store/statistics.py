"""Column statistics of tables and partitions."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, func, select

from metastore.store import bulk
from metastore.store.partitions import Selection
from metastore.store.schema import column_statistics, partitions

OF_TABLE = 0  # the partition id under which a table's own statistics are kept
_PAGE = 1_000  # partitions


class NewStatistics(NamedTuple):
    """Statistics of one column, to be kept. `last_analyzed` in seconds since the epoch; `body` is encoded."""

    partition_id: int
    column: str
    engine: str
    last_analyzed: int
    body: bytes


class KeptStatistics(NamedTuple):
    """Statistics of one column as they are kept; `partition` is the partition's name, empty for the table's own."""

    partition: str
    column: str
    last_analyzed: int
    body: bytes


_KEPT = (column_statistics.c.column_name, column_statistics.c.last_analyzed, column_statistics.c.body)


def _of_columns(query: Select[Any], columns: Sequence[str], engine: str) -> Select[Any]:
    return query.where(column_statistics.c.column_name == func.any(list(columns)), column_statistics.c.engine == engine)


def of_table(tx: Connection, table_id: int, columns: Sequence[str], engine: str) -> list[KeptStatistics]:
    """The table's own statistics of some columns, in no particular order."""
    query = _of_columns(select(*_KEPT), columns, engine).where(
        column_statistics.c.table_id == table_id, column_statistics.c.partition_id == OF_TABLE
    )
    return [KeptStatistics("", row[0], row[1], bytes(row[2])) for row in tx.execute(query)]


def of_partitions(
    tx: Connection, selection: Selection, columns: Sequence[str], engine: str
) -> Iterator[KeptStatistics]:
    """The selected partitions' statistics of some columns, in the order of the partitions' names.

    They are fetched while they are consumed, those of so many partitions at a time that many need no more memory
    than few. Not as a join: the planner, misled about a table that has just grown, would make it slow.
    """
    query = select(partitions.c.id, partitions.c.name).where(selection.condition()).order_by(partitions.c.name)
    selected = [(row[0], row[1]) for row in tx.execute(query)]
    for start in range(0, len(selected), _PAGE):
        names = dict(selected[start : start + _PAGE])
        found: dict[int, list[KeptStatistics]] = {number: [] for number in names}
        page = _of_columns(select(column_statistics.c.partition_id, *_KEPT), columns, engine).where(
            column_statistics.c.table_id == selection.table_id,
            column_statistics.c.partition_id == func.any(list(names)),
        )
        for row in tx.execute(page):
            found[row[0]].append(KeptStatistics(names[row[0]], row[1], row[2], bytes(row[3])))
        for of_partition in found.values():
            yield from of_partition


def put(tx: Connection, table_id: int, new: Iterable[NewStatistics]) -> None:
    """Keeps statistics, each in the place of those of the same partition, column and engine; none may come twice."""
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

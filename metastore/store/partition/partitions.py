"""SQL for partitions. A table has many, so all functions work on many rows at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    column,
    delete,
    func,
    literal,
    select,
    update,
)

from lake.protocol.codec.splice import LOCATION_BEGIN, NO_DESCRIPTOR, SD_BEGIN, StoredPage, StoredPartition
from metastore.postgres.prepared import Prepared, execute_all, few, put_off
from metastore.store.engine import binary_rows, bulk
from metastore.store.engine.predicates import Predicate, to_sql
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.files import publications
from metastore.store.schema.base import NAME
from metastore.store.schema.partition import partition_events, partitions
from metastore.store.schema.statistics import column_statistics

FIRST_PAGE, PAGE, PAGE_BYTES = 1_000, 4_000, 8 << 20
"""Limits of a page of rows: partitions in the first page, in others, and bytes. While one page is sent to a client,
the database reads the next. The size of partitions is estimated from the page before."""

Page = TypeVar("Page")

_NUMBER = binary_rows.ROW_BEGIN + binary_rows.LENGTH
_MIDDLE = _NUMBER + 8
_NO_NAME = -binary_rows.LENGTH
"""Offsets in bytes within a row of `scan_encoded`."""

_COLUMNS = (partitions.c.body, partitions.c.path, partitions.c.location, partitions.c.storage_descriptor_id)


class NewPartition(NamedTuple):
    """The values of a partition's row.

    `path`: relative to the table's location; or else `location`; both None without a location. `commit_time`: of the
    last commit, in milliseconds since 1970.
    """

    name: str
    values: Sequence[str]
    ready: bool
    commit_time: int | None
    path: str | None
    location: str | None
    descriptor_id: int
    body: bytes


class PartitionRow(NamedTuple):
    """A stored partition."""

    id: int
    name: str
    values: list[str]
    ready: bool
    commit_time: int | None
    stored: StoredPartition

    def with_body(self, body: bytes) -> NewPartition:
        """Its values with another body."""
        _, path, location, descriptor = self.stored
        return NewPartition(self.name, self.values, self.ready, self.commit_time, path, location, descriptor, body)


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects partitions of a table. All given conditions must hold.

    `only_ready`: decided by visibility; `only_uncommitted`: the contrary. `names`: exact names. `after`: names after
    this one. `values`: the allowed first values; None for any. `predicate`: a condition.
    """

    table_id: int
    only_ready: bool = False
    only_uncommitted: bool = False
    after: str | None = None
    names: Sequence[str] | None = None
    values: Sequence[Sequence[str] | None] | None = None
    predicate: Predicate | None = None

    def condition(self) -> ColumnElement[bool]:
        """For the WHERE of a statement; who executes it records the read (`record_partitions_read`)."""
        conditions: list[ColumnElement[bool]] = [partitions.c.table_id == self.table_id]
        if self.only_ready:
            conditions.append(partitions.c.ready)
        if self.only_uncommitted:
            conditions.append(~partitions.c.ready)
        if self.after is not None:
            conditions.append(partitions.c.name > self.after)
        if self.names is not None:
            conditions.append(partitions.c.name == func.any(list(self.names)))
        if self.values is not None:
            for position, value in enumerate(self.values, 1):
                if value is not None:
                    conditions.append(partitions.c["values"][position] == func.any(list(value)))
        if self.predicate is not None:
            conditions.append(to_sql(self.predicate, partitions.c["values"]))
        return and_(*conditions)


def record_partitions_read(selection: Selection) -> None:
    """A statement with the condition of a selection is executed: see `metastore.store.engine.read_set`."""
    record_read(Kind.PARTITIONS, selection.table_id)


def _stored(row: Any) -> StoredPartition:
    return StoredPartition(bytes(row[0]), row[1], row[2], row[3])


def scan(
    tx: Connection, selection: Selection, limit: int | None = None
) -> tuple[int, Iterator[Sequence[StoredPartition]]]:
    """How many partitions are selected, and these, in the order of their names.

    They come in pages while they are consumed, so `tx` must see one snapshot and stay open until then.
    """
    record_partitions_read(selection)

    def page(size: int, after: str | None) -> tuple[list[StoredPartition], _Read]:
        found = tx.execute(_ordered(selection, size, after, *_COLUMNS, partitions.c.name)).all()
        page = [_stored(row) for row in found]
        return page, _Read(len(page), sum(len(each.body) for each in page), found[-1][4] if found else "")

    return _paged(tx, selection, limit, page)


def scan_encoded(
    tx: Connection, selection: Selection, table_location: str | None, limit: int | None = None
) -> tuple[int, Iterator[StoredPage]]:
    """As `scan`, but the database itself joins most of the encoded bytes of a page."""
    record_partitions_read(selection)
    number = func.int8send(partitions.c.storage_descriptor_id, type_=LargeBinary)
    encoded = number.concat(partitions.c.body).concat(_descriptor_begin(table_location or ""))
    place = func.row_number().over(order_by=partitions.c.name)

    def page(size: int, after: str | None) -> tuple[StoredPage, _Read]:
        # The name of the last one alone, and NULL with each other: so all values lie where those of the first do.
        last = case((place == size, partitions.c.name))
        found = binary_rows.fetch(tx, _ordered(selection, size, after, encoded, last))
        name = b""
        if len(found) == size and size:
            name = binary_rows.values(found[-1])[1] or b""
            found[-1] = found[-1][: -len(name)]
        middles = [row[_MIDDLE:_NO_NAME] for row in found]
        numbers = [row[_NUMBER:_MIDDLE] for row in found]
        page = StoredPage(middles, [int.from_bytes(each) for each in numbers])
        return page, _Read(len(found), sum(map(len, middles)), name.decode())

    return _paged(tx, selection, limit, page)


def names_encoded(tx: Connection, selection: Selection, limit: int | None = None) -> tuple[int, bytes]:
    """The number of selected partitions, and their names in order. Before each name is its length, in four bytes."""
    record_partitions_read(selection)
    some = select(partitions.c.name).where(selection.condition()).order_by(partitions.c.name).limit(limit).subquery()
    encoded = _with_length(some.c.name)
    joined = func.coalesce(func.string_agg(encoded, literal(b"")), literal(b""))
    [row] = binary_rows.fetch(tx, select(func.count(), joined).select_from(some))
    count, names = binary_rows.values(row)
    assert count is not None and names is not None
    return int.from_bytes(count), names


def _ordered(selection: Selection, size: int, after: str | None, *columns: ColumnElement[Any]) -> Select[Any]:
    query = select(*columns).where(selection.condition()).order_by(partitions.c.name).limit(size)
    return query if after is None else query.where(partitions.c.name > after)


class _Read(NamedTuple):
    """What a page was: so many partitions, so many bytes, up to this name if the page is full."""

    partitions: int
    bytes: int
    last: str


def _paged(
    tx: Connection, selection: Selection, limit: int | None, page: Callable[[int, str | None], tuple[Page, _Read]]
) -> tuple[int, Iterator[Page]]:
    """`page` reads so many partitions after a name."""
    size = FIRST_PAGE if limit is None else min(limit, FIRST_PAGE)
    first = page(size, None)
    total = first[1].partitions
    if total == size and (limit is None or limit > size):
        total = count(tx, selection) if limit is None else min(limit, count(tx, selection))

    def pages() -> Iterator[Page]:
        (content, read), left = first, total
        while read.partitions:
            yield content
            left -= read.partitions
            if left <= 0:
                return
            fit = PAGE_BYTES * read.partitions // max(read.bytes, 1)
            content, read = page(min(left, PAGE, max(fit, 1)), read.last)

    return total, pages()


def _descriptor_begin(table_location: str) -> ColumnElement[Any]:
    """The beginning of a partition's `sd`, up to its location."""
    location = case(
        (partitions.c.path == "", literal(table_location)),
        (partitions.c.path.is_not(None), literal(table_location + "/").concat(partitions.c.path)),
        else_=partitions.c.location,
    )
    return case(
        (partitions.c.storage_descriptor_id == NO_DESCRIPTOR, literal(b"")),
        (location.is_(None), literal(SD_BEGIN)),
        else_=literal(SD_BEGIN + LOCATION_BEGIN).concat(_with_length(location)),
    )


def _with_length(value: ColumnElement[Any]) -> ColumnElement[Any]:
    length = func.int4send(func.octet_length(value), type_=LargeBinary)
    return length.concat(func.textsend(value, type_=LargeBinary))


def rows(tx: Connection, selection: Selection, limit: int | None = None, *, lock: bool = False) -> list[PartitionRow]:
    """The selected partitions in the order of their names. `lock`: they are locked until the transaction ends."""
    record_partitions_read(selection)
    names = selection.names
    found: Sequence[Any]
    if limit is None and names is not None and selection == Selection(selection.table_id, names=names):
        statement = _LOCK_NAMED if lock else _NAMED
        found = statement.all(tx, {"table_id": selection.table_id, "names": bulk.array(names)})
    else:
        query = _ROW.where(selection.condition()).limit(limit)
        found = tx.execute(query.with_for_update() if lock else query).all()
    return [
        PartitionRow(number, name, values, ready, commit_time, StoredPartition(bytes(body), path, location, descriptor))
        for body, path, location, descriptor, number, name, values, ready, commit_time in found
    ]


_ROW = select(
    *_COLUMNS,
    partitions.c.id,
    partitions.c.name,
    partitions.c["values"],
    partitions.c.ready,
    partitions.c.commit_time,
).order_by(partitions.c.name)
_NAMED_ROW = _ROW.where(
    partitions.c.table_id == bindparam("table_id"), partitions.c.name == any_(bindparam("names", type_=ARRAY(NAME)))
)
_NAMED, _LOCK_NAMED = Prepared(_NAMED_ROW), Prepared(_NAMED_ROW.with_for_update())


def names(tx: Connection, selection: Selection, limit: int | None = None) -> list[str]:
    """The selected partitions' names in order."""
    record_partitions_read(selection)
    query = select(partitions.c.name).where(selection.condition()).order_by(partitions.c.name).limit(limit)
    return list(tx.execute(query).scalars())


def values(tx: Connection, selection: Selection, limit: int | None = None) -> list[list[str]]:
    """The selected partitions' values, in the order of their names."""
    record_partitions_read(selection)
    query = select(partitions.c["values"]).where(selection.condition()).order_by(partitions.c.name).limit(limit)
    return list(tx.execute(query).scalars())


def count(tx: Connection, selection: Selection) -> int:
    """How many partitions are selected."""
    record_partitions_read(selection)
    return tx.execute(select(func.count()).select_from(partitions).where(selection.condition())).scalar_one()


def has_more(tx: Connection, table_id: int, than: int) -> bool:
    """Whether a table has more partitions than so many."""
    record_read(Kind.PARTITIONS, table_id)
    return _MORE.first(tx, {"table_id": table_id, "than": than}) is not None


_MORE = Prepared(
    select(partitions.c.id).where(partitions.c.table_id == bindparam("table_id")).offset(bindparam("than")).limit(1)
)


def count_all(tx: Connection) -> int:
    """How many ready partitions there are in all tables."""
    return tx.execute(select(func.count()).select_from(partitions).where(partitions.c.ready)).scalar_one()


def count_uncommitted(tx: Connection) -> int:
    """How many uncommitted partitions there are in all tables."""
    return tx.execute(select(func.count()).select_from(partitions).where(~partitions.c.ready)).scalar_one()


def add(tx: Connection, table_id: int, new: Iterable[NewPartition]) -> None:
    """Adds partitions. Raises store.Conflict if a name is taken."""
    bulk.copy_in(
        tx,
        'partitions (table_id, name, "values", ready, commit_time, path, location, storage_descriptor_id, body)',
        ((table_id, *each) for each in new),
    )


def existing(tx: Connection, table_id: int, some: Sequence[str]) -> set[str]:
    """Those of some names that partitions of the table bear already, uncommitted ones included."""
    return set(_EXISTING.scalars(tx, {"table_id": table_id, "names": list(some)}))


_NAMES = any_(bindparam("names", type_=ARRAY(Text)))
_EXISTING = Prepared(
    select(partitions.c.name).where(partitions.c.table_id == bindparam("table_id"), partitions.c.name == _NAMES)
)


def change(tx: Connection, partition_id: int, new: NewPartition) -> None:
    """Replaces what is kept of a partition. Raises store.Conflict if its new name is taken."""
    change_many(tx, [(partition_id, new)])


def change_many(tx: Connection, changes: Iterable[tuple[int, NewPartition]]) -> None:
    """Replaces what is kept of many partitions, given as (id, new values)."""
    bulk.execute_for_rows(
        tx,
        'UPDATE partitions SET name = n.name, "values" = n.v::text[], ready = n.ready, commit_time = n.commit_time,'
        " path = n.path, location = n.location, storage_descriptor_id = n.sd, body = n.body FROM unnest(%s::bigint[],"
        " %s::text[], %s::text[], %s::boolean[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bytea[])"
        " AS n (id, name, v, ready, commit_time, path, location, sd, body) WHERE partitions.id = n.id",
        ((number, *new._replace(values=bulk.array(new.values))) for number, new in changes),
    )


def put_bodies(tx: Connection, bodies: Iterable[tuple[int, bytes]]) -> None:
    """Replaces the encoded bodies of many partitions, given by id. What else is kept of them stays.

    It is executed with the transaction's next message, see `put_off`.
    """
    ids, new = map(list, zip(*bodies, strict=True))
    put_off(tx, [_PUT_BODIES], {"ids": ids, "bodies": new})


_NEW_BODIES = (
    func.unnest(few("ids", BigInteger), few("bodies", LargeBinary))
    .table_valued(column("id", BigInteger), column("body", LargeBinary), name="new")
    .render_derived()
)
_PUT_BODIES = Prepared(update(partitions).where(partitions.c.id == _NEW_BODIES.c.id).values(body=_NEW_BODIES.c.body))


def pin_locations(tx: Connection, table_id: int, base: str) -> None:
    """Makes a table's relative partition paths absolute, before its location changes. `base`: its present location."""
    slash = case((partitions.c.path == "", ""), else_="/")
    tx.execute(
        update(partitions)
        .where(partitions.c.table_id == table_id, partitions.c.path.is_not(None))
        .values(location=func.concat(base, slash, partitions.c.path), path=None)
    )


def move(tx: Connection, partition_ids: Sequence[int], table_id: int) -> None:
    """Moves partitions to another table and removes their statistics. Raises store.Conflict if a name is taken."""
    ids = list(partition_ids)
    tx.execute(delete(column_statistics).where(column_statistics.c.partition_id == func.any(ids)))
    tx.execute(update(partitions).where(partitions.c.id == func.any(ids)).values(table_id=table_id))


def remove(tx: Connection, table_id: int, rows: Sequence[PartitionRow]) -> None:
    """Removes partitions of a table with what belongs to them."""
    values = {"table_id": table_id, "partition_ids": [row.id for row in rows], "names": [row.name for row in rows]}
    execute_all(tx, _REMOVAL, values)


_TABLE: BindParameter[int] = bindparam("table_id")
_IDS = any_(bindparam("partition_ids", type_=ARRAY(BigInteger)))
_REMOVAL = (
    Prepared(delete(partitions).where(partitions.c.id == _IDS)),
    *publications.DISCARD_OF_PARTITIONS,
    Prepared(
        delete(column_statistics).where(
            column_statistics.c.table_id == _TABLE, column_statistics.c.partition_id == _IDS
        )
    ),
    Prepared(
        delete(partition_events).where(
            partition_events.c.table_id == _TABLE,
            partition_events.c.partition_name == _NAMES,
        )
    ),
)


def foreign_locations(tx: Connection, table_ids: Sequence[int]) -> list[str]:
    """Locations of partitions that don't lie below their table's."""
    return [row.location for row in _ELSEWHERE.all(tx, {"table_ids": list(table_ids)}) if row.location is not None]


def elsewhere(tx: Connection, table_id: int) -> list[tuple[str | None, str | None]]:
    """Path and location of those partitions of a table that aren't in their default place."""
    return _ELSEWHERE.all(tx, {"table_ids": [table_id]})


_ELSEWHERE = Prepared(
    select(partitions.c.path, partitions.c.location).where(
        partitions.c.table_id == any_(bindparam("table_ids", type_=ARRAY(BigInteger))),
        partitions.c.path.is_distinct_from(partitions.c.name),  # as in the partial index
    )
)


def mark_event(tx: Connection, table_id: int, name: str, event_type: int, event_time: int) -> None:
    """Stores a mark that an event happened to a partition, which need not exist (Hive's markPartitionForEvent)."""
    values = {
        "table_id": table_id,
        "partition_name": name,
        "event_type": event_type,
        "event_time": event_time,
    }
    tx.execute(partition_events.insert(), values)


def has_event(tx: Connection, table_id: int, name: str, event_type: int) -> bool:
    """Whether an event was remembered for a partition of that name."""
    query = select(partition_events.c.id).where(
        partition_events.c.table_id == table_id,
        partition_events.c.partition_name == name,
        partition_events.c.event_type == event_type,
    )
    return tx.execute(query.limit(1)).first() is not None


def change_bodies(tx: Connection, changes: Iterable[tuple[int, bytes]]) -> None:
    """Replaces the encoded part of many partitions, given as (id, body)."""
    bulk.execute_for_rows(
        tx,
        "UPDATE partitions SET body = n.body FROM unnest(%s::bigint[], %s::bytea[]) AS n (id, body)"
        " WHERE partitions.id = n.id",
        changes,
    )


def change_flags(tx: Connection, changes: Iterable[tuple[int, bool, int | None, bytes]]) -> None:
    """Changes the `ready` flag of many partitions, given as (id, ready, commit time, body)."""
    bulk.execute_for_rows(
        tx,
        "UPDATE partitions SET ready = n.ready, commit_time = n.commit_time, body = n.body"
        " FROM unnest(%s::bigint[], %s::boolean[], %s::bigint[], %s::bytea[]) AS n (id, ready, commit_time, body)"
        " WHERE partitions.id = n.id",
        changes,
    )


def change_descriptors(tx: Connection, table_id: int, renewed: Mapping[int, int]) -> None:
    """Gives every partition of a table another storage descriptor: old id -> new id."""
    for old, new in renewed.items():
        if old != new:
            tx.execute(
                update(partitions)
                .where(partitions.c.table_id == table_id, partitions.c.storage_descriptor_id == old)
                .values(storage_descriptor_id=new)
            )

"""Reading partitions: one, many as encoded lists, their names, values and counts."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from metastore.services import objects, partition_filter, partition_names, privileges
from metastore.services.tables import TableService
from metastore.services.visibility import Scope, readable
from metastore.store import Database, descriptors, partitions
from metastore.store.database import Transaction
from metastore.store.partitions import Selection
from metastore.store.predicates import Predicate
from metastore.store.tables import TableRow
from metastore.wire import binary, splice
from metastore.wire.hive import (
    FieldSchema,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionSpec,
)
from metastore.wire.splice import StoredPartition


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which partitions of a table a caller asks for; what is None does not restrict.

    `values`: the first values, an empty one standing for any. `filter`: as text; `predicate`: as what it means.
    `limit`: at most so many, the first by name; negative means all.
    """

    names: Sequence[str] | None = None
    values: Sequence[str] | None = None
    filter: str | None = None
    predicate: Predicate | None = None
    limit: int | None = None

    @property
    def bounded(self) -> int | None:
        return None if self.limit is None or self.limit < 0 else self.limit


EVERYTHING = Wanted()


class Shown(NamedTuple):
    """How much of each partition a caller wants to see.

    `columns`: whether its columns, too; a caller that takes them for the table's may do without. `change`: what is
    to be left out besides.
    """

    columns: bool = True
    change: Callable[[Partition], Partition] | None = None


WHOLE = Shown()


class Asker(NamedTuple):
    """Who wants to know what it may do with each partition of a table whose partitions have their own privileges."""

    user: str | None
    groups: Sequence[str] | None


class Listing:
    """An encoded list of partitions, produced while it is read. The count is known before the first piece leaves."""

    def __init__(self, pieces: Generator[bytes, None, None]) -> None:
        self._pieces = pieces
        self._first: bytes | None = next(pieces)  # whatever is wrong with the question shows here

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return next(self._pieces)

    def close(self) -> None:
        """Ends the transaction behind a list that nobody wants to the end."""
        self._pieces.close()


class PartitionReads:
    """What Hive answers about partitions."""

    def __init__(self, database: Database, tables: TableService) -> None:
        self._database = database
        self._tables = tables

    def expressed(
        self,
        database: str | None,
        table: str | None,
        expression: bytes,
        limit: int | None = None,
        catalog: str | None = None,
    ) -> tuple[Wanted, str | None]:
        """What the expression of an engine's planner asks for, and what of it couldn't be decided here.

        If something couldn't, that is more than it asks for, and not limited. Raises NoSuchObjectException if there's
        no such table, MetaException for an expression that is none.
        """
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
        estimate = partition_filter.parse_expression_bytes(expression, partition_keys(row))
        return Wanted(predicate=estimate.at_most, limit=None if estimate.unclear else limit), estimate.unclear

    def listing(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted = EVERYTHING,
        catalog: str | None = None,
        asker: Asker | None = None,
        shown: Shown = WHOLE,
    ) -> Listing:
        """Partitions ordered by name, as an encoded `list<Partition>`.

        Raises NoSuchObjectException if there's no such table, MetaException for a bad filter or spec.
        """
        return Listing(self._pieces(scope, database, table, wanted, catalog, asker, shown))

    def _pieces(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted,
        catalog: str | None,
        asker: Asker | None,
        shown: Shown,
    ) -> Generator[bytes, None, None]:
        with self._database.read() as tx:
            row, selection = self._select(tx, scope, database, table, wanted, catalog)
            encoder = _encoder(tx, row, shown)
            allowed = privileges.of_partitions(tx, row, *asker) if asker is not None else None
            if allowed is None and shown.change is None:
                count, encoded = partitions.scan_encoded(tx, selection, row.location, wanted.bounded)
                yield splice.list_of_structs(count)
                yield from encoder.pieces(encoded)
                return
            count, found = partitions.scan(tx, selection, wanted.bounded)
            yield splice.list_of_structs(count)
            for partition in _decoded(encoder, found):
                if allowed is not None:
                    partition.privileges = allowed(partition.values or ())
                yield binary.encode(partition if shown.change is None else shown.change(partition))

    def spec_listing(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted = EVERYTHING,
        catalog: str | None = None,
        shown: Shown = WHOLE,
    ) -> Listing:
        """The same as an encoded `list<PartitionSpec>`: one spec that holds them all, as Hive 2.3 answers."""
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
        about = PartitionSpec(
            dbName=row.name.database,
            tableName=row.name.table,
            catName=row.name.catalog,
            rootPath=row.location,
        )
        return Listing(splice.composing_spec(about, self.listing(scope, database, table, wanted, catalog, shown=shown)))

    def read(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted,
        catalog: str | None = None,
        shown: Shown = WHOLE,
    ) -> tuple[TableRow, list[Partition]]:
        """The table, and its partitions by name, as objects.

        Raises NoSuchObjectException if there's no such table, MetaException for a bad filter or spec.
        """
        with self._database.read() as tx:
            row, selection = self._select(tx, scope, database, table, wanted, catalog)
            _, found = partitions.scan(tx, selection, wanted.bounded)
            whole = _decoded(_encoder(tx, row, shown), found)
            return row, [one if shown.change is None else shown.change(one) for one in whole]

    def get(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        values: Sequence[str] | None,
        catalog: str | None = None,
        asker: Asker | None = None,
    ) -> Partition:
        """The partition with exactly these values. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
            found = self._one(tx, scope, row, list(values or ()))
            if asker is not None and (allowed := privileges.of_partitions(tx, row, *asker)) is not None:
                found.privileges = allowed(found.values or ())
            return found

    def get_by_name(
        self, scope: Scope, database: str | None, table: str | None, name: str | None, catalog: str | None = None
    ) -> Partition:
        """The partition of that name. Raises NoSuchObjectException, MetaException for a name that is none."""
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
            return self._one(tx, scope, row, values_of_existing(name, _key_names(row)))

    def _one(self, tx: Transaction, scope: Scope, row: TableRow, values: list[str]) -> Partition:
        name = partition_names.make_name(_key_names(row), values)
        _, found = partitions.scan(tx, readable(row, scope, names=[name]), 1)
        for partition in _decoded(_encoder(tx, row, WHOLE), found):
            return partition
        raise no_such_partition(values)

    def names(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted = EVERYTHING,
        catalog: str | None = None,
    ) -> list[str]:
        """Names in order. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            _, selection = self._select(tx, scope, database, table, wanted, catalog)
            return partitions.names(tx, selection, wanted.bounded)

    def names_listing(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted = EVERYTHING,
        catalog: str | None = None,
    ) -> Iterable[bytes]:
        """The same as an encoded `list<string>`. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            _, selection = self._select(tx, scope, database, table, wanted, catalog)
            count, names = partitions.names_encoded(tx, selection, wanted.bounded)
        return iter((splice.list_of_strings(count), names))

    def count(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted = EVERYTHING,
        catalog: str | None = None,
    ) -> int:
        """How many there are. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            _, selection = self._select(tx, scope, database, table, wanted, catalog)
            return partitions.count(tx, selection)

    def values(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        keys: Sequence[FieldSchema] | None,
        wanted: Wanted = EVERYTHING,
        *,
        distinct: bool = True,
        ascending: bool = True,
        catalog: str | None = None,
    ) -> list[list[str]]:
        """The values of some partition keys, escaped as in names, ordered.

        Raises NoSuchObjectException if there's no such table, MetaException for a key that is none.
        """
        with self._database.read() as tx:
            row, selection = self._select(tx, scope, database, table, wanted, catalog)
            own = _key_names(row)
            asked = [(field.name or "").lower() for field in keys or ()]
            if not asked:
                raise MetaException("which partition keys' values are wanted is not said")
            unknown = [name for name in asked if name not in own]
            if unknown:
                raise MetaException(f"{unknown[0]} is no partition key of {row.name}; they are {', '.join(own)}")
            positions = [own.index(name) for name in asked]
            every = partitions.values(tx, selection)
            found = [[partition_names.escape(values[p]) for p in positions] for values in every]
        if distinct:
            found = [list(values) for values in dict.fromkeys(map(tuple, found))]
        found.sort(reverse=not ascending)
        return found[: wanted.bounded or None]

    def _select(
        self,
        tx: Transaction,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: Wanted,
        catalog: str | None,
    ) -> tuple[TableRow, Selection]:
        row = self._tables.row(tx, database, table, catalog)
        return row, selection_of(row, scope, wanted)


def _encoder(tx: Transaction, row: TableRow, shown: Shown) -> splice.PartitionEncoder:
    """What turns a table's rows into partitions, as much of them as is wanted."""

    def bodies(numbers: Iterable[int]) -> Mapping[int, bytes]:
        kept = descriptors.bodies(tx, numbers)
        return kept if shown.columns else {number: splice.without_columns(body) for number, body in kept.items()}

    return splice.PartitionEncoder(*row.name, row.location, bodies)


def _decoded(encoder: splice.PartitionEncoder, pages: Iterable[Sequence[StoredPartition]]) -> Iterator[Partition]:
    for page in pages:
        for stored in page:
            yield encoder.decoded(stored)


def selection_of(row: TableRow, scope: Scope, wanted: Wanted) -> Selection:
    """What a reader may see of what it wants. Raises MetaException."""
    predicate, values = wanted.predicate, None
    if wanted.values is not None:
        keys = _key_names(row)
        if not wanted.values:
            raise MetaException(f"Invalid partition key & values; keys [{', '.join(keys)}], values []")
        if len(wanted.values) > len(keys):
            raise MetaException(
                f"Incorrect number of partition values. numPartKeys={len(keys)}, part_val={len(wanted.values)}"
            )
        values = [alternatives(value) for value in wanted.values]
    if wanted.filter is not None:
        predicate = partition_filter.parse(wanted.filter, partition_keys(row))
    return readable(row, scope, names=wanted.names, values=values, predicate=predicate)


def values_of_existing(name: str | None, keys: Sequence[str]) -> list[str]:
    """The values that the name of a partition to be found says. Raises NoSuchObjectException if it misses a key."""
    try:
        return partition_names.values_of(name, keys)
    except InvalidObjectException as error:
        raise NoSuchObjectException(error.message) from None


def alternatives(value: str) -> list[str] | None:
    """What a stored value may be where a caller gives one of a partial spec; None: anything.

    The empty value is stored as it is but named as the default partition, and is found by that name.
    """
    if not value:
        return None
    return [value, ""] if value == partition_names.DEFAULT_PARTITION else [value]


def partition_keys(row: TableRow) -> list[FieldSchema]:
    """A table's partition keys."""
    return objects.table_of(row).partitionKeys or []


def _key_names(row: TableRow) -> list[str]:
    return objects.key_names(objects.table_of(row))


def no_such_partition(values: Sequence[str]) -> NoSuchObjectException:
    """What Hive says where there is no partition with these values."""
    return NoSuchObjectException(f"partition values=[{', '.join(values)}]")

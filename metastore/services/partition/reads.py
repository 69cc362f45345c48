"""Reads partitions: single ones, encoded lists, names, values and counts."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from lake.protocol.codec import binary, splice
from lake.protocol.codec.splice import StoredPartition
from lake.protocol.formats import partition_names
from lake.protocol.hive import (
    FieldSchema,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionSpec,
)
from metastore.services.access import privileges
from metastore.services.filters import partition_filter
from metastore.services.instant_rules import unpublished
from metastore.services.model import hive_objects
from metastore.services.model.partition_codec import encoder
from metastore.services.model.visibility import Scope, hides_uncommitted, readable
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.engine.predicates import Predicate
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.table.tables import TableRow


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query for partitions of a table. All conditions must hold. None means no condition.

    `values`: the values of the first keys; an empty string matches any value. `filter`: a text in Hive's grammar.
    `predicate`: a parsed condition. `limit`: the most partitions to return, in the order of names; negative means all.
    `of_rows`: engines send the query only where they are about to list the directories, and not to change definitions.
    """

    names: Sequence[str] | None = None
    values: Sequence[str] | None = None
    filter: str | None = None
    predicate: Predicate | None = None
    limit: int | None = None
    of_rows: bool = False

    @property
    def bounded(self) -> int | None:
        return None if self.limit is None or self.limit < 0 else self.limit


EVERYTHING = PartitionQuery()


class Shown(NamedTuple):
    """Which parts of each partition to return.

    `columns`: whether to include the columns; a caller may use the table's instead. `change`: removes other parts.
    """

    columns: bool = True
    change: Callable[[Partition], Partition] | None = None


WHOLE = Shown()


class Requester(NamedTuple):
    """The user and groups whose privileges are returned with each partition, if the table has such privileges."""

    user: str | None
    groups: Sequence[str] | None


class Listing:
    """An encoded list of partitions, an iterator of byte strings. The first piece has the count already."""

    def __init__(self, pieces: Generator[bytes, None, None]) -> None:
        self._pieces = pieces
        self._first: bytes | None = next(pieces)  # raises here if the request is invalid

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return next(self._pieces)

    def close(self) -> None:
        """Ends the transaction of a list that isn't read to its end."""
        self._pieces.close()


class PartitionReads:
    """Hive's reading calls for partitions.

    A list of more than `at_most` partitions raises MetaException, unless the caller gave their names. So does a query
    `of_rows` for a keyed table that was never published, if `refuse_unpublished`; with a filter, NoSuchObjectException.
    """

    def __init__(
        self,
        database: Database,
        tables: TableService,
        *,
        at_most: int | None = None,
        refuse_unpublished: bool = False,
    ) -> None:
        self._database = database
        self._tables = tables
        self._at_most = at_most
        self._refuse_unpublished = refuse_unpublished

    def expressed(
        self,
        database: str | None,
        table: str | None,
        expression: bytes,
        limit: int | None = None,
        catalog: str | None = None,
    ) -> tuple[PartitionQuery, str | None]:
        """Converts an expression of an engine's planner. Returns the query, and the part that can't be evaluated here.

        If there is such a part, the query selects more than the expression does, and has no limit. Raises
        NoSuchObjectException if there's no such table, MetaException for bytes that are no expression.
        """
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
        estimate = partition_filter.parse_expression_bytes(expression, partition_keys(row))
        return PartitionQuery(predicate=estimate.at_most, limit=None if estimate.unclear else limit), estimate.unclear

    def listing(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: PartitionQuery = EVERYTHING,
        catalog: str | None = None,
        requester: Requester | None = None,
        shown: Shown = WHOLE,
    ) -> Listing:
        """Partitions ordered by name, as an encoded `list<Partition>`.

        Raises NoSuchObjectException if there's no such table, MetaException for a bad filter or spec.
        """
        return Listing(self._pieces(scope, database, table, wanted, catalog, requester, shown))

    def _pieces(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: PartitionQuery,
        catalog: str | None,
        requester: Requester | None,
        shown: Shown,
    ) -> Generator[bytes, None, None]:
        with self._database.read() as tx:
            row, selection = self._select(tx, scope, database, table, wanted, catalog)
            encode = encoder(tx, row, columns=shown.columns)
            allowed = privileges.of_partitions(tx, row, *requester) if requester is not None else None
            if allowed is None and shown.change is None:
                count, encoded = partitions.scan_encoded(tx, selection, row.location, wanted.bounded)
                self._check_count(row, wanted, count)
                yield splice.list_of_structs(count)
                yield from encode.pieces(encoded)
                return
            count, found = partitions.scan(tx, selection, wanted.bounded)
            self._check_count(row, wanted, count)
            yield splice.list_of_structs(count)
            for partition in _decoded(encode, found):
                if allowed is not None:
                    partition.privileges = allowed(partition.values or ())
                yield binary.encode(partition if shown.change is None else shown.change(partition))

    def _check_count(self, row: TableRow, wanted: PartitionQuery, count: int) -> None:
        """Raises MetaException if too many partitions are found. As in Hive, a higher `limit` alone is no error."""
        if self._at_most is not None and wanted.names is None and count > self._at_most:
            raise MetaException(
                f"{count} partitions of {row.name} are asked for at once, and this server answers with"
                f" {self._at_most} at most (max_partitions_per_request): restrict the filter, or ask for names first"
            )

    def spec_listing(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: PartitionQuery = EVERYTHING,
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
        wanted: PartitionQuery,
        catalog: str | None = None,
        shown: Shown = WHOLE,
    ) -> tuple[TableRow, list[Partition]]:
        """The table, and its partitions by name, as objects.

        Raises NoSuchObjectException if there's no such table, MetaException for a bad filter or spec.
        """
        with self._database.read() as tx:
            row, selection = self._select(tx, scope, database, table, wanted, catalog)
            count, found = partitions.scan(tx, selection, wanted.bounded)
            self._check_count(row, wanted, count)
            whole = _decoded(encoder(tx, row, columns=shown.columns), found)
            return row, [one if shown.change is None else shown.change(one) for one in whole]

    def get(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        values: Sequence[str] | None,
        catalog: str | None = None,
        requester: Requester | None = None,
    ) -> Partition:
        """The partition with exactly these values. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            row = self._tables.row(tx, database, table, catalog)
            found = self._one(tx, scope, row, list(values or ()))
            if requester is not None and (allowed := privileges.of_partitions(tx, row, *requester)) is not None:
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
        for partition in _decoded(encoder(tx, row), found):
            return partition
        raise no_such_partition(values)

    def names(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        wanted: PartitionQuery = EVERYTHING,
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
        wanted: PartitionQuery = EVERYTHING,
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
        wanted: PartitionQuery = EVERYTHING,
        catalog: str | None = None,
    ) -> int:
        """The number of selected partitions. Raises NoSuchObjectException, MetaException."""
        with self._database.read() as tx:
            _, selection = self._select(tx, scope, database, table, wanted, catalog)
            return partitions.count(tx, selection)

    def values(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        keys: Sequence[FieldSchema] | None,
        wanted: PartitionQuery = EVERYTHING,
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
        wanted: PartitionQuery,
        catalog: str | None,
    ) -> tuple[TableRow, Selection]:
        row = self._tables.row(tx, database, table, catalog)
        if wanted.of_rows and self._refuse_unpublished:
            # For a MetaException about a filter, Spark hides the message and advises to fetch all partitions instead.
            refusal = MetaException if wanted.filter is None else NoSuchObjectException
            uncommitted = not hides_uncommitted(scope, row.name)
            unpublished.check_read(tx, row, uncommitted=uncommitted, refusal=refusal)
        return row, selection_of(row, scope, wanted)


def _decoded(encode: splice.PartitionEncoder, pages: Iterable[Sequence[StoredPartition]]) -> Iterator[Partition]:
    for page in pages:
        for stored in page:
            yield encode.decoded(stored)


def selection_of(row: TableRow, scope: Scope, wanted: PartitionQuery) -> Selection:
    """The selection of the partitions that match a query and that the scope shows. Raises MetaException."""
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
    """The stored values that a value in a partial spec matches. None means all.

    An empty value is stored as an empty string, but the partition's name has the default partition's. Both match.
    """
    if not value:
        return None
    return [value, ""] if value == partition_names.DEFAULT_PARTITION else [value]


def partition_keys(row: TableRow) -> list[FieldSchema]:
    """A table's partition keys."""
    return hive_objects.table_of(row).partitionKeys or []


def _key_names(row: TableRow) -> list[str]:
    return hive_objects.key_names(hive_objects.table_of(row))


def no_such_partition(values: Sequence[str]) -> NoSuchObjectException:
    """What Hive says where there is no partition with these values."""
    return NoSuchObjectException(f"partition values=[{', '.join(values)}]")

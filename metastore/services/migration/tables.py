"""Brings tables and partitions of another metastore."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from lake.protocol.codec import splice
from lake.protocol.events.types import EventType
from lake.protocol.formats import partition_names
from lake.protocol.formats.column_ids import COLUMN_IDS
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException, Partition, Table
from metastore.services.commit_flag import commit_flag
from metastore.services.events.recorder import Events, PartitionChange, kept_after, kept_before
from metastore.services.instant_rules.keyed_tables import is_keyed, is_parquet, names_key
from metastore.services.migration.outcome import Outcome, difference
from metastore.services.migration.places import NewPlaces
from metastore.services.model import hive_objects, partition_codec
from metastore.services.model import names as given
from metastore.services.model.flag import Flag
from metastore.services.model.validation import check_columns, check_length, is_table_name
from metastore.services.table.service import table_type, unreadable_properties
from metastore.store.catalog import databases
from metastore.store.catalog.databases import RowLock
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.table import descriptors, tables
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants

PAST_TIMELINE = "{} has a timeline here: nothing can be brought past it"


class Tables:
    """Keeps tables and partitions as they are elsewhere, in transactions of the caller's."""

    def __init__(self, events: Events, places: NewPlaces) -> None:
        self._events = events
        self._places = places

    # --- tables -----------------------------------------------------------------------------------------------

    def table(self, tx: Transaction, brought: Table, outcome: Outcome) -> None:
        """Raises NoSuchObjectException where its database isn't there, MetaException for one that can't be kept."""
        name = given.table_name(brought.dbName, brought.tableName, brought.catName)
        wanted = self._completed(name, brought)
        home = databases.find(tx, name.of_database, RowLock.SHARED)
        if home is None:
            raise NoSuchObjectException(f"No database {name.of_database}: import the databases first")
        row = tables.find(tx, name, RowLock.EXCLUSIVE)
        if row is None:
            table_id = tables.add(tx, home.id, hive_objects.table_values(wanted, _keep_descriptor(tx, wanted)))
            self._places.taken(tx, _places_of(wanted))
            self._events.table(tx, EventType.CREATE_TABLE, None, wanted.replace(id=table_id))
            outcome.added += 1
            return
        here = hive_objects.table_of(row)
        here.parameters = _without_ids(here.parameters)
        found = difference(here.replace(id=None), wanted)
        if [each.name for each in here.partitionKeys or ()] != [each.name for each in wanted.partitionKeys or ()]:
            # Its partitions would become those of another table.
            raise InvalidOperationException(
                f"{name} has other partition keys here, so it is another table: drop it here, or give one another name"
            )
        if here.createTime and wanted.createTime and here.createTime != wanted.createTime:
            # Partitions of both would become those of one.
            raise InvalidOperationException(
                f"{name} was made at another time here, so it is another table: drop it here without its data, or give"
                " one another name"
            )
        if found is not None and rows_are_of_timeline(tx, row):
            outcome.differs(
                "table", str(name), f"it has a timeline here, and stays as it is: {found}", replaceable=False
            )
        elif outcome.differs("table", str(name), found):
            self._replace_table(tx, row, here, wanted)

    def _completed(self, name: TableName, brought: Table) -> Table:
        """A table in the form in which it is kept. Raises MetaException."""
        if brought.sd is None:
            raise MetaException(f"{name} has no storage descriptor")
        if not is_table_name(name.table):
            raise MetaException(f"{name.table!r} is not a valid table name")
        check_length(name.table, "table")
        check_columns(brought.sd.cols)
        check_columns(brought.partitionKeys)
        value = hive_objects.table(brought)
        value.dbName, value.catName, value.id = name.database, name.catalog, None
        value.tableType = table_type(value)
        value.parameters = _without_ids(value.parameters)
        if value.writeId is None:
            value.writeId = hive_objects.NO_WRITE_ID
        assert value.sd is not None
        if names_key(value.parameters) and is_parquet(value):
            raise MetaException(f"{name} has a primary key: what belongs to its timeline can't be brought yet")
        if (wrong := unreadable_properties(value)) is not None:
            raise MetaException(f"its properties mean something here, and can't be understood: {wrong}")
        if value.sd.location and not hive_objects.is_view(value):
            value.sd.location = self._places.qualified(value.sd.location)
        return value

    def _replace_table(self, tx: Transaction, row: TableRow, here: Table, wanted: Table) -> None:
        assert wanted.sd is not None
        if wanted.sd.location != row.location:
            if row.location is not None:
                partitions.pin_locations(tx, row.id, row.location)
            self._places.given(tx, _places_of(wanted))
        values = hive_objects.table_values(wanted, _keep_descriptor(tx, wanted))
        self._events.table(tx, EventType.ALTER_TABLE, here, wanted.replace(id=row.id))
        tables.change(tx, row.id, row.database_id, values)

    # --- partitions -------------------------------------------------------------------------------------------

    def partitions(self, tx: Transaction, brought: Sequence[Partition], outcome: Outcome) -> None:
        """Raises NoSuchObjectException where their table isn't there, MetaException for one that can't be kept."""
        by_table: dict[TableName, list[Partition]] = {}
        for each in brought:
            name = given.table_name(each.dbName, each.tableName, each.catName)
            by_table.setdefault(name, []).append(each)
        for name, some in sorted(by_table.items(), key=lambda pair: pair[0]):
            row = tables.find(tx, name, RowLock.SHARED)
            if row is None:
                raise NoSuchObjectException(f"No table {name}: import the tables first")
            if rows_are_of_timeline(tx, row):
                raise InvalidOperationException(PAST_TIMELINE.format(name))
            self._of_table(tx, row, some, outcome)

    def _of_table(self, tx: Transaction, row: TableRow, brought: Sequence[Partition], outcome: Outcome) -> None:
        owner = hive_objects.table_of(row)
        named = self._named(row, owner, brought)
        found = {each.name: each for each in partitions.rows(tx, Selection(row.id, names=list(named)), lock=True)}
        now = clock.once(tx)
        fresh = {name: value for name, value in named.items() if name not in found}
        kept = [(name, list(value.values or ()), value, _flag(value, now)) for name, value in fresh.items()]
        if kept:
            rows = partition_codec.new_rows(tx, row, kept)
            partitions.add(tx, row.id, rows)
            changes = [
                PartitionChange(name, flag.ready, None, kept_after(value, new))
                for (name, _, value, flag), new in zip(kept, rows, strict=True)
            ]
            self._events.partitions(tx, EventType.ADD_PARTITIONS, owner, changes)
            self._places.taken(tx, _elsewhere(row, fresh.values()))
            self._places.settle(tx, [hive_objects.location(value) for value in fresh.values()])
            outcome.added += len(kept)
        changed = self._replace_partitions(tx, row, owner, list(found.values()), named, outcome, now)
        if kept or changed:
            tables.touch(tx, row.id)

    def _named(self, row: TableRow, owner: Table, brought: Sequence[Partition]) -> dict[str, Partition]:
        """Partitions by name, in the form in which they are kept. Raises MetaException."""
        keys = hive_objects.key_names(owner)
        shared = hive_objects.SharedDescriptors()
        named: dict[str, Partition] = {}
        for each in brought:
            if each.values is None:
                raise MetaException(f"a partition of {row.name} has no values")
            name = partition_names.make_name(keys, each.values)
            if name in named:
                raise MetaException(f"{row.name} has the partition {name} twice")
            value = hive_objects.partition(each, shared)
            value.dbName, value.tableName, value.catName = owner.dbName, owner.tableName, owner.catName
            if value.writeId in hive_objects.WITHOUT_WRITE_ID:
                value.writeId = None
            if value.sd is not None and value.sd.location:
                value.sd.location = self._places.qualified(value.sd.location)
            named[name] = value
        return dict(sorted(named.items()))

    def _replace_partitions(
        self,
        tx: Transaction,
        row: TableRow,
        owner: Table,
        found: Sequence[PartitionRow],
        named: Mapping[str, Partition],
        outcome: Outcome,
        now: commit_flag.Now,
    ) -> bool:
        before = partition_codec.decoded(tx, row, found)
        replaced, old, kept = [], [], []
        for each, here in zip(found, before, strict=True):
            wanted = named[each.name]
            if wanted.writeId is None:
                wanted.writeId = here.writeId
            flag = _flag(wanted, now)
            if outcome.differs("partition", f"{row.name} {each.name}", difference(here, wanted)):
                replaced.append(each)
                old.append(here)
                kept.append((each.name, each.values, wanted, flag))
        if not replaced:
            return False
        if any(each.ready != flag.ready for each, (_, _, _, flag) in zip(replaced, kept, strict=True)):
            raise InvalidOperationException(
                f"partitions of {row.name} are ready on one side only: commit or reopen them here first"
            )
        rows = partition_codec.new_rows(tx, row, kept)
        partitions.change_many(tx, zip([each.id for each in replaced], rows, strict=True))
        changes = [
            PartitionChange(each.name, each.ready, kept_before(here, each), kept_after(value, new))
            for each, here, (_, _, value, _), new in zip(replaced, old, kept, rows, strict=True)
        ]
        self._events.partitions(tx, EventType.ALTER_PARTITIONS, owner, changes)
        self._places.given(tx, _elsewhere(row, [value for _, _, value, _ in kept]))
        return True


def rows_are_of_timeline(tx: Transaction, row: TableRow) -> bool:
    """Whether a table's rows are what its timeline says, also if that has no instant yet."""
    return is_keyed(row) or instants.has_timeline(tx, row.id)


def _flag(value: Partition, now: commit_flag.Now) -> Flag:
    """The flag of a partition as its parameters say it; they are kept. Where they say nothing it was to be seen.

    One that isn't to be seen gets the time since when, if it has none.
    """
    assert value.parameters is not None
    return commit_flag.of_brought(value.parameters, now)


def _without_ids(parameters: Mapping[str, str] | None) -> dict[str, str]:
    """The ids of columns belong to the positions of a timeline, which isn't brought."""
    return {key: value for key, value in (parameters or {}).items() if key != COLUMN_IDS}


def _places_of(table: Table) -> list[str]:
    place = hive_objects.location(table)
    return [place] if place and not hive_objects.is_view(table) else []


def _elsewhere(row: TableRow, values: Collection[Partition]) -> list[str]:
    """Where partitions lie that don't lie below their table's place."""
    return list(_outside(row.location, values))


def _outside(base: str | None, values: Collection[Partition]) -> Iterator[str]:
    for each in values:
        place = hive_objects.location(each)
        if place and (base is None or not f"{place}/".startswith(f"{base}/")):
            yield place


def _keep_descriptor(tx: Transaction, value: Table) -> int:
    assert value.sd is not None
    body = splice.descriptor_body(value.sd)
    return descriptors.keep(tx, [body])[body]

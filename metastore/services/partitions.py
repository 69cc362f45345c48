"""Changing partitions."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from eventbus.events import EventType
from metastore.services import (
    commit_flag,
    lake_removal,
    objects,
    partition_filter,
    partition_names,
    partition_rows,
    privileges,
    quick_statistics,
)
from metastore.services import names as given
from metastore.services.commit_flag import Flag
from metastore.services.commits import Commits, properties_of
from metastore.services.events import Events, PartitionChange
from metastore.services.moves import Mover
from metastore.services.partition_reads import no_such_partition, values_of_existing
from metastore.services.partition_rows import Kept
from metastore.services.publishing import Publisher
from metastore.services.readiness_properties import CommitMode
from metastore.services.tables import DDL_TIME, TableService
from metastore.services.visibility import Scope, hides_uncommitted, readable
from metastore.store import (
    Conflict,
    Database,
    DatabaseUnavailable,
    locations,
    moves,
    partitions,
    tables,
    written_tables,
)
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.moves import Move
from metastore.store.partitions import NewPartition, PartitionRow, Selection
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    InvalidPartitionException,
    MetaException,
    NoSuchObjectException,
    Partition,
    StorageDescriptor,
    Table,
)

# To add partitions unless they exist, while others add the same ones.
_ATTEMPTS = 10


class _New(NamedTuple):
    """A new partition: as it was given, and in Hive's form, in its place."""

    name: str
    given: Partition
    value: Partition
    flag: Flag
    location: str | None

    def answer(self, owner: Table) -> Partition:
        """What the caller is told: as in Hive, the object that it gave with what was missing."""
        given_sd = self.given.sd
        return self.given.replace(
            dbName=given.plain(self.given.dbName or owner.dbName),
            tableName=self.given.tableName or owner.tableName,
            catName=owner.catName,
            createTime=self.value.createTime,
            lastAccessTime=self.value.lastAccessTime,
            sd=given_sd
            and given_sd.replace(
                location=self.location,
                compressed=bool(given_sd.compressed),
                numBuckets=given_sd.numBuckets or 0,
            ),
            parameters=self.value.parameters,
        )


class PartitionService:
    """What Hive does with changes of partitions.

    Each call is one transaction that holds the table's row, so that the table can't vanish under it.
    """

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        mover: Mover,
        tables: TableService,
        publisher: Publisher,
        commits: Commits,
        events: Events,
    ) -> None:
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._tables = tables
        self._publisher = publisher
        self._events = events
        self._commits = commits

    # --- adding -----------------------------------------------------------------------------------------------

    def add(
        self,
        database: str | None,
        table: str | None,
        new: Sequence[Partition],
        context: Mapping[str, str],
        *,
        if_not_exists: bool = False,
        single: bool = False,
        table_columns: bool = False,
        catalog: str | None = None,
    ) -> list[Partition]:
        """Adds partitions, all or none, and makes their directories; returns those that were added.

        `single`: the call was made for one partition, and an error is to read so. `table_columns`: whatever columns
        the partitions come with, they have the table's.
        Raises InvalidObjectException (no such table), AlreadyExistsException, MetaException.
        """
        attempts = 0
        while True:
            attempts += 1
            with self._database.read() as tx:
                row = tables.find(tx, given.table_name(database, table, catalog))
                if row is None:
                    raise _no_table(database, table, single)
                owner = objects.table_of(row)
                if table_columns:
                    new = [_with_columns(partition, owner.sd) for partition in new]
                named = self._named(owner, row, new)
                taken = partitions.existing(tx, row.id, list(named))
                if taken and not if_not_exists:
                    raise AlreadyExistsException(f"Partition already exists: {named[min(taken)]}")
                fresh = {name: partition for name, partition in named.items() if name not in taken}
                located = self._located(owner, fresh)
                settled = self._mover.is_settled(tx, located.values())
            if not settled:
                self._mover.settle(located.values())
            try:
                return self._write_new(row, owner, fresh, located, context)
            except AlreadyExistsException:  # others were quicker, with some of them
                if not if_not_exists or attempts == _ATTEMPTS:
                    raise

    def append(
        self,
        database: str | None,
        table: str | None,
        values: Sequence[str] | None,
        context: Mapping[str, str],
        *,
        name: str | None = None,
        catalog: str | None = None,
    ) -> Partition:
        """Adds a partition in its default place, with the table's storage descriptor.

        It is given by its values or its name. Raises InvalidObjectException, AlreadyExistsException, MetaException.
        """
        with self._database.read() as tx:
            row = tables.find(tx, given.table_name(database, table, catalog))
            if row is None:
                raise InvalidObjectException(
                    "Unable to add partition because table or database do not exist"
                    if name is None
                    else f"{given.plain(database)}.{table} table not found"
                )
            owner = objects.table_of(row)
            keys = objects.key_names(owner)
            wanted = list(values or ()) if name is None else partition_names.values_of(name, keys)
            if row.location is None:
                raise MetaException("Cannot append a partition to a view")
            name = partition_names.make_name(keys, wanted)
            if partitions.existing(tx, row.id, [name]):
                raise AlreadyExistsException(f"Partition already exists:{row.name} {name}")
            assert owner.sd is not None
            partition = Partition(
                values=wanted,
                dbName=row.name.database,
                tableName=row.name.table,
                sd=owner.sd.replace(location=None),
            )
            located = self._located(owner, {name: partition})
            settled = self._mover.is_settled(tx, located.values())
        if not settled:
            self._mover.settle(located.values())
        # As in Hive the answer has the names as they were given.
        return self._write_new(row, owner, {name: partition}, located, context)[0].replace(
            dbName=given.plain(database), tableName=table
        )

    def _named(self, owner: Table, row: TableRow, new: Sequence[Partition]) -> dict[str, Partition]:
        """The partitions by name, checked one by one."""
        keys = objects.key_names(owner)
        named: dict[str, Partition] = {}
        own_names: set[tuple[str | None, str | None]] = set()
        for partition in new:
            if partition.values is None:
                raise MetaException("The partition values cannot be null.")
            if partition.sd is None and row.location is not None:
                raise MetaException("a partition of a table needs a storage descriptor")
            if partition.sd is not None and partition.sd.serdeInfo is None:
                raise MetaException("Invalid SerDeInfo object")
            if (names := (partition.dbName, partition.tableName)) not in own_names:
                target = given.table_name(
                    partition.dbName or row.name.database, partition.tableName or row.name.table, row.name.catalog
                )
                if target != row.name:
                    raise MetaException(f"Partition does not belong to target table {row.name}: it names {target}")
                own_names.add(names)
            name = partition_names.make_name(keys, partition.values)
            if name in named:
                raise MetaException(f"Duplicate partitions in the list: {name}")
            named[name] = partition
        return named

    def _located(self, owner: Table, fresh: Mapping[str, Partition]) -> dict[str, str | None]:
        """Where new partitions are to lie, by name, in the order of the names."""
        base = objects.location(owner)
        found: dict[str, str | None] = {}
        for name in sorted(fresh):
            place = objects.location(fresh[name])
            if place and base is None:
                raise MetaException("Cannot specify location for a view partition")
            found[name] = self._warehouse.qualify(place) if place else None
        if base is not None:
            usual = [name for name, place in found.items() if place is None]
            found.update(zip(usual, self._warehouse.partition_locations(base, usual), strict=True))
        return found

    def _write_new(
        self,
        row: TableRow,
        owner: Table,
        fresh: Mapping[str, Partition],
        located: Mapping[str, str | None],
        context: Mapping[str, str],
    ) -> list[Partition]:
        if not fresh:
            return []
        places = [place for place in located.values() if place is not None]
        prepared = self._prepared(row, owner, fresh, located)
        made: set[str] = set()
        try:
            self._warehouse.make_directories(places, made)
            self._count_files(prepared, made, context)
            with self._database.write() as tx:
                held = tables.find(tx, row.name, Hold.SHARED)
                if held is None or held.id != row.id or held.location != row.location:
                    raise _no_table(row.name.database, row.name.table, single=len(fresh) == 1)
                kept = [(p.name, list(p.value.values or ()), p.value, p.flag) for p in prepared]
                rows = partition_rows.new_rows(tx, held, kept)
                partitions.add(tx, row.id, rows)
                privileges.keep_of_new_partitions(tx, held, list(located))
                self._events.partitions(
                    tx,
                    EventType.ADD_PARTITIONS,
                    owner,
                    [
                        PartitionChange(p.name, p.flag.ready, None, p.value, new.descriptor_id)
                        for p, new in zip(prepared, rows, strict=True)
                    ],
                )
                others_changed = tables.touch(tx, row.id) != row.version + 1
                if self._mover.settle_within(tx, places) or others_changed:
                    # Partitions that had the names in the meantime took the directories along when they were dropped.
                    self._warehouse.make_directories(places, made)
                # A partition that is born ready has a writer who sees to that; one that is committed at once hasn't.
                committed = [p for p in prepared if p.flag.ready and p.flag.commit_time is not None]
                self._commits.write_success_files(tx, held, [objects.location(p.value) for p in committed])
        except Conflict:  # who knows whose the directories are now
            raise AlreadyExistsException(f"Partition already exists: one of {', '.join(sorted(fresh))}") from None
        except DatabaseUnavailable:  # perhaps in the middle of the commit: the partitions may be there
            raise
        except BaseException:
            for place in made:
                self._warehouse.delete_empty_directory(place)
            raise
        answers = {p.name: p.answer(owner) for p in prepared}
        return [answers[name] for name in fresh]

    @staticmethod
    def _prepared(
        row: TableRow, owner: Table, fresh: Mapping[str, Partition], located: Mapping[str, str | None]
    ) -> list[_New]:
        """New partitions in Hive's form."""
        born_ready = properties_of(row).mode is CommitMode.NONE
        shared = objects.SharedDescriptors()
        now = int(time.time())
        prepared = []
        for name, location in located.items():
            value = objects.partition(fresh[name], shared)
            assert value.parameters is not None
            flag = commit_flag.of_new(value.parameters, born_ready=born_ready)
            if value.sd is not None:
                value.sd.location = location
            value.createTime = now
            value.catName = owner.catName
            prepared.append(_New(name, fresh[name], value, flag, location))
        return prepared

    def _count_files(self, prepared: Sequence[_New], made: Collection[str], context: Mapping[str, str]) -> None:
        """Brings the quick statistics of new partitions up to date; `made`: the directories that are new, too."""
        empty = set(made)
        for new in prepared:
            parameters = new.value.parameters
            assert parameters is not None
            if new.location is not None:
                quick_statistics.refresh(
                    parameters,
                    self._warehouse,
                    new.location,
                    context,
                    made_directory=new.location in empty,
                    force=False,
                )
                empty.discard(new.location)
            parameters.setdefault(DDL_TIME, str(new.value.createTime))

    # --- altering ---------------------------------------------------------------------------------------------

    def alter(
        self,
        database: str | None,
        table: str | None,
        changed: Sequence[Partition],
        context: Mapping[str, str],
        catalog: str | None = None,
        *,
        single: bool = False,
        table_columns: bool = False,
    ) -> None:
        """Replaces partitions that exist, found by their values, all or none.

        `single`: the call was made for one partition, and an error is to read so. `table_columns`: those that come
        with an empty list of columns have the table's.
        Raises InvalidOperationException where one doesn't exist, MetaException.
        """
        with self._database.write() as tx:
            row = tables.find(tx, given.table_name(database, table, catalog), Hold.SHARED)
            if row is None:
                what = "partition" if single else "partitions"
                raise InvalidOperationException(f"Unable to alter {what} because table or database does not exist.")
            owner = objects.table_of(row)
            keys = objects.key_names(owner)
            named = {_name_of(keys, partition): partition for partition in changed}
            found = partitions.rows(tx, Selection(row.id, names=list(named)), lock=True)
            missing = sorted(named.keys() - {p.name for p in found})
            if missing:
                values = ", ".join(named[missing[0]].values or ())
                raise InvalidOperationException(
                    "alter is not possible"
                    if single
                    else f"Alter partition operation failed: NoSuchObjectException(message:partition values=[{values}])"
                )
            for own_database, own_table in dict.fromkeys((each.dbName, each.tableName) for each in changed):
                _check_named_table(tx, row, own_database, own_table)
            encoder = partition_rows.encoder(tx, row)
            before = [encoder.decoded(old.stored) for old in found]
            altered = []
            shared = objects.SharedDescriptors()
            for old, value in zip(found, before, strict=True):
                wanted = named[old.name]
                if table_columns and wanted.sd is not None and wanted.sd.cols == []:
                    wanted = _with_columns(wanted, owner.sd)
                new = self._altered(owner, value, wanted, shared, context)
                altered.append((old.name, old.values, new, _flag(old, value, new)))
            self._prepare_files(tx, row, found, before, altered)
            rows = partition_rows.new_rows(tx, row, altered)
            partitions.change_many(tx, [(old.id, new) for old, new in zip(found, rows, strict=True)])
            self._tell_of_altered(tx, owner, found, before, altered, rows)
            tables.touch(tx, row.id)

    def _tell_of_altered(
        self,
        tx: Transaction,
        owner: Table,
        found: Sequence[PartitionRow],
        before: Sequence[Partition],
        altered: Sequence[Kept],
        rows: Sequence[NewPartition],
    ) -> None:
        """Records what happened to partitions: those whose flags turned are told apart from the others."""
        told: dict[EventType, list[PartitionChange]] = {}
        for old, value, (name, _, new, flag), row in zip(found, before, altered, rows, strict=True):
            turned = EventType.COMMIT_PARTITIONS if flag.ready else EventType.REOPEN_PARTITIONS
            renamed_from = old.name if old.name != name else None
            told.setdefault(EventType.ALTER_PARTITIONS if flag.ready == old.ready else turned, []).append(
                PartitionChange(
                    name, flag.ready, value, new, row.descriptor_id, old.stored.storage_descriptor_id, renamed_from
                )
            )
        for type, changes in told.items():
            self._events.partitions(tx, type, owner, changes)

    def _prepare_files(
        self,
        tx: Transaction,
        row: TableRow,
        found: Sequence[PartitionRow],
        before: Sequence[Partition],
        altered: Sequence[Kept],
    ) -> None:
        """Does with files what must be done before flags turn or locations change."""
        committed, reopened, relocated = [], [], []
        for old, value, (_, _, new, flag) in zip(found, before, altered, strict=True):
            if objects.location(new) != objects.location(value):
                relocated.append(old.id)
            if flag.ready and not old.ready:
                committed.append((old.id, objects.location(new)))
            if old.ready and not flag.ready:
                reopened.append(objects.location(value))
        if relocated:
            self._publisher.settle(tx, relocated)
        if committed:
            self._commits.prepare_commit(tx, row, committed)
        if reopened:
            self._commits.prepare_reopening(tx, row, reopened)

    def _altered(
        self,
        owner: Table,
        old: Partition,
        new: Partition,
        shared: objects.SharedDescriptors,
        context: Mapping[str, str],
    ) -> Partition:
        lies_somewhere = objects.location(owner) is not None
        if new.sd is None and lies_somewhere:
            raise MetaException("a partition of a table needs a storage descriptor")
        value = objects.partition(new, shared)
        assert value.parameters is not None
        if value.parameters.get(DDL_TIME) in (None, "", "0"):
            value.parameters[DDL_TIME] = str(int(time.time()))
        if lies_somewhere and value.sd is not None:
            if not value.sd.location:
                raise MetaException("a partition of a table needs a location")
            if value.sd.location != objects.location(old):
                value.sd.location = self._warehouse.qualify(value.sd.location)
        if quick_statistics.needed(old, value, context, view=objects.is_view(owner)):
            quick_statistics.refresh(
                value.parameters,
                self._warehouse,
                objects.location(value),
                context,
                made_directory=False,
                force=True,
            )
        return value

    def rename(
        self,
        database: str | None,
        table: str | None,
        values: Sequence[str],
        new: Partition,
        context: Mapping[str, str],
        catalog: str | None = None,
    ) -> None:
        """Gives a partition other values; a managed table's partition moves to its new default place, another stays.

        Without old values it is an alteration of the partition with the new ones, as in Hive.
        Raises InvalidObjectException / InvalidOperationException if there's none, or the new one exists.
        """
        if not values:
            self.alter(database, table, [new], context, catalog, single=True)
            return
        move: Move | None = None
        try:
            with self._database.write() as tx:
                # Alone: who waited for a partition that has another name by then would hold it out of order.
                row = tables.find(tx, given.table_name(database, table, catalog), Hold.EXCLUSIVE)
                if row is None:
                    raise InvalidOperationException(
                        "Unable to alter partition because table or database does not exist."
                    )
                owner = objects.table_of(row)
                keys = objects.key_names(owner)
                old_name = partition_names.make_name(keys, values)
                found = partitions.rows(tx, Selection(row.id, names=[old_name]), lock=True)
                if not found:
                    raise InvalidOperationException("Unable to rename partition because old partition does not exist")
                old = found[0]
                lake_removal.refuse_rename(tx, row, [old.name], "renamed")
                name = _name_of(keys, new)
                if partitions.existing(tx, row.id, [name]):
                    raise InvalidOperationException(
                        f"Partition already exists:{row.name}.[{', '.join(new.values or ())}]"
                    )
                _check_named_table(tx, row, new.dbName, new.tableName)
                before = partition_rows.encoder(tx, row).decoded(old.stored)
                value = objects.partition(new, objects.SharedDescriptors())
                assert value.parameters is not None
                if value.parameters.get(DDL_TIME) in (None, "", "0"):
                    value.parameters[DDL_TIME] = str(int(time.time()))
                external, place = objects.is_external(owner), objects.location(before)
                if value.sd is not None:
                    value.sd.location = place
                if not external and quick_statistics.needed(before, value, context, view=objects.is_view(owner)):
                    quick_statistics.refresh(
                        value.parameters, self._warehouse, place, context, made_directory=False, force=True
                    )
                altered = [(name, list(new.values or ()), value, _flag(old, before, value))]
                self._publisher.settle(tx, [old.id])
                self._prepare_files(tx, row, found, [before], altered)
                if not external and row.location and place:
                    move = self._default_place(tx, row, name, value)
                rows = partition_rows.new_rows(tx, row, altered)
                partitions.change(tx, old.id, rows[0])
                written_tables.rename_partition(tx, row.name, old_name, name)
                self._tell_of_altered(tx, owner, found, [before], altered, rows)
                tables.touch(tx, row.id)
        except Conflict:
            raise InvalidOperationException(f"Partition already exists: {list(new.values or ())}") from None
        if move is not None:
            self._mover.carry_out([move])
            self._mover.delete_empty_parents([move.source], row.location, depth=len(keys) - 1)

    def _default_place(self, tx: Transaction, row: TableRow, name: str, value: Partition) -> Move | None:
        assert row.location is not None and value.sd is not None and value.sd.location is not None
        target = self._warehouse.partition_location(row.location, name)
        source, value.sd.location = value.sd.location, target
        if source == target:
            return None
        self._mover.settle_within(tx, [source, target])
        if self._warehouse.exists(target):
            raise InvalidOperationException(f"New location for this table {row.name} already exists : {target}")
        return moves.add(tx, source, target)

    # --- removing ---------------------------------------------------------------------------------------------

    def drop(
        self,
        database: str | None,
        table: str | None,
        *,
        values: Sequence[str] | None = None,
        name: str | None = None,
        delete_data: bool,
        catalog: str | None = None,
    ) -> None:
        """Removes one partition, given by its values or its name. Raises NoSuchObjectException, MetaException."""

        def select(tx: Transaction, row: TableRow) -> list[PartitionRow]:
            keys = objects.key_names(objects.table_of(row))
            wanted = list(values or ()) if name is None else values_of_existing(name, keys)
            exact = partition_names.make_name(keys, wanted)
            found = partitions.rows(tx, Selection(row.id, names=[exact]), lock=True)
            if not found:
                raise no_such_partition(wanted)
            return found

        self._drop(database, table, catalog, select, delete_data=delete_data)

    def drop_named(
        self,
        database: str | None,
        table: str | None,
        names: Sequence[str],
        *,
        delete_data: bool,
        if_exists: bool,
        catalog: str | None = None,
    ) -> list[Partition]:
        """Removes partitions by name and returns them. Raises NoSuchObjectException if one is missing."""

        def select(tx: Transaction, row: TableRow) -> list[PartitionRow]:
            found = partitions.rows(tx, Selection(row.id, names=names), lock=True)
            if len(found) < len(set(names)) and not if_exists:
                raise NoSuchObjectException("Some partitions to drop are missing")
            return found

        return self._drop(database, table, catalog, select, delete_data=delete_data)

    def drop_matching(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        expressions: Sequence[bytes],
        *,
        delete_data: bool,
        if_exists: bool,
        catalog: str | None = None,
    ) -> list[Partition]:
        """Removes what the caller sees of the partitions that any of the filters selects, and returns them.

        Each filter must select something unless `if_exists`. Raises NoSuchObjectException, and MetaException also if
        what a filter selects can't be decided here.
        """

        def select(tx: Transaction, row: TableRow) -> list[PartitionRow]:
            keys = objects.table_of(row).partitionKeys or []
            found: set[str] = set()
            for expression in expressions:
                wanted = partition_filter.parse_expression_bytes(expression, keys)
                if wanted.unclear is not None:
                    raise MetaException(f"Unexpected unknown partitions to drop: {wanted.unclear}")
                matching = partitions.names(tx, readable(row, scope, predicate=wanted.at_most))
                if not matching and not if_exists:
                    raise NoSuchObjectException("Some partitions to drop are missing")
                found |= set(matching)
            # All at once, in the order of their names, as everybody takes hold of partitions.
            return partitions.rows(tx, readable(row, scope, names=list(found)), lock=True)

        return self._drop(database, table, catalog, select, delete_data=delete_data)

    def _drop(
        self,
        database: str | None,
        table: str | None,
        catalog: str | None,
        select: Callable[[Transaction, TableRow], list[PartitionRow]],
        *,
        delete_data: bool,
    ) -> list[Partition]:
        deletions: list[Move] = []
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, Hold.SHARED)
            has_timeline = lake_removal.hold_completions(tx, row)
            found = select(tx, row)
            owner = objects.table_of(row)
            external = objects.is_external(owner) or objects.is_view(owner)
            encoder = partition_rows.encoder(tx, row)
            gone = [encoder.decoded(p.stored) for p in found]
            if external or not delete_data:
                self._publisher.settle_kept(tx, row.id, [p.id for p in found])
            partitions.remove(tx, row.id, found)
            deleted = delete_data and not external
            if has_timeline:
                lake_removal.drop_files(tx, row, [p.name for p in found], self._events, deleted=deleted)
            written_tables.forget_partitions(tx, row.name, [partition.name for partition in found])
            self._events.partitions(
                tx,
                EventType.DROP_PARTITIONS,
                owner,
                [
                    PartitionChange(p.name, p.ready, before=value, descriptor_before=p.stored.storage_descriptor_id)
                    for p, value in zip(found, gone, strict=True)
                ],
            )
            tables.touch(tx, row.id)
            if deleted:
                places = [place for p in gone if (place := objects.location(p))]
                self._mover.settle_within(tx, places)
                depth = len(owner.partitionKeys or ())
                doomed = locations.unshared(tx, places)
                doomed = locations.unshared_within(tx, row.id, row.location, depth, doomed)
                deletions = moves.add_deletions(tx, doomed)
        self._mover.carry_out(deletions)
        deleted_places = [deletion.source for deletion in deletions]
        self._mover.delete_empty_parents(deleted_places, row.location, depth=len(owner.partitionKeys or ()) - 1)
        return gone

    # --- remarks ----------------------------------------------------------------------------------------------

    def mark(
        self, database: str | None, table: str | None, spec: Mapping[str, str] | None, event_type: int | None
    ) -> None:
        """Remembers that an event happened to a partition. Raises UnknownTableException, InvalidPartitionException."""
        with self._database.write() as tx:
            row = self._tables.described_row(tx, database, table, Hold.SHARED)
            name = _name_of_spec(objects.key_names(objects.table_of(row)), spec)
            partitions.mark_event(tx, row.id, name, event_type or 0, int(time.time()))

    def is_marked(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        spec: Mapping[str, str] | None,
        event_type: int | None,
    ) -> bool:
        """Whether such an event was remembered of a partition that isn't there, or that the caller sees.

        Raises UnknownTableException, InvalidPartitionException.
        """
        with self._database.read() as tx:
            row = self._tables.described_row(tx, database, table)
            name = _name_of_spec(objects.key_names(objects.table_of(row)), spec)
            uncommitted = Selection(row.id, only_uncommitted=True, names=[name])
            if hides_uncommitted(scope, row.name) and partitions.count(tx, uncommitted):
                return False
            return partitions.has_event(tx, row.id, name, event_type or 0)


def _no_table(database: str | None, table: str | None, single: bool) -> InvalidObjectException:
    if single:
        return InvalidObjectException("Unable to add partition because table or database do not exist")
    return InvalidObjectException(
        f"Unable to add partitions because database or table {given.plain(database)}.{table} does not exist"
    )


def _with_columns(partition: Partition, descriptor: StorageDescriptor | None) -> Partition:
    """The partition with the columns of a storage descriptor, where both have one."""
    if partition.sd is None or descriptor is None:
        return partition
    return partition.replace(sd=partition.sd.replace(cols=descriptor.cols))


def _name_of(keys: Sequence[str], partition: Partition) -> str:
    """The name that an existing partition's values give it."""
    if partition.values is None:
        raise MetaException("The partition values cannot be null.")
    return partition_names.make_name(keys, partition.values)


def _check_named_table(tx: Transaction, row: TableRow, database: str | None, table: str | None) -> None:
    """The table is the one that the call names; Hive wants the one that a partition names to be a table, no more."""
    target = given.table_name(database or row.name.database, table or row.name.table, row.name.catalog)
    if target != row.name and tables.find(tx, target) is None:
        raise MetaException(f"the partition's own table {target} does not exist")


def _name_of_spec(keys: Sequence[str], spec: Mapping[str, str] | None) -> str:
    if spec is None:
        raise MetaException("the partition's values are missing")
    if len(spec) != len(keys):
        raise InvalidPartitionException(
            f"Number of partition columns in table: {len(keys)} doesn't match with number of supplied partition"
            f" values: {len(spec)}"
        )
    for key in keys:
        if key not in spec:
            raise InvalidPartitionException(f"No value found for partition column: {key}")
    return partition_names.make_name(keys, [spec[key] for key in keys])


def _flag(old: PartitionRow, before: Partition, new: Partition) -> Flag:
    """The flag of a partition that is replaced; the new one's parameters get what belongs to it."""
    assert new.parameters is not None
    return commit_flag.of_altered(Flag(old.ready, old.commit_time), before.parameters or {}, new.parameters)

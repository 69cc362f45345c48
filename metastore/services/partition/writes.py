"""Hive's writing calls for partitions: add, alter, rename, drop."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from lake.protocol.clock import now_seconds
from lake.protocol.events.types import EventType
from lake.protocol.formats import partition_names
from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.hive import (
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
from metastore.services.access import privileges
from metastore.services.commit_flag import commit_flag
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.events.recorder import Events, PartitionChange, kept_after, kept_before
from metastore.services.files.deletable import Deletable
from metastore.services.files.new_directories import new_directories
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.filters import partition_filter
from metastore.services.instant_rules import engine_writes, hive_drops, readiness_changes
from metastore.services.model import basic_statistics, hive_objects, partition_codec
from metastore.services.model import names as given
from metastore.services.model.basic_statistics import ToRefresh
from metastore.services.model.flag import Flag
from metastore.services.model.partition_codec import Kept
from metastore.services.model.validation import check_columns
from metastore.services.model.visibility import Scope, hides_uncommitted, readable
from metastore.services.partition.reads import no_such_partition, values_of_existing
from metastore.services.table.service import DDL_TIME, TableService
from metastore.store import Conflict, Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.store.partition import locations, partitions
from metastore.store.partition.partitions import NewPartition, PartitionRow, Selection
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.store.transactions import written_tables
from metastore.warehouse import Warehouse

# Attempts of an add with `if_not_exists`, while other callers add the same partitions.
_ATTEMPTS = 10


class _New(NamedTuple):
    """A new partition: as the caller sent it, and in the stored form with its location."""

    name: str
    given: Partition
    value: Partition
    flag: Flag
    location: str | None

    def answer(self, owner: Table) -> Partition:
        """The reply to the caller: as in Hive, its own object with the missing fields filled in."""
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


class Added(NamedTuple):
    """The partitions that a call has added, in the caller's order. Most callers only want to know how many."""

    new: Sequence[_New]
    owner: Table

    @property
    def partitions(self) -> list[Partition]:
        """As the caller is answered."""
        return [each.answer(self.owner) for each in self.new]


class PartitionService:
    """Hive's writing calls for partitions.

    Each call is one transaction. It locks the table's row, so that nobody drops the table meanwhile.
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
        deletable: Deletable,
    ) -> None:
        self._deletable = deletable
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
    ) -> Added:
        """Adds partitions, all or none, and makes their directories; returns those that were added.

        `single`: the call is for one partition, and so is the wording of errors. `table_columns`: the partitions get
        the table's columns, whatever the caller sent.
        Raises InvalidObjectException (no such table), AlreadyExistsException, MetaException.
        """
        attempts = 0
        while True:
            attempts += 1
            with self._database.read() as tx:
                row = tables.find(tx, given.table_name(database, table, catalog))
                if row is None:
                    raise _no_table(database, table, single)
                hive_objects.check_identity(row, context)
                owner = hive_objects.table_of(row)
                if table_columns:
                    new = [_with_columns(partition, owner.sd) for partition in new]
                named = self._named(owner, row, new, (database, table))
                taken = partitions.existing(tx, row.id, list(named))
                if taken and not if_not_exists:
                    raise AlreadyExistsException(f"Partition already exists: {named[min(taken)]}")
                fresh = {name: partition for name, partition in named.items() if name not in taken}
                self._check_descriptors(row, fresh.values())  # as in Hive only of those that aren't there
                located = self._located(owner, fresh)
                engine_writes.check_places(tx, row, self._warehouse, located, new=True)
                settled = self._mover.is_settled(tx, located.values())
            if not settled:
                self._mover.settle(located.values())
            try:
                return self._write_new(row, owner, fresh, located, context)
            except AlreadyExistsException:  # another caller has added some of them meanwhile
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
            owner = hive_objects.table_of(row)
            keys = hive_objects.key_names(owner)
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
            engine_writes.check_places(tx, row, self._warehouse, located, new=True)
            settled = self._mover.is_settled(tx, located.values())
        if not settled:
            self._mover.settle(located.values())
        # As in Hive the answer has the names as they were given.
        [added] = self._write_new(row, owner, {name: partition}, located, context).partitions
        return added.replace(dbName=given.plain(database), tableName=table)

    def _named(
        self, owner: Table, row: TableRow, new: Sequence[Partition], asked: tuple[str | None, str | None]
    ) -> dict[str, Partition]:
        """The partitions by name, checked one by one. `asked`: the database and table as the call names them.

        As in Hive each has to name them to the letter.
        """
        keys = hive_objects.key_names(owner)
        named: dict[str, Partition] = {}
        for partition in new:
            if (names := (partition.dbName, partition.tableName)) != asked:
                if None in names:
                    raise MetaException("The database and table name must be set in the partition.")
                raise MetaException(
                    f"Partition does not belong to target table {row.name}: it names {names[0]}.{names[1]}, and the"
                    f" call {asked[0]}.{asked[1]}"
                )
            if partition.values is None:
                raise MetaException("The partition values cannot be null.")
            name = partition_names.make_name(keys, partition.values)
            if name in named:
                raise MetaException(f"Duplicate partitions in the list: {name}")
            named[name] = partition
        return named

    @staticmethod
    def _check_descriptors(row: TableRow, fresh: Iterable[Partition]) -> None:
        for partition in fresh:
            if partition.sd is None and row.location is not None:
                raise MetaException("a partition of a table needs a storage descriptor")
            if partition.sd is not None and partition.sd.serdeInfo is None:
                raise MetaException("Invalid SerDeInfo object")

    def _located(self, owner: Table, fresh: Mapping[str, Partition]) -> dict[str, str | None]:
        """Where new partitions are to lie, by name, in the order of the names."""
        base = hive_objects.location(owner)
        found: dict[str, str | None] = {}
        for name in sorted(fresh):
            place = hive_objects.location(fresh[name])
            if place and base is None:
                raise MetaException("Cannot specify location for a view partition")
            found[name] = self._given_place(place) if place else None
        if base is not None:
            usual = [name for name, place in found.items() if place is None]
            found.update(zip(usual, self._warehouse.partition_locations(base, usual), strict=True))
        return found

    def _given_place(self, location: str) -> str:
        place = self._warehouse.qualify(location)
        if self._warehouse.parent(place) is None:
            raise MetaException(f"a partition's location must not be the root of a storage: {place}")
        return place

    def _write_new(
        self,
        row: TableRow,
        owner: Table,
        fresh: Mapping[str, Partition],
        located: Mapping[str, str | None],
        context: Mapping[str, str],
    ) -> Added:
        if not fresh:
            return Added([], owner)
        places = [place for place in located.values() if place is not None]
        prepared = self._prepared(row, owner, fresh, located, cache(self._now))
        # Of several partitions nobody knows which one was there.
        taken = AlreadyExistsException(f"Partition already exists: one of {', '.join(sorted(fresh))}")
        with new_directories(self._warehouse, taken) as made:
            self._warehouse.make_directories(places, made)
            self._count_files(prepared, made, context)
            with self._database.write() as tx:
                held = tables.find(tx, row.name, RowLock.SHARED)
                if held is None or held.id != row.id or held.location != row.location:
                    raise _no_table(row.name.database, row.name.table, single=len(fresh) == 1)
                # A partition that is born ready has a writer who sees to that; one that is committed at once hasn't.
                committed = [p for p in prepared if p.flag.ready and p.flag.commit_time is not None]
                if committed:  # no completion adds files to them that hasn't seen that they are ready
                    self._commits.hold_timeline(tx, held)
                kept = [(p.name, list(p.value.values or ()), p.value, p.flag) for p in prepared]
                rows = partition_codec.new_rows(tx, held, kept)
                partitions.add(tx, row.id, rows)
                readiness_changes.added(tx, held, [p.name for p in prepared if not p.flag.ready])
                privileges.keep_of_new_partitions(tx, held, list(located))
                self._events.partitions(
                    tx,
                    EventType.ADD_PARTITIONS,
                    owner,
                    [
                        PartitionChange(p.name, p.flag.ready, None, kept_after(p.value, new))
                        for p, new in zip(prepared, rows, strict=True)
                    ],
                )
                others_changed = tables.touch(tx, row.id) != row.version + 1
                self._deletable.hold(tx, _elsewhere(places, row.location))
                if self._mover.settle_within(tx, places) or others_changed:
                    # Partitions that had the names in the meantime took the directories along when they were dropped.
                    self._warehouse.make_directories(places, made)
                owned = set() if hive_objects.is_external(owner) else made
                self._deletable.record_many(tx, _elsewhere(places, row.location), owned, besides=row.id)
                self._commits.write_success_files(tx, held, [hive_objects.location(p.value) for p in committed])
        by_name = {p.name: p for p in prepared}
        return Added([by_name[name] for name in fresh], owner)

    @staticmethod
    def _prepared(
        row: TableRow,
        owner: Table,
        fresh: Mapping[str, Partition],
        located: Mapping[str, str | None],
        turned_at: commit_flag.Now,
    ) -> list[_New]:
        """New partitions in Hive's form."""
        born_ready = properties_of(row).mode is CommitMode.NONE
        shared = hive_objects.SharedDescriptors()
        now = now_seconds()
        prepared = []
        for name, location in located.items():
            value = hive_objects.partition(fresh[name], shared)
            assert value.parameters is not None
            flag = commit_flag.of_new(value.parameters, turned_at, born_ready=born_ready)
            if value.sd is not None:
                value.sd.location = location
            value.createTime = now
            value.catName = owner.catName
            prepared.append(_New(name, fresh[name], value, flag, location))
        for descriptor in shared.distinct:
            check_columns(descriptor.cols)  # Hive checks those of new partitions alone: its database refuses them
        return prepared

    def _now(self) -> int:
        with self._database.read() as tx:
            return clock.now_ms(tx)

    def _count_files(self, prepared: Sequence[_New], made: Collection[str], context: Mapping[str, str]) -> None:
        """Brings the quick statistics of new partitions up to date; `made`: the directories that are new, too."""
        empty = set(made)
        counted = []
        for new in prepared:
            assert new.value.parameters is not None
            if new.location is not None:
                own = ToRefresh(new.value.parameters, new.location, made_directory=new.location in empty, force=False)
                counted.append(own)
                empty.discard(new.location)
        basic_statistics.refresh_many(counted, self._warehouse, context)
        for new in prepared:
            assert new.value.parameters is not None
            new.value.parameters.setdefault(DDL_TIME, str(new.value.createTime))

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

        `single`: the call is for one partition, and so is the wording of errors. `table_columns`: partitions with an
        empty list of columns get the table's.
        Raises InvalidOperationException where one doesn't exist, MetaException.
        """
        with self._database.write() as tx:
            row = tables.find(tx, given.table_name(database, table, catalog), RowLock.SHARED)
            if row is None:
                what = "partition" if single else "partitions"
                raise InvalidOperationException(f"Unable to alter {what} because table or database does not exist.")
            owner = hive_objects.table_of(row)
            keys = hive_objects.key_names(owner)
            named = {_name_of(keys, partition): partition for partition in changed}
            if any(commit_flag.COMMIT in (partition.parameters or {}) for partition in changed):
                self._commits.hold_timeline(tx, row)
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
            encoder = partition_codec.encoder(tx, row)
            stored = [old.stored for old in found]
            before = encoder.all_decoded(stored)
            altered, counted, now = [], [], clock.once(tx)
            shared, view = hive_objects.SharedDescriptors(), hive_objects.is_view(owner)
            for old, value in zip(found, before, strict=True):
                wanted = named[old.name]
                if table_columns and wanted.sd is not None and wanted.sd.cols == []:
                    wanted = _with_columns(wanted, owner.sd)
                new = self._altered(owner, value, wanted, shared)
                if basic_statistics.needed(value, new, context, view=view):
                    assert new.parameters is not None
                    counted.append(
                        ToRefresh(new.parameters, hive_objects.location(new), made_directory=False, force=True)
                    )
                altered.append((old.name, old.values, new, _flag(old, value, new, now)))
            places = {name: hive_objects.location(new) for name, _, new, _ in altered}
            engine_writes.check_places(tx, row, self._warehouse, places, new=False)
            basic_statistics.refresh_many(counted, self._warehouse, context)
            self._prepare_files(tx, row, found, before, altered)
            rows = partition_codec.new_rows(tx, row, altered, encoder.ids_of(stored))
            _change(tx, found, rows)
            self._record_altered(tx, row, owner, found, before, altered, rows)
            tables.touch_with_commit(tx, row.id)

    def _record_altered(
        self,
        tx: Transaction,
        row: TableRow,
        owner: Table,
        found: Sequence[PartitionRow],
        before: Sequence[Partition],
        altered: Sequence[Kept],
        rows: Sequence[NewPartition],
    ) -> None:
        """Records the events: partitions that were committed or reopened get events of their own."""
        by_type: dict[EventType, list[PartitionChange]] = {}
        for old, value, (name, _, new, flag), stored in zip(found, before, altered, rows, strict=True):
            turned = EventType.COMMIT_PARTITIONS if flag.ready else EventType.REOPEN_PARTITIONS
            renamed_from = old.name if old.name != name else None
            by_type.setdefault(EventType.ALTER_PARTITIONS if flag.ready == old.ready else turned, []).append(
                PartitionChange(name, flag.ready, kept_before(value, old), kept_after(new, stored), renamed_from)
            )
        for type, changes in by_type.items():
            self._events.partitions(tx, type, owner, changes)
            if type is not EventType.ALTER_PARTITIONS:
                names = [each.name for each in changes]
                self._commits.record_turned(tx, row, names, ready=type is EventType.COMMIT_PARTITIONS)

    def _prepare_files(
        self,
        tx: Transaction,
        row: TableRow,
        found: Sequence[PartitionRow],
        before: Sequence[Partition],
        altered: Sequence[Kept],
    ) -> None:
        """Does with files what must be done before flags turn or locations change."""
        committed, reopened, relocated, places = [], [], [], []
        for old, value, (_, _, new, flag) in zip(found, before, altered, strict=True):
            if hive_objects.location(new) != hive_objects.location(value):
                relocated.append(old.id)
                places.append(hive_objects.location(new) or "")
            if flag.ready and not old.ready:
                committed.append((old.id, hive_objects.location(new)))
            if old.ready and not flag.ready:
                reopened.append(hive_objects.location(value))
        if relocated:
            self._publisher.settle(tx, relocated)
            given_places = _elsewhere(places, row.location)
            self._deletable.hold(tx, given_places)
            self._mover.settle_within(tx, given_places)
            self._deletable.record_given(tx, given_places)
        if committed:
            turning = dict(committed)
            self._commits.check_published(tx, row, [old.name for old in found if old.id in turning])
            self._commits.prepare_commit(tx, row, committed)
        if reopened:
            self._commits.prepare_reopening(tx, row, reopened)

    def _altered(
        self,
        owner: Table,
        old: Partition,
        new: Partition,
        shared: hive_objects.SharedDescriptors,
    ) -> Partition:
        lies_somewhere = hive_objects.location(owner) is not None
        if new.sd is None and lies_somewhere:
            raise MetaException("a partition of a table needs a storage descriptor")
        value = hive_objects.partition(new, shared)
        assert value.parameters is not None
        if value.parameters.get(DDL_TIME) in (None, "", "0"):
            value.parameters[DDL_TIME] = str(now_seconds())
        if lies_somewhere and value.sd is not None:
            if not value.sd.location:
                raise MetaException("a partition of a table needs a location")
            if value.sd.location != hive_objects.location(old):
                value.sd.location = self._given_place(value.sd.location)
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
        """Changes a partition's values. In a managed table its directory moves to the new default location.

        With empty `values`, it is an `alter` of the partition with the new values, as in Hive. Raises
        InvalidObjectException or InvalidOperationException if there is no such partition, or if the new one exists.
        """
        if not values:
            self.alter(database, table, [new], context, catalog, single=True)
            return
        move: Move | None = None
        try:
            with self._database.write() as tx:
                # An exclusive lock: a caller that waits for a partition renamed meanwhile would lock out of order.
                row = tables.find(tx, given.table_name(database, table, catalog), RowLock.EXCLUSIVE)
                if row is None:
                    raise InvalidOperationException(
                        "Unable to alter partition because table or database does not exist."
                    )
                keys = hive_objects.key_names(hive_objects.table_of(row))
                old = _locked_for_rename(tx, row, partition_names.make_name(keys, values))
                name = _name_of(keys, new)
                if partitions.existing(tx, row.id, [name]):
                    raise InvalidOperationException(
                        f"Partition already exists:{row.name}.[{', '.join(new.values or ())}]"
                    )
                _check_named_table(tx, row, new.dbName, new.tableName)
                move = self._renamed(tx, row, old, name, new, context)
        except Conflict:
            raise InvalidOperationException(f"Partition already exists: {list(new.values or ())}") from None
        if move is not None:
            self._mover.carry_out([move])
            self._mover.delete_empty_parents([move.source], row.location, depth=len(keys) - 1)

    def _renamed(
        self,
        tx: Transaction,
        row: TableRow,
        old: PartitionRow,
        name: str,
        new: Partition,
        context: Mapping[str, str],
    ) -> Move | None:
        """Renames a locked partition. Returns the recorded move of its directory, if it moves."""
        owner = hive_objects.table_of(row)
        before = partition_codec.encoder(tx, row).decoded(old.stored)
        value = hive_objects.partition(new, hive_objects.SharedDescriptors())
        assert value.parameters is not None
        if value.parameters.get(DDL_TIME) in (None, "", "0"):
            value.parameters[DDL_TIME] = str(now_seconds())
        external, place = hive_objects.is_external(owner), hive_objects.location(before)
        if value.sd is not None:
            value.sd.location = place
        if not external and basic_statistics.needed(before, value, context, view=hive_objects.is_view(owner)):
            basic_statistics.refresh(
                value.parameters, self._warehouse, place, context, made_directory=False, force=True
            )
        altered = [(name, list(new.values or ()), value, _flag(old, before, value, clock.once(tx)))]
        self._publisher.settle(tx, [old.id])
        self._prepare_files(tx, row, [old], [before], altered)
        move: Move | None = None
        if not external and row.location and place:
            move = self._default_place(tx, row, name, value)
        rows = partition_codec.new_rows(tx, row, altered)
        partitions.change(tx, old.id, rows[0])
        written_tables.rename_partition(tx, row.name, old.name, name)
        self._record_altered(tx, row, owner, [old], [before], altered, rows)
        readiness_changes.renamed(tx, row, old.name, name, ready=altered[0][3].ready)
        tables.touch_with_commit(tx, row.id)
        return move

    def _default_place(self, tx: Transaction, row: TableRow, name: str, value: Partition) -> Move | None:
        assert row.location is not None and value.sd is not None and value.sd.location is not None
        target = self._warehouse.partition_location(row.location, name)
        source, value.sd.location = value.sd.location, target
        if source == target:
            return None
        self._deletable.check(tx, [source], "moved", besides=row.id)
        self._mover.settle_within(tx, [source, target])
        if self._warehouse.exists(target):
            raise InvalidOperationException(f"New location for this table {row.name} already exists : {target}")
        self._warehouse.check_move(source, target)
        self._deletable.record_moved(tx, source, target)
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
            keys = hive_objects.key_names(hive_objects.table_of(row))
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
        """Removes the visible partitions that any of the expressions selects, and returns them.

        Each expression must select something unless `if_exists`. Raises NoSuchObjectException, and MetaException, also
        for an expression that can't be evaluated here.
        """

        def select(tx: Transaction, row: TableRow) -> list[PartitionRow]:
            keys = hive_objects.table_of(row).partitionKeys or []
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
            row = self._tables.row(tx, database, table, catalog, RowLock.SHARED)
            has_timeline = hive_drops.hold_completions(tx, row)
            found = select(tx, row)
            owner = hive_objects.table_of(row)
            external = hive_objects.is_external(owner) or hive_objects.is_view(owner)
            encoder = partition_codec.encoder(tx, row)
            gone = encoder.all_decoded([p.stored for p in found])
            if external or not delete_data:
                self._publisher.settle_kept(tx, row.id, [p.id for p in found])
            partitions.remove(tx, row.id, found)
            deleted = delete_data and not external
            if has_timeline:
                hive_drops.drop_files(tx, row, [p.name for p in found], self._events, deleted=deleted)
                readiness_changes.dropped(tx, row, [p.name for p in found])
            written_tables.forget_partitions(tx, row.name, [partition.name for partition in found])
            self._events.partitions(
                tx,
                EventType.DROP_PARTITIONS,
                owner,
                [PartitionChange(p.name, p.ready, kept_before(value, p)) for p, value in zip(found, gone, strict=True)],
            )
            tables.touch(tx, row.id)
            if deleted:
                places = [place for p in gone if (place := self._own_place(p))]
                self._mover.settle_within(tx, places)
                depth = len(owner.partitionKeys or ())
                doomed = self._deletable.among(tx, places, of=row.id)
                doomed = locations.unshared_within(tx, row.id, row.location, depth, doomed)
                deletions = moves.add_deletions(tx, doomed)
            else:
                self._deletable.forget(tx, _elsewhere([hive_objects.location(p) or "" for p in gone], row.location))
        self._mover.carry_out(deletions)
        deleted_places = [deletion.source for deletion in deletions]
        self._mover.delete_empty_parents(deleted_places, row.location, depth=len(owner.partitionKeys or ()) - 1)
        return gone

    def _own_place(self, partition: Partition) -> str | None:
        """The directory that goes with a partition: of one that Hive archived, where it lay before."""
        parameters = partition.parameters or {}
        original = parameters.get("original_location")
        if original and hive_objects.is_true(parameters.get("is_archived")):
            return self._warehouse.qualify(original)
        return hive_objects.location(partition)

    # --- marks ------------------------------------------------------------------------------------------------

    def mark(
        self, database: str | None, table: str | None, spec: Mapping[str, str] | None, event_type: int | None
    ) -> None:
        """Stores a mark that an event happened to a partition (Hive's markPartitionForEvent).

        Raises UnknownTableException, InvalidPartitionException."""
        with self._database.write() as tx:
            row = self._tables.described_row(tx, database, table, RowLock.SHARED)
            name = _name_of_spec(hive_objects.key_names(hive_objects.table_of(row)), spec)
            partitions.mark_event(tx, row.id, name, event_type or 0, now_seconds())

    def is_marked(
        self,
        scope: Scope,
        database: str | None,
        table: str | None,
        spec: Mapping[str, str] | None,
        event_type: int | None,
    ) -> bool:
        """Whether a partition has such a mark. The partition may be missing; an uncommitted one must be visible.

        Raises UnknownTableException, InvalidPartitionException.
        """
        with self._database.read() as tx:
            row = self._tables.described_row(tx, database, table)
            name = _name_of_spec(hive_objects.key_names(hive_objects.table_of(row)), spec)
            uncommitted = Selection(row.id, only_uncommitted=True, names=[name])
            if hides_uncommitted(scope, row.name) and partitions.count(tx, uncommitted):
                return False
            return partitions.has_event(tx, row.id, name, event_type or 0)


def _locked_for_rename(tx: Transaction, row: TableRow, name: str) -> PartitionRow:
    """A partition, locked. Raises InvalidOperationException if it doesn't exist, or has files in a timeline."""
    found = partitions.rows(tx, Selection(row.id, names=[name]), lock=True)
    if not found:
        raise InvalidOperationException("Unable to rename partition because old partition does not exist")
    hive_drops.refuse_rename(tx, row, [name], "renamed")
    return found[0]


def _no_table(database: str | None, table: str | None, single: bool) -> InvalidObjectException:
    if single:
        return InvalidObjectException("Unable to add partition because table or database do not exist")
    return InvalidObjectException(
        f"Unable to add partitions because database or table {given.plain(database)}.{table} does not exist"
    )


def _elsewhere(places: Sequence[str], base: str | None) -> list[str]:
    """Those of some places that don't lie below a table's."""
    return [place for place in places if place and (base is None or not place.startswith(f"{base}/"))]


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
    """The table is the one that the call names; Hive wants the one that a partition names to be a table, no more.

    Raises MetaException where it names none, or none that is there.
    """
    if database is None or table is None:
        raise MetaException("The database and table name must be set in the partition.")
    target = given.table_name(database, table, row.name.catalog)
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


def _flag(old: PartitionRow, before: Partition, new: Partition, now: commit_flag.Now) -> Flag:
    """The flag of a partition that is replaced; the new one's parameters get what belongs to it."""
    assert new.parameters is not None
    return commit_flag.of_altered(Flag(old.ready, old.commit_time), before.parameters or {}, new.parameters, now)


def _change(tx: Transaction, found: Sequence[PartitionRow], rows: Sequence[NewPartition]) -> None:
    """Replaces what is kept of partitions: of most only the body, which takes less of the database."""
    bodies, others = [], []
    for old, new in zip(found, rows, strict=True):
        if new == old.with_body(new.body):
            bodies.append((old.id, new.body))
        else:
            others.append((old.id, new))
    if bodies:
        partitions.put_bodies(tx, bodies)
    partitions.change_many(tx, others)

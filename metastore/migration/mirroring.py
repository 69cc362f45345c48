"""Makes objects here what they are at the other metastore, whatever has happened to them there.

Nothing depends on what was done before: the object is read again, and what isn't there any more is dropped here,
without its data. So the same may be done twice, and after a kill it is done again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import (
    Database,
    DropConstraintRequest,
    DropPartitionsRequest,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    NoSuchObjectException,
    PrivilegeBag,
    RequestPartsSpec,
    SQLAllTableConstraints,
    Table,
)
from lake.protocol.lake import ImportDifference, ImportRequest
from lake.protocol.struct import ExceptionStruct
from metastore.migration import canonical
from metastore.migration.changes import Changes, TableChange, names_of
from metastore.migration.importing import (
    Importer,
    Tasks,
    batches,
    is_transactional,
    partition_name,
    unbringable,
    write_ids_differ,
)
from metastore.migration.mapping import Renaming, Selection
from metastore.migration.objects import DEFAULT_CATALOG, DatabaseKey, Remark, TableKey, TableParts, catalog_key
from metastore.migration.progress import Progress
from metastore.migration.source import Source, error_text
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import EXTRA, Affected, constraint_form, constraint_name, grant_name

_SHOWN = 20  # names, in a line


class Mirror(Importer):
    """Brings single objects, and removes others.

    `brought`: databases and catalogs that came from there. `mirrored`: databases that had nothing here before. What
    isn't there any more of databases in both is dropped here, too, where a comparison finds it. Those that are dropped
    are taken out of both. `keeps`: tables and functions aren't dropped.
    """

    def __init__(
        self,
        source: Source,
        target: ThriftSource,
        *,
        renaming: Renaming,
        progress: Progress,
        threads: int,
        mirrored: set[DatabaseKey],
        brought: set[DatabaseKey],
        others: Callable[[], Mapping[DatabaseKey, str]],
        keeps: bool = False,
    ) -> None:
        super().__init__(
            source,
            target,
            selection=Selection(),
            renaming=renaming,
            progress=progress,
            threads=threads,
            replace=True,
            brought=brought,
            others=others,
        )
        self._mirrored = mirrored
        self._keeps = keeps
        self.dropped: list[str] = []
        """Objects and grants that were here alone, without a log that says that they were dropped."""
        self.ungranted: set[TableKey] = set()
        """Tables with grants that couldn't be brought; with an empty name databases."""
        self._new: set[TableKey] = set()

    @property
    def problems(self) -> list[Remark]:
        """What couldn't be brought, or dropped."""
        kept = [each for each in self.report.differences if not each.replaced]
        differing = (Remark(each.kind or "", each.name or "", _kept_text(each), serious=True) for each in kept)
        return list(dict.fromkeys([*self.report.problems, *differing]))

    @property
    def counts(self) -> dict[str, int]:
        """What was brought or dropped, by kind."""
        return self._progress.counts

    def unfinished(self, changes: Changes) -> set[TableKey]:
        """What of these changes has problems; with an empty name of a table for what isn't a table's."""
        named = [(each.kind, each.name) for each in self.problems]
        names = [(kind, f"{name} ") for kind, name in named]

        def has(*begins: str) -> bool:
            return any(name.startswith(begins) for _, name in names)

        renaming = self._renaming
        tables = {key for key in changes.tables if has(*_beginnings((key, renaming.table_key(key)), " "))}
        others = [
            name for kind, name in names if kind in ("catalogs", "databases", "functions", "database", "function")
        ]
        for home in changes.databases | changes.functions:
            begins = _beginnings((home, renaming.database_key(home)), " ", ".")
            if any(name.startswith(begins) for name in others):
                tables.add(TableKey(*home, ""))
        return tables | {TableKey(*catalog_key(name), "") for kind, name in named if kind in ("catalogs", "catalog")}

    def _replaces(self, key: DatabaseKey) -> bool:
        return key in self._brought

    def _is_theirs(self, home: DatabaseKey) -> bool:
        """Whether a database here came from there with all that is in it. One that was empty here may be of others."""
        return home in self._mirrored and home in self._brought

    # --- what a log says --------------------------------------------------------------------------------------

    def apply(self, changes: Changes, *, compared: bool = False) -> None:
        """`compared`: a comparison has found them, not the log. Raises SourceFailed, TakenOver."""
        if any(each.itself or each.everything for each in changes.tables.values()):  # it may be new here
            self.report.positions = self._source.positions()
        if changes.catalogs:
            self._catalog(self._source.catalogs())
        gone = self._databases(changes.databases)
        gone_keys = set(gone)
        with ThreadPoolExecutor(self._threads) as threads:
            tasks = Tasks(threads)
            for key, change in changes.tables.items():
                if key.of_database not in gone_keys:
                    tasks.submit(self.table, key, change, compared)
            tasks.wait()
        for home in changes.functions - gone_keys:
            self.functions(home)
        self._settle_new()
        for home in gone:
            self.drop_database(home)

    def _databases(self, wanted: Iterable[DatabaseKey]) -> list[DatabaseKey]:
        """Brings databases; those that aren't there any more are returned."""
        gone = []
        for key in sorted(wanted):
            found = self._source.database(key)
            if found is None:
                gone.append(key)
            else:
                self._bring_database(key, found)
        return gone

    def _bring_database(self, key: DatabaseKey, found: Database) -> None:
        if key.catalog != DEFAULT_CATALOG:
            self._catalog([each for each in self._source.catalogs() if each.name == key.catalog])
        self._database(found)

    def _settle_new(self) -> None:
        """What tables that are new here need once all are here: foreign keys, and grants."""
        for table, keys in self._foreign_keys:
            self._bring("constraints", str(table), ImportRequest(constraints=SQLAllTableConstraints(foreignKeys=keys)))
        self._foreign_keys.clear()
        by_home: dict[DatabaseKey, list[str]] = {}
        for key in sorted(self._new):
            by_home.setdefault(key.of_database, []).append(key.table)
        for home, tables in by_home.items():
            self._grants(self._source.grants(home, tables))
        self._new.clear()

    # --- what a comparison finds ------------------------------------------------------------------------------

    def mend(self, affected: Affected) -> None:
        """Makes what differs the same. Raises SourceFailed, TakenOver.

        Of what all databases share nothing is taken away: roles, members and grants that are here alone may be of
        others, such as the administrators of this metastore.
        """
        self.report.positions = self._source.positions()
        if affected.shared:
            self._catalog(self._source.catalogs())
            self._roles()
        gone = self._databases(affected.databases)
        with ThreadPoolExecutor(self._threads) as threads:
            tasks = Tasks(threads)
            for key in affected.tables:
                tasks.submit(self.table, key, TableChange.whole(), True)
            for key, names in affected.partitions.items():
                if key not in affected.tables:
                    tasks.submit(self._named_partitions, key, sorted(names))
            tasks.wait()
        for home in sorted(affected.databases - set(gone)):
            self.functions(home)
            self._new = {each for each in self._new if each.of_database != home}
            self._mend_grants(home)
        self._settle_new()
        for home in gone:
            self.drop_database(home)
        self._seed_transactions()

    def _named_partitions(self, key: TableKey, names: Sequence[str]) -> None:
        change = TableChange(partitions=set())
        self._guarded(key, lambda: self._partitions_of(key, change, names, compared=True))

    def _mend_grants(self, home: DatabaseKey) -> None:
        here = self._renaming.database_key(home)
        found = self._source.grants(home, self._granted_tables(home))
        if self._is_theirs(home):
            there = map(self._renaming.grant, found)
            self._revoke(there, self._target.grants(here, self._target.tables(here)))
        self._grants(found)

    def _grants(self, grants: Iterable[HiveObjectPrivilege]) -> list[HiveObjectPrivilege]:
        left = super()._grants(grants)
        self.ungranted |= {_granted(each) for each in left}
        return left

    def grants(self, tables: Iterable[TableKey]) -> None:
        """Brings grants on tables; with an empty name, on databases, and without a database, on everything."""
        by_home: dict[DatabaseKey, list[str]] = {}
        for key in sorted(tables):
            by_home.setdefault(key.of_database, []).append(key.table)
        for home, names in by_home.items():
            if not home.database:
                self._grants(self._source.global_grants())
            elif self._source.database(home) is not None:
                there = [name for name in names if name and self._source.bare_table(TableKey(*home, name)) is not None]
                self._grants(self._source.grants(home, there))

    def _revoke(self, there: Iterable[HiveObjectPrivilege], here: Iterable[HiveObjectPrivilege]) -> None:
        kept = {grant_name(each): canonical.of_grant(each) for each in there}
        for each in here:
            name = grant_name(each)
            # One of the role admin on everything is made by each metastore.
            if kept.get(name) == canonical.of_grant(each) or each.principalName == "admin":
                continue
            if self._call("grants", name, "revoke_privileges", PrivilegeBag([each])) and name not in kept:
                self.dropped.append(f"grant {name}")

    # --- tables -----------------------------------------------------------------------------------------------

    def table(self, key: TableKey, change: TableChange, compared: bool = False) -> None:
        """`compared`: a comparison has found it, not the log."""
        self._guarded(key, lambda: self._change_table(key, change, compared))

    def _guarded(self, key: TableKey, action: Any) -> None:
        """What can't be done with a table is noted, and it is tried again later."""
        try:
            action()
        except (ExceptionStruct, TApplicationException) as error:
            self._problem("tables", str(key), error_text(error))

    def _change_table(self, key: TableKey, change: TableChange, compared: bool) -> None:
        if not change.itself and not change.everything:
            self._partitions_of(key, change, None, compared=compared)
            return
        here_key = self._renaming.table_key(key)
        there, here = self._source.table(key), self._target.table(here_key)
        if there is None:
            if here is not None:
                self._drop_gone(key, here, change, compared)
            return
        if (why := unbringable(self._source, there)) is not None:
            self._problem("tables", str(key), why)
            return
        if here is not None and (change.remade or self._is_another(there, here, compared)):
            if _is_other(there.table, here.table) and not self._has_gone(key, here, change):
                self._leave(key, _OTHER)
                return
            if not self._drop_table(here_key, here):
                return
            here = None
        wanted = self._renaming.parts(there)
        if here is not None:
            self._drop_belongings(wanted, here, compared)
        everything = change.everything or here is None
        names = self._source.partition_names(there) if everything else names_of(_keys(there.table), change.partitions)
        if names is None:
            names, everything = self._source.partition_names(there), True
        if here is not None:
            gone = set(self._remade(there, change))
            told = gone | set(names_of(_keys(there.table), change.partitions) or ())
            if everything:
                gone |= set(self._target.partition_names(here)) - set(names)
            self._drop_partitions(here_key, sorted(gone), compared, key.of_database, told)
            for some in batches(names):
                if not everything:
                    self._drop_unread(there, here, some, compared)
                self._clear_partitions(there, here, some)
        first, *others = list(batches(names)) or [[]]
        if not self._first_part(there, first):
            return
        for some in others:
            self._partitions(there, some)
        if here is None or compared:  # it may have been written for the first time since it was brought
            self._write_ids(there)
        if here is None:
            with self._lock:
                self._new.add(key)

    def _is_another(self, there: TableParts, here: TableParts, compared: bool) -> bool:
        """Whether the table here can't become the one there: it is an earlier one of this name.

        Write ids are looked at when tables are compared: while a table is written they change all the time.
        """
        if _is_other(there.table, here.table):
            return True
        if not compared or not is_transactional(there.table) or not self.report.positions.transaction:
            return False
        # Write ids can't be moved on.
        ids = self._source.write_ids(there.key, self.report.positions)
        own = self._target.write_ids(here.key, self._target.positions())
        return own is not None and bool(own.highest) and write_ids_differ(own, ids) is not None

    def _drop_belongings(self, there: TableParts, here: TableParts, compared: bool) -> None:
        """Drops constraints that aren't there, or are others, and statistics that aren't there."""
        for kind in here.constraints.field_names():
            one, other = (_by_name(getattr(each.constraints, kind)) for each in (there, here))
            for name in sorted(name for name, forms in other.items() if one.get(name) != forms):
                request = DropConstraintRequest(here.key.database, here.key.table, name, here.key.catalog)
                if self._call("constraints", f"{here.key} {name}", "drop_constraint", request):
                    self.dropped += [f"constraint {here.key} {name}"] if compared and name not in one else []
        kept = {(each.engine or "hive", own.colName) for each in there.statistics for own in each.statsObj or ()}
        for each in here.statistics:
            for own in each.statsObj or ():
                if (each.engine or "hive", own.colName) not in kept:
                    self._delete_statistics(here.key, None, own.colName, each.engine)

    def _has_gone(self, key: TableKey, here: TableParts, change: TableChange) -> bool:
        """Whether a table here is one that isn't there any more. In a database that was here before another one may
        have its name, so the log has to say when the one was made that has gone."""
        return self._is_theirs(key.of_database) or (here.table.createTime or 0) in change.gone

    def _drop_gone(self, key: TableKey, here: TableParts, change: TableChange, compared: bool) -> None:
        """Drops what isn't there any more."""
        if self._keeps or not self._has_gone(key, here, change):
            self._problem("tables", str(here.key), EXTRA if self._keeps else _EXTRA)
        elif self._drop_table(here.key, here) and compared:
            self.dropped.append(f"table {here.key}")

    def _drop_table(self, key: TableKey, here: TableParts) -> bool:
        """Drops a table here without its data. Returns whether it is gone."""
        if self._target.timeline_position(here) or (here.table.parameters or {}).get(PRIMARY_KEY, "").strip():
            self._problem("tables", str(key), "it has a timeline here, so it isn't dropped: see what it is")
            return False
        return self._call("tables", str(key), "drop_table", key.of_database.on_the_wire, key.table, False)

    # --- partitions -------------------------------------------------------------------------------------------

    def _partitions_of(
        self, key: TableKey, change: TableChange, names: Sequence[str] | None, *, compared: bool
    ) -> None:
        """Some partitions of a table which itself has stayed. `names`: these; None: those of the change."""
        there, here = self._source.bare_table(key), self._target.bare_table(self._renaming.table_key(key))
        if names is None and there is not None:
            names = names_of(_keys(there.table), change.partitions)
        if there is None or here is None or names is None or self._is_another(there, here, compared):
            self._change_table(key, replace(change, itself=True, everything=True), compared)
            return
        if (why := unbringable(self._source, there)) is not None:
            self._problem("tables", str(key), why)
            return
        remade = self._remade(there, change)
        self._drop_partitions(here.key, remade, False, key.of_database, remade)
        for some in batches(names):
            self._drop_unread(there, here, some, compared)
            self._clear_partitions(there, here, some)
            self._partitions(there, some)

    def _remade(self, there: TableParts, change: TableChange) -> list[str]:
        return names_of(_keys(there.table), change.remade_partitions) or []

    def _drop_unread(self, there: TableParts, here: TableParts, names: Sequence[str], compared: bool) -> None:
        """Drops those of some partitions that aren't there any more."""
        found = {partition_name(there, each) for each in self._source.partitions(there, names)}
        own = {partition_name(here, each) for each in self._target.partitions(here, sorted(set(names) - found))}
        self._drop_partitions(here.key, sorted(own), compared, there.key.of_database, () if compared else own)

    def _clear_partitions(self, there: TableParts, here: TableParts, names: Sequence[str]) -> None:
        """Drops statistics of some partitions that aren't there any more."""
        statistics = self._target.partition_statistics(here, names)
        if not statistics:
            return
        kept = {
            (each.statsDesc and each.statsDesc.partName, own.colName, each.engine or "hive")
            for each in self._source.partition_statistics(there, names)
            for own in each.statsObj or ()
        }
        for each in statistics:
            partition = each.statsDesc.partName if each.statsDesc is not None else None
            for own_column in each.statsObj or ():
                if (partition, own_column.colName, each.engine or "hive") not in kept:
                    self._delete_statistics(here.key, partition, own_column.colName, each.engine)

    def _unread(self, key: TableKey, names: Sequence[str]) -> None:
        """They were dropped meanwhile: the log says so, too."""

    def _drop_partitions(
        self, key: TableKey, names: Sequence[str], compared: bool, home: DatabaseKey, told: Collection[str]
    ) -> None:
        """`told`: those that a log names."""
        if names and compared and not self._is_theirs(home):
            self._problem("partitions", f"{key} {names[0]}", _EXTRA)
            return
        for some in batches(names):
            request = DropPartitionsRequest(
                key.database,
                key.table,
                RequestPartsSpec(names=some),
                deleteData=False,
                ifExists=True,
                needResult=False,
                catName=key.catalog,
            )
            dropped = self._call("partitions", f"{key} {some[0]}", "drop_partitions_req", request, count=len(some))
            if dropped:
                self.dropped += [f"partition {key} {name}" for name in some if name not in told]

    def _delete_statistics(self, key: TableKey, partition: str | None, column: str | None, engine: str | None) -> None:
        home, name = key.of_database.on_the_wire, " ".join(filter(None, (str(key), partition, column)))
        which = "delete_table_column_statistics" if partition is None else "delete_partition_column_statistics"
        arguments = (home, key.table, *(() if partition is None else (partition,)), column, engine)
        self._call("statistics", name, which, *arguments)

    # --- others -----------------------------------------------------------------------------------------------

    def functions(self, home: DatabaseKey) -> None:
        """Makes the functions of a database what they are there."""
        here = self._renaming.database_key(home)
        there = {(each.functionName or "").lower(): each for each in self._source.functions(home)}
        own = {(each.functionName or "").lower(): each for each in self._target.functions(here)}
        for name, each in there.items():
            if self._is_theirs(home) or name not in own or self._is_same_function(each, own[name]):
                self._bring_functions(home, [each])
            else:
                self._problem("functions", f"{here}.{name}", _OTHER_FUNCTION)
        for name in sorted(own.keys() - there.keys()):
            if self._keeps or not self._is_theirs(home):
                self._problem("functions", f"{here}.{name}", EXTRA if self._keeps else _EXTRA)
            elif self._call("functions", f"{here}.{name}", "drop_function", here.on_the_wire, name):
                self.dropped.append(f"function {here}.{name}")

    def _is_same_function(self, there: Function, here: Function) -> bool:
        """Whether a function here came from there: by its time of creation, or it is the same."""
        if here.createTime and here.createTime == there.createTime:
            return True
        return canonical.of_struct(self._renaming.function(there)) == canonical.of_struct(here)

    def drop_database(self, home: DatabaseKey, compared: bool = False) -> None:
        """Of a database that isn't there any more. One that was here before may be of others, or have tables of others.

        `compared`: a comparison has found it, not the log.
        """
        here = self._renaming.database_key(home)
        if self._target.database(here) is not None:
            if self._keeps or not self._is_theirs(home):
                self._problem("databases", str(home), EXTRA if self._keeps else _EXTRA)
                return
            if not self._drop_database(here):
                return
            if compared:
                self.dropped.append(f"database {here}")
        # One that gets this name later is another one.
        self._mirrored.discard(home)
        self._brought.discard(home)

    def _drop_database(self, here: DatabaseKey) -> bool:
        """Drops a database here without its data. Returns whether it is gone."""
        for table in self._target.tables(here):
            parts = self._target.bare_table(TableKey(*here, table))
            if parts is not None and not self._drop_table(parts.key, parts):
                return False
        return self._call("databases", str(here), "drop_database", here.on_the_wire, False, True)

    def _call(self, kind: str, name: str, method: str, *arguments: Any, count: int = 1) -> bool:
        """A call here that removes something. What has gone already is fine."""
        try:
            self._target.call(method, *arguments)
        except NoSuchObjectException:
            return True
        except (ExceptionStruct, TApplicationException) as error:
            self._problem(kind, name, error_text(error))
            return False
        self._progress.add(f"{kind} dropped", count)
        return True


_EXTRA = (
    "it isn't there, and its database was here before the import, so it may be of others: drop it here without its data"
)


_OTHER = (
    "another table has this name here, and its database was here before the import, so it may be of others: drop it"
    " here without its data"
)


_OTHER_FUNCTION = (
    "another function has this name here, and its database was here before the import, so it may be of others: drop it"
    " here"
)


_OTHER_PROPERTIES = (
    "it was here before the import, so it may be of others, and stays: make it the same, or `import --replace` ({})"
)


def _kept_text(difference: ImportDifference) -> str:
    """What is to be done about something that differs and stays."""
    text = difference.difference or ""
    return _OTHER_PROPERTIES.format(text) if difference.kind in ("catalog", "database") else text


def _beginnings(keys: Iterable[DatabaseKey | TableKey], *ends: str) -> tuple[str, ...]:
    """How names of objects begin. Our server names the catalog, too."""
    return tuple(f"{name}{end}" for key in keys for name in (str(key), ".".join(key)) for end in ends)


def _granted(grant: HiveObjectPrivilege) -> TableKey:
    """The table that a grant is on; with an empty name a database, without one everything."""
    of = grant.hiveObject or HiveObjectRef()
    return TableKey((of.catName or DEFAULT_CATALOG).lower(), (of.dbName or "").lower(), (of.objectName or "").lower())


def _is_other(there: Table, here: Table) -> bool:
    """Whether two tables of one name can't be the same one."""
    return (there.createTime or 0) != (here.createTime or 0) or _keys(there) != _keys(here)


def _by_name(constraints: Iterable[Any] | None) -> dict[str, list[tuple[str, Any]]]:
    """The columns of constraints, by the constraint's name."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for each in sorted(constraints or (), key=constraint_name):
        name = constraint_name(each)
        found.setdefault(name.rpartition(" ")[0], []).append((name, constraint_form(each)))
    return found


def _keys(table: Table) -> list[str]:
    return [each.name or "" for each in table.partitionKeys or ()]


def problems_text(problems: Sequence[Remark]) -> str:
    """Some problems in a line."""
    shown = "; ".join(f"{each.kind} {each.name}: {each.text}" for each in problems[:3])
    return shown + (f"; and {len(problems) - 3:,} more" if len(problems) > 3 else "")


def some_of(names: Sequence[str]) -> str:
    """Some names in a line."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")

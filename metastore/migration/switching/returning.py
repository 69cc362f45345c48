"""Makes objects of a Hive metastore what they are here, by Hive's own calls, so that a database can live there again.

Files are neither made nor moved nor deleted by it, as far as Hive lets it: it makes the directories of new tables and
partitions that aren't there. Times of creation are Hive's own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import (
    Database,
    DropPartitionsRequest,
    EnvironmentContext,
    Function,
    HiveObjectPrivilege,
    InvalidOperationException,
    NoSuchObjectException,
    Partition,
    PrivilegeBag,
    RequestPartsSpec,
    SQLAllTableConstraints,
    Table,
)
from lake.protocol.struct import ExceptionStruct
from metastore.migration import canonical
from metastore.migration.importing import batches, is_transactional, partition_name, write_ids_differ
from metastore.migration.mapping import Renaming
from metastore.migration.objects import DatabaseKey, Remark, TableKey, TableParts
from metastore.migration.source import error_text
from metastore.migration.switching.constraints import Constraints
from metastore.migration.switching.pointers import is_moved, with_pointer_of
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import Affected, grant_name

AS_GIVEN = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
"""Hive keeps the parameters as they are, and counts no files."""


class Returner:
    """`forward`: from names and places there to those here, and `back` the other way. `closed`: Iceberg's tables that
    take no commits there stay so."""

    def __init__(
        self, here: ThriftSource, old: ThriftSource, forward: Renaming, back: Renaming, *, closed: bool = False
    ) -> None:
        self._closed = closed
        self._here = here
        self._old = old
        self._forward, self._back = forward, back
        self.problems: list[Remark] = []
        self.dropped: list[str] = []
        """Tables, partitions, functions and grants that aren't here."""
        self._keys = Constraints(old, lambda name, text: self._problem("constraints", name, text))

    def mend(self, key: DatabaseKey, here: DatabaseKey, affected: Affected) -> None:
        """Makes what differs in a database there what it is here. Raises SourceFailed."""
        if key in affected.databases:
            self._database(key, here)
            self._functions(key, here)
        for table in sorted(affected.tables):
            self._keys.bereft.discard(table)
            self._guarded(table, None)
        for table, names in sorted(affected.partitions.items()):
            if table not in affected.tables:
                self._guarded(table, sorted(names))
        for table in sorted(self._keys.bereft):
            self._guarded(table, ())
        self._keys.bereft.clear()
        self._keys.make_foreign_keys()
        if key in affected.databases:
            self._grants(key, here)

    def _guarded(self, key: TableKey, names: Sequence[str] | None) -> None:
        try:
            self._table(key, names)
        except (ExceptionStruct, TApplicationException) as error:
            self._problem("tables", str(key), error_text(error))

    def _back_of(self, *there: Database | Function | Table | Partition | None) -> Renaming:
        """`back` for objects there, and what lies below them."""
        return self._back.keeping(self._forward, *there)

    # --- databases --------------------------------------------------------------------------------------------

    def create(self, key: DatabaseKey, here: Database) -> bool:
        """Makes a database there, if there is none. Returns whether there is one. Raises SourceFailed."""
        if self._old.database(key) is not None:
            return True
        return self._call("databases", str(key), "create_database", self._back.database(here))

    def _database(self, key: DatabaseKey, here: DatabaseKey) -> None:
        wanted, there = self._here.database(here), self._old.database(key)
        if wanted is None or there is None:
            return
        value: Database = (
            self._back_of(there).database(wanted).replace(createTime=there.createTime, catalogName=there.catalogName)
        )
        if canonical.of_struct(value) != canonical.of_struct(there):
            self._call("databases", str(key), "alter_database", key.on_the_wire, value)

    def _functions(self, key: DatabaseKey, here: DatabaseKey) -> None:
        there = {each.functionName or "": each for each in self._old.functions(key)}
        wanted = {
            name: self._back_of(there.get(name)).function(each)
            for name, each in ((each.functionName or "", each) for each in self._here.functions(here))
        }
        for name in sorted(there):
            if name not in wanted or canonical.of_struct(wanted[name]) != canonical.of_struct(there[name]):
                if self._call("functions", f"{key}.{name}", "drop_function", key.on_the_wire, name):
                    self.dropped += [] if name in wanted else [f"function {key}.{name}"]
                del there[name]
        for name in sorted(wanted.keys() - there.keys()):
            self._call("functions", f"{key}.{name}", "create_function", wanted[name])

    def _grants(self, key: DatabaseKey, here: DatabaseKey) -> None:
        wanted = {
            grant_name(each): each for each in map(self._back.grant, self._here.grants(here, self._here.tables(here)))
        }
        there = {grant_name(each): each for each in self._old.grants(key, self._old.tables(key))}
        # One that may be passed on by now, or no more, has to be given anew.
        kept = {name for name in wanted if name in there and _passed_on(wanted[name]) == _passed_on(there[name])}
        for name in sorted(there.keys() - kept):
            if self._call("grants", name, "revoke_privileges", PrivilegeBag([there[name]])) and name not in wanted:
                self.dropped.append(f"grant {name}")
        for name in sorted(wanted.keys() - kept):
            self._call("grants", name, "grant_privileges", PrivilegeBag([wanted[name]]))

    # --- tables -----------------------------------------------------------------------------------------------

    def _table(self, key: TableKey, names: Sequence[str] | None) -> None:
        """`names`: only these partitions."""
        inverse = self._here_key(key)
        here, there = self._here.table(inverse), self._old.table(key)
        if here is None:
            if there is not None and self._call(
                "tables", str(key), "drop_table", key.of_database.on_the_wire, key.table, False
            ):
                self.dropped.append(f"table {key}")
            return
        if self._here.timeline_position(here) or (here.table.parameters or {}).get(PRIMARY_KEY, "").strip():
            self._problem("tables", str(key), "it is a lake table here, which no other metastore can keep")
            return
        back = self._back_of(None if there is None else there.table, self._old.database(key.of_database))
        wanted = back.parts(here)
        if is_transactional(wanted.table):
            own = self._here.write_ids(inverse, self._here.positions())
            other = self._old.write_ids(key, self._old.positions())
            if there is None or write_ids_differ(own, other) is not None:
                self._problem(
                    "tables", str(key), "it was written by transactions here, whose write ids can't be taken back"
                )
                return
        if there is None or _keys(there.table) != _keys(wanted.table):
            there, names = self._remade(wanted, there), None
            if there is None:
                return
        if _columns(there.table) != _columns(wanted.table):
            if not self._keys.let_go(there):
                return
            there = replace(there, constraints=SQLAllTableConstraints())
        if not self._alter(key, wanted.table, there.table):
            there, names = self._remade(wanted, there), None
            if there is None:
                return
        self._keys.make(there, wanted.constraints)
        self._statistics(key, wanted.statistics, there.statistics)
        if wanted.table.partitionKeys:
            self._partitions(key, here, there, names)

    def _here_key(self, key: TableKey) -> TableKey:
        home = next((new for new, old in self._back.databases.items() if old == key.database), key.database)
        return key._replace(database=home)

    def _remade(self, wanted: TableParts, there: TableParts | None) -> TableParts | None:
        """A table that is made there, in the place of another one; None if it can't be."""
        home, name = wanted.key.of_database.on_the_wire, str(wanted.key)
        if there is not None:
            if not self._keys.let_go(there):
                return None
            if not self._call("tables", name, "drop_table", home, wanted.key.table, False):
                return None
        return self._old.table(wanted.key) if self._call("tables", name, "create_table", wanted.table) else None

    def _alter(self, key: TableKey, wanted: Table, there: Table) -> bool:
        """False: it has to be made anew, since Hive lets no column get another type like this."""
        value = wanted.replace(createTime=there.createTime)
        if self._closed and is_moved(there):
            value = with_pointer_of(value, there)
        if canonical.of_struct(value) == canonical.of_struct(there):
            return True
        value = value.replace(catName=there.catName, id=there.id)
        home, method = key.of_database.on_the_wire, "alter_table_with_environment_context"
        try:
            self._old.call(method, home, key.table, value, AS_GIVEN)
        except (ExceptionStruct, TApplicationException) as error:
            if isinstance(error, InvalidOperationException) and _can_be_remade(there, value):
                return False
            self._problem("tables", str(key), f"{method}: {error_text(error)}")
        return True

    def _statistics(
        self, key: TableKey, wanted: Iterable[Any], there: Iterable[Any], partition: str | None = None
    ) -> None:
        home = key.of_database.on_the_wire
        columns = {own.colName for each in wanted for own in each.statsObj or ()}
        for each in there:
            for own in each.statsObj or ():
                if own.colName not in columns:
                    if partition is None:
                        arguments: tuple[Any, ...] = (home, key.table, own.colName, each.engine)
                        method = "delete_table_column_statistics"
                    else:
                        arguments = (home, key.table, partition, own.colName, each.engine)
                        method = "delete_partition_column_statistics"
                    self._call("statistics", f"{key} {partition or ''}", method, *arguments)
        kept = {
            own.colName: canonical.of_statistics(own, sketches=False) for each in there for own in each.statsObj or ()
        }
        for each in wanted:
            new = [
                own
                for own in each.statsObj or ()
                if kept.get(own.colName) != canonical.of_statistics(own, sketches=False)
            ]
            if new:
                method = "update_table_column_statistics" if partition is None else "update_partition_column_statistics"
                self._call("statistics", f"{key} {partition or ''}", method, each.replace(statsObj=new))

    # --- partitions -------------------------------------------------------------------------------------------

    def _partitions(self, key: TableKey, here: TableParts, there: TableParts, names: Sequence[str] | None) -> None:
        if names is None:
            names = sorted({*self._here.partition_names(here), *self._old.partition_names(there)})
        for some in batches(names, 200):
            found = {partition_name(there, each): each for each in self._old.partitions(there, some)}
            wanted = {
                name: self._named(key, each, self._back_of(found.get(name), there.table))
                for name, each in ((partition_name(here, each), each) for each in self._here.partitions(here, some))
            }
            self._drop_partitions(key, sorted(found.keys() - wanted.keys()))
            new = [wanted[name] for name in sorted(wanted.keys() - found.keys())]
            if new and not self._call("partitions", f"{key} {some[0]}", "add_partitions", new):
                continue
            if new:
                found |= {partition_name(there, each): each for each in self._old.partitions(there, some)}
            changed = [
                value
                for name, value in sorted(wanted.items())
                if name in found and canonical.of_struct(value) != canonical.of_struct(found[name])
            ]
            if changed:
                home, method = key.of_database.on_the_wire, "alter_partitions_with_environment_context"
                self._call("partitions", f"{key} {some[0]}", method, home, key.table, changed, AS_GIVEN)
            self._statistics_of(key, here, there, sorted(wanted))

    def _statistics_of(self, key: TableKey, here: TableParts, there: TableParts, names: Sequence[str]) -> None:
        wanted = _by_partition(map(self._back.statistics, self._here.partition_statistics(here, names)))
        found = _by_partition(self._old.partition_statistics(there, names))
        for name in sorted({*wanted, *found}):
            self._statistics(key, wanted.get(name, []), found.get(name, []), name)

    def _named(self, key: TableKey, value: Partition, back: Renaming) -> Partition:
        return back.partition(value).replace(dbName=key.database, tableName=key.table, catName=key.catalog)

    def _drop_partitions(self, key: TableKey, names: Sequence[str]) -> None:
        if names:
            request = DropPartitionsRequest(
                key.database,
                key.table,
                RequestPartsSpec(names=list(names)),
                deleteData=False,
                ifExists=True,
                needResult=False,
                catName=key.catalog,
            )
            if self._call("partitions", f"{key} {names[0]}", "drop_partitions_req", request):
                self.dropped += [f"partition {key} {name}" for name in names]

    # --- calls ------------------------------------------------------------------------------------------------

    def _problem(self, kind: str, name: str, text: str) -> None:
        self.problems.append(Remark(kind, name, text, serious=True))

    def _call(self, kind: str, name: str, method: str, *arguments: Any) -> bool:
        try:
            self._old.call(method, *arguments)
        except NoSuchObjectException:
            return method.startswith("drop")
        except (ExceptionStruct, TApplicationException) as error:
            self._problem(kind, name, f"{method}: {error_text(error)}")
            return False
        return True


def _passed_on(grant: HiveObjectPrivilege) -> bool:
    return bool(grant.grantInfo is not None and grant.grantInfo.grantOption)


def _keys(table: Table) -> list[tuple[str | None, str | None]]:
    return [(each.name, each.type) for each in table.partitionKeys or ()]


def _columns(table: Table) -> list[tuple[str | None, str | None, str | None]]:
    return [(each.name, each.type, each.comment) for each in (table.sd and table.sd.cols) or ()]


def _can_be_remade(there: Table, wanted: Table) -> bool:
    """Whether another table in its place loses nothing: no write ids, and no pointer to Iceberg's metadata."""
    one, other = ([kind for _, kind, _ in _columns(each)] for each in (there, wanted))
    return one != other and not is_transactional(wanted) and not is_moved(there)


def _by_partition(some: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in some:
        found.setdefault(each.statsDesc.partName or "", []).append(each)
    return found

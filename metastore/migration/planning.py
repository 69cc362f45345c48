"""What a metastore has, what of it can't be kept, and how long it takes to bring it."""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.hive import Function, Partition, StorageDescriptor, Table
from lake.protocol.struct import ExceptionStruct
from metastore.migration.importing import TEXT_STAYS, VIEWS, Tasks, batches, gone_to, unbringable
from metastore.migration.mapping import Renaming, Selection, database_key
from metastore.migration.objects import Counts, DatabaseKey, Positions, Remark, TableKey, TableParts
from metastore.migration.progress import Progress
from metastore.migration.source import Source
from metastore.warehouse import WarehouseError
from metastore.warehouse.locations import Location
from metastore.warehouse.schemes import SCHEMES

OBJECTS_A_SECOND = {"partitions": 3_000, "tables": 100}
"""What an import brings by Thrift with four threads, about; of other kinds there are few."""

MAX_NAMED = 1_000
"""Remarks that are named one by one, for each text."""

_FLAG = "commit"


@dataclass
class Plan:
    """`bytes`: what the tables and partitions say that their files have, together."""

    counts: Counts = field(default_factory=Counts)
    bytes: int = 0
    remarks: list[Remark] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    positions: Positions = field(default_factory=Positions)
    seconds: float = 0.0

    @property
    def estimate(self) -> float:
        """Seconds that an import takes, about."""
        of = self.counts.by_kind
        return self.seconds + sum(of.get(kind, 0) / rate for kind, rate in OBJECTS_A_SECOND.items())

    def plain(self) -> dict[str, Any]:
        return {
            "objects": self.counts.by_kind,
            "bytes": self.bytes,
            "estimated_seconds": round(self.estimate, 1),
            "remarks": [each.plain() for each in self.remarks],
            "more": dict(self.more),
            "notification": self.positions.notification,
            "transaction": self.positions.transaction,
        }


class Planner:
    """Reads everything once, and changes nothing."""

    def __init__(
        self, source: Source, *, selection: Selection, renaming: Renaming, progress: Progress, threads: int
    ) -> None:
        self._source = source
        self._selection = selection
        self._renaming = renaming
        self._progress = progress
        self._threads = threads
        self._lock = Lock()
        self._told: Counter[str] = Counter()
        self._unmet = {old for old, _ in renaming.locations}
        self.plan = Plan()

    def run(self) -> Plan:
        """Raises SourceFailed if the metastore can't be reached any more."""
        plan = self.plan
        plan.positions = self._source.positions()
        plan.remarks += self._source.remarks()
        self._positions()
        catalogs = self._source.catalogs()
        plan.counts.add("catalogs", len(catalogs))
        names = [each.name or "" for each in catalogs] or ["hive"]
        keys = [database_key(each) for name in names for each in self._source.databases(name)]
        self._renaming.check_apart(key for key in keys if self._selection.includes(key))
        for each in (*self._selection.unmet(keys), *self._renaming.unmet(keys)):
            self._remark("databases", each, "no database there is called that", serious=True)
        with ThreadPoolExecutor(self._threads) as threads:
            tasks = Tasks(threads)
            for catalog in names:
                for database in self._source.databases(catalog):
                    key = database_key(database)
                    if self._selection.includes(key):
                        self._count("databases")
                        self._place("databases", str(key), database.locationUri)
                        if (why := gone_to(database)) is not None:
                            self._remark("databases", str(key), why, serious=True)
                        if database.connector_name:
                            self._remark("databases", str(key), "its data connector isn't brought", serious=True)
                        tasks.submit(self._functions, key)
                        names = self._source.tables(key)
                        tasks.submit(self._grants, key, names)
                        for name in names:
                            tasks.submit(self._table, tasks, TableKey(*key, name))
            tasks.wait()
        for each in sorted(self._unmet):
            self._remark("locations", each, "no location begins with it: is it written so there?", serious=True)
        for role in self._source.roles():
            self._count("roles")
            plan.counts.add("members", len(self._source.members(role.roleName or "")))
        self._count("grants", len(self._source.global_grants()))
        plan.seconds = self._progress.seconds
        return plan

    def _positions(self) -> None:
        positions = self.plan.positions
        if positions.open:
            text = f"{len(positions.open):,} transactions are open: what they write isn't seen here"
            self._remark("transactions", "*", text, serious=True)
        if positions.notification is None:
            text = "its position isn't told: whoever follows later has to compare everything"
            self._remark("notification log", "*", text)
        else:
            text = f"readers of the log begin anew here; there it stands at {positions.notification:,}"
            self._remark("notification log", "*", text)

    def _functions(self, key: DatabaseKey) -> None:
        found: list[Function] = self._source.functions(key)
        for each in found:
            self._count("functions")
            for resource in each.resourceUris or ():
                self._place("functions", f"{key}.{each.functionName}", resource.uri)

    def _grants(self, key: DatabaseKey, tables: list[str]) -> None:
        try:
            self._count("grants", len(self._source.grants(key, tables)))
        except (ExceptionStruct, TApplicationException) as error:
            self._remark("databases", str(key), f"its grants can't be read: {error}", serious=True)

    # --- tables -----------------------------------------------------------------------------------------------

    def _table(self, tasks: Tasks, key: TableKey) -> None:
        try:
            parts = self._source.table(key)
            if parts is None:
                return
            names = self._source.partition_names(parts)
            self._look_at(parts)
        except (ExceptionStruct, TApplicationException) as error:
            self._remark("tables", str(key), f"it can't be read: {error}", serious=True)
            return
        for some in batches(names):
            tasks.submit(self._partitions, parts, some)

    def _look_at(self, parts: TableParts) -> None:
        table, name = parts.table, str(parts.key)
        kind = "views" if table.tableType in VIEWS else "tables"
        self._count(kind)
        if (why := unbringable(self._source, parts)) is not None:
            self._remark("tables", name, why, serious=True)
        for field_name in parts.constraints.field_names():
            self._count("constraints", len(getattr(parts.constraints, field_name) or ()))
        self._count("statistics", sum(len(each.statsObj or ()) for each in parts.statistics))
        self._size(table.parameters)
        if kind == "tables":
            self._places(kind, name, table.sd)
        self._of_other_systems(table, name)
        if kind == "views" and self._renaming.databases:
            self._remark(kind, name, TEXT_STAYS, serious=True)

    def _of_other_systems(self, table: Table, name: str) -> None:
        parameters = table.parameters or {}
        if parameters.get("table_type", "").upper() == "ICEBERG":
            text = "Iceberg's: once it is written here it must not be written there any more, nor the other way round"
            self._remark("tables", name, text)
        if parameters.get("transactional", "").lower() == "true":
            self._remark("tables", name, "transactional: write it on one side alone; locks and open work stay there")
        if table.tableType == "INDEX_TABLE":
            self._remark("tables", name, "the table of an index: it is brought, and the index isn't", serious=True)

    def _partitions(self, parts: TableParts, names: list[str]) -> None:
        try:
            found: list[Partition] = self._source.partitions(parts, names)
            statistics = self._source.partition_statistics(parts, names)
        except (ExceptionStruct, TApplicationException) as error:
            self._remark("partitions", f"{parts.key} {names[0]} to {names[-1]}", f"they can't be read: {error}", True)
            return
        self._count("partitions", len(found))
        self._count("statistics", sum(len(each.statsObj or ()) for each in statistics))
        for each in found:
            name = f"{parts.key} {'/'.join(each.values or ())}"
            self._size(each.parameters)
            self._places("partitions", name, each.sd)
            if (each.parameters or {}).get(_FLAG, "").strip().lower() == "false":
                self._remark("partitions", name, "commit=false among its parameters hides it from readers here")

    # --- noting -----------------------------------------------------------------------------------------------

    def _count(self, kind: str, count: int = 1) -> None:
        with self._lock:
            self.plan.counts.add(kind, count)
        if count:
            self._progress.add(kind, count)

    def _size(self, parameters: Mapping[str, str] | None) -> None:
        text = (parameters or {}).get("totalSize", "")
        if text.isdecimal():
            with self._lock:
                self.plan.bytes += int(text)

    def _places(self, kind: str, name: str, descriptor: StorageDescriptor | None) -> None:
        if descriptor is not None:
            self._place(kind, name, descriptor.location)

    def _place(self, kind: str, name: str, location: str | None) -> None:
        with self._lock:
            self._unmet -= {old for old in self._unmet if f"{location or ''}/".startswith(f"{old}/")}
        place = self._renaming.location(location)
        if not place:
            return
        try:
            scheme = Location.parse(place).scheme
        except WarehouseError as error:
            self._remark(kind, name, f"its location can't be used: {error}", serious=True)
            return
        if scheme and scheme not in SCHEMES:
            text = f"servers here don't know the storage {scheme}: map its location by --location"
            self._remark(kind, name, text, serious=kind != "functions")

    def _remark(self, kind: str, name: str, text: str, serious: bool = False) -> None:
        with self._lock:
            self._told[text] += 1
            if self._told[text] <= MAX_NAMED:
                self.plan.remarks.append(Remark(kind, name, text, serious))
            else:
                self.plan.more[f"{kind}: {text}"] += 1

"""Compares all objects of another metastore with ours, in both directions, by their digests."""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

from thrift.Thrift import TApplicationException

from lake.protocol.formats import partition_names
from lake.protocol.hive import (
    ColumnStatistics,
    Database,
    HiveObjectPrivilege,
    HiveObjectType,
    PrincipalType,
    Role,
    RolePrincipalGrant,
    SQLForeignKey,
)
from lake.protocol.struct import ExceptionStruct, Struct
from metastore.migration import canonical
from metastore.migration.canonical import Plain
from metastore.migration.importing import (
    MAX_REPORTED,
    UNKNOWN_WRITE_IDS,
    UNREAD,
    Tasks,
    batches,
    is_transactional,
    partition_name,
    unbringable,
    write_ids_differ,
)
from metastore.migration.mapping import Renaming, Selection, database_key
from metastore.migration.objects import DatabaseKey, Remark, TableKey, TableParts
from metastore.migration.progress import Progress
from metastore.migration.source import Source
from metastore.migration.thrift_source import ThriftSource

T = TypeVar("T", bound=Struct)

MISSING, EXTRA = "it isn't here", "it isn't there"

_NAMES = ("fk_name", "pk_name", "uk_name", "nn_name", "dc_name")
_BUILT_IN_ROLES = ("admin", "public")


@dataclass
class Kind:
    """Objects of one kind. A digest is the sum of those of its objects, so their order doesn't matter."""

    compared: int = 0
    differing: int = 0
    there: int = 0
    here: int = 0

    def plain(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "differing": self.differing,
            "digest_there": f"{self.there:064x}",
            "digest_here": f"{self.here:064x}",
        }


@dataclass
class Affected:
    """Where something differs, by the names there. `partitions`: only these of a table; `tables`: all of it.

    `shared`: roles, their members, or grants on everything. `databases`: themselves, functions or grants in them.
    """

    shared: bool = False
    databases: set[DatabaseKey] = field(default_factory=set)
    tables: set[TableKey] = field(default_factory=set)
    partitions: dict[TableKey, set[str]] = field(default_factory=dict)

    def add(self, of: "Place") -> None:
        if of is None:
            self.shared = True
        elif isinstance(of, DatabaseKey):
            self.databases.add(of)
        elif isinstance(of, TableKey):
            self.tables.add(of)
        else:
            self.partitions.setdefault(of[0], set()).add(of[1])


Place = DatabaseKey | TableKey | tuple[TableKey, str] | None
"""What an object belongs to: a database, a table, or a partition of one; None: to none of them."""


@dataclass
class Comparison:
    """What differs. `differences` names some; `differing` counts all of them."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    differences: list[Remark] = field(default_factory=list)
    uncompared: list[Remark] = field(default_factory=list)
    """What can't be compared, since one of the sides doesn't tell it."""
    affected: Affected = field(default_factory=Affected)

    @property
    def differing(self) -> int:
        return sum(each.differing for each in self.kinds.values())

    @property
    def compared(self) -> int:
        return sum(each.compared for each in self.kinds.values())

    def plain(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "differing": self.differing,
            "kinds": {name: each.plain() for name, each in sorted(self.kinds.items())},
            "differences": [each.plain() for each in self.differences],
            "uncompared": [each.plain() for each in self.uncompared],
        }


class Seen:
    """What a comparison leaves for the next one of the same databases: partitions that were the same on both sides.

    They are known by a digest of what both metastores answered. Where both answer the same again, to the byte, there is
    nothing to compare. Several threads may use it.
    """

    def __init__(self) -> None:
        self._begins: dict[TableKey, list[str]] = {}
        self._same: dict[tuple[TableKey, bytes], tuple[bytes, dict[str, int]]] = {}

    def batches(self, key: TableKey, names: Sequence[str]) -> list[list[str]]:
        """Names of a table, as many as are read at once, and as before: new ones between them move no others."""
        begins = self._begins.get(key, ())
        places = [0, *sorted({bisect_left(names, each) for each in begins}), len(names)]
        found = [each for begin, end in pairwise(places) for each in batches(names[begin:end])]
        self._begins[key] = [each[0] for each in found]
        return found

    def same(self, there: TableParts, here: TableParts, names: Sequence[str]) -> tuple[bytes, dict[str, int]] | None:
        """The digest of the answers by which these partitions were the same, and how many of each kind these were."""
        return self._same.get(_of(there, here, names))

    def add(
        self, there: TableParts, here: TableParts, names: Sequence[str], answers: bytes, counts: dict[str, int]
    ) -> None:
        self._same[_of(there, here, names)] = answers, counts


def _of(there: TableParts, here: TableParts, names: Sequence[str]) -> tuple[TableKey, bytes]:
    columns = [(each.columns, [key.name for key in each.table.partitionKeys or ()]) for each in (there, here)]
    return there.key, canonical.digest([columns, list(names)])


class Verifier:
    """Reads both metastores, a table at a time. `here`: ours."""

    def __init__(
        self,
        there: Source,
        here: ThriftSource,
        *,
        selection: Selection,
        renaming: Renaming,
        progress: Progress,
        threads: int,
        seen: Seen | None = None,
    ) -> None:
        """`seen`: of a comparison before, with the same renaming."""
        self._seen = seen
        self._there = there
        self._here = here
        self._selection = selection
        self._renaming = renaming
        self._progress = progress
        self._threads = threads
        self._lock = Lock()
        self._sketches = 0
        self.comparison = Comparison()

    def run(self) -> Comparison:
        """Raises SourceFailed if one of the metastores can't be reached any more."""
        self._here.engines_asked = self._there.engines()
        self._positions = self._there.positions(), self._here.positions()
        catalogs = {each.name or "": each for each in self._there.catalogs()}
        here = {each.name or "": each for each in self._here.catalogs()}
        self._check_names(sorted(catalogs) or ["hive"])
        self._roles()
        if self._selection.patterns is None:
            for name in sorted(here.keys() - (catalogs.keys() or {"hive"})):
                self._compare("catalogs", name, None, canonical.of_struct(here[name]))
        with ThreadPoolExecutor(self._threads) as threads:
            tasks = Tasks(threads)
            for name in sorted(catalogs) or ["hive"]:
                chosen = self._databases(name)
                if chosen and name in catalogs:
                    own = here.get(name)
                    self._compare(
                        "catalogs",
                        name,
                        _without_time(self._renaming.catalog(catalogs[name])),
                        None if own is None else _without_time(own),
                    )
                for there_key, here_key in chosen:
                    tasks.submit(self._in_database, tasks, there_key, here_key)
            tasks.wait()
        self._note_uncompared()
        return self.comparison

    def _check_names(self, catalogs: Iterable[str]) -> None:
        found = [database_key(each) for name in catalogs for each in self._there.databases(name)]
        self._renaming.check_apart(key for key in found if self._selection.includes(key))
        for each in self._selection.unmet(found):
            self.comparison.uncompared.append(Remark("databases", each, f"no database there is called {each}"))

    def _note_uncompared(self) -> None:
        uncompared = self.comparison.uncompared
        uncompared += self._there.remarks()
        if self._sketches:
            text = f"{self._sketches:,} have bit vectors or histograms on one side only, which aren't compared"
            uncompared.append(Remark("statistics", "*", text))
        if self._positions[0].notification is not None:
            uncompared.append(Remark("notification log", "*", "its entries aren't brought"))

    # --- namespaces -------------------------------------------------------------------------------------------

    def _databases(self, catalog: str) -> list[tuple[DatabaseKey, DatabaseKey]]:
        """Compares the databases of a catalog; those that are on both sides, by their names there and here."""
        here = {database_key(each): each for each in self._here.databases(catalog)}
        chosen = []
        wanted = set()
        for database in self._there.databases(catalog):
            key = database_key(database)
            if not self._selection.includes(key):
                continue
            own_key = self._renaming.database_key(key)
            wanted.add(own_key)
            own = here.get(own_key)
            there_form, here_form = _databases_alike(self._renaming.database(database), own)
            self._compare("databases", str(key), there_form, here_form, of=key)
            if own is not None:
                chosen.append((key, own_key))
        for key in sorted(here.keys() - wanted):
            if self._selection.patterns is None or self._is_meant(key):
                self._compare("databases", str(key), None, canonical.of_struct(here[key]))
        return chosen

    def _is_meant(self, here: DatabaseKey) -> bool:
        """Whether a database here would be one of those that are compared, if it was there."""
        there = self._renaming.key_there(here)
        return there is not None and self._selection.includes(there)

    def _in_database(self, tasks: Tasks, there: DatabaseKey, here: DatabaseKey) -> None:
        functions = {
            each.functionName or "": each for each in map(self._renaming.function, self._there.functions(there))
        }
        own = {each.functionName or "": each for each in self._here.functions(here)}
        self._compare_all("functions", f"{there}.", functions, own, of=there)
        names, own_names = set(self._there.tables(there)), set(self._here.tables(here))
        for name in sorted(names | own_names):
            tasks.submit(self._table, tasks, TableKey(*there, name), TableKey(*here, name))
        grants = map(self._renaming.grant, self._there.grants(there, sorted(names)))
        self._compare_grants(grants, self._here.grants(here, sorted(own_names)), of=there)

    def _roles(self) -> None:
        there = {each.roleName or "": each for each in self._there.roles()}
        here = {each.roleName or "": each for each in self._here.roles()}
        for name in sorted(there.keys() | here.keys()):
            if name not in _BUILT_IN_ROLES:
                one, other = there.get(name), here.get(name)
                there_form = None if one is None else _role(one, other)
                self._compare("roles", name, there_form, None if other is None else _role(other, one))
            members = {_member(each): each for each in self._there.members(name)} if name in there else {}
            own = {_member(each): each for each in self._here.members(name)} if name in here else {}
            self._compare_all("members", f"{name} ", members, own)
        self._compare_grants(self._there.global_grants(), self._here.global_grants(), made=True)

    def _compare_grants(
        self,
        there: Iterable[HiveObjectPrivilege],
        here: Iterable[HiveObjectPrivilege],
        *,
        made: bool = False,
        of: Place = None,
    ) -> None:
        """`made`: of the role `admin` there is one on everything in each metastore, made at its own time."""

        def forms(some: Iterable[HiveObjectPrivilege]) -> dict[str, Plain]:
            found = {}
            for each in some:
                plain = canonical.of_grant(each)
                name = grant_name(each)
                if made and name.startswith("admin "):
                    plain.get("grantInfo", {}).pop("createTime", None)
                found[name] = plain
            return found

        one, other = forms(there), forms(here)
        for name in sorted(one.keys() | other.keys()):
            self._compare("grants", name, one.get(name), other.get(name), of=of)

    # --- tables -----------------------------------------------------------------------------------------------

    def _table(self, tasks: Tasks, there_key: TableKey, here_key: TableKey) -> None:
        try:
            self._compare_tables(tasks, there_key, here_key)
        except (ExceptionStruct, TApplicationException) as error:
            why = f"it can't be compared: {error}"
            self._count("tables", Remark("tables", str(there_key), why, serious=True), of=there_key)

    def _compare_tables(self, tasks: Tasks, there_key: TableKey, here_key: TableKey) -> None:
        there, here = self._there.table(there_key), self._here.table(here_key)
        if there is None and here is None:
            return
        if there is not None and here is None and (why := unbringable(self._there, there)) is not None:
            self._count("tables", Remark("tables", str(there_key), f"{MISSING}: {why}", serious=True), of=there_key)
            return
        wanted = None if there is None else self._renaming.parts(there)
        self._compare(
            "tables",
            str(there_key),
            None if wanted is None else canonical.of_struct(wanted.table),
            None if here is None else canonical.of_struct(here.table),
            of=there_key,
        )
        if there is None or wanted is None or here is None:
            return
        self._write_ids(there_key, here_key, there)
        self._constraints(there_key, wanted, here)
        self._statistics(there_key, wanted.statistics, here.statistics)
        names, own = self._there.partition_names(there), set(self._here.partition_names(here))
        for extra in batches(sorted(own - set(names))):
            for name in extra:
                self._compare("partitions", f"{there_key} {name}", None, {"name": name}, of=(there_key, name))
        for some in batches(names) if self._seen is None else self._seen.batches(there_key, names):
            tasks.submit(self._partitions, there, here, some)

    def _write_ids(self, there_key: TableKey, here_key: TableKey, table: TableParts) -> None:
        if not is_transactional(table.table):
            return
        there = self._there.write_ids(there_key, self._positions[0])
        here = self._here.write_ids(here_key, self._positions[1])
        why = UNKNOWN_WRITE_IDS if self._positions[0].transaction is None else write_ids_differ(here, there)
        remark = None if why is None else Remark("write ids", str(there_key), why, serious=True)
        self._count("write ids", remark, of=there_key)

    def _constraints(self, key: TableKey, there: TableParts, here: TableParts) -> None:
        for kind in there.constraints.field_names():
            one = {constraint_name(each): each for each in getattr(there.constraints, kind) or ()}
            other = {constraint_name(each): each for each in getattr(here.constraints, kind) or ()}
            for name in sorted(one.keys() | other.keys()):
                self._compare(
                    "constraints",
                    f"{key} {name}",
                    constraint_form(one.get(name)),
                    constraint_form(other.get(name)),
                    of=key,
                )

    def _partitions(self, there: TableParts, here: TableParts, names: Sequence[str]) -> None:
        try:
            self._compare_partitions(there, here, names)
        except (ExceptionStruct, TApplicationException) as error:
            some = f"{there.key} {names[0]} to {names[-1]}"
            why = f"they can't be compared: {error}"
            self._count("partitions", Remark("partitions", some, why, serious=True), of=there.key)

    def _compare_partitions(self, there: TableParts, here: TableParts, names: Sequence[str]) -> None:
        if self._seen is None:
            self._compare_read(there, here, names)
            return
        if (before := self._seen.same(there, here, names)) is not None:
            with self._there.heard() as of_there, self._here.heard() as of_here:
                self._there.pass_over_partitions(there, names)
                self._here.pass_over_partitions(here, names)
            if _together(of_there(), of_here()) == before[0]:
                for kind, count in before[1].items():
                    self._count_same(kind, count)
                return
        with self._there.heard() as of_there, self._here.heard() as of_here:
            counts = self._compare_read(there, here, names)
        answers = _together(of_there(), of_here())
        if counts is not None and answers is not None:
            self._seen.add(there, here, names, answers, counts)

    def _compare_read(self, there: TableParts, here: TableParts, names: Sequence[str]) -> dict[str, int] | None:
        """How many of each kind there are; None if something differs."""
        found = self._there.partitions(there, names)
        one = {partition_name(there, each): self._renaming.partition(each) for each in found}
        other = {partition_name(here, each): each for each in self._here.partitions(here, names)}
        of_there, of_here = canonical.Partitions(), canonical.Partitions()
        every = sorted({*names, *one})
        same = True
        for name in every:
            if name in one or name in other:
                same &= self._compare(
                    "partitions",
                    f"{there.key} {name}",
                    None if name not in one else of_there.form(one[name]),
                    None if name not in other else of_here.form(other[name]),
                    of=(there.key, name),
                )
            else:
                remark = Remark("partitions", f"{there.key} {name}", UNREAD, serious=True)
                self._count("partitions", remark, of=(there.key, name))
                same = False
        statistics = map(self._renaming.statistics, self._there.partition_statistics(there, names))
        numbers = self._statistics(there.key, statistics, self._here.partition_statistics(here, names))
        return None if not same or numbers is None else {"partitions": len(every), "statistics": numbers}

    def _statistics(
        self, table: TableKey, there: Iterable[ColumnStatistics], here: Iterable[ColumnStatistics]
    ) -> int | None:
        """How many there are; None if some differ."""
        same = True
        one, other = _by_column(there), _by_column(here)
        for key in sorted(one.keys() | other.keys()):
            # Sketches are compared where both tell them.
            forms = [each.get(key) for each in (one, other)]
            told = [form is not None and canonical.has_sketch(form) for form in forms]
            sketches = all(told)
            if any(told) and None not in forms and not sketches:
                with self._lock:
                    self._sketches += 1
            there_form, here_form = (
                None if form is None else canonical.of_statistics(form, sketches=sketches) for form in forms
            )
            name = " ".join((str(table), *filter(None, key)))
            same &= self._compare("statistics", name, there_form, here_form, of=(table, key[0]) if key[0] else table)
        return len(one) if same else None

    # --- comparing --------------------------------------------------------------------------------------------

    def _compare_all(
        self, kind: str, begin: str, there: Mapping[str, T], here: Mapping[str, T], *, of: Place = None
    ) -> None:
        for name in sorted(there.keys() | here.keys()):
            one, other = there.get(name), here.get(name)
            self._compare(
                kind,
                begin + name,
                None if one is None else canonical.of_struct(one),
                None if other is None else canonical.of_struct(other),
                of=of,
            )

    def _compare(self, kind: str, name: str, there: Plain | None, here: Plain | None, *, of: Place = None) -> bool:
        """Whether both are the same."""
        remark = None
        if there != here:
            if here is None or there is None:
                text = MISSING if here is None else EXTRA
            else:
                text = "; ".join(canonical.differences(here, there))
            remark = Remark(kind, name, text, serious=True)
        number = _number(kind, name, there)
        self._count(kind, remark, number, number if remark is None else _number(kind, name, here), of=of)
        return remark is None

    def _count_same(self, kind: str, count: int) -> None:
        with self._lock:
            self.comparison.kinds.setdefault(kind, Kind()).compared += count
        self._progress.add(kind, count)

    def _count(self, kind: str, remark: Remark | None, there: int = 0, here: int = 0, *, of: Place = None) -> None:
        """`of`: what the object belongs to."""
        with self._lock:
            own = self.comparison.kinds.setdefault(kind, Kind())
            own.compared += 1
            own.there = (own.there + there) % (1 << 256)
            own.here = (own.here + here) % (1 << 256)
            if remark is not None:
                own.differing += 1
                self.comparison.affected.add(of)
                if len(self.comparison.differences) < MAX_REPORTED:
                    self.comparison.differences.append(remark)
        self._progress.add(kind)


def _together(*answers: bytes | None) -> bytes | None:
    """One digest of those of both sides; None if one isn't known."""
    return None if None in answers else b"".join(each for each in answers if each is not None)


def _number(kind: str, name: str, form: Plain | None) -> int:
    """An object's part of the digest of its kind."""
    if form is None:
        return 0
    own = hashlib.sha256(f"{kind}\0{name}\0".encode("utf-8", "surrogatepass") + canonical.digest(form))
    return int.from_bytes(own.digest())


def _databases_alike(there: Database, here: Database | None) -> tuple[Plain, Plain | None]:
    """Hive 2.3 keeps no time for a database."""
    if here is None:
        return canonical.of_struct(there), None
    if there.createTime is None:
        here = here.replace(createTime=None)
    return canonical.of_struct(there), canonical.of_struct(here)


def _without_time(value: Any) -> Plain:
    """The catalog that every metastore has was made at its own time."""
    return canonical.of_struct(value.replace(createTime=None) if value.name == "hive" else value)


def _role(value: Role, other: Role | None) -> Plain:
    """Hive tells owner and time of those roles alone that have members."""
    if other is not None and (value.ownerName is None or other.ownerName is None):
        value = value.replace(ownerName=None)
    return canonical.of_struct(value.replace(createTime=None))


def _member(value: RolePrincipalGrant) -> str:
    return f"{_word(PrincipalType, value.principalType)} {value.principalName}"


def grant_name(value: HiveObjectPrivilege) -> str:
    of, info = value.hiveObject, value.grantInfo
    assert of is not None and info is not None
    place = [of.dbName, of.objectName, "/".join(map(partition_names.escape, of.partValues or ())), of.columnName]
    kind = f"{_word(HiveObjectType, of.objectType)} {'.'.join(each for each in place if each)}"
    who = f"{value.principalName} ({_word(PrincipalType, value.principalType)})"
    by = "" if info.grantorType in (None, PrincipalType.USER) else f" ({_word(PrincipalType, info.grantorType)})"
    return f"{who}: {info.privilege} on {kind} by {info.grantor}{by}"


def _word(kinds: type[IntEnum], kind: int | None) -> str:
    """A kind of principal or object, as people call it."""
    return kinds(kind).name.lower() if kind in list(kinds) else str(kind)


def constraint_own_name(value: Any) -> str:
    """The name of a constraint, in the case in which Hive 2.3 keeps it."""
    return getattr(value, _name_field(value)) or ""


def constraint_name(value: Any) -> str:
    """The name of a constraint in lower case, and which of its columns this is."""
    return f"{constraint_own_name(value).lower()} {getattr(value, 'key_seq', None) or 1}"


def _name_field(value: Any) -> str:
    return next(field for field in _NAMES if field in value.field_names())


def constraint_form(value: Any) -> Plain | None:
    if value is None:
        return None
    name = constraint_own_name(value).lower()
    if isinstance(value, SQLForeignKey):  # Hive 2.3 doesn't always tell the name of the key that it refers to
        value = value.replace(pk_name=None)
    return canonical.of_struct(value.replace(**{_name_field(value): name}))


def _by_column(some: Iterable[ColumnStatistics]) -> dict[tuple[str, str, str], Any]:
    """Statistics by partition, column and engine."""
    found = {}
    for each in some:
        partition = "" if each.statsDesc is None or each.statsDesc.isTblLevel else each.statsDesc.partName or ""
        for own in each.statsObj or ():
            found[partition, own.colName or "", "" if each.engine in (None, "hive") else each.engine] = own
    return found

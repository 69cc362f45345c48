"""Which objects come over, and under which names and at which places."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import permutations
from typing import TypeVar

from lake.protocol.errors import UsageError, UserError
from lake.protocol.hive import (
    Catalog,
    ColumnStatistics,
    Database,
    Function,
    HiveObjectPrivilege,
    Partition,
    SQLAllTableConstraints,
    StorageDescriptor,
    Table,
)
from lake.protocol.struct import Struct
from metastore.migration.objects import DEFAULT_CATALOG, DatabaseKey, TableKey, TableParts, without_marks

S = TypeVar("S", bound=Struct)

# The fields of constraints that hold a database's name.
_DATABASE_FIELDS = ("table_db", "fktable_db", "pktable_db")


@dataclass(frozen=True)
class Selection:
    """Databases by patterns with `*`, in lower case: `sales_*`, `spark.sales`. None stands for all, as `*` does; other
    patterns without a catalog mean databases of Hive's.

    `only`: of these those alone that were found once; None for all. `but`: those that aren't meant in any case.
    """

    patterns: Sequence[str] | None = None
    only: Collection[DatabaseKey] | None = None
    but: Collection[DatabaseKey] = ()

    @classmethod
    def parse(cls, text: str | None) -> "Selection":
        """Raises UsageError for a list without a pattern."""
        if text is None:
            return cls()
        patterns = [each.strip().lower() for each in text.split(",") if each.strip()]
        if not patterns:
            raise UsageError("--databases names no database")
        return cls(patterns)

    def includes(self, key: DatabaseKey) -> bool:
        if key in self.but or (self.only is not None and key not in self.only):
            return False
        return self.patterns is None or any(_fits(key, each) for each in self.patterns)

    def unmet(self, keys: Iterable[DatabaseKey]) -> list[str]:
        """The patterns that none of some databases has."""
        some = list(keys)
        return [each for each in self.patterns or () if not any(_fits(key, each) for key in some)]


def _fits(key: DatabaseKey, pattern: str) -> bool:
    if "." in pattern or pattern == "*":
        return fnmatchcase(f"{key.catalog}.{key.database}", pattern)
    return key.catalog == DEFAULT_CATALOG and fnmatchcase(key.database, pattern)


@dataclass(frozen=True)
class Renaming:
    """New names of databases, and new beginnings of locations, the longest first."""

    databases: Mapping[str, str] = field(default_factory=dict)
    locations: Sequence[tuple[str, str]] = ()

    @classmethod
    def parse(cls, databases: Sequence[str], locations: Sequence[str]) -> "Renaming":
        """Of texts such as `old=new`. Raises UsageError for another form, for two that get one name, and for places
        within one another: it couldn't be told any more where something came from that lies in both."""
        pairs = [_pair(each.lower(), "--rename") for each in databases]
        names = dict(pairs)
        if len(names) < len(pairs) or len(set(names.values())) < len(names):
            raise UsageError("--rename: each database gets one name, and none gets that of another")
        begins = [(a.rstrip("/"), b.rstrip("/")) for a, b in (_pair(each, "--location") for each in locations)]
        for one, other in permutations(begins, 2):
            for side, a, b in zip(("OLD", "NEW"), one, other, strict=True):
                # Several may get one new place: it has other names there.
                if (a == b and side == "OLD") or b.startswith(f"{a}/"):
                    raise UsageError(
                        f"--location: {b} ({'='.join(other)}) lies within {a} ({'='.join(one)}), and roll-back couldn't"
                        f" tell which of both a place is of: give {side} places of which none lies within another"
                    )
        return cls(names, sorted(begins, key=lambda each: -len(each[0])))

    # --- names ------------------------------------------------------------------------------------------------

    def name(self, database: str | None) -> str | None:
        return None if database is None else self.databases.get(database.lower(), database)

    def database_key(self, key: DatabaseKey) -> DatabaseKey:
        return key._replace(database=self.databases.get(key.database, key.database))

    def key_there(self, key: DatabaseKey) -> DatabaseKey | None:
        """The database there that has this name here, if it exists; None: none can have it."""
        found = [old for old, new in self.databases.items() if new == key.database]
        if found:
            return key._replace(database=found[0])
        return None if key.database in self.databases else key

    def unmet(self, keys: Iterable[DatabaseKey]) -> list[str]:
        """The names that none of some databases has."""
        return sorted(self.databases.keys() - {key.database for key in keys})

    def table_key(self, key: TableKey) -> TableKey:
        return key._replace(database=self.databases.get(key.database, key.database))

    def check_apart(self, keys: Iterable[DatabaseKey]) -> None:
        """Raises UserError if two databases would become one."""
        found: dict[DatabaseKey, DatabaseKey] = {}
        for key in keys:
            other = found.setdefault(self.database_key(key), key)
            if other != key:
                raise UserError(f"--rename: {other} and {key} would both become {self.database_key(key)}")

    def location(self, location: str | None) -> str | None:
        for old, new in self.locations:
            if location is not None and (location == old or location.startswith(f"{old}/")):
                return new + location[len(old) :]
        return location

    @property
    def merged(self) -> list[str]:
        """New places that several old ones get."""
        found = [new for _, new in self.locations]
        return sorted({each for each in found if found.count(each) > 1})

    def keeping(self, forward: "Renaming", *values: Struct | None) -> "Renaming":
        """This, the inverse of `forward`, for objects there and what lies below them: their places stay as they are.

        A place there may lie within a new one without having come from an old one.
        """
        if not self.locations:
            return self
        places = {each for value in values if value is not None for each in _places(value)}
        own = [(forward.location(each) or "", each) for each in places]
        return replace(self, locations=[*sorted(own, key=lambda pair: -len(pair[0])), *self.locations])

    # --- objects ----------------------------------------------------------------------------------------------

    def catalog(self, value: Catalog) -> Catalog:
        return value.replace(locationUri=self.location(value.locationUri))

    def database(self, value: Database) -> Database:
        return value.replace(
            name=self.name(value.name),
            parameters=value.parameters and without_marks(value.parameters),
            locationUri=self.location(value.locationUri),
            managedLocationUri=self.location(value.managedLocationUri),
        )

    def function(self, value: Function) -> Function:
        resources = [each.replace(uri=self.location(each.uri)) for each in value.resourceUris or ()]
        return value.replace(dbName=self.name(value.dbName), resourceUris=resources)

    def table(self, value: Table) -> Table:
        made = value.creationMetadata
        if made is not None and self.databases:
            # What a materialized view was built from: `database.table` each.
            used = {self._full_name(each) for each in made.tablesUsed or ()}
            sources = made.sourceTables and [
                each.replace(table=each.table and self.table(each.table)) for each in made.sourceTables
            ]
            made = made.replace(dbName=self.name(made.dbName), tablesUsed=used, sourceTables=sources)
        return value.replace(dbName=self.name(value.dbName), sd=self._descriptor(value.sd), creationMetadata=made)

    def partition(self, value: Partition) -> Partition:
        return value.replace(dbName=self.name(value.dbName), sd=self._descriptor(value.sd))

    def parts(self, value: TableParts) -> TableParts:
        return TableParts(
            self.table_key(value.key),
            self.table(value.table),
            self.constraints(value.constraints),
            [self.statistics(each) for each in value.statistics],
        )

    def statistics(self, value: ColumnStatistics) -> ColumnStatistics:
        of = value.statsDesc
        return value if of is None else value.replace(statsDesc=of.replace(dbName=self.name(of.dbName)))

    def constraints(self, value: SQLAllTableConstraints) -> SQLAllTableConstraints:
        def renamed(some: Sequence[S] | None) -> list[S]:
            return [
                each.replace(
                    **{name: self.name(getattr(each, name)) for name in _DATABASE_FIELDS if name in each.field_names()}
                )
                for each in some or ()
            ]

        return SQLAllTableConstraints(**{name: renamed(getattr(value, name)) for name in value.field_names()})

    def grant(self, value: HiveObjectPrivilege) -> HiveObjectPrivilege:
        of = value.hiveObject
        return value if of is None else value.replace(hiveObject=of.replace(dbName=self.name(of.dbName)))

    def _full_name(self, text: str) -> str:
        database, dot, table = text.partition(".")
        return f"{self.name(database)}{dot}{table}"

    def _descriptor(self, value: StorageDescriptor | None) -> StorageDescriptor | None:
        if value is None or not self.locations:
            return value
        serde, skewed = value.serdeInfo, value.skewedInfo
        # Spark keeps where a table of its own sources lies among the serde's parameters.
        if serde is not None and serde.parameters and "path" in serde.parameters:
            serde = serde.replace(
                parameters={**serde.parameters, "path": self.location(serde.parameters["path"]) or ""}
            )
        if skewed is not None and skewed.skewedColValueLocationMaps:
            places = {key: self.location(place) or "" for key, place in skewed.skewedColValueLocationMaps.items()}
            skewed = skewed.replace(skewedColValueLocationMaps=places)
        return value.replace(location=self.location(value.location), serdeInfo=serde, skewedInfo=skewed)


def _places(value: Struct) -> list[str]:
    """The places of a database, a table, a partition or a function."""
    sd = getattr(value, "sd", None)
    found = [
        *(getattr(value, name, None) for name in ("locationUri", "managedLocationUri")),
        *(each.uri for each in getattr(value, "resourceUris", None) or ()),
        sd and sd.location,
        sd and ((sd.serdeInfo and sd.serdeInfo.parameters) or {}).get("path"),
    ]
    return [each.rstrip("/") for each in found if each]


def _pair(text: str, option: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not separator or not old.strip() or not new.strip():
        raise UsageError(f"{option}: {text!r} is not of the form OLD=NEW")
    return old.strip(), new.strip()


def database_key(value: Database) -> DatabaseKey:
    """A database's name, as keys have it."""
    return DatabaseKey((value.catalogName or DEFAULT_CATALOG).lower(), (value.name or "").lower())

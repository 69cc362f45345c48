"""The needs of calls whose rights follow from more than names: what is granted, which instant, what changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lake.protocol.hive import (
    CreationMetadata,
    HiveObjectRef,
    InvalidOperationException,
    LockType,
    NoSuchObjectException,
    Partition,
    PrincipalType,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from lake.protocol.hudi import TAction, TState
from metastore.api.methods import Call
from metastore.api.rights.classification import Need
from metastore.api.rights.naming import Requirement, Row, of_ref, rows, table_object
from metastore.services.access.caller import Caller
from metastore.services.access.places import Places
from metastore.services.access.rights import EVERYTHING, Action, Kind, Securable, table
from metastore.services.access.rights import database as database_object
from metastore.services.hudi.importer import chosen_table
from metastore.services.instant_rules import states
from metastore.services.model import hive_objects
from metastore.services.model import view_sources as stored_sources
from metastore.services.model.names import database_name
from metastore.services.model.visibility import Scope
from metastore.services.table_services.limits import ORPHANS


@dataclass(frozen=True, slots=True)
class Asked:
    """A call whose needs are looked for. `roles`: of the caller. `by_directories`: those of partitions count.

    `sees`: whether an object is visible to the caller.
    """

    call: Call
    caller: Caller
    roles: frozenset[str]
    places: Places
    sees: Callable[[Securable], bool]
    by_directories: bool = False

    def directories(self, action: Action, object: Securable, locations: Iterable[str | None]) -> Iterator[Requirement]:
        """The right to do something with the directories of an object's partitions, where that counts."""
        if self.by_directories:
            for each in locations:
                if each:
                    yield action, object._replace(place=each)

    def location(self, object: Securable, locations: Iterable[str | None], *usual: str | None) -> Iterator[Requirement]:
        """The right to places of an object that are none of its usual ones."""
        for each in locations:
            if each and self.places.needs_right(each, object, self.roles, usual):
                yield Action.LOCATION, object._replace(place=each)


Requirements = Callable[[Asked, Need, Any], Iterator[Requirement]]


@dataclass(frozen=True, slots=True)
class Special:
    """A kind of need without an action. `objects`: what a row of it names, for the audit log."""

    requirements: Requirements
    objects: Callable[[Row], Iterable[Securable]]


SPECIAL: dict[str, Special] = {}
"""The kinds of needs whose action follows from more than the names of objects."""


def _special(objects: Callable[[Row], Iterable[Securable]]) -> Callable[[Requirements], Requirements]:
    """Registers the decorated function for the kind of its name."""

    def register(function: Requirements) -> Requirements:
        SPECIAL[function.__name__] = Special(function, objects)
        return function

    return register


def _nothing(row: Row) -> Iterable[Securable]:
    return ()


def referenced(row: Row) -> Iterator[Securable]:
    """The table of a reference; none where it is missing."""
    reference = row.values[0]
    if reference is not None:
        yield table_object(reference.database, reference.table, reference.catalog)


def _named(row: Row) -> Iterator[Securable]:
    yield table_object(row.values[0], row.values[1], row.get("cat"))


def _changed(row: Row) -> Iterator[Securable]:
    """An altered table, by its old and its new name."""
    yield from _named(row)
    new = row.get("new")
    if new is not None and new.tableName is not None:
        yield table_object(new.dbName or row.values[0], new.tableName, new.catName or row.get("cat"))


def _granted(row: Row) -> Iterator[Securable]:
    given = row.values[0]
    return of_ref(given if isinstance(given, HiveObjectRef) else given.hiveObject)


def _locked(row: Row) -> Iterator[Securable]:
    part = row.values[0]
    if part.tablename is None:
        yield database_object(database_name(part.dbname))
    else:
        yield table_object(part.dbname, part.tablename)


@_special(_nothing)
def principal(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """What a principal has is told to itself, and of its roles to their members."""
    for row in rows(need, arguments):
        name, *kind = row.values
        groups = set(row.get("groups") or ())
        kind_of = kind[0] if kind else PrincipalType.USER
        own = {
            PrincipalType.USER: name in (None, asked.caller.user),
            PrincipalType.GROUP: name in asked.caller.groups,
            PrincipalType.ROLE: name in asked.roles,
        }
        if not own.get(kind_of, False) or not groups <= set(asked.caller.groups):
            yield Action.ADMIN, EVERYTHING


@_special(_granted)
def grants(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """Who gives a privilege needs it with its grant option; nobody gives one in another's name."""
    for row in rows(need, arguments):
        for each in row.values:
            yield from _grant(asked, each)


@_special(referenced)
def jobs(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """Who lists the jobs of one table needs the right to that table; without a table, to all."""
    for row in rows(need, arguments):
        [reference] = row.values
        if reference is None:
            yield Action.TABLE_SERVICE, EVERYTHING
        else:
            yield Action.TABLE_SERVICE, table_object(reference.database, reference.table, reference.catalog)


@_special(referenced)
def submitted_jobs(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """A service runs a job with its own rights: callers that enqueue one that deletes files need the right to do so."""
    for row in rows(need, arguments):
        [reference] = row.values
        if row.get("action") in (states.CLEAN, ORPHANS):
            yield Action.CLEAN, table_object(reference.database, reference.table, reference.catalog)


@_special(referenced)
def lease(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """A lease keeps cleans off, so callers that renew or end another user's need the right to clean."""
    for row in rows(need, arguments):
        [reference] = row.values
        object = table_object(reference.database, reference.table, reference.catalog)
        with suppress(NoSuchObjectException, InvalidOperationException):  # the service says what is wrong
            owner = asked.call.metastore.reader_leases.owner(reference, row.get("id"))
            if owner is not None and owner != asked.caller.user:
                yield Action.CLEAN, object


@_special(_granted)
def refreshed_grants(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """All privileges of an object are replaced."""
    for object in of_ref(row.values[0]) if (row := next(rows(need, arguments), None)) else ():
        yield Action.GRANT, object._replace(granting="ALL")
    request = arguments.grantRequest
    for each in (request and request.privileges and request.privileges.privileges) or ():
        yield from _grant(asked, each)


def _grant(asked: Asked, privilege: Any) -> Iterator[Requirement]:
    info, ref = privilege.grantInfo, privilege.hiveObject
    granting = (info and info.privilege) or "ALL"
    objects = list(of_ref(ref)) or [EVERYTHING]
    for object in objects:
        yield Action.GRANT, object._replace(granting=granting)
    if info is not None and info.grantor is None:
        info.grantor, info.grantorType = asked.caller.user, PrincipalType.USER
    if info is not None and info.grantor is not None:
        names = asked.roles if info.grantorType == PrincipalType.ROLE else {asked.caller.user}
        if info.grantor not in names:
            yield Action.ADMIN, EVERYTHING


@_special(_locked)
def locks(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """A lock that readers take needs a right to read or write, another one the right to change something."""
    for row in rows(need, arguments):
        part = row.values[0]
        shared = part.type == LockType.SHARED_READ
        if part.tablename is None:
            where = database_object(database_name(part.dbname))
            yield (Action.SEE if shared else Action.ALTER), where
        else:
            yield (Action.LIST if shared else Action.LOCK), table_object(part.dbname, part.tablename)


_INSTANTS = {
    "compaction": Action.TABLE_SERVICE,
    "logcompaction": Action.TABLE_SERVICE,
    "clustering": Action.TABLE_SERVICE,
    "indexing": Action.TABLE_SERVICE,
    "publish": Action.TABLE_SERVICE,
    "clean": Action.CLEAN,
    "rollback": Action.ROLLBACK,
    "restore": Action.ROLLBACK,
    "savepoint": Action.ROLLBACK,
}


_HUDI_ACTIONS = frozenset(TAction)

_PARTS = {
    "cleaned": Action.CLEAN,
    "undone": Action.ROLLBACK,
    "columns": Action.ALTER,
    "properties": Action.ALTER,
}
"""What the completion of any instant may bring along."""


@_special(referenced)
def instant(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """The right depends on what an instant does."""
    for row in rows(need, arguments):
        reference = row.values[0]
        object = table_object(reference.database, reference.table, reference.catalog)
        yield _of_action(row.get("action")), object
        for part, action in _PARTS.items():
            if row.get(part) is not None:
                yield action, object


def _of_action(action: str | None) -> Action:
    return _INSTANTS.get((action or "").lower(), Action.RECORD)


@_special(_named)
def hudi_instant(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """As `instant`, by Hudi's protocol: a commit's metadata may bring other columns than the table has."""
    for row in rows(need, arguments):
        database, name = row.values
        object = table_object(database, name)
        instant, becomes, content = row.get("instant"), row.get("becomes"), row.get("content")
        action = instant and instant.action
        yield _of_action(TAction(action).name if action in _HUDI_ACTIONS else None), object
        if becomes is not None and becomes.state == TState.COMPLETED and content:
            with suppress(NoSuchObjectException, InvalidOperationException):  # the service says what is wrong
                if asked.call.metastore.hudi_timeline.changes_columns(database, name, instant, content):
                    yield Action.ALTER, object


@_special(referenced)
def hudi_import(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """An import adds a table at a location, or says all about an existing one: what was cleaned, undone, altered."""
    for row in rows(need, arguments):
        reference = row.values[0]
        object = table_object(reference.database, reference.table, reference.catalog)
        where = object._replace(kind=Kind.DATABASE, table="")
        yield Action.CREATE, where
        if _table(asked, object) is not None:
            for action in dict.fromkeys((Action.RECORD, *_INSTANTS.values(), *_PARTS.values())):
                yield action, object
        else:
            yield from asked.location(where, [row.get("location")])


@_special(_nothing)
def hudi_refresh(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """A refresh writes the timeline of the table that lies at a location. Of those there, only visible ones count.

    Raises NoSuchObjectException, InvalidOperationException as where no other tables are.
    """
    for row in rows(need, arguments):
        location, name = row.values
        objects = {each: table(each) for each in asked.call.metastore.hudi_import.tables_at(location)}
        visible = [each for each, object in objects.items() if asked.sees(object)]
        chosen = chosen_table(visible, location, name)
        arguments.name = chosen.table
        yield Action.RECORD, objects[chosen]


# -- tables and partitions that change -------------------------------------------------------------------------


@_special(_changed)
def table_change(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """What an altered table needs: its location, its owner and its name are rights of their own.

    A change of statistics alone is what engines write after an insert.
    """
    for row in rows(need, arguments):
        object = table_object(row.values[0], row.values[1], row.get("cat"))
        yield from altered_table(asked, object, row.get("new"))


def altered_table(asked: Asked, object: Securable, new: Table | None) -> Iterator[Requirement]:
    """What one altered table needs, see `table_change`."""
    yield Action.SEE, object  # before anything is read
    old = _table(asked, object)
    if old is None or new is None:
        yield Action.ALTER, object
        return
    only_statistics = _only_statistics(old, new) and asked.places.are_same(_location(old.sd), _location(new.sd))
    yield (Action.WRITE if only_statistics else Action.ALTER), object
    target = table_object(new.dbName, new.tableName, new.catName or object.catalog)
    if target != object:
        yield Action.ALTER, object
        yield Action.CREATE, target._replace(kind=Kind.DATABASE, table="")
    if new.owner is None:  # as some clients send it: that is no change
        new.owner, new.ownerType = old.owner, old.ownerType
    elif (new.owner, new.ownerType or 1) != (old.owner, old.ownerType or 1):
        yield Action.GRANT, object._replace(granting="ALL")
    yield from asked.location(object, locations_of(asked, new.sd), *locations_of(asked, old.sd))
    before = [(old.parameters or {}).get(key) for key in ("metadata_location", "previous_metadata_location")]
    directories = [each.rpartition("/")[0] for each in before if each and "/" in each]
    yield from metadata_outside(asked, new, [_location(new.sd), *directories])
    yield from sources(new.creationMetadata, object.catalog, old.creationMetadata)


def metadata_outside(asked: Asked, table: Table, bases: Sequence[str | None]) -> Iterator[Requirement]:
    """The right to the file that the server reads for Iceberg's clients because a parameter of the table names it.

    `bases`: the table's own places, where none is needed. Elsewhere an owner has no right of itself, other than to a
    table's location: the server would show what the file of another table says.
    """
    place = (table.parameters or {}).get("metadata_location")
    if place and hive_objects.is_iceberg(table) and not any(asked.places.lies_within(place, each) for each in bases):
        yield from asked.location(EVERYTHING, [place])


@_special(_nothing)
def view_sources(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """A materialized view may be built from other tables only by callers that may read them."""
    for row in rows(need, arguments):
        object = table_object(row.values[0], row.values[1], row.get("cat"))
        old = _table(asked, object)
        yield from sources(row.get("new"), object.catalog, None if old is None else old.creationMetadata)


def sources(
    metadata: CreationMetadata | None, catalog: str, before: CreationMetadata | None = None
) -> Iterator[Requirement]:
    """The right to read the tables that a view is built from, without those that it was built from `before`."""
    names = stored_sources.sources(metadata, catalog) - stored_sources.sources(before, catalog)
    yield from ((Action.SELECT, table(each)) for each in sorted(names))


_STATISTICS = frozenset(
    {
        "column_stats_accurate",
        "numfiles",
        "numpartitions",
        "numrows",
        "rawdatasize",
        "totalsize",
        "numfileserasurecoded",
        "transient_lastddltime",
        "last_modified_by",
        "last_modified_time",
        "stats_generated",
        "stats_generated_via_stats_task",
        "do_not_update_stats",
    }
)


def _only_statistics(old: Table, new: Table) -> bool:
    """Whether an altered table differs from the old one in nothing but statistics in its parameters."""
    return _without_statistics(old) == _without_statistics(new)


def _without_statistics(table: Table) -> tuple[Any, ...]:
    descriptor = table.sd or StorageDescriptor()
    parameters = {
        key: value
        for key, value in (table.parameters or {}).items()
        if key.lower() not in _STATISTICS and not key.startswith("spark.sql.statistics.")
    }
    columns = [(each.name, each.type, each.comment or None) for each in descriptor.cols or ()]
    keys = [(each.name, each.type, each.comment or None) for each in table.partitionKeys or ()]
    form = (
        descriptor.inputFormat, descriptor.outputFormat, descriptor.serdeInfo, descriptor.parameters or None,
        bool(descriptor.compressed), bool(descriptor.storedAsSubDirectories), max(descriptor.numBuckets or 0, 0),
        descriptor.bucketCols or [], [(each.col, each.order) for each in descriptor.sortCols or ()],
        _skew(descriptor.skewedInfo),
    )  # fmt: skip
    return (
        (table.tableName or "").lower(), parameters, columns, keys, form, table.tableType, table.viewOriginalText,
        table.viewExpandedText, table.retention or 0,
    )  # fmt: skip


def _skew(skew: SkewedInfo | None) -> SkewedInfo:
    """How a table is skewed, in one form: clients send nothing, or empty lists, for a table that isn't."""
    skew = skew or SkewedInfo()
    return SkewedInfo(skew.skewedColNames or [], skew.skewedColValues or [], skew.skewedColValueLocationMaps or {})


@_special(_named)
def new_partitions(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """Rows are inserted; a partition outside of its table's directory needs the right to its place.

    One within may have a directory already, which is somebody else's.
    """
    bases: dict[Securable, str | None] = {}
    catalogs: list[str | None] = []
    for row in rows(need, arguments):
        catalogs = catalogs or [row.get("cat")]  # all are added in the catalog of the first
        object = table_object(row.values[0], row.values[1], catalogs[0])
        yield Action.INSERT, object
        places = [each for each in _partition_locations(asked, row.get("new")) if each]
        if places and object not in bases:
            table = _table(asked, object)
            bases[object] = None if table is None else _location(table.sd)
        outside = [each for each in places if not asked.places.lies_within(each, bases[object])]
        yield from asked.location(object, outside)
        yield from asked.directories(Action.INSERT, object, (each for each in places if each not in outside))


@_special(_named)
def partition_change(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """What an altered partition needs: its location and its flag are rights of their own."""
    for row in rows(need, arguments):
        object = table_object(row.values[0], row.values[1], row.get("cat"))
        yield Action.WRITE, object
        new: Partition | None = row.get("new")
        if new is None:
            continue
        values = row.get("old") or new.values
        if _renamed(new, row):
            # in the call's catalog, whatever the partition says of its own: there the service looks for it
            yield Action.INSERT, table_object(new.dbName, new.tableName, object.catalog)
        old = _partition(asked, object, values)
        before = None if old is None else _location(old.sd)
        yield from asked.directories(Action.WRITE, object, [before])
        usual = () if old is None else _places_of(asked, old.sd, old.parameters)
        yield from asked.location(object, _places_of(asked, new.sd, new.parameters), *usual)
        wanted = (new.parameters or {}).get("commit")
        if wanted is not None and old is not None and wanted.lower() != _flag(old):
            yield Action.COMMIT, object


def _renamed(new: Partition, row: Row) -> bool:
    """Whether a partition's own names are others than those of the call."""
    return (new.dbName is not None and new.dbName != row.values[0]) or (
        new.tableName is not None and new.tableName != row.values[1]
    )


def _flag(partition: Partition) -> str:
    return (partition.parameters or {}).get("commit", "true").lower()


def _partition_locations(asked: Asked, value: Any) -> Iterable[str | None]:
    """The locations of a partition, or of all in a specification of partitions."""
    if value is None:
        return
    if isinstance(value, Partition):
        yield from _places_of(asked, value.sd, value.parameters)
        return
    yield value.rootPath
    if value.sharedSDPartitionSpec is not None:
        shared = value.sharedSDPartitionSpec
        base = _location(shared.sd)
        yield base
        yield from _skewed_outside(asked, shared.sd)
        for each in shared.partitions or ():
            yield f"{base}{each.relativePath}" if base and each.relativePath else None
            yield from _places_of(asked, None, each.parameters)
    for each in (value.partitionList and value.partitionList.partitions) or ():
        yield from _places_of(asked, each.sd, each.parameters)


def _places_of(
    asked: Asked, descriptor: StorageDescriptor | None, parameters: Mapping[str, str] | None
) -> list[str | None]:
    """The places of a partition: its location, and where it lay before Hive archived it, which goes with it too."""
    places = [_location(descriptor), (parameters or {}).get("original_location")]
    return [*places, *_skewed_outside(asked, descriptor)]


def _location(descriptor: StorageDescriptor | None) -> str | None:
    return None if descriptor is None else descriptor.location


def locations_of(asked: Asked, descriptor: StorageDescriptor | None) -> list[str | None]:
    """The places of a table: its location, and the one that Spark reads a table of its own sources from."""
    serde = descriptor and descriptor.serdeInfo
    places = [_location(descriptor), ((serde and serde.parameters) or {}).get("path")]
    return [*places, *_skewed_outside(asked, descriptor)]


def _skewed_outside(asked: Asked, descriptor: StorageDescriptor | None) -> list[str]:
    """Where Hive reads the rows of frequent values, unless that is below the location."""
    skewed = descriptor and descriptor.skewedInfo
    base = _location(descriptor)
    places = ((skewed and skewed.skewedColValueLocationMaps) or {}).values()
    return [each for each in places if each and not asked.places.lies_within(each, base)]


def _table(asked: Asked, object: Securable) -> Table | None:
    try:
        return asked.call.metastore.tables.get(object.database, object.table, object.catalog)
    except NoSuchObjectException:
        return None


def _partition(asked: Asked, object: Securable, values: list[str] | None) -> Partition | None:
    try:
        return asked.call.metastore.partition_reads.get(
            Scope.UNCOMMITTED, object.database, object.table, values, object.catalog
        )
    except NoSuchObjectException:
        return None

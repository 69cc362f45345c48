"""What new and changed objects need beside the right to make or alter them: their places, and their owners.

Each check takes the value that a rule names, and yields what else is needed. `claim` makes the caller a new object's
owner.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from lake.protocol.hive import (
    Database,
    NoSuchObjectException,
    PrincipalPrivilegeSet,
    PrincipalType,
    StorageDescriptor,
    Table,
)
from metastore.api.rights.classification import Need
from metastore.api.rights.naming import Requirement, Row, rows, table_object
from metastore.api.rights.special import (
    SPECIAL,
    Asked,
    Special,
    altered_table,
    locations_of,
    metadata_outside,
    sources,
)
from metastore.services.access.rights import EVERYTHING, Action, Securable, database
from metastore.services.model import names as given

Check = Callable[[Asked, Any, Any], Iterator[Requirement]]


def new_catalog(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """Administrators place catalogs as they like, unless places are confined: then even they need the right."""
    if asked.places.confined:
        yield from asked.location(EVERYTHING, [value.locationUri])


def catalog_change(asked: Asked, value: Any, arguments: Any) -> Iterator[Requirement]:
    """As `new_catalog`, for another place than before."""
    if asked.places.confined:
        old = asked.call.metastore.catalogs.get(arguments.rqst.name)
        yield from asked.location(EVERYTHING, [value.locationUri], old.locationUri)


def new_database(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """A database in another place than the usual one needs the right to it."""
    name = given.database_name(getattr(value, "name", None) or getattr(value, "databaseName", None), value.catalogName)
    usual = asked.places.of_database(name.database)
    yield from asked.location(EVERYTHING, [value.locationUri, value.managedLocationUri], *usual)


def database_change(asked: Asked, value: Any, arguments: Any) -> Iterator[Requirement]:
    """Another place, or another owner, of a database is a right of its own."""
    request = getattr(arguments, "alterDbReq", None)
    name = given.database_name(arguments.dbname if request is None else request.oldDbName)
    old = _database(asked, name.database, name.catalog)
    if old is None or value is None:
        return
    object = database(name)
    yield from asked.location(
        object, [value.locationUri, value.managedLocationUri], old.locationUri, old.managedLocationUri
    )
    if (value.ownerName, value.ownerType or 1) != (old.ownerName, old.ownerType or 1):
        yield Action.GRANT, object._replace(granting="ALL")


def new_table(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """A table in another place than the usual one of its database needs the right to it, a view that to its sources."""
    name = given.table_name(value.dbName, value.tableName, getattr(value, "catName", None))
    home = _database(asked, name.database, name.catalog) or Database()
    usual = asked.places.of_table([home.locationUri, home.managedLocationUri], name.database, name.table)
    descriptor = getattr(value, "sd", None) or StorageDescriptor(location=getattr(value, "location", None))
    yield from asked.location(database(name.of_database), locations_of(asked, descriptor), *usual)
    if isinstance(value, Table):
        bases = [descriptor.location] if descriptor.location else usual
        yield from metadata_outside(asked, value, bases)
    yield from sources(getattr(value, "creationMetadata", None), name.catalog)


def committed_tables(asked: Asked, need: Need, arguments: Any) -> Iterator[Requirement]:
    """Each table of a commit needs what it would need alone. Callers get to own the new ones.

    Further places that a caller names are files that the server reads for it.
    """
    for row in rows(need, arguments):
        object = table_object(row.values[0], row.values[1], row.get("cat"))
        if row.get("expected") is None:
            yield Action.CREATE, database(object.of_database)
            yield from new_table(asked, row.get("new"), arguments)
            claim(asked, row.get("new"))
        else:
            yield from altered_table(asked, object, row.get("new"))
        home = _database(asked, object.database, object.catalog) or Database()
        usual = asked.places.of_table([home.locationUri, home.managedLocationUri], object.database, object.table)
        for place in row.get("places") or ():
            if not any(asked.places.lies_within(place, each) for each in usual):
                yield from asked.location(EVERYTHING, [place])


def _committed(row: Row) -> Iterator[Securable]:
    yield table_object(row.values[0], row.values[1], row.get("cat"))


SPECIAL[committed_tables.__name__] = Special(committed_tables, _committed)


def new_function(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """The files of a function are code that engines run: naming one needs the right to its place."""
    object = database(given.database_name(value.dbName, value.catName))
    yield from asked.location(object, [each.uri for each in value.resourceUris or ()])


def new_procedure(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """A procedure replaces one of its name, which is a change of the database."""
    with suppress(NoSuchObjectException):
        asked.call.metastore.procedures.get(value.catName, value.dbName, value.name)
        yield Action.ALTER, database(given.database_name(value.dbName, value.catName))


def new_package(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """As `new_procedure`."""
    with suppress(NoSuchObjectException):
        asked.call.metastore.procedures.get_package(value.catName, value.dbName, value.packageName)
        yield Action.ALTER, database(given.database_name(value.dbName, value.catName))


def imported(asked: Asked, value: Any, _: Any) -> Iterator[Requirement]:
    """Administrators import from any place, unless places are confined: then even they need the right to each."""
    if not asked.places.confined:
        return
    for catalog in value.catalogs or ():
        yield from asked.location(EVERYTHING, [catalog.locationUri])
    for each in value.databases or ():
        yield from asked.location(EVERYTHING, [each.locationUri, each.managedLocationUri])
    for function in value.functions or ():
        yield from asked.location(EVERYTHING, [resource.uri for resource in function.resourceUris or ()])
    for each in value.tables or ():
        yield from asked.location(EVERYTHING, locations_of(asked, each.sd))
        yield from metadata_outside(asked, each, [each.sd and each.sd.location])
    for each in value.partitions or ():
        yield from asked.location(EVERYTHING, locations_of(asked, each.sd))


def claim(asked: Asked, value: Any) -> None:
    """Makes the caller the owner of a new object, unless it names one of its own roles or groups."""
    of_table = hasattr(value, "owner")
    _grant_in_own_name(asked, getattr(value, "privileges", None))
    owner = value.owner if of_table else getattr(value, "ownerName", None)
    kind = getattr(value, "ownerType", None) or PrincipalType.USER
    own = {PrincipalType.ROLE: asked.roles, PrincipalType.GROUP: asked.caller.groups}.get(kind, (asked.caller.user,))
    if owner is not None and owner in own:
        return
    if of_table:
        value.owner = asked.caller.user
    elif hasattr(value, "ownerName"):
        value.ownerName = asked.caller.user
    if hasattr(value, "ownerType"):
        value.ownerType = PrincipalType.USER


def _grant_in_own_name(asked: Asked, privileges: PrincipalPrivilegeSet | None) -> None:
    """Grants that come along with a new object are the caller's, whomever they name."""
    if privileges is None:
        return
    for of_kind in (privileges.userPrivileges, privileges.groupPrivileges, privileges.rolePrivileges):
        for granted in (of_kind or {}).values():
            for each in granted:
                each.grantor, each.grantorType = asked.caller.user, PrincipalType.USER


def _database(asked: Asked, name: str, catalog: str) -> Database | None:
    try:
        return asked.call.metastore.databases.get(name, catalog)
    except NoSuchObjectException:
        return None


CHECKS: dict[str, Check] = {
    each.__name__: each
    for each in (
        new_catalog,
        catalog_change,
        new_database,
        database_change,
        new_table,
        new_function,
        new_procedure,
        new_package,
        imported,
    )
}
OWNED = frozenset({"new_database", "new_table", "new_function", "new_procedure", "new_package"})
"""The checks whose value is a new object, which gets the caller as its owner."""

"""Decides by the permissions of directories, as Hive's storage based authorization does.

Who may read a table's directory may read the table, who may write there may change it, and who may delete the
directory may drop it. What is new is decided by the directory that it comes into. Nothing is granted here: the storage
says who may do what.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence

from cachetools import TTLCache, cached

from lake.protocol.errors import UsageError
from metastore.services.access.caller import Caller
from metastore.services.access.kept_facts import KeptFacts
from metastore.services.access.rights import ANONYMOUS, Action, Decision, Kind, Securable
from metastore.services.access.sql_standard import SqlStandard
from metastore.store import Database
from metastore.store.access import locations as store
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName
from metastore.store.engine.read_set import recording
from metastore.warehouse import Warehouse, WarehouseError
from metastore.warehouse.locations import Location
from metastore.warehouse.permissions import READ, WRITE, FileUser, Permissions, file_user

USER_SECONDS = 10
"""How long the system's answer who somebody is, and in which groups, is kept."""

_READING = frozenset({Action.SEE, Action.LIST, Action.SELECT, Action.READ_UNCOMMITTED, Action.SUBSCRIBE})
_NOBODYS = {
    Action.GRANT: "rights are given in the storage, by chmod, chgrp or setfacl",
    Action.ADMIN: "only administrators may",
}
_MAKING = frozenset({Action.CREATE, Action.LOCATION})
_TAKING_PART = frozenset({Action.TAKE_PART, Action.GROUPS})


@cached(
    TTLCache(maxsize=10_000, ttl=USER_SECONDS),
    key=lambda caller: (caller.user, caller.groups),
    lock=threading.Lock(),
)
def user_of(caller: Caller) -> FileUser:
    """The user of the operating system that a caller is, in the system's groups and those of the login."""
    return file_user(caller.user, caller.groups)


class StoragePermissions:
    """An `Authorizer` by owners, modes and access control lists of local directories."""

    def __init__(self, database: Database, warehouse: Warehouse) -> None:
        """Raises UsageError for a warehouse on a storage whose permissions can't be looked at."""
        self._database = database
        self._warehouse = warehouse
        self._root = warehouse.database_location("default")
        self._facts = KeptFacts(database)
        self._roles = SqlStandard(database)
        if (why := _unfit(Location.parse(self._root))) is not None:
            raise UsageError(f"authorization = storage: {why}; use sql-standard or policy")

    def decide(self, caller: Caller, action: Action, object: Securable) -> Decision:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        return self.decide_all(caller, [(action, object)])[0]

    def decide_all(self, caller: Caller, wanted: Sequence[tuple[Action, Securable]]) -> list[Decision]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        self._facts.refresh()
        permissions = Permissions()
        user = user_of(caller)
        return [
            self._decide(permissions, caller, user, action, object, self._location(object)) for action, object in wanted
        ]

    def visible(self, caller: Caller, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """See `Authorizer`. Raises DatabaseUnavailable."""
        self._facts.refresh()
        permissions = Permissions()
        user = user_of(caller)
        tables = self._locations(objects)
        return [
            self._decide(
                permissions,
                caller,
                user,
                action,
                each,
                self._or_of_database(each, tables[each.of_database].get(each.table))
                if each.kind is Kind.TABLE
                else self._location(each),
            ).allowed
            for each in objects
        ]

    def roles(self, caller: Caller) -> frozenset[str]:
        """See `Authorizer`: those that the metastore keeps, for `allowed_locations`. Raises DatabaseUnavailable."""
        return self._roles.roles(caller)

    def trouble(self) -> None:
        """See `Authorizer`: there is nothing to read but the storage."""

    # -- decisions --------------------------------------------------------------------------------------------

    def _decide(
        self,
        permissions: Permissions,
        caller: Caller,
        user: FileUser,
        action: Action,
        object: Securable,
        location: str | None,
    ) -> Decision:
        """`location`: of the object; None if it isn't there, which is answered as if it were hidden."""
        if action in _NOBODYS:
            return Decision(False, _NOBODYS[action])
        if action in _TAKING_PART:
            return Decision(caller.user is not None, f"a name is enough, and this is {caller.user or ANONYMOUS}")
        if object.kind is Kind.CATALOG:
            return Decision(action is Action.SEE, "catalogs are no secret, and only administrators change them")
        if object.kind is Kind.ROLE or (object.kind is Kind.EVERYTHING and action not in _MAKING):
            return Decision(False, _NOBODYS[Action.ADMIN])
        if location is None:
            return Decision(False, f"{object} isn't there")
        if action not in _READING:  # whether the object is seen doesn't depend on the place that a call names
            location = object.place or location
        if action is Action.REMOVE_ROWS and object.partition is not None:
            return self._of_partition(permissions, user, object, location)
        if (why := self._refusal(permissions, user, action, location)) is not None:
            return Decision(False, why)
        return Decision(True, f"permissions of {location}")

    def _refusal(self, permissions: Permissions, user: FileUser, action: Action, location: str) -> str | None:
        try:
            place = self._warehouse.place(location)
        except WarehouseError as error:
            return str(error)
        if (why := _unfit(place)) is not None:
            return why
        path = place.path
        if action is Action.DROP:
            return permissions.refusal_to_delete(path, user)
        if action is Action.REMOVE_ROWS:
            return permissions.refusal_to_empty(path, user)
        return permissions.refusal(path, user, READ if action in _READING else WRITE)

    def _of_partition(self, permissions: Permissions, user: FileUser, object: Securable, of_table: str) -> Decision:
        """Whether a user may drop a partition: write in its table's directory, and delete its own."""
        values = object.partition
        assert values is not None
        table = object.of_table
        if (why := self._refusal(permissions, user, Action.WRITE, of_table)) is not None:
            return Decision(False, why)  # before anything is read that a missing table doesn't have
        location = self._fact((table, values), lambda tx: store.of_partition(tx, table, values))
        if location:
            why = self._refusal(permissions, user, Action.DROP, location)
        return Decision(why is None, why or f"permissions of {location or of_table}")

    # -- locations --------------------------------------------------------------------------------------------

    def _location(self, object: Securable) -> str | None:
        """Where an object lies; None if it isn't there. New databases come into the warehouse's root."""
        if object.kind is Kind.TABLE:
            table = object.of_table
            return self._or_of_database(object, self._fact(table, lambda tx: store.of_table(tx, table)))
        if object.kind is Kind.DATABASE:
            return self._location_of_database(object)
        return self._root

    def _or_of_database(self, object: Securable, location: str | None) -> str | None:
        """A table's location; its database's for one that has none, such as a view."""
        return self._location_of_database(object) if location == store.NOWHERE else location

    def _location_of_database(self, object: Securable) -> str | None:
        name = object.of_database
        return self._fact(name, lambda tx: store.of_database(tx, name))

    def _fact(self, key: Hashable, read: Callable[[Transaction], str | None]) -> str | None:
        return self._facts.get(key, read)

    def _locations(self, objects: Sequence[Securable]) -> Mapping[DatabaseName, Mapping[str, str]]:
        """Where many tables lie, in one look at each database."""
        wanted: dict[DatabaseName, set[str]] = {}
        for each in objects:
            if each.kind is Kind.TABLE:
                wanted.setdefault(each.of_database, set()).add(each.table)
        if not wanted:
            return {}
        with recording(), self._database.read() as tx:  # recorded apart: lists aren't kept with it
            return {name: store.of_tables(tx, name, names) for name, names in wanted.items()}


def _unfit(place: Location) -> str | None:
    """Why the permissions of a location can't be looked at; None if they can."""
    if place.scheme in ("", "file"):
        return None
    return f"permissions of {place.scheme}: locations can't be looked at, only those of local file systems"

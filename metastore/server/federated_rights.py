"""The rights of a front's own: who may do what is decided before a request goes to a backend.

The rules are those of an ordinary server (`metastore.api.rights`). What they look up is read at the backends, on behalf
of the caller. Objects have the front's names.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    GetPackageRequest,
    GetTableRequest,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    NotificationEvent,
    StoredProcedureRequest,
    UnknownDBException,
    UnknownTableException,
)
from lake.protocol.method import Method
from lake.protocol.services import OWN_METHODS
from metastore.api.rights.guard import Guard
from metastore.federation import messages
from metastore.federation.front import Request
from metastore.federation.names import DEFAULT_CATALOG, Name
from metastore.services.access.caller import Caller
from metastore.services.access.cedar_policy import PolicyOfNames
from metastore.services.access.control import AccessControl
from metastore.services.access.locations import AllowedLocations, AllowedRoot
from metastore.services.access.places import Places
from metastore.services.access.python_authorizer import PythonAuthorizer
from metastore.services.access.rights import EVERYTHING, Action, Authorizer, Securable, database, table
from metastore.services.model import names as given
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.engine.names import TableName
from metastore.warehouse import Warehouse, WarehouseError
from metastore.warehouse.locations import Location

_MISSING = (NoSuchObjectException, UnknownDBException, UnknownTableException)


class Gone(Exception):
    """Something isn't there that a rule has to know before the call is sent. `error`: what the caller gets."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Places(Places):
    """Those of backends: in which directories they put new databases, and where a path without a scheme leads, is not
    known."""

    def needs_right(
        self, location: str | None, object: Securable, roles: Collection[str], usual: Iterable[str | None]
    ) -> bool:
        usual = list(usual)
        if location and location not in usual and not _has_scheme(location):
            return True  # the front would take it for a local one, and the backend for one of its own file system
        return super().needs_right(location, object, roles, usual)

    def of_table(self, database_locations: Iterable[str | None], database: str, table: str) -> list[str]:
        return [self._warehouse.table_location(each, table) for each in database_locations if each]

    def of_database(self, database: str) -> list[str]:
        return []


def _has_scheme(location: str) -> bool:
    try:
        return bool(Location.parse(location).scheme)
    except WarehouseError:
        return True  # the error is a caller's to see


def access_control(settings: Settings) -> AccessControl | None:
    """Who decides, by the settings of a front; None if everybody may do everything. Raises UsageError."""
    if settings.authorization == "none":
        return None
    authorizer: Authorizer
    if settings.authorization == "policy":
        assert settings.policy_file is not None, "the settings see to that"
        authorizer = PolicyOfNames(settings.policy_file)
    else:
        authorizer = PythonAuthorizer(settings.authorization.removeprefix("python:"), settings.authorization_seconds)
    allowed = AllowedLocations([AllowedRoot.parse(each) for each in settings.allowed_locations])
    places = _Places(Warehouse(settings.warehouse_dir), allowed, confined=settings.only_allowed_locations)
    return AccessControl(authorizer, places, frozenset(settings.admins), settings.trust_unproven_users)


def guard(settings: Settings) -> tuple[Guard | None, AccessControl | None]:
    """What decides about calls, and by whom. Raises UsageError."""
    control = access_control(settings)
    return (None, None) if control is None else (Guard(control), control)


def objects(request: Request, method: Method) -> Metastore:
    """What the rule of a method looks up, in place of an ordinary server's services: no more than rules use.

    A rule that needs more fails, and the call with it. A rule needs less for what isn't there; by the time that the
    call arrives it may be there. So that is an error (`Gone`), but for methods of lake metastores.
    """

    def ask(name: str, *values: Any) -> Any:
        try:
            found = request.call(name, *values)
        except _MISSING as error:
            raise NoSuchObjectException(error.message) from None
        if found is None:
            raise NoSuchObjectException(f"no answer to {name}")
        return found

    def existing(name: str, *values: Any) -> Any:
        try:
            return ask(name, *values)
        except NoSuchObjectException as error:
            if method.name.startswith(OWN_METHODS):
                raise
            raise Gone(_as_declared(method, error)) from None

    def spelled(catalog: str | None, database: str) -> str:
        return Name(DEFAULT_CATALOG if catalog is None else catalog, database).spelled

    def get_table(database: str, name: str, catalog: str | None = None) -> Any:
        try:
            return existing("get_table", spelled(catalog, database), name)
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
        return existing("get_table_req", GetTableRequest(database, name, catName=catalog)).table  # Hive 4.1

    def get_partition(_: Any, database: str, name: str, values: list[str] | None, catalog: str | None = None) -> Any:
        # Also one that is uncommitted, which other reads of lake metastores hide.
        return existing("get_partition_with_auth", spelled(catalog, database), name, values, "", [])

    def no_ids(names: Collection[TableName]) -> Mapping[TableName, int]:
        return {}

    found = SimpleNamespace(
        databases=SimpleNamespace(get=lambda name, catalog=None: existing("get_database", spelled(catalog, name))),
        tables=SimpleNamespace(get=get_table, ids=no_ids),
        partition_reads=SimpleNamespace(get=get_partition),
        procedures=SimpleNamespace(
            get=lambda catalog, database, name: ask(
                "get_stored_procedure", StoredProcedureRequest(catalog, database, name)
            ),
            get_package=lambda catalog, database, name: ask("find_package", GetPackageRequest(catalog, database, name)),
        ),
    )
    return cast(Metastore, found)


def _as_declared(method: Method, error: NoSuchObjectException) -> Exception:
    """An error in a form that the callers of a method understand."""
    for cls in (NoSuchObjectException, InvalidOperationException, InvalidObjectException, MetaException):
        if cls in method.exceptions:
            return cls(message=error.message)
    return error


class Limited:
    """A read with a limit, whose hidden items have to be left out before it counts.

    `lift` takes the limit out of the arguments, and returns it. `items`: where in the answer the items are, and how
    they are called; None for an answer that is a list of names.
    """

    def __init__(self, path: tuple[str, ...], none: int | None, field: str | None, name: str | None) -> None:
        self._path = path
        self._none = none
        self._field = field
        self._name = name

    def lift(self, arguments: Any) -> int | None:
        for name in self._path[:-1]:
            arguments = getattr(arguments, name)
        if arguments is None:
            return None
        limit: int | None = getattr(arguments, self._path[-1])
        setattr(arguments, self._path[-1], self._none)
        return limit if limit is not None and limit >= 0 else None

    def cut(self, value: Any, shown: Callable[[Sequence[Any]], list[bool]], limit: int | None) -> Any:
        """The answer to the call without a limit with what its caller sees, up to the limit."""
        items = (value if self._field is None else getattr(value, self._field)) or []
        about = items if self._name is None else [getattr(each, self._name) for each in items]
        kept = [each for each, sees in zip(items, shown(about), strict=True) if sees][:limit]
        if self._field is None:
            return kept
        return value.replace(**{self._field: kept})


LIMITED: dict[str, Limited] = {
    "get_table_names_by_filter": Limited(("max_tables",), -1, None, None),
    "get_tables_ext": Limited(("req", "limit"), None, None, "tblName"),
    "show_compact": Limited(("rqst", "limit"), None, "compacts", None),
}


class Events:
    """Which notifications a caller sees: those about what it may subscribe to, all of it if one names several."""

    def __init__(self, control: AccessControl, caller: Caller) -> None:
        self._control = control
        self._caller = control.acting(caller)

    @property
    def sees_all(self) -> bool:
        return self._control.is_admin(self._caller)

    def shown(self, events: Sequence[NotificationEvent]) -> list[bool]:
        named = [list(_named(each)) for each in events]
        distinct = list(dict.fromkeys(object for some in named for object in some)) or [EVERYTHING]
        wanted = [(Action.SUBSCRIBE, each) for each in distinct]
        decided = self._control.authorizer.decide_all(self._caller, wanted)
        allowed = {each for each, made in zip(distinct, decided, strict=True) if made.allowed}
        return [allowed.issuperset(some) for some in named]


def _named(event: NotificationEvent) -> Iterator[Securable]:
    """What an event is about; everything, for one whose message can't be read."""
    if not event.dbName:
        yield EVERYTHING
        return
    try:
        others = messages.tables(event)
    except messages.NotUnderstood:
        yield EVERYTHING
        return
    for where, name in {(event.dbName, event.tableName or ""), *others}:
        of = given.database_name(where, event.catName)
        yield table(TableName(of.catalog, of.database, given.plain_table(name))) if name else database(of)

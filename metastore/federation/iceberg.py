"""Iceberg's tables at a backend, for the REST catalog: what its calls mean where the backend knows only Hive's.

A commit compares and sets. The backend's own check of the expected metadata file does it where there is one, as in Hive
4 and lake metastores. Older Hives ignore what is expected, so the commit holds the lock that HiveCatalog takes, too,
and looks again under it. A file that isn't known to be unused stays: an outcome that isn't known is said to be so.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from thrift.Thrift import TApplicationException, TException

from lake.protocol.codec import binary
from lake.protocol.errors import NOTHING_DONE, OUTCOME_UNKNOWN
from lake.protocol.hive import (
    AlreadyExistsException,
    AlterDatabaseRequest,
    AlterTableRequest,
    AlterTableResponse,
    CreateDatabaseRequest,
    Database,
    DropDatabaseRequest,
    EnvironmentContext,
    GetDatabaseRequest,
    GetTableRequest,
    GetTablesRequest,
    HeartbeatRequest,
    InvalidOperationException,
    LockState,
    MetaException,
    NoSuchObjectException,
    Table,
    UnlockRequest,
)
from lake.protocol.lake import CommitTablesRequest, IcebergNames, TablesNotCommitted
from lake.protocol.method import Method
from lake.protocol.services import METHODS
from lake.protocol.struct import ExceptionStruct, Struct
from metastore.federation.errors import BackendError, Unknown
from metastore.federation.front import Request, value_of
from metastore.federation.kinds import value_of_call
from metastore.federation.names import DEFAULT_CATALOG
from metastore.federation.routing import Refused, check_writable
from metastore.federation.table_locks import lock_request, waited_for
from metastore.federation.translation import asked as what_is_asked
from metastore.federation.translation import parsed

Answered = Callable[..., Any]
ANSWERED: dict[str, Answered] = {}
"""By method what answers it, `function(request, *arguments)`, on connections of the REST catalog."""

_ALTER = "alter_table_with_environment_context"
NO_COMPARISON = ("Comparisons between 'CLOB", "ORA-00932")
"""How Hive 4 fails on Derby and Oracle whenever a value is expected: these don't compare the texts that it compares."""

_METADATA = "metadata_location"
_DDL_TIME = "transient_lastDdlTime"
_TYPE, _TABLE, _VIEW = "table_type", "ICEBERG", "ICEBERG-VIEW"
_MODIFIED = "The table has been modified."
_AT_ONCE = 500  # tables
_LOOKS = (0.05, 0.1, 0.2)  # seconds between looks at a lock that others hold; who commits tries again for longer
_HEARTBEAT_SECONDS = 60.0  # Hive forgets a lock after 300 s without one
_LOCKED_SECONDS = 120.0  # after so long under a lock nothing is begun any more

log = structlog.get_logger(__name__)


def _answers(function: Answered) -> Answered:
    ANSWERED[function.__name__] = function
    return function


# -- databases, and lists --------------------------------------------------------------------------------------


@_answers
def get_database_req(request: Request, asked: GetDatabaseRequest) -> Database:
    found: Database = request.call("get_database", _spelled(asked.catalogName, asked.name))
    return found


@_answers
def create_database_req(request: Request, asked: CreateDatabaseRequest) -> None:
    request.call(
        "create_database",
        Database(
            name=asked.databaseName,
            description=asked.description,
            locationUri=asked.locationUri,
            parameters=asked.parameters or {},
            ownerName=asked.ownerName,
            ownerType=asked.ownerType,
            catalogName=asked.catalogName,
        ),
    )


@_answers
def alter_database_req(request: Request, asked: AlterDatabaseRequest) -> None:
    request.call("alter_database", _spelled(None, asked.oldDbName), asked.newDb)


@_answers
def drop_database_req(request: Request, asked: DropDatabaseRequest) -> None:
    request.call("drop_database", _spelled(asked.catalogName, asked.name), bool(asked.deleteData), bool(asked.cascade))


@_answers
def lake_list_iceberg(request: Request, database: str) -> IcebergNames:
    request.call("get_database", database)
    names = value_of_call(request, "get_all_tables", database) or []
    name = parsed(None, None, database)
    catalog = None if name.catalog == DEFAULT_CATALOG else name.catalog
    found: dict[str, list[str]] = {_TABLE: [], _VIEW: []}
    for start in range(0, len(names), _AT_ONCE):
        asked = GetTablesRequest(name.database, names[start : start + _AT_ONCE], catName=catalog)
        for each in value_of_call(request, "get_table_objects_by_name_req", asked).tables or ():  # Hive 4 has no other
            kind = (each.parameters or {}).get(_TYPE, "").upper()
            if kind in found and (each.parameters or {}).get(_METADATA):
                found[kind].append(each.tableName)
    return IcebergNames(sorted(found[_TABLE]), sorted(found[_VIEW]), [], False)


def _arguments(method: Method, *values: Any) -> Struct:
    cls: Any = method.args
    found: Struct = cls(*values)
    return found


# -- commits ---------------------------------------------------------------------------------------------------


@_answers
def lake_commit_tables(request: Request, asked: CommitTablesRequest) -> None:
    """Raises TablesNotCommitted if nothing was done, TApplicationException if nobody knows."""
    commits = asked.commits or []
    if len(commits) != 1:
        raise Refused("a front commits one table at a time: metastores can't change several in one transaction")
    commit = commits[0]
    new = commit.table
    assert new is not None
    found, backend = _found(request, new)
    method = METHODS["alter_table"]
    named = what_is_asked(_arguments(method, new.dbName, new.tableName, new))
    check_writable(request.mapping, method.name, named, backend)
    expected = commit.expectedMetadataLocation
    if expected is None:
        _create(request, found, new, check_only=bool(asked.checkOnly), alone=bool(asked.alone))
        return
    _check(found, new, expected)
    if not asked.checkOnly:
        with _as_refusals(new):
            _alter(request, backend, new, new, expected)


@_answers
def alter_table_req(request: Request, asked: AlterTableRequest) -> AlterTableResponse:
    """Renames a table whose metadata is the expected one."""
    new = asked.table
    if new is None or asked.expectedParameterKey != _METADATA or asked.expectedParameterValue is None:
        raise Refused("alter_table_req of the REST catalog names the metadata that is expected")
    old = new.replace(catName=asked.catName, dbName=asked.dbName, tableName=asked.tableName)
    _, backend = _found(request, old)
    try:
        _alter(request, backend, old, new, asked.expectedParameterValue)
    except TablesNotCommitted as refused:
        if refused.reason == "missing":
            raise InvalidOperationException(f"{old.dbName}.{old.tableName} table not found") from None
        later = f". {NOTHING_DONE} later" if refused.reason in ("busy", "locked") else ""
        raise MetaException(f"{refused.message}{later}") from None
    return AlterTableResponse()


def _create(request: Request, found: Table | None, new: Table, *, check_only: bool, alone: bool) -> None:
    if found is not None:
        raise _taken(new)
    if alone:
        raise TablesNotCommitted("a front doesn't know what else lies at a place", "shared", 0)
    if check_only:
        return
    try:
        with _as_refusals(new):
            request.call("create_table", new)
    except AlreadyExistsException:
        raise _taken(new) from None
    except (MetaException, InvalidOperationException):  # a listener may have failed after the table was made
        if not _is_now(request, new):
            raise


def _taken(new: Table) -> TablesNotCommitted:
    return TablesNotCommitted(f"{new.dbName}.{new.tableName} already exists", "exists", 0)


def _found(request: Request, named: Table) -> tuple[Table | None, str]:
    """A table as it is stored, by the latest state, and which backend has it."""
    method = METHODS["get_table_req"]
    asked = GetTableRequest(dbName=named.dbName, tblName=named.tableName, catName=named.catName)
    arguments = _arguments(method, asked)
    reply = request.route(method, arguments, binary.encode(arguments), current=True)
    try:
        return value_of(method.name, reply.kind, b"".join(reply.body)).table, reply.backend
    except NoSuchObjectException:
        return None, reply.backend


def _check(found: Table | None, new: Table, expected: str) -> None:
    """Raises TablesNotCommitted unless a table is as it is expected to be."""
    name = f"{new.dbName}.{new.tableName}"
    if found is None:
        raise TablesNotCommitted(f"{name} table not found", "missing", 0)
    now = found.parameters or {}
    if (actual := now.get(_METADATA)) != expected:
        text = f"{_MODIFIED} The parameter value for key '{_METADATA}' is '{actual}'. The expected was '{expected}'"
        raise TablesNotCommitted(text, "changed", 0)
    if now.get(_DDL_TIME) != (new.parameters or {}).get(_DDL_TIME):
        raise TablesNotCommitted(f"{_MODIFIED} Its {_DDL_TIME} is another", "changed", 0)


def _alter(request: Request, backend: str, old: Table, new: Table, expected: str) -> None:
    """Alters a table if its metadata is the expected one. Raises TablesNotCommitted, TApplicationException."""
    context = {
        "expected_parameter_key": _METADATA,
        "expected_parameter_value": expected,
        "DO_NOT_UPDATE_STATS": "true",
    }
    with _locked(request, backend, old) as lock:
        found, where = _found(request, old)
        if where != backend:
            raise TablesNotCommitted(f"{old.dbName}.{old.tableName} has moved to backend {where}", "changed", 0)
        _check(found, old, expected)
        lock.check_time()
        where = _spelled(old.catName, old.dbName)
        try:
            try:
                request.call(_ALTER, where, old.tableName, new, EnvironmentContext(context))
            except MetaException as error:
                if not any(each in str(error.message) for each in NO_COMPARISON):
                    raise
                # So nobody commits there but under the lock.
                del context["expected_parameter_key"], context["expected_parameter_value"]
                request.call(_ALTER, where, old.tableName, new, EnvironmentContext(context))
        except Unknown as error:
            lock.keep()  # it may still be done: until the lock is forgotten nobody else begins
            raise _unknown(str(error)) from None
        except (ExceptionStruct, TApplicationException) as error:
            if (text := str(getattr(error, "message", ""))).startswith(_MODIFIED):
                raise TablesNotCommitted(text, "changed", 0) from None
            # A listener may fail after the change.
            if _is_now(request, new):
                return
            raise


def _is_now(request: Request, new: Table) -> bool:
    """Whether a table has the metadata that was to be set. Raises TApplicationException if nobody knows.

    Others may have changed it since, so only the metadata of before would say for certain that nothing was done.
    """
    try:
        found, _ = _found(request, new)
    except (BackendError, TException) as error:
        raise _unknown(str(error)) from None
    wanted = new.parameters or {}
    has = (found.parameters or {}) if found is not None else {}
    if has.get(_METADATA) == wanted.get(_METADATA):
        return True
    if found is not None and has.get(_METADATA) != wanted.get("previous_metadata_location"):
        raise _unknown("the table has other metadata by now")
    return False


def _unknown(text: str) -> TApplicationException:
    return TApplicationException(TApplicationException.INTERNAL_ERROR, f"{OUTCOME_UNKNOWN}: look at the table. {text}")


@contextmanager
def _as_refusals(new: Table) -> Iterator[None]:
    """What fails before anything is done is a refusal that may be repeated; what may have been done, no refusal."""
    try:
        yield
    except Unknown as error:
        raise _unknown(str(error)) from None
    except BackendError as error:
        raise TablesNotCommitted(f"{new.dbName}.{new.tableName}: {error}", "busy", 0) from None


# -- locks -----------------------------------------------------------------------------------------------------


class _Lock:
    """An exclusive lock on a table at a backend, kept up as long as it is held."""

    def __init__(self, request: Request, backend: str, number: int) -> None:
        self._request = request
        self._backend = backend
        self._number = number
        self._since = time.monotonic()
        self._ended = threading.Event()
        self._keep = False
        threading.Thread(target=self._beat, name="lock of a table", daemon=True).start()

    def check_time(self) -> None:
        """Raises TablesNotCommitted if the lock may be forgotten before a change is made."""
        if time.monotonic() - self._since > _LOCKED_SECONDS:
            raise TablesNotCommitted(f"backend {self._backend} is too slow", "busy", 0)

    def keep(self) -> None:
        """The lock isn't given back: the backend forgets it."""
        self._keep = True

    def end(self) -> None:
        self._ended.set()
        if not self._keep:
            _unlock(self._request, self._backend, self._number)

    def _beat(self) -> None:
        while not self._ended.wait(_HEARTBEAT_SECONDS):
            with suppress(BackendError, TException, MetaException):
                self._request.ask(self._backend, "heartbeat", HeartbeatRequest(lockid=self._number), resend=False)


def _unlock(request: Request, backend: str, number: int) -> None:
    try:
        request.ask(backend, "unlock", UnlockRequest(number), resend=False)
    except (BackendError, TException, MetaException) as error:
        log.warning("a lock stays until its backend forgets it", backend=backend, lock=number, reason=str(error))


@contextmanager
def _locked(request: Request, backend: str, named: Table) -> Iterator[_Lock]:
    """Holds the lock that HiveCatalog's writers take, too. Raises TablesNotCommitted if others hold it."""
    there = request.mapping.at(backend, parsed(named.catName, None, named.dbName or ""))
    if there is None:
        raise TablesNotCommitted(f"{named.dbName}.{named.tableName} table not found", "missing", 0)
    wanted = lock_request(there.database, named.tableName, request.who.identity.user or "front", "iceberg-rest")
    try:
        answer = request.ask(backend, "lock", wanted, resend=False)
    except (MetaException, TApplicationException) as error:
        raise TablesNotCommitted(f"backend {backend} gives no lock on the table: {error.message}", "busy", 0) from None
    try:
        state = waited_for(answer, lambda asked: request.ask(backend, "check_lock", asked, resend=False), _LOOKS)
    except BaseException:
        _unlock(request, backend, answer.lockid)
        raise
    if state != LockState.ACQUIRED:
        _unlock(request, backend, answer.lockid)
        raise TablesNotCommitted(f"{named.dbName}.{named.tableName} is locked by somebody else", "locked", 0)
    lock = _Lock(request, backend, answer.lockid)
    try:
        yield lock
    finally:
        lock.end()


def _spelled(catalog: str | None, database: str | None) -> str:
    return parsed(catalog, None, database or "").spelled

"""Iceberg's tables of a database that has moved: at the metastore that is left their pointers lead nowhere.

Otherwise an engine that goes past the front could commit there while others commit here, and each would lose the
other's rows. HiveCatalog compares the table's pointer with the metadata that it has read: under a lock, or by what it
expects of the metastore. So what was read before can't be committed any more, and what reads the table now finds no
file. The name of that file says where the table is, since every engine's error has it.
"""

import getpass
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from thrift.Thrift import TApplicationException

from lake.protocol.errors import UserError
from lake.protocol.hive import (
    EnvironmentContext,
    LockState,
    MetaException,
    ShowLocksRequest,
    Table,
    UnlockRequest,
)
from lake.protocol.struct import ExceptionStruct
from metastore.federation.iceberg import NO_COMPARISON
from metastore.federation.table_locks import lock_request, waited_for
from metastore.iceberg.hive_parameters import METADATA, TABLE, VIEW, is_iceberg
from metastore.migration.importing import MOVED_FROM, batches
from metastore.migration.objects import DatabaseKey, TableKey
from metastore.migration.source import error_text
from metastore.migration.thrift_source import ThriftSource

LOCK_SECONDS = 30.0
"""How long is waited for who commits just now."""


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class Committed(UserError):
    """Somebody commits a table at the metastore that is left."""


def is_moved(table: Table) -> bool:
    """Whether a table has a pointer that leads nowhere."""
    return MOVED_FROM in (table.parameters or {})


def with_pointer_of(value: Table, moved: Table) -> Table:
    """A table that stays moved as another one is."""
    parameters, own = dict(value.parameters or {}), moved.parameters or {}
    parameters[MOVED_FROM] = parameters.get(METADATA, "")
    parameters[METADATA] = own.get(METADATA, "")
    return value.replace(parameters=parameters)


def of_iceberg(here: ThriftSource, key: DatabaseKey) -> Iterator[Table]:
    """Iceberg's tables and views of a database here."""
    for names in batches(here.tables(key)):
        found = here.call("get_table_objects_by_name", key.on_the_wire, names)
        yield from (each for each in found if is_iceberg(each, TABLE) or is_iceberg(each, VIEW))


class Pointers:
    """Those of the metastore that is left. `address`: where clients find the tables."""

    def __init__(self, old: ThriftSource, here: ThriftSource, address: str) -> None:
        self._old = old
        self._here = here
        self._address = _NOT_PLAIN.sub("-", address.partition("://")[2] or address)

    def block(self, key: DatabaseKey, here: DatabaseKey) -> int:
        """Has the pointers of a database, by its name there and here, lead nowhere. How many there are.

        Tables are those that are here, where they have to have the same pointers. May be repeated. Raises Committed,
        SourceFailed.
        """
        return sum(self._blocked(TableKey(*key, own.tableName or ""), own) for own in of_iceberg(self._here, here))

    def restore(self, key: DatabaseKey) -> None:
        """Takes that back. May be repeated. Raises SourceFailed, and what the metastore raises."""
        for name in self._old.tables(key):
            self._old.insist(partial(self._restore, TableKey(*key, name)))

    def _restore(self, key: TableKey) -> None:
        parts = self._old.bare_table(key)
        if parts is not None and is_moved(parts.table):
            parameters = dict(parts.table.parameters or {})
            parameters[METADATA] = parameters.pop(MOVED_FROM)
            self._alter(key, parts.table.replace(parameters=parameters), {})

    def count(self, key: DatabaseKey) -> int:
        """How many pointers of a database there lead nowhere. Raises SourceFailed."""
        found = (self._old.bare_table(TableKey(*key, name)) for name in self._old.tables(key))
        return sum(parts is not None and is_moved(parts.table) for parts in found)

    def _blocked(self, key: TableKey, own: Table) -> bool:
        try:
            return self._old.insist(partial(self._block, key, own))
        except (MetaException, TApplicationException) as error:
            raise Committed(f"{key} can't be closed there: {error_text(error)}") from None

    def _block(self, key: TableKey, own: Table) -> bool:
        with self._locked(key):
            parts = self._old.bare_table(key)
            if parts is None:
                raise Committed(f"{key} isn't there any more: somebody has written it past the front")
            if is_moved(parts.table):
                return True
            location = (own.parameters or {}).get(METADATA, "")
            if (parts.table.parameters or {}).get(METADATA) != location:
                raise Committed(f"{key} was committed there past the front")
            new = {**(parts.table.parameters or {}), MOVED_FROM: location, METADATA: self._nowhere(location)}
            expected = {"expected_parameter_key": METADATA, "expected_parameter_value": location}
            value = parts.table.replace(parameters=new)
            try:
                self._alter(key, value, expected)
            except MetaException as error:
                if not any(each in str(error.message) for each in NO_COMPARISON):
                    raise
                self._alter(key, value, {})  # so nobody commits there but under the lock
        return True

    def _nowhere(self, location: str) -> str:
        """A file that isn't there, beside the metadata, so that all engines look for it in their way."""
        return f"{location.rpartition('/')[0]}/this-table-has-moved-to-{self._address}.metadata.json"

    def _alter(self, key: TableKey, value: Table, expected: dict[str, str]) -> None:
        context = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true", **expected})
        home = key.of_database.on_the_wire
        self._old.call("alter_table_with_environment_context", home, key.table, value, context)

    @contextmanager
    def _locked(self, key: TableKey) -> Iterator[None]:
        """Holds the lock that HiveCatalog takes. Where the metastore has none, nobody commits under it."""
        agent = f"migrate-{secrets.token_hex(8)}"
        try:
            answer = self._old.call("lock", lock_request(key.database, key.table, getpass.getuser(), agent))
        except (ExceptionStruct, TApplicationException):
            if self._old.positions().transaction is not None:  # it keeps locks, too
                self._release(key, agent, None)
                raise
            yield
            return
        try:
            if answer.state == LockState.WAITING:
                self._release(key, agent, answer.lockid)
            state = waited_for(answer, lambda asked: self._old.call("check_lock", asked), _looks())
            if state == LockState.WAITING:
                raise Committed(f"{key} is locked there for longer than {LOCK_SECONDS:g} s: see who commits it")
            if state != LockState.ACQUIRED:
                raise Committed(f"{key} couldn't be locked there, since its lock was aborted: repeat this")
            yield
        finally:
            with suppress(ExceptionStruct, TApplicationException):
                self._old.call("unlock", UnlockRequest(answer.lockid))

    def _release(self, key: TableKey, agent: str, kept: int | None) -> None:
        """Ends locks of ours but one: of a request whose answer was lost nobody knows the number."""
        request = ShowLocksRequest(dbname=key.database, tablename=key.table)
        for each in self._old.call("show_locks", request).locks or ():
            if each.agentInfo == agent and each.lockid != kept:
                self._old.call("unlock", UnlockRequest(each.lockid))


def _looks() -> Iterator[float]:
    """Seconds between looks at a lock."""
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() <= deadline:
        yield 0.1

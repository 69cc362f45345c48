"""Tables of other formats under the names by which Iceberg's HiveCatalog reads them: `t@iceberg` is `t`."""

import json
import threading
from typing import Any, cast

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetDatabaseRequest, MetaException, NoSuchObjectException, Table
from lake.protocol.services import METHODS
from metastore.api.methods import Encoded
from metastore.api.session import Session
from metastore.iceberg import hive_parameters
from metastore.iceberg.errors import RestError
from metastore.iceberg.shown.exposed import ShownTables, reader_of
from metastore.iceberg.shown.footer_cache import Footers
from metastore.iceberg.shown.writing import Memory
from metastore.server.dispatch import Dispatcher
from metastore.services.model.names import ICEBERG
from metastore.settings import Settings
from metastore.warehouse import Warehouse

_AT_ONCE = 2  # in one process: each may take half a minute, and the threads answer other calls as well
_WAIT_SECONDS = 2.0  # on a thread that others need


class IcebergNames:
    """Answers who asks for a table by its name as Iceberg's. Thread-safe."""

    def __init__(self, dispatcher: Dispatcher, settings: Settings) -> None:
        self._dispatcher = dispatcher
        self._warehouse = Warehouse(
            settings.warehouse_dir, settings.warehouse_external_dir, delete_roots=settings.delete_roots
        )
        self._memory = Memory(Footers(self._warehouse))
        self._by_default = settings.iceberg_expose
        self._places = threading.BoundedSemaphore(_AT_ONCE)

    def show(self, session: Session, table: Table) -> Table:
        """A table as HiveCatalog would have stored it. The files that describe it are written before.

        Raises NoSuchObjectException for one that isn't shown, MetaException for one that can't be shown now.
        """
        client = cast(ThriftClient, _OwnCalls(self._dispatcher, session))
        shown = ShownTables(client, self._warehouse, self._memory, reader_of(session.user), by_default=self._by_default)
        request = GetDatabaseRequest(name=table.dbName, catalogName=table.catName)
        if not shown.is_shown(table, client.get_database_req(request).parameters or {}):
            raise NoSuchObjectException(f"{table.dbName}.{table.tableName}{ICEBERG} table not found")
        if not self._places.acquire(timeout=_WAIT_SECONDS):
            raise MetaException("the server is busy with other tables that are shown as Iceberg: try again")
        try:
            made = shown.show(table)
        except RestError as error:
            kind = NoSuchObjectException if error.status == 404 else MetaException
            raise kind(str(error)) from None
        finally:
            self._places.release()
        name = table.catName or "", table.dbName or "", f"{table.tableName}{ICEBERG}"
        found = hive_parameters.table(None, name, json.loads(made.content), made.location, set())
        return found.replace(owner=table.owner, ownerType=table.ownerType, createTime=table.createTime, id=table.id)


class _OwnCalls:
    """Calls of this process's own methods on behalf of a session, with its rights, as a client would make them."""

    def __init__(self, dispatcher: Dispatcher, session: Session) -> None:
        self._dispatcher = dispatcher
        self._session = session

    def __getattr__(self, name: str) -> Any:
        method = METHODS[name]

        def call(*values: Any) -> Any:
            arguments = method.args()
            for field, value in zip(method.argument_names, values, strict=False):
                setattr(arguments, field, value)
            found = self._dispatcher.value(self._session, method, arguments)
            if isinstance(found, Encoded):
                raise TypeError(f"{name} has an encoded answer")
            return found

        return call

"""Which tables of other formats are shown to Iceberg's readers.

A snapshot of Iceberg's is a position of a lake table's timeline, or the files of a Hive table.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.commit_mode import UNCOMMITTED_NAME
from lake.protocol.formats.spark_schema import PROVIDER
from lake.protocol.hive import InvalidOperationException, Table
from lake.protocol.lake import LeaseRequest, SnapshotGone, TableReference
from metastore.iceberg.errors import RestError, bad_request, no_table, unavailable
from metastore.iceberg.shown.footers import ORC, PARQUET
from metastore.iceberg.shown.hive_tables import HiveTable
from metastore.iceberg.shown.lake_tables import LakeTable
from metastore.iceberg.shown.writing import LEASE_SECONDS, Memory, Shown
from metastore.warehouse import Warehouse

EXPOSE = "iceberg.expose"
"""The property of a table or a database; a table's own counts for more."""

ONLY = "only tables of Parquet and ORC files are shown, without Hive's transactions, of no other system"
"""Why some tables can't be shown."""

_TRIES = 3
_FORMATS = {"parquet": PARQUET, "orc": ORC}
_OTHERS = ("hudi", "hoodie", "iceberg", "delta", "paimon")
_TABLES = ("MANAGED_TABLE", "EXTERNAL_TABLE")


def format_of(table: Table) -> str | None:
    """The format of a table's files, if it can be shown as Iceberg: PARQUET, ORC."""
    parameters = table.parameters or {}
    provider = parameters.get(PROVIDER, "").lower()
    input_format = ((table.sd and table.sd.inputFormat) or "").lower()
    if provider and provider not in (*_FORMATS, "hive"):
        return None
    about = f"{input_format} {parameters.get('table_type', '').lower()}"
    if any(each in about for each in _OTHERS) or parameters.get("storage_handler"):
        return None
    if (table.tableType or "") not in _TABLES or parameters.get("transactional", "").lower() == "true":
        return None
    text = provider if provider in _FORMATS else input_format
    return next((format for word, format in _FORMATS.items() if word in text), None)


def is_wanted(table: Table, of_database: Mapping[str, str], by_default: bool) -> bool:
    """Whether a table is to be shown: by its own property, by its database's, or by what the server does by default."""
    wanted = (table.parameters or {}).get(EXPOSE, of_database.get(EXPOSE, str(by_default)))
    return wanted.strip().lower() == "true"


def refused(name: str) -> RestError:
    """The answer to a change of a table that is only shown."""
    return RestError(
        403,
        "ForbiddenException",
        f"{name} is no table of Iceberg's: it is shown as one for reading. Change it with Spark, with LakeClient, or"
        " with Hive's ALTER and DROP statements",
    )


class NothingShown:
    """In place of `ShownTables` where no table of another format is shown."""

    by_default = False

    def is_shown(self, table: Table, of_database: Mapping[str, str]) -> bool:
        return False


def reader_of(identity: Any) -> str:
    """A name of a caller's for its leases."""
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


class ShownTables:
    """Shows tables, for one caller. Methods raise RestError, and what a worker raises."""

    def __init__(
        self, client: ThriftClient, warehouse: Warehouse, memory: Memory, reader: str, *, by_default: bool = False
    ) -> None:
        """`reader`: a name of the caller's for leases. `by_default`: whether tables are shown that don't say it."""
        self.client = client
        self.warehouse = warehouse
        self.memory = memory
        self.by_default = by_default
        self._reader = reader

    def is_shown(self, table: Table, of_database: Mapping[str, str]) -> bool:
        """Whether a table is shown. `of_database`: the properties of its database."""
        return is_wanted(table, of_database, self.by_default) and format_of(table) is not None

    def show(self, table: Table) -> Shown:
        """The metadata of a table as it is now. All files that it refers to have been written."""
        name = f"{table.dbName}.{table.tableName}"
        if name.endswith(UNCOMMITTED_NAME):  # it shows uncommitted rows, and what is written here is for all readers
            raise no_table(name)
        format = format_of(table)
        if format is None:
            raise no_table(f"{name}, as Iceberg: {ONLY}")
        if not self._has_timeline(table):
            with self.memory.place():  # its files are listed each time
                return HiveTable(self.client, self.warehouse, self.memory, table, format).shown()
        if format != PARQUET:
            raise bad_request(f"{name} is a lake table of {format} files: only those of Parquet are shown as Iceberg")
        for tried in range(1, _TRIES + 1):
            try:
                return LakeTable(self.client, self.warehouse, self.memory, table, self._lease).shown()
            except SnapshotGone:  # a clean came in between
                if tried == _TRIES:
                    raise unavailable("the table is being cleaned: try again") from None
        raise AssertionError("the last try returns or raises")

    def _has_timeline(self, table: Table) -> bool:
        """Whether a table has a primary key, or a timeline."""
        if (table.parameters or {}).get("primary-key", "").strip():
            return True
        found = self.client.lake_timeline_position(TableReference(table.catName, table.dbName, table.tableName))
        return found.lastCompleted is not None

    def _lease(self, table: TableReference, position: int, onwards: bool) -> None:
        """Keeps what was shown from cleans; `onwards`, the files of all later positions, too. Raises SnapshotGone."""
        id = f"iceberg-{self._reader}-{position}{'-on' if onwards else ''}"
        if self.memory.is_leased(table.id or 0, id):
            return
        request = LeaseRequest(table, id, position, LEASE_SECONDS, "a reader of Iceberg's", onwards or None)
        try:
            self.client.lake_lease_snapshot(request)
        except InvalidOperationException as error:
            raise unavailable(f"the table's files can't be kept for a reader: {error.message}") from None
        self.memory.leased(table.id or 0, id)

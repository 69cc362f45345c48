"""Indexes of Hive 2.3. An index belongs to a table, and stores its data in an index table of its own."""

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    Index,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Table,
)
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.table.service import DDL_TIME, TableService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import table_indexes, tables
from metastore.store.table.table_indexes import IndexRow
from metastore.store.table.tables import TableRow


class IndexService:
    """Hive 2.3's calls for indexes."""

    def __init__(self, database: Database, tables: TableService) -> None:
        self._database = database
        self._tables = tables

    def add(self, index: Index, index_table: Table | None) -> Index:
        """Adds an index and the table for its data, which is in the database of the indexed table.

        Hive also takes a table that exists. This server doesn't, because dropping the index drops the table. Returns
        the index as it was given, with its creation time. Raises AlreadyExistsException, and InvalidObjectException if
        the indexed table doesn't exist, if the table to add does, or if it is missing or another than the index names.
        """
        name = given.normalized(index.indexName or "")
        if not name:
            raise InvalidObjectException("the index has no name")
        about = given.table_name(index.dbName, index.origTableName)
        data = _data_table(index)
        with self._database.read() as tx:
            table = tables.find(tx, about)
            if table is not None and table_indexes.of_table(tx, table.id, name):
                raise AlreadyExistsException(f"Index already exists:{index}")
            if table is None:
                raise InvalidObjectException("Unable to add index because database or the orginal table do not exist")
            if index_table is None:
                raise InvalidObjectException(
                    "Unable to add index without a table for its data: the table is made with the index, so send it"
                )
            if data != given.table_name(index_table.dbName, index_table.tableName, index_table.catName):
                raise InvalidObjectException(
                    f"Unable to add index because the table sent for its data is not {data.database}.{data.table}"
                )
            if tables.find(tx, data) is not None:
                raise InvalidObjectException("Unable to add index because index table already exists")
        if index.sd is None:
            raise InvalidObjectException("Storage descriptor is not defined for index.")
        now = now_seconds()
        added = index.replace(createTime=now, parameters={**(index.parameters or {}), DDL_TIME: str(now)})
        body = _body(added)

        def link(tx: Transaction, index_table_id: int) -> None:
            if (base := tables.find(tx, about, RowLock.SHARED)) is None:
                raise InvalidObjectException("Original table does not exist for the given index.")
            table_indexes.add(tx, base.id, name, index_table_id, body)

        self._tables.create(index_table, {}, link)
        return added

    def get(self, database: str | None, table: str | None, name: str | None) -> Index:
        """One index. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            base, row = _existing(tx, database, table and given.plain_table(table), name)
        return _index(base, row)

    def of_table(self, database: str | None, table: str | None) -> list[Index]:
        """A table's indexes by name; none where there is no such table."""
        with self._database.read() as tx:
            base = tables.find(tx, given.base(given.decorated_name(database, table)))
            rows = table_indexes.of_table(tx, base.id) if base is not None else []
        return [_index(base, row) for row in rows if base is not None]

    def alter(self, database: str | None, table: str | None, name: str | None, new: Index) -> None:
        """Changes an index's parameters and stores the time of the change. As in Hive, nothing else changes.

        Raises MetaException if there's no such index, InvalidOperationException if `new` is incomplete.
        """
        if new.sd is None:
            raise InvalidOperationException("Storage descriptor is not defined for index.")
        parameters = {**(new.parameters or {}), DDL_TIME: str(now_seconds())}
        with self._database.write() as tx:
            try:
                base, row = _existing(tx, database, table, name, RowLock.EXCLUSIVE)
            except NoSuchObjectException as error:
                raise MetaException(error.message) from None
            table_indexes.change(tx, row.id, _body(_index(base, row).replace(parameters=parameters)))

    def drop(self, database: str | None, table: str | None, name: str | None, *, delete_data: bool) -> None:
        """Removes an index, with the table that was made for its data. Raises NoSuchObjectException."""

        def find(tx: Transaction) -> IndexRow:
            return _existing(tx, database, table, name, RowLock.EXCLUSIVE)[1]

        self._tables.drop_index(find, delete_data=delete_data)


def _existing(
    tx: Transaction, database: str | None, table: str | None, name: str | None, lock: RowLock = RowLock.NOT
) -> tuple[TableRow, IndexRow]:
    about = (
        given.base(given.decorated_name(database, table)) if lock is RowLock.NOT else given.table_name(database, table)
    )
    base = tables.find(tx, about, lock)
    rows = table_indexes.of_table(tx, base.id, given.normalized(name or "")) if base is not None else []
    if base is None or not rows:
        raise NoSuchObjectException(f"{database}.{table} index={name} not found")
    return base, rows[0]


def _data_table(index: Index) -> TableName:
    """The table of an index's data, whose name may bring the database along. Raises InvalidObjectException."""
    home, dot, name = (index.indexTableName or "").rpartition(".")
    if not name:
        raise InvalidObjectException("the index names no table for its data")
    own = given.table_name(index.dbName, name)
    if dot and given.table_name(home, name) != own:
        raise InvalidObjectException(
            f"Unable to add index because its table {home}.{name} is in another database than the indexed one"
        )
    return own


def _body(index: Index) -> bytes:
    assert index.sd is not None
    kept = index.replace(
        indexName=None,
        dbName=None,
        origTableName=None,
        indexTableName=None,
        lastAccessTime=index.lastAccessTime or 0,
        deferredRebuild=bool(index.deferredRebuild),
        sd=hive_objects.descriptor(index.sd),
    )
    return binary.encode(kept)


def _index(base: TableRow, row: IndexRow) -> Index:
    value = binary.decode_preserving(Index, row.body)
    value.indexName, value.dbName, value.origTableName = row.name, base.name.database, base.name.table
    value.indexTableName = row.index_table
    return value

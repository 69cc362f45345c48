"""What lake tables and Hive tables have in common when they are shown to Iceberg's readers."""

from collections.abc import Callable

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Table
from lake.protocol.lake import SnapshotRequest, SnapshotResponse, TableReference
from metastore.iceberg.errors import WORKER_ERRORS, is_denied
from metastore.iceberg.shown.footers import Footer
from metastore.iceberg.shown.lake_columns import LakeColumns
from metastore.iceberg.shown.manifests import Entry
from metastore.iceberg.shown.writing import ListName, Memory, Writer
from metastore.warehouse import Warehouse


class ShownTable:
    """One table as it is now."""

    def __init__(
        self, client: ThriftClient, warehouse: Warehouse, memory: Memory, table: Table, columns: LakeColumns
    ) -> None:
        self._client = client
        self._warehouse = warehouse
        self._memory = memory
        self._table = table
        self._columns = columns
        self._reference = TableReference(table.catName, table.dbName or "", table.tableName or "", table.id)

    def _begin(self, what: str) -> SnapshotResponse:
        """Asks for the table's snapshot, and makes the writer for its place. `what`: as of `Writer`.

        Raises RestError, and what a worker raises, among it that the caller may not read the table.
        """
        head: SnapshotResponse = self._client.lake_get_snapshot(self._at_all(uncommitted=False))
        self._reference = self._reference.replace(id=head.tableId)
        self._writer = Writer(
            self._warehouse, self._memory, self._columns, head.tableId or 0, head.location or "", self._check, what
        )
        return head

    def _at_all(self, *, uncommitted: bool, position: int | None = None) -> SnapshotRequest:
        """A request for no files, which says whether the caller may read the table, and where that is."""
        return SnapshotRequest(
            self._reference, asOfPosition=position, partitions=[], limit=1, includeUncommitted=uncommitted
        )

    def _check(self, entry: Entry, footer: Footer) -> None:
        """Raises RestError for a file whose columns readers would mistake."""
        raise NotImplementedError

    def _if_allowed(self, make: Callable[[], ListName], position: int | None = None) -> ListName | None:
        """A snapshot with uncommitted partitions; None without partitions, or if the caller may not see these."""
        if not self._columns.keys:
            return None
        try:
            self._client.lake_get_snapshot(self._at_all(uncommitted=True, position=position))
            return make()
        except WORKER_ERRORS as error:
            if is_denied(error):
                return None
            raise

    @property
    def _comment(self) -> dict[str, str]:
        comment = (self._table.parameters or {}).get("comment")
        return {"comment": comment} if comment else {}

"""What the metadata of Hudi's instants means for a table: its files, partitions, columns and event times.

For whoever completes an instant whose metadata Hudi wrote:

    request = CompleteInstantRequest(table, timestamp, action, newAction=…, metadata=bytes_that_hudi_sent)
    metastore.instant_completion.complete([request], meaning=hudi_changes.meaning)

`meaning` is called in the transaction that completes the instant, with the timeline held, since a log file's slice and
what a rollback undoes depend on what is complete by then. The request is known again by its metadata alone: a repeated
call is a success, whatever has happened since. For whoever begins one, `plan_of` gives `BeginInstantRequest.plan`.

Bytes that can't be read raise `InvalidOperationException`; for other callers that is `HudiMetadataError` of
`metastore.wire.hudi_metadata`.
"""

from metastore.services.instant_completion import Meaning
from metastore.store.database import Transaction
from metastore.store.instants import InstantRow
from metastore.store.tables import TableRow
from metastore.wire.lake import Column, CompleteInstantRequest, FileGroup


def plan_of(row: TableRow, action: str, content: bytes | None) -> list[FileGroup]:
    """The file groups in which an instant opens a slice, by the metadata of its state requested.

    Only a compaction does; every other action's plan is empty. Raises InvalidOperationException.
    """
    raise NotImplementedError


def meaning(tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest) -> Meaning:
    """What the metadata that an instant is completed with (`request.metadata`) says.

    An instant without metadata changes no file. Raises InvalidOperationException.
    """
    raise NotImplementedError


def columns_of(row: TableRow, schema: str) -> list[Column]:
    """The columns, without partition keys, that Hive's readers see for an Avro schema of Hudi's (JSON).

    As Hudi's own sync to Hive names them: Hudi's meta columns first, unless the table has none. Raises
    InvalidOperationException.
    """
    raise NotImplementedError


def partition_name(row: TableRow, path: str) -> str:
    """The name in Hive's form of the partition in a directory, relative to the table, hive-style or not.

    `dt=2026-01-31/hr=7` and `2026-01-31/7` are the same one. Raises InvalidOperationException.
    """
    raise NotImplementedError

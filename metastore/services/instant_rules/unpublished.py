"""Refuses reads of keyed tables of which Hive sees nothing yet: a reader of directories would take them for empty."""

from lake.protocol.hive import MetaException, NoSuchObjectException
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow


def check_read(
    tx: Transaction,
    row: TableRow,
    *,
    uncommitted: bool,
    refusal: type[MetaException] | type[NoSuchObjectException] = MetaException,
) -> None:
    """Raises `refusal` for a keyed table that has rows and was never published.

    `uncommitted`: the reader sees uncommitted partitions, too.
    """
    if is_keyed(row) and data_files.is_unpublished(tx, row.id, only_ready=not uncommitted):
        raise refusal(
            f"{row.name} has a primary key and was never published: its directories have none of its rows. Read it with"
            " Spark and the extension of lake-metastore, or with lake.spark or lake.tables, or publish it"
            " (`publish` of lake.spark). The server's setting refuse_unpublished_reads=false shows it as an empty table"
        )

"""What a database that was restored from a backup must not go on with."""

import structlog

from metastore.services.files.relocator import keep_after_restore
from metastore.store.engine import sequences
from metastore.store.engine.database import Transaction
from metastore.store.transactions import transactions

logger = structlog.get_logger(__name__)


def after_restore(tx: Transaction) -> None:
    """Prepares a restored database for changes: every restore, however it was noticed, comes here.

    Ids that were given after the backup are given to nothing else: clients remember them for what is lost. Deletions of
    files that the backup brought back are forgotten.
    """
    skip_ids(tx)
    kept = keep_after_restore(tx)
    if kept:
        logger.warning("files are kept", locations=kept, reason="they were to be deleted when the backup was taken")


def skip_ids(tx: Transaction) -> None:
    """Leaves out the ids that a lost part of the database may have given to objects and transactions."""
    sequences.advance_all(tx)
    transactions.take_ids(tx, 1_000_000)

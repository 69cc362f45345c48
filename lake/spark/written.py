"""What a write has done, and what the session must forget after it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lake.client.lake_types import Instant
from lake.tables.lake import LakeTable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Written:
    """What was written. `bytes` is the files' size, `partitions` those that got rows.

    The instant is None for a table of Hudi's, of which nothing is known, and for the batch of a stream that was part of
    the table already: then nothing was written.
    """

    instant: Instant | None
    rows: int
    files: int
    bytes: int
    partitions: Sequence[str]


def refresh_listings(spark: SparkSession, lake: LakeTable) -> None:
    """Drops the session's listings of the table. A failure is ignored: the rows are written."""
    name = f"`{lake.named.database}`.`{lake.named.table}`"
    try:
        if spark.catalog.tableExists(name):
            spark.catalog.refreshTable(name)
    except Exception as error:
        logger.warning("the session may keep old listings of %s: %s", name, str(error).split("\n", 1)[0])

"""The table that the stream is written to: Parquet in partitions of an hour, ready by event time."""

from contextlib import suppress

from pyspark.sql import SparkSession

from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.client.references import reference
from lake.protocol.hive import AlreadyExistsException, Database, GetTableRequest, NoSuchObjectException

COLUMNS = "id BIGINT, order_id BIGINT, status STRING, amount DECIMAL(12,2), shard STRING, event_time TIMESTAMP"
#: The table's keys, by how they follow from a row.
PARTITIONS = {"dt": "date_format(event_time, 'yyyy-MM-dd')", "hr": "date_format(event_time, 'HH')"}
#: The text of a timestamp follows the session's time zone, which has to be the table's.
TIME_ZONE = "UTC"
LATE_POLICIES = ("next", "reopen", "drop")


def create_table(spark: SparkSession, uri: str, table: str, *, delay: str, late: str) -> bool:
    """Creates `database.table`, and the database, where they are missing; whether the table was.

    `delay` is how far the watermark must be past a partition's start: its hour, and the time allowed to latecomers.
    `late` says where rows go for which a partition is ready already: `next`, `reopen` or `drop`.
    """
    place = reference(table)
    with ReconnectingClient(connect_to(uri)) as metastore:
        with suppress(AlreadyExistsException):
            metastore.call(lambda client: client.create_database(Database(name=place.database)))
        with suppress(NoSuchObjectException):
            wanted = GetTableRequest(dbName=place.database, tblName=place.table)
            metastore.call(lambda client: client.get_table_req(wanted))
            return False
    properties = {
        "partition.commit.mode": "event-time",
        "partition.time-extractor.timestamp-pattern": "$dt $hr:00:00",
        "partition.late-rows": late,
        "sink.partition-commit.delay": delay,
        "sink.partition-commit.policy.kind": "metastore,success-file",
        "sink.partition-commit.watermark-time-zone": TIME_ZONE,
    }
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    keys = ", ".join(PARTITIONS)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {place.database}.{place.table} ({COLUMNS}, dt STRING, hr STRING) "
        f"USING parquet PARTITIONED BY ({keys}) TBLPROPERTIES ({listed})"
    )
    return True

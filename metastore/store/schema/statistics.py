"""The table of column statistics."""

from sqlalchemy import BigInteger, Column, LargeBinary, Table, UniqueConstraint

from metastore.store.schema.base import NAME, identifier, metadata

column_statistics = Table(
    "column_statistics",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_id", BigInteger, nullable=False, server_default="0", comment="0: the table's own"),
    Column("column_name", NAME, nullable=False),
    Column("engine", NAME, nullable=False, server_default="hive"),
    Column("last_analyzed", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded ColumnStatisticsObj"),
    UniqueConstraint("table_id", "partition_id", "column_name", "engine"),
)

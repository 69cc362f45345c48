"""The table of partitions, and of events that clients marked on them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from metastore.store.schema.base import NAME, identifier, metadata

# No foreign keys here: one would cost a look-up per row in bulk changes. Whoever adds partitions holds a lock on the
# table's row, whoever removes a table removes its partitions in the same transaction.
partitions = Table(
    "partitions",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("name", NAME, nullable=False, comment="dt=2024-01-01/hr=00, values escaped as in a path"),
    Column("values", ARRAY(NAME), nullable=False),
    Column("ready", Boolean, nullable=False, server_default=text("true")),
    Column("commit_time", BigInteger, comment="when it was last committed, ms; kept while it is open again"),
    Column("path", Text, comment="location below the table's; NULL where location says it"),
    Column("location", NAME, comment="location elsewhere than below the table's"),
    Column("storage_descriptor_id", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Partition without names, descriptor and STOP"),
    UniqueConstraint("table_id", "name"),
    Index("partitions_first_value_idx", "table_id", text('("values"[1])')),
    Index("partitions_uncommitted_idx", "table_id", postgresql_where=text("NOT ready")),
    Index("partitions_elsewhere_idx", "table_id", postgresql_where=text("path IS DISTINCT FROM name")),
    # Of the beginning: a location may be longer than an index takes.
    Index(
        "partitions_location_idx",
        text('"left"(location, 600)'),
        postgresql_where=text("location IS NOT NULL"),
    ),
    Index(None, "storage_descriptor_id"),
    # Most partitions are altered soon after they were added. If there is room for the new version of each row on its
    # page, that writes no entry of an index.
    postgresql_with={"fillfactor": 50},
)


partition_events = Table(
    "partition_events",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_name", NAME, nullable=False),
    Column("event_type", SmallInteger, nullable=False),
    Column("event_time", BigInteger, nullable=False),
    Index(None, "table_id", "partition_name"),
    comment="markPartitionForEvent",
)

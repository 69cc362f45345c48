"""Tables of pending moves, and of directories that the server created."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Index, Integer, Table, Text, func, text

from metastore.store.schema.base import NAME, identifier, metadata

publications = Table(
    "publications",
    metadata,
    identifier(),
    Column("table_id", BigInteger, nullable=False),
    Column("partition_id", BigInteger, nullable=False),
    Column("source", Text, nullable=False, comment="a staged file's location"),
    Column("name", Text, nullable=False, comment="of the file in the partition"),
    Index(None, "table_id"),
    Index(None, "partition_id"),
    comment="staged files of accepted batches, to be moved into their partitions; removed once that is done",
)


moves = Table(
    "moves",
    metadata,
    identifier(),
    Column("source", Text, nullable=False),
    Column("target", Text, comment="NULL: the data is to be deleted"),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("attempts", Integer, nullable=False, server_default="0", comment="that failed"),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    Column("failure", Text, comment="of the last attempt"),
    Column(
        "checked",
        Boolean,
        nullable=False,
        server_default="false",
        comment="whether it was looked who lives there; older servers don't",
    ),
    comment="data to be moved or deleted: recorded with the change that asks for it, removed once it is done",
)


made_directories = Table(
    "made_directories",
    metadata,
    Column("place", NAME, primary_key=True),
    comment="outside the warehouse's roots, and yet the server's to delete; without links on the way",
)


linked_directories = Table(
    "linked_directories",
    metadata,
    Column("location", NAME, primary_key=True),
    Column("leads_to", NAME, nullable=False, index=True),
    comment="locations of tables, databases and partitions that were reached through links",
)

"""Declares the database tables of package `store.table`: storage descriptors, tables, constraints, indexes."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from metastore.store.schema.base import NAME, identifier, metadata

storage_descriptors = Table(
    "storage_descriptors",
    metadata,
    identifier(),
    Column("digest", LargeBinary, nullable=False, unique=True, comment="SHA-256 of body"),
    Column("body", LargeBinary, nullable=False, comment="encoded StorageDescriptor without location and STOP"),
    comment="each distinct descriptor once: the partitions of a table mostly differ in their location alone",
)

# Conditions as their indexes have them. Texts, not parameters: Postgres has to see that they are the same.
OF_ICEBERG = text("lower(parameters ->> 'table_type') = 'iceberg'")
VIEWS_OF_ICEBERG = text("lower(parameters ->> 'table_type') = 'iceberg-view'")
EXPOSING = text("lower(parameters ->> 'iceberg.expose') = 'true'")
"""The table's own property says that it is shown as Iceberg."""

tables = Table(
    "tables",
    metadata,
    identifier(),
    Column("database_id", ForeignKey("databases.id"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("type", NAME, nullable=False),
    Column("owner", Text),
    Column("last_access_time", Integer, nullable=False),
    Column("location", NAME, index=True, comment="NULL: none, as for a view"),
    Column("storage_descriptor_id", ForeignKey("storage_descriptors.id"), nullable=False),
    Column("parameters", JSONB, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Table without what the other columns hold"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    UniqueConstraint("database_id", "name"),
    Index(None, "storage_descriptor_id"),
    Index("tables_materialized_views_idx", "database_id", postgresql_where=text("type = 'MATERIALIZED_VIEW'")),
    Index("tables_iceberg_idx", "database_id", "name", postgresql_where=OF_ICEBERG),
    Index("tables_iceberg_views_idx", "database_id", "name", postgresql_where=VIEWS_OF_ICEBERG),
    Index("tables_exposing_idx", "database_id", "name", postgresql_where=EXPOSING),
)


constraints = Table(
    "constraints",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("kind", SmallInteger, nullable=False, comment="metastore.store.table.constraints.Kind"),
    Column("name", NAME, nullable=False),
    Column("position", Integer, nullable=False, comment="of the column within the constraint, from 1"),
    Column("column_name", NAME, comment="NULL: a check of the whole row"),
    Column("parent_table_id", ForeignKey("tables.id", ondelete="CASCADE"), comment="what a foreign key refers to"),
    Column("parent_column_name", NAME),
    Column("body", LargeBinary, nullable=False, comment="encoded SQLPrimaryKey, SQLForeignKey, ... without names"),
    UniqueConstraint("table_id", "name", "position"),
    Index(None, "parent_table_id"),
    comment="one row per constraint and column",
)


table_indexes = Table(
    "table_indexes",
    metadata,
    identifier(),
    Column("table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("name", NAME, nullable=False),
    Column("index_table_id", ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    Column("body", LargeBinary, nullable=False, comment="encoded Index without names"),
    Column(
        "made",
        Boolean,
        nullable=False,
        server_default=false(),
        comment="whether the table of the data was made with the index",
    ),
    UniqueConstraint("table_id", "name"),
    Index(None, "index_table_id"),
    comment="indexes of Hive 2.3, whose data are tables of their own",
)

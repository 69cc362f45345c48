"""Declares the database tables of package `store.commit`: readiness of tables, watermarks, and writers' batches."""

from sqlalchemy import BigInteger, Column, Table

from metastore.store.schema.base import NAME, metadata

table_readiness = Table(
    "table_readiness",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("watermark", BigInteger, comment="ms; never goes back"),
    Column("filled_until", BigInteger, comment="ms; up to here empty partitions have been added"),
    Column("rows_rerouted", BigInteger, nullable=False, server_default="0"),
    Column("rows_reopened", BigInteger, nullable=False, server_default="0"),
    Column("rows_dropped", BigInteger, nullable=False, server_default="0"),
    comment="how far event time has come in a table, and what came late",
)


watermarks = Table(
    "watermarks",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("chain", NAME, primary_key=True),
    Column("source", NAME, primary_key=True),
    Column("watermark", BigInteger, nullable=False, comment="ms"),
    Column("reported_at", BigInteger, nullable=False, comment="ms"),
    comment="how far event time has come in each source of each chain of writers",
)


# Of releases that had batches with staged files. It goes one release later, when no server uses it any more.
writers = Table(
    "writers",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("name", NAME, primary_key=True),
    Column("batch", BigInteger, nullable=False, comment="the last that was accepted"),
)

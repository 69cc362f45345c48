"""DuckDB with the catalog of a server."""

from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg


def attached(uri: str) -> duckdb.DuckDBPyConnection:
    """A new DuckDB with the Iceberg REST catalog at `uri` as `lake`."""
    connection = duckdb.connect()
    for module in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
        [file] = Path(module.__file__ or "").parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    connection.execute(f"ATTACH 'hive' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
    return connection

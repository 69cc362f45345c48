"""Hive's own metastore server on Postgres, for comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg2.extras
from sqlalchemy import URL

from bench.postgres import tidy, transaction
from bench.shapes import Shape
from lake.protocol.errors import UserError
from tests.support.reference import HiveReference

DRIVER = Path("/usr/share/java/postgresql.jar")
TRANSACTION_TABLES = Path(__file__).with_name("hive_transactions.sql")
APART = 100_000_000
"""Between the ids of one copied table's rows and those of the next; Hive's own stay far below."""


def why_not() -> str | None:
    """Why it can't run on this machine, in one line, or None if it can."""
    if not DRIVER.exists():
        return "Hive's server needs Postgres' driver for Java (Debian: apt-get install libpostgresql-jdbc-java)"
    return None


class HiveOnPostgres(HiveReference):
    """With the memory, threads and pools that its documentation and defaults give it, and a quiet log."""

    java_options = ("-Xmx2g",)
    threads = (200, 1000)
    log_level = "warn"

    def __init__(self, directory: Path, url: URL, warehouse: Path) -> None:
        """Starts it on an empty database. Raises UserError without the driver."""
        if (reason := why_not()) is not None:
            raise UserError(reason)
        self._url = url
        self._copies = 0
        with transaction(url) as cursor:
            # Hive's own script for them is part of no jar; the other tables are made by its server.
            cursor.execute(TRANSACTION_TABLES.read_text())
        settings = {
            "javax_jdo_option_ConnectionURL": f"jdbc:postgresql://{url.host}:{url.port}/{url.database}",
            "javax_jdo_option_ConnectionDriverName": "org.postgresql.Driver",
            "javax_jdo_option_ConnectionUserName": url.username or "",
            "javax_jdo_option_ConnectionPassword": str(url.password),
            "hive_metastore_warehouse_dir": str(warehouse),
        }
        super().__init__(directory, jars=[DRIVER], **settings)

    def _make_transaction_tables(self, conf: Any) -> None:
        """They are there."""

    def multiply(self, table: str, shape: Shape, *, directories: bool = True) -> None:
        """Turns the one partition that a table has into those of `shape`, in the database and on disk.

        Its server would take two minutes for ten thousand. `directories`: whether they are made on disk, too.
        """
        with transaction(self._url) as cursor:
            self._copies += 1
            root = _multiply(cursor, table, shape, self._copies * APART)
        if directories:
            base = Path(root.removeprefix("file:"))
            for name in shape.names()[1:]:
                (base / name).mkdir(parents=True, exist_ok=True)
        tidy(self._url)


def _multiply(cursor: Any, table: str, shape: Shape, offset: int) -> str:
    """Where the table lies."""
    cursor.execute(
        'SELECT p."PART_ID", p."SD_ID", s."SERDE_ID", t."LOCATION" FROM "PARTITIONS" p'
        ' JOIN "SDS" s ON s."SD_ID" = p."SD_ID" JOIN "TBLS" b ON b."TBL_ID" = p."TBL_ID"'
        ' JOIN "SDS" t ON t."SD_ID" = b."SD_ID" WHERE b."TBL_NAME" = %s',
        [table],
    )
    [(partition, storage, serde, root)] = cursor.fetchall()
    cursor.execute("CREATE TEMPORARY TABLE made (n bigint, name text, dt text, hr text) ON COMMIT DROP")
    names = shape.names()
    rows = [(offset + n, names[n], *shape.values(n)) for n in range(1, len(names))]
    psycopg2.extras.execute_values(cursor, "INSERT INTO made VALUES %s", rows, page_size=10_000)
    ids = {"SERDE_ID": "n", "SD_ID": "n", "PART_ID": "n"}
    value = 'CASE "INTEGER_IDX" WHEN 0 THEN dt ELSE hr END'
    for name, key, number, changed in (
        ("SERDES", "SERDE_ID", serde, {}),
        ("SERDE_PARAMS", "SERDE_ID", serde, {}),
        ("SDS", "SD_ID", storage, {"LOCATION": f"'{root}/' || name"}),
        ("SD_PARAMS", "SD_ID", storage, {}),
        ("PARTITIONS", "PART_ID", partition, {"PART_NAME": "name"}),
        ("PARTITION_PARAMS", "PART_ID", partition, {}),
        ("PARTITION_KEY_VALS", "PART_ID", partition, {"PART_KEY_VAL": value}),
    ):
        _copy(cursor, name, key, number, {**ids, **changed})
    return str(root)


def _copy(cursor: Any, table: str, key: str, number: int, changed: Mapping[str, str]) -> None:
    """Copies rows once for every row of `made`; `changed` has SQL expressions by column, if the table has it."""
    cursor.execute("SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table])
    columns: Sequence[str] = [name for (name,) in cursor.fetchall()]
    into = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    cursor.execute(f'INSERT INTO "{table}" ({into}) SELECT {values} FROM "{table}", made WHERE "{key}" = %s', [number])

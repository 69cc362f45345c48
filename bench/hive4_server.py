"""Hive 4's own metastore server on Postgres, for comparison, with and without its cache."""

from pathlib import Path

from sqlalchemy import URL

from bench.hive_server import DRIVER, why_not
from bench.postgres import transaction
from lake.protocol.errors import UserError
from tests.interop import maven
from tests.support.reference4 import SCHEMA, SCRIPTS, Hive4Reference, Release

CACHED_STORE = {
    "metastore_rawstore_impl": "org.apache.hadoop.hive.metastore.cache.CachedStore",
    "metastore_cached_rawstore_max_cache_memory": "1gb",
}
"""Switches Hive's cache on. Otherwise it has its defaults: others' changes are seen within a minute."""

OPENED = (
    "java.io",
    "java.math",
    "java.net",
    "java.nio",
    "java.time",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
    "java.util.regex",
)
"""Packages that Hive's cache looks into to find out how much memory an object takes."""


class Hive4OnPostgres(Hive4Reference):
    """With the memory, threads and pools that its documentation and defaults give it, and a quiet log."""

    java_options = ("-Xmx2g", *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED))
    threads = (200, 1000)
    log_level = "warn"

    def __init__(self, directory: Path, url: URL, warehouse: Path, release: Release, *, cached: bool) -> None:
        """Starts it on an empty database. Raises UserError without the driver or the jars."""
        if (reason := why_not()) is not None:
            raise UserError(reason)
        self._url = url
        self.release = release
        settings = {
            "javax_jdo_option_ConnectionURL": f"jdbc:postgresql://{url.host}:{url.port}/{url.database}",
            "javax_jdo_option_ConnectionDriverName": "org.postgresql.Driver",
            "javax_jdo_option_ConnectionUserName": url.username or "",
            "javax_jdo_option_ConnectionPassword": str(url.password),
            "hive_metastore_warehouse_dir": str(warehouse),
            "hive_metastore_warehouse_external_dir": str(warehouse),
            **(CACHED_STORE if cached else {}),
        }
        try:
            super().__init__(directory, jars=[DRIVER], **settings)
        except maven.Unavailable as error:
            raise UserError(str(error)) from None

    def _make_database(self, url: str) -> None:
        script = maven.unpacked(SCRIPTS) / f"scripts/metastore/upgrade/postgres/hive-schema-{SCHEMA}.postgres.sql"
        with transaction(self._url) as cursor:
            cursor.execute(script.read_text())
            cursor.execute("SET search_path TO public")  # the script has emptied it
            for index in self.release.dropped_indexes:
                cursor.execute(f'DROP INDEX IF EXISTS "{index}"')
            for table, columns in self.release.dropped_columns:
                for column in columns:
                    cursor.execute(f'ALTER TABLE "{table}" DROP COLUMN IF EXISTS "{column}" CASCADE')
            cursor.execute('UPDATE "VERSION" SET "SCHEMA_VERSION" = %s', [self.release.schema])

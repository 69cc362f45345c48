"""The program that spark-submit runs for one attempt at a service of an Iceberg table. It exits with 0 if it is done.

Needs PySpark and Iceberg's runtime alone. It calls what Iceberg's procedures of the same names call, so that no SQL is
made of names. https://iceberg.apache.org/docs/latest/spark-procedures/
"""

import argparse
import sys
from typing import Any

CATALOG = "lake"
SHOWN = 1_000
"""Deleted orphan files that are named."""


def main() -> int:
    """Runs the service that the command line names."""
    parser = argparse.ArgumentParser(description="Runs one service of an Iceberg table.")
    for name in ("uri", "database", "table", "location", "action", "tag"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--target-file-bytes", type=int, required=True)
    parser.add_argument("--older-than", type=int, required=True, help="milliseconds since 1970")
    parser.add_argument("--retain-last", type=int, required=True)
    parser.add_argument("--uuid", default="", help="Iceberg's id of the table; empty: not known")
    given = parser.parse_args()

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(given.tag)
    name = f"spark.sql.catalog.{CATALOG}"
    for key, value in {
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "hive",
        f"{name}.uri": given.uri,
        f"{name}.cache-enabled": "false",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        done = run(spark, given)
        print(f"{given.tag}: {given.database}.{given.table}: {done}", flush=True)
        return 0
    finally:
        spark.stop()


def check(table: Any, given: argparse.Namespace) -> None:
    """Ends the program if another table has the name by now. From here on Iceberg itself looks after that."""
    found = table.operations().current().uuid()
    if given.uuid and found != given.uuid:
        raise SystemExit(
            f"{given.database}.{given.table} is another table (uuid {found}) than the one to work on (uuid"
            f" {given.uuid}), which was dropped: nothing is done to it"
        )


def run(spark: Any, given: argparse.Namespace) -> str:
    """Does it, and says what was done."""
    jvm, session = spark._jvm, spark._jsparkSession
    catalog = session.sessionState().catalogManager().catalog(CATALOG).icebergCatalog()
    names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 2)
    names[0], names[1] = given.database, given.table
    table = catalog.loadTable(jvm.org.apache.iceberg.catalog.TableIdentifier.of(names))
    check(table, given)
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(session)
    if given.action == "clean":
        found = actions.expireSnapshots(table).expireOlderThan(given.older_than).retainLast(given.retain_last).execute()
        return f"{found.deletedDataFilesCount()} data files and {found.deletedManifestsCount()} manifests deleted"
    if given.action == "orphans":
        searched = actions.deleteOrphanFiles(table).location(given.location).olderThan(given.older_than)
        removed = list(searched.execute().orphanFileLocations())
        return "\n".join([f"{len(removed)} orphan files deleted", *removed[:SHOWN]])
    rewriting = actions.rewriteDataFiles(table).binPack().option("min-input-files", "2")
    found = rewriting.option("target-file-size-bytes", str(given.target_file_bytes)).execute()
    if found.rewrittenDataFilesCount():
        table.refresh()
        actions.rewriteManifests(table).execute()
    return f"{found.rewrittenDataFilesCount()} data files rewritten into {found.addedDataFilesCount()}"


if __name__ == "__main__":
    sys.exit(main())

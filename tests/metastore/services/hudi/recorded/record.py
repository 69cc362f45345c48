"""Runs Hudi over small tables and keeps what it wrote into `.hoodie`, and which files it would read.

    python record.py BUNDLE.jar OUTPUT

in an environment with the PySpark that the bundle is for. Writes OUTPUT/<table>.tar.xz with the table's folder at each
stage, its data files left out, and OUTPUT/callback.json with the requests of Hudi's commit callback.
"""

import http.server
import json
import re
import shutil
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

LAKE = Path("/tmp/hudi-recorded")
PORT = 18990

requests: list[dict[str, Any]] = []


class Callback(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Table:
    """A table of Hudi's that is written step by step."""

    def __init__(self, spark: SparkSession, name: str, **options: str) -> None:
        self.spark, self.name, self.path = spark, name, LAKE / name
        self.options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.bulkinsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
            "hoodie.metadata.enable": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.compact.inline": "false",
            "hoodie.datasource.write.reconcile.schema": "true",
        } | {f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()}
        self.stages: dict[str, Any] = {}
        self.kept = LAKE / f"{name}-stages"

    def write(self, query: str, operation: str = "upsert", **options: str) -> None:
        more = {f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()}
        settings = self.options | more | {"hoodie.datasource.write.operation": operation}
        self.frame(query).write.format("hudi").options(**settings).mode("append").save(str(self.path))
        if operation != "delete" and not self.spark.catalog.tableExists(self.name):
            self.spark.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.path}'")

    def frame(self, query: str) -> DataFrame:
        """What a query answers, all columns nullable."""
        rows = self.spark.sql(query)
        return self.spark.createDataFrame(rows.collect(), StructType([*map(_nullable, rows.schema)]))

    def call(self, procedure: str, **arguments: Any) -> list[Any]:
        given = "".join(f", {name} => {value!r}" for name, value in arguments.items())
        return self.spark.sql(f"CALL {procedure}(table => '{self.name}'{given})").collect()

    def commits(self) -> list[str]:
        """The timestamps of completed commits, the latest first."""
        return sorted((row.commit_time for row in self.call("show_commits")), reverse=True)

    def keep(self, stage: str) -> None:
        """Keeps the folder as it is, and what Hudi reads of it."""
        self.spark.catalog.refreshTable(self.name)
        rows = self.spark.read.format("hudi").load(str(self.path))
        self.stages[stage] = {
            "files": sorted(self.files()),
            "rows": sorted([row.id, row.ts] for row in rows.select("id", "ts").collect()),
        }
        target = self.kept / stage / ".hoodie"
        shutil.copytree(self.path / ".hoodie", target, ignore=shutil.ignore_patterns("*.crc", "metadata", ".temp"))

    def files(self) -> Iterator[tuple[str, int]]:
        """The files of the latest merged slices, by Hudi's own view of the table, and their sizes."""
        jvm = self.spark._jvm
        conf = self.spark._jsc.hadoopConfiguration()
        client = (
            jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(conf))
            .setBasePath(str(self.path))
            .build()
        )
        context = jvm.org.apache.hudi.common.engine.HoodieLocalEngineContext(client.getStorageConf())
        config = jvm.org.apache.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
        manager = jvm.org.apache.hudi.common.table.view.FileSystemViewManager
        # As Hudi's readers do: log files of a slice that a compaction has opened belong to what is read.
        timeline = client.getActiveTimeline().filterCompletedAndCompactionInstants()
        view = manager.createInMemoryFileSystemViewWithTimeline(context, client, config, timeline)
        names = (path.name for path in (self.path / ".hoodie").rglob("*commit"))
        latest = max(re.match(r"\d*", name)[0] for name in names)
        marks = self.path.rglob(".hoodie_partition_metadata")
        for partition in sorted(str(mark.parent.relative_to(self.path)) for mark in marks):
            slices = view.getLatestMergedFileSlicesBeforeOrOn(partition.lstrip("."), latest).iterator()
            while slices.hasNext():
                each = slices.next()
                names = [each.getBaseFile().get().getFileName()] if each.getBaseFile().isPresent() else []
                logs = each.getLogFiles().iterator()
                while logs.hasNext():
                    names.append(logs.next().getFileName())
                for name in names:
                    path = self.path / partition / name
                    yield str(path.relative_to(self.path)), path.stat().st_size

    def save(self, output: Path) -> None:
        (self.kept / "stages.json").write_text(json.dumps(self.stages, indent=1))
        with tarfile.open(output / f"{self.name}.tar.xz", "w:xz") as archive:
            for path in sorted(self.kept.rglob("*")):
                if path.is_file():
                    archive.add(path, path.relative_to(self.kept), filter=_anonymous)


def _nullable(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, True)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def record_orders(spark: SparkSession, output: Path) -> None:
    """Copy on write, two keys, directories that say values alone."""
    table = Table(
        spark,
        "orders",
        datasource_write_partitionpath_field="dt,hr",
        datasource_write_keygenerator_class="org.apache.hudi.keygen.ComplexKeyGenerator",
        write_commit_callback_on="true",
        write_commit_callback_http_url=f"http://127.0.0.1:{PORT}/hudi/commits",
        write_commit_callback_http_api_key="s3cret",
    )
    table.write(
        "SELECT 1 id, 1L ts, 'a' dt, 7 hr, 1.5D amount UNION ALL SELECT 2, 1L, 'a', 8, 2.5D"
        " UNION ALL SELECT 3, 1L, 'b', 7, 3.5D",
        "insert",
    )
    table.write(
        "SELECT 1 id, 2L ts, 'a' dt, 7 hr, 10.5D amount, 'again' note UNION ALL SELECT 4, 2L, 'b', 7, 4.5D, 'new'"
    )
    table.keep("written")
    table.call("create_savepoint", commit_time=table.commits()[0])
    table.write("SELECT 2 id, 3L ts, 'a' dt, 8 hr, 2.5D amount, '' note", "delete")
    table.write("SELECT 5 id, 4L ts, 'b' dt, 7 hr, 5.5D amount, 'only' note", "insert_overwrite")
    table.keep("replaced")
    table.write("SELECT 1 id, 5L ts, 'a' dt, 7 hr, 11.5D amount, 'wrong' note")
    table.call("rollback_to_instant", instant_time=table.commits()[0])
    table.keep("rolled_back")
    table.write("SELECT 6 id, 6L ts, 'a' dt, 7 hr, 6.5D amount, 'six' note", "insert")
    table.call("run_clustering")
    table.keep("clustered")
    table.write("SELECT 6 id, 7L ts, 'a' dt, 7 hr, 6.5D amount, 'six' note")
    table.call("run_clean", retain_commits=1)
    table.write(
        "SELECT 5 id, 8L ts, 'b' dt, 7 hr, 5.5D amount, '' note",
        "delete_partition",
        datasource_write_partitions_to_delete="b/7",
    )
    table.keep("end")
    table.save(output)


def record_clicks(spark: SparkSession, output: Path) -> None:
    """Merge on read, one key, directories as Hive names them."""
    table = Table(
        spark,
        "clicks",
        datasource_write_table_type="MERGE_ON_READ",
        datasource_write_partitionpath_field="dt",
        datasource_write_hive_style_partitioning="true",
    )
    table.write("SELECT 1 id, 1000L ts, 'a' dt UNION ALL SELECT 2, 1000L, 'a' UNION ALL SELECT 3, 1000L, 'b'", "insert")
    table.write("SELECT 1 id, 2000L ts, 'a' dt UNION ALL SELECT 3, 2000L, 'b'")
    table.write("SELECT 2 id, 3000L ts, 'a' dt")
    table.keep("logged")
    table.call("run_compaction", op="schedule")
    table.write("SELECT 1 id, 4000L ts, 'a' dt")
    table.keep("pending")
    table.call("run_compaction", op="run")
    table.keep("compacted")
    table.write("SELECT 3 id, 5000L ts, 'b' dt")
    table.call("create_savepoint", commit_time=table.commits()[0])
    table.write("SELECT 3 id, 6000L ts, 'b' dt", "delete")
    table.keep("deleted")
    table.call("rollback_to_savepoint", instant_time=table.commits()[1])
    table.keep("restored")
    table.write("SELECT 1 id, 7000L ts, 'a' dt")
    table.call("run_compaction", op="schedule")
    table.call("run_compaction", op="run")
    table.write("SELECT 1 id, 8000L ts, 'a' dt")
    table.call("rollback_to_instant", instant_time=table.commits()[0])
    table.keep("rolled_back")
    table.call("run_clean", retain_commits=1)
    table.keep("end")
    table.save(output)


def record_visits(spark: SparkSession, output: Path) -> None:
    """Copy on write without partitions, so many commits that Hudi archives the older ones."""
    table = Table(
        spark,
        "visits",
        datasource_write_keygenerator_class="org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        clean_automatic="true",
        archive_automatic="true",
        clean_commits_retained="1",
        cleaner_commits_retained="1",
        keep_min_commits="2",
        keep_max_commits="3",
        parquet_small_file_limit="0",
    )
    for ts in range(1, 8):
        table.write(f"SELECT {ts if ts < 3 else 1} id, {ts}L ts", "insert" if ts < 3 else "upsert")
    table.keep("end")
    table.save(output)


def main(bundle: Path, output: Path) -> None:
    shutil.rmtree(LAKE, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", str(bundle))
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.sql.warehouse.dir", str(LAKE / "warehouse"))
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.hadoop.hoodie.metadata.enable", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("SET hoodie.metadata.enable=false")
    spark.sql("SET hoodie.compact.inline.max.delta.commits=1")
    for record in (record_orders, record_clicks, record_visits):
        record(spark, output)
    (output / "callback.json").write_text(json.dumps(requests, indent=1) + "\n")
    spark.stop()
    server.shutdown()
    shutil.rmtree(LAKE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

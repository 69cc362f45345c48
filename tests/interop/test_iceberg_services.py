"""Iceberg's tables under the table management service: its own actions, in a session of its own, real."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lake.maintenance.executors.iceberg import IcebergExecutor
from lake.maintenance.service import Options, Service
from lake.protocol.lake import ListJobsRequest, ServiceJob, TableReference
from lake.tables.lake import LakeClient
from tests.interop.test_iceberg import CATALOG, RUNTIME
from tests.spark.session import LINES, SparkSession, require
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

COMMITS = 8
PROPERTIES = (
    "'clustering.fewer-files' = '5', 'clean.commits-retained' = '2', 'clean.files' = '3',"
    " 'write.distribution-mode' = 'none', 'orphans.enabled' = 'true'"
)


def test_files_are_rewritten_snapshots_expire_and_orphans_go(
    class_path: Callable[..., list[Path]], tmp_path: Path
) -> None:
    require("3.5")
    (jar,) = class_path(RUNTIME)
    home = Path(LINES["3.5"]).parent.parent
    [submit] = home.glob("lib/python*/site-packages/pyspark/bin/spark-submit")
    catalog = "spark_sql_catalog_lake"
    settings = {
        "spark_jars": str(jar),
        catalog: CATALOG,
        f"{catalog}_type": "hive",
        f"{catalog}_cache-enabled": "false",
    }
    with MetastoreServer(tmp_path / "data") as server, LakeClient(server.uri) as client:
        warehouse = str(tmp_path / "data" / "warehouse")
        settings[f"{catalog}_uri"] = server.uri
        settings[f"{catalog}_warehouse"] = warehouse
        submitting = ["env", f"SPARK_HOME={submit.parent.parent}", f"PYSPARK_PYTHON={LINES['3.5']}", str(submit)]
        options = ["--master=local[2]", "--conf", "spark.ui.enabled=false", "--driver-memory=768m"]
        options += ["--conf", "spark.sql.shuffle.partitions=2"]
        service = Service(
            server.uri, None, Options(), iceberg=IcebergExecutor(server.uri, str(jar), options, command=submitting)
        )
        serving = threading.Thread(target=service.serve)
        with SparkSession("3.5", server.uri, warehouse, tmp_path / "spark", **settings) as spark:
            spark.sql("CREATE DATABASE lake.shop")
            spark.sql(f"CREATE TABLE lake.shop.orders (id INT, dt STRING) USING iceberg TBLPROPERTIES ({PROPERTIES})")
            data = Path(warehouse) / "shop.db" / "orders" / "data"
            data.mkdir(exist_ok=True)
            old, young = data / "old.parquet", data / "young.parquet"
            for file, hours in ((old, 100), (young, 10)):
                file.write_bytes(b"left by a writer that failed")
                os.utime(file, (time.time() - hours * 3600,) * 2)
            serving.start()
            try:
                for number in range(COMMITS):
                    spark.sql(f"INSERT INTO lake.shop.orders VALUES ({number}, 'a')")
                wait_until(lambda: done(client) >= {"clustering", "clean", "orphans"}, 300, "all services")
            finally:
                service.stop()
                serving.join(60)
            assert not old.exists()
            assert young.exists(), "its writer may still be at work"
            assert sorted(spark.column("SELECT id FROM lake.shop.orders")) == list(range(COMMITS))
            files = spark.sql("SELECT count(*) FROM lake.shop.orders.files")
            snapshots = spark.sql("SELECT count(*) FROM lake.shop.orders.snapshots")
            assert files[0][0] < COMMITS
            assert snapshots[0][0] < COMMITS
    assert not serving.is_alive()


def done(client: LakeClient) -> set[str | None]:
    """The actions of jobs that have succeeded. Raises AssertionError with the log of one that failed."""
    request = ListJobsRequest(table=TableReference(database="shop", table="orders"), withLogs=True)
    jobs: list[ServiceJob] = client.call(lambda opened: opened.lake_list_jobs(request)).jobs or []
    for each in jobs:
        assert each.outcome != "error", each.log
    return {each.action for each in jobs if each.state == "succeeded"}

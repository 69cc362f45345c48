"""The hint outside Python: in spark-sql and through the Thrift JDBC server."""

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.session import SparkSession, spark_of
from tests.spark_extension.conftest import free_port
from tests.spark_extension.lake import Lake
from tests.support.waiting import wait_until

QUERIES = [
    "SELECT sum(id) FROM source",
    "SELECT /*+ includeUnCommit(true) */ sum(id) FROM source",
    "SELECT /*+ includeUnCommit=true */ sum(id) FROM serde",
    "SELECT /*+ includeUnCommit */ sum(a.id) FROM hive a JOIN seen b USING (id)",
]
ANSWERS = ["3", "13", "13", "13"]


def run(command: list[str], directory: Path, **environment: str) -> str:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_"))}
    done = subprocess.run(
        command, cwd=directory, env={**inherited, **environment}, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def configuration(spark: SparkSession, lake: Lake, tmp_path: Path) -> list[str]:
    """Options with the settings that `metastore spark-conf` prints, and the jar that it builds for this Spark."""
    settings = [sys.executable, "-m", "lake.cli", "spark-conf", "--uri", lake.server.uri]
    (tmp_path / "lake.conf").write_text(run(settings, tmp_path, SPARK_HOME=str(spark_of(spark.line))))
    options = ["--properties-file", str(tmp_path / "lake.conf"), "--master", "local[1]"]
    options += ["--driver-java-options", f"-Djava.io.tmpdir={tmp_path} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"]
    for setting in ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1"):
        options += ["--conf", setting]
    return options


@pytest.fixture
def keyed(spark: SparkSession, readable: str) -> str:
    """A keyed table that was written twice; the sum of its two rows is 26."""
    columns = "(id BIGINT, n INT) USING parquet TBLPROPERTIES ('primary-key' = 'id', 'table-type' = 'merge-on-read')"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {readable}.keyed {columns}")
    spark.python(
        f"""
from lake.spark import write
for rows in ([(1, 7), (2, 6)], [(1, 20)]):
    write(spark.createDataFrame(rows, "id bigint, n int"), "{readable}.keyed", operation="upsert")
"""
    )
    return "SELECT sum(n) FROM keyed"


@pytest.mark.long
def test_spark_sql(spark: SparkSession, readable: str, keyed: str, configuration: list[str], tmp_path: Path) -> None:
    home = str(spark_of(spark.line))
    statements = ";\n".join([f"USE {readable}", *QUERIES, keyed])
    command = [f"{home}/bin/spark-sql", *configuration, "-e", f"{statements};"]
    printed = run(command, tmp_path, SPARK_HOME=home, SPARK_LOCAL_IP="127.0.0.1")
    assert [line for line in printed.splitlines() if line.isdigit()] == [*ANSWERS, "26"]


@pytest.mark.long
def test_jdbc(spark: SparkSession, readable: str, keyed: str, configuration: list[str], tmp_path: Path) -> None:
    home = str(spark_of(spark.line))
    port = free_port()
    server = [f"{home}/bin/spark-submit", *configuration]
    server += ["--conf", "spark.hadoop.hive.server2.thrift.bind.host=127.0.0.1"]
    server += ["--conf", f"spark.hadoop.hive.server2.thrift.port={port}"]
    server += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
    environment = os.environ | {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        started = subprocess.Popen(server, cwd=tmp_path, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: accepts(port) or started.poll() is not None, 180, "the JDBC server")
        assert started.poll() is None, log.read_text(errors="replace")
        beeline = ["java", "-cp", f"{home}/jars/*", "org.apache.hive.beeline.BeeLine", "--silent=true"]
        beeline += ["-u", f"jdbc:hive2://127.0.0.1:{port}/{readable}", "--outputformat=csv2"]
        for query in [*QUERIES, keyed]:
            beeline += ["-e", query]
        printed = run(beeline, tmp_path)
    finally:
        started.terminate()
        started.wait()
    assert re.findall(r"^\d+$", printed, re.MULTILINE) == [*ANSWERS, "26"]


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.mark.long
def test_settings_as_json(tmp_path: Path) -> None:
    home = str(spark_of("4"))
    command = [sys.executable, "-m", "lake.cli", "spark-conf", "--json", "--keep-listings"]
    printed = run(command, tmp_path, SPARK_HOME=home, METASTORE_URI="thrift://lake:1")
    assert '"spark.hadoop.hive.metastore.uris": "thrift://lake:1"' in printed
    assert "filesourcePartitionFileCacheSize" not in printed

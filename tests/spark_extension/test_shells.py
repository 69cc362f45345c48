"""The hint outside Python: in spark-sql and through the Thrift JDBC server."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.spark.session import SparkSession
from tests.spark_extension.conftest import ConfiguredSession, spark_of
from tests.spark_extension.lake import Lake

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


def test_spark_sql(spark: SparkSession, readable: str, lake: Lake, tmp_path: Path) -> None:
    """With the settings that `metastore spark-conf` prints, and the jar that it builds for this Spark."""
    home = str(spark_of(spark.line))
    settings = [sys.executable, "-m", "lake.cli", "spark-conf", "--uri", lake.server.uri]
    (tmp_path / "lake.conf").write_text(run(settings, tmp_path, SPARK_HOME=home))
    command = [f"{home}/bin/spark-sql", "--properties-file", str(tmp_path / "lake.conf"), "--master", "local[1]"]
    command += ["--driver-java-options", f"-Djava.io.tmpdir={tmp_path} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"]
    for setting in ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1"):
        command += ["--conf", setting]
    statements = ";\n".join([f"USE {readable}", *QUERIES])
    printed = run([*command, "-e", f"{statements};"], tmp_path, SPARK_HOME=home, SPARK_LOCAL_IP="127.0.0.1")
    assert [line for line in printed.splitlines() if line.isdigit()] == ANSWERS


def test_jdbc(spark: ConfiguredSession, readable: str, tmp_path: Path) -> None:
    thrift_server = "spark._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    spark.python(f"{thrift_server}.startWithContext(spark._jsparkSession.sqlContext())")
    beeline = ["java", "-cp", f"{spark_of(spark.line)}/jars/*", "org.apache.hive.beeline.BeeLine"]
    beeline += ["-u", f"jdbc:hive2://127.0.0.1:{spark.jdbc_port}/{readable}", "--silent=true", "--outputformat=csv2"]
    for query in QUERIES:
        beeline += ["-e", query]
    printed = run(beeline, tmp_path)
    assert re.findall(r"^\d+$", printed, re.MULTILINE) == ANSWERS


def test_settings_as_json(tmp_path: Path) -> None:
    home = str(spark_of("4"))
    command = [sys.executable, "-m", "lake.cli", "spark-conf", "--json", "--keep-listings"]
    printed = run(command, tmp_path, SPARK_HOME=home, METASTORE_URI="thrift://lake:1")
    assert '"spark.hadoop.hive.metastore.uris": "thrift://lake:1"' in printed
    assert "filesourcePartitionFileCacheSize" not in printed

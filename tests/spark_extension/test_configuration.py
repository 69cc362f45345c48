"""What `configure` sets, and where the extension's jar comes from."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession as PySparkSession

from lake.protocol.errors import UserError
from lake.spark import configure, jar
from tests.spark.session import ROOT, SparkSession, spark_of
from tests.spark_extension.conftest import LAYOUTS, fill
from tests.spark_extension.lake import Lake
from tests.support.server import MetastoreServer

SOURCE = ROOT / "spark_extension/src"


@pytest.fixture
def no_spark_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory of Spark's settings."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def given_jar(released_jar: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jar, "PACKAGED_JAR", released_jar)
    return released_jar


@pytest.mark.usefixtures("no_spark_files")
def test_what_is_set(given_jar: Path) -> None:
    builder = PySparkSession.builder.config("spark.sql.shuffle.partitions", "7")
    assert configure(builder, "thrift://a:1,thrift://b:2", warehouse_dir="s3a://lake/warehouse") is builder
    assert builder._options == {
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": "thrift://a:1,thrift://b:2",
        "spark.sql.extensions": "lake.metastore.spark.MetastoreExtensions",
        "spark.sql.catalog.spark_catalog": "lake.metastore.spark.LakeCatalog",
        "spark.jars": str(given_jar),
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.sql.hive.manageFilesourcePartitions": "true",
        "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.warehouse.dir": "s3a://lake/warehouse",
    }


@pytest.mark.usefixtures("no_spark_files")
def test_listings_can_be_kept(given_jar: Path) -> None:
    builder = configure(PySparkSession.builder, "thrift://a:1", warehouse_dir="/w", keep_listings=True)
    assert "spark.sql.hive.filesourcePartitionFileCacheSize" not in builder._options


@pytest.mark.parametrize("key", ["spark.sql.codegen.cache.maxEntries", "spark.sql.catalog.spark_catalog"])
def test_what_is_set_already_stays(given_jar: Path, no_spark_files: Path, key: str) -> None:
    builder = configure(PySparkSession.builder.config(key, "300"), "thrift://a:1", warehouse_dir="/w")
    assert builder._options[key] == "300"
    (no_spark_files / "spark-defaults.conf").write_text(f"{key} 400\n")
    assert key not in configure(PySparkSession.builder, "thrift://a:1", warehouse_dir="/w")._options


def test_lists_are_added_to(given_jar: Path, no_spark_files: Path) -> None:
    """What the builder says comes first, then Spark's own file; twice changes nothing."""
    (no_spark_files / "spark-defaults.conf").write_text(
        "# spark.sql.extensions  no.No\nspark.sql.extensions   a.A,b.B\n"
        "spark.jars=/file.jar\nspark.sql.warehouse.dir /w\n"
    )
    builder = PySparkSession.builder.config("spark.jars", "/mine.jar")
    configure(configure(builder, "thrift://a:1"), "thrift://a:1")
    assert builder._options["spark.sql.extensions"] == f"a.A,b.B,{jar.EXTENSION_CLASS}"
    assert builder._options["spark.jars"] == f"/mine.jar,{given_jar}"
    assert "spark.sql.warehouse.dir" not in builder._options


@pytest.mark.usefixtures("no_spark_files", "given_jar")
def test_the_warehouse_is_the_servers(metastore_server: MetastoreServer, lake: Lake) -> None:
    builder = configure(PySparkSession.builder, f"thrift://127.0.0.1:1,{metastore_server.uri}")
    assert str(builder._options["spark.sql.warehouse.dir"]).removeprefix("file:") == str(lake.warehouse)
    builder = configure(PySparkSession.builder.config("spark.sql.warehouse.dir", "/mine"), "thrift://127.0.0.1:1")
    assert builder._options["spark.sql.warehouse.dir"] == "/mine"
    with pytest.raises(UserError, match=r"^no metastore answers at thrift://127\.0\.0\.1:1$"):
        configure(PySparkSession.builder, "thrift://127.0.0.1:1")
    with pytest.raises(UserError, match=r"^'lake:1' is not of the form thrift://host:port$"):
        configure(PySparkSession.builder, "lake:1")


@pytest.mark.long
@pytest.mark.parametrize("line", ["3.5", "4"])
def test_it_is_built_once(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(spark_of(line)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = jar.extension_jar()
    assert built.parent == tmp_path / "lake-metastore"
    assert list(built.parent.iterdir()) == [built]
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        content = archive.read("lake/metastore/spark/MetastoreExtensions.class")
    assert {name.split("/")[0] for name in names} == {"META-INF", "lake"}
    assert int.from_bytes(content[6:8], "big") == {"3.5": 52, "4": 61}[line], "Java 8 runs Spark 3.5, Java 17 Spark 4"
    before = built.stat()
    assert jar.extension_jar() == built
    assert (built.stat().st_ino, built.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    again = tmp_path / "again.jar"
    jar.build(SOURCE, spark_of(line), again)
    assert again.read_bytes() == built.read_bytes(), "the same classes make the same bytes"


def test_a_jar_in_the_package_comes_first(given_jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    assert jar.extension_jar() == given_jar


def test_without_a_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = spark_of("3.5")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(jar.ExtensionNotBuilt, match="needs a JDK") as raised:
        jar.extension_jar()
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    with pytest.raises(jar.ExtensionNotBuilt, match=r"^/nowhere is no Spark 3\.5 or 4"):
        jar.extension_jar()


def test_source_that_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/Broken.java").write_text("class Broken { int x = ; }")
    with pytest.raises(jar.ExtensionNotBuilt, match=r"can't compile .* illegal start of expression$"):
        jar.build(tmp_path / "src", spark_of("3.5"), tmp_path / "out/x.jar")
    assert list((tmp_path / "out").iterdir()) == []


def wheel(directory: Path, **environment: str) -> Path:
    """What is in the client's wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    subprocess.run(
        [*command, "--wheel-dir", str(directory), "./lake"], cwd=ROOT, check=True, env={**os.environ, **environment}
    )
    (file,) = directory.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(directory / "package")
    return directory / "package"


@pytest.mark.long
def test_the_released_wheel_has_the_jar(released_jar: Path, tmp_path: Path) -> None:
    package = wheel(tmp_path, LAKE_METASTORE_SPARK_HOME=str(spark_of("3.5")))
    packaged = package / "lake/spark" / jar.PACKAGED_JAR.relative_to(Path(jar.__file__).parent)
    assert packaged.read_bytes() == released_jar.read_bytes()


@pytest.mark.long
def test_installed_from_source(hinting_session: Callable[[str], SparkSession], lake: Lake, tmp_path: Path) -> None:
    """The hint works with what a wheel without a jar brings, also in a JVM in which another session ran before."""
    session = hinting_session("4")
    session.sql("CREATE DATABASE installed")
    for table, layout in {"t": "source", "t_hive": "hive"}.items():
        session.sql(f"CREATE TABLE installed.{table} {LAYOUTS[layout]}")
        fill(session, lake, "installed", table)
    package = wheel(tmp_path)
    assert not (package / "lake/spark/extension/lake-metastore-spark.jar").exists()
    command = [sys.executable, str(ROOT / "tests/spark/programs/restarted.py"), "--table", "installed.t"]
    command += ["--uri", lake.server.uri, "--warehouse", str(lake.warehouse), "--scratch", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(package), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (tmp_path / "cache/lake-metastore").iterdir()
    assert json.loads(done.stdout) == {
        "package": str(package / "lake/spark"),
        # Spark drops a hint that it doesn't know, and lists directories if it is configured so.
        "without the extension": {"hint": 13, "table": 13, "table of Hive": 3, "reader": 3, "reader of all": 13},
        "while it runs": "SessionRunning: a Spark session is running without the metastore's extension: "
        "stop it before configure()",
        "extensions": f"an.other.Extension,{jar.EXTENSION_CLASS}",
        "jar": str(built),
        "with the extension": {"hint": 13, "table": 3},
        # Listings are kept, but not what a hint lets see.
        "grown": {"installed.t": [13, 113], "installed.t_hive": [13, 113]},
    }

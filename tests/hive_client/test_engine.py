"""Hive itself, its planner and its MapReduce in one JVM, on our server.

PySpark's jars have Hive without its optimiser; the whole comes from Maven Central.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import jvm
from tests.support.jvm import pyspark_jars
from tests.support.reference import missing
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.interop

FROM_MAVEN = ["org.apache.hive:hive-exec:2.3.10", "net.hydromatic:eigenbase-properties:1.1.5"]
# What serialising a MapReduce job looks into, beside what the metastore's classes do.
ALSO_OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.io", "java.text", "java.time", "java.util.concurrent.atomic", "java.util.regex")
]
REPLACED = re.compile(r"hive-(exec|serde|common|shims|llap)|kryo|spark-hive|calcite")


class StatementFailed(Exception):
    """Hive's message."""


class Hive:
    """A session of Hive."""

    def __init__(self, jvm: Any, uri: str, directory: Path) -> None:
        self._jvm = jvm
        self._configuration = jvm.org.apache.hadoop.hive.conf.HiveConf()
        for name, value in {
            "hive.metastore.uris": uri,
            "hive.execution.engine": "mr",
            "mapreduce.framework.name": "local",
            "hive.exec.dynamic.partition.mode": "nonstrict",
            "hive.support.concurrency": "false",
            "hive.exec.scratchdir": str(directory / "scratch"),
            "hive.exec.local.scratchdir": str(directory / "local"),
            "hive.downloaded.resources.dir": str(directory / "resources"),
            "hive.querylog.location": str(directory / "log"),
        }.items():
            self._configuration.set(name, value)
        session = jvm.org.apache.hadoop.hive.ql.session
        session.SessionState.start(session.SessionState(self._configuration))

    def run(self, statement: str) -> list[str]:
        """The lines that a statement gives. Raises StatementFailed."""
        driver = self._jvm.org.apache.hadoop.hive.ql.Driver(self._configuration)
        response = driver.run(statement)
        if response.getResponseCode():
            raise StatementFailed(response.getErrorMessage())
        lines = self._jvm.java.util.ArrayList()
        driver.getResults(lines)
        driver.close()
        return list(lines)

    def partitions_read(self, table: str, condition: str) -> list[str]:
        """The partitions that a query with this condition would read."""
        (plan,) = self.run(f"explain dependency select * from {table} where {condition}")
        names = [each["partitionName"] for each in json.loads(plan)["input_partitions"]]
        return sorted(name.rpartition("@")[2] for name in names)


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    if shutil.which("mvn") is None:
        pytest.skip("the whole of Hive needs Maven (Debian: apt-get install maven)")
    directory = tmp_path_factory.mktemp("jars")
    for artifact in FROM_MAVEN:
        copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
        subprocess.run(copy, check=True, cwd=directory)
    of_pyspark = pyspark_jars()
    assert of_pyspark is not None
    return [*directory.glob("*.jar"), *(jar for jar in of_pyspark.glob("*.jar") if not REPLACED.match(jar.name))]


@pytest.fixture(scope="module")
def hive(
    jars: list[Path], metastore_server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hive]:
    directory = tmp_path_factory.mktemp("hive")
    options = [*ALSO_OPENED, "-Xmx1g", "-XX:+UseSerialGC"]
    with jvm.running(jars, directory, options=options) as gateway:
        session = Hive(gateway.jvm, metastore_server.uri, directory)
        session.run("create database engine")
        session.run("use engine")
        yield session
        session.run("drop database engine cascade")


@pytest.fixture(scope="module")
def tables(hive: Hive) -> None:
    hive.run("create table t (a int) partitioned by (ds string, hr int)")
    for ds, hr in (("2020-01-01", 1), ("2020-01-01", 2), ("2020-01-02", 1), ("7", 3)):
        hive.run(f"alter table t add partition (ds='{ds}', hr={hr})")
    hive.run("create table d (a int) partitioned by (d date, n bigint)")
    for day, number in (("2020-01-01", 1), ("2020-01-02", 3_000_000_000)):
        hive.run(f"alter table d add partition (d='{day}', n={number})")
    hive.run("create table m (a int) partitioned by (f double, c decimal(10,2), v varchar(10), b boolean)")
    hive.run("alter table m add partition (f=1.5, c=2.50, v='abc', b=true)")
    hive.run("alter table m add partition (f=9.5, c=3, v='def', b=false)")


@pytest.mark.usefixtures("tables")
class TestPruning:
    FIRST, SECOND, NEXT_DAY, SEVEN = "ds=2020-01-01/hr=1", "ds=2020-01-01/hr=2", "ds=2020-01-02/hr=1", "ds=7/hr=3"

    @pytest.mark.parametrize(
        ("condition", "read"),
        [
            ("ds = '2020-01-01'", [FIRST, SECOND]),
            ("hr = '1'", [FIRST, NEXT_DAY]),
            ("ds = 7", [SEVEN]),
            ("ds = '2020-01-01' and hr > 1", [SECOND]),
            ("ds in ('2020-01-01', '2020-01-03') and hr in (1, 3)", [FIRST]),
            ("ds not in ('2020-01-01')", [NEXT_DAY, SEVEN]),
            ("ds between '2020-01-01' and '2020-01-03'", [FIRST, SECOND, NEXT_DAY]),
            ("ds not between '2020-01-01' and '2020-01-03'", [SEVEN]),
            ("hr = 2 or ds = '2020-01-02'", [SECOND, NEXT_DAY]),
            ("not (hr = 1 or ds = '2020-01-02')", [SECOND, SEVEN]),
            ("ds is null", []),
            ("ds is not null and hr <> 2", [FIRST, NEXT_DAY, SEVEN]),
            ("ds like '2020-01-0_' and hr = 1", [FIRST, NEXT_DAY]),
            ("ds not like '2020%'", [SEVEN]),
            ("cast(ds as date) = date '2020-01-01'", [FIRST, SECOND]),
            ("ds >= date_sub('2020-01-03', 1)", [NEXT_DAY]),
            ("(ds, hr) in (('2020-01-01', 1), ('2020-01-02', 2))", [FIRST]),
            ("(ds = '2020-01-01' and a = 1) or (ds = '7' and a = 2)", [FIRST, SECOND, SEVEN]),
            ("ds <=> '7'", [SEVEN]),
            ("hr = 1.5", []),
            # Hive reads all that isn't excluded, and tests the rows.
            ("upper(ds) = '7'", [FIRST, SECOND, NEXT_DAY, SEVEN]),
            ("substr(ds, 1, 4) = '2020' and hr = 1", [FIRST, NEXT_DAY]),
        ],
    )
    def test_text_and_numbers(self, hive: Hive, condition: str, read: list[str]) -> None:
        assert hive.partitions_read("t", condition) == read

    @pytest.mark.parametrize(
        ("condition", "read"),
        [
            ("d = '2020-01-01'", ["d=2020-01-01/n=1"]),
            ("d > date '2020-01-01'", ["d=2020-01-02/n=3000000000"]),
            ("d in ('2020-01-01', '2020-01-05')", ["d=2020-01-01/n=1"]),
            ("d between date '2020-01-02' and date '2020-01-03'", ["d=2020-01-02/n=3000000000"]),
            ("n in (1, 4)", ["d=2020-01-01/n=1"]),
            ("n > 2999999999", ["d=2020-01-02/n=3000000000"]),
        ],
    )
    def test_days(self, hive: Hive, condition: str, read: list[str]) -> None:
        assert hive.partitions_read("d", condition) == read

    @pytest.mark.parametrize(
        "condition", ["f = 1.5", "f between 1 and 2", "c = 2.5", "c > 2 and c < 3", "v = 'abc'", "b = true"]
    )
    def test_other_types(self, hive: Hive, condition: str) -> None:
        assert hive.partitions_read("m", condition) == ["f=1.5/c=2.5/v=abc/b=true"]


def test_dropping_partitions(hive: Hive) -> None:
    hive.run("create table dropped (a int) partitioned by (ds string, d date, n int)")

    def add(*specs: tuple[str, str, int]) -> None:
        for ds, d, n in specs:
            hive.run(f"alter table dropped add if not exists partition (ds='{ds}', d='{d}', n={n})")

    def left() -> list[str]:
        return hive.run("show partitions dropped")

    add(("a", "2020-01-01", 1), ("b", "2020-01-02", 2), ("c", "2020-01-03", 3))
    hive.run("alter table dropped drop partition (ds='a'), partition (d='2020-01-02', n<=2)")
    assert left() == ["ds=c/d=2020-01-03/n=3"]
    hive.run("alter table dropped drop if exists partition (ds='__HIVE_DEFAULT_PARTITION__')")
    hive.run("alter table dropped drop if exists partition (n > 5)")
    hive.run("alter table dropped drop partition (d > '2020-01-02')")
    assert left() == []


def test_life_of_a_table(hive: Hive, metastore_server: MetastoreServer) -> None:
    hive.run("create table t1 (a int, b string) partitioned by (ds string, hr int)")
    hive.run("insert into t1 partition (ds='x', hr=1) values (1, 'one'), (2, 'two')")
    hive.run("insert overwrite table t1 partition (ds, hr) select a, b, 'y', a from t1 where ds = 'x'")
    assert hive.run("select * from t1 where ds = 'y'") == ["1\tone\ty\t1", "2\ttwo\ty\t2"]
    assert hive.run("select count(*) from t1") == ["4"]

    hive.run("alter table t1 add columns (c int) cascade")
    hive.run("alter table t1 partition (ds='x', hr=1) rename to partition (ds='z', hr=9)")
    assert hive.run("show partitions t1") == ["ds=y/hr=1", "ds=y/hr=2", "ds=z/hr=9"]
    assert hive.run("select a, b, c from t1 where ds = 'z'") == ["1\tone\tNULL", "2\ttwo\tNULL"]

    hive.run("analyze table t1 partition (ds, hr) compute statistics for columns")
    described = hive.run("describe formatted t1 partition (ds='y', hr=1) a")
    assert any(re.match(r"a\s+int\s+1\s+1\s+0\s+1\b", line) for line in described)

    hive.run("create view v1 as select a from t1 where ds = 'y'")
    assert hive.run("select * from v1") == ["1", "2"]
    hive.run("drop view v1")

    hive.run("alter table t1 rename to t2")
    assert hive.run("select count(*) from t2") == ["4"]
    shutil.rmtree(metastore_server.data_dir / "warehouse" / "engine.db" / "t2" / "ds=z")
    (metastore_server.data_dir / "warehouse" / "engine.db" / "t2" / "ds=found" / "hr=5").mkdir(parents=True)
    hive.run("msck repair table t2")
    assert "ds=found/hr=5" in hive.run("show partitions t2")
    hive.run("truncate table t2 partition (ds='y', hr=1)")
    hive.run("drop table t2")
    assert "t2" not in hive.run("show tables")


def test_functions_and_constraints(hive: Hive) -> None:
    hive.run("create function engine.year_of as 'org.apache.hadoop.hive.ql.udf.UDFYear'")
    assert hive.run("select engine.year_of('2020-01-01')") == ["2020"]
    hive.run("drop function engine.year_of")
    hive.run("create table parent (id int, primary key (id) disable novalidate)")
    assert any("Column Name" in line for line in hive.run("describe formatted parent"))
    hive.run("drop table parent")

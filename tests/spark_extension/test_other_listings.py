"""Tables whose partitions Spark doesn't take from the metastore: the extension hides there, and our reader."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.session import SparkSession
from tests.spark_extension.conftest import LAYOUTS, fill
from tests.spark_extension.lake import Lake

ON, OFF = "/*+ includeUnCommit(true) */", "/*+ includeUnCommit(false) */"


@pytest.fixture
def unmanaged(spark: SparkSession) -> Iterator[None]:
    """Spark lists directories."""
    spark.sql("SET spark.sql.hive.manageFilesourcePartitions = false")
    yield
    spark.sql("SET spark.sql.hive.manageFilesourcePartitions = true")


@pytest.fixture(params=["source", "hive", "without partitions in the catalog"])
def table(request: pytest.FixtureRequest, spark: SparkSession, lake: Lake, database: str, unmanaged: None) -> str:
    """A table `t` with a ready and an uncommitted partition, of which Spark would see both."""
    if request.param in LAYOUTS:
        spark.sql("SET spark.sql.hive.manageFilesourcePartitions = true")
        spark.sql(f"CREATE TABLE t {LAYOUTS[request.param]}")
        fill(spark, lake, database, "t")
        spark.sql("SET spark.sql.hive.manageFilesourcePartitions = false")
        spark.sql("REFRESH TABLE t")
    else:
        # Its values are escaped, null, and numbers with leading zeros.
        spark.sql("CREATE TABLE t (id INT, v STRING, dt STRING, hr INT) USING parquet PARTITIONED BY (dt, hr)")
        spark.sql(
            "INSERT INTO t VALUES (1, 'r', 'a b/c', 1), (2, 'r', 'a b/c', 2), (4, 'o', 'a b/c', 7), (6, 'o', NULL, 7)"
        )
        assert spark.value("SELECT sum(id) FROM t") == 13, "what the metastore doesn't know is not hidden"
        root = lake.directory(database, "t")
        lake.add_hidden(database, "t", ["a b/c", "07"], root / "dt=a b%2Fc" / "hr=7")
        lake.add_hidden(database, "t", ["__HIVE_DEFAULT_PARTITION__", "7"], root / "dt=__HIVE_DEFAULT_PARTITION__/hr=7")
    return "t"


QUERIES = {
    "SELECT sum(id) FROM t": [[3]],
    f"SELECT {ON} sum(id) FROM t": [[13]],
    f"SELECT {ON} (SELECT sum(id) FROM t), (SELECT {OFF} sum(id) FROM t)": [[13, 3]],
    f"SELECT {OFF} (SELECT {ON} sum(id) FROM t), sum(id) FROM t": [[13, 3]],
    "SELECT sum(a.id), sum(b.id), count(*) FROM t a JOIN t b USING (id)": [[3, 3, 2]],
    f"SELECT sum(a.id), sum(b.id) FROM t a RIGHT JOIN (SELECT {ON} * FROM t) b USING (id)": [[3, 13]],
    f"WITH c AS (SELECT * FROM t) SELECT (SELECT {ON} sum(id) FROM c), sum(id) FROM c": [[13, 3]],
    f"SELECT {ON} sum(id) FROM seen": [[13]],
    "SELECT sum(id) FROM seen": [[3]],
}


@pytest.mark.long
@pytest.mark.usefixtures("table")
def test_the_extension_hides(spark: SparkSession) -> None:
    spark.sql("CREATE TEMPORARY VIEW seen AS SELECT id FROM t")
    try:
        assert {query: spark.sql(query) for query in QUERIES} == QUERIES
        total = "groupBy().sum('id').collect()[0][0]"
        frames = f"t = spark.table('t'); h = t.hint('includeUnCommit'); result = [t.{total}, h.{total}]"
        assert spark.python(frames) == [3, 13]
    finally:
        spark.sql("DROP VIEW seen")


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("table")
def test_the_reader_hides(spark: SparkSession, database: str) -> None:
    code = "from lake.spark.reading import read_table\n"
    total = "select('t.id').groupBy().sum('id').collect()[0][0]"
    for name in ("t", f"{database}.t"):
        assert spark.python(f"{code}result = read_table(spark, '{name}').{total}") == 3
        assert spark.python(f"{code}result = read_table(spark, '{name}', include_uncommitted=True).{total}") == 13


def test_a_partition_is_seen_when_it_is_committed(
    spark: SparkSession, lake: Lake, database: str, unmanaged: None, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE t (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
    spark.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.add_hidden(database, "t", ["b"])
    assert spark.value("SELECT sum(id) FROM t") == 1
    spark.sql("INSERT INTO t VALUES (4, 'b')")
    assert spark.value(f"SELECT {ON} sum(id) FROM t") == 7
    lake.commit(database, "t", "dt=b")
    assert spark.value("SELECT sum(id) FROM t") == 7

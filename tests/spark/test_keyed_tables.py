"""Keyed tables in a session without the extension: rows past the timeline are refused where Spark tells of them."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lake.tables.lake import LakeClient
from lake.tables.publishing import publish
from tests.spark.session import ROOT, SparkError, SparkSession
from tests.support.server import MetastoreServer

LAYOUTS = {
    "datasource": "(id BIGINT, v INT, dt STRING) USING parquet PARTITIONED BY (dt)",
    "hive": "(id BIGINT, v INT) PARTITIONED BY (dt STRING) STORED AS PARQUET",
}
PAST = "readers of the timeline don't see such rows"


@pytest.fixture
def lakes(metastore_server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(metastore_server.uri) as lakes:
        yield lakes


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_inserts_into_partitions(spark: SparkSession, database: str, lakes: LakeClient, layout: str) -> None:
    spark.sql(f"CREATE TABLE t {layout} TBLPROPERTIES ('primary-key' = 'id,dt')")
    lake = lakes.table(f"{database}.t")
    lake.upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32()), "dt": ["a"]}))
    for query in ("SELECT * FROM t", "SELECT count(*) FROM t WHERE dt = 'a'"):
        with pytest.raises(SparkError, match="was never published"):
            spark.sql(query)
    publish(lake)
    assert spark.sql("SELECT id, v, dt FROM t") == [[1, 1, "a"]]
    with pytest.raises(SparkError, match=PAST):
        spark.sql("INSERT INTO t PARTITION (dt = 'b') VALUES (2, 2)")
    if layout == LAYOUTS["hive"]:
        spark.sql("SET spark.sql.hive.convertMetastoreParquet = false")
        try:
            with pytest.raises(SparkError, match=PAST):
                spark.sql("INSERT INTO t PARTITION (dt = 'a') VALUES (2, 2)")
        finally:
            spark.sql("RESET spark.sql.hive.convertMetastoreParquet")
    with pytest.raises(SparkError, match=PAST):
        spark.sql("MSCK REPAIR TABLE t")
    assert spark.partitions("t") == ["dt=a"]
    spark.sql("ALTER TABLE t ADD COLUMNS (w INT)")
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('allow-external-writes' = 'true')")
    spark.sql("INSERT INTO t PARTITION (dt = 'c') VALUES (2, 2, 2)")
    assert spark.partitions("t", "PARTITION (dt = 'c')") == ["dt=c"]


def test_inserts_into_a_table_without_partitions(spark: SparkSession, database: str, lakes: LakeClient) -> None:
    """Spark reports them once the table has statistics, which a publish gives it."""
    spark.sql("CREATE TABLE t (id BIGINT, v INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    lake = lakes.table(f"{database}.t")
    lake.upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32())}))
    publish(lake)
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    with pytest.raises(SparkError, match=PAST):
        spark.sql("INSERT INTO t VALUES (2, 2)")


def test_python_reads_need_the_extension(spark: SparkSession, database: str, lakes: LakeClient) -> None:
    spark.sql(f"CREATE TABLE t {LAYOUTS['hive']} TBLPROPERTIES ('primary-key' = 'id,dt')")
    lakes.table(f"{database}.t").upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32()), "dt": ["a"]}))
    before = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom lake.spark import read, read_stream, sql\n"
    for call in (
        "read(spark, t)",
        "read(spark, t, incremental=(0, None))",
        "sql(spark, 'SELECT 1')",
        "read_stream(spark, t)",
    ):
        with pytest.raises(SparkError, match=r"make (it|the session) with lake\.spark\.configure"):
            spark.python(f"{before}t = '{database}.t'\n{call}")

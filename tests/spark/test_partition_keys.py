"""Keys of every type, and many partitions."""

import pytest

from tests.spark.session import SparkSession

pytestmark = pytest.mark.usefixtures("database")

#: (type, three values in ascending order as SQL, their partition names)
KEYS = [
    ("STRING", ["'a'", "'b'", "'c'"], ["a", "b", "c"]),
    ("INT", ["-5", "9", "10"], ["-5", "9", "10"]),
    ("BIGINT", ["9L", "10L", "5000000000L"], ["9", "10", "5000000000"]),
    ("SMALLINT", ["1S", "2S", "30S"], ["1", "2", "30"]),
    ("BOOLEAN", ["false", "true"], ["false", "true"]),
    ("DATE", ["DATE'1999-12-31'", "DATE'2024-02-29'", "DATE'2024-03-01'"], ["1999-12-31", "2024-02-29", "2024-03-01"]),
    ("DECIMAL(6,2)", ["1.50", "9.00", "10.25"], ["1.50", "9.00", "10.25"]),
    ("VARCHAR(4)", ["'x'", "'y'"], ["x", "y"]),
]


@pytest.mark.long
@pytest.mark.parametrize("layout", ["USING parquet PARTITIONED BY (k)", "PARTITIONED BY (k {}) STORED AS PARQUET"])
@pytest.mark.parametrize(("kind", "values", "names"), KEYS, ids=[key[0] for key in KEYS])
def test_a_key_of_each_type(spark: SparkSession, layout: str, kind: str, values: list[str], names: list[str]) -> None:
    columns = "v INT" if "{}" in layout else f"v INT, k {kind}"
    spark.sql(f"CREATE TABLE t ({columns}) {layout.format(kind)}")
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    spark.sql(f"INSERT INTO t PARTITION (k) SELECT v, cast(k AS {kind}) FROM VALUES {rows} AS x(v, k)")
    assert sorted(spark.partitions("t")) == sorted(f"k={name}" for name in names)
    assert spark.directories_read(f"SELECT * FROM t WHERE k = {values[1]}") == {f"k={names[1]}"}
    assert spark.column(f"SELECT v FROM t WHERE k > {values[0]} ORDER BY v") == list(range(1, len(values)))
    assert spark.column(f"SELECT v FROM t WHERE k IN ({values[0]}, {values[1]}) ORDER BY v") == [0, 1]


@pytest.mark.long
def test_many_partitions(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE many (v BIGINT, a INT, b INT) USING parquet PARTITIONED BY (a, b)")
    added = " ".join(f"PARTITION (a = {n % 10}, b = {n})" for n in range(1000))
    spark.sql(f"ALTER TABLE many ADD {added}")
    assert len(spark.partitions("many")) == 1000
    assert len(spark.partitions("many", "PARTITION (a = 3)")) == 100
    assert spark.value("SELECT count(*) FROM many WHERE a = 3 AND b BETWEEN 100 AND 199") == 0
    spark.sql("ALTER TABLE many DROP PARTITION (a = 3)")
    assert len(spark.partitions("many")) == 900

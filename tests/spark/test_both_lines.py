"""A session of Spark 3.5 and one of Spark 4 on the same server."""

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.spark.conftest import NUMBERS
from tests.spark.session import LINES, SparkSession


@pytest.fixture(params=[("3.5", "4"), ("4", "3.5")], ids=["old-writes", "new-writes"])
def pair(request: pytest.FixtureRequest, spark_session: Callable[[str], SparkSession]) -> Iterator[list[SparkSession]]:
    """A writer and a reader of different lines, both using an empty database.

    Its name is new each time: a session remembers tables by name, and the other one's drops escape it.
    """
    sessions = [spark_session(line) for line in request.param]
    name = f"shared_{next(NUMBERS)}"
    sessions[0].sql(f"CREATE DATABASE {name}")
    for session in sessions:
        session.sql(f"USE {name}")
    yield sessions
    for session in sessions:
        session.sql("USE default")
    sessions[0].sql(f"DROP DATABASE {name} CASCADE")


@pytest.mark.long
@pytest.mark.parametrize(
    "layout",
    ["USING parquet PARTITIONED BY (k)", "USING orc PARTITIONED BY (k)", "PARTITIONED BY (k STRING) STORED AS PARQUET"],
)
def test_tables(pair: list[SparkSession], layout: str) -> None:
    writer, reader = pair
    columns = "id INT, name STRING, at TIMESTAMP, tags MAP<STRING,INT>" + ("" if "STORED" in layout else ", k STRING")
    writer.sql(f"CREATE TABLE t ({columns}) {layout}")
    writer.sql("INSERT INTO t PARTITION (k) SELECT 1, 'a', TIMESTAMP'2024-01-01 00:00:00', map('x', 1), 'p'")
    assert reader.sql("SELECT * FROM t") == [[1, "a", "2024-01-01 00:00:00", {"x": 1}, "p"]]
    assert reader.sql("DESCRIBE t") == writer.sql("DESCRIBE t")
    reader.sql("INSERT INTO t PARTITION (k) SELECT 2, 'b', NULL, NULL, 'q'")
    writer.sql("REFRESH TABLE t")
    assert writer.column("SELECT id FROM t ORDER BY id") == [1, 2]
    assert writer.partitions("t") == reader.partitions("t") == ["k=p", "k=q"]
    reader.sql("ALTER TABLE t ADD COLUMNS (more INT)")
    writer.sql("REFRESH TABLE t")
    assert writer.column("SELECT more FROM t") == [None, None]
    reader.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id")
    assert dict(writer.sql("DESCRIBE EXTENDED t id"))["max"] == "2"


@pytest.mark.long
def test_views_and_functions(pair: list[SparkSession]) -> None:
    writer, reader = pair
    writer.sql("CREATE TABLE t (a INT) USING parquet")
    writer.sql("INSERT INTO t VALUES (3)")
    writer.sql("CREATE VIEW v AS SELECT a * 2 AS twice FROM t")
    assert reader.sql("SELECT twice FROM v") == [[6]]
    writer.sql("CREATE FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFInitCap'")
    assert reader.value("SELECT f('x')") == "X"
    reader.sql("DROP FUNCTION f")


@pytest.mark.long
def test_both_change_a_table_at_once(pair: list[SparkSession]) -> None:
    pair[0].sql("CREATE TABLE t (v INT, who STRING, n INT) USING parquet PARTITIONED BY (who, n)")
    failures: list[Exception] = []

    def change(session: SparkSession) -> None:
        try:
            for n in range(20):
                session.sql(f"ALTER TABLE t ADD PARTITION (who = '{session.line}', n = {n})")
            session.sql(f"ALTER TABLE t DROP PARTITION (who = '{session.line}', n = 0)")
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=change, args=(session,)) for session in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert pair[0].partitions("t") == sorted(f"who={line}/n={n}" for line in LINES for n in range(1, 20))

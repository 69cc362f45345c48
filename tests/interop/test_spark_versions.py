"""The released jar on the lines of Spark 4 between those that `make test` has, and in a Connect server."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.interop import pyspark
from tests.spark.session import LINES, ROOT, SparkError, SparkSession
from tests.support.server import MetastoreServer

VERSIONS = ("4.0.5", "4.1.4", "4.2.1")

STORY: tuple[tuple[str, list[list[Any]] | None], ...] = (
    (
        "CREATE TABLE c (id BIGINT, name STRING, n INT, dt STRING) USING parquet PARTITIONED BY (dt)"
        " TBLPROPERTIES ('primary-key' = 'id,dt', 'bucket' = '2', 'table-type' = 'merge-on-read')",
        None,
    ),
    ("INSERT INTO c VALUES (1, 'a', 1, 'x'), (2, 'b', 2, 'x'), (3, 'c', 3, 'y')", None),
    ("INSERT INTO c VALUES (2, 'B', 2, 'x')", None),
    ("SELECT id, name FROM c ORDER BY id", [[1, "a"], [2, "B"], [3, "c"]]),
    ("UPDATE c SET n = n + 10 WHERE id < 3", None),
    (
        "MERGE INTO c USING (SELECT 3L AS id, 'y' AS dt UNION ALL SELECT 4L, 'y') s ON c.id = s.id AND c.dt = s.dt"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name, n, dt) VALUES (s.id, 'd', 4, s.dt)",
        None,
    ),
    ("SELECT id, name, n FROM c ORDER BY id", [[1, "a", 11], [2, "B", 12], [4, "d", 4]]),
    ("DELETE FROM c WHERE id = 1", None),
    ("SELECT count(*) FROM c", [[2]]),
    ("SELECT id FROM c VERSION AS OF 1 ORDER BY id", [[1], [2], [3]]),
    ("SELECT id, _change_type FROM lake_changes('c', 4)", [[1, "delete"]]),
    ("SELECT count(*) FROM {database}.c.instants WHERE state = 'completed'", [[5]]),
    ("ALTER TABLE c ADD COLUMN more STRING", None),
    ("ALTER TABLE c RENAME COLUMN name TO label", None),
    ("ALTER TABLE c DROP COLUMN n", None),
    ("SELECT id, label, more FROM c ORDER BY id", [[2, "B", None], [4, "d", None]]),
    ("SHOW PARTITIONS c", [["dt=x"], ["dt=y"]]),
    ("INSERT OVERWRITE c PARTITION (dt = 'y') (id, label, more) VALUES (9, 'z', 'm')", None),
    ("SELECT id FROM c ORDER BY id", [[2], [9]]),
    ("TRUNCATE TABLE c", None),
    ("SELECT * FROM c", []),
    ("DROP TABLE c", None),
)

STREAM = """
import tempfile
spark.sql("CREATE TABLE s (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt)"
          " TBLPROPERTIES ('primary-key' = 'id,dt')")
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows = rows.selectExpr("value AS id", "'x' AS dt").writeStream.trigger(availableNow=True)
rows.option("checkpointLocation", tempfile.mkdtemp()).toTable("s").awaitTermination()
result = spark.table("s").count()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("versions") / "data") as running:
        yield running


@pytest.fixture
def database(server: MetastoreServer, request: pytest.FixtureRequest) -> str:
    return "d_" + "".join(each if each.isalnum() else "_" for each in request.node.callspec.id)


Started = Callable[..., SparkSession]


@pytest.fixture
def start(server: MetastoreServer, released_jar: Path, tmp_path: Path) -> Iterator[Started]:
    """Starts the session of a version, given by its interpreter, by one of the tests' programs."""
    running: list[SparkSession] = []

    def started(python: Path, program: str, **settings: str) -> SparkSession:
        class Session(SparkSession):
            options = ("--jar", str(released_jar))

        Session.program = ROOT / "tests/spark/programs" / program
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(LINES, "4", python)
            found = Session("4", server.uri, str(server.data_dir / "warehouse"), tmp_path / "session", **settings)
        running.append(found)
        return found

    yield started
    for each in running:
        each.close()


def tell(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    for statement, expected in STORY:
        found = spark.sql(statement.format(database=database))
        assert expected is None or found == expected, statement
    with pytest.raises(SparkError, match=r"(?i)doesn't have|cannot be found|TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM c")


@pytest.mark.parametrize("version", VERSIONS)
def test_statements_and_streams(version: str, start: Started, database: str, tmp_path: Path) -> None:
    try:
        python = pyspark.interpreter(version, tmp_path)
    except pyspark.Unavailable as reason:
        pytest.skip(str(reason))
    spark = start(python, "configured.py")
    assert spark.version == version
    tell(spark, database)
    assert spark.python(STREAM) % 5 == 0


@pytest.mark.skipif(find_spec("grpc") is None, reason="needs the package grpcio (tools/setup.sh --spark-connect)")
@pytest.mark.parametrize("how", ["connect"])
def test_a_connect_server(how: str, start: Started, database: str) -> None:
    """Its clients know nothing of the metastore: the session's settings are the server's."""
    tell(start(LINES["4"], "connected.py"), database)

"""Spark's SQL through a front, of two lake metastores and a Hive: keyed tables, lake tables, readiness, time travel."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import CommitPartitionsRequest, TableReference
from tests.spark.session import ConfiguredSession, SparkError, SparkSession, require
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.spark, pytest.mark.long]
KEYED = "USING parquet TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"


@pytest.fixture(scope="module")
def front(
    metastore_server: MetastoreServer, hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    place = tmp_path_factory.mktemp("sql_front")
    with MetastoreServer(place / "other", "--workers", "1") as other:
        backends = {
            "hive": f'uris = "thrift://{hive_reference.host}:{hive_reference.port}"\nprimary = true',
            "lake": f'uris = "{metastore_server.uri}"\nprefix = "l_"\nnumber = 1',
            "other": f'uris = "{other.uri}"\nprefix = "o_"\nnumber = 2',
        }
        with FrontServer(place / "front", backends) as server:
            with ThriftClient(other.host, other.port) as client:
                client.create_database(builders.database("sqlf"))
            yield server


@pytest.fixture(scope="module", params=["4", "3.5"], ids=["spark4", "spark3.5"])
def spark(
    request: pytest.FixtureRequest,
    front: FrontServer,
    metastore_server: MetastoreServer,
    hive_reference: HiveReference,
    released_jar: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    require(request.param)
    directory = tmp_path_factory.mktemp("sql")
    for server, name in ((metastore_server, "sqlf"), (hive_reference, "sqlh")):
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database(name))
    with ConfiguredSession(request.param, front.uri, str(directory / "warehouse"), released_jar, directory) as session:
        yield session
    for server, name in ((metastore_server, "sqlf"), (hive_reference, "sqlh")):
        with ThriftClient(server.host, server.port) as client:
            client.drop_database(name, True, True)


def test_keyed_tables_of_two_metastores(spark: SparkSession) -> None:
    for place in ("l_sqlf", "o_sqlf"):
        spark.sql(f"DROP TABLE IF EXISTS {place}.k")
        spark.sql(f"CREATE TABLE {place}.k (id BIGINT, v STRING) {KEYED}")
        spark.sql(f"INSERT INTO {place}.k VALUES (1, 'a'), (2, 'b')")
    spark.sql("UPDATE l_sqlf.k SET v = 'x' WHERE id = 1")
    spark.sql("DELETE FROM o_sqlf.k WHERE id = 2")
    # From one metastore into a table of the other.
    spark.sql(
        "MERGE INTO o_sqlf.k AS t USING (SELECT * FROM l_sqlf.k) AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert spark.sql("SELECT * FROM o_sqlf.k ORDER BY id") == [[1, "x"], [2, "b"]]
    # They go on after those of a table that had the name.
    first, since = (spark.value(f"SELECT min(position) FROM {place}.k.instants") for place in ("l_sqlf", "o_sqlf"))
    assert spark.sql(f"SELECT * FROM l_sqlf.k VERSION AS OF {first} ORDER BY id") == [[1, "a"], [2, "b"]]
    joined = "SELECT a.id, a.v FROM l_sqlf.k a JOIN o_sqlf.k b ON a.id = b.id AND a.v = b.v ORDER BY 1"
    assert spark.sql(joined) == [[1, "x"], [2, "b"]]
    assert [len(spark.sql(f"SELECT * FROM {place}.k.instants")) for place in ("l_sqlf", "o_sqlf")] == [2, 3]
    changes = (
        f"SELECT id, _change_type FROM lake_changes('o_sqlf.k', {since + 1}, {since + 2}) ORDER BY id, _change_type"
    )
    assert spark.sql(changes) == [[1, "update_postimage"], [1, "update_preimage"], [2, "insert"]]
    spark.sql("ALTER TABLE l_sqlf.k ADD COLUMNS (n INT)")
    spark.sql("INSERT INTO l_sqlf.k VALUES (3, 'c', 7)")
    assert spark.sql("SELECT id, n FROM l_sqlf.k ORDER BY id") == [[1, None], [2, None], [3, 7]]
    spark.sql("DROP TABLE o_sqlf.k")
    spark.sql(f"CREATE TABLE o_sqlf.k (id BIGINT, v STRING) {KEYED}")
    assert spark.sql("SELECT * FROM o_sqlf.k") == [], "another table of the same name"


def test_what_is_not_ready(spark: SparkSession, front: FrontServer) -> None:
    spark.sql("DROP TABLE IF EXISTS l_sqlf.p")
    spark.sql("CREATE TABLE l_sqlf.p (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
    spark.sql("INSERT INTO l_sqlf.p VALUES (1, 'a')")
    with ThriftClient(front.host, front.port) as client:
        client.add_partition(builders.partition("l_sqlf", "p", "b", parameters={"commit": "false"}))
        assert spark.partitions("l_sqlf.p") == ["dt=a"]
        place = spark.value("SELECT input_file_name() FROM l_sqlf.p").rpartition("/dt=")[0]
        spark.python(f"spark.sql('SELECT 2 AS id').write.mode('append').parquet({place + '/dt=b'!r})\nresult = 1")
        assert spark.column("SELECT id FROM l_sqlf.p ORDER BY id") == [1]
        assert spark.column("SELECT /*+ includeUnCommit(true) */ id FROM l_sqlf.p ORDER BY id") == [1, 2]
        table = TableReference(database="l_sqlf", table="p", id=client.get_table("l_sqlf", "p").id)
        client.lake_commit_partitions(CommitPartitionsRequest(table, names=["dt=b"]))
    spark.sql("REFRESH TABLE l_sqlf.p")
    assert spark.column("SELECT id FROM l_sqlf.p ORDER BY id") == [1, 2]


def test_a_table_of_a_hive(spark: SparkSession) -> None:
    spark.sql("DROP TABLE IF EXISTS sqlh.t")
    spark.sql("CREATE TABLE sqlh.t (id INT, dt STRING) USING parquet PARTITIONED BY (dt)")
    spark.sql("INSERT INTO sqlh.t VALUES (1, 'a'), (2, 'b')")
    assert spark.sql("SELECT * FROM sqlh.t WHERE dt = 'b'") == [[2, "b"]]
    assert spark.sql("SELECT h.id FROM sqlh.t h JOIN l_sqlf.p p ON h.id = p.id ORDER BY 1") == [[1], [2]]
    with pytest.raises(SparkError, match="backend hive is no lake metastore"):
        spark.sql("SELECT /*+ includeUnCommit(true) */ * FROM sqlh.t")
    with pytest.raises(SparkError, match="it is another or an older server"):
        spark.sql(f"CREATE TABLE sqlh.k (id BIGINT, v STRING) {KEYED}")
        spark.sql("INSERT INTO sqlh.k VALUES (1, 'a')")
    spark.sql("DROP TABLE IF EXISTS sqlh.k")

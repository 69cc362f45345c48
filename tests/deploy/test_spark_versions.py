"""The extension for Spark and a server of another version: they work together, or the statement says why they don't."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from thrift.Thrift import TApplicationException

from lake.client.lake_types import Completion, DataFile
from lake.protocol.hive import InvalidOperationException
from lake.tables.lake import LakeClient
from tests.deploy.neighbours import NEWER, OLDER, variables
from tests.spark.session import ConfiguredSession, SparkError, require
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.spark, pytest.mark.long]

COLUMNS = "(id BIGINT, v STRING, dt INT) USING parquet PARTITIONED BY (dt)"

Start = Callable[[dict[str, dict[str, str]]], tuple[ConfiguredSession, MetastoreServer]]


@pytest.fixture
def start(released_jar: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a server of another version, and a session of this one that uses it."""
    with ExitStack() as stack:

        def started(changes: dict[str, dict[str, str]]) -> tuple[ConfiguredSession, MetastoreServer]:
            require("4")
            environment = variables(tmp_path / "other", changes)
            server = stack.enter_context(MetastoreServer(tmp_path / "data", environment=environment))
            warehouse = str(server.data_dir / "warehouse")
            spark = ConfiguredSession("4", server.uri, warehouse, released_jar, tmp_path / "spark")
            stack.enter_context(spark)
            spark.sql("CREATE DATABASE d")
            return spark, server

        yield started


def rows(spark: ConfiguredSession, table: str) -> list[list[object]]:
    return sorted(spark.sql(f"SELECT * FROM {table}"))


def test_an_older_server_refuses_what_it_does_not_know(start: Start) -> None:
    spark, server = start(OLDER)
    tables = {
        "keyed": "TBLPROPERTIES ('primary-key' = 'id,dt')",
        "plain": "TBLPROPERTIES ('timeline.archived-days' = '9')",
        "wide": "TBLPROPERTIES ('primary-key' = 'id')",
    }
    for name, properties in tables.items():
        spark.sql(f"CREATE TABLE d.{name} {COLUMNS} {properties}")
        spark.sql(f"INSERT INTO d.{name} VALUES (1, 'a', 1), (2, 'b', 2)")
        assert rows(spark, f"d.{name}") == [[1, "a", 1], [2, "b", 2]]
    newer = "have a field that this server's version.*the client is newer. Upgrade the server first"
    spark.sql("SET spark.sql.sources.partitionOverwriteMode = static")
    for statement, name in [
        *itertools.product(
            (
                "INSERT OVERWRITE d.{0} VALUES (7, 'g', 1)",
                "INSERT INTO d.{0} REPLACE WHERE dt = 1 VALUES (7, 'g', 1)",
                "TRUNCATE TABLE d.{0}",
            ),
            ("keyed", "plain"),
        ),
        ("DELETE FROM d.{0} WHERE dt = 1", "plain"),
    ]:
        with pytest.raises(SparkError, match=newer):
            spark.sql(statement.format(name))
        assert rows(spark, f"d.{name}") == [[1, "a", 1], [2, "b", 2]], statement
    spark.sql("UPDATE d.keyed SET v = 'A' WHERE id = 1")
    spark.sql("DELETE FROM d.keyed WHERE dt = 2")
    assert rows(spark, "d.keyed") == [[1, "A", 1]]
    with LakeClient(server.uri) as client:
        with pytest.raises(TApplicationException, match=newer):
            client.table("d.wide").delete(pa.table({"id": [1, 9]}))
        keyed = client.table("d.keyed")
        other = Completion(columns=keyed.schema().columns, schema_properties={"primary-key": "id,v,dt"})
        refused = "'primary-key' can't be changed with the columns"
        with pytest.raises(InvalidOperationException, match=refused), keyed.writing("replacecommit") as writing:
            writing.complete(other)
        for name in tables:
            assert {each.state for each in client.table(f"d.{name}").instants()} == {"completed"}, name
    assert rows(spark, "d.wide") == [[1, "a", 1], [2, "b", 2]]


def test_values_of_properties_that_only_a_newer_server_knows(start: Start) -> None:
    spark, _ = start(NEWER)
    for number, name in enumerate(("table-type", "merge-engine", "changelog-producer", "insert.duplicate-key")):
        table = f"d.t{number}"
        spark.sql(f"CREATE TABLE {table} {COLUMNS} TBLPROPERTIES ('primary-key' = 'id,dt', '{name}' = 'newest')")
        for statement in (
            "SELECT * FROM {0}",
            "SELECT * FROM lake_changes('{0}', 0)",
            "INSERT INTO {0} VALUES (2, 'b', 1)",
            "UPDATE {0} SET v = 'c'",
            "INSERT OVERWRITE {0} VALUES (2, 'b', 1)",
            "TRUNCATE TABLE {0}",
            "CALL lake.system.compact('{0}')",
        ):
            with pytest.raises(SparkError, match=f"{name}=newest") as refused:
                spark.sql(statement.format(table))
            if not statement.startswith(("UPDATE", "TRUNCATE")):  # an engine that isn't deduplicate takes neither
                assert "which this version of the extension doesn't know: install" in str(refused.value), statement
        assert [table[2:], False] in [row[1:] for row in spark.sql("SHOW TABLES IN d")]
        spark.sql(f"DROP TABLE {table}")


def test_a_file_of_a_kind_that_only_a_newer_version_writes(start: Start) -> None:
    spark, server = start(NEWER)
    spark.sql(f"CREATE TABLE d.t {COLUMNS} TBLPROPERTIES ('primary-key' = 'id,dt', 'table-type' = 'merge-on-read')")
    spark.sql("INSERT INTO d.t VALUES (1, 'a', 1)")
    with LakeClient(server.uri) as client:
        table = client.table("d.t")
        (base,) = table.snapshot()
        begun = table.begin("deltacommit", state="inflight").instant
        path = f".instants/{begun.timestamp}.deltacommit/dt=1/newest"
        file = DataFile(base.partition, base.file_group, base.slice, path, 9, kind="newest")
        table.complete(begun, Completion(added=[file]))
    for statement in ("SELECT * FROM d.t", "SELECT * FROM lake_changes('d.t', 0)", "UPDATE d.t SET v = 'c'"):
        with pytest.raises(SparkError, match="newest is of the kind newest, which this version of the extension"):
            spark.sql(statement)

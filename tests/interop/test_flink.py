"""Flink's catalog of Hive: its SQL in batch and in a stream, with Hive 3's client of the metastore inside."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException
from tests.interop import java
from tests.support.jvm import SMALL, running
from tests.support.target import Target, local_path

NUMBERS = itertools.count(1)
FLINK = "1.20.1"
JARS = (
    "org.apache.flink:flink-connector-hive_2.12:3.0.0-1.20",
    f"org.apache.flink:flink-table-planner_2.12:{FLINK}",
    f"org.apache.flink:flink-clients:{FLINK}",
    f"org.apache.flink:flink-table-runtime:{FLINK}",
    f"org.apache.flink:flink-connector-files:{FLINK}",
    f"org.apache.flink:flink-parquet:{FLINK}",
    f"org.apache.flink:flink-hadoop-compatibility_2.12:{FLINK}",
    "commons-io:commons-io:2.15.1",
    "org.apache.hive:hive-exec:3.1.3",
    "org.apache.hadoop:hadoop-client-api:3.3.4",
    "org.apache.hadoop:hadoop-client-runtime:3.3.4",
)
#: What nobody's repository has any more, and Flink does without.
WITHOUT = ("org.pentaho:*", "org.apache.calcite:calcite-druid")
PACKAGES = "java.lang.invoke java.lang.reflect java.io java.nio sun.nio.ch java.text java.time java.util.concurrent"
SETTINGS = {
    "rest.bind-address": "127.0.0.1",
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.numberOfTaskSlots": "2",
    "parallelism.default": "1",
    "execution.checkpointing.interval": "500 ms",
    "table.exec.hive.fallback-mapred-reader": "true",
}


class FlinkError(Exception):
    """A statement failed; the text is what Flink's exception and its causes say."""


class Flink:
    """A table environment, in batch or streaming mode, whose current catalog `lake` is a metastore's."""

    def __init__(self, jvm: Any, mode: str, hive_site: Path) -> None:
        settings = jvm.java.util.HashMap()
        for key, value in {**SETTINGS, "execution.runtime-mode": mode}.items():
            settings[key] = value
        api = jvm.org.apache.flink
        configured = api.table.api.EnvironmentSettings.newInstance().withConfiguration(
            api.configuration.Configuration.fromMap(settings)
        )
        self._environment = api.table.api.TableEnvironment.create(configured.build())
        self.sql(f"CREATE CATALOG lake WITH ('type' = 'hive', 'hive-conf-dir' = '{hive_site.parent}')")
        self.sql("USE CATALOG lake")

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows that a statement answers, when its job has ended. Raises FlinkError."""
        try:
            result = self._environment.executeSql(statement)
            if statement.startswith("INSERT"):
                getattr(result, "await")()  # a word of Python's own
                return []
            rows = result.collect()
            found = []
            while rows.hasNext():
                row = rows.next()
                found.append([row.getField(number) for number in range(row.getArity())])
            rows.close()
        except Py4JJavaError as error:
            raise FlinkError(java.failure(error.java_exception)) from None
        return found

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.sql(query)]


@pytest.fixture(scope="module")
def start(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Flink]]:
    """Makes an environment of a mode, `batch` or `streaming`."""
    if (program := java.find(11, 22)) is None:
        pytest.skip("Flink needs Java 11 to 21")
    jars = class_path(*JARS, exclusions=WITHOUT)
    directory = tmp_path_factory.mktemp("flink")
    site = directory / "conf/hive-site.xml"
    site.parent.mkdir()
    uri = f"thrift://{target.host}:{target.port}"
    site.write_text(
        f"<configuration><property><name>hive.metastore.uris</name><value>{uri}</value></property></configuration>"
    )
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in PACKAGES.split()]
    with running(jars, directory, java=program, options=["-Xmx1g", *SMALL, *opened]) as gateway:
        yield lambda mode: Flink(gateway.jvm, mode, site)


@pytest.fixture(scope="module")
def flink(start: Callable[[str], Flink]) -> Flink:
    return start("batch")


@pytest.fixture
def database(flink: Flink) -> Iterator[str]:
    name = f"flink_{next(NUMBERS)}"
    flink.sql(f"CREATE DATABASE {name} COMMENT 'of a test'")
    yield name
    flink.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    """What another engine sees of the tables."""
    with target.connect() as client:
        yield client


HIVE = "'connector' = 'hive', 'hive.storage.file-format' = 'parquet'"


def create(flink: Flink, table: str, **options: str) -> None:
    """A table of Hive's kind with one partition column."""
    more = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    flink.sql(f"CREATE TABLE {table} (id INT, name STRING, dt STRING) PARTITIONED BY (dt) WITH ({HIVE}{more})")


def test_databases(flink: Flink, database: str, client: ThriftClient) -> None:
    assert database in flink.column("SHOW DATABASES")
    assert client.get_database(database).description == "of a test"
    flink.sql(f"ALTER DATABASE {database} SET ('team' = 'shop')")
    assert client.get_database(database).parameters["team"] == "shop"
    with pytest.raises(FlinkError, match="exist"):
        flink.sql(f"CREATE DATABASE {database}")
    create(flink, f"{database}.t")
    with pytest.raises(FlinkError, match="not empty"):
        flink.sql(f"DROP DATABASE {database} RESTRICT")


def test_the_life_of_a_table(flink: Flink, database: str, client: ThriftClient) -> None:
    table = f"{database}.t"
    create(flink, table)
    flink.sql(f"INSERT INTO {table} VALUES (1, 'one', 'a'), (2, 'two', 'b')")
    flink.sql(f"INSERT INTO {table} PARTITION (dt = 'a') VALUES (3, 'three')")
    assert sorted(flink.sql(f"SELECT * FROM {table}")) == [[1, "one", "a"], [2, "two", "b"], [3, "three", "a"]]
    assert client.get_partition_names(database, "t", -1) == ["dt=a", "dt=b"]
    place = local_path(client.get_table(database, "t").sd.location)
    assert place.is_dir()

    flink.sql(f"ALTER TABLE {table} SET ('team' = 'shop')")
    flink.sql(f"ALTER TABLE {table} ADD (note STRING COMMENT 'free text' AFTER name)")
    altered = client.get_table(database, "t")
    assert [column.name for column in altered.sd.cols] == ["id", "name", "note"]
    assert altered.parameters["team"] == "shop"
    flink.sql(f"ALTER TABLE {table} RENAME TO renamed")
    assert flink.column(f"SHOW TABLES IN {database}") == ["renamed"]
    assert flink.column(f"SELECT count(*) FROM {database}.renamed") == [3]

    flink.sql(f"DROP TABLE {database}.renamed")
    with pytest.raises(NoSuchObjectException):
        client.get_table(database, "renamed")
    assert not place.exists()


def test_partitions(flink: Flink, database: str, client: ThriftClient) -> None:
    table = f"{database}.t"
    create(flink, table)
    flink.sql(f"INSERT INTO {table} VALUES (1, 'one', 'a'), (2, 'two', 'b'), (3, 'three', 'c')")
    assert flink.column(f"SHOW PARTITIONS {table}") == ["dt=a", "dt=b", "dt=c"]
    assert flink.column(f"SELECT id FROM {table} WHERE dt > 'a' AND dt <> 'c'") == [2]
    flink.sql(f"INSERT OVERWRITE {table} PARTITION (dt = 'b') VALUES (22, 'other')")
    assert flink.column(f"SELECT id FROM {table} WHERE dt = 'b'") == [22]
    flink.sql(f"ALTER TABLE {table} ADD PARTITION (dt = 'd')")
    flink.sql(f"ALTER TABLE {table} DROP PARTITION (dt = 'a')")
    assert client.get_partition_names(database, "t", -1) == ["dt=b", "dt=c", "dt=d"]


def test_statistics(flink: Flink, database: str, client: ThriftClient) -> None:
    """Of a table whose partitions are numbers: Flink's ANALYZE forgets to quote others."""
    table = f"{database}.t"
    flink.sql(f"CREATE TABLE {table} (id INT, dt INT) PARTITIONED BY (dt) WITH ({HIVE})")
    flink.sql(f"INSERT INTO {table} VALUES (1, 11), (7, 11), (2, 12)")
    flink.sql(f"ANALYZE TABLE {table} PARTITION (dt) COMPUTE STATISTICS FOR ALL COLUMNS")
    assert client.get_partition(database, "t", ["11"]).parameters["numRows"] == "2"
    [found] = client.get_partition_column_statistics(database, "t", "dt=11", "id").statsObj
    assert (found.statsData.longStats.lowValue, found.statsData.longStats.highValue) == (1, 7)


def test_tables_of_flinks_own_kind_views_and_functions(flink: Flink, database: str, client: ThriftClient) -> None:
    """What Hive has no word for is kept in a table's parameters."""
    columns = "id BIGINT, moment TIMESTAMP(3), WATERMARK FOR moment AS moment - INTERVAL '5' SECOND"
    options = "'connector' = 'datagen', 'number-of-rows' = '3'"
    flink.sql(f"CREATE TABLE {database}.clicks ({columns}, PRIMARY KEY (id) NOT ENFORCED) WITH ({options})")
    assert client.get_table(database, "clicks").parameters["flink.connector"] == "datagen"
    assert flink.column(f"SELECT count(*) FROM {database}.clicks") == [3]
    assert "WATERMARK" in flink.column(f"SHOW CREATE TABLE {database}.clicks")[0]
    create(flink, f"{database}.t")
    flink.sql(f"INSERT INTO {database}.t VALUES (1, 'one', 'a')")
    flink.sql(f"CREATE VIEW {database}.v AS SELECT id + 1 AS more FROM {database}.t")
    assert flink.column(f"SELECT more FROM {database}.v") == [2]
    assert client.get_table(database, "v").tableType == "VIRTUAL_VIEW"
    flink.sql(f"CREATE FUNCTION {database}.len AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLength'")
    assert flink.column(f"SELECT {database}.len(name) FROM {database}.t") == [3]
    assert client.get_functions(database, "*") == ["len"]
    flink.sql(f"DROP FUNCTION {database}.len")
    flink.sql(f"DROP VIEW {database}.v")
    assert sorted(flink.column(f"SHOW TABLES IN {database}")) == ["clicks", "t"]


def test_a_stream_commits_partitions_to_the_metastore(
    flink: Flink, start: Callable[[str], Flink], database: str, client: ThriftClient
) -> None:
    """The sink's policy `metastore`: it adds a partition when its rows are there."""
    create(
        flink,
        f"{database}.t",
        **{
            "sink.partition-commit.trigger": "process-time",
            "sink.partition-commit.delay": "0 s",
            "sink.partition-commit.policy.kind": "metastore,success-file",
        },
    )
    stream = start("streaming")
    stream.sql(f"INSERT INTO {database}.t VALUES (1, 'one', 'a'), (2, 'two', 'b')")
    stream.sql(f"INSERT INTO {database}.t VALUES (3, 'three', 'a')")
    assert client.get_partition_names(database, "t", -1) == ["dt=a", "dt=b"]
    directory = local_path(client.get_partition(database, "t", ["a"]).sd.location)
    assert (directory / "_SUCCESS").exists()
    assert sorted(flink.sql(f"SELECT * FROM {database}.t")) == [[1, "one", "a"], [2, "two", "b"], [3, "three", "a"]]

"""Trino's Hive connector: the engine itself, in one process, with its own client of the metastore.

An older release with its files in a directory, and a newer one, for a newer Java, with its files in a stand-in for S3.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import HiveObjectRef, HiveObjectType, NoSuchObjectException, PrincipalType
from tests.interop import trino as trino_of
from tests.interop.trino import JARS, RELEASES, Trino, TrinoError, object_store
from tests.support import builders
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


def exists(location: str) -> bool:
    files, path = fsspec.url_to_fs(location)
    files.invalidate_cache()
    return bool(files.exists(path))


@pytest.fixture(scope="module", params=list(RELEASES))
def release(request: pytest.FixtureRequest) -> str:
    if (reason := trino_of.missing(request.param)) is not None:
        pytest.skip(reason)
    return request.param


@pytest.fixture(scope="module")
def server(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MetastoreServer, dict[str, str]]]:
    """A server with the warehouse that suits the release, and Trino's settings for both."""
    data = tmp_path_factory.mktemp("trino-server") / "data"
    if release == "411":
        with MetastoreServer(data) as started:
            yield started, {"hive.metastore.uri": started.uri}
    else:
        with object_store() as settings, MetastoreServer(data, "--warehouse-dir", "s3://lake/warehouse") as started:
            yield started, {"hive.metastore.uri": started.uri, **settings}


@pytest.fixture(scope="module")
def trino(
    release: str,
    server: tuple[MetastoreServer, dict[str, str]],
    class_path: Callable[..., list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Trino]:
    """It has two catalogs: `lake`, where all is allowed, and `guarded`, by grants."""
    catalogs = {
        name: {**server[1], "hive.security": security, "hive.allow-register-partition-procedure": "true"}
        for name, security in (("lake", "allow-all"), ("guarded", "sql-standard"))
    }
    directory = tmp_path_factory.mktemp(f"trino-{release}")
    with trino_of.running(release, class_path(*JARS[release]), directory, catalogs) as engine:
        yield engine


@pytest.fixture
def schema(trino: Trino) -> Iterator[str]:
    name = f"trino_{next(NUMBERS)}"
    trino.sql(f"CREATE SCHEMA {name}")
    yield name
    for table in trino.column(f"SHOW TABLES FROM {name}"):
        trino.sql(f"DROP TABLE {name}.{table}")
    trino.sql(f"DROP SCHEMA {name}")


@pytest.fixture
def client(server: tuple[MetastoreServer, dict[str, str]]) -> Iterator[ThriftClient]:
    """What another engine sees of the tables."""
    with ThriftClient(server[0].host, server[0].port) as client:
        yield client


def create(trino: Trino, table: str) -> None:
    """A table with two partitions of a row each."""
    trino.sql(
        f"CREATE TABLE {table} (id integer, name varchar, dt varchar) "
        "WITH (format = 'PARQUET', partitioned_by = ARRAY['dt'])"
    )
    trino.sql(f"INSERT INTO {table} VALUES (1, 'one', 'a'), (2, 'two', 'b')")


def test_schemas_and_tables_in_lists(trino: Trino, schema: str) -> None:
    create(trino, f"{schema}.t")
    trino.sql(f"CREATE VIEW {schema}.v AS SELECT id FROM {schema}.t")
    assert schema in trino.column("SHOW SCHEMAS")
    assert trino.column(f"SHOW TABLES FROM {schema}") == ["t", "v"]
    tables = "SELECT table_name, table_type FROM information_schema.tables"
    assert sorted(trino.sql(f"{tables} WHERE table_schema = '{schema}'")) == [["t", "BASE TABLE"], ["v", "VIEW"]]
    columns = "SELECT column_name FROM information_schema.columns"
    assert trino.column(f"{columns} WHERE table_schema = '{schema}' AND table_name = 't'") == ["id", "name", "dt"]
    assert sorted(trino.column(f"SELECT * FROM {schema}.v")) == [1, 2]
    trino.sql(f"DROP VIEW {schema}.v")
    assert trino.column(f"SHOW TABLES FROM {schema}") == ["t"]


def test_the_life_of_a_table(trino: Trino, schema: str, client: ThriftClient) -> None:
    create(trino, f"{schema}.t")
    trino.sql(f"INSERT INTO {schema}.t VALUES (3, 'three', 'a')")
    assert trino.sql(f"SELECT * FROM {schema}.t ORDER BY id") == [[1, "one", "a"], [2, "two", "b"], [3, "three", "a"]]
    created = client.get_table(schema, "t")
    assert created.sd.inputFormat == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    assert [key.name for key in created.partitionKeys] == ["dt"]
    assert exists(created.sd.location)

    trino.sql(f"ALTER TABLE {schema}.t ADD COLUMN note varchar COMMENT 'free text'")
    trino.sql(f"ALTER TABLE {schema}.t ADD COLUMN gone varchar")
    trino.sql(f"ALTER TABLE {schema}.t DROP COLUMN gone")
    trino.sql(f"ALTER TABLE {schema}.t RENAME COLUMN note TO remark")
    trino.sql(f"COMMENT ON TABLE {schema}.t IS 'orders'")
    trino.sql(f"COMMENT ON COLUMN {schema}.t.id IS 'the key'")
    altered = client.get_table(schema, "t")
    assert [column.name for column in altered.sd.cols] == ["id", "name", "remark"]
    assert [column.comment for column in altered.sd.cols][::2] == ["the key", "free text"]
    assert altered.parameters["comment"] == "orders"
    trino.sql(f"INSERT INTO {schema}.t VALUES (4, 'four', 'more', 'c')")
    assert trino.sql(f"SELECT id, remark FROM {schema}.t WHERE dt IN ('b', 'c') ORDER BY id") == [
        [2, None],
        [4, "more"],
    ]

    trino.sql(f"CREATE TABLE {schema}.copy WITH (format = 'ORC') AS SELECT * FROM {schema}.t")
    trino.sql(f"ALTER TABLE {schema}.t RENAME TO {schema}.renamed")
    assert trino.column(f"SELECT count(*) FROM {schema}.renamed") == trino.column(f"SELECT count(*) FROM {schema}.copy")
    assert client.get_partition_names(schema, "renamed", -1) == ["dt=a", "dt=b", "dt=c"]

    moved = client.get_table(schema, "renamed").sd.location
    trino.sql(f"DROP TABLE {schema}.renamed")
    assert not exists(created.sd.location) and not exists(moved)
    with pytest.raises(NoSuchObjectException):
        client.get_table(schema, "renamed")


def test_inserts_into_keyed_tables(trino: Trino, schema: str, client: ThriftClient) -> None:
    """Each is refused, and Trino deletes the files that it had written, unless the table's property allows them.

    Where the server refuses new statistics, Trino names that operation, and the server's message is in its log alone.
    """
    for name, keys in (("t", ("dt:string",)), ("flat", ())):
        properties = {"primary-key": "id,dt" if keys else "id"}
        sd = builders.parquet("id:int", "name:string")
        client.create_table(builders.table(schema, name, keys=keys, parameters=properties, sd=sd))
    trino.sql(f"CALL lake.system.create_empty_partition('{schema}', 't', ARRAY['dt'], ARRAY['a'])")
    inserts = [
        *(f"INSERT INTO {schema}.t VALUES (1, 'one', '{value}')" for value in "ab"),
        f"INSERT INTO {schema}.flat VALUES (1, 'one')",
    ]
    for insert in inserts:
        with pytest.raises(TrinoError, match=r"readers of the timeline don't see|replace (partition|table) parameters"):
            trino.sql(insert)
    for name in ("t", "flat"):
        files, place = fsspec.url_to_fs(client.get_table(schema, name).sd.location)
        files.invalidate_cache()
        assert [each for each in files.find(place) if re.search(r"/[0-9]{8}_[0-9]{6}_", each)] == []
        assert trino.column(f"SELECT count(*) FROM {schema}.{name}") == [0]
        table = client.get_table(schema, name)
        parameters = {**table.parameters, "allow-external-writes": "true"}
        client.alter_table(schema, name, table.replace(parameters=parameters))
    assert client.get_partition_names(schema, "t", -1) == ["dt=a"]
    trino.sql("CALL lake.system.flush_metadata_cache()")
    for insert in inserts:
        trino.sql(insert)
    assert trino.column(f"SELECT count(*) FROM {schema}.t") == [2]


def test_partitions(trino: Trino, schema: str, client: ThriftClient) -> None:
    create(trino, f"{schema}.t")
    listing = f'SELECT dt FROM {schema}."t$partitions"'
    assert sorted(trino.column(listing)) == ["a", "b"]
    assert trino.column(f"{listing} WHERE dt > 'a'") == ["b"]
    trino.sql(f"CALL lake.system.create_empty_partition('{schema}', 't', ARRAY['dt'], ARRAY['z'])")
    assert client.get_partition_names(schema, "t", -1) == ["dt=a", "dt=b", "dt=z"]
    trino.sql(f"DELETE FROM {schema}.t WHERE dt = 'b'")
    assert sorted(trino.column(listing)) == ["a", "z"]

    location = client.get_partition(schema, "t", ["a"]).sd.location
    trino.sql(f"CALL lake.system.unregister_partition('{schema}', 't', ARRAY['dt'], ARRAY['a'])")
    assert trino.column(listing) == ["z"]
    trino.sql(f"CALL lake.system.register_partition('{schema}', 't', ARRAY['dt'], ARRAY['a'], '{location}')")
    client.drop_partition(schema, "t", ["z"], False)
    trino.sql(f"CALL lake.system.sync_partition_metadata('{schema}', 't', 'FULL')")
    assert sorted(trino.column(listing)) == ["a", "z"]
    assert trino.sql(f"SELECT * FROM {schema}.t") == [[1, "one", "a"]]


def test_statistics(trino: Trino, schema: str, client: ThriftClient) -> None:
    """What an INSERT collects, what ANALYZE corrects, and what the planner reads."""
    create(trino, f"{schema}.t")
    trino.sql(f"INSERT INTO {schema}.t VALUES (7, 'seven', 'a')")
    of_partition = f"SHOW STATS FOR (SELECT * FROM {schema}.t WHERE dt = 'a')"
    assert {row[0]: row[5:] for row in trino.sql(of_partition)}["id"] == ["1", "7"]
    assert client.get_partition(schema, "t", ["a"]).parameters["numRows"] == "2"

    trino.sql(f"CALL lake.system.drop_stats('{schema}', 't')")
    assert {row[0]: row[5:] for row in trino.sql(of_partition)}["id"] == [None, None]
    assert trino.sql(f"ANALYZE {schema}.t") == [[3]]
    rows = {row[0]: row for row in trino.sql(f"SHOW STATS FOR {schema}.t")}
    assert rows["id"][5:] == ["1", "7"]
    assert rows[None][4] == 3.0
    [found] = client.get_partition_column_statistics(schema, "t", "dt=b", "id").statsObj
    assert (found.statsData.longStats.lowValue, found.statsData.longStats.highValue) == (2, 2)


def test_grants(trino: Trino, schema: str, client: ThriftClient) -> None:
    """A catalog guarded in Hive's way keeps who may do what in the metastore."""
    table = f"guarded.{schema}.t"
    create(trino, table)
    trino.sql(f"GRANT SELECT ON {table} TO USER ann")
    trino.sql(f"GRANT INSERT ON {table} TO USER ann WITH GRANT OPTION")
    found = HiveObjectRef(HiveObjectType.TABLE, schema, "t", [], None)
    granted = client.list_privileges("ann", PrincipalType.USER, found)
    assert {(each.grantInfo.privilege.upper(), each.grantInfo.grantOption) for each in granted} == {
        ("SELECT", False),
        ("INSERT", True),
    }
    trino.sql(f"REVOKE INSERT ON {table} FROM USER ann")
    granted = client.list_privileges("ann", PrincipalType.USER, found)
    assert [each.grantInfo.privilege.upper() for each in granted] == ["SELECT"]
    assert "INSERT" in [row[7] for row in trino.sql(f"SHOW GRANTS ON TABLE {table}")]
    assert trino.column("SHOW CURRENT ROLES FROM guarded") == ["public"]

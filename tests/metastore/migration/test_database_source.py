"""A Hive metastore is read in its own database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from bench.hive_server import HiveOnPostgres, why_not
from lake.protocol.connection.thrift_client import ThriftClient
from metastore.migration import canonical
from metastore.migration.hive_database import HiveDatabase
from metastore.migration.objects import DatabaseKey, TableKey
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.support import command
from tests.support.postgres import Postgres
from tests.support.reference import missing
from tests.support.server import MetastoreServer


class SmallHive(HiveOnPostgres):
    java_options = ("-Xmx512m",)
    threads = (8, 64)


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    if (reason := missing() or why_not()) is not None:
        pytest.skip(reason)
    with postgres.fresh_database() as url:
        yield url


@pytest.fixture(scope="module")
def hive(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallHive]:
    directory = tmp_path_factory.mktemp("hive_on_postgres")
    with SmallHive(directory, make_url(url), directory / "warehouse") as server:
        yield server


@pytest.fixture(scope="module")
def made(hive: SmallHive, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with ThriftClient(hive.host, hive.port) as client:
        return Maker(client, "mig", tmp_path_factory.mktemp("old"), seed=2).make()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as server:
        yield server


def run(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = command.run("migrate", *arguments, "--json")
    assert result.returncode == code, result
    return json.loads(result.stdout)


def test_rows_say_what_hives_server_says(url: str, hive: SmallHive, made: Catalog) -> None:
    rows, server = HiveDatabase(url), ThriftSource(f"thrift://{hive.host}:{hive.port}")
    try:
        for name in made.databases:
            key = DatabaseKey("hive", name)
            [one], [other] = (
                [canonical.of_struct(each) for each in source.databases("hive") if each.name == name]
                for source in (rows, server)
            )
            assert one == other
            assert plain(rows.functions(key)) == plain(server.functions(key))
            assert rows.tables(key) == server.tables(key)
            assert sorted(map(repr, plain(rows.grants(key, rows.tables(key))))) == sorted(
                map(repr, plain(server.grants(key, server.tables(key))))
            )
            for table in made.tables[name]:
                same_table(rows, server, TableKey("hive", name, table))
        assert plain(rows.roles()) == plain(server.roles())
        for role in made.roles:
            assert plain(rows.members(role)) == plain(server.members(role))
        assert plain(rows.global_grants()) == plain(server.global_grants())
    finally:
        rows.close()
        server.close()


def same_table(rows: HiveDatabase, server: ThriftSource, key: TableKey) -> None:
    one, other = rows.table(key), server.table(key)
    assert one is not None and other is not None
    assert canonical.of_struct(one.table) == canonical.of_struct(other.table)
    for kind in ("primaryKeys", "foreignKeys"):
        mine, theirs = ([strip(each) for each in getattr(s.constraints, kind) or ()] for s in (one, other))
        assert mine == theirs
    assert numbers(one.statistics) == numbers(other.statistics)
    names = rows.partition_names(one)
    assert names == server.partition_names(other)
    by_values = [
        sorted(plain(source.partitions(parts, names)), key=lambda each: each["values"])
        for source, parts in ((rows, one), (server, other))
    ]
    assert by_values[0] == by_values[1]
    assert numbers(rows.partition_statistics(one, names)) == numbers(server.partition_statistics(other, names))


def plain(some: list[Any]) -> list[Any]:
    return [canonical.of_struct(each) for each in some]


def strip(constraint: Any) -> Any:
    kept = canonical.of_struct(constraint)
    kept.pop("pk_name", None) if "fk_name" in kept else None
    return kept


def numbers(some: Any) -> Any:
    """Statistics by partition and column."""
    return {
        (each.statsDesc.partName, own.colName): canonical.of_statistics(own, sketches=False)
        for each in some
        for own in each.statsObj
    }


def test_all_comes_over(url: str, hive: SmallHive, made: Catalog, ours: MetastoreServer) -> None:
    first = run("import", url, "--uri", ours.uri)
    assert (first["problems"], first["differences"]) == ([], [])
    assert first["added"] >= made.objects
    again = run("import", url, "--uri", ours.uri)
    assert (again["added"], again["problems"], again["differences"]) == (0, [], [])
    for source in (url, f"thrift://{hive.host}:{hive.port}"):
        found = run("verify", source, "--uri", ours.uri)
        assert found["differing"] == 0 and found["compared"] >= made.objects
    plan = run("plan", url)
    assert plan["objects"]["partitions"] > 0
    assert not [each for each in plan["remarks"] if "by Thrift" in each["text"]]


def test_what_is_no_hive_is_refused(postgres_url: str) -> None:
    line = command.complaint("migrate", "plan", postgres_url)
    assert "is not the database of a Hive metastore" in line and "password" not in line
    line = command.complaint("migrate", "plan", "postgresql://me:s3cret@127.0.0.1:1/hive")
    assert "can't be read" in line and "s3cret" not in line

"""A Hive metastore is read in its own database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from bench.hive_server import HiveOnPostgres, why_not
from bench.postgres import LoopbackPostgres
from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.metastore.migration.same_sources import assert_same
from tests.support import called
from tests.support.reference import missing
from tests.support.server import MetastoreServer


class SmallHive(HiveOnPostgres):
    java_options = ("-Xmx512m",)
    threads = (8, 64)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database that Java reaches, too."""
    if (reason := missing() or why_not()) is not None:
        pytest.skip(reason)
    server = LoopbackPostgres(tmp_path_factory.mktemp("hives_postgres") / "data")
    yield server.create("hive").render_as_string(hide_password=False)
    server.close()


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
    result = called.run("migrate", *arguments, "--json")
    assert result.returncode == code, result
    return json.loads(result.stdout)


@pytest.mark.long
def test_rows_say_what_hives_server_says(url: str, hive: SmallHive, made: Catalog) -> None:
    assert_same(url, f"thrift://{hive.host}:{hive.port}", made)


@pytest.mark.long
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
    line = called.complaint("migrate", "plan", postgres_url)
    assert "is not the database of a Hive metastore" in line and "password" not in line
    line = called.complaint("migrate", "plan", "postgresql://me:s3cret@127.0.0.1:1/hive")
    assert "can't be read" in line and "s3cret" not in line

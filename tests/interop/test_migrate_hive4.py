"""Metastores of Hive 3.1 and 4 on Postgres come over, by Thrift and from their database."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.hive4_server import Hive4OnPostgres
from bench.postgres import LoopbackPostgres
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddNotNullConstraintRequest,
    AddUniqueConstraintRequest,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLNotNullConstraint,
    SQLUniqueConstraint,
)
from tests.metastore.migration.following import run as within
from tests.metastore.migration.going_back import check_all_kinds_go_back
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.metastore.migration.same_sources import assert_same
from tests.support import command
from tests.support.reference4 import HIVE3, RELEASES
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module", params=[HIVE3, *RELEASES.values()], ids=lambda release: release.version)
def hive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Hive4OnPostgres, str]]:
    directory = tmp_path_factory.mktemp("hive4_on_postgres")
    postgres = LoopbackPostgres(directory / "postgres")
    try:
        url = postgres.create("hive")
        try:
            server = Hive4OnPostgres(directory, url, directory / "warehouse", request.param, cached=False)
        except UserError as error:
            pytest.skip(str(error))
        with server:
            yield server, url.render_as_string(hide_password=False)
    finally:
        postgres.close()


@pytest.fixture(scope="module")
def made(hive: tuple[Hive4OnPostgres, str], tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with ThriftClient(hive[0].host, hive[0].port) as client:
        made = Maker(client, "mig", tmp_path_factory.mktemp("old"), seed=3).make()
        for database in made.databases:
            add_constraints(client, database)
    return made


def add_constraints(client: ThriftClient, database: str) -> None:
    flags: dict[str, Any] = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
    of = {"catName": "hive", "table_db": database, "table_name": "t_2", **flags}
    client.add_unique_constraint(
        AddUniqueConstraintRequest([SQLUniqueConstraint(column_name="c0", key_seq=1, uk_name=f"uk_{database}", **of)])
    )
    client.add_not_null_constraint(
        AddNotNullConstraintRequest([SQLNotNullConstraint(column_name="c1", nn_name=f"nn_{database}", **of)])
    )
    client.add_default_constraint(
        AddDefaultConstraintRequest(
            [SQLDefaultConstraint(column_name="c1", default_value="'ü'", dc_name=f"dc_{database}", **of)]
        )
    )
    client.add_check_constraint(
        AddCheckConstraintRequest(
            [SQLCheckConstraint(column_name="c0", check_expression="c0 > 0", dc_name=f"cc_{database}", **of)]
        )
    )


def run(*arguments: str) -> dict[str, Any]:
    result = command.run("migrate", *arguments, "--json")
    assert result.stdout, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == 0, [found.get("problems"), found["differences"]]
    return found


def test_rows_say_what_hives_server_says(hive: tuple[Hive4OnPostgres, str], made: Catalog) -> None:
    server, url = hive
    assert_same(url, f"thrift://{server.host}:{server.port}", made)


@pytest.mark.parametrize("way", ["by Thrift", "from the database"])
def test_all_comes_over(hive: tuple[Hive4OnPostgres, str], made: Catalog, tmp_path: Path, way: str) -> None:
    server, url = hive
    uri = f"thrift://{server.host}:{server.port}"
    with MetastoreServer(tmp_path / "data", "--workers", "1") as ours:
        first = run("import", uri if way == "by Thrift" else url, "--uri", ours.uri)
        assert (first["problems"], first["differences"]) == ([], [])
        assert first["added"] >= made.objects
        assert run("import", uri, "--uri", ours.uri)["added"] == 0
        for source in (url, uri):
            found = run("verify", source, "--uri", ours.uri)
            assert found["differing"] == 0 and found["compared"] >= made.objects


CAN_NOT_GO_BACK = {
    "3.1": "Hive 3.1 on Postgres can't drop partitions of tables with skewed columns: its SQL names a column wrongly",
    "4.0": "Hive 4.0 doesn't empty the parameters of a partition's storage",
}


@pytest.mark.parametrize("seed", range(2))
def test_all_kinds_go_back(
    hive: tuple[Hive4OnPostgres, str], tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    version = request.node.callspec.params["hive"].version
    if (why := CAN_NOT_GO_BACK.get(version[:3])) is not None:
        pytest.skip(why)
    server, _ = hive
    with MetastoreServer(tmp_path / "data", "--workers", "1") as ours:
        check_all_kinds_go_back(f"thrift://{server.host}:{server.port}", ours, tmp_path, seed, add_constraints)


@pytest.mark.timeout(3_600)
def test_a_catalog_of_ten_thousand_objects(hive: tuple[Hive4OnPostgres, str], tmp_path: Path) -> None:
    server, url = hive
    chosen = ("--databases", "big_*")
    with ThriftClient(server.host, server.port) as client:
        made = Maker(client, "big", tmp_path, seed=12).make(databases=10, tables=30, partitions=20)
    assert made.objects >= 10_000
    with MetastoreServer(tmp_path / "data", "--workers", "1") as ours:
        first = within("import", url, "--uri", ours.uri, *chosen)
        assert (first["problems"], first["differences"]) == ([], [])
        assert first["added"] >= made.objects
        found = within("verify", f"thrift://{server.host}:{server.port}", "--uri", ours.uri, *chosen)
        assert found["differing"] == 0 and found["compared"] >= made.objects

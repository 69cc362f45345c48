"""An installation of the release before is upgraded, and used on: nothing that it held is lost or different."""

import contextlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.next_version import NextVersion
from tests.deploy.candidate_lake import LAYER_TABLES, Installation, keyed
from tests.deploy.make_candidate import BACKUP, PLACE, RECORDED, STATE, empty_place, server_on, used
from tests.spark.session import require
from tests.support.command import output
from tests.support.dump import restore
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer

BEFORE = json.loads(RECORDED.read_text())
KEPT = {f"ALTER_TABLE {name}" for name in LAYER_TABLES}
"""Events of layers' tables, which keep what their row keys are made of. The candidate didn't."""

SAMPLE = ("hive", "events", "groups", "clicks", "jobs", "captured", "commands")
SAMPLED_TABLES = ("merged", "families")


@contextlib.contextmanager
def upgraded_server(postgres: Postgres, scratch: Path) -> Iterator[MetastoreServer]:
    """A server, to be started, of the installation after its upgrade.

    The version that upgrades has one more revision of the schema, so that there is always something to upgrade.
    """
    version = NextVersion(scratch / "next", compatible=True)
    with empty_place() as place, postgres.fresh_database() as url:
        with tarfile.open(STATE) as archive:
            archive.extractall(place, filter="data")
        restore(url, place / BACKUP)
        database = ("--database-url", url)
        assert f"to {version.revision}" in output("db", "upgrade", *database, **version.environment)
        output("db", "new-epoch", "--nothing-lost", *database, **version.environment)
        yield server_on(url, version.environment)


@pytest.fixture(scope="module")
def upgraded(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What this version finds in the installation, and what comes of it when it goes on writing."""
    require("4")
    scratch = tmp_path_factory.mktemp("upgrade")
    with upgraded_server(postgres, scratch) as server:
        found, gone_on = used(server, scratch / "spark", Installation.found, Installation.go_on)
    return {"found": without_later_events(found), "gone_on": gone_on}


def without_later_events(found: dict[str, Any]) -> dict[str, Any]:
    """What was found, without the events of the upgrade itself."""
    return found | {"events": found["events"][: len(BEFORE["found"]["events"])]}


def without_added(found: Any, before: Any) -> Any:
    """What a version found, without fields that the version before didn't have."""
    if isinstance(found, dict) and isinstance(before, dict):
        return {key: without_added(value, before[key]) for key, value in found.items() if key in before}
    if isinstance(found, list) and isinstance(before, list) and len(found) == len(before):
        return [without_added(*each) for each in zip(found, before, strict=True)]
    return found


def without_ways(layers: Any) -> Any:
    """What became of layers, without how they were computed."""
    refreshed, *rest = layers
    return [[[layer, changed] for layer, _, changed in refreshed], *rest]


def test_a_sample(postgres: Postgres, tmp_path: Path) -> None:
    """Without Spark, and with some of the keyed tables alone."""
    with (
        upgraded_server(postgres, tmp_path) as server,
        server,
        contextlib.closing(Installation(server.uri, PLACE, None)) as installation,
    ):
        before = {part: BEFORE["found"][part] for part in SAMPLE}
        assert without_added(without_later_events(installation.found(SAMPLE)), before) == before
        for name in SAMPLED_TABLES:
            table = installation.client.table(f"keyed.{name}")
            was, written = BEFORE["found"]["keyed"][name], BEFORE["gone_on"]["keyed"][name]
            assert without_added(keyed(table), was) == was
            assert without_added(installation.write_keyed(table), written) == written


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("part", BEFORE["found"])
def test_all_is_there(upgraded: dict[str, Any], part: str) -> None:
    before = BEFORE["found"][part]
    assert without_added(upgraded["found"][part], before) == before


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("part", BEFORE["gone_on"])
def test_what_is_written_next(upgraded: dict[str, Any], part: str) -> None:
    before, found = BEFORE["gone_on"][part], upgraded["gone_on"][part]
    if part == "layers":  # other definitions by now: all is computed once, and the differences are written
        before, found = without_ways(before), without_ways(found)
    if part == "events of the group":
        found = [each for each in found if each in before or each not in KEPT]
    assert without_added(found, before) == before

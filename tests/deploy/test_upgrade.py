"""An installation of the release before is upgraded, and used on: nothing that it held is lost or different."""

import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.next_version import NextVersion
from tests.deploy.candidate_lake import LAYER_TABLES, Installation
from tests.deploy.make_candidate import BACKUP, RECORDED, STATE, empty_place, server_on, used
from tests.spark.session import require
from tests.support.command import output
from tests.support.dump import restore
from tests.support.postgres import Postgres

BEFORE = json.loads(RECORDED.read_text())
KEPT = {f"ALTER_TABLE {name}" for name in LAYER_TABLES}
"""Events of layers' tables, which keep what their row keys are made of. The candidate didn't."""

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def upgraded(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What this version finds in the installation, and what comes of it when it goes on writing.

    The version that upgrades has one more revision of the schema, so that there is always something to upgrade.
    """
    require("4")
    scratch = tmp_path_factory.mktemp("upgrade")
    version = NextVersion(scratch / "next", compatible=True)
    with empty_place() as place, postgres.fresh_database() as url:
        with tarfile.open(STATE) as archive:
            archive.extractall(place, filter="data")
        restore(url, place / BACKUP)
        database = ("--database-url", url)
        assert f"to {version.revision}" in output("db", "upgrade", *database, **version.environment)
        output("db", "new-epoch", "--nothing-lost", *database, **version.environment)
        server = server_on(url, version.environment)
        found, gone_on = used(server, scratch / "spark", Installation.found, Installation.go_on)
    found["events"] = found["events"][: len(BEFORE["found"]["events"])]  # the upgrade is one, too
    yield {"found": found, "gone_on": gone_on}


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


@pytest.mark.parametrize("part", BEFORE["found"])
def test_all_is_there(upgraded: dict[str, Any], part: str) -> None:
    before = BEFORE["found"][part]
    assert without_added(upgraded["found"][part], before) == before


@pytest.mark.parametrize("part", BEFORE["gone_on"])
def test_what_is_written_next(upgraded: dict[str, Any], part: str) -> None:
    before, found = BEFORE["gone_on"][part], upgraded["gone_on"][part]
    if part == "layers":  # other definitions by now: all is computed once, and the differences are written
        before, found = without_ways(before), without_ways(found)
    if part == "events of the group":
        found = [each for each in found if each in before or each not in KEPT]
    assert without_added(found, before) == before

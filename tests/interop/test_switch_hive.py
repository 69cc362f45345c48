"""Databases of a real Hive 2.3 with a notification log live elsewhere and come back, while writers write."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.migration.followed import Home
from tests.metastore.migration.following import differences, follow, run
from tests.metastore.migration.places import Going, Place, backends
from tests.support import builders, reference
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("switching")
    with reference.notifying(directory / "hive") as hive, MetastoreServer(directory / "ours", "--workers", "1") as ours:
        uri = f"thrift://{hive.host}:{hive.port}"
        with FrontServer(directory / "front", backends(uri, ours)) as front:
            yield Place(uri, ours, front)


@pytest.mark.parametrize("seed", range(4))
def test_over_and_back_while_writers_write(place: Place, tmp_path: Path, seed: int) -> None:
    name = f"sh_{seed}"
    options = ("--databases", f"{name}*")
    with place.client() as client:
        client.create_database(builders.database(name, locationUri=f"file:{tmp_path}/{name}"))
    with Going(place, name, tmp_path, seed) as going:
        time.sleep(2)
        run("import", place.old, "--uri", place.ours.uri, *options, code=None)
        for _ in range(2):
            follow(place.old, place.ours, *options, code=None)
        moved = place.switch("cut-over", name, *options)
        assert (place.home(name), moved[0]["late"]) == (Home.HERE, 0)
        print(name, "over, frozen for", moved[0]["frozen_seconds"], "s;", going.writer.done, "changes")
        time.sleep(3)
    with place.client("ours") as client:
        going.check(client)
    with Going(place, name, tmp_path, seed + 100, going.writer.kept) as going:
        time.sleep(3)
        moved = place.switch("roll-back", name, *options)
        print(name, "back, frozen for", moved[0]["frozen_seconds"], "s;", going.writer.done, "changes")
        time.sleep(2)
    with place.client("old") as client:
        going.check(client)
    follow(place.old, place.ours, *options)
    found = differences(place.old, place.ours, *options)
    assert [each for each in found if each[0] not in ("statistics", "grants")] == []

"""A database comes over and goes back while writers write, and all but the writers are killed at random moments."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from metastore.migration.switching.marks import LISTENER
from tests.metastore.migration.killing import over_and_back
from tests.metastore.migration.places import Place, backends
from tests.support import reference
from tests.support.front import FrontServer
from tests.support.long_runs import share_of
from tests.support.reference import DurableHive
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=["lake", "hive", pytest.param("hive with a log", marks=pytest.mark.interop)])
def place(
    request: pytest.FixtureRequest, released_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Metastores that may be killed. Hive without its log, which Maven brings, is compared; it has our listener."""
    directory = tmp_path_factory.mktemp("killed")
    with ExitStack() as stack:
        old: MetastoreServer | reference.HiveReference
        if request.param == "lake":
            old = stack.enter_context(MetastoreServer(directory / "old", "--workers", "1"))
        elif request.param == "hive":
            if (reason := reference.missing()) is not None:
                pytest.skip(reason)
            listener = {"hive_metastore_pre_event_listeners": LISTENER}
            old = stack.enter_context(DurableHive(directory / "old", jars=[released_jar], **listener))
        else:
            old = stack.enter_context(reference.notifying(directory / "old", DurableHive))
        ours = stack.enter_context(MetastoreServer(directory / "ours", "--workers", "1"))
        uri = f"thrift://{old.host}:{old.port}"
        front = stack.enter_context(FrontServer(directory / "front", backends(uri, ours)))
        yield Place(uri, ours, front, {"old": old, "ours": ours, "front": front})


@pytest.mark.parametrize("seed", range(share_of(100)))
def test_no_acknowledged_write_is_lost(place: Place, tmp_path: Path, seed: int) -> None:
    over_and_back(place, tmp_path, seed)

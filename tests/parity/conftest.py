"""Both servers, for scripts that are played on each."""

from collections.abc import Iterator

import pytest

from tests.parity.play import Pair
from tests.support import reference
from tests.support.server import MetastoreServer
from tests.support.target import Target


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Servers of their own: what other tests leave in one of two servers alone would be a difference."""
    if (reason := reference.missing()) is not None:
        pytest.skip(reason)
    home, beside = tmp_path_factory.mktemp("parity"), tmp_path_factory.mktemp("beside")
    allowed = ("--delete-roots", str(beside))  # Hive deletes everywhere
    with (
        reference.HiveReference(tmp_path_factory.mktemp("hive")) as hive,
        MetastoreServer(home / "data", *allowed) as ours,
    ):
        sides = [
            Target(name, server.host, server.port, server.log) for name, server in (("hive", hive), ("ours", ours))
        ]
        made = Pair(*sides, beside)
        yield made
        made.close()

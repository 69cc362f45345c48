"""Both servers, for scripts that are played on each."""

from collections.abc import Iterator

import pytest

from tests.parity.play import Pair
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer
from tests.support.target import Target


@pytest.fixture(scope="session")
def pair(
    hive_reference: HiveReference, metastore_server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    hive, ours = (
        Target(name, server.host, server.port, server.log)
        for name, server in (("hive", hive_reference), ("ours", metastore_server))
    )
    made = Pair(hive, ours, tmp_path_factory.mktemp("beside"))
    yield made
    made.close()

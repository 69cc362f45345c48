"""A running server, and a lake with tables for layers to read."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient
from tests.lake.layers.shop import Shop
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(metastore_server.uri) as opened:
        yield opened


@pytest.fixture
def shop(client: LakeClient, tmp_path: Path) -> Shop:
    """A database of the test's own with `orders` and `customers`, and a project of layers over them."""
    return Shop(client, f"layers_{next(NUMBERS)}", tmp_path)

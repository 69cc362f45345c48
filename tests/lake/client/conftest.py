"""Keyed tables on a running server."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.tables.keyed.histories import make_table
from tests.support.server import MetastoreServer

NewTable = Callable[..., LakeTable]
"""Makes a keyed table: its properties, and its columns as (name, type), the last of which partitions it."""


@pytest.fixture
def lake(metastore_server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(metastore_server.uri) as client:
        yield client


@pytest.fixture
def new_table(lake: LakeClient) -> NewTable:
    def make(properties: Mapping[str, str], columns: Mapping[str, str], partitioned: bool = True) -> LakeTable:
        return make_table(lake, properties, columns, partitioned)

    return make

"""A directory of messages, and the raw table that a capture of them fills."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient
from tests.lake.capture.debezium.test_files import Landing
from tests.support.server import MetastoreServer


@pytest.fixture
def landing(tmp_path: Path, metastore_server: MetastoreServer) -> Iterator[Landing]:
    directory = tmp_path / "landing"
    directory.mkdir()
    with LakeClient(metastore_server.uri) as client:
        yield Landing(directory, client)

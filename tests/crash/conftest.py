"""What tests of crashes share."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.services.wiring import Metastore
from metastore.settings import Settings


@pytest.fixture
def seed() -> int:
    """Decides what a test does and when it kills; a failure says it. Set CRASH_SEED to repeat one."""
    chosen = int(os.environ.get("CRASH_SEED") or random.randrange(1_000_000))
    print(f"CRASH_SEED={chosen}")
    return chosen


@pytest.fixture
def metastore(upgraded_url: str, tmp_path: Path) -> Iterator[Metastore]:
    """The services without a server, for crashes at a chosen line, on a database and warehouse of the test's own."""
    opened = Metastore.open(Settings(database_url=upgraded_url, data_dir=tmp_path))
    yield opened
    opened.close()

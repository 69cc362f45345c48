"""Listening for the sequencer."""

import logging
import threading
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from eventbus.log import CHANNEL
from eventbus.notices import Notices
from tests.events.changes import until
from tests.support.postgres import Postgres


def test_the_database_dies_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is one warning, not a traceback from the depths, and afterwards notices come again."""
    postgres = Postgres(tmp_path / "postgres")
    url = postgres.url("postgres")
    told = threading.Semaphore(0)
    notices = Notices(url)

    def notified() -> bool:
        with create_engine(url, poolclass=NullPool).begin() as tx:
            tx.execute(text(f"NOTIFY {CHANNEL}"))
        return told.acquire(timeout=1)

    notices.start(told.release)
    try:
        until(lambda: told.acquire(timeout=1))  # it listens
        until(notified)
        with caplog.at_level(logging.WARNING, "sqlalchemy.pool"):
            postgres.kill()
            postgres.start()
            until(lambda: told.acquire(timeout=1))  # again
            until(notified)
        assert caplog.records == []
    finally:
        notices.stop()
        postgres.close()

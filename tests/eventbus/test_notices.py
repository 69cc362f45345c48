"""Listening for the sequencer."""

import contextlib
import logging
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from eventbus.log.listener import Notices
from eventbus.log.log import CHANNEL
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until


def test_the_database_dies_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is one warning, not a traceback from the depths, and afterwards notices come again."""
    postgres = Postgres(tmp_path / "postgres")
    url = postgres.url("postgres")
    answer = threading.Semaphore(0)
    notices = Notices(url)

    def notified() -> bool:
        with create_engine(url, poolclass=NullPool).begin() as tx:
            tx.execute(text(f"NOTIFY {CHANNEL}"))
        return answer.acquire(timeout=1)

    notices.start(answer.release)
    try:
        wait_until(lambda: answer.acquire(timeout=1))  # it listens
        wait_until(notified)
        with caplog.at_level(logging.WARNING, "sqlalchemy.pool"):
            postgres.kill()
            postgres.start()
            wait_until(lambda: answer.acquire(timeout=1))  # again
            wait_until(notified)
        assert caplog.records == []
    finally:
        notices.stop()
        postgres.close()


def test_postgres_stands_still(postgres: Postgres) -> None:
    """Its host answers, it does not: the connection is given up, and another one listens."""
    url = postgres.url("postgres")
    answer = threading.Semaphore(0)
    notices = Notices(url, answer_seconds=1, silent_seconds=0.2)
    listening = text("SELECT pid FROM pg_stat_activity WHERE application_name = 'metastore events'")

    def backends() -> list[int]:
        with create_engine(url, poolclass=NullPool).connect() as connection:
            return list(connection.execute(listening).scalars())

    notices.start(answer.release)
    try:
        wait_until(lambda: answer.acquire(timeout=1))
        [pid] = backends()
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: answer.acquire(timeout=1))  # by another
            assert set(backends()) > {pid}
        finally:
            os.kill(pid, signal.SIGCONT)
    finally:
        notices.stop()


def test_nobody_answers_where_postgres_should_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(20)
        notices = Notices(
            f"postgresql+psycopg2://u@127.0.0.1:{silent.getsockname()[1]}/d", answer_seconds=0.5, silent_seconds=1
        )
        notices.start(lambda: None)
        try:
            with contextlib.ExitStack() as stack:
                for _ in range(2):  # it tries again
                    stack.enter_context(silent.accept()[0])
        finally:
            notices.stop()

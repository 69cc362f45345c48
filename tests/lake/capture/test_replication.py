"""What a stream acknowledges: nothing that its reader didn't."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest

from lake.capture.postgres.pgoutput import Commit, Decoded, decode
from lake.capture.postgres.positions import parse_lsn
from lake.capture.postgres.replication import Stream
from lake.capture.postgres.source import Source
from tests.lake.capture import shop
from tests.support.waiting import wait_until

SLOT = "stream"
TIMEOUT_SECONDS = 6
"""The source's wal_sender_timeout. After half of it the source asks a silent reader for a reply."""


@pytest.fixture
def reader(source: shop.Source) -> Iterator[Source]:
    source.run("CREATE TABLE t (id bigserial PRIMARY KEY, body text)")
    source.run("INSERT INTO t (body) VALUES ('before the slot')")
    [(database,)] = source.run("SELECT current_database()")
    source.run(f"ALTER DATABASE {database} SET wal_sender_timeout = '{TIMEOUT_SECONDS}s'")
    with Source(source.url) as opened:
        opened.create_slot(SLOT)
        yield opened
        wait_until(lambda: (slot := opened.slot(SLOT)) and not slot.active)
        opened.drop_slot(SLOT)


def next_message(stream: Stream) -> Decoded:
    """The next message."""
    return decode(wait_until(stream.read))


def next_commit(stream: Stream) -> Commit:
    """Reads to the end of a transaction."""
    while not isinstance(message := next_message(stream), Commit):
        pass
    return message


def acknowledged(reader: Source) -> int:
    """What the source takes as acknowledged."""
    slot = reader.slot(SLOT)
    assert slot is not None
    return slot.confirmed_lsn


def wait_for_report(source: shop.Source, stream: Stream) -> None:
    """Reads until the source has heard from the stream again."""
    [(now,)] = source.run("SELECT clock_timestamp()")
    heard = (
        "SELECT 1 FROM pg_stat_replication WHERE reply_time > %s AND pid ="
        " (SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s)"
    )

    def is_heard() -> bool:
        stream.read()
        return bool(source.run(heard, now, SLOT))

    wait_until(is_heard)


def test_a_transaction_that_was_read_waits_for_its_acknowledgement(source: shop.Source, reader: Source) -> None:
    long = source.connect()
    long.autocommit = False
    with long, long.cursor() as cursor:
        # More than fits between the source and its reader; all of it earlier in the log than what is acknowledged.
        cursor.execute("INSERT INTO t (body) SELECT repeat('x', 1000) FROM generate_series(1, 30000)")
        source.run("INSERT INTO t (body) VALUES ('acknowledged')")
        with reader.stream(SLOT, "shop") as stream:
            safe = next_commit(stream).end_lsn
            stream.acknowledge(safe)
            source.run("INSERT INTO t (body) VALUES ('read only')")
            next_commit(stream)
            long.commit()
            next_message(stream)
            time.sleep(TIMEOUT_SECONDS * 0.6)  # a reader that is busy with something else
            while not stream.is_asked:
                assert not isinstance(next_message(stream), Commit)
            wait_for_report(source, stream)
            assert acknowledged(reader) == safe
    long.close()
    with reader.stream(SLOT, "shop") as stream:
        assert next_commit(stream).commit_lsn >= safe, "it comes again"


def test_log_without_changes_is_not_acknowledged(source: shop.Source, reader: Source) -> None:
    before = acknowledged(reader)
    with reader.stream(SLOT, "shop") as stream:
        source.run("BEGIN; INSERT INTO t (body) VALUES ('never'); ROLLBACK")
        [(end,)] = source.run("SELECT pg_current_wal_flush_lsn()::text")

        def has_come_to_the_end() -> bool:
            assert stream.read() is None
            return stream.end_lsn >= parse_lsn(end)

        wait_until(has_come_to_the_end)
        wait_for_report(source, stream)
        assert acknowledged(reader) == before
        stream.acknowledge(stream.end_lsn)
        wait_until(lambda: acknowledged(reader) == stream.end_lsn)


def test_a_stream_that_the_source_ends(source: shop.Source, reader: Source) -> None:
    with reader.stream(SLOT, "shop") as stream:
        source.run("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", SLOT)
        with pytest.raises(psycopg2.OperationalError, match="administrator"):
            wait_until(stream.read)


def test_an_error_of_the_source_has_its_class(source: shop.Source, reader: Source) -> None:
    source.run("CREATE PUBLICATION broken FOR TABLE t WHERE (1 / (id - id) > 0)")
    with reader.stream(SLOT, "broken") as stream:
        source.run("INSERT INTO t (body) VALUES ('to be published')")
        with pytest.raises(psycopg2.errors.DivisionByZero):
            wait_until(stream.read)


def test_a_closed_stream(reader: Source) -> None:
    with reader.stream(SLOT, "shop") as stream:
        pass
    calls: list[Callable[[], Any]] = [stream.read, lambda: stream.acknowledge(1)]
    for call in calls:
        with pytest.raises(psycopg2.InterfaceError):
            call()

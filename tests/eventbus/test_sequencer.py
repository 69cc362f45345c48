"""When sequencers are woken."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from eventbus.log.sequencer import Sequencer, waking_later


class Counting:
    """A sequencer whose database does nothing, but counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.sequencer = Sequencer(self._write)

    @contextmanager
    def _write(self) -> Iterator[Any]:
        yield cast(Any, self)

    def exec_driver_sql(self, statement: str) -> "Counting":
        self.asked.release()
        return self

    def close(self) -> None:
        pass


@pytest.fixture
def counting() -> Iterator[Counting]:
    counting = Counting()
    counting.sequencer.start()
    yield counting
    counting.sequencer.stop()


def test_it_works_when_it_is_woken(counting: Counting) -> None:
    counting.sequencer.wake()
    assert counting.asked.acquire(timeout=10)
    assert not counting.asked.acquire(timeout=0.1)


def test_who_wants_to_wake_it_later_does_so(counting: Counting) -> None:
    with waking_later() as sequencers:
        counting.sequencer.wake()
        counting.sequencer.wake()
        assert not counting.asked.acquire(timeout=0.1)
    assert not counting.asked.acquire(timeout=0.1)
    assert list(sequencers) == [counting.sequencer]
    for each in sequencers:
        each.wake()
    assert counting.asked.acquire(timeout=10)


def test_other_threads_wake_it_meanwhile(counting: Counting) -> None:
    with waking_later():
        thread = threading.Thread(target=counting.sequencer.wake)
        thread.start()
        assert counting.asked.acquire(timeout=10)
        thread.join()

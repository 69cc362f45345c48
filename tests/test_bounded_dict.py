"""What is remembered of earlier calls has an end."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from metastore.bounded_dict import BoundedDict


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 9), st.integers())))
def test_the_entries_that_were_put_last_are_kept(most: int, entries: list[tuple[int, int]]) -> None:
    kept: BoundedDict[int, int] = BoundedDict(most)
    for key, value in entries:
        kept.put(key, value)
    last = dict(reversed(entries))  # the keys in the order in which they were put last, the newest first
    newest = {key: [value for each, value in entries if each == key][-1] for key in list(last)[:most]}
    assert dict(kept) == newest
    assert list(kept) == list(reversed(newest))


def test_threads_may_put_and_take_at_once() -> None:
    kept: BoundedDict[int, int] = BoundedDict(3)
    failed: list[Exception] = []

    def use(first: int) -> None:
        try:
            for number in range(20_000):
                kept.put((first + number) % 7, number)
                kept.get(number % 7)
                kept.pop((first * number) % 7, None)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    kept.put(10, 1)
    assert len(kept) <= 3 and kept.get(10) == 1

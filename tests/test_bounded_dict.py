"""What is remembered of earlier calls has an end."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from lake.protocol.bounded_dict import BoundedDict


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 9), st.integers())))
def test_the_entries_that_were_put_last_are_kept(most: int, entries: list[tuple[int, int]]) -> None:
    kept: BoundedDict[int, int] = BoundedDict(most)
    for key, value in entries:
        kept.put(key, value)
    values = dict(entries)
    last = list(dict(reversed(entries)))[:most]  # the keys that were put last, the newest first
    newest = {key: values[key] for key in last}
    assert dict(kept) == newest
    assert list(kept) == list(reversed(newest))


def test_threads_may_put_and_take_at_once() -> None:
    kept: BoundedDict[int, int] = BoundedDict(3)

    def use(first: int) -> None:
        for number in range(20_000):
            kept.put((first + number) % 7, number)
            kept.get(number % 7)
            kept.pop((first * number) % 7, None)

    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(use, range(4)):  # raises what they do
            pass
    kept.put(10, 1)
    assert len(kept) <= 3 and kept.get(10) == 1

"""The memory of a worker's cache, beside a list that is as simple as can be."""

from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.cache.entry import Entry
from metastore.cache.memory import Memory, _size
from metastore.cache.stamp import Stamp

CAPACITY = 4_000
STAMP = Stamp.of("i", "1:1:")

_steps = st.lists(
    st.tuples(st.sampled_from(["put", "get", "remove"]), st.sampled_from([b"a", b"b", b"c", b"d"]), st.integers(0, 9)),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(_steps)
def test_the_least_recently_used_go_first(steps: list[tuple[str, bytes, int]]) -> None:
    memory = Memory(CAPACITY)
    kept: list[tuple[bytes, Entry]] = []  # the most recently used last
    for step, key, number in steps:
        found = next((entry for name, entry in kept if name == key), None)
        others = [each for each in kept if each[0] != key]
        if step == "put":
            entry = Entry(b"x" * number * 500, STAMP, [("t", n) for n in range(number)])
            memory.put(key, entry)
            kept = [*others, (key, entry)] if _size(entry) <= CAPACITY else others
            while sum(_size(each) for _, each in kept) > CAPACITY:
                kept.pop(0)
        elif step == "get":
            assert memory.get(key) is found
            kept = kept if found is None else [*others, (key, found)]
        else:
            memory.remove(key)
            kept = others
        assert memory.size == sum(_size(each) for _, each in kept)
        assert len(memory) == len(kept)
        assert all(name in memory for name, _ in kept)

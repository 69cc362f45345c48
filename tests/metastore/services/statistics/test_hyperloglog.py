"""Sketches of distinct values: Hive's bytes, merging, and how well they count."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.services.statistics.hyperloglog import HyperLogLog

# Written by Hive 4.0.1's HyperLogLog: registers' bits, values added (0, 1, 2, …), Hive's estimate, bytes.
WRITTEN_BY_HIVE = [
    (10, 0, 1, "484c4ca00100"),
    (10, 1, 1, "484c4ca00101c1d38e18"),
    (10, 3, 3, "484c4ca00303c1f3be4880e0cfcfffffffffff0183aed1a104"),
    (14, 5, 5, "484c4ce00505c5f3be48bc9da4af01c4c2aba0feffffffff01bcdbdc9201c0d2f48e03"),
    (4, 3, 2, "484c4c4402000a000200000000"),
    (4, 20, 17, "484c4c4411012a200315410012"),
    (5, 500, 394, "484c4c548a033579426a664559354524439445554545"),
]


@pytest.mark.parametrize(("p", "values", "estimate", "written"), WRITTEN_BY_HIVE)
def test_hives_sketches_are_read_and_written(p: int, values: int, estimate: int, written: str) -> None:
    sketch = HyperLogLog.parse(bytes.fromhex(written))
    assert sketch.p == p
    again = HyperLogLog.parse(sketch.serialize())
    assert (again.p, again.sparse, again.dense) == (sketch.p, sketch.sparse, sketch.dense)
    if sketch.dense is not None:
        # All but the estimate in the head, which Hive corrects by a table.
        assert sketch.serialize()[-len(sketch.dense) // 2 :] == bytes.fromhex(written)[-len(sketch.dense) // 2 :]
        assert sketch.estimate() == pytest.approx(estimate, rel=3 * 1.04 / 2 ** (p / 2))
    else:
        assert sketch.estimate() == estimate


def test_merging_gives_what_hive_gives() -> None:
    one, two = "484c4ca00101c1d38e18", "484c4ca00303c1f3be4880e0cfcfffffffffff0183aed1a104"
    merged = HyperLogLog.parse(bytes.fromhex(one)).merged(HyperLogLog.parse(bytes.fromhex(two)))
    assert merged.sparse == HyperLogLog.parse(bytes.fromhex(two)).sparse  # 0 is among 0, 1, 2
    assert merged.estimate() == 3


def sketch_of(hashes: list[int], p: int) -> HyperLogLog:
    """A sketch of values with these 64-bit hashes, made as Hive makes it."""
    entries: dict[int, int] = {}
    for value in hashes:
        key = value & ((1 << 25) - 1)
        rest = value >> p
        run = (rest & -rest).bit_length() if rest else 64 - p + 1
        entries[key] = max(entries.get(key, 0), run)
    return HyperLogLog(p, sparse=entries)


@pytest.mark.parametrize("p", [4, 10, 14])
@pytest.mark.parametrize("count", [1, 10, 100, 1_000, 20_000])
def test_estimates_are_as_good_as_the_theory_says(p: int, count: int) -> None:
    generator = random.Random(count * p)
    sketch = sketch_of([generator.getrandbits(64) for _ in range(count)], p)
    assert sketch.estimate() == pytest.approx(count, rel=4 * 1.04 / 2 ** (p / 2), abs=1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=400),
    st.lists(st.integers(0, 2**64 - 1), max_size=400),
    st.sampled_from([4, 7, 10]),
)
def test_a_merged_sketch_is_that_of_all_values(left: list[int], right: list[int], p: int) -> None:
    merged = sketch_of(left, p).merged(sketch_of(right, p))
    together = sketch_of(left + right, p)
    assert merged.registers() == together.registers()
    assert HyperLogLog.parse(merged.serialize()).registers() == together.registers()


def test_saturated_registers_still_give_a_number() -> None:
    full = HyperLogLog(4, dense=bytes([255] * 16))
    assert 1 <= HyperLogLog.parse(full.serialize()).estimate() < 2**63


def test_sketches_of_different_sizes_do_not_merge() -> None:
    with pytest.raises(ValueError, match="different sizes"):
        sketch_of([1], 10).merged(sketch_of([1], 14))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"FM\x10\x00" + bytes(64),  # Hive's other sketch
        b"HLL",
        b"HLL\x04\x01" + bytes(8),  # 2^0 registers
        b"HLL\xa0\x01\xff\xff\xff\xff\x0f",  # four billion entries, none there
        b"HLL\xa0\x01\x01" + b"\xff" * 12,  # an integer without end
        b"HLL\xa0\x01\x01\xff\xff\xff\xff\x0f",  # an entry of more than 31 bits
        b"HLL\xa0\x01\x01\x01\x00",  # a byte too many
        b"HLL\xa4\x01" + bytes(100),  # too few registers
    ],
)
def test_what_is_no_sketch_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        HyperLogLog.parse(data)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_sketch_or_refused(data: bytes) -> None:
    try:
        sketch = HyperLogLog.parse(b"HLL" + data)
    except ValueError:
        return
    assert HyperLogLog.parse(sketch.serialize()).registers() == sketch.registers()

"""The generated stream: always the same, a little out of order, and late at times."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.orders_stream.files import ROWS_PER_FILE, write_files
from examples.orders_stream.proof import compare, own_partition
from examples.orders_stream.stream import STRETCH, OrderChange, OrderStream

STREAM = OrderStream(seed=5)


def behind(stream: OrderStream, number: int) -> int:
    """By how many milliseconds a row comes behind its time."""
    return stream.start + number * stream.step - stream.order(number).at


def test_a_row_depends_on_seed_and_number_alone() -> None:
    assert [STREAM.order(number) for number in range(50)] == [OrderStream(seed=5).order(number) for number in range(50)]
    assert STREAM.order(7) != OrderStream(seed=6).order(7)


def test_the_first_rows_are_what_they_were() -> None:
    """Nobody changes the stream unnoticed: what is stored somewhere is compared with it."""
    assert STREAM.order(1000) == OrderChange(1000, 200, "shipped", 84650, "shard-0", 1735692938243)


@given(st.integers(0, 10**6))
def test_rows_are_late_within_bounds(number: int) -> None:
    row = STREAM.order(number)
    assert row.id == number
    assert row.at >= STREAM.start
    assert behind(STREAM, number) <= STREAM.latest


def test_some_stretches_have_late_rows_and_the_others_none() -> None:
    stretches = range(4 * STREAM.late_stretch)
    late = {
        stretch
        for stretch in stretches
        if any(behind(STREAM, number) > STREAM.disorder for number in range(stretch * STRETCH, (stretch + 1) * STRETCH))
    }
    assert late == {stretch for stretch in stretches if stretch % STREAM.late_stretch == STREAM.late_stretch - 1}


def test_every_order_goes_through_its_life() -> None:
    changes: dict[int, list[str]] = {}
    for number in range(800):
        row = STREAM.order(number)
        changes.setdefault(row.order_id, []).append(row.status)
    assert len(changes) == 200
    assert all(statuses == ["placed", "paid", "shipped", "delivered"] for statuses in changes.values())


def read(directory: Path) -> list[OrderChange]:
    files = sorted(directory.iterdir())
    return [OrderChange(**json.loads(line)) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("rows", [1, ROWS_PER_FILE, ROWS_PER_FILE + 1])
def test_files_hold_the_stream(tmp_path: Path, rows: int) -> None:
    so_far: list[int] = []
    write_files(STREAM, tmp_path, rows, written=so_far.append)
    assert read(tmp_path) == [STREAM.order(number) for number in range(rows)]
    assert so_far[-1] == rows


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    so_far: list[int] = []
    write_files(STREAM, tmp_path, 1000, written=so_far.append, stopped=lambda: len(so_far) == 2)
    assert len(read(tmp_path)) == 2 * ROWS_PER_FILE
    first = min(tmp_path.iterdir())
    before = first.stat().st_mtime_ns
    write_files(STREAM, tmp_path, 1000)
    assert read(tmp_path) == [STREAM.order(number) for number in range(1000)]
    assert first.stat().st_mtime_ns == before


class TestProof:
    rows = [STREAM.order(number) for number in range(10)]

    def pairs(self, rows: list[OrderChange]) -> list[tuple[str, OrderChange]]:
        return [(own_partition(row.at), row) for row in rows]

    def test_holds(self) -> None:
        proof = compare(STREAM, 10, self.pairs(self.rows))
        assert proof.holds
        assert (proof.elsewhere, proof.partitions.total()) == (0, 10)

    def test_finds_what_is_wrong(self) -> None:
        altered = self.rows[3]._replace(cents=1)
        pairs = self.pairs([*self.rows[:3], altered, *self.rows[5:], self.rows[9], STREAM.order(10)])
        proof = compare(STREAM, 10, [*pairs[1:], ("dt=2030-01-01/hr=00", self.rows[0])])
        assert (proof.missing, proof.doubled, proof.altered, proof.unknown) == ({4}, {9}, {3}, {10})
        assert proof.elsewhere == 1
        assert not proof.holds
        assert "1 missing (such as 4)" in str(proof)

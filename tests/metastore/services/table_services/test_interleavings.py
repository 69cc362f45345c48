"""No interleaving of cleans, leases, savepoints, plans, commits and rollbacks deletes a file that somebody needs."""

from random import Random

import pytest

from tests.metastore.services.table_services.interleavings import OMISSIONS, Violation, explore
from tests.support.long_runs import share_of

A_MILLION = 1_000_000
ENOUGH = 20_000
"""Interleavings in which each omission is found: most are within a hundred."""


def explore_many(first: int, count: int) -> tuple[int, int]:
    """Explores so many interleavings. Returns in how many a clean deleted something, and how many files were."""
    cleaned = files = 0
    for seed in range(first, first + count):
        try:
            deleted = len(explore(Random(seed)).deleted)
        except Violation as violation:
            pytest.fail(f"interleaving {seed}: {violation}")
        cleaned += deleted > 0
        files += deleted
    return cleaned, files


def test_some_interleavings() -> None:
    cleaned, files = explore_many(0, 4_000)
    assert cleaned > 1_000, "what deletes nothing shows nothing"
    assert files > cleaned


@pytest.mark.parametrize("omission", OMISSIONS)
def test_a_rule_that_is_left_out_is_noticed(omission: str) -> None:
    for seed in range(ENOUGH):
        try:
            explore(Random(seed), {omission})
        except Violation:
            return
    pytest.fail(f"{omission}: {OMISSIONS[omission]}, and nothing is lost in {ENOUGH} interleavings")


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_million_interleavings(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them take ten minutes."""
    count = share_of(A_MILLION)
    cleaned, files = explore_many(0, count)
    with capsys.disabled():
        print(f"\n{count:,} interleavings: in {cleaned:,} cleans deleted {files:,} files, none that somebody needed")

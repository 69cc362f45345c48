"""Which locks get along with which: Hive 4's rules, and those of Hive 2.3 among them."""

import pytest

from lake.protocol.hive import LockType
from metastore.services.transactions.locks import Claim, conflict

READ, WRITE, EXCLUSIVE, EXCL_WRITE = (
    LockType.SHARED_READ,
    LockType.SHARED_WRITE,
    LockType.EXCLUSIVE,
    LockType.EXCL_WRITE,
)
ALL = (READ, WRITE, EXCL_WRITE, EXCLUSIVE)

# What is held -> what must wait for it, both on tables or partitions.
WAITS_FOR = {
    READ: {EXCLUSIVE},
    WRITE: {EXCL_WRITE, EXCLUSIVE},
    EXCL_WRITE: {WRITE, EXCL_WRITE, EXCLUSIVE},
    EXCLUSIVE: {READ, WRITE, EXCL_WRITE, EXCLUSIVE},
}


@pytest.mark.parametrize("held", ALL)
@pytest.mark.parametrize("wanted", ALL)
@pytest.mark.parametrize("whole", [False, True])
def test_on_the_same_level(held: LockType, wanted: LockType, whole: bool) -> None:
    assert conflict(Claim(wanted, whole), Claim(held, whole)) == (wanted in WAITS_FOR[held])


@pytest.mark.parametrize("held", ALL)
@pytest.mark.parametrize("wanted", ALL)
def test_a_database_and_what_is_in_it(held: LockType, wanted: LockType) -> None:
    """As on the same level, but a reader of the database doesn't mind that a table in it is dropped."""
    expected = wanted in WAITS_FOR[held]
    assert conflict(Claim(wanted, True), Claim(held, False)) == (expected and (wanted, held) != (READ, EXCLUSIVE))
    assert conflict(Claim(wanted, False), Claim(held, True)) == (expected and (wanted, held) != (EXCLUSIVE, READ))


def test_it_does_not_matter_who_came_first() -> None:
    claims = [Claim(kind, whole) for kind in ALL for whole in (False, True)]
    assert all(conflict(one, other) == conflict(other, one) for one in claims for other in claims)

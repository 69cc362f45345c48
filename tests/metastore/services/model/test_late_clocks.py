"""A clock beyond 2038, right or wrong: Hive's times have 32 bits, and calls must go on."""

import time
from datetime import UTC, datetime

import pytest

from lake.protocol import clock
from lake.protocol.hive import Function, FunctionType, PrincipalType, Role
from metastore.services.wiring import Metastore
from tests.support.builders import database, partition, table

LATEST = 2**31 - 1


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time_ns
    ahead = int(datetime(2040, 1, 1, tzinfo=UTC).timestamp() - time.time()) * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: right() + ahead)
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 10**9)


@pytest.mark.usefixtures("late")
def test_things_are_made_and_told_of(metastore: Metastore) -> None:
    metastore.databases.create(database("late"))
    metastore.tables.create(table("late", keys=("ds",)), {})
    metastore.partitions.add("late", "t", [partition("late", "t", "1")], {})
    metastore.functions.create(Function("f", "late", "x", "o", PrincipalType.USER, 0, FunctionType.JAVA, []))
    metastore.roles.create(Role("late", 0, "o"))
    assert metastore.databases.get("late").createTime == LATEST
    assert metastore.tables.get("late", "t").createTime == LATEST
    answer = metastore.notifications.read(0, None, database="late")
    assert {each.eventTime for each in answer} == {LATEST}


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(0, 0), (-1, -1), (1_999, 1), (10**17, LATEST), (-(10**17), -LATEST)]
)
def test_as_far_as_32_bits_hold_them(milliseconds: int, seconds: int) -> None:
    assert clock.as_hive_seconds(milliseconds) == seconds

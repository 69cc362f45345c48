"""The command that does a service of one of Iceberg's tables."""

import argparse
import sys
import threading
from dataclasses import replace

import pytest

from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import policy_of
from lake.maintenance.executors.iceberg import IcebergExecutor, WritersWon
from lake.maintenance.executors.programs import run_iceberg
from lake.maintenance.executors.spark_submit import SubmissionFailed
from lake.protocol.lake import ServiceJob

HOUR = 3_600_000
NOW = 1_000 * HOUR
FACTS = Facts(table="shop.orders", now=NOW, position=0, parameters={"table_type": "ICEBERG"}, database_parameters={})


def executor(program: str) -> IcebergExecutor:
    return IcebergExecutor("thrift://nowhere", "a.jar", ["--master=x"], command=[sys.executable, "-c", program])


def test_the_command() -> None:
    job = ServiceJob(id=7, action="clean", enqueuedAt=123, attempts=2)
    policy = policy_of({"clean.hours-retained": "24"})
    said = executor("import sys; print(sys.argv[1:])").run(job, FACTS, policy, threading.Event())
    for word in ("'--jars', 'a.jar'", "--master=x", "run_iceberg.py", "'--database', 'shop'", "'--table', 'orders'"):
        assert word in said
    assert f"'--older-than', '{NOW - 24 * HOUR}', '--retain-last', '1'" in said
    assert "'--tag', 'tms-job7.123-2'" in said


def test_the_command_says_which_table_it_is() -> None:
    """By Iceberg's own id of a table, since its catalog knows names alone."""
    job, policy = ServiceJob(id=7, action="clean", enqueuedAt=123, attempts=2), policy_of({})
    show = executor("import sys; print(sys.argv[1:])")
    assert "--uuid" not in show.run(job, FACTS, policy, threading.Event())
    known = replace(FACTS, parameters={**FACTS.parameters, "uuid": "3f0e-9"})
    assert "'--uuid', '3f0e-9'" in show.run(job, known, policy, threading.Event())


def test_the_program_leaves_another_table_alone() -> None:
    same, given = Stand("3f0e-9"), argparse.Namespace(database="shop", table="orders", uuid="3f0e-9")
    run_iceberg.check(same, given)
    run_iceberg.check(Stand("77"), argparse.Namespace(database="shop", table="orders", uuid=""))
    with pytest.raises(SystemExit, match=r"shop\.orders is another table \(uuid 77\)"):
        run_iceberg.check(Stand("77"), given)


class Stand:
    """As much of Iceberg's BaseTable as says its id."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid

    def operations(self) -> "Stand":
        return self

    def current(self) -> "Stand":
        return self

    def uuid(self) -> str:
        return self._uuid


def test_writers_win() -> None:
    job, policy = ServiceJob(id=7, action="clustering", enqueuedAt=123, attempts=2), policy_of({})
    lost = "print('org.apache.iceberg.exceptions.ValidationException: Missing required files'); raise SystemExit(1)"
    with pytest.raises(WritersWon, match="Missing required files"):
        executor(lost).run(job, FACTS, policy, threading.Event())
    with pytest.raises(SubmissionFailed):
        executor("raise SystemExit(1)").run(job, FACTS, policy, threading.Event())

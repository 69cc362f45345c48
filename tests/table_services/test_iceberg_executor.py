"""The command that does a service of one of Iceberg's tables."""

import sys
import threading

import pytest

from metastore.table_services.facts import Facts
from metastore.table_services.iceberg_executor import IcebergExecutor, WritersWon
from metastore.table_services.policy import policy_of
from metastore.table_services.spark_submit import SubmissionFailed
from metastore.wire.lake import ServiceJob

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


def test_writers_win() -> None:
    job, policy = ServiceJob(id=7, action="clustering", enqueuedAt=123, attempts=2), policy_of({})
    lost = "print('org.apache.iceberg.exceptions.ValidationException: Missing required files'); raise SystemExit(1)"
    with pytest.raises(WritersWon, match="Missing required files"):
        executor(lost).run(job, FACTS, policy, threading.Event())
    with pytest.raises(SubmissionFailed):
        executor("raise SystemExit(1)").run(job, FACTS, policy, threading.Event())

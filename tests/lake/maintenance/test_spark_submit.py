"""Attempts as processes of their own, with commands that stand in for spark-submit."""

import subprocess
import sys
import threading
import time

import pytest

from lake.maintenance.executors.base import Stopped, Task, prefix_of, tag_of
from lake.maintenance.executors.spark_submit import SparkSubmitExecutor, SubmissionFailed, running
from lake.protocol.lake import TableReference
from tests.support.waiting import wait_until

TASKS = iter(range(1_000))


def task(table_id: int | None = None) -> Task:
    instant = f"2026010100000{next(TASKS):04}"
    return Task(TableReference("hive", "d", "t", table_id), "compaction", instant, tag_of(instant, 3))


def executor(program: str) -> SparkSubmitExecutor:
    return SparkSubmitExecutor("thrift://nowhere", ["--master=local[1]"], command=[sys.executable, "-c", program])


def test_the_command_names_the_attempt() -> None:
    one = task()
    said = executor("import sys; print(sys.argv[1:])").run(one, threading.Event())
    for word in ("--name", one.tag, "--master=local[1]", "run_plan.py", "hive.d.t", one.instant, "--tag"):
        assert word in said
    assert one.tag == f"tms-{one.instant}-3"


def test_a_failure_has_the_end_of_the_log() -> None:
    with pytest.raises(SubmissionFailed, match=r"exited with 7:\n(?s:.*)out of memory"):
        executor("import sys; print('x' * 100_000); print('out of memory'); sys.exit(7)").run(task(), threading.Event())


def test_it_stops() -> None:
    one, stop = task(), threading.Event()
    threading.Timer(0.7, stop.set).start()
    with pytest.raises(Stopped):
        executor("import time; time.sleep(600)").run(one, stop)
    assert running(prefix_of(one.instant)) == []


def test_a_process_that_was_left_behind_is_waited_for() -> None:
    """The service that started it was killed; the plan isn't run a second time meanwhile."""
    one = task()
    tagged = ["--table", one.name, "--tag", tag_of(one.instant, 1)]
    command = [sys.executable, "-c", "import time; time.sleep(1.5)", *tagged]
    begun = time.monotonic()
    with subprocess.Popen(command) as left:
        wait_until(lambda: running(prefix_of(one.instant)), what="the process")
        said = executor("raise SystemExit('a second one')").run(one, threading.Event())
        assert f"process {left.pid} had been started by a service before" in said
        assert time.monotonic() - begun > 1.4
    stop = threading.Event()
    command[2] = "import time; time.sleep(600)"
    with subprocess.Popen(command) as left:
        wait_until(lambda: running(prefix_of(one.instant)), what="the process")
        stop.set()
        with pytest.raises(Stopped):
            executor("raise SystemExit('a second one')").run(one, stop)
        left.wait(30)
    assert running(prefix_of(one.instant)) == []


def test_another_tables_plan_of_the_same_timestamp_is_not_waited_for() -> None:
    one = task()
    assert_is_not_waited_for(one, "--table", "hive.d.other")


def test_a_plan_of_an_earlier_table_of_the_name_is_not_waited_for() -> None:
    one = task(table_id=2)
    assert_is_not_waited_for(one, "--table", one.name, "--table-id", "1")


def assert_is_not_waited_for(one: Task, *words: str) -> None:
    """A process with these words in its command line, whose tag is the attempt's, doesn't keep the attempt waiting."""
    command = [sys.executable, "-c", "import time; time.sleep(600)", *words, "--tag", one.tag]
    with subprocess.Popen(command) as other:
        wait_until(lambda: running(prefix_of(one.instant)), what="the process")
        assert executor("print('run')").run(one, threading.Event()).strip() == "run"
        other.kill()

"""How `make test` spreads tests over processes, and the report of tests that pass only at their second run."""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

MAX_UNRELIABLE = 3
"""Tests that may fail once and pass when they are run again: the suite starts and kills hundreds of processes. If there
are more, the run has failed."""

_LONGEST_FIRST = (
    *("client_suite", "spark", "spark_extension", "metastore/server", "eventbus", "crash", "rights", "lake/capture"),
    *("metastore/cache", "lake/client", "metastore/services/timeline", "metastore/services/readiness", "visibility"),
    *("hive_client", "lake/maintenance", "parity", "cli", "deploy"),
)
"""Directories that take minutes. Begun late, one of them would keep one process busy at the end and the others idle."""

_ON_SPARK = ("spark", "lake/spark", "lake/layers", "orders_stream")
"""Directories whose tests share the sessions of Spark, and therefore a process."""


class ByDirectory(LoadScopeScheduling):
    """Gives a process one directory of tests at a time, so that it starts the servers and Sparks of that alone."""

    def _split_scope(self, nodeid: str) -> str:
        return directory(nodeid)


def directory(nodeid: str) -> str:
    """The directory of a test below tests/; of the two products, the package. Those of `_ON_SPARK` count as one."""
    file = nodeid.partition("::")[0]
    parts = file.split("/")[1:-1]
    depth = 3 if parts[:2] == ["metastore", "services"] else 2 if parts[:1] in (["metastore"], ["lake"]) else 1
    found = "/".join(parts[:depth]) or file
    return "spark" if found in _ON_SPARK else found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(directory(item.nodeid), len(ranks)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByDirectory | None:
    if config.getoption("--fast"):
        return None  # nothing is shared: xdist's own way spreads the tests more evenly
    return ByDirectory(config, log)


def _unreliable(reporter: Any) -> list[str]:
    """Tests that failed and passed when they were run again."""
    failed = {report.nodeid for kind in ("failed", "error") for report in reporter.stats.get(kind, ())}
    again = {report.nodeid for report in reporter.stats.get("rerun", ())}
    return sorted(again - failed)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and len(_unreliable(reporter)) > MAX_UNRELIABLE and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    if names := _unreliable(terminalreporter):
        terminalreporter.section("passed only when run again: not reliable, to be mended", sep="!")
        for name in names:
            terminalreporter.line(name)
        if len(names) > MAX_UNRELIABLE:
            terminalreporter.line(f"more than {MAX_UNRELIABLE} of them: the run has failed")

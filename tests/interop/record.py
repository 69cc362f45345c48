"""Writes down what a run of the interop tests showed, as a page of the documentation."""

import importlib.metadata
import inspect
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

from tests.interop import maven

INTRODUCTION = """\
# With other systems

Written by `make interop`, which runs other systems' released clients and servers with this server, unchanged where
nothing else is said. It fetches their jars with the user's Maven; what is missing on a machine is skipped, and the run
says why.
"""


class Record:
    """A pytest plugin that collects the outcomes of the tests marked `interop`, and writes them when all have run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._modules: dict[str, ModuleType] = {}
        self._outcomes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._reasons: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            if isinstance(item, pytest.Function) and item.get_closest_marker("interop"):
                self._modules[item.nodeid.partition("::")[0]] = item.module

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        module, _, rest = report.nodeid.partition("::")
        if module not in self._modules or (report.when != "call" and report.passed):
            return
        self._counts[module][report.outcome] += 1
        self._outcomes[module][report.outcome].add(re.sub(r"\[.*", "", rest).replace("::", "."))
        if report.skipped and isinstance(report.longrepr, tuple):
            self._reasons[module].add(report.longrepr[2].removeprefix("Skipped: "))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        whole = not session.config.option.keyword
        if whole and any(counts["passed"] for counts in self._counts.values()):
            self._file.write_text("\n".join([INTRODUCTION, *self._results(), *self._versions()]) + "\n")

    def _results(self) -> list[str]:
        lines = ["| what | passed | skipped | failed |", "|---|---|---|---|"]
        for module, counts in sorted(self._counts.items()):
            title = _title(self._modules[module])
            lines.append(f"| {title} ({module}) | {counts['passed']} | {counts['skipped']} | {counts['failed']} |")
        lines.append("")
        for module, outcomes in sorted(self._outcomes.items()):
            lines += [f"## {module}", ""]
            lines += [f"- {kind}: {', '.join(sorted(names))}" for kind, names in sorted(outcomes.items())]
            lines += [f"- skipped because {reason}" for reason in sorted(self._reasons[module])]
            lines.append("")
        return lines

    def _versions(self) -> list[str]:
        by_group: dict[str, set[str]] = defaultdict(set)
        for coordinate in maven.asked_for:
            group, artifact, version, *_ = coordinate.split(":")
            by_group[group].add(f"{artifact} {version}")
        lines = ["## Versions", "", f"- {_java()}", f"- PySpark {importlib.metadata.version('pyspark')}"]
        return lines + [f"- {group}: {', '.join(sorted(found))}" for group, found in sorted(by_group.items())]


def _title(module: ModuleType) -> str:
    return (inspect.getdoc(module) or module.__name__).partition("\n")[0].rstrip(".")


def _java() -> str:
    program = shutil.which("java")
    if program is None:
        return "no Java"
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    return "Java " + (re.search(r'version "([^"]+)"', told) or ["", "unknown"])[1]

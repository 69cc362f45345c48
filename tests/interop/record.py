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

from tests.interop import maven, suites

INTRODUCTION = """\
# With other systems

Written by `make interop`, which runs other systems' released clients and servers with this server, unchanged where
nothing else is said. It fetches their jars with the user's Maven; what is missing on a machine is skipped, and the run
says why.

Each class of another project's suite is one test of ours, with the results of its tests listed below it. An artefact is
a test that fails because of its own process (its settings, its database). A difference is a row of compatibility.md, or
one of lake tables. Both are listed, with reasons, in tests/interop/*exclusions.tsv.
"""
OUTCOMES = ("passed", "failed", "artefact", "difference", "skipped")


class Record:
    """A pytest plugin that collects the outcomes of the tests marked `interop`, and writes them when all have run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._modules: dict[str, ModuleType] = {}
        self._outcomes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._reasons: dict[str, set[str]] = defaultdict(set)
        self._suites: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)

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
        for key, value in report.user_properties:
            if key == suites.COUNTS and isinstance(value, tuple):
                name, counts = value
                self._suites[module][name] = counts
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
            lines += [*_table(self._suites[module]), ""] if module in self._suites else [""]
        return lines

    def _versions(self) -> list[str]:
        by_group: dict[str, set[str]] = defaultdict(set)
        for coordinate in maven.asked_for:
            group, artifact, version, *_ = coordinate.split(":")
            by_group[group].add(f"{artifact} {version}")
        packages = [f"- {name} {importlib.metadata.version(name.lower())}" for name in ("PyIceberg", "PySpark")]
        lines = ["## Versions", "", f"- {_java()}", *packages]
        return lines + [f"- {group}: {', '.join(sorted(found))}" for group, found in sorted(by_group.items())]


def _table(classes: dict[str, dict[str, int]]) -> list[str]:
    """What became of the tests in each class of another's suite, and of all."""
    rows = [(name, [counts.get(each, 0) for each in OUTCOMES]) for name, counts in sorted(classes.items())]
    rows.append(("all", [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    lines = ["", f"| class | {' | '.join(OUTCOMES)} |", f"|---|{'---|' * len(OUTCOMES)}"]
    return [*lines, *(f"| {name} | {' | '.join(map(str, counts))} |" for name, counts in rows)]


def _title(module: ModuleType) -> str:
    return (inspect.getdoc(module) or module.__name__).partition("\n")[0].rstrip(".")


def _java() -> str:
    program = shutil.which("java")
    if program is None:
        return "no Java"
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    return "Java " + (re.search(r'version "([^"]+)"', answer) or ["", "unknown"])[1]

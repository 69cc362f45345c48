"""Writes down what a run of the interop tests showed, as a page of the documentation."""

import importlib.metadata
import inspect
import re
import shutil
import subprocess
from collections import defaultdict
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from tests.interop import maven, suites

INTRODUCTION = """\
# With other systems

Written by `make interop`, which runs other systems' released clients and servers with this server, unchanged where
nothing else is said. It fetches their jars with the user's Maven; what is missing on a machine is skipped, and the run
says why. A run of some files writes down what these showed, and keeps what earlier runs showed of the others.

Each class of another project's suite is one test of ours, with the results of its tests listed below it. An artefact is
a test that fails because of its own process (its settings, its database). A difference is a row of compatibility.md, or
one of lake tables. Both are listed, with reasons, in tests/interop/*exclusions.tsv.
"""
OUTCOMES = ("passed", "failed", "artefact", "difference", "skipped")

HEADINGS = ["| what | run on | passed | skipped | failed |", "|---|---|---|---|---|"]
_ROW = re.compile(r"^\| .+ \((?P<module>[\w/]+\.py)\) \|.*$", re.MULTILINE)
_SECTION = re.compile(r"^## (?P<module>[\w/]+\.py)\n\n(?P<lines>.*?)\n*(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_VERSIONS = re.compile(r"^- (?P<group>[\w.-]+): (?P<names>.+)$", re.MULTILINE)


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
        self.ran(self._modules[module], module, report.outcome, re.sub(r"\[.*", "", rest).replace("::", "."))
        for key, value in report.user_properties:
            if key == suites.COUNTS and isinstance(value, tuple):
                name, counts = value
                self._suites[module][name] = counts
        if report.skipped and isinstance(report.longrepr, tuple):
            self._reasons[module].add(report.longrepr[2].removeprefix("Skipped: "))

    def ran(self, module: ModuleType, path: str, outcome: str, test: str) -> None:
        """Notes what became of a test of a module, whose file is at a path from the tree's root."""
        self._modules[path] = module
        self._counts[path][outcome] += 1
        self._outcomes[path][outcome].add(test)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # Of a file of which some tests ran, nothing can be said.
        whole = not session.config.option.keyword and not any("::" in each for each in session.config.args)
        if whole and any(counts["passed"] for counts in self._counts.values()):
            before = self._file.read_text() if self._file.exists() else ""
            self._file.write_text(self.page(before, session.config.rootpath))

    def page(self, before: str, root: Path) -> str:
        """The page, with what the page `before` says of test files that are in `root` still and haven't run now."""
        rows = {each["module"]: each[0] for each in _ROW.finditer(before)}
        sections = {each["module"]: each["lines"] for each in _SECTION.finditer(before)}
        rows |= {module: self._row(module) for module in self._counts}
        sections |= {module: "\n".join(self._section(module)) for module in self._counts}
        there = [module for module in sorted(rows) if (root / module).exists()]
        lines = [INTRODUCTION, *HEADINGS, *(rows[module] for module in there), ""]
        for module in there:
            lines += [f"## {module}", "", sections.get(module, ""), ""]
        return "\n".join([*lines, *self._versions(before)]) + "\n"

    def _row(self, module: str) -> str:
        counts = self._counts[module]
        figures = (date.today().isoformat(), *(counts[each] for each in ("passed", "skipped", "failed")))
        return f"| {_title(self._modules[module])} ({module}) | {' | '.join(map(str, figures))} |"

    def _section(self, module: str) -> list[str]:
        lines = [f"- {kind}: {', '.join(sorted(names))}" for kind, names in sorted(self._outcomes[module].items())]
        lines += [f"- skipped because {reason}" for reason in sorted(self._reasons[module])]
        return lines + (_table(self._suites[module]) if module in self._suites else [])

    def _versions(self, before: str) -> list[str]:
        by_group: dict[str, set[str]] = defaultdict(set)
        for each in _VERSIONS.finditer(before.partition("## Versions")[2]):
            by_group[each["group"]] |= {*each["names"].split(", ")}
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

"""Suites of others, run as they are released: what became of their tests, and which of them may fail here.

A file of exclusions has a line for each test that fails, with tabs between: class, test, kind, reason. `artefact`s are
about the test's own process (its settings, its database, its machine). `difference`s are ours on purpose, each a row of
docs/compatibility.md, or of lake tables, as the reason says. One that passes must go from the list.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

#: Under this name a test of ours keeps the counts of the class that it ran, for the record.
COUNTS = "tests of the suite"
#: Of all suites that have no file of their own.
EXCLUSIONS = Path(__file__).with_name("exclusions.tsv")
KINDS = ("artefact", "difference")
TRACE = re.compile(r"\n\s+at ")
MOST_TOLD = 2000


@dataclass(frozen=True)
class Outcome:
    """What became of one test: `passed`, `failed` or `skipped`, and why."""

    test: str
    outcome: str
    reason: str


@dataclass(frozen=True)
class Exclusion:
    """A test that may fail: an artefact or a difference, and why."""

    test: str
    kind: str
    reason: str


def exclusions(file: Path) -> dict[str, list[Exclusion]]:
    """Those of each class. Empty lines, and what follows a `#` at the start of a line, are for people."""
    found: dict[str, list[Exclusion]] = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, test, kind, reason = line.split("\t")
            assert kind in KINDS and reason, f"{file.name} gives no kind or no reason: {line}"
            found.setdefault(name, []).append(Exclusion(test, kind, reason))
    return found


def junit(reports: Iterable[Path]) -> dict[str, list[Outcome]]:
    """The outcomes that JUnit's and ScalaTest's files of XML tell, of each class by its full name."""
    found: dict[str, list[Outcome]] = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            found.setdefault(case.attrib["classname"], []).append(_outcome(case))
    return found


def _outcome(case: ElementTree.Element) -> Outcome:
    name = re.sub(r"\s+", " ", case.attrib["name"]).strip()
    for kind, elements in (("failed", ("failure", "error")), ("skipped", ("skipped",))):
        element = next((found for found in map(case.find, elements) if found is not None), None)
        if element is not None:
            return Outcome(name, kind, element.get("message") or (element.text or "").strip())
    return Outcome(name, "passed", "")


def control(request: pytest.FixtureRequest) -> bool:
    """Whether the suites run with Hive's server instead of ours (`--target hive`, or `hive4`)."""
    return request.config.getoption("--target") in ("hive", "hive4")


def judge(
    request: pytest.FixtureRequest,
    name: str,
    outcomes: list[Outcome],
    expected: int,
    excluded: Sequence[Exclusion] | None = None,
) -> None:
    """Fails if a test of the class `name` failed that isn't excluded, or if one passed that is.

    `expected` is how many tests the class has: none may get lost on the way. `excluded` are by default those in
    `EXCLUSIONS`. In a control run artefacts may fail or pass, and there are no differences. The test that asks keeps
    the counts for the record.
    """
    if excluded is None:
        excluded = exclusions(EXCLUSIONS).get(name, [])
    failed = {each.test: each for each in outcomes if each.outcome == "failed"}
    if control(request):
        artefacts = {each.test for each in excluded if each.kind == "artefact"}
        assert not failed.keys() - artefacts, described(failed.values())
        return
    names = {each.test for each in excluded}
    unexpected = [each for test, each in failed.items() if test not in names]
    counts = Counter(each.outcome for each in outcomes if each.outcome != "failed")
    counts.update(each.kind for each in excluded if each.test in failed)
    counts["failed"] = len(unexpected)
    request.node.user_properties.append((COUNTS, (name, dict(counts))))
    assert not unexpected, described(unexpected)
    passed = names - failed.keys()
    assert not passed, f"these pass, or are none of {name}, and are no exclusions: {sorted(passed)}"
    assert len(outcomes) == expected, f"{name} has {expected} tests, {len(outcomes)} ran: {[o.test for o in outcomes]}"


def described(outcomes: Iterable[Outcome]) -> str:
    """What failed, and why, without the traces."""
    return "\n".join(f"{each.test}: {TRACE.split(each.reason, maxsplit=1)[0][:MOST_TOLD]}" for each in outcomes)

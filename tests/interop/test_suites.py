"""How outcomes of others' suites are read, judged and written down."""

from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from tests.interop import record, suites
from tests.interop.suites import Exclusion, Outcome

XML = """\
<testsuite>
  <testcase name="a b &#10;  c" classname="x.T"/>
  <testcase name="d" classname="x.T"><failure message="no">trace</failure></testcase>
  <testcase name="e" classname="x.T"><error>broken</error></testcase>
  <testcase name="f" classname="x.U"><skipped/></testcase>
</testsuite>
"""
PASSED, FAILED, SKIPPED = Outcome("p", "passed", ""), Outcome("f", "failed", "so\n\tat x"), Outcome("s", "skipped", "")
EXCUSED = Exclusion("f", "artefact", "its own process")


@pytest.fixture(autouse=True)
def no_control(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(request.config.option, "target", None)


def test_xml(tmp_path: Path) -> None:
    (tmp_path / "TEST-x.xml").write_text(XML)
    assert suites.junit(tmp_path.glob("*.xml")) == {
        "x.T": [Outcome("a b c", "passed", ""), Outcome("d", "failed", "no"), Outcome("e", "failed", "broken")],
        "x.U": [Outcome("f", "skipped", "")],
    }


def test_exclusions(tmp_path: Path) -> None:
    file = tmp_path / "exclusions.tsv"
    file.write_text("# for people\n\nx.T\tf\tartefact\tits own process\n")
    assert suites.exclusions(file) == {"x.T": [EXCUSED]}


@pytest.mark.parametrize("line", ["x.T\tf\twhim\treason", "x.T\tf\tartefact\t"])
def test_exclusions_need_a_kind_and_a_reason(line: str, tmp_path: Path) -> None:
    file = tmp_path / "exclusions.tsv"
    file.write_text(line + "\n")
    with pytest.raises(AssertionError, match="no kind or no reason"):
        suites.exclusions(file)


def test_the_exclusions_here_can_be_read() -> None:
    for file in Path(suites.__file__).parent.glob("*exclusions.tsv"):
        suites.exclusions(file)


def test_what_is_excluded_may_fail(request: pytest.FixtureRequest) -> None:
    suites.judge(request, "x.T", [PASSED, FAILED, SKIPPED], 3, [EXCUSED])
    kept = request.node.user_properties.pop()
    assert kept == (suites.COUNTS, ("x.T", {"passed": 1, "skipped": 1, "artefact": 1, "failed": 0}))


def test_in_a_control_run_artefacts_alone_may_fail(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(request.config.option, "target", "hive")
    suites.judge(request, "x.T", [PASSED, FAILED], 2, [EXCUSED])
    with pytest.raises(AssertionError, match=r"^f: so$"):
        suites.judge(request, "x.T", [PASSED, FAILED], 2, [Exclusion("f", "difference", "ours")])


@pytest.mark.parametrize(
    ("outcomes", "expected", "excluded", "answer"),
    [
        ([PASSED, FAILED], 2, [], "^f: so$"),
        ([PASSED], 1, [Exclusion("p", "difference", "none")], "no exclusions: \\['p'\\]"),
        ([PASSED], 1, [Exclusion("gone", "difference", "none")], "no exclusions: \\['gone'\\]"),
        ([PASSED], 2, [], "has 2 tests, 1 ran"),
    ],
)
def test_fails(
    outcomes: list[Outcome], expected: int, excluded: list[Exclusion], answer: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(AssertionError, match=answer):
        suites.judge(request, "x.T", outcomes, expected, excluded)
    request.node.user_properties.clear()


def test_a_run_of_some_files_keeps_what_is_known_of_others(tmp_path: Path) -> None:
    for each in ("tests/test_a.py", "tests/test_b.py"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).touch()
    before = "\n".join(
        [
            *record.HEADINGS,
            *(f"| About {each} (tests/test_{each}.py) | 2026-01-31 | 1 | 0 | 0 |" for each in "abc"),
            *(f"\n## tests/test_{each}.py\n\n- passed: test_{each}\n" for each in "abc"),
            "## Versions\n\n- Java 1\n- org.example: it 1.0\n",
        ]
    )
    now = record.Record(tmp_path / "page.md")
    now.ran(ModuleType("test_a", "About a."), "tests/test_a.py", "passed", "test_new")
    page = now.page(before, tmp_path)
    assert "| About b (tests/test_b.py) | 2026-01-31 | 1 | 0 | 0 |" in page and "- passed: test_b" in page
    assert f"| About a (tests/test_a.py) | {date.today().isoformat()} | 1 | 0 | 0 |" in page
    assert "- passed: test_new" in page and "test_a\n" not in page.partition("## Versions")[0]
    assert "test_c" not in page, "that file is gone"
    assert "- org.example: it 1.0" in page and "Java 1\n" not in page
    assert now.page(page, tmp_path) == page

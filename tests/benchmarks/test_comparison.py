"""How two servers' figures become ratios, a table and a chart."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.chart import Bar, draw
from bench.comparison import PER_SECOND, RAW, Compared, Comparison, ComparisonReport

SVG = "{http://www.w3.org/2000/svg}"


def test_a_ratio_above_one_says_that_the_second_is_better_whatever_the_unit() -> None:
    times = Compared.of("get table", RAW, "ms", [[9.0, 10.0, 11.0], [2.0]])
    rates = Compared.of("get table", RAW, PER_SECOND, [[100.0], [400.0, 500.0, 600.0]])
    assert times.ratio == pytest.approx(5)
    assert rates.ratio == pytest.approx(5)


def test_a_report_is_kept_as_table_chart_and_json(tmp_path: Path) -> None:
    section = Comparison("Calls", "Made up.", ("Hive", "ours"), missed={"lock": "refused"})
    section.compared.append(Compared.of("get table", RAW, "ms", [[10.0], [4.0]], 5))
    report = ComparisonReport("made_up", sections=[section])
    report.keep(tmp_path)
    markdown = (tmp_path / "made_up.md").read_text()
    assert "| get table | raw | 10 ms |  | 4 ms |  | 1 | 2.5× | 5× |" in markdown
    assert "| lock | refused |" in markdown
    kept = json.loads((tmp_path / "made_up.json").read_text())
    assert kept["sections"][0]["compared"][0]["ratio"] == pytest.approx(2.5)
    assert "get table" in (tmp_path / "made_up.svg").read_text()


def test_bars_are_as_long_as_their_ratios_on_a_logarithmic_scale() -> None:
    root = ElementTree.fromstring(draw("Times faster", {"Calls": [Bar("a", 10), Bar("b", 100), Bar("c", 0.1)]}))
    tens, hundreds, tenths = [float(bar.get("width", "")) for bar in root.iter(f"{SVG}rect")][1:]
    assert hundreds == pytest.approx(2 * tens, rel=0.01)
    assert tenths == pytest.approx(tens, rel=0.01)
    shown = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a", "b", "c", "100×", "0.1×"} <= set(shown)

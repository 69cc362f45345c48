"""Every accepted difference is in the documentation."""

from pathlib import Path

import pytest

from tests.parity.known import RULES, Rule

TABLE = Path(__file__).parents[2] / "docs" / "compatibility.md"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_has_its_row(rule: Rule) -> None:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("|")]
    assert [row for row in rows if f"| {rule.row}" in row]

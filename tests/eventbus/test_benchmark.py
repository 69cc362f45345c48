"""The events benchmark runs: its quick form, whose figures mean nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_the_quick_form(tmp_path: Path) -> None:
    options = ["--quick", "--json", str(tmp_path / "found.json"), "--results", str(tmp_path)]
    shown = subprocess.run([sys.executable, "-m", "bench", "events", *options], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert "nobody reads" in shown.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    figures = {figure["name"]: figure for section in found["sections"] for figure in section["figures"]}
    assert figures.keys() >= {
        "nobody reads",
        "20 wait for other events",
        "thrift://",
        "redis://",
        "webhook",
        "listener",
    }
    assert all(figure["median"] > 0 for figure in figures.values() if figure["unit"] == "events/s")
    assert json.loads((tmp_path / "events.json").read_text()) == found
    assert "| nobody reads |" in (tmp_path / "events.md").read_text()

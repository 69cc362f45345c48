"""The benchmark of what calls cost Postgres runs: its quick form, whose figures mean nothing."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.costs import cpu_seconds


@pytest.mark.long
def test_the_quick_form(tmp_path: Path) -> None:
    options = ["--quick", "--results", str(tmp_path)]
    shown = subprocess.run([sys.executable, "-m", "bench", "costs", *options], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    *calls, kept = json.loads((tmp_path / "costs.json").read_text())["sections"]
    assert all(cost["round_trips"] >= 1 for section in calls for cost in section["costs"])
    assert all(cost["wal"] > 0 for section in calls if section["title"] == "Writes" for cost in section["costs"])
    assert all(size > 0 for size in kept["bytes_each"].values())


def test_processes_that_end_cost_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as short:
        ended = psutil.Process(short.pid)
    assert cpu_seconds([ended]) == 0
    assert cpu_seconds([ended, psutil.Process()]) > 0

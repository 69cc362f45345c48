"""The benchmarks that compare run: their quick forms, whose figures mean nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import hive_server, java_client

pytestmark = pytest.mark.long


def run(name: str, directory: Path, *options: str) -> dict[str, Any]:
    """What it found, by title of the section."""
    command = [sys.executable, "-m", "bench", name, "--quick", "--results", str(directory), *options]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    found = json.loads((directory / f"{name}.json").read_text())
    return {section["title"]: section for section in found["sections"]}


def test_beside_hive(tmp_path: Path) -> None:
    if (reason := java_client.why_not() or hive_server.why_not()) is not None:
        pytest.skip(reason)
    sections = run("hive", tmp_path)
    one = sections["One call at a time"]
    assert one["missed"] == {}
    assert {"get table, hot", "get table, cold", "commit a transaction", "drop 50 partitions"} <= {
        row["operation"] for row in one["compared"]
    }
    assert {row["client"] for row in one["compared"]} == {"raw", "Hive's"}
    assert {row["operation"] for row in sections["Many clients"]["compared"]} >= {"get table, 4 clients"}
    assert sections["The floor"]["compared"]
    assert (tmp_path / "hive.svg").exists()


def test_scale(tmp_path: Path) -> None:
    if (reason := java_client.why_not()) is not None:
        pytest.skip(reason)
    sections = run("scale", tmp_path)
    assert {row["operation"] for row in sections["Large tables"]["compared"]} >= {"24 partitions by filter, hot"}
    assert {row["operation"] for row in sections["Large databases"]["compared"]} >= {"get table"}
    reply, seconds, memory = sections["Long replies"]["figures"]
    assert reply["median"] > 0 and seconds["median"] > 0 and memory["median"] > 0


@pytest.mark.interop
def test_lake(tmp_path: Path) -> None:
    sections = run("lake", tmp_path)
    rows = sections["Ours beside Hudi"]["compared"]
    assert {row["client"] for row in rows} == {"copy-on-write", "merge-on-read"}
    assert {row["operation"] for row in rows} >= {"load", "commit 1,000 rows", "changes of 10 commits", "compact"}
    assert len(sections["An increment in a table ten times as old"]["figures"]) == 4


def test_pipeline(tmp_path: Path) -> None:
    sections = run("pipeline", tmp_path)
    assert len(sections["All of the layers, and an increment"]["figures"]) == 8
    assert len(sections["Beside Spark's own materialised views"]["figures"]) == 8
    assert len(sections["50 expectations"]["figures"]) == 4


def test_only_some(tmp_path: Path) -> None:
    if (reason := java_client.why_not()) is not None:
        pytest.skip(reason)
    sections = run("hive", tmp_path, "--against", "ours", "--only", "^get table, (hot|1 client)")
    assert {row["operation"] for row in sections["One call at a time"]["compared"]} == {"get table, hot"}
    assert [row["operation"] for row in sections["Many clients"]["compared"]] == ["get table, 1 client"]

"""The example runs and tells what it says."""

import subprocess
import sys

import pytest

from tests.spark.session import ROOT
from tests.support.target import Target


@pytest.mark.long
def test_the_example(target: Target) -> None:
    uri = f"thrift://{target.host}:{target.port}"
    command = [sys.executable, "examples/lake_table.py", "--uri", uri]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stderr[-3000:]
    lines = [line.replace(" ", "") for line in result.stdout.splitlines()]
    as_it_is, as_it_was = (lines.index(line) for line in lines if line.startswith("asit"))
    assert "|2026-01-02|36.0|" in lines[as_it_is:as_it_was]
    assert "|2026-01-02|18.0|" in lines[as_it_was:]
    assert sum("|added|" in line for line in lines) == sum("|removed|" in line for line in lines) == 3

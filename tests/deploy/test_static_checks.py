"""What `make lint` checks: style, types, and which room may import which."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def commands_of_lint() -> list[str]:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    return [line.strip() for line in recipe[1].splitlines()]


@pytest.mark.parametrize("command", commands_of_lint())
def test_lint(command: str) -> None:
    command = command.replace("$(PY)", ".venv/bin/python")
    command = command.replace(".venv/bin", str(Path(sys.executable).parent))
    checked = subprocess.run(command.split(), cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr

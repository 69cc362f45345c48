"""The demo works, and leaves nothing behind whether it ends or is stopped."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.spark.session import require

DEMO = Path(__file__).resolve().parents[2] / "demo" / "run.py"


def start(temporary: Path) -> "subprocess.Popen[str]":
    require("4")
    return subprocess.Popen(
        [sys.executable, str(DEMO)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def left_running(temporary: Path) -> list[list[str]]:
    """The command lines of processes that still name the demo's directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        arguments = process.info["cmdline"] or []
        if any(str(temporary) in argument for argument in arguments):
            found.append(arguments)
    return found


@pytest.mark.long  # `make demo` is the same, for people
def test_the_demo_ends_well_and_leaves_nothing(tmp_path: Path) -> None:
    demo = start(tmp_path)
    output, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, output
    assert "Every answer was right." in output
    assert "no row was lost or doubled" in output
    assert "no commit failed" in output
    assert list(tmp_path.iterdir()) == []
    assert left_running(tmp_path) == []


@pytest.mark.long
def test_a_stopped_demo_leaves_nothing(tmp_path: Path) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    seen: list[str] = []
    for line in demo.stdout:
        seen.append(line)
        if "CREATE TABLE" in line:
            break
    else:
        pytest.fail(f"the demo ended before it was stopped:\n{''.join(seen)}")
    time.sleep(0.5)  # somewhere inside a statement
    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=120)
    assert demo.returncode == 130, "".join(seen) + rest
    assert list(tmp_path.iterdir()) == []
    assert left_running(tmp_path) == []

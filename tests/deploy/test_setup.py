"""The set-up script says in one line what is missing, and does nothing when nothing changed."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def set_up(*directories: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the script with `directories` in front of the path."""
    path = os.pathsep.join([*map(str, directories), os.environ["PATH"]])
    inherited = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return subprocess.run(
        [ROOT / "tools/setup.sh"],
        env={**inherited, "PATH": path, **environment},
        capture_output=True,
        text=True,
    )


def command(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def old_java(tmp_path: Path) -> Path:
    command(tmp_path / "bin", "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    return tmp_path / "bin"


def test_a_user_without_java_sees_what_to_install(old_java: Path) -> None:
    command(old_java, "id", "echo 1000")
    done = set_up(old_java)
    assert done.returncode == 1
    assert done.stderr == (
        "setup: a JDK, 17 or newer, is missing; install it with: sudo apt-get install openjdk-17-jdk-headless\n"
    )


def test_root_without_a_network_sees_what_is_missing(old_java: Path) -> None:
    command(old_java, "id", "echo 0")
    command(old_java, "apt-get", "exit 100")
    done = set_up(old_java)
    assert done.returncode == 1
    assert done.stderr == "setup: a JDK, 17 or newer, is missing, and apt-get can't reach Debian's packages\n"


def test_java_home_without_java_is_named(tmp_path: Path) -> None:
    done = set_up(JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        f"setup: JAVA_HOME ({tmp_path}) has no JDK 17 or newer, which Spark and its extension need; set or unset it\n"
    )

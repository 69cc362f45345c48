"""Which Java other systems need, what their exceptions say, and programs that run in a JVM of their own."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def find(at_least: int, below: int) -> Path | None:
    """The `java` of an installed version in this range: the user's own, or one in Debian's place for them."""
    usual = shutil.which("java")
    homes = [Path(os.environ.get("JAVA_HOME", "/nonexistent")), *([Path(usual).resolve().parents[1]] if usual else [])]
    for home in (*homes, *sorted(Path("/usr/lib/jvm").glob("*"))):
        release = home / "release"
        version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.M) if release.exists() else None
        if version is not None and at_least <= int(version[1]) < below and (home / "bin/java").exists():
            return home / "bin/java"
    return None


def jdk(at_least: int, below: int) -> Path | None:
    """As `find`, but only of an installation that has a compiler, too."""
    program = find(at_least, below)
    return program if program is not None and program.with_name("javac").exists() else None


def failure(error: Any) -> str:
    """What a Java exception and its causes say, a line each."""
    lines = []
    while error is not None:
        lines.append(error.toString())
        error = error.getCause()
    return "\n".join(lines)


def compile(program: Path, sources: Path, class_path: Sequence[Path], target: Path) -> None:
    """Puts the classes of all Java files below `sources` into `target`; `program` is the `java` of a JDK."""
    files = sorted(map(str, sources.rglob("*.java")))
    command = [str(program.with_name("javac")), "-d", str(target), "-nowarn", "-proc:none"]
    subprocess.run([*command, "-cp", os.pathsep.join(map(str, class_path)), *files], check=True)


def run(command: Sequence[str], directory: Path, log: Path, *, seconds: float) -> None:
    """Runs a program in `directory` until it ends, whatever its exit code. What it prints goes to `log`.

    Raises `subprocess.TimeoutExpired` after `seconds`; the program is killed.
    """
    with log.open("wb") as output:
        subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=seconds
        )

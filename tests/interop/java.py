"""Which Java other systems need, and what their exceptions say."""

import os
import re
import shutil
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


def failure(error: Any) -> str:
    """What a Java exception and its causes say, a line each."""
    lines = []
    while error is not None:
        lines.append(error.toString())
        error = error.getCause()
    return "\n".join(lines)

"""Releases of PySpark that this environment doesn't have: fetched by pip once, and kept beside Maven's jars."""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.interop import maven

_RUN_FROM = ("bin", "jars", "sbin")
"""What a release has beside its Python package, and an installation has within it."""


class Unavailable(Exception):
    """The release can't be fetched. The message says why."""


def interpreter(version: str, directory: Path) -> Path:
    """A program in `directory` that is this Python with another release of PySpark. Raises Unavailable."""
    home = maven.cache_directory() / f"pyspark-{version}"
    if not home.exists():
        _fetch(version, home)
    program = directory / f"python-{version}"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{home}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def _fetch(version: str, home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        done = subprocess.run([*command, "-d", scratch, f"pyspark=={version}"], capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"PySpark {version}: {done.stderr.strip().splitlines()[-1]}")
        with tarfile.open(Path(scratch) / f"pyspark-{version}.tar.gz") as archive:
            archive.extractall(scratch, filter="tar")
        made = Path(scratch) / f"pyspark-{version}"
        for name in _RUN_FROM:
            (made / "pyspark" / name).symlink_to(Path("..") / "deps" / name)
        made.rename(home)

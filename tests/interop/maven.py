"""Class paths out of Maven's repositories, for the tests against other systems' released jars.

Maven itself resolves and fetches, with the settings its user gave it (mirrors, proxies). Jars stay in a directory of
their own below the user's cache, or below `METASTORE_INTEROP_CACHE`: what was resolved once needs no network again.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

RESOLVE = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
RESOLVE_SECONDS = 550


#: What was resolved in this process, as it was asked for.
asked_for: set[str] = set()


class Unavailable(Exception):
    """The jars can't be had on this machine. The message is one line that says why, and what would help."""


def cache_directory() -> Path:
    """Where jars and resolved class paths stay between runs; made if need be."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lake-metastore" / "interop"
    directory = Path(os.environ.get("METASTORE_INTEROP_CACHE") or usual)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def class_path(coordinates: Sequence[str], *, exclusions: Sequence[str] = ()) -> list[Path]:
    """The jars of `coordinates` and of everything they depend on at run time, in Maven's order.

    Coordinates are `group:artifact:version[:classifier[:type]]`; where two of them bring different versions of a third,
    the one first in the list wins, so a version is forced by naming it. `exclusions` are `group:artifact`, either of
    them may be `*`, and hold for every coordinate.

    Raises `Unavailable` where Java or Maven is missing or Maven can't resolve.
    """
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise Unavailable(f"needs {program} for jars of other systems (Debian: apt-get install {package})")
    pom = _pom(coordinates, exclusions)
    cache = cache_directory()
    resolved = cache / f"{hashlib.sha256(pom.encode()).hexdigest()[:16]}.classpath"
    with _locked(cache):
        if (jars := _read(resolved)) is None:
            _resolve(pom, cache / "repository", resolved)
            jars = _read(resolved)
    assert jars is not None, f"Maven resolved {coordinates} to jars that don't exist"
    asked_for.update(coordinates)
    return jars


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Alone in the cache: Maven's local repository isn't made for two writers."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(resolved: Path) -> list[Path] | None:
    """What was resolved earlier, unless a jar of it is gone."""
    if not resolved.exists():
        return None
    jars = [Path(jar) for jar in resolved.read_text().strip().split(os.pathsep)]
    return jars if all(jar.exists() for jar in jars) else None


def _resolve(pom: str, repository: Path, resolved: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "pom.xml").write_text(pom)
        output = Path(directory) / "classpath"
        command = ["mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={repository}", RESOLVE]
        try:
            run = subprocess.run(
                [*command, f"-Dmdep.outputFile={output}", "-DincludeScope=runtime"],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=RESOLVE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven did not resolve the jars in {RESOLVE_SECONDS} seconds; run it again") from None
        if run.returncode != 0:
            first = next((line for line in run.stdout.splitlines() if "[ERROR] " in line), "it gave no reason")
            raise Unavailable(f"Maven can't resolve the jars: {first.partition('[ERROR] ')[2] or first}"[:400])
        partial = resolved.with_suffix(".partial")
        partial.write_text(output.read_text())
        partial.replace(resolved)


def unpacked(coordinate: str) -> Path:
    """The one directory at the top of a released archive (`…:bin:tar.gz`), unpacked in the cache.

    Raises `Unavailable` as `class_path` does.
    """
    (archive,) = class_path([coordinate], exclusions=["*:*"])
    cache = cache_directory()
    place = cache / archive.name.removesuffix(".tar.gz")
    with _locked(cache):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=cache) as directory:
                content = Path(directory) / "content"
                content.mkdir()
                # tar itself keeps members within the directory; Python does so from 3.11.4 on.
                subprocess.run(["tar", "-xzf", archive, "-C", content], check=True)
                content.rename(place)
    (top,) = place.iterdir()
    return top


def _pom(coordinates: Sequence[str], exclusions: Sequence[str]) -> str:
    excluded = "".join(_element("exclusion", "groupId artifactId", exclusion) for exclusion in exclusions)
    more = f"<exclusions>{excluded}</exclusions>"
    dependencies = "".join(
        _element("dependency", "groupId artifactId version classifier type", coordinate, more)
        for coordinate in coordinates
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>interop</groupId><artifactId>interop</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


def _element(name: str, parts: str, coordinate: str, more: str = "") -> str:
    values = zip(parts.split(), coordinate.split(":"), strict=False)
    return f"<{name}>{''.join(f'<{part}>{escape(value)}</{part}>' for part, value in values)}{more}</{name}>"

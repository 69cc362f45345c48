"""What `pip install .` installs, and that the lock files belong to pyproject.toml."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))

IN_IMAGE = ("s3", "gcs", "azure", "kafka", "jwt", "arrow", "cedar", "mysql", "kubernetes")
"""The extras of the container image."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(lock: Path) -> dict[str, str]:
    """The versions in a lock file, by normalised package name."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def unmet(requirements: list[str], lock: Path) -> list[str]:
    """The requirements that no version in the lock file satisfies."""
    versions = pinned(lock)
    parsed = map(Requirement, requirements)
    return [
        str(requirement)
        for requirement in parsed
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"), prereleases=True)
        or canonicalize_name(requirement.name) not in versions
    ]


def test_lock_files_satisfy_the_project() -> None:
    configuration = project()
    needed = configuration["project"]["dependencies"]
    extras = configuration["project"]["optional-dependencies"]
    assert unmet(needed + configuration["dependency-groups"]["dev"], ROOT / "requirements/dev.lock") == []
    of_image = [each for extra in IN_IMAGE for each in extras[extra]]
    assert unmet(needed + of_image, ROOT / "requirements/image.lock") == []
    assert unmet(extras["kerberos"] + extras["ldap"], ROOT / "requirements/logins.lock") == []
    assert unmet(configuration["build-system"]["requires"], ROOT / "requirements/build.lock") == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_files_pin_by_hash_and_name_no_host(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    unhashed = re.findall(r"^\S+==.*(?<!\\)$", text, re.MULTILINE)
    assert unhashed == []


def test_the_wheel_holds_the_whole_package_and_nothing_else(tmp_path: Path) -> None:
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-build-isolation",
            "--no-deps",
            "--wheel-dir",
            str(tmp_path),
            ".",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packaged = {name for name in names if not name.startswith("lake_metastore-")}
    tracked = subprocess.run(
        ["git", "ls-files", "metastore", "eventbus"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(tracked) <= packaged
    assert {name.split("/")[0] for name in packaged} == {"metastore", "eventbus"}

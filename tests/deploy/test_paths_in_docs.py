"""What the documentation names of the repository is there: files, directories, modules."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TOP = "bench demo deploy docs eventbus examples lake metastore requirements spark_extension tests thrift_idl tools"
PATH = re.compile(rf"(?<![\w./-])(?:{TOP.replace(' ', '|')})/[\w./*-]*[\w*/]")
PYTHON = re.compile(r"(?<![\w./*<>-])(?:\w+/)*\w+\.py\b")
MODULE = re.compile(r"`((?:lake|metastore|eventbus)(?:\.[A-Za-z_]\w*)+)`")
NO_MODULES = {
    "lake.metastore.hive.MovedDatabases",
    "lake.moved.metadata_location",
    "lake.moved.to",
    "lake.moving.to",
    "metastore.events",
    "metastore.limit.partition.request",
    "metastore.partition.name.whitelist.pattern",
    "metastore.service",
    "metastore.stats.fetch.bitvector",
    "metastore.toml",
}
"""A class in Java, parameters of tables and databases, a topic of Kafka, settings of Hive's, files outside of it."""


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> str:
    text: str = request.param.read_text()
    return re.sub(r"\w+://\S+", "", text)


def test_paths(page: str) -> None:
    for path in sorted({*PATH.findall(page), *(path for path in PYTHON.findall(page) if "/" in path)}):
        assert list(ROOT.glob(path)), f"{path} is not there"


def test_names_of_python_files(page: str) -> None:
    for name in sorted({path for path in PYTHON.findall(page) if "/" not in path}):
        assert _somewhere(name), f"no {name} is there"


def test_modules(page: str) -> None:
    for name in sorted({*MODULE.findall(page)} - NO_MODULES):
        place, rest = ROOT, name.split(".")
        while rest and (place / rest[0]).is_dir():
            place /= rest.pop(0)
        if rest and (place / f"{rest[0]}.py").is_file():
            source = place / f"{rest.pop(0)}.py"
        else:
            source = place / "__init__.py"
        if rest:
            assert re.search(rf"\b{rest[0]}\b", source.read_text()), f"{name} is not there"


def _somewhere(name: str) -> bool:
    return any(next((ROOT / top).rglob(name), None) for top in TOP.split())

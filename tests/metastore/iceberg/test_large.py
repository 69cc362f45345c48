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

from metastore.iceberg import files as metadata_files
from metastore.iceberg import routes
from metastore.iceberg.catalog import TABLE
from metastore.iceberg.errors import RestError
from metastore.iceberg.files import LARGE, MetadataFiles
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

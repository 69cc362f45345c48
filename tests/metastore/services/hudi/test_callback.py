"""Hudi's commit callback: a writer tells that it has committed, and the server looks into the table's folder."""

import itertools
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import SnapshotRequest, TableReference
from tests.metastore.services.hudi.recordings import VERSIONS, callbacks, recording
from tests.support import command
from tests.support.server import MetastoreServer

KEY = callbacks(VERSIONS[0])[0]["headers"]["HUDI-CALLBACK-KEY"]
NUMBERS = itertools.count(1)
SURROGATE = b'{"basePath": "\\ud800", "tableName": "t"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A server that takes callbacks."""
    options = ("--http-port", "0", "--workers", "1", "--hudi-callback-key", KEY)
    with MetastoreServer(tmp_path_factory.mktemp("callback") / "data", *options) as running:
        yield running


@pytest.fixture(scope="module")
def http_port(server: MetastoreServer) -> int:
    match = re.search(r"uri=http://127.0.0.1:(\d+)", server.log.read_text())
    assert match is not None
    return int(match[1])


class Writer:
    """A writer of a recorded table that lies somewhere else than it did."""

    def __init__(self, server: MetastoreServer, http_port: int, version: str, directory: Path) -> None:
        self.server, self.http_port, self.directory = server, http_port, directory
        self.recorded = recording(version, "orders")
        self.requests = callbacks(version)
        self.table = TableReference(database=f"hudi_callback_{next(NUMBERS)}", table="orders")

    def post(self, number: int = 0, **headers: str) -> tuple[int, str]:
        """What Hudi posted after one of its commits, with some headers changed."""
        request = self.requests[number]
        body = request["body"].replace("/tmp/hudi-recorded/orders", str(self.directory))
        assert str(self.directory) in body
        return self.send(body.encode(), **{**{"HUDI-CALLBACK-KEY": KEY}, **headers})

    def send(self, body: bytes, path: str = "/hudi/commits", **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://127.0.0.1:{self.http_port}{path}"
        answer = urllib3.request("POST", url, body=body, headers=named, retries=False, timeout=60)
        return answer.status, answer.data.decode().strip()

    def register(self, stage: str) -> None:
        self.recorded.put(stage, self.directory)
        name = f"{self.table.database}.{self.table.table}"
        command.output("hudi", "import", str(self.directory), "--table", name, "--uri", self.server.uri)

    def files(self) -> dict[str, int]:
        with ThriftClient(self.server.host, self.server.port) as client:
            return {each.path: each.size for each in client.lake_get_snapshot(SnapshotRequest(self.table)).files}


@pytest.fixture(params=VERSIONS)
def writer(request: pytest.FixtureRequest, server: MetastoreServer, http_port: int, tmp_path: Path) -> Writer:
    return Writer(server, http_port, request.param, tmp_path / "orders")


@pytest.mark.sampled(2)
def test_what_has_happened_since_comes_with_a_callback(writer: Writer) -> None:
    writer.register("written")
    writer.recorded.put("end", writer.directory)
    status, said = writer.post(-1)
    assert status == 200 and not said.startswith("0 "), said
    assert writer.files() == writer.recorded.read_by_hudi("end")
    status, said = writer.post(-1)
    assert status == 200 and said.startswith("0 instants were new"), said


def test_callbacks_at_the_same_time(writer: Writer) -> None:
    writer.register("written")
    writer.recorded.put("end", writer.directory)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: writer.post(), range(4)))
    assert {status for status, _ in answers} == {200}, answers
    assert writer.files() == writer.recorded.read_by_hudi("end")


def test_a_table_that_nobody_registered_is_not_looked_for(writer: Writer) -> None:
    writer.recorded.put("written", writer.directory)
    status, said = writer.post()
    assert status == 404 and "no table lies at" in said


def test_without_the_key_nothing_is_taken(writer: Writer) -> None:
    writer.recorded.put("written", writer.directory)
    assert writer.post(HUDI_CALLBACK_KEY="wrong")[0] == 401
    assert writer.send(b"{}")[0] == 401
    assert writer.send(b"{}", path="/hudi/other", HUDI_CALLBACK_KEY=KEY)[0] == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"basePath": 1, "tableName": "t"}', b"[" * 100_000, SURROGATE])
def test_other_bodies_are_refused(server: MetastoreServer, http_port: int, tmp_path: Path, body: bytes) -> None:
    status, said = Writer(server, http_port, VERSIONS[0], tmp_path).send(body, HUDI_CALLBACK_KEY=KEY)
    assert (status, said) == (400, "that is no message of Hudi's: it has a basePath and a tableName")


def test_bodies_have_a_length_that_is_bounded(http_port: int) -> None:
    for length, status in (
        ("Content-Length: 99999999999\r\n", b"413"),
        ("Content-Length: much\r\n", b"400"),
        ("", b"411"),
    ):
        with socket.create_connection(("127.0.0.1", http_port)) as connection:
            head = f"POST /hudi/commits HTTP/1.0\r\nHUDI-CALLBACK-KEY: {KEY}\r\n{length}\r\n"
            connection.sendall(head.encode())
            assert connection.recv(100).split()[1] == status


def test_of_several_tables_in_one_place_the_named_one_is_meant(writer: Writer) -> None:
    writer.register("written")
    with ThriftClient(writer.server.host, writer.server.port) as client:
        owner: Any = client.get_table(writer.table.database, writer.table.table)
        client.create_table(owner.replace(tableName="orders_ro"))
        assert writer.post()[0] == 200
        client.drop_table(writer.table.database, writer.table.table, False)
        assert writer.post()[0] == 200  # the only one
        client.create_table(owner.replace(tableName="orders_rt"))
        status, said = writer.post()
    assert status == 409 and "several tables" in said

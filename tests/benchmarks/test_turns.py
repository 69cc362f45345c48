"""How calls are timed."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from bench import java_client, operations
from bench.comparison import RAW
from bench.java_client import Call
from bench.options import Options
from bench.sides import Side
from bench.turns import Turns
from lake.protocol.codec.binary import REPLY, encode, message_header
from lake.protocol.services import METHODS


@contextmanager
def answering(*lengths: int) -> Iterator[int]:
    """The port of a server whose replies have as many names as `lengths` say, one after the other; then the last."""
    left = list(lengths)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while self.request.recv(1 << 16):
                count = left.pop(0) if len(left) > 1 else left[0]
                result: Any = METHODS["get_all_databases"].result()
                result.success = ["a name of some letters"] * count
                self.request.sendall(message_header("get_all_databases", REPLY, 1) + encode(result))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.long
def test_a_long_reply_changes_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (reason := java_client.why_not()) is not None:
        pytest.skip(reason)
    (tmp_path / "classes").mkdir()
    classes = java_client.compiled(tmp_path / "classes")
    # A call that wakes comes before each that is timed. The third reply is longer than the first, and
    # the eighth is shorter than those before. After both the length is asked for again.
    lengths = (10_000, 1, 20_000, 20_000, 1, 20_000, 1, 6_000, 6_000)
    with answering(*lengths) as port, java_client.running(classes, tmp_path / "client") as java:
        raw: Any = java.raw_client("127.0.0.1", port)

        class Found:
            name = "a server"

        side = cast(Side, Found)
        monkeypatch.setattr(Found, "raw", raw, raising=False)
        read = operations.read("names", Call("get_all_databases", []))
        [samples] = Turns(0.1, Options(rounds=3)).samples([(side, read)], RAW)
        raw.close()
    assert len(samples) >= 3

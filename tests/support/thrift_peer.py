"""A Thrift server that answers as a test says: one of another version, or of another kind."""

import socketserver
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TType
from thrift.transport.TTransport import TFileObjectTransport, TTransportException

from lake.protocol.codec import binary
from lake.protocol.services import METHODS

Answer = Callable[[], Any]


class ThriftPeer:
    """Listens on a port of the loopback interface. `answers`: by method, what makes its return value.

    Other methods are unknown, in the words of Thrift's own servers.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                protocol = TBinaryProtocol(TFileObjectTransport(self.rfile))
                while True:
                    try:
                        name, _, sequence = protocol.readMessageBegin()
                    except (TTransportException, EOFError):
                        return
                    protocol.skip(TType.STRUCT)
                    self.wfile.write(_reply(name, sequence, answers.get(name)))

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection)
        self._server.daemon_threads = True
        self.uri = f"thrift://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _reply(name: str, sequence: int, answer: Answer | None) -> bytes:
    if answer is None:
        body = binary.encode_application_exception(
            TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'"
        )
        return binary.message_header(name, binary.EXCEPTION, sequence) + body
    body = binary.encode_result("success", answer(), METHODS[name].result)
    return binary.message_header(name, binary.REPLY, sequence) + body

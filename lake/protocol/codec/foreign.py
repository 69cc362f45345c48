"""Detects TLS, HTTP and SASL by their first bytes, and refuses them in their own protocol where they aren't taken.

If the server only closed the connection, such a client would retry, and its user would suspect the network.
"""

import re
from typing import Literal

from lake.protocol.codec.scanner import Rejected

Kind = Literal["tls", "http", "sasl"]
"""What may carry Thrift."""

PLAIN_THRIFT = "this port speaks plain Thrift: the binary or compact protocol, framed or not"

_HTTP_METHODS = (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"TRACE", b"PRI")
_HTTP = re.compile(rb"(%s) " % b"|".join(_HTTP_METHODS))
_TLS_HANDSHAKE, _TLS_MAJOR = 0x16, 0x03
_TLS_ALERT = bytes((0x15, 3, 1, 0, 2, 2, 40))  # a record of an alert: fatal, handshake_failure
_SASL_STATES = (1, 2)  # START and OK of Thrift's negotiation
_SASL_BAD = 3
_MECHANISM = re.compile(rb"[A-Z]")
_THRIFT_IN_A_FRAME = (0x80, 0x82, 0x00)  # the first byte of a message whose frame has a length like SASL's first bytes

_TLS_ADVICE = "switch TLS off in the client (Hive, Spark: hive.metastore.use.SSL=false) or on in the server"
_HTTP_ADVICE = (
    "set the client's transport to binary (Hive, Spark: hive.metastore.client.thrift.transport.mode=binary) and its "
    "address to thrift://host:port; /metrics, /health and /ready are on the server's http_port"
)
_SASL_ADVICE = (
    "switch SASL and Kerberos off in the client (Hive, Spark: hive.metastore.sasl.enabled=false, "
    "hive.metastore.client.auth.mode=NOSASL; Trino: hive.metastore.authentication.type=NONE)"
)


class Foreign(Rejected):
    """A detected protocol. `answer`: an error message in that protocol, if it has one."""

    def __init__(self, reason: str, detail: str, answer: bytes) -> None:
        super().__init__(reason, detail)
        self.answer = answer


def kind_of(data: bytes | bytearray) -> Kind | None:
    """What a connection speaks that began with these bytes; None for anything else, or too few bytes to tell."""
    if data[:1] == bytes((_TLS_HANDSHAKE,)) and data[1:2] == bytes((_TLS_MAJOR,)):
        return "tls"
    if _HTTP.match(data):
        return "http"
    if len(data) < 5 or data[0] not in _SASL_STATES or data[1:4] != b"\0\0\0" or data[4] in _THRIFT_IN_A_FRAME:
        return None
    return "sasl" if len(data) == 5 or _MECHANISM.match(data, 5) else None


def recognised(data: bytes | bytearray, protocols: str = PLAIN_THRIFT) -> Foreign | None:
    """The refusal of what a connection speaks that began with these bytes, if it is a kind.

    `protocols` says which this port takes.
    """
    match kind_of(data):
        case "tls":
            return Foreign("tls", f"the client speaks TLS; {protocols}: {_TLS_ADVICE}", _TLS_ALERT)
        case "http":
            detail = f"the client speaks HTTP; {protocols}: {_HTTP_ADVICE}"
            return Foreign("http", detail, _http_answer(bytes(data).partition(b" ")[0], detail))
        case "sasl":
            detail = f"the client begins with SASL; {protocols}: {_SASL_ADVICE}"
            text = detail.encode()
            return Foreign("sasl", detail, bytes((_SASL_BAD,)) + len(text).to_bytes(4) + text)
    return None


def may_become(data: bytes | bytearray) -> bool:
    """Whether more bytes could make one of the kinds of what isn't yet."""
    if len(data) == 1 and data[0] == _TLS_HANDSHAKE:
        return True
    if len(data) < 5 and data[0] in _SASL_STATES and b"\0\0\0".startswith(data[1:4]):
        return True
    return any(b"%s " % method != data and (b"%s " % method).startswith(data) for method in _HTTP_METHODS)


def _http_answer(method: bytes, detail: str) -> bytes:
    """Thrift over HTTP is POST: that is what isn't implemented."""
    status = "501 Not Implemented" if method == b"POST" else "400 Bad Request"
    body = f"{detail}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == b"HEAD" else body)

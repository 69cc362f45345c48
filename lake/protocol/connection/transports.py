"""Thrift's transports for clients that encrypt and log in: TLS, frames of SASL, requests of HTTP."""

import http.client
import logging
import socket
import ssl

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportBase, TTransportException

from lake.protocol.connection.login import Login, LoginRefused, SaslMechanism
from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.messages import Status
from lake.protocol.sasl.protection import BadMessage, Protection

# It logs what it raises anyway.
logging.getLogger(TSocket.__module__).setLevel(logging.CRITICAL)

_MAX_NEGOTIATION = 1 << 20
_MAX_TEXT = 4_096
_MAX_PROTECTED = 16 << 20


class TlsSocket(TSocket):  # type: ignore[misc]
    """A socket within TLS."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port)
        self._context = context

    def open(self) -> None:
        super().open()
        plain: socket.socket = self.handle  # type: ignore[has-type]
        # The server says nothing to the last word of the handshake: what follows would wait for an acknowledgement.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.handle = self._context.wrap_socket(plain, server_hostname=self.host)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise _untrusted(f"{self.host}:{self.port}", error) from None
        except OSError as error:
            self.close()
            raise TTransportException(
                TTransportException.NOT_OPEN, f"{self.host}:{self.port} doesn't speak TLS: {error}", inner=error
            ) from None

    def read(self, size: int) -> bytes:
        """Raises LoginRefused if the server ends TLS with an alert: it tells so only when the client reads."""
        try:
            return super().read(size)  # type: ignore[no-any-return]
        except TTransportException as error:
            reason = getattr(error.inner, "reason", None) or ""
            if isinstance(error.inner, ssl.SSLError) and "ALERT" in reason:
                raise LoginRefused(f"{self.host}:{self.port} refuses the encrypted connection: {reason}") from None
            raise


class SaslTransport(TTransportBase):  # type: ignore[misc]
    """Negotiates when it is opened, and then puts each flush into a frame."""

    def __init__(self, below: TSocket, mechanism: SaslMechanism) -> None:
        self._below = below
        self._mechanism = mechanism
        self._left = 0  # bytes of the frame that is being read
        self._unwrapped = memoryview(b"")  # what is left of the last frame, if frames are protected
        self._unsent = bytearray()

    @property
    def handle(self) -> socket.socket | None:
        """The socket, as TSocket has it; None while the transport isn't open."""
        found: socket.socket | None = self._below.handle
        return found

    def setTimeout(self, milliseconds: float | None) -> None:
        self._below.setTimeout(milliseconds)

    def isOpen(self) -> bool:
        return bool(self._below.isOpen())

    def open(self) -> None:
        """Raises LoginRefused, TTransportException."""
        self._below.open()
        try:
            self._negotiate()
        except BaseException:
            self._below.close()
            raise

    def _negotiate(self) -> None:
        name = self._mechanism.name
        # Together: the second of two small packets waits for the first one's acknowledgement.
        first = sasl.message(Status.START, name.encode()) + sasl.message(Status.OK, self._mechanism.respond(b""))
        self._below.write(first)
        while True:
            answer = self._message()
            if answer.status in (Status.BAD, Status.ERROR):
                text = answer.payload[:_MAX_TEXT].decode(errors="replace")
                raise LoginRefused(f"the server refuses the login by {name}: {text}")
            if answer.status is Status.COMPLETE:
                self._mechanism.finish(answer.payload)
                return
            self._below.write(sasl.message(Status.OK, self._mechanism.respond(answer.payload)))

    def _message(self) -> sasl.Message:
        header = bytearray(self._below.readAll(sasl.HEADER_BYTES))
        length = int.from_bytes(header[1:])
        if header[0] not in Status.__members__.values() or length > _MAX_NEGOTIATION:
            raise TTransportException(TTransportException.NOT_OPEN, "the server doesn't speak SASL")
        return sasl.Message(Status(header[0]), self._below.readAll(length) if length else b"")

    def read(self, size: int) -> bytes:
        if self._mechanism.protection is not None:
            return self._read_protected(self._mechanism.protection, size)
        while not self._left:
            self._left = int.from_bytes(self._below.readAll(sasl.FRAME_HEADER_BYTES))
        data: bytes = self._below.read(min(size, self._left))
        self._left -= len(data)
        return data

    def write(self, data: bytes) -> None:
        self._unsent += data

    def _read_protected(self, protection: Protection, size: int) -> bytes:
        while not self._unwrapped:
            length = int.from_bytes(self._below.readAll(sasl.FRAME_HEADER_BYTES))
            if length > _MAX_PROTECTED:
                raise TTransportException(TTransportException.SIZE_LIMIT, f"the server sends a frame of {length} bytes")
            try:
                self._unwrapped = memoryview(protection.unwrap(self._below.readAll(length)))
            except BadMessage as error:
                text = f"a protected message can't be read: {error}"
                raise TTransportException(TTransportException.UNKNOWN, text) from None
        data, self._unwrapped = bytes(self._unwrapped[:size]), self._unwrapped[size:]
        return data

    def flush(self) -> None:
        unsent, self._unsent = memoryview(self._unsent), bytearray()
        protection = self._mechanism.protection
        if protection is None:
            self._write_frame(bytes(unsent))
        else:
            size = protection.max_bytes
            try:
                for at in range(0, len(unsent), size):
                    self._write_frame(protection.wrap(unsent[at : at + size]))
            except BadMessage as error:
                text = f"a message can't be protected: {error}"
                raise TTransportException(TTransportException.UNKNOWN, text) from None
        self._below.flush()

    def _write_frame(self, payload: bytes) -> None:
        self._below.write(len(payload).to_bytes(sasl.FRAME_HEADER_BYTES) + payload)

    def close(self) -> None:
        self._left = 0
        self._unwrapped = memoryview(b"")
        self._below.close()


class HttpTransport(TTransportBase):  # type: ignore[misc]
    """Sends each flush as a request, over one connection."""

    def __init__(self, host: str, port: int, token: str, context: ssl.SSLContext | None) -> None:
        self._where = f"{host}:{port}"
        if context is None:
            self._http = http.client.HTTPConnection(host, port)
        else:
            self._http = http.client.HTTPSConnection(host, port, context=context)
        self._headers = {"Content-Type": "application/x-thrift", "Authorization": f"Bearer {token}"}
        self._response: http.client.HTTPResponse | None = None
        self._unsent = bytearray()

    def setTimeout(self, milliseconds: float | None) -> None:
        seconds = None if milliseconds is None else milliseconds / 1000
        self._http.timeout = seconds
        connected: socket.socket | None = self._http.sock
        if connected is not None:
            connected.settimeout(seconds)

    def isOpen(self) -> bool:
        return self._http.sock is not None

    def open(self) -> None:
        """Raises LoginRefused, TTransportException."""
        try:
            self._http.connect()
        except ssl.SSLCertVerificationError as error:
            raise _untrusted(self._where, error) from None
        except OSError as error:
            raise TTransportException(
                TTransportException.NOT_OPEN, f"can't connect to {self._where}: {error}", inner=error
            ) from None

    def read(self, size: int) -> bytes:
        if self._response is None:
            raise TTransportException(TTransportException.NOT_OPEN, "there is no answer to be read")
        try:
            data = self._response.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None
        if not data:
            raise TTransportException(TTransportException.END_OF_FILE, "the answer has ended")
        return data

    def write(self, data: bytes) -> None:
        self._unsent += data

    def flush(self) -> None:
        """Raises LoginRefused, TTransportException."""
        body, self._unsent = bytes(self._unsent), bytearray()
        try:
            if self._response is not None:
                self._response.read()
            self._http.request("POST", "/metastore", body, self._headers)
            self._response = self._http.getresponse()
            if self._response.status == http.client.OK:
                return
            status, text = self._response.status, self._response.read(_MAX_TEXT).decode(errors="replace").strip()
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from None
        if status == http.client.SERVICE_UNAVAILABLE:
            raise TTransportException(TTransportException.NOT_OPEN, f"{self._where}: {text}")
        raise LoginRefused(f"{self._where} answers {status}: {text}")

    def close(self) -> None:
        self._response = None
        self._http.close()


def transport(host: str, port: int, login: Login) -> TTransportBase:
    """A transport for a login, not opened yet. Raises BadLogin, LoginRefused."""
    if login.over_http:
        return HttpTransport(host, port, login.token or "", login.tls)
    below = TSocket(host, port) if login.tls is None else TlsSocket(host, port, login.tls)
    mechanism = login.sasl(host)
    return below if mechanism is None else SaslTransport(below, mechanism)


def _untrusted(where: str, error: ssl.SSLCertVerificationError) -> LoginRefused:
    return LoginRefused(f"the certificate of {where} isn't trusted: {error.verify_message}")


def _broken(error: Exception) -> TTransportException:
    kind = TTransportException.TIMED_OUT if isinstance(error, TimeoutError) else TTransportException.UNKNOWN
    return TTransportException(kind, f"the connection broke: {error}", inner=error)

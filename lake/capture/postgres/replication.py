"""A stream of Postgres's replication protocol, of which only what is asked for is acknowledged.

The source of all rules is "Streaming Replication Protocol" in Postgres's documentation.

psycopg2 opens the connection, but its replication cursor doesn't read it, because that acknowledges by itself. It takes
the end of the server's log as acknowledged once the position of the message that was read last is. But messages come in
the order of commits: those of a transaction that began long ago have earlier positions than what is acknowledged
already. So it acknowledges transactions before them that were read and aren't written yet. Here the messages are read
by libpq, the one that psycopg2 brings.
"""

import ctypes
import select
import time
from struct import Struct
from typing import Any, Final

import psycopg2
from psycopg2 import _psycopg, errors
from psycopg2.extensions import connection

_STATUS_SECONDS = 1.0
"""How often the source hears what is acknowledged: it ends streams that say nothing for `wal_sender_timeout`."""

_DATA, _KEEPALIVE = ord("w"), ord("k")
_DATA_HEADER: Final = 25  # kind, start, end, time
_KEEPALIVE_MESSAGE: Final = Struct("!xqqB")  # end of the log, time, whether a reply is asked for
_STATUS: Final = Struct("!cqqqqB")  # written, flushed, applied, time, whether a reply is asked for
_POSTGRES_EPOCH = 946_684_800
"""2000-01-01 in seconds since 1970, what Postgres counts from."""

_SQLSTATE = ord("C")  # a field of an error's report


class Stream:
    """The messages of a connection on which replication has started. Not thread-safe."""

    def __init__(self, replicating: connection) -> None:
        self._connection = replicating
        self._libpq = _load()
        self._pointer = replicating.pgconn_ptr
        self._acknowledged = 0
        self._reported = 0.0
        self.end_lsn = 0
        """How far the source has come in its log: `read` has given all that was committed before."""
        self.is_asked = False
        """The source has asked for a reply, and got one. It does so when it shuts down. Callers set it to False."""

    def read(self) -> bytes | None:
        """The next message of the output plugin; None if nothing has come.

        Raises psycopg2.Error if the stream has ended, of the class for the source's reason; InterfaceError if its
        connection was closed.
        """
        if time.monotonic() - self._reported >= _STATUS_SECONDS:
            self._report()
        while (data := self._next()) is not None:
            if data[0] == _DATA:
                return data[_DATA_HEADER:]
            if data[0] == _KEEPALIVE:
                self.end_lsn, _, asks = _KEEPALIVE_MESSAGE.unpack(data)
                if asks:
                    self.is_asked = True
                    self._report()
        return None

    def wait(self, seconds: float) -> None:
        """Waits until something may have come."""
        select.select([self._connection], [], [], seconds)

    def acknowledge(self, lsn: int) -> None:
        """Lets the source forget what was committed before a position. Raises psycopg2.OperationalError."""
        self._acknowledged = max(self._acknowledged, lsn)
        self._report()

    def _next(self) -> bytes | None:
        """The next message of the protocol that has come."""
        if self._connection.closed:
            raise psycopg2.InterfaceError("the stream's connection is closed")
        buffer = ctypes.c_void_p()
        length = self._libpq.PQgetCopyData(self._pointer, ctypes.byref(buffer), 1)
        if length == 0:
            if not self._libpq.PQconsumeInput(self._pointer):
                raise self._lost()
            length = self._libpq.PQgetCopyData(self._pointer, ctypes.byref(buffer), 1)
        if length > 0:
            try:
                return ctypes.string_at(buffer, length)
            finally:
                self._libpq.PQfreemem(buffer)
        if length == 0:
            return None
        raise self._ended() if length == -1 else self._lost()

    def _report(self) -> None:
        """Says what is acknowledged."""
        if self._connection.closed:
            raise psycopg2.InterfaceError("the stream's connection is closed")
        since = int((time.time() - _POSTGRES_EPOCH) * 1e6)
        status = _STATUS.pack(b"r", self._acknowledged, self._acknowledged, self._acknowledged, since, 0)
        if self._libpq.PQputCopyData(self._pointer, status, len(status)) <= 0 or self._libpq.PQflush(self._pointer):
            raise self._lost()
        self._reported = time.monotonic()

    def _lost(self) -> psycopg2.Error:
        """The error of a connection that is lost."""
        return psycopg2.OperationalError(self._libpq.PQerrorMessage(self._pointer).decode(errors="replace"))

    def _ended(self) -> psycopg2.Error:
        """The error for which the source has ended the stream."""
        result = self._libpq.PQgetResult(self._pointer)
        try:
            message = self._libpq.PQresultErrorMessage(result).decode(errors="replace")
            code = self._libpq.PQresultErrorField(result, _SQLSTATE)
        finally:
            self._libpq.PQclear(result)
        try:
            kind = errors.lookup((code or b"").decode())
        except KeyError:
            kind = psycopg2.OperationalError
        return kind(message or "the source has ended the stream")


def _load() -> Any:
    """The libpq that psycopg2 uses: what is of one is of no use to another."""
    libpq = ctypes.CDLL(_psycopg.__file__)
    for name, result, arguments in _FUNCTIONS:
        function = getattr(libpq, name)
        function.restype, function.argtypes = result, arguments
    return libpq


_FUNCTIONS: Final = (
    ("PQgetCopyData", ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int)),
    ("PQconsumeInput", ctypes.c_int, (ctypes.c_void_p,)),
    ("PQputCopyData", ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)),
    ("PQflush", ctypes.c_int, (ctypes.c_void_p,)),
    ("PQfreemem", None, (ctypes.c_void_p,)),
    ("PQerrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("PQgetResult", ctypes.c_void_p, (ctypes.c_void_p,)),
    ("PQresultErrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("PQresultErrorField", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int)),
    ("PQclear", None, (ctypes.c_void_p,)),
)

"""Heartbeats of an instant, so that the server aborts it, or has its plan run by others, if its writer dies."""

import logging
import threading
from types import TracebackType
from typing import Self

from thrift.Thrift import TException

from metastore.client.lake_types import Instant
from metastore.client.reconnecting import Connect, ReconnectingClient
from metastore.wire.hive import InvalidOperationException, NoSuchObjectException
from metastore.wire.lake import TableReference
from metastore.wire.struct import ExceptionStruct

logger = logging.getLogger(__name__)

_HEARD_SECONDS = 5.0


class Heartbeats:
    """Sends them from a thread and a connection of its own, from entering until leaving."""

    def __init__(self, connect: Connect, table: TableReference, instant: Instant, seconds: float) -> None:
        """`seconds`: the time between two of them."""
        self._client = ReconnectingClient(connect, retry_seconds=seconds)
        self._table = table
        self._instant = instant
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeats-{instant.timestamp}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _run(self) -> None:
        timestamp, action, attempt = self._instant.timestamp, self._instant.action, self._instant.running
        while not self._ended.wait(self._seconds):
            try:
                self._client.call(lambda client: client.lake_heartbeat_instant(self._table, timestamp, action, attempt))
            except (NoSuchObjectException, InvalidOperationException) as error:
                # It may have been completed while the heartbeat waited: the writer hears of that at the same time.
                if not self._ended.wait(_HEARD_SECONDS):
                    logger.warning("the instant %s %s is no more: %s", timestamp, action, error.message)
                break
            except (ExceptionStruct, TException, OSError) as error:
                logger.warning("no heartbeat of the instant %s %s was heard: %s", timestamp, action, error)
        self._client.close()

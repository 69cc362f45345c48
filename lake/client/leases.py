"""Readers' leases: as long as one is renewed, no clean deletes files of the snapshot that it is on."""

import logging
import threading
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from thrift.Thrift import TException

from lake.client.reconnecting import Connect, ReconnectingClient
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import LeaseRequest, ReaderLease, SnapshotGone, TableReference, TableReplaced
from lake.protocol.struct import ExceptionStruct

Value = TypeVar("Value")

logger = logging.getLogger(__name__)


class Call(Protocol):
    """Makes a call of the server's, as `LakeClient.call` does."""

    def __call__(self, request: Callable[[ThriftClient], Value], /) -> Value: ...


class Lease:
    """Takes a lease when it is entered, renews it by a thread and a connection of its own, releases it at the end.

    Raises, when it is entered, NoSuchObjectException, InvalidOperationException, SnapshotGone.
    """

    def __init__(
        self,
        call: Call,
        connect: Connect,
        table: TableReference,
        position: int | None,
        seconds: float,
        holder: str | None,
        *,
        onwards: bool = False,
    ) -> None:
        """`call`: by which it is taken and released. `position`: of the snapshot; None for the latest.

        `seconds`: how long it holds after its reader has died. `onwards`: it is on all later snapshots, too.
        """
        self._call = call
        self._client = ReconnectingClient(connect, retry_seconds=seconds)
        self._seconds = seconds
        request = LeaseRequest(table, uuid.uuid4().hex, position, max(1, round(seconds)), holder, onwards or None)
        self._request = request
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{self._request.id}", daemon=True)
        self.position = position or 0

    def __enter__(self) -> Self:
        lease: ReaderLease = self._call(lambda client: client.lake_lease_snapshot(self._request))
        self.position = lease.position or 0
        self._request = self._request.replace(position=lease.position)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        try:
            self._call(lambda client: client.lake_release_lease(self._request.table, self._request.id))
        except (ExceptionStruct, TException, OSError) as error:
            logger.warning("a lease could not be released, it expires: %s", error)

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                self._client.call(lambda client: client.lake_lease_snapshot(self._request))
            except (SnapshotGone, TableReplaced) as gone:
                logger.warning("a lease was lost, and its snapshot is gone: %s", gone.message)
                break
            except (ExceptionStruct, TException, OSError) as error:
                logger.warning("a lease could not be renewed: %s", error)
        self._client.close()

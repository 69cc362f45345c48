"""Leases of readers who don't say when they are done, such as the queries of a Spark session: one for each table.

A lease is on the oldest position that was read not too long ago, and on all later ones. So a session that reads a table
again and again makes one call for all of its reads.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from thrift.Thrift import TException

from lake.client.reconnecting import Connect, ReconnectingClient
from lake.protocol.connection.closing import Closing
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import LeaseRequest, SnapshotGone, TableReference, TableReplaced
from lake.protocol.struct import ExceptionStruct
from lake.tables.lake import LakeTable

LEASE_SECONDS = 300
"""How long a lease holds after its process has died."""

_STEPS = 72
"""Reads are remembered by so many steps of the time for which they are kept, the oldest position of each."""

logger = logging.getLogger(__name__)


@dataclass
class _HeldLease:
    """A lease that is held. `onwards`: as of LeaseRequest. `reads`: the oldest position read, by step of time."""

    table: TableReference
    position: int
    onwards: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    reads: dict[int, int] = field(default_factory=dict)


class SessionLeases(Closing):
    """The leases of a session. May be used from several threads.

    A thread renews them until `is_over` says that the session has ended, or until they are released.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        holder: str,
        kept_seconds: float,
        lease_seconds: int = LEASE_SECONDS,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`holder`: who reads, for people. `kept_seconds`: how long a position is kept after it was last read; may be
        infinite."""
        self._client = ReconnectingClient(connect, retry_seconds=lease_seconds / 3)
        self._holder = holder
        self._kept_seconds = kept_seconds
        self._lease_seconds = lease_seconds
        self._is_over = is_over
        self._held: dict[tuple[int | str, int | None], _HeldLease] = {}  # by table, as of `_table`
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, lake: LakeTable, position: int, *, changes: bool = False) -> None:
        """Keeps cleans off the snapshot at a position, and off all later ones. Mostly makes no call.

        Where earlier cleans left the snapshot alone, but not all later ones (because of a savepoint, say), it keeps
        that one. With `changes`, that isn't enough, and a changelog may have what is needed: then it keeps nothing, and
        the read itself finds out what is gone. Raises SnapshotGone, NoSuchObjectException.
        """
        with self._lock:
            try:
                self._keep(lake, position, onwards=True)
            except SnapshotGone:
                if not changes:
                    self._keep(lake, position, onwards=False)

    def release(self) -> None:
        """Ends all leases."""
        with self._lock:
            for held in list(self._held.values()):
                self._release(held)

    def close(self) -> None:
        """Ends all leases, and their renewal."""
        self._ended.set()
        self.release()
        self._client.close()

    def _keep(self, lake: LakeTable, position: int, *, onwards: bool) -> None:
        key = _table(lake), None if onwards else position
        held = self._held.get(key) or _HeldLease(lake.reference, position, onwards)
        held.table = lake.reference  # it may have been renamed since
        if key not in self._held or position < held.position:
            self._take(held, position)
            self._held[key] = held
            self._start()
        step = self._step()
        held.reads[step] = min(position, held.reads.get(step, position))

    def _take(self, held: _HeldLease, position: int) -> None:
        request = LeaseRequest(held.table, held.id, position, self._lease_seconds, self._holder, held.onwards)
        self._client.call(lambda client: client.lake_lease_snapshot(request))
        held.position = position

    def _release(self, held: _HeldLease) -> None:
        self._forget(held)
        try:
            self._client.call(lambda client: client.lake_release_lease(held.table, held.id))
        except (ExceptionStruct, TException, OSError) as error:
            logger.warning("a lease could not be released, it expires: %s", error)

    def _forget(self, held: _HeldLease) -> None:
        self._held = {key: each for key, each in self._held.items() if each is not held}

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew_all, name="readers' leases", daemon=True)
            self._thread.start()

    def _renew_all(self) -> None:
        while not self._ended.wait(self._lease_seconds / 3):
            if self._is_over():
                self.close()
                return
            with self._lock:
                for held in list(self._held.values()):
                    self._renew(held)

    def _renew(self, held: _HeldLease) -> None:
        """Renews a lease, on the oldest position that is still wanted; releases it if none is."""
        oldest = self._step() - _STEPS
        held.reads = {step: position for step, position in held.reads.items() if step >= oldest}
        if not held.reads:
            self._release(held)
            return
        try:
            self._take(held, min(held.reads.values()))
        except (SnapshotGone, NoSuchObjectException, TableReplaced) as gone:
            logger.warning("a lease was lost, and its snapshot is gone: %s", gone.message)
            self._forget(held)
        except (ExceptionStruct, TException, OSError) as error:
            logger.warning("a lease could not be renewed: %s", error)

    def _step(self) -> int:
        return int(time.monotonic() / self._kept_seconds * _STEPS)


def _table(lake: LakeTable) -> int | str:
    """Which table it is: its id; its name with servers that don't tell the id yet."""
    return lake.full_name if lake.id is None else lake.id

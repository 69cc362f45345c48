"""The table management service: an event receiver and a job manager, which may be killed at any time.

All that lasts is in the metastore. Any number of services may run on one.
"""

import os
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from thrift.Thrift import TException

from lake.maintenance.executors.base import ArrowExecutor, Executor
from lake.maintenance.executors.hudi import HudiExecutor
from lake.maintenance.executors.iceberg import IcebergExecutor
from lake.maintenance.manager import Manager, Order
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.maintenance.receiver import Receiver
from lake.maintenance.scheduling import NO_QUOTAS, Quotas, Ranking
from lake.maintenance.writer_hook import WriterHook
from lake.protocol.lake import ServiceJob
from lake.tables.lake import LakeClient

RETRY_SECONDS = 60.0
"""How long a call is repeated that gets no answer; then whoever made it tries anew."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a service runs. `defaults`: of policies, by property."""

    slots: int = 2
    ranking: Ranking = "fifo"
    quotas: Quotas = NO_QUOTAS
    defaults: Mapping[str, str] = field(default_factory=dict)
    lease_seconds: int = 60
    order: Order | None = None


class Service:
    """One service. `serve` and `run_once` return after `stop`."""

    def __init__(
        self,
        uri: str,
        executor: Executor | None,
        options: Options,
        *,
        iceberg: IcebergExecutor | None = None,
        hudi: HudiExecutor | None = None,
        ended: Callable[[ServiceJob], None] = lambda job: None,
    ) -> None:
        """`executor`: by default compactions in Arrow. `iceberg`, `hudi`: without it, its tables are left alone.
        `ended`: is told how each attempt at a job ended.

        Raises BadPolicy for defaults that mean nothing.
        """
        self._uri = uri
        self._client = LakeClient(uri, retry_seconds=RETRY_SECONDS)
        self._looking = LakeClient(uri, retry_seconds=RETRY_SECONDS)
        worker = f"{socket.gethostname()[:100]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._queue = Queue(self._client, worker, lease_seconds=options.lease_seconds)
        looked = Queue(self._looking, worker, lease_seconds=options.lease_seconds)
        self._executor = executor or ArrowExecutor(self._client)
        self._stop = threading.Event()
        planner = Planner(looked, options.defaults, with_iceberg=iceberg is not None, with_hudi=hudi is not None)
        self._receiver = Receiver(uri, planner, looked, self._stop)
        # A client and a planner of its own: these are for one thread each.
        self._hooked = LakeClient(uri, retry_seconds=RETRY_SECONDS)
        hooked = Queue(self._hooked, worker, lease_seconds=options.lease_seconds)
        self._hook = WriterHook(hooked.submit, Planner(hooked, options.defaults).policy, self._stop)
        self._manager = Manager(
            self._queue,
            self._client,
            self._executor,
            options.defaults,
            slots=options.slots,
            ranking=options.ranking,
            quotas=options.quotas,
            order=options.order,
            iceberg=iceberg,
            hudi=hudi,
            ended=ended,
        )

    def serve(self) -> None:
        """Receives events and runs jobs until `stop`; then jobs that run are stopped, and wait to be run again."""
        receiving = threading.Thread(target=self._receiver.run, name="receiver", daemon=True)
        receiving.start()
        self._manager.run(self._stop)
        receiving.join(RETRY_SECONDS)
        self._close()

    def run_once(self) -> None:
        """Looks at all tables that are due, and runs jobs until none is due any more."""
        idle = 0
        while idle < 2 and not self._stop.is_set():  # twice: what ended after the first look may have made tables due
            self._receiver.sweep()
            if self._manager.step():
                idle = 0
                self._manager.wait(0.5)
            else:
                idle += 1
        self._manager.stop()
        self._close()

    def stop(self) -> None:
        """Ends the service in order. May be called by a signal's handler."""
        self._stop.set()

    def accept(self, target: str) -> None:
        """Takes over what a Hudi writer asks for, as of WriterHook. Raises ValueError."""
        self._hook.accept(target)

    def trouble(self) -> str | None:
        """Why the service can't do its work now; None if it can."""
        if self._stop.is_set():
            return "the service is stopping"
        try:
            with self._client.connect() as client:
                client.getStatus()
        except (OSError, TException) as error:
            return f"the metastore at {self._uri} doesn't answer: {error}"
        return None

    def _close(self) -> None:
        self._executor.close()
        self._client.close()
        self._looking.close()
        self._hooked.close()

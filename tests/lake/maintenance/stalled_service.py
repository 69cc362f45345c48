"""A service that stalls at a point of its work, says so, and waits to be killed.

python -m tests.lake.maintenance.stalled_service URI before|planned|during|completed|finished [LEASE_SECONDS]
"""

import sys
import threading
import time
from typing import NoReturn

from lake.client.lake_types import DataFile
from lake.maintenance.attempts import Attempt
from lake.maintenance.executors.base import ArrowExecutor, Task
from lake.maintenance.queue import Queue
from lake.maintenance.service import Options, Service
from lake.protocol.lake import ServiceJob
from lake.tables.compaction import Work, compacted, run_compaction
from lake.tables.lake import LakeClient

STALLED = "stalled"


def stall() -> NoReturn:
    print(STALLED, flush=True)
    while True:
        time.sleep(60)


class Stalling(ArrowExecutor):
    """Stalls before, during or after the run of a plan."""

    def __init__(self, client: LakeClient, point: str) -> None:
        super().__init__(client)
        self._lake = client
        self._point = point

    def run(self, task: Task, stop: threading.Event) -> str:
        def one_by_one(work: Work) -> list[DataFile]:
            written = compacted(work.writer, work.tasks[0])
            if self._point == "during":
                stall()
            return [*written, *(file for each in work.tasks[1:] for file in compacted(work.writer, each))]

        if self._point == "planned":
            stall()
        # As short as the server's own time: else it would take the plan back from one that lives.
        run_compaction(self._lake.table(task.table), task.instant, run_tasks=one_by_one, heartbeat_seconds=0.5)
        stall()


def main(uri: str, point: str, lease_seconds: str = "2") -> None:
    if point == "before":
        Queue.claim_plan = lambda self, job, instant: stall()  # type: ignore[assignment, method-assign, misc]
    if point == "finished":

        def forget(self: Attempt, *_: object) -> ServiceJob | None:
            stall()

        Attempt._finished = forget  # type: ignore[method-assign, assignment]
    with LakeClient(uri) as client:
        Service(uri, Stalling(client, point), Options(lease_seconds=int(lease_seconds))).run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs plans on a cluster that outlives this process: one run there for each attempt, found again by its tag.

The answer to a submission may get lost, this service may be killed, and a job's lease may expire, while the run goes
on. So before an attempt submits anything, it asks the cluster for runs of earlier attempts at the plan, and waits for
their end. Where two attempts submit at once all the same, the timeline lets one of them take the plan up.
"""

import hashlib
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import structlog

from lake.maintenance.decisions.decisions import CLUSTERING, COMPACTION
from lake.maintenance.executors.base import Stopped, Task

LOOK_SECONDS = 1.0
"""How often the cluster is asked for the state of a run."""

STOP_SECONDS = 40.0
"""How long a run may take to end that was stopped."""

log = structlog.get_logger(__name__)


class Unreachable(Exception):
    """The cluster gave no answer, or no good one; the message says which."""


class RunFailed(Exception):
    """A run couldn't be submitted, or ended otherwise than in order; the message has its log."""


class Ending(NamedTuple):
    """How a run ended. `log` is for people."""

    succeeded: bool
    log: str


class Cluster(Protocol):
    """What an executor needs of a cluster. A run has an id of the cluster's. All calls raise Unreachable."""

    def runs(self, task: Task) -> list[str]:
        """The runs of all attempts at the task's plan that haven't ended."""

    def submit(self, task: Task, arguments: Sequence[str], stop: threading.Event) -> str:
        """Submits a run of `programs/run_plan.py`. Returns its id.

        Raises RunFailed, and Stopped soon after `stop` is set. After either, and after Unreachable, there may be a run.
        """

    def ending(self, run: str) -> Ending | None:
        """How a run ended; None if it hasn't, or if nobody knows."""

    def stop(self, run: str) -> None:
        """Asks a run to end."""

    def forget(self, run: str) -> None:
        """Removes what is left of a run that has ended."""


class ClusterExecutor:
    """Runs plans on a cluster."""

    actions: Collection[str] = frozenset({COMPACTION, CLUSTERING})

    def __init__(self, uri: str, cluster: Cluster) -> None:
        """`uri`: of the metastore, as the cluster's hosts reach it."""
        self._uri = uri
        self._cluster = cluster

    def run(self, task: Task, stop: threading.Event) -> str:
        if earlier := self._cluster.runs(task):
            for each in earlier:
                self._watch(each, stop)
            return f"{', '.join(earlier)} had been started before, and has ended"
        run = self._submit(task, stop)
        ending = self._watch(run, stop)
        if not ending.succeeded:
            raise RunFailed(f"{run} of {task.tag} failed{_advice(ending.log)}:\n{ending.log}")
        return f"{run} of {task.tag} has ended:\n{ending.log}"

    def close(self) -> None:
        pass

    def _submit(self, task: Task, stop: threading.Event) -> str:
        try:
            return self._cluster.submit(task, task.arguments(self._uri), stop)
        except Stopped:
            for each in self._cluster.runs(task):
                self._end(each)
            raise
        except (RunFailed, Unreachable) as failure:
            found = self._cluster.runs(task)
            if not found:
                raise
            log.warning("the answer to a submission was lost, the run is there", run=found[0], error=str(failure))
            return found[0]

    def _watch(self, run: str, stop: threading.Event) -> Ending:
        """Waits for the end of a run. Raises Stopped."""
        while True:
            try:
                ending = self._cluster.ending(run)
            except Unreachable as error:
                log.warning("the cluster doesn't say how a run goes", run=run, error=str(error))
                ending = None
            if ending is not None:
                with suppress(Unreachable):
                    self._cluster.forget(run)
                return ending
            if stop.wait(LOOK_SECONDS):
                self._end(run)
                raise Stopped

    def _end(self, run: str) -> None:
        """Stops a run, and waits for its end for a while. If it goes on, the next attempt will find it."""
        try:
            self._cluster.stop(run)
            waiting = threading.Event()
            for _ in range(int(STOP_SECONDS / LOOK_SECONDS)):
                if self._cluster.ending(run) is not None:
                    self._cluster.forget(run)
                    return
                waiting.wait(LOOK_SECONDS)
        except Unreachable as error:
            log.warning("a run can't be stopped", run=run, error=str(error))


def _advice(log: str) -> str:
    """What to do about a run that didn't understand its arguments; empty for all other logs."""
    if "unrecognized arguments" not in log:
        return ""
    return ". Its lake-metastore is older than this service's: give the cluster, or the pods' image, the same version"


def plan_key(task: Task) -> str:
    """What all attempts at a plan have in common on a cluster: a hash of `Task.key`, short enough for a label."""
    return "tms-" + hashlib.sha256(task.key.encode()).hexdigest()[:20]

"""What runs the plans of table services, and where.

An executor runs one attempt at a plan that exists. Whether it succeeded is judged by the timeline, not by what the
executor says.
"""

import threading
from collections.abc import Collection
from typing import NamedTuple, Protocol

from lake.client.lake_types import DataFile
from lake.maintenance.decisions.decisions import COMPACTION
from lake.protocol.lake import TableReference
from lake.tables.compaction import Work, compacted, run_compaction
from lake.tables.lake import LakeClient


class Stopped(Exception):
    """The attempt was asked to stop, and has."""


class Task(NamedTuple):
    """A plan to run. `tag` names the attempt wherever it runs: `tms-<plan>-<attempt>`."""

    table: TableReference
    action: str
    instant: str
    tag: str

    @property
    def name(self) -> str:
        """The table's name."""
        parts = (self.table.catalog, self.table.database, self.table.table)
        return ".".join(each for each in parts if each)

    @property
    def table_arguments(self) -> list[str]:
        """The arguments that say which table it is. A process that has them, one after another, works on this table."""
        named = ["--table", self.name]
        return named if self.table.id is None else [*named, "--table-id", str(self.table.id)]

    @property
    def key(self) -> str:
        """A text that all attempts at the plan share, and no attempt at a plan of another table.

        Plans of two tables may have the same timestamp, also of two tables that had one name.
        """
        return " ".join([*self.table_arguments, self.instant])

    def arguments(self, uri: str) -> list[str]:
        """What `programs/run_plan.py` is given, but for the tag. `uri`: of the metastore."""
        return ["--uri", uri, *self.table_arguments, "--instant", self.instant]


def tag_of(instant: str, attempt: int) -> str:
    """What an attempt at a plan is called, wherever it runs."""
    return f"{prefix_of(instant)}{attempt}"


def prefix_of(instant: str) -> str:
    """What the names of all attempts at a plan begin with."""
    return f"tms-{instant}-"


class Executor(Protocol):
    """Runs plans. `run` is called by several threads at once."""

    actions: Collection[str]
    """What it can run: compaction, clustering."""

    def run(self, task: Task, stop: threading.Event) -> str:
        """Runs a plan to its end. Returns a log for people. Raises Stopped soon after `stop` is set, or what failed."""

    def close(self) -> None:
        """Ends what it needs."""


class ArrowExecutor:
    """Compactions in this process, in Arrow, without Spark: a bucket at a time."""

    actions: Collection[str] = frozenset({COMPACTION})

    def __init__(self, client: LakeClient) -> None:
        self._client = client

    def run(self, task: Task, stop: threading.Event) -> str:
        def one_by_one(work: Work) -> list[DataFile]:
            files: list[DataFile] = []
            for each in work.tasks:
                if stop.is_set():
                    raise Stopped
                files += compacted(work.writer, each)
            return files

        done = run_compaction(self._client.table(task.table), task.instant, run_tasks=one_by_one)
        return f"compacted in this process, position {done.instant.position}"

    def close(self) -> None:
        pass

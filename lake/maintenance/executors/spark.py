"""Runs plans on a Spark session of this process. Needs the extra `spark`, and Java."""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from lake.maintenance.decisions.decisions import CLUSTERING, COMPACTION
from lake.maintenance.executors.base import Stopped, Task
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS = 0.5


class SparkExecutor:
    """One session, made when the first plan comes. An attempt's jobs are a job group of its plan's key and its tag."""

    actions: Collection[str] = frozenset({COMPACTION, CLUSTERING})

    def __init__(self, uri: str) -> None:
        """`uri`: of the metastore. Raises UserError without PySpark."""
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise UserError("this executor needs Spark: pip install 'lake-metastore-client[spark]'") from None
        self._uri = uri
        self._lock = threading.Lock()
        self._session: SparkSession | None = None

    def run(self, task: Task, stop: threading.Event) -> str:
        from lake.spark import run_plan

        spark = self._spark()
        over = threading.Event()
        context = spark.sparkContext
        group = f"{task.key} {task.tag}"  # tags alone are shared by plans of two tables: both would be cancelled
        context.setJobGroup(group, f"{task.action} {task.instant} of {task.name}", interruptOnCancel=True)

        def cancel() -> None:
            while not over.wait(_LOOK_SECONDS):
                if stop.is_set():
                    context.cancelJobGroup(group)  # again and again: jobs that begin later, too

        watching = threading.Thread(target=cancel, name=f"cancel-{task.tag}", daemon=True)
        watching.start()
        try:
            done = run_plan(spark, task.table, task.instant, uri=self._uri)
        except Exception:
            if stop.is_set():
                raise Stopped from None
            raise
        finally:
            over.set()
            watching.join()
        return f"run on Spark in this process, position {done.instant.position}"

    def _spark(self) -> "SparkSession":
        from pyspark.sql import SparkSession

        from lake.spark import configure

        with self._lock:
            if self._session is None:
                builder = SparkSession.builder.appName("table services")
                self._session = configure(builder, self._uri).getOrCreate()
            return self._session

    def close(self) -> None:
        with self._lock:
            if self._session is not None:
                self._session.stop()
                self._session = None

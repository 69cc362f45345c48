"""Calls a function with what has changed in a lake table since its last call, each increment once.

def merge_into_mirror(changes, batch):
    write(changes, "shop.mirror", operation="merge", batch=batch)

for_each_increment(spark, "shop.orders", merge_into_mirror, "s3a://lake/checkpoints/mirror", changes=True)

Unlike `read_stream` it reads tables without a key that Hive made, and needs no extension for tables without a key.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lake.client.lake_types import AsOf, StreamBatch
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.lake_reading import read
from lake.spark.session_client import OtherTable, lake_table
from lake.tables.lake import LakeTable

_STREAM = "stream.json"
_PLANNED, _DONE = ".planned", ".done"


class BadCheckpoint(OtherTable):
    """The checkpoint belongs to another table, or isn't one."""


class _Increment(NamedTuple):
    """What came after one position up to another. Nothing before, with `after` None: all rows of the table."""

    number: int
    after: int | None
    up_to: int


def for_each_increment(
    spark: SparkSession,
    table: str,
    function: Callable[[DataFrame, StreamBatch], None],
    checkpoint: str,
    *,
    since: AsOf | None = None,
    changes: bool | Literal["all"] = False,
    include_uncommitted: bool = False,
    filter: str | None = None,
    available_now: bool = False,
    poll_seconds: float = 1.0,
    uri: str | None = None,
) -> int:
    """Calls `function(rows, batch)` for what has come into the table since its last call, again and again.

    The first call gets all rows, as they are then; with `since`, what came after that. `changes` and the others are as
    of `read`; of the first call all changes are inserts. Increments have at least one completed instant, and may have
    no rows. Ends when `function` raises; with `available_now`, once it has had all that was there at the start. Until
    then the table is looked at every `poll_seconds`. Returns the number of calls.

    `checkpoint` is the URI of a directory of this call alone. It has how far `function` has come: after a kill, the
    same rows come again with the same `batch`. Written with `write(…, batch=batch)`, they become part of another table
    once.

    Raises BadCheckpoint, ValueError, SnapshotGone if what comes next has been cleaned, and what `read` raises.
    """
    if poll_seconds <= 0:
        raise ValueError(f"the table is looked at every so many seconds, not every {poll_seconds}")
    lake = lake_table(spark, table, uri)
    log = _Log(HadoopFiles(spark), checkpoint, lake)
    # A clean may have removed since what `since` names: only the first increment needs it.
    start = None
    if since is not None and not log.has_increments:
        lake.check_named(since)
        start = lake.position_of(since)
    last = lake.position().position
    calls = 0
    while True:
        increment = log.open() or log.plan(start, last)
        if increment is not None:
            options = {"include_uncommitted": include_uncommitted, "filter": filter, "uri": uri}
            if increment.after is None:
                rows = read(spark, lake.reference, as_of=increment.up_to, **options)  # type: ignore[arg-type]
                rows = _as_inserts(lake, rows, increment.up_to) if changes else rows
            else:
                between = increment.after, increment.up_to
                rows = read(spark, lake.reference, incremental=between, changes=changes, **options)  # type: ignore[arg-type]
            function(rows, StreamBatch(log.stream, increment.number))
            log.finish(increment)
            calls += 1
            continue
        if available_now:
            return calls
        time.sleep(poll_seconds)
        last = lake.position().position


def _as_inserts(lake: LakeTable, rows: DataFrame, position: int) -> DataFrame:
    """The rows of the snapshot at a position as changes: inserts of the completion at that position.

    Raises NotKeyed for a table whose changes nobody can tell.
    """
    from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType  # need pyarrow
    from lake.tables.keyed_tables import COMMIT_TIMESTAMP, COMMIT_VERSION, NotKeyed

    if lake.schema().keyed_table() is None:
        raise NotKeyed(f"{lake.name} has no primary-key among its properties")
    time = next(each.instant.changed_at for each in lake.changes(position - 1, position))
    return rows.withColumns(
        {
            CHANGE_TYPE: sf.lit(str(ChangeType.INSERT)),
            COMMIT_VERSION: sf.lit(position).cast("long"),
            COMMIT_TIMESTAMP: sf.lit(time),
        }
    )


class _Log:
    """The files of a checkpoint: an increment is written down before its call, and once more after it.

    A file that can't be read was being written when its process died: the call that it stands for never began.
    """

    def __init__(self, files: HadoopFiles, directory: str, lake: LakeTable) -> None:
        table = lake.full_name
        self._files = files
        self._directory = directory
        names = files.names(directory)
        if names and _STREAM not in names:
            raise BadCheckpoint(f"{directory} has other files: a checkpoint is a directory of its own")
        known = self._json(_STREAM) if names else None
        if known is None:
            known = {"stream": uuid.uuid4().hex, "table": table, "id": lake.id}
            files.write(f"{directory}/{_STREAM}", json.dumps(known))
        if known["table"] != table:
            raise BadCheckpoint(f"{directory} is the checkpoint of {known['table']}, not of {table}")
        # A checkpoint of a release that didn't keep the id has positions alone.
        planned = (self._planned(int(each.removesuffix(_PLANNED))) for each in names if each.endswith(_PLANNED))
        last = max((each.up_to for each in planned if each is not None), default=0)
        own = lake.is_own(last) if known.get("id") is None else known["id"] == lake.id
        if lake.id is not None and not own:
            raise BadCheckpoint(
                f"{directory} is the checkpoint of another table that had the name {table}: that one was dropped or"
                " renamed. Give a new directory, so that all rows of the table come that is there now"
            )
        self.stream: str = known["stream"]
        self._done = max((int(each.removesuffix(_DONE)) for each in names if each.endswith(_DONE)), default=-1)

    @property
    def has_increments(self) -> bool:
        return self._done >= 0 or self.open() is not None

    def open(self) -> _Increment | None:
        """The increment whose call has not ended; None if all have."""
        return self._planned(self._done + 1)

    def plan(self, start: int | None, up_to: int) -> _Increment | None:
        """Writes down the next increment, up to a position; None if nothing has come. `start`: of the first one."""
        last = self._planned(self._done)
        after = start if last is None else last.up_to
        if up_to <= (after or 0):
            return None
        increment = _Increment(self._done + 1, after, up_to)
        self._files.write(f"{self._directory}/{increment.number}{_PLANNED}", json.dumps([after, up_to]))
        return increment

    def finish(self, increment: _Increment) -> None:
        """Writes down that an increment's call has ended. The files of the one before it go."""
        self._files.write(f"{self._directory}/{increment.number}{_DONE}", "")
        self._done = increment.number
        for kind in (_DONE, _PLANNED):
            self._files.remove(f"{self._directory}/{increment.number - 1}{kind}")

    def _planned(self, number: int) -> _Increment | None:
        found = self._json(f"{number}{_PLANNED}") if number >= 0 else None
        return None if found is None else _Increment(number, *found)

    def _json(self, name: str) -> Any:
        """What a file says; None if it isn't there, or not whole."""
        location = f"{self._directory}/{name}"
        try:
            return json.loads(self._files.read(location)) if self._files.exists(location) else None
        except ValueError:
            return None

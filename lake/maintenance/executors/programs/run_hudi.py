"""The program that spark-submit runs for one step of a service of a Hudi table. It exits with 0 if it is done.

Needs PySpark and Hudi's bundle alone. Hudi's own procedures do the work; its timeline says what came of it.
https://hudi.apache.org/docs/procedures/
"""

import argparse
import json
import re
import sys
import time
from typing import Any

PLANNED = "planned: "
"""How the line begins that names the plan to run."""

BUSY = 75
"""The exit code when somebody else runs the plan."""

WRITING = 76
"""The exit code when writers are always under way, so that no plan can be made without harm to them."""

GAP_SECONDS = 120.0
"""How long a step waits for a moment at which no writer is under way."""

_LOOK_SECONDS = 0.2

# What a location may be made of: a procedure takes it as a text in SQL.
_LOCATION = re.compile(r"[\w./:@=+,%~-]{1,2000}", re.ASCII)
_WRITES = ("commit", "deltacommit", "replacecommit")
_INSTANT = re.compile(r"[0-9]{14,17}")


def main() -> int:
    """Does the step that the command line names."""
    parser = argparse.ArgumentParser(description="Does one step of a service of a Hudi table.")
    for name in ("location", "action", "step", "tag"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instant", default="")
    parser.add_argument("--options", type=json.loads, default={}, help="of Hudi's writer, in JSON")
    parser.add_argument("--again", action="store_true", help="an earlier attempt may have begun the plan, and is dead")
    given = parser.parse_args()
    if not _LOCATION.fullmatch(given.location):
        parser.error(f"the location {given.location!r} has characters that Hudi's procedures don't take")
    if given.instant and not _INSTANT.fullmatch(given.instant):
        parser.error(f"{given.instant!r} is no instant")

    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(given.tag).getOrCreate()
    try:
        return HudiTable(spark, given.location, given.options).do(given)
    finally:
        spark.stop()


class HudiTable:
    """A table of Hudi's in a session that has its classes."""

    def __init__(self, spark: Any, location: str, options: dict[str, str]) -> None:
        self._spark = spark
        self._jvm = spark._jvm
        self._location = location
        self._options = dict(options)
        # A service must neither begin nor end a metadata table: writers do.
        has_metadata = self._client().getTableConfig().isMetadataTableAvailable()
        self._options["hoodie.metadata.enable"] = str(bool(has_metadata)).lower()
        for name, value in self._options.items():
            spark.conf.set(name, value)

    def do(self, given: argparse.Namespace) -> int:
        """Does a step. Returns the exit code."""
        if given.action == "clean":
            return self._clean()
        if given.step == "plan":
            try:
                found = self._plan(given.action)
            except TimeoutError as busy:
                print(busy, flush=True)
                return WRITING
            print(f"{PLANNED}{found or '-'}", flush=True)
            return 0
        return self._run(given.action, given.instant, again=given.again)

    def _client(self) -> Any:
        hadoop = self._spark._jsparkSession.sessionState().newHadoopConf()
        configuration = self._jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        builder = self._jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(configuration).setBasePath(self._location).build()

    def _pending(self, action: str) -> dict[str, str]:
        """Plans that aren't completed, by timestamp in order: their states."""
        utilities = self._jvm.org.apache.hudi.common.util
        if action == "compaction":
            found = utilities.CompactionUtils.getAllPendingCompactionPlans(self._client()).iterator()
        else:
            found = utilities.ClusteringUtils.getAllPendingClusteringPlans(self._client()).iterator()
        states = {}
        while found.hasNext():
            instant = found.next().getLeft()
            states[_timestamp(instant)] = str(instant.getState().name())
        return dict(sorted(states.items()))

    def _plan(self, action: str) -> str | None:
        """The oldest plan that nobody has begun; a new one without any; None if Hudi finds nothing to do.

        Raises TimeoutError if writers leave no gap for a new one.
        """
        for _ in range(2):
            waiting = [timestamp for timestamp, state in self._pending(action).items() if state == "REQUESTED"]
            if waiting:
                return waiting[0]
            self._wait_for_gap()
            self._call(f"run_{action}", "schedule")
        return None

    def _wait_for_gap(self) -> None:
        """Waits until no writer is under way: Hudi makes one fail that began before a plan for its files was made.

        Raises TimeoutError.
        """
        deadline = time.monotonic() + GAP_SECONDS
        while under_way := self._writes_under_way():
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"there were writers under way for {GAP_SECONDS:g} s, now {', '.join(under_way)}: let them make the"
                    " plans (hoodie.compact.schedule.inline=true)"
                )
            time.sleep(_LOOK_SECONDS)

    def _writes_under_way(self) -> list[str]:
        """The timestamps of writes that aren't completed, and whose writers give signs of life."""
        client = self._client()
        pending = client.getActiveTimeline().filterInflightsAndRequested().getInstants()
        writes = {_timestamp(each) for each in pending if str(each.getAction()) in _WRITES}
        if not writes:
            return []
        writes -= self._pending("clustering").keys()  # 0.15 calls both a replacecommit
        interval = int(self._options.get("hoodie.client.heartbeat.interval_in_ms", "60000"))
        misses = int(self._options.get("hoodie.client.heartbeat.tolerable.misses", "2"))
        heartbeats = self._jvm.org.apache.hudi.client.heartbeat.HoodieHeartbeatClient(
            client.getStorage(), self._location, interval, misses
        )
        return sorted(each for each in writes if not heartbeats.isHeartbeatExpired(each))

    def _run(self, action: str, instant: str, *, again: bool) -> int:
        if self._is_complete(instant):
            print(f"{action} {instant} is complete already")
            return 0
        state = self._pending(action).get(instant)
        if state is None:
            print(f"{action} {instant} is no more on the timeline")
            return 1
        if state != "REQUESTED" and not again:
            print(f"{action} {instant} is run by somebody else")
            return BUSY
        # Hudi rolls back what a dead attempt has left of the same instant, and runs it anew.
        self._call(f"run_{action}", "execute", instant)
        done = self._is_complete(instant)
        print(f"{action} {instant} is {'complete' if done else 'not complete'}", flush=True)
        return 0 if done else 1

    def _clean(self) -> int:
        """Hudi runs cleans that are planned already before it plans one."""
        options = self._jvm.java.util.HashMap()
        for name, value in self._options.items():
            options.put(name, value)
        settings = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(options)
        create = self._jvm.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient
        writer = create(self._spark._jsparkSession, self._location, settings, self._jvm.scala.Option.apply(None))
        try:
            found = writer.clean()
            print(f"{0 if found is None else found.getTotalFilesDeleted()} files deleted", flush=True)
        finally:
            writer.close()
        return 0

    def _is_complete(self, instant: str) -> bool:
        return bool(self._client().getActiveTimeline().filterCompletedInstants().containsInstant(instant))

    def _call(self, procedure: str, operation: str, instant: str = "") -> None:
        chosen = f", instants => '{instant}'" if instant else ""
        self._spark.sql(f"CALL {procedure}(op => '{operation}', path => '{self._location}'{chosen})").collect()


def _timestamp(instant: Any) -> str:
    """1.x has another name for it."""
    try:
        return str(instant.getTimestamp())
    except Exception:
        return str(instant.requestedTime())


if __name__ == "__main__":
    sys.exit(main())

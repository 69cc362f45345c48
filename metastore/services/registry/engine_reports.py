"""Reports of engines: runtime statistics of queries, and the progress of replications."""

from lake.protocol.codec import binary
from lake.protocol.hive import GetReplicationMetricsRequest, ReplicationMetrics, RuntimeStat
from metastore.store import Conflict, Database
from metastore.store.engine import clock
from metastore.store.registry import replication_metrics, runtime_statistics

# Hive's defaults, in seconds: metastore.runtime.stats.max.age and metastore.repl.metrics.max.age
STATISTICS_MAX_AGE = 3 * 86_400
METRICS_MAX_AGE = 7 * 86_400

# The widths of Hive's columns, in characters; a text that doesn't fit is replaced by one that says so.
MAX_METADATA = 4000
MAX_PROGRESS = 10_000


class EngineReports:
    """Hive's calls for runtime statistics and replication metrics."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_statistics(self, entry: RuntimeStat) -> None:
        """Keeps an entry; its time is the database's."""
        with self._database.write() as tx:
            runtime_statistics.add(tx, clock.seconds(tx), entry.weight or 0, entry.payload or b"")

    def statistics(self, max_weight: int, before: int) -> list[RuntimeStat]:
        """Entries, the newest first, until their weights reach `max_weight`; negative: all.

        `before`: only those made before that time in seconds, if it is positive.
        """
        found, weight = [], 0
        with self._database.read() as tx:
            for row in runtime_statistics.newest(tx, before if before > 0 else None):
                found.append(RuntimeStat(createTime=row.create_time, weight=row.weight, payload=row.payload))
                weight += row.weight
                if 0 <= max_weight <= weight:
                    break
        return found

    def add_metrics(self, reported: list[ReplicationMetrics]) -> None:
        """Keeps how far executions of replications are: once begun, only metadata and progress change."""
        try:
            with self._database.write() as tx:
                for metrics in reported:
                    execution_id = metrics.scheduledExecutionId or 0
                    known = replication_metrics.find(tx, execution_id=execution_id, lock=True)
                    if known:
                        body = _merged(binary.decode_preserving(ReplicationMetrics, known[0]), metrics)
                        replication_metrics.change(tx, execution_id, body)
                    else:
                        begun = metrics.replace(metadata=None, progress=None)
                        body = _merged(begun, metrics)
                        replication_metrics.add(tx, execution_id, metrics.policy or "", clock.seconds(tx), body)
        except Conflict:  # somebody else reported the same for the first time: it is known now
            self.add_metrics(reported)

    def metrics(self, request: GetReplicationMetricsRequest) -> list[ReplicationMetrics] | None:
        """The executions of a policy, the newest first, or one execution; None if neither is asked for."""
        if request.policy is None and request.scheduledExecutionId is None:
            return None
        with self._database.read() as tx:
            if request.policy is not None:
                found = replication_metrics.find(tx, policy=request.policy)
            else:
                found = replication_metrics.find(tx, execution_id=request.scheduledExecutionId)
        return [binary.decode_preserving(ReplicationMetrics, body) for body in found]

    def sweep(self) -> None:
        """Forgets what is old."""
        with self._database.write() as tx:
            now = clock.seconds(tx)
            runtime_statistics.forget(tx, now - STATISTICS_MAX_AGE)
            replication_metrics.forget(tx, now - METRICS_MAX_AGE)


def _merged(known: ReplicationMetrics, new: ReplicationMetrics) -> bytes:
    metadata, progress = known.metadata, known.progress
    if new.metadata:
        if len(new.metadata) > MAX_METADATA:  # as in Hive: it is the progress that says so
            progress = f"RM_Metadata limit exceeded to {len(new.metadata)}"
        else:
            metadata = new.metadata
    if new.progress:
        limit = f"RM_Progress limit exceeded to {len(new.progress)}"
        progress = limit if len(new.progress) > MAX_PROGRESS else new.progress
    return binary.encode(known.replace(metadata=metadata, progress=progress, messageFormat=new.messageFormat))

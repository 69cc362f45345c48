"""Runtime statistics and replication metrics."""

from lake.protocol.hive import (
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    MetaException,
    ReplicationMetricList,
    RuntimeStat,
)
from metastore.api.methods import Call, answers


@answers("add_runtime_stats", changes="ADMIN everything", uncommitted="no table")
def add_runtime_stats(call: Call, entry: RuntimeStat | None) -> None:
    if entry is None:
        raise MetaException("the statistics are missing")
    call.metastore.engine_reports.add_statistics(entry)


@answers("get_runtime_stats", reads="ADMIN everything", uncommitted="no table")
def get_runtime_stats(call: Call, request: GetRuntimeStatsRequest) -> list[RuntimeStat]:
    return call.metastore.engine_reports.statistics(request.maxWeight or 0, request.maxCreateTime or 0)


@answers("add_replication_metrics", changes="ADMIN everything", uncommitted="no table", stores=True)
def add_replication_metrics(call: Call, metrics: ReplicationMetricList) -> None:
    call.metastore.engine_reports.add_metrics(metrics.replicationMetricList or [])


@answers("get_replication_metrics", reads="ADMIN everything", uncommitted="no table")
def get_replication_metrics(call: Call, request: GetReplicationMetricsRequest) -> ReplicationMetricList | None:
    found = call.metastore.engine_reports.metrics(request)
    return None if found is None else ReplicationMetricList(found)

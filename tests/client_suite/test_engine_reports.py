"""Runtime statistics and replication metrics. Expectations are those of Hive 4's source."""

import time

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    GetReplicationMetricsRequest,
    GetRuntimeStatsRequest,
    ReplicationMetricList,
    ReplicationMetrics,
    RuntimeStat,
)

pytestmark = pytest.mark.hive4


class TestRuntimeStatistics:
    def test_the_newest_first_until_they_weigh_enough(self, client: ThriftClient) -> None:
        for number in range(4):
            client.add_runtime_stats(RuntimeStat(createTime=17, weight=10, payload=b"\x00\xff" + bytes([number])))
        found = client.get_runtime_stats(GetRuntimeStatsRequest(25, -1))
        assert [entry.payload[-1] for entry in found] == [3, 2, 1]
        assert {entry.weight for entry in found} == {10}
        assert all(abs(time.time() - entry.createTime) < 120 for entry in found)
        assert [entry.payload[-1] for entry in client.get_runtime_stats(GetRuntimeStatsRequest(0, 0))] == [3]
        assert len(client.get_runtime_stats(GetRuntimeStatsRequest(-1, -1))) >= 4

    def test_those_before_a_time(self, client: ThriftClient) -> None:
        client.add_runtime_stats(RuntimeStat(weight=1, payload=b""))
        now = int(time.time())
        assert client.get_runtime_stats(GetRuntimeStatsRequest(-1, now - 1000)) == []
        assert client.get_runtime_stats(GetRuntimeStatsRequest(1, now + 1000)) != []


class TestReplicationMetrics:
    def report(self, client: ThriftClient, *metrics: ReplicationMetrics) -> None:
        client.add_replication_metrics(ReplicationMetricList(list(metrics)))

    def of_policy(self, client: ThriftClient, policy: str) -> list[ReplicationMetrics]:
        return client.get_replication_metrics(GetReplicationMetricsRequest(policy=policy)).replicationMetricList

    def of_execution(self, client: ThriftClient, number: int) -> list[ReplicationMetrics]:
        request = GetReplicationMetricsRequest(scheduledExecutionId=number)
        return client.get_replication_metrics(request).replicationMetricList

    def test_the_newest_first(self, client: ThriftClient, unused_name: str) -> None:
        first = ReplicationMetrics(101, unused_name, 7, "metadata", "progress", "json")
        second = ReplicationMetrics(102, unused_name, 8)
        self.report(client, first, second)
        assert self.of_policy(client, unused_name) == [second, first]
        assert self.of_execution(client, 101) == [first]
        assert self.of_execution(client, 199) == self.of_policy(client, "no such") == []

    def test_metadata_and_progress_follow(self, client: ThriftClient, unused_name: str) -> None:
        self.report(client, ReplicationMetrics(111, unused_name, 7, "metadata", "progress", "json"))
        self.report(client, ReplicationMetrics(111, "other", 9, "", "further", "gzip"))
        assert self.of_execution(client, 111) == [
            ReplicationMetrics(111, unused_name, 7, "metadata", "further", "gzip")
        ]

    def test_texts_that_are_too_long(self, client: ThriftClient, unused_name: str) -> None:
        self.report(client, ReplicationMetrics(121, unused_name, 7, "m" * 4001))
        self.report(client, ReplicationMetrics(122, unused_name, 7, "m" * 4000, "p" * 10_001))
        second, first = self.of_policy(client, unused_name)
        assert (first.metadata, first.progress) == (None, "RM_Metadata limit exceeded to 4001")
        assert (second.metadata, second.progress) == ("m" * 4000, "RM_Progress limit exceeded to 10001")

    def test_nothing_asked_nothing_answered(self, client: ThriftClient) -> None:
        with pytest.raises(TApplicationException):
            client.get_replication_metrics(GetReplicationMetricsRequest())

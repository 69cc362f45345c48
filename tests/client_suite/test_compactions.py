"""The queue of compactions, of which Hive 2.3 has only the asking."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AllocateTableWriteIdsRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsMetricType,
    CompactionRequest,
    CompactionType,
    FindNextCompactRequest,
    GetLatestCommittedCompactionInfoRequest,
    GetOpenTxnsRequest,
    LongColumnStatsData,
    MetaException,
    OpenTxnRequest,
    ShowCompactRequest,
    ShowCompactResponseElement,
    TxnType,
)
from tests.support.builders import table
from tests.support.expect import UNDECLARED, refused
from tests.support.target import Target

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR


@pytest.fixture
def name(unused_name: str) -> str:
    """A database name: what is compacted need not exist."""
    return unused_name


@pytest.fixture
def hive4(target: Target) -> Iterator[ThriftClient]:
    """A client that is known to be of Hive 4, while nobody else's compaction waits."""
    with target.connect() as client:
        client.get_open_txns_req(GetOpenTxnsRequest(excludeTxnTypes=[]))
        for pool in ("", "p"):
            sweeper = FindNextCompactRequest(workerId="sweeper", poolName=pool)
            while (left := client.find_next_compact2(sweeper).ci) is not None:
                client.mark_failed(left)
        yield client


def asked(db: str, name: str = "t", part: str | None = None, kind: int = MAJOR, **fields: object) -> CompactionRequest:
    return CompactionRequest(dbname=db, tablename=name, partitionname=part, type=kind, **fields)


def shown(client: ThriftClient, db: str) -> list[ShowCompactResponseElement]:
    found = client.show_compact(ShowCompactRequest()).compacts
    return sorted((each for each in found if each.dbname == db), key=lambda each: each.id)


class TestAsking:
    def test_it_waits_in_the_queue(self, client: ThriftClient, name: str) -> None:
        answer = client.compact2(asked(name, runas="me", properties={"a": "1"}))
        assert (answer.state, answer.accepted) == ("initiated", True)
        (found,) = shown(client, name)
        assert (found.id, found.dbname, found.tablename, found.partitionname) == (answer.id, name, "t", None)
        assert (found.type, found.state, found.runAs) == (MAJOR, "initiated", "me")
        assert (found.workerid, found.start, found.endTime, found.hadoopJobId) == (None, None, None, None)

    def test_ids_rise(self, client: ThriftClient, name: str) -> None:
        ids = [client.compact2(asked(name, part=f"k={number}", kind=MINOR)).id for number in range(3)]
        assert ids == sorted(set(ids))
        assert [each.partitionname for each in shown(client, name)] == ["k=0", "k=1", "k=2"]

    def test_without_an_answer(self, client: ThriftClient, name: str) -> None:
        assert client.compact(asked(name)) is None
        assert [each.state for each in shown(client, name)] == ["initiated"]

    def test_a_table_and_its_partitions_are_different_things(self, client: ThriftClient, name: str) -> None:
        assert client.compact2(asked(name)).accepted
        assert client.compact2(asked(name, part="k=1")).accepted
        assert client.compact2(asked(name, "other")).accepted

    def test_a_second_time(self, client: ThriftClient, name: str) -> None:
        first = client.compact2(asked(name))
        again = client.compact2(asked(name, kind=MINOR))
        assert (again.id, again.state, again.accepted) == (first.id, "initiated", False)
        assert len(shown(client, name)) == 1

    def test_a_second_time_in_hive_4(self, hive4: ThriftClient, name: str) -> None:
        first = hive4.compact2(asked(name))
        again = hive4.compact2(asked(name, kind=MINOR))
        assert (again.id, again.state, again.accepted) == (-1, "refused", False)
        assert again.errormessage == f"Compaction is already scheduled with state='initiated' and id={first.id}"
        assert len(shown(hive4, name)) == 1

    def test_of_many_who_ask_at_once_one_is_accepted(self, target: Target, name: str) -> None:
        def ask(_: int) -> bool:
            with target.connect() as client:
                return client.compact2(asked(name)).accepted

        with ThreadPoolExecutor(4) as threads:
            assert sum(threads.map(ask, range(8))) == 1

    def test_a_type_that_there_is_not(self, client: ThriftClient, name: str) -> None:
        with refused(TApplicationException):
            client.compact2(asked(name, kind=9))


class TestShown:
    def test_by_conditions(self, hive4: ThriftClient, name: str) -> None:
        first = hive4.compact2(asked(name, part="k=1", poolName="p")).id
        second = hive4.compact2(asked(name, part="k=2", kind=MINOR)).id

        def ids(**conditions: object) -> list[int]:
            return [each.id for each in hive4.show_compact(ShowCompactRequest(**conditions)).compacts]

        assert ids(dbName=name) == [first, second]
        assert ids(dbName=name, limit=1) == [first]
        assert ids(dbName=name, partName="k=2") == ids(dbName=name, type=MINOR) == ids(id=second) == [second]
        assert ids(dbName=name, poolName="p") == [first]
        assert ids(dbName=name, state="i") == [first, second]
        assert ids(dbName=name, state="w") == ids(dbName=name, tbName="other") == []

    @pytest.mark.hive4(differs="shows older clients a type that they don't know")
    def test_what_older_clients_do_not_know(self, target: Target, hive4: ThriftClient, name: str) -> None:
        hive4.compact2(asked(name, kind=CompactionType.REBALANCE, numberOfBuckets=4, orderByClause="id"))
        assert [each.type for each in shown(hive4, name)] == [CompactionType.REBALANCE]
        with target.connect() as older:
            assert [each.type for each in shown(older, name)] == [MAJOR]
        ci = hive4.find_next_compact("worker").ci
        assert (ci.type, ci.numberOfBuckets, ci.orderByClause) == (CompactionType.REBALANCE, 4, "id")


class TestWorking:
    def test_pools(self, hive4: ThriftClient, name: str) -> None:
        hive4.compact2(asked(name, part="k=1", poolName="p"))
        plain = hive4.compact2(asked(name, part="k=2")).id
        assert [each.poolName for each in shown(hive4, name)] == ["p", "default"]
        assert hive4.find_next_compact("worker").ci.id == plain
        assert hive4.find_next_compact("worker").ci is None
        assert hive4.find_next_compact2(FindNextCompactRequest(workerId="w", poolName="q")).ci is None
        ci = hive4.find_next_compact2(FindNextCompactRequest(workerId="w", poolName="p")).ci
        assert (ci.partitionname, ci.poolname) == ("k=1", "p")

    def test_the_oldest_is_next(self, hive4: ThriftClient, name: str) -> None:
        ids = [hive4.compact2(asked(name, part=f"k={number}")).id for number in range(2)]
        first = hive4.find_next_compact("worker-1").ci
        second = hive4.find_next_compact2(FindNextCompactRequest(workerId="worker-2", workerVersion="4.0")).ci
        assert [first.id, second.id] == ids
        assert (first.dbname, first.tablename, first.partitionname, first.type) == (name, "t", "k=0", MAJOR)
        assert hive4.find_next_compact("worker-1").ci is None
        one, other = shown(hive4, name)
        assert (one.state, one.workerid, other.workerVersion) == ("working", "worker-1", "4.0")
        assert abs(one.start - 1000 * time.time()) < 120_000

    def test_properties_as_workers_read_them(self, hive4: ThriftClient, name: str) -> None:
        hive4.compact2(asked(name, properties={"a": "bc", "d": ""}))
        assert hive4.find_next_compact("worker").ci.properties in ("2:1:a2:bc1:d0:", "2:1:d0:1:a2:bc")

    def test_no_two_workers_get_the_same(self, target: Target, hive4: ThriftClient, name: str) -> None:
        ids = {hive4.compact2(asked(name, part=f"k={number}")).id for number in range(12)}

        def work(number: int) -> list[int]:
            with target.connect() as client:
                done = []
                while (ci := client.find_next_compact(f"worker-{number}").ci) is not None:
                    done.append(ci.id)
                return done

        with ThreadPoolExecutor(4) as threads:
            found = [each for done in threads.map(work, range(4)) for each in done]
        assert sorted(found) == sorted(ids)

    def test_from_the_queue_to_success(self, hive4: ThriftClient, name: str) -> None:
        writer, number = hive4.open_txns(OpenTxnRequest(2, "alice", "here")).txn_ids
        hive4.allocate_table_write_ids(AllocateTableWriteIdsRequest(dbName=name, tableName="t", txnIds=[writer]))
        hive4.commit_txn(CommitTxnRequest(txnid=writer))
        hive4.commit_txn(CommitTxnRequest(txnid=number))

        hive4.compact2(asked(name))
        ci = hive4.find_next_compact("worker").ci
        (transaction,) = hive4.open_txns(OpenTxnRequest(1, "alice", "here", txn_type=TxnType.COMPACTION)).txn_ids
        ci.highestWriteId, ci.runas = 1, "alice"
        hive4.update_compactor_state(ci, transaction)
        hive4.set_hadoop_jobid("job_1", ci.id)
        hive4.mark_compacted(ci)
        hive4.commit_txn(CommitTxnRequest(txnid=transaction))
        (found,) = shown(hive4, name)
        assert (found.state, found.workerid, found.hadoopJobId) == ("ready for cleaning", None, "job_1")
        assert (found.hightestTxnId, found.runAs) == (1, "alice")

        # Nothing new to compact.
        assert not hive4.compact2(asked(name)).accepted
        hive4.mark_cleaned(ci)
        (found,) = shown(hive4, name)
        assert found.state == "succeeded"
        assert abs(found.endTime - 1000 * time.time()) < 120_000
        assert hive4.compact2(asked(name)).accepted

    def test_failed_and_refused(self, hive4: ThriftClient, name: str) -> None:
        for mark, state in ((hive4.mark_failed, "failed"), (hive4.mark_refused, "refused")):
            number = hive4.compact2(asked(name)).id
            ci = hive4.find_next_compact("worker").ci
            mark(ci.replace(errorMessage="no room"))
            (found,) = [each for each in shown(hive4, name) if each.id == number]
            assert (found.state, found.errorMessage) == (state, "no room")
            assert found.endTime is not None

    def test_one_that_failed_before_it_was_in_the_queue(self, hive4: ThriftClient, name: str) -> None:
        hive4.mark_failed(CompactionInfoStruct(id=0, dbname=name, tablename="t", type=MINOR, errorMessage="no table"))
        (found,) = shown(hive4, name)
        assert (found.state, found.type, found.errorMessage) == ("did not initiate", MINOR, "no table")
        assert hive4.find_next_compact("worker").ci is None

    def test_one_that_is_not_in_the_queue(self, hive4: ThriftClient, name: str) -> None:
        unknown = CompactionInfoStruct(id=10**12, dbname=name, tablename="t", type=MINOR)
        with refused(TApplicationException):
            hive4.update_compactor_state(unknown, 1)
        for mark in (hive4.mark_failed, hive4.mark_refused):
            with refused(MetaException, UNDECLARED):
                mark(unknown)


class TestLatest:
    def latest(self, client: ThriftClient, db: str, **fields: object) -> list[tuple[int, str | None]]:
        request = GetLatestCommittedCompactionInfoRequest(dbname=db, tablename="t", **fields)
        found = client.get_latest_committed_compaction_info(request).compactions
        return [(each.id, each.partitionname) for each in found]

    def test_the_last_of_each_partition(self, hive4: ThriftClient, name: str) -> None:
        ids = []
        for part in ("k=1", "k=2", "k=1"):
            ids.append(hive4.compact2(asked(name, part=part)).id)
            ci = hive4.find_next_compact("worker").ci
            hive4.mark_compacted(ci)
            hive4.mark_cleaned(ci)
        hive4.compact2(asked(name, part="k=3"))
        assert self.latest(hive4, name) == [(ids[2], "k=1"), (ids[1], "k=2")]
        assert self.latest(hive4, name, partitionnames=["k=2"]) == [(ids[1], "k=2")]
        assert self.latest(hive4, name, lastCompactionId=ids[1]) == [(ids[2], "k=1")]


class TestMetrics:
    def test_kept_and_removed(self, hive4: ThriftClient, name: str) -> None:
        data = CompactionMetricsDataStruct(
            dbname=name,
            tblname="t",
            type=CompactionMetricsMetricType.NUM_DELTAS,
            metricvalue=5,
            version=0,
            threshold=3,
        )
        for value in (5, 7, 1):
            assert hive4.update_compaction_metrics_data(data.replace(metricvalue=value)) is True
        request = CompactionMetricsDataRequest(dbName=name, tblName="t", type=CompactionMetricsMetricType.NUM_DELTAS)
        assert hive4.remove_compaction_metrics_data(request) is None


def test_columns_with_statistics(hive4: ThriftClient, client: ThriftClient, db: str) -> None:
    client.create_table(table(db))
    what = CompactionInfoStruct(id=1, dbname=db, tablename="t", type=MAJOR)
    assert hive4.find_columns_with_stats(what) == []
    assert hive4.find_columns_with_stats(what.replace(tablename="nosuch")) == []
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
    statistics = ColumnStatistics(
        statsDesc=ColumnStatisticsDesc(isTblLevel=True, dbName=db, tableName="t"),
        statsObj=[ColumnStatisticsObj(colName="id", colType="bigint", statsData=data)],
    )
    client.update_table_column_statistics(statistics)
    assert hive4.find_columns_with_stats(what) == ["id"]

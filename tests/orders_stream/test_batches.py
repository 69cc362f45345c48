"""The batches of a writer in plain Python: each is written once, whatever happens to it and to its partitions."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from thrift.transport.TTransport import TTransportException

from lake.client.batches import BatchError, BatchWriter, LateCounts, reference
from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import CommitPartitionsRequest
from tests.orders_stream import lake
from tests.orders_stream.lake import at, hour
from tests.support.server import MetastoreServer
from tests.support.target import local_path


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as opened:
        yield opened


def commit(client: ThriftClient, table: str, *names: str) -> None:
    client.lake_commit_partitions(CommitPartitionsRequest(table=lake.reference(table), names=list(names)))


def late_rows(client: ThriftClient, table: str) -> LateCounts:
    late = client.lake_get_watermark(lake.reference(table)).late
    return LateCounts(late.rerouted, late.reopened, late.dropped)


class Interrupting(ThriftClient):
    """A connection at which something happens before or after a call; `acts` are shared by a writer's connections."""

    def __init__(self, server: MetastoreServer, acts: "Acts") -> None:
        super().__init__(server.host, server.port)
        self._acts = acts

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        self._acts.happen(self._acts.before, name)
        answer = super().call(name, *args, **named)
        self._acts.happen(self._acts.after, name)
        return answer


class Acts:
    """What is to happen before or after the next calls of a method, one for each call."""

    def __init__(self) -> None:
        self.before: dict[str, list[Callable[[], None]]] = {}
        self.after: dict[str, list[Callable[[], None]]] = {}

    @staticmethod
    def happen(acts: dict[str, list[Callable[[], None]]], name: str) -> None:
        if waiting := acts.get(name):
            waiting.pop(0)()


def break_connection() -> None:
    raise TTransportException(TTransportException.END_OF_FILE, "somebody pulled the plug")


@pytest.fixture
def acts() -> Acts:
    return Acts()


@pytest.fixture
def writer_of(metastore_server: MetastoreServer, acts: Acts) -> Callable[..., BatchWriter]:
    def make(table: str, name: str = "w", **options: Any) -> BatchWriter:
        return BatchWriter(lambda: Interrupting(metastore_server, acts), table, name, **options)

    return make


Make = Callable[..., BatchWriter]


def test_a_partition_is_seen_when_the_watermark_has_passed_it(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        first = lake.write(writer.begin(0), {hour(0): [1, 2], hour(1): [3]}, at(0.2))
        assert (first.watermark, list(first.committed), first.repeated) == (at(0.2), [], False)
        assert lake.ready(client, table) == set()
        second = lake.write(writer.begin(1), {hour(1): [4]}, at(1.1))
        assert second.watermark == at(1.1)
        lake.wait_until_ready(client, table, hour(0))
    assert lake.rows(client, table) == {hour(0): [1, 2], hour(1): [3, 4]}
    location = lake.states(client, table)[hour(0)].location
    assert (local_path(location) / "_SUCCESS").exists()


def test_a_batch_that_was_accepted_is_done(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        lake.write(writer.begin(3), {hour(0): [1]}, at(0))
        assert writer.begin(3) is None
        assert writer.begin(2) is None
        assert writer.begin(4) is not None
    with writer_of(table) as restarted:
        assert restarted.begin(3) is None
    with writer_of(table, "another") as another:
        assert another.begin(3) is not None


def test_of_two_runs_of_a_batch_one_counts(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as one, writer_of(table) as two:
        first, second = one.begin(0), two.begin(0)
        assert first is not None and second is not None
        assert first.staging_location != second.staging_location
        staged_first, staged_second = lake.stage(first, {hour(0): [1]}), lake.stage(second, {hour(0): [1]})
        assert not second.report({"s": at(0)}, staged_second).repeated
        assert first.report({"s": at(0)}, staged_first).repeated
    assert lake.rows(client, table) == {hour(0): [1]}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "method",
    ["lake_begin_batch", "lake_route_partitions", "get_table_req", "add_partitions_req", "lake_report_batch"],
)
def test_a_lost_connection_loses_and_doubles_nothing(
    client: ThriftClient, writer_of: Make, acts: Acts, method: str, moment: str
) -> None:
    table = lake.create_table(client)
    getattr(acts, moment)[method] = [break_connection, break_connection]
    with writer_of(table) as writer:
        lake.write(writer.begin(0), {hour(0): [1], hour(1): [2]}, at(0))
        assert getattr(acts, moment)[method] == []
        assert writer.begin(0) is None
        assert writer.begin(1) is not None
    assert lake.rows(client, table) == {hour(0): [1], hour(1): [2]}


def test_the_metastore_may_be_away_for_a_while(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = MetastoreServer(tmp_path_factory.mktemp("away") / "data", "--workers", "1")
    with server:
        with ThriftClient(server.host, server.port) as client:
            table = lake.create_table(client)
        with (
            BatchWriter(server.uri, table, "w", retry_seconds=0.5) as impatient,
            BatchWriter(server.uri, table, "w") as writer,
        ):
            batch = writer.begin(0)
            assert batch is not None
            staged = lake.stage(batch, {hour(0): [1]})
            server.kill()
            with pytest.raises((TTransportException, OSError)):
                impatient.begin(0)
            server.start()
            batch.report({"s": at(0)}, staged)
            with ThriftClient(server.host, server.port) as client:
                assert lake.rows(client, table) == {hour(0): [1]}


def test_of_several_servers_one_is_enough(metastore_server: MetastoreServer, client: ThriftClient) -> None:
    table = lake.create_table(client)
    uris = f"thrift://127.0.0.1:1,{metastore_server.uri}"
    with BatchWriter(uris, table, "w") as writer:
        assert writer.begin(0) is not None


def test_an_error_of_the_request_is_raised_at_once(metastore_server: MetastoreServer) -> None:
    with BatchWriter(metastore_server.uri, "nowhere.t", "w") as writer, pytest.raises(NoSuchObjectException):
        writer.begin(0)
    calls = []

    def refuse(_client: ThriftClient) -> None:
        calls.append(1)
        raise MetaException("no such luck")

    with ReconnectingClient(connect_to(metastore_server.uri)) as client, pytest.raises(MetaException):
        client.call(refuse)
    assert len(calls) == 1


def test_a_database_that_is_away_is_waited_for(metastore_server: MetastoreServer) -> None:
    calls = []

    def answer(_client: ThriftClient) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise MetaException("the metastore's database can't be reached; try again later")
        return "here"

    with ReconnectingClient(connect_to(metastore_server.uri)) as client:
        assert client.call(answer) == "here"
    assert len(calls) == 3


class TestLateRows:
    """A partition turned ready before its last rows came."""

    def ready_table(self, client: ThriftClient, writer: Callable[..., BatchWriter], late: str) -> str:
        """Hour 0 is ready with row 1, hour 1 is open with row 2."""
        table = lake.create_table(client, late=late)
        with writer(table) as opened:
            lake.write(opened.begin(0), {hour(0): [1], hour(1): [2]}, at(0.5))
            lake.write(opened.begin(1), {}, at(1.5))
        lake.wait_until_ready(client, table, hour(0))
        return table

    def test_next(self, client: ThriftClient, writer_of: Make) -> None:
        table = self.ready_table(client, writer_of, "next")
        with writer_of(table) as writer:
            outcome = lake.write(writer.begin(2), {hour(0): [3, 4], hour(1): [5]}, at(0.7))
        assert outcome.late == LateCounts(rerouted=2)
        assert [(route.target, route.action) for route in outcome.routes] == [(hour(1), "next"), (hour(1), "write")]
        assert lake.rows(client, table) == {hour(0): [1], hour(1): [2, 3, 4, 5]}
        assert late_rows(client, table) == LateCounts(rerouted=2)

    def test_reopen(self, client: ThriftClient, writer_of: Make) -> None:
        table = self.ready_table(client, writer_of, "reopen")
        with writer_of(table) as writer:
            outcome = lake.write(writer.begin(2), {hour(0): [3, 4]}, at(0.7))
        assert outcome.late == LateCounts(reopened=2)
        assert lake.rows(client, table) == {hour(0): [1, 3, 4], hour(1): [2]}
        assert late_rows(client, table) == LateCounts(reopened=2)

    def test_drop(self, client: ThriftClient, writer_of: Make) -> None:
        table = self.ready_table(client, writer_of, "drop")
        with writer_of(table) as writer:
            outcome = lake.write(writer.begin(2), {hour(0): [3, 4], hour(1): [5]}, at(0.7))
        assert outcome.late == LateCounts(dropped=2)
        assert lake.rows(client, table) == {hour(0): [1], hour(1): [2, 5]}
        assert late_rows(client, table) == LateCounts(dropped=2)

    def test_a_batch_of_late_rows_alone_is_dropped_once(self, client: ThriftClient, writer_of: Make) -> None:
        table = self.ready_table(client, writer_of, "drop")
        with writer_of(table) as writer:
            assert lake.write(writer.begin(2), {hour(0): [3]}, at(0.7)).late == LateCounts(dropped=1)
            assert writer.begin(2) is None
        assert late_rows(client, table) == LateCounts(dropped=1)

    def test_late_counts_of_a_repeated_report_count_once(
        self, client: ThriftClient, writer_of: Make, acts: Acts
    ) -> None:
        table = self.ready_table(client, writer_of, "next")
        acts.after["lake_report_batch"] = [break_connection]
        with writer_of(table) as writer:
            assert lake.write(writer.begin(2), {hour(0): [3]}, at(0.7)).repeated
        assert late_rows(client, table) == LateCounts(rerouted=1)
        assert lake.rows(client, table) == {hour(0): [1], hour(1): [2, 3]}


class TestRefusal:
    """A partition turns ready between a batch's question where its rows go and its report."""

    @pytest.mark.parametrize(
        ("late", "counts", "rows"),
        [
            ("next", LateCounts(rerouted=2), {hour(0): [1], hour(1): [2, 3, 4]}),
            ("reopen", LateCounts(reopened=2), {hour(0): [1, 2, 3], hour(1): [4]}),
            ("drop", LateCounts(dropped=2), {hour(0): [1], hour(1): [4]}),
        ],
    )
    def test_rows_are_routed_anew(
        self,
        client: ThriftClient,
        writer_of: Make,
        acts: Acts,
        late: str,
        counts: LateCounts,
        rows: dict[str, list[int]],
    ) -> None:
        table = lake.create_table(client, late=late)
        with writer_of(table) as writer:
            lake.write(writer.begin(0), {hour(0): [1]}, at(0))
            acts.before["lake_report_batch"] = [lambda: commit(client, table, hour(0))]
            outcome = lake.write(writer.begin(1), {hour(0): [2, 3], hour(1): [4]}, at(0.1))
        assert (outcome.rejections, outcome.late) == (1, counts)
        assert lake.rows(client, table) == rows
        assert late_rows(client, table) == counts

    def test_again_and_again(self, client: ThriftClient, writer_of: Make, acts: Acts) -> None:
        """Each time the next partition turns ready as well, also one that the batch has just added."""
        table = lake.create_table(client)
        acts.before["lake_report_batch"] = [lambda n=n: commit(client, table, hour(n)) for n in range(3)]
        with writer_of(table) as writer:
            outcome = lake.write(writer.begin(0), {hour(0): [1]}, at(0))
        assert outcome.rejections == 3
        assert {name: found for name, found in lake.rows(client, table).items() if found} == {hour(3): [1]}

    def test_not_for_ever(self, client: ThriftClient, writer_of: Make, acts: Acts) -> None:
        table = lake.create_table(client)
        acts.before["lake_report_batch"] = [lambda n=n: commit(client, table, hour(n)) for n in range(30)]
        with writer_of(table) as writer:
            with pytest.raises(BatchError, match=r"batch 0 of w was refused 21 times.*hr=20"):
                lake.write(writer.begin(0), {hour(0): [1]}, at(0))
            acts.before.clear()
            lake.write(writer.begin(0), {hour(0): [1]}, at(0))
        assert {name: found for name, found in lake.rows(client, table).items() if found} == {hour(21): [1]}


def test_what_earlier_batches_left_is_cleared(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        given_up, batch = writer.begin(0), writer.begin(0)
        assert given_up is not None and batch is not None
        lake.stage(given_up, {hour(0): [1]})
        lake.write(batch, {hour(0): [1]}, at(0))
        first = local_path(given_up.staging_location).parent
        assert first.name == "0"
        assert list(first.rglob("*.parquet")) != []
        second = writer.begin(1)
        assert second is not None
        assert not first.exists()
        lake.stage(second, {hour(0): [2]})
        assert writer.begin(1) is not None
        # Somebody may just be reporting the other run of the same batch.
        assert local_path(second.staging_location).exists()
    assert lake.rows(client, table) == {hour(0): [1]}


def test_partitions_may_be_spelled_otherwise(client: ThriftClient, writer_of: Make) -> None:
    """Hive escapes less than this, and in upper case."""
    table = lake.create_table(client, mode="manual")
    with writer_of(table) as writer:
        outcome = lake.write(writer.begin(0), {"dt=a b%2fc/hr=%30": [1]}, at(0))
    assert [(route.name, route.target) for route in outcome.routes] == [("dt=a b%2fc/hr=%30", "dt=a b%2Fc/hr=0")]
    assert lake.rows(client, table) == {"dt=a b%2Fc/hr=0": [1]}


def test_a_batch_without_rows(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        batch = writer.begin(0)
        assert batch is not None
        outcome = batch.report({}, {})
        assert (outcome.repeated, outcome.watermark) == (False, None)
        assert writer.begin(0) is None
    assert lake.states(client, table) == {}


def test_each_source_has_its_own_progress(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        batch = writer.begin(0)
        assert batch is not None
        outcome = batch.report({"fast": at(5), "slow": at(1)}, lake.stage(batch, {hour(1): [1], hour(5): [2]}))
        assert outcome.watermark == at(1)
        assert lake.write(writer.begin(1), {}, at(3), source="slow").watermark == at(3)


def test_the_chain_that_is_ahead_makes_partitions_ready(client: ThriftClient, writer_of: Make) -> None:
    """Two chains have the same stream, and the second one is further."""
    table = lake.create_table(client)
    with writer_of(table, "a", chain="primary") as primary, writer_of(table, "b", chain="stand-by") as stand_by:
        lake.write(primary.begin(0), {hour(0): [1]}, at(0.5))
        lake.write(stand_by.begin(0), {}, at(1.5))
        lake.wait_until_ready(client, table, hour(0))
    assert lake.states(client, table)[hour(0)].committedBy == "stand-by"


def test_a_file_that_is_not_there_is_an_error(client: ThriftClient, writer_of: Make) -> None:
    table = lake.create_table(client)
    with writer_of(table) as writer:
        batch = writer.begin(0)
        assert batch is not None
        staged = lake.stage(batch, {hour(0): [1]})
        (local_path(batch.staging_location) / batch.file_name(0)).unlink()
        with pytest.raises(InvalidOperationException, match="is not there"):
            batch.report({"s": at(0)}, staged)


@pytest.mark.parametrize("name", ["t", "a.b.c.d", "a.", ".t", ""])
def test_a_table_is_named_with_its_database(name: str) -> None:
    with pytest.raises(ValueError, match=r"database\.table"):
        reference(name)

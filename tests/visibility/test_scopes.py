"""Who sees uncommitted partitions: four scopes, of which the narrowest counts."""

from collections.abc import Callable
from itertools import product

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsStatsRequest,
)
from lake.protocol.lake import ListPartitionsRequest, TableReference
from tests.support.builders import view
from tests.support.expect import refused
from tests.visibility.flags import UNCOMMITTED, commit, make_table, new, readiness, reopen
from tests.visibility.readers import DECORATION, SCOPE, Readers, RecordingClient
from tests.visibility.recipes import keep_statistics

READY, HIDDEN = "dt=a/hr=1", "dt=b/hr=1"


@pytest.fixture(autouse=True)
def filled(client: ThriftClient, db: str) -> None:
    make_table(client, db)
    client.add_partitions([new(db, "a", "1"), new(db, "b", "1", commit="false")])


def listed(client: ThriftClient, db: str, name: str, include: bool | None) -> list[str]:
    """Names, by our own call, which may say what it wants."""
    request = ListPartitionsRequest(TableReference(database=db, table=name), includeUncommitted=include)
    return [state.name for state in client.lake_list_partitions(request).partitions]


CONNECTIONS: dict[str, tuple[Callable[[Readers], RecordingClient], str | None]] = {
    "usual": (Readers.plain, None),
    "usual, true": (Readers.plain, "true"),
    "usual, false": (Readers.plain, "false"),
    "listener": (Readers.listener, None),
    "listener, true": (Readers.listener, "true"),
    "listener, false": (Readers.listener, "false"),
}


class TestNarrowestWins:
    @pytest.mark.parametrize("how", CONNECTIONS)
    def test_all_together(self, readers: Readers, db: str, how: str) -> None:
        connect, value = CONNECTIONS[how]
        client = connect(readers)
        if value is not None:
            client.setMetaConf(SCOPE, value)
        of_connection = value == "true" if value is not None else how == "listener"
        for name, include in product(("t", "t" + DECORATION), (None, True, False)):
            sees = name != "t" or (of_connection if include is None else include)
            assert listed(client, db, name, include) == ([READY, HIDDEN] if sees else [READY]), (name, include)
        for name in ("t", "t" + DECORATION):
            sees = name != "t" or of_connection
            assert client.get_partition_names(db, name, -1) == ([READY, HIDDEN] if sees else [READY])


class TestConnection:
    def test_is_told_what_it_set(self, readers: Readers) -> None:
        client = readers.plain()
        assert client.getMetaConf(SCOPE) == "false"
        client.setMetaConf(SCOPE, "true")
        assert client.getMetaConf(SCOPE) == "true"
        assert readers.listener().getMetaConf(SCOPE) == "true"

    @pytest.mark.parametrize("key", ["includeUnCommit", "includeuncommit", "INCLUDEUNCOMMIT"])
    @pytest.mark.parametrize("value", ["true", "TRUE", " True "])
    def test_in_any_case(self, client: RecordingClient, db: str, key: str, value: str) -> None:
        client.setMetaConf(key, value)
        assert client.get_partition_names(db, "t", -1) == [READY, HIDDEN]

    @pytest.mark.parametrize("value", ["", "1", "yes", "maybe", None])
    def test_nonsense(self, client: RecordingClient, db: str, value: str | None) -> None:
        for before in ("true", "false"):
            client.setMetaConf(SCOPE, before)
            with refused(MetaException, message="includeUnCommit must be true or false"):
                client.setMetaConf(SCOPE, value)
            assert client.getMetaConf(SCOPE) == before

    def test_nobody_elses(self, readers: Readers, db: str) -> None:
        seeing, other = readers.metaconf(), readers.plain()
        assert seeing.get_partition_names(db, "t", -1) == [READY, HIDDEN]
        assert other.get_partition_names(db, "t", -1) == [READY]
        seeing.setMetaConf(SCOPE, "false")
        assert seeing.get_partition_names(db, "t", -1) == [READY]

    def test_over_when_it_is_closed(self, readers: Readers, db: str) -> None:
        readers.metaconf().close()
        assert readers.plain().get_partition_names(db, "t", -1) == [READY]

    def test_a_decorated_name_is_no_scope_of_the_connection(self, client: RecordingClient, db: str) -> None:
        assert client.get_partition_names(db, "t" + DECORATION, -1) == [READY, HIDDEN]
        assert client.get_partition_names(db, "t", -1) == [READY]

    def test_other_settings_stay_hives(self, client: RecordingClient) -> None:
        client.setMetaConf("hive.metastore.try.direct.sql", "false")
        assert client.getMetaConf("hive.metastore.try.direct.sql") == "false"
        with refused(MetaException):
            client.setMetaConf("includeUnCommitted", "true")


class TestWhatIsSeen:
    """A partition is seen, or isn't, from the moment that its flag turned."""

    def test_at_once(self, readers: Readers, db: str) -> None:
        writer, reader = readers.plain(), readers.plain()
        for _ in range(3):
            commit(writer, db, HIDDEN)
            assert reader.get_partition_names(db, "t", -1) == [READY, HIDDEN]
            reopen(writer, db, HIDDEN)
            assert reader.get_partition_names(db, "t", -1) == [READY]

    def test_limits_count_what_is_seen(self, client: RecordingClient, db: str) -> None:
        client.add_partitions([new(db, "0", str(n), commit="false") for n in range(3)])
        client.add_partition(new(db, "c", "1"))
        assert client.get_partition_names(db, "t", 1) == [READY]
        assert [one.values for one in client.get_partitions(db, "t", 2)] == [["a", "1"], ["c", "1"]]
        request = ListPartitionsRequest(TableReference(database=db, table="t"), limit=1)
        first = client.lake_list_partitions(request).partitions
        assert [one.name for one in first] == [READY]
        rest = client.lake_list_partitions(request.replace(after=READY, limit=-1)).partitions
        assert [one.name for one in rest] == ["dt=c/hr=1"]

    def test_more_than_a_page(self, client: RecordingClient, db: str) -> None:
        """Lists leave in pieces, whose count is said at the beginning. (Partitions of a view need no directories.)"""
        client.create_table(view(db, keys=("dt",)))
        flags = [UNCOMMITTED if number % 500 == 1 else {} for number in range(5_020)]
        client.add_partitions([Partition([f"{n:05}"], db, "v", parameters=dict(flag)) for n, flag in enumerate(flags)])
        hidden = sum(flag == UNCOMMITTED for flag in flags)
        for name, count in (("v", 5_020 - hidden), ("v" + DECORATION, 5_020)):
            assert len(client.get_partitions(db, name, -1)) == count
            assert len(client.get_partitions(db, name, 5_005)) == 5_005
            assert client.get_num_partitions_by_filter(db, name, "") == count

    def test_statistics_of_many(self, client: RecordingClient, db: str) -> None:
        """What is counted as found is what is seen."""
        for name in (READY, HIDDEN):
            keep_statistics(client, db, name, numDVs=5)
        request = PartitionsStatsRequest(dbName=db, tblName="t", colNames=["id"], partNames=[READY, HIDDEN])
        assert client.get_aggr_stats_for(request).partsFound == 1
        assert client.get_aggr_stats_for(request.replace(tblName="t" + DECORATION)).partsFound == 2
        assert client.get_partitions_statistics_req(request).partStats.keys() == {READY}

    def test_missing_and_hidden_are_the_same(self, client: RecordingClient, db: str) -> None:
        messages = []
        for value in ("b", "z"):
            with pytest.raises(NoSuchObjectException) as caught:
                client.get_partition(db, "t", [value, "1"])
            messages.append(str(caught.value).replace(f"[{value},", "[x,"))
        assert messages[0] == messages[1]

    def test_those_with_a_scope_may_write(self, readers: Readers, db: str) -> None:
        for client in (readers.metaconf(), readers.listener()):
            read = client.get_partition(db, "t", ["b", "1"])
            client.alter_partition(db, "t", read.replace(parameters={"mine": "1"}))
        with refused(InvalidOperationException):
            read = client.get_partition(db, "t" + DECORATION, ["b", "1"])
            client.alter_partition(db, "t", read)
        assert readiness(client, db) == {READY: True, HIDDEN: False}

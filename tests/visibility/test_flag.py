"""The flag of a partition: what sets it, and what must leave it alone."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    AlreadyExistsException,
    AlterPartitionsRequest,
    DropPartitionsRequest,
    FieldSchema,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    RequestPartsSpec,
)
from tests.support.builders import partition, table, view
from tests.support.expect import files_below, refused
from tests.support.streams import report
from tests.support.target import local_path
from tests.visibility.flags import (
    COMMITTED,
    MODE,
    POLICY,
    UNCOMMITTED,
    commit,
    find,
    make_table,
    new,
    of_flag,
    readiness,
    reference,
    reopen,
    states,
)
from tests.visibility.readers import Readers

A, B, C = "dt=2026-01-01/hr=00", "dt=2026-01-01/hr=01", "dt=2026-01-02/hr=00"
OF_A, OF_B, OF_C = ("2026-01-01", "00"), ("2026-01-01", "01"), ("2026-01-02", "00")


def place(client: ThriftClient, db: str, *values: str) -> Path:
    """The directory of a partition."""
    return local_path(find(client, db, *values).sd.location)


# --- adding ---------------------------------------------------------------------------------------------------

# None of these turns a partition ready while a test looks.
MODES: dict[str | None, dict[str, str]] = {
    None: {},
    "none": {},
    "manual": {},
    "event-time": {"partition.time-extractor.timestamp-pattern": "$dt $hr:00:00"},
    "process-time": {"sink.partition-commit.delay": "1 d"},
}

ADDING: dict[str, Callable[[ThriftClient, str, Partition], object]] = {
    "add_partition": lambda client, db, one: client.add_partition(one),
    "add_partition_with_environment_context": lambda client, db, one: client.add_partition_with_environment_context(
        one, None
    ),
    "add_partitions": lambda client, db, one: client.add_partitions([one]),
    "add_partitions_req": lambda client, db, one: client.add_partitions_req(
        AddPartitionsRequest(db, "t", [one], False)
    ),
    "add_partitions_pspec": lambda client, db, one: client.add_partitions_pspec(
        [PartitionSpec(db, "t", partitionList=PartitionListComposingSpec([one]))]
    ),
}

APPENDING: dict[str, Callable[[ThriftClient, str], Partition]] = {
    "append_partition": lambda client, db: client.append_partition(db, "t", list(OF_A)),
    "append_partition_with_environment_context": lambda client, db: client.append_partition_with_environment_context(
        db, "t", list(OF_A), None
    ),
    "append_partition_by_name": lambda client, db: client.append_partition_by_name(db, "t", A),
    "append_partition_by_name_with_environment_context": lambda client, db: (
        client.append_partition_by_name_with_environment_context(db, "t", A, None)
    ),
}


class TestAdding:
    @pytest.mark.parametrize("said", [None, "false", "true", "TRUE", " False "])
    @pytest.mark.parametrize("mode", MODES)
    def test_what_is_said_counts_else_the_table(
        self, client: ThriftClient, db: str, mode: str | None, said: str | None
    ) -> None:
        properties = MODES[mode] | ({MODE: mode} if mode else {})
        client.create_table(table(db, keys=("dt", "hr"), parameters=properties))
        before = time.time_ns() // 1_000_000
        client.add_partition(new(db, *OF_A, **({} if said is None else {"commit": said})))
        ready = mode in (None, "none") if said is None else said.strip().lower() == "true"
        state = states(client, db)[A]
        assert state.ready is ready
        assert client.get_partition_names(db, "t", -1) == ([A] if ready else [])
        given = of_flag(find(client, db, *OF_A).parameters)
        if not ready:
            assert given == {"commit": "false", "commit.opened": str(state.openedTime)}
            assert state.openedTime >= before and state.commitTime is None
        elif said is None:
            assert given == {} and state.commitTime is None and state.openedTime is None
        else:
            assert given == {"commit": "true", "commit.time": str(state.commitTime)}
            assert state.commitTime >= before and state.openedTime is None

    @pytest.mark.parametrize("method", ADDING)
    def test_every_way_to_add(self, client: ThriftClient, db: str, method: str) -> None:
        make_table(client, db, mode="manual")
        for values, said in ((OF_A, {}), (OF_B, COMMITTED), (OF_C, UNCOMMITTED)):
            ADDING[method](client, db, new(db, *values, **said))
        assert readiness(client, db) == {A: False, B: True, C: False}

    @pytest.mark.parametrize("mode", [None, "manual"])
    @pytest.mark.parametrize("method", APPENDING)
    def test_every_way_to_append(self, client: ThriftClient, db: str, method: str, mode: str | None) -> None:
        make_table(client, db, mode=mode)
        answer = APPENDING[method](client, db)
        assert readiness(client, db) == {A: mode is None}
        assert (answer.parameters.get("commit") == "false") is (mode == "manual")

    def test_the_answer_says_what_it_became(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        answer = client.add_partition(new(db, *OF_A, note="x"))
        assert answer.parameters["commit"] == "false" and answer.parameters["note"] == "x"
        assert answer.parameters == find(client, db, *OF_A).parameters

    def test_who_committed(self, client: ThriftClient, db: str) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A, commit="true", **{"commit.by": "loader"}))
        assert states(client, db)[A].committedBy == "loader"

    def test_times_are_the_servers(self, client: ThriftClient, db: str) -> None:
        make_table(client, db)
        made_up = {"commit.time": "5", "commit.opened": "6", "commit.by": "x", "commit.last": "7"}
        client.add_partitions([new(db, *OF_A, **made_up), new(db, *OF_B, commit="false", **made_up)])
        assert of_flag(find(client, db, *OF_A).parameters) == {}
        state = states(client, db)[B]
        assert of_flag(find(client, db, *OF_B).parameters) == {
            "commit": "false",
            "commit.opened": str(state.openedTime),
        }
        assert state.openedTime > 6

    def test_a_hidden_one_is_in_the_way(self, client: ThriftClient, db: str) -> None:
        """By this a load path learns that the partition exists."""
        make_table(client, db, mode="manual")
        client.add_partition(new(db, *OF_A))
        for method in ADDING:
            with refused(AlreadyExistsException):
                ADDING[method](client, db, new(db, *OF_A))
        for append in APPENDING.values():
            with refused(AlreadyExistsException):
                append(client, db)
        assert readiness(client, db) == {A: False}

    @pytest.mark.parametrize("value", ["maybe", "", "1", "yes"])
    def test_nonsense(self, client: ThriftClient, db: str, warehouse: Path, value: str) -> None:
        make_table(client, db)
        with refused(MetaException, message=f"commit of a partition must be true or false, not {value!r}"):
            client.add_partitions([new(db, *OF_A), new(db, *OF_B, commit=value)])
        assert readiness(client, db) == {}
        assert not (warehouse / f"{db}.db" / "t" / A).exists()


# --- altering -------------------------------------------------------------------------------------------------

ALTERING: dict[str, Callable[[ThriftClient, str, Partition], object]] = {
    "alter_partition": lambda client, db, one: client.alter_partition(db, "t", one),
    "alter_partition_with_environment_context": lambda client, db, one: client.alter_partition_with_environment_context(
        db, "t", one, None
    ),
    "alter_partitions": lambda client, db, one: client.alter_partitions(db, "t", [one]),
    "alter_partitions_with_environment_context": lambda client, db, one: (
        client.alter_partitions_with_environment_context(db, "t", [one], None)
    ),
    "alter_partitions_req": lambda client, db, one: client.alter_partitions_req(
        AlterPartitionsRequest(dbName=db, tableName="t", partitions=[one])
    ),
    "rename_partition": lambda client, db, one: client.rename_partition(db, "t", [], one),
}


def altered(client: ThriftClient, db: str, *values: str, **parameters: str) -> dict[str, str]:
    """Alters a partition with fresh parameters, and returns what is there then of the flag."""
    client.alter_partition(db, "t", find(client, db, *values).replace(parameters=parameters))
    return of_flag(find(client, db, *values).parameters)


class TestAltering:
    @pytest.mark.parametrize("method", ALTERING)
    def test_every_way(self, client: ThriftClient, db: str, method: str) -> None:
        make_table(client, db, mode="manual")
        client.add_partition(new(db, *OF_A, old="1"))
        there = find(client, db, *OF_A)

        def alter(**parameters: str) -> bool:
            ALTERING[method](client, db, there.replace(parameters=parameters))
            return states(client, db)[A].ready

        assert alter(fresh="2") is False
        parameters = find(client, db, *OF_A).parameters
        assert of_flag(parameters) == of_flag(there.parameters)
        assert parameters["fresh"] == "2" and "old" not in parameters
        assert alter(commit="true") is True
        assert alter(fresh="3") is True
        assert alter(commit="false") is False

    @pytest.mark.parametrize("said", [{}, COMMITTED, UNCOMMITTED])
    def test_without_the_key_nothing_changes(self, client: ThriftClient, db: str, said: dict[str, str]) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A, **said))
        before, state = of_flag(find(client, db, *OF_A).parameters), states(client, db)[A]
        others = {"commit.time": "1", "commit.opened": "2", "commit.by": "x", "commit.last": "3", "note": "x"}
        assert altered(client, db, *OF_A, **others) == before
        assert altered(client, db, *OF_A) == before
        assert states(client, db)[A] == state

    @pytest.mark.parametrize("given", [None, "1", "99999999999999", "soon", "", "-4", "²"])
    def test_what_was_never_committed_is_committed_whatever_time_is_told(
        self, client: ThriftClient, db: str, given: str | None
    ) -> None:
        make_table(client, db, mode="manual")
        client.add_partition(new(db, *OF_A))
        before = time.time_ns() // 1_000_000
        flag = altered(client, db, *OF_A, commit="true", **({} if given is None else {"commit.time": given}))
        assert flag.keys() == {"commit", "commit.time"}
        assert before <= int(flag["commit.time"]) <= time.time_ns() // 1_000_000 + 1
        assert states(client, db)[A].commitTime == int(flag["commit.time"])

    def test_who_committed(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        client.add_partition(new(db, *OF_A))
        assert altered(client, db, *OF_A, commit="true", **{"commit.by": "me"})["commit.by"] == "me"
        assert states(client, db)[A].committedBy == "me"
        assert "commit.by" not in altered(client, db, *OF_A, commit="false")
        assert "commit.by" not in altered(client, db, *OF_A, commit="true")

    def test_committing_what_is_ready_changes_nothing(self, client: ThriftClient, db: str) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A, commit="true"))
        before = of_flag(find(client, db, *OF_A).parameters)
        for given in ({}, {"commit.time": "1"}, {"commit.time": "99999999999999", "commit.by": "x"}):
            assert altered(client, db, *OF_A, commit="true", **given) == before

    def test_what_was_born_ready_may_say_so(self, client: ThriftClient, db: str) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A))
        flag = altered(client, db, *OF_A, commit="true", **{"commit.by": "me"})
        assert flag["commit"] == "true" and flag["commit.by"] == "me" and int(flag["commit.time"]) > 0
        assert altered(client, db, *OF_A, commit="true") == flag

    def test_opening_what_is_open_changes_nothing(self, client: ThriftClient, db: str) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A, commit="false"))
        before = of_flag(find(client, db, *OF_A).parameters)
        assert altered(client, db, *OF_A, commit="false") == before

    @pytest.mark.parametrize("said", [{}, COMMITTED])
    def test_opened_again(self, client: ThriftClient, db: str, said: dict[str, str]) -> None:
        make_table(client, db)
        client.add_partition(new(db, *OF_A, **said))
        flag = altered(client, db, *OF_A, commit="false")
        assert flag.keys() == {"commit", "commit.opened"} and flag["commit"] == "false"
        assert client.get_partition_names(db, "t", -1) == []

    @pytest.mark.parametrize("value", ["maybe", ""])
    def test_nonsense(self, client: ThriftClient, db: str, value: str) -> None:
        make_table(client, db)
        client.add_partitions([new(db, *OF_A, commit="false"), new(db, *OF_B)])
        before = [find(client, db, *values) for values in (OF_A, OF_B)]
        with refused(MetaException, message=f"must be true or false, not {value!r}"):
            client.alter_partitions(
                db,
                "t",
                [
                    before[0].replace(parameters={"x": "y", **COMMITTED}),
                    before[1].replace(parameters={"commit": value}),
                ],
            )
        assert [find(client, db, *values) for values in (OF_A, OF_B)] == before

    def test_a_table_is_none_the_wiser(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        before = client.get_table(db, "t")
        client.add_partition(new(db, *OF_A))
        commit(client, db, A)
        reopen(client, db, A)
        assert client.get_table(db, "t") == before


class TestEchoes:
    """What a client read a while ago and sends back with a change of its own."""

    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        properties = {MODE: "manual", "partition.late-rows": "reopen"}
        client.create_table(table(db, keys=("dt", "hr"), parameters=properties))
        client.add_partition(new(db, *OF_A))

    def echo(self, client: ThriftClient, db: str, read: Partition) -> dict[str, str]:
        """The flag's parameters after it came."""
        client.alter_partition(db, "t", read.replace(parameters=read.parameters | {"mine": "1"}))
        now = find(client, db, *OF_A).parameters
        assert now["mine"] == "1"
        return of_flag(now)

    def test_of_an_open_one_that_was_committed(self, client: ThriftClient, db: str) -> None:
        read = find(client, db, *OF_A)
        commit(client, db, A)
        committed = of_flag(find(client, db, *OF_A).parameters)
        assert self.echo(client, db, read) == committed
        assert readiness(client, db) == {A: True}

    def test_of_a_ready_one_that_was_opened_by_hand(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        read = find(client, db, *OF_A)
        reopen(client, db, A)
        opened = of_flag(find(client, db, *OF_A).parameters)
        assert self.echo(client, db, read) == opened
        assert readiness(client, db) == {A: False}

    def test_of_a_ready_one_that_was_opened_for_late_rows(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        read = find(client, db, *OF_A)
        report(client, reference(db), reopen=[A])
        assert readiness(client, db) == {A: False}
        opened = of_flag(find(client, db, *OF_A).parameters)
        assert self.echo(client, db, read) == opened
        assert readiness(client, db) == {A: False}

    def test_of_an_earlier_commit_than_the_last(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        first = find(client, db, *OF_A)
        reopen(client, db, A)
        commit(client, db, A)
        second = find(client, db, *OF_A)
        assert int(first.parameters["commit.time"]) < int(second.parameters["commit.time"])
        reopen(client, db, A)
        for read in (first, second):
            self.echo(client, db, read)
            assert readiness(client, db) == {A: False}

    def test_of_what_is_still_so(self, client: ThriftClient, db: str) -> None:
        read = find(client, db, *OF_A)
        assert self.echo(client, db, read) == of_flag(read.parameters)
        commit(client, db, A)
        read = find(client, db, *OF_A)
        assert self.echo(client, db, read) == of_flag(read.parameters)

    def test_a_wish_that_began_as_a_read(self, client: ThriftClient, db: str) -> None:
        """Read, changed in one parameter, sent back: as Hive's ALTER TABLE does."""
        for said in ("true", "false", "true"):
            read = find(client, db, *OF_A)
            assert self.echo(client, db, read.replace(parameters=read.parameters | {"commit": said}))["commit"] == said
            assert readiness(client, db) == {A: said == "true"}

    def test_a_wish_after_a_reopening(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        last = states(client, db)[A].commitTime
        for reopened in (lambda: reopen(client, db, A), self.reopened_for_late_rows(client, db)):
            reopened()
            assert altered(client, db, *OF_A, commit="true")["commit"] == "true"
            now = states(client, db)[A].commitTime
            assert now > last
            last = now

    def reopened_for_late_rows(self, client: ThriftClient, db: str) -> Callable[[], object]:
        return lambda: report(client, reference(db), reopen=[A])

    def test_a_time_after_the_last_commit_is_unknown(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        last = states(client, db)[A].commitTime
        reopen(client, db, A)
        assert altered(client, db, *OF_A, commit="true", **{"commit.time": str(last)})["commit"] == "false"
        assert altered(client, db, *OF_A, commit="true", **{"commit.time": str(last + 1)})["commit"] == "true"
        reopen(client, db, A)
        assert altered(client, db, *OF_A, commit="true", **{"commit.time": "soon"})["commit"] == "true"


# --- commit and reopen ----------------------------------------------------------------------------------------


class TestCommitAndReopen:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        client.add_partitions([new(db, *values) for values in (OF_A, OF_B, OF_C)])

    def test_once_is_enough(self, client: ThriftClient, db: str) -> None:
        first = commit(client, db, A, by="me")
        assert (first.committed, first.alreadyReady) == ([A], [])
        before = find(client, db, *OF_A)
        again = commit(client, db, A, by="you")
        assert (again.committed, again.alreadyReady) == ([], [A])
        assert find(client, db, *OF_A) == before and before.parameters["commit.by"] == "me"

    def test_opened_once_is_enough(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        first = reopen(client, db, A)
        assert (first.reopened, first.alreadyUncommitted) == ([A], [])
        before = find(client, db, *OF_A)
        again = reopen(client, db, A)
        assert (again.reopened, again.alreadyUncommitted) == ([], [A])
        assert find(client, db, *OF_A) == before

    def test_many(self, client: ThriftClient, db: str) -> None:
        commit(client, db, B)
        answer = commit(client, db, C, A, B, A)
        assert (answer.committed, answer.alreadyReady) == ([A, C], [B])
        assert len({state.commitTime for state in states(client, db).values() if state.name != B}) <= 2
        answer = reopen(client, db, A, C)
        assert (answer.reopened, answer.alreadyUncommitted) == ([A, C], [])
        assert readiness(client, db) == {A: False, B: True, C: False}

    def test_none(self, client: ThriftClient, db: str) -> None:
        assert commit(client, db).committed == [] and reopen(client, db).reopened == []
        assert readiness(client, db) == {A: False, B: False, C: False}

    def test_all_or_none(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message="dt=nosuch/hr=00"):
            commit(client, db, A, "dt=nosuch/hr=00", B)
        assert readiness(client, db) == {A: False, B: False, C: False}
        commit(client, db, A, B)
        with refused(NoSuchObjectException, message="dt=nosuch/hr=00"):
            reopen(client, db, A, "dt=nosuch/hr=00", B)
        assert readiness(client, db) == {A: True, B: True, C: False}

    def test_names_spelled_otherwise(self, client: ThriftClient, db: str) -> None:
        assert commit(client, db, "hr=00/dt=2026-01-01", table="T").committed == [A]

    @pytest.mark.parametrize("name", ["dt=2026-01-01", "nothing", "", "dt=2026-01-01/hr=00/mi=00"])
    def test_what_is_no_name(self, client: ThriftClient, db: str, name: str) -> None:
        for change in (commit, reopen):
            with refused(NoSuchObjectException, MetaException):
                change(client, db, name)
        assert readiness(client, db) == {A: False, B: False, C: False}

    def test_by_filter(self, client: ThriftClient, db: str) -> None:
        """It is asked by those who know, so it selects whatever is there."""
        answer = commit(client, db, names=None, filter="dt = '2026-01-01'")
        assert (answer.committed, answer.alreadyReady) == ([A, B], [])
        answer = commit(client, db, names=None, filter="hr = '00'")
        assert (answer.committed, answer.alreadyReady) == ([C], [A])
        reopened = reopen(client, db, names=None, filter="dt > '2026-01-01'")
        assert (reopened.reopened, reopened.alreadyUncommitted) == ([C], [])
        assert commit(client, db, names=None, filter="dt = 'nosuch'").committed == []
        assert commit(client, db, names=None, filter="").committed == [C]

    @pytest.mark.parametrize("both", [{"names": None, "filter": None}, {"names": [A], "filter": "hr = '00'"}])
    def test_names_or_a_filter(self, client: ThriftClient, db: str, both: dict[str, object]) -> None:
        for change in (commit, reopen):
            with refused(MetaException, message="either the names of partitions or a filter"):
                change(client, db, **both)

    def test_bad_questions(self, client: ThriftClient, db: str) -> None:
        for change in (commit, reopen):
            with refused(MetaException):
                change(client, db, names=None, filter="nosuch = 'x'")
            with refused(NoSuchObjectException):
                change(client, db, A, table="nosuch")
            with refused(NoSuchObjectException):
                change(client, "nosuch", A)
        assert readiness(client, db) == {A: False, B: False, C: False}

    def test_at_the_same_time(self, db: str, readers: Readers) -> None:
        """Of several who commit the same partitions each is committed by one."""
        clients = [readers.plain() for _ in range(4)]
        committed: list[str] = []

        def run(client: ThriftClient, number: int) -> None:
            names = [A, B, C] if number % 2 else [C, B, A]
            committed.extend(commit(client, db, *names, by=str(number)).committed)

        threads = [threading.Thread(target=run, args=(client, n)) for n, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(committed) == [A, B, C]
        assert readiness(clients[0], db) == {A: True, B: True, C: True}


# --- success files --------------------------------------------------------------------------------------------


class TestSuccessFiles:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        properties = {
            MODE: "manual",
            POLICY: "metastore,success-file",
            "sink.partition-commit.success-file.name": "_DONE",
            "partition.late-rows": "reopen",
        }
        client.create_table(table(db, keys=("dt", "hr"), parameters=properties))
        client.add_partitions([new(db, *OF_A), new(db, *OF_B)])

    def test_there_while_it_is_ready(self, client: ThriftClient, db: str) -> None:
        directory = place(client, db, *OF_A)
        assert files_below(directory) == []
        for turn, there in (
            (lambda: commit(client, db, A), ["_DONE"]),
            (lambda: commit(client, db, A), ["_DONE"]),
            (lambda: reopen(client, db, A), []),
            (lambda: altered(client, db, *OF_A, commit="true"), ["_DONE"]),
            (lambda: altered(client, db, *OF_A), ["_DONE"]),
            (lambda: altered(client, db, *OF_A, commit="false"), []),
            (lambda: commit(client, db, A), ["_DONE"]),
            (lambda: report(client, reference(db), reopen=[A]), []),
        ):
            turn()
            assert files_below(directory) == there
        assert files_below(place(client, db, *OF_B)) == []

    def test_added_committed(self, client: ThriftClient, db: str) -> None:
        client.add_partition(new(db, *OF_C, commit="true"))
        assert files_below(place(client, db, *OF_C)) == ["_DONE"]

    def test_not_for_one_that_exists(self, client: ThriftClient, db: str) -> None:
        with refused(AlreadyExistsException):
            client.add_partition(new(db, *OF_A, commit="true"))
        assert files_below(place(client, db, *OF_A)) == []

    def test_born_ready_is_whoever_writes_its_matter(self, client: ThriftClient, db: str) -> None:
        """Flink, which has such properties too, writes its own."""
        client.create_table(table(db, "flinks", keys=("dt", "hr"), parameters={POLICY: "metastore,success-file"}))
        added = client.add_partition(new(db, *OF_A, name="flinks"))
        assert files_below(local_path(added.sd.location)) == []

    def test_moves_along(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        client.rename_partition(db, "t", list(OF_A), find(client, db, *OF_A).replace(values=list(OF_C)))
        assert files_below(place(client, db, *OF_C)) == ["_DONE"]

    def test_what_can_not_be_written_keeps_it_open(self, client: ThriftClient, db: str) -> None:
        directory = place(client, db, *OF_A)
        directory.rmdir()
        directory.write_text("in the way")
        for turn in (
            lambda: commit(client, db, B, A),
            lambda: client.alter_partition(db, "t", find(client, db, *OF_A).replace(parameters=dict(COMMITTED))),
        ):
            with refused(MetaException, message="_DONE"):
                turn()
            assert readiness(client, db) == {A: False, B: False}

    def test_without_the_policy(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, "plain", mode="manual")
        client.add_partition(new(db, *OF_A, name="plain"))
        commit(client, db, A, table="plain")
        assert files_below(local_path(find(client, db, *OF_A, name="plain").sd.location)) == []


# --- writers without a scope ----------------------------------------------------------------------------------


class TestWritersReachHiddenOnes:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        client.add_partitions([new(db, *OF_A), new(db, *OF_B, commit="true")])

    def test_rename(self, client: ThriftClient, db: str) -> None:
        read = find(client, db, *OF_A)
        (place(client, db, *OF_A) / "data").write_text("x")
        client.rename_partition(db, "t", list(OF_A), read.replace(values=list(OF_C), parameters={"fresh": "1"}))
        assert readiness(client, db) == {B: True, C: False}
        assert of_flag(find(client, db, *OF_C).parameters) == of_flag(read.parameters)
        assert files_below(place(client, db, *OF_C)) == ["data"]

    def test_rename_and_commit(self, client: ThriftClient, db: str) -> None:
        read = find(client, db, *OF_A)
        client.rename_partition(db, "t", list(OF_A), read.replace(values=list(OF_C), parameters=dict(COMMITTED)))
        assert readiness(client, db) == {B: True, C: True}

    def test_rename_onto_one(self, client: ThriftClient, db: str) -> None:
        read = find(client, db, *OF_B)
        with refused(InvalidOperationException, message="already exists"):
            client.rename_partition(db, "t", list(OF_B), read.replace(values=list(OF_A)))
        assert readiness(client, db) == {A: False, B: True}

    def test_exchange(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, "u")
        commit(client, db, A)
        reopen(client, db, A)
        state, read = states(client, db)[A], find(client, db, *OF_A)
        (place(client, db, *OF_A) / "data").write_text("x")
        moved = client.exchange_partitions({"dt": OF_A[0], "hr": OF_A[1]}, db, "t", db, "u")
        assert [one.values for one in moved] == [list(OF_A)]
        assert readiness(client, db) == {B: True} and readiness(client, db, "u") == {A: False}
        there = find(client, db, *OF_A, name="u")
        assert of_flag(there.parameters) == of_flag(read.parameters)
        assert states(client, db, "u")[A].commitTime == state.commitTime
        assert files_below(local_path(there.sd.location)) == ["data"]

    def test_exchange_onto_one(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, "u", mode="manual")
        client.add_partition(new(db, *OF_B, name="u"))
        with refused(MetaException, message="already exists"):
            client.exchange_partitions({"dt": OF_B[0], "hr": OF_B[1]}, db, "t", db, "u")

    @pytest.mark.parametrize("by", ["values", "name", "names"])
    def test_drop(self, client: ThriftClient, db: str, by: str) -> None:
        directory = place(client, db, *OF_A)
        if by == "values":
            client.drop_partition(db, "t", list(OF_A), True)
        elif by == "name":
            client.drop_partition_by_name(db, "t", A, True)
        else:
            wanted = RequestPartsSpec(names=[A])
            gone = client.drop_partitions_req(DropPartitionsRequest(db, "t", wanted, deleteData=True))
            assert [one.values for one in gone.partitions] == [list(OF_A)]
        assert readiness(client, db) == {B: True}
        assert not directory.exists()

    def test_add_again_after_a_drop(self, client: ThriftClient, db: str) -> None:
        commit(client, db, A)
        client.drop_partition(db, "t", list(OF_A), True)
        client.add_partition(new(db, *OF_A))
        state = states(client, db)[A]
        assert not state.ready and state.commitTime is None

    def test_truncate(self, client: ThriftClient, db: str) -> None:
        before = of_flag(find(client, db, *OF_A).parameters)
        (place(client, db, *OF_A) / "data").write_text("x")
        client.truncate_table(db, "t", [A])
        assert files_below(place(client, db, *OF_A)) == []
        assert of_flag(find(client, db, *OF_A).parameters) == before
        assert readiness(client, db) == {A: False, B: True}


# --- the whole table ------------------------------------------------------------------------------------------


class TestWholeTable:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        make_table(client, db, mode="manual")
        client.add_partitions([new(db, *OF_A), new(db, *OF_B, commit="true")])
        for values in (OF_A, OF_B):
            (place(client, db, *values) / "data").write_text("x")

    def test_rename(self, client: ThriftClient, db: str, warehouse: Path) -> None:
        before = find(client, db, *OF_A).parameters
        client.alter_table(db, "t", client.get_table(db, "t").replace(tableName="renamed"))
        assert readiness(client, db, "renamed") == {A: False, B: True}
        after = find(client, db, *OF_A, name="renamed")
        assert after.parameters == before
        assert files_below(warehouse / f"{db}.db" / "renamed") == [f"{A}/data", f"{B}/data"]

    def test_columns_with_cascade(self, client: ThriftClient, db: str, seeing: ThriftClient) -> None:
        value = client.get_table(db, "t")
        value.sd.cols.append(FieldSchema("more", "int"))
        client.alter_table_with_cascade(db, "t", value, True)
        columns = [[field.name for field in one.sd.cols] for one in seeing.get_partitions(db, "t", -1)]
        assert columns == [["id", "name", "more"]] * 2
        assert readiness(client, db) == {A: False, B: True}

    def test_truncate(self, client: ThriftClient, db: str, warehouse: Path) -> None:
        client.truncate_table(db, "t", None)
        assert files_below(warehouse / f"{db}.db" / "t") == []
        assert readiness(client, db) == {A: False, B: True}

    def test_drop(self, client: ThriftClient, db: str, warehouse: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        client.add_partition(partition(db, "t", *OF_C, location=f"file:{elsewhere}", parameters=dict(UNCOMMITTED)))
        assert elsewhere.is_dir()
        client.drop_table(db, "t", True)
        assert not elsewhere.exists() and not (warehouse / f"{db}.db" / "t").exists()
        make_table(client, db)
        assert readiness(client, db) == {}

    def test_another_location(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        """Partitions stay where they are, as in Hive."""
        before = find(client, db, *OF_A)
        value = client.get_table(db, "t")
        client.alter_table(db, "t", value.replace(sd=value.sd.replace(location=f"file:{tmp_path}")))
        assert find(client, db, *OF_A) == before

    def test_another_mode(self, client: ThriftClient, db: str) -> None:
        """What a table says is about what is added from then on."""
        value = client.get_table(db, "t")
        client.alter_table(db, "t", value.replace(parameters=value.parameters | {MODE: "none"}))
        assert readiness(client, db) == {A: False, B: True}
        client.add_partition(new(db, *OF_C))
        assert readiness(client, db) == {A: False, B: True, C: True}


BAD = {
    MODE: "sometimes",
    "sink.partition-commit.delay": "a while",
    POLICY: "success-file,nosuch",
    "partition.late-rows": "lose",
    "partition.interval": "0 h",
}


@pytest.mark.parametrize("name", BAD)
class TestBadProperties:
    def bad(self, name: str) -> dict[str, str]:
        return {MODE: "event-time", "partition.time-extractor.timestamp-pattern": "$dt $hr:00:00"} | {name: BAD[name]}

    def test_at_creation(self, client: ThriftClient, db: str, warehouse: Path, name: str) -> None:
        with refused(InvalidObjectException, message=f"{name}: bad value '{BAD[name]}'"):
            client.create_table(table(db, keys=("dt", "hr"), parameters=self.bad(name)))
        assert client.get_all_tables(db) == []
        assert not (warehouse / f"{db}.db" / "t").exists()

    def test_at_an_alteration(self, client: ThriftClient, db: str, name: str) -> None:
        make_table(client, db)
        before = client.get_table(db, "t")
        with refused(InvalidOperationException, message=f"{name}: bad value '{BAD[name]}'"):
            client.alter_table(db, "t", before.replace(parameters=before.parameters | self.bad(name)))
        assert client.get_table(db, "t") == before


def test_a_partitioned_view(client: ThriftClient, db: str) -> None:
    """Its partitions lie nowhere; they have flags all the same."""
    client.create_table(view(db, keys=("dt",), parameters={MODE: "manual", POLICY: "metastore,success-file"}))
    client.add_partition(Partition(dbName=db, tableName="v", values=["a"]))
    assert readiness(client, db, "v") == {"dt=a": False}
    commit(client, db, "dt=a", table="v")
    assert client.get_partition_names(db, "v", -1) == ["dt=a"]
    reopen(client, db, "dt=a", table="v")
    assert client.get_partition_names(db, "v", -1) == []

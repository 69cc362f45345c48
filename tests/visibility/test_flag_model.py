"""The flag against a small model: whatever is added, altered, committed, opened and echoed, in any order."""

import itertools
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlreadyExistsException, Partition
from tests.support.builders import database, table
from tests.support.expect import refused
from tests.support.streams import report
from tests.visibility.flags import MODE, commit, find, new, of_flag, reference, reopen, states
from tests.visibility.readers import Ports

VALUES = {f"dt={day}/hr=1": (day, "1") for day in ("a", "b", "c")}
NAMES = sorted(VALUES)
SAID = st.sampled_from([None, True, False])
NUMBERS = itertools.count(1)


@dataclass
class Known:
    """A partition as it should be. `life` tells one that was dropped and added again from the earlier one."""

    life: int
    ready: bool
    commits: int  # how often it was committed, born ready not counted
    says_so: bool  # whether its parameters speak of the flag


@dataclass(frozen=True)
class Read:
    """What a client read: the partition, and what it was like."""

    name: str
    life: int
    ready: bool
    commits: int
    says_so: bool
    value: Partition


def parameters(said: bool | None) -> dict[str, str]:
    return {} if said is None else {"commit": str(said).lower()}


class Flags(RuleBasedStateMachine):
    ports: Ports
    mode: str

    reads = Bundle("reads")

    def __init__(self) -> None:
        super().__init__()
        self.client = ThriftClient(self.ports.host, self.ports.usual)
        self.seeing = ThriftClient(self.ports.host, self.ports.uncommitted)
        self.db = f"model_{next(NUMBERS)}"
        self.known: dict[str, Known] = {}
        self.lives = itertools.count(1)
        self.batches = itertools.count(1)
        self.times: dict[tuple[str, int, int], int] = {}
        self.client.create_database(database(self.db))
        properties = {MODE: self.mode, "partition.late-rows": "reopen"}
        self.client.create_table(table(self.db, keys=("dt", "hr"), parameters=properties))

    def teardown(self) -> None:
        self.client.drop_database(self.db, True, True)
        self.client.close()
        self.seeing.close()

    @rule(name=st.sampled_from(NAMES), said=SAID)
    def add(self, name: str, said: bool | None) -> None:
        one = new(self.db, *VALUES[name], **parameters(said))
        if name in self.known:
            with refused(AlreadyExistsException):
                self.client.add_partition(one)
            return
        self.client.add_partition(one)
        ready = self.mode == "none" if said is None else said
        born_ready = said is None and ready
        self.known[name] = Known(next(self.lives), ready, int(ready and not born_ready), not born_ready)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), said=SAID)
    def alter(self, data: st.DataObject, said: bool | None) -> None:
        """With parameters of its own making, as a load path does."""
        name = data.draw(st.sampled_from(sorted(self.known)))
        value = find(self.client, self.db, *VALUES[name]).replace(parameters={"fresh": "1", **parameters(said)})
        self.client.alter_partition(self.db, "t", value)
        known = self.known[name]
        if said is True and not (known.ready and known.says_so):
            self.committed(name)
        if said is False and known.ready:
            self.opened(name)

    @precondition(lambda self: self.known)
    @rule(target=reads, data=st.data())
    def read(self, data: st.DataObject) -> Read:
        name = data.draw(st.sampled_from(sorted(self.known)))
        known = self.known[name]
        value = self.seeing.get_partition(self.db, "t", list(VALUES[name]))
        return Read(name, known.life, known.ready, known.commits, known.says_so, value)

    @rule(read=reads)
    def echo(self, read: Read) -> None:
        """Sends back what was read, unless the partition was dropped since: it changes nothing of the flag."""
        known = self.known.get(read.name)
        if known is None or known.life != read.life:
            return
        value = read.value.replace(parameters=read.value.parameters | {"echoed": "1"})
        self.client.alter_partition(self.db, "t", value)

    @rule(read=reads, said=st.booleans())
    def wish(self, read: Read, said: bool) -> None:
        """Changes the flag in what was read and sends it back, while that is still what it was."""
        known = self.known.get(read.name)
        if known is None or known != Known(read.life, read.ready, read.commits, read.says_so):
            return
        value = read.value.replace(parameters=read.value.parameters | parameters(said))
        self.client.alter_partition(self.db, "t", value)
        if said and not (known.ready and known.says_so):
            self.committed(read.name)
        if not said and known.ready:
            self.opened(read.name)

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1))
    def commit(self, names: set[str]) -> None:
        there = names & self.known.keys()
        answer = commit(self.client, self.db, *there)
        assert set(answer.committed) == {name for name in there if not self.known[name].ready}
        assert set(answer.alreadyReady) == there - set(answer.committed)
        for name in answer.committed:
            self.committed(name)

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1))
    def reopen(self, names: set[str]) -> None:
        there = names & self.known.keys()
        answer = reopen(self.client, self.db, *there)
        assert set(answer.reopened) == {name for name in there if self.known[name].ready}
        for name in answer.reopened:
            self.opened(name)

    @precondition(lambda self: self.known and self.mode != "none")
    @rule(data=st.data())
    def reopen_for_late_rows(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        report(self.client, reference(self.db), reopen=[name])
        if self.known[name].ready:
            self.opened(name)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.known)))
        self.client.drop_partition(self.db, "t", list(VALUES[name]), True)
        del self.known[name]

    def committed(self, name: str) -> None:
        known = self.known[name]
        known.ready, known.says_so, known.commits = True, True, known.commits + 1

    def opened(self, name: str) -> None:
        self.known[name].ready, self.known[name].says_so = False, True

    @invariant()
    def as_the_model_says(self) -> None:
        ready = sorted(name for name, known in self.known.items() if known.ready)
        assert self.client.get_partition_names(self.db, "t", -1) == ready
        assert self.seeing.get_partition_names(self.db, "t", -1) == sorted(self.known)
        found = states(self.client, self.db)
        assert {name: state.ready for name, state in found.items()} == {n: k.ready for n, k in self.known.items()}
        for one in self.seeing.get_partitions(self.db, "t", -1):
            name = next(name for name, values in VALUES.items() if list(values) == one.values)
            known, state, said = self.known[name], found[name], of_flag(one.parameters)
            if not known.says_so:
                assert said == {} and state.commitTime is None
            elif known.ready:
                assert said == {"commit": "true", "commit.time": str(state.commitTime)}
                # Its own time for each commit, later than the ones before.
                kept = self.times.setdefault((name, known.life, known.commits), state.commitTime)
                assert kept == state.commitTime
                assert kept > self.times.get((name, known.life, known.commits - 1), 0)
            else:
                assert said.keys() - {"commit.last"} == {"commit", "commit.opened"} and said["commit"] == "false"


def run(ports: Ports, mode: str) -> None:
    machine = type("Flags", (Flags,), {"ports": ports, "mode": mode})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=5,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


@pytest.mark.long
def test_where_partitions_are_born_ready(ports: Ports) -> None:
    run(ports, "none")


def test_where_somebody_commits_them(ports: Ports) -> None:
    run(ports, "manual")

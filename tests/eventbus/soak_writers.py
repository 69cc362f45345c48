"""Writers that know of each change whether it was committed, and can tell it in the log of events.

A change is known by its mark: a parameter that it sets, or what it removes, since no name is used twice. An answer says
that a change was committed or that it was not; where none came, or one that leaves it open, it is in doubt.
"""

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from eventbus import NewEvent, PreEventListener, Veto
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    AlreadyExistsException,
    DropPartitionsRequest,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
)
from lake.protocol.lake import CommitPartitionsRequest, EventRecord, ReadEventsRequest, TableReference
from tests.support import builders

MARK = "mark"
SHARED, SHARED_TABLES = "shared", ("s0", "s1", "s2")
SHARED_VALUES = 3  # that writers compete for, at a time
UNWANTED = "unwanted"  # by the pre-event listener, as a mark's end
LONGEST_ANSWER = 30.0
SURELY_NOT = (AlreadyExistsException, InvalidObjectException, InvalidOperationException, NoSuchObjectException)


class Censor(PreEventListener):
    """Vetoes changes by their marks, and the end of databases, with all that went before in the transaction."""

    def before_event(self, event: NewEvent) -> None:
        if event.type == "DROP_DATABASE" or mark_of(event.type, event.table, event.payload).endswith(UNWANTED):
            raise Veto("not this one")


def mark_of(type: str, table: str | None, payload: Any) -> str:
    """By which the writer's change is known."""
    if type == "DROP_TABLE":
        return dropping(table or "")
    if type in ("DROP_PARTITIONS", "COMMIT_PARTITIONS"):
        return turning(type, table or "", [each["name"] for each in payload["partitions"]])
    about = payload["partitions"][0] if type.endswith("_PARTITIONS") else payload
    mark: str = (about.get("after") or about["before"])["parameters"].get(MARK, f"{type} {table}")
    return mark


def dropping(table: str) -> str:
    return f"DROP_TABLE {table}"


def turning(type: str, table: str, names: Sequence[str]) -> str:
    return f"{type} {table} {sorted(names)}"


class Outcome(Enum):
    DONE = "done"
    FAILED = "failed"
    DOUBT = "in doubt"


@dataclass
class Made:
    """A change that a writer made, or tried to."""

    mark: str
    outcome: Outcome


@dataclass
class Own:
    """What a writer knows of a table of its own: values of partitions that are there, and those not ready yet."""

    values: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)


class Writer(threading.Thread):
    """Changes tables of its own and shared ones, over one of the servers, until it is stopped."""

    shared_values = itertools.count()

    def __init__(self, number: int, servers: Sequence[tuple[str, int]], seed: int, pause: float) -> None:
        """`pause` in seconds, at most, between two changes."""
        super().__init__(name=f"writer-{number}", daemon=True)
        self.database = f"w{number}"
        self.made: list[Made] = []
        self.doubts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._number = number
        self._servers = servers
        self._chance = random.Random(seed)
        self._pause = pause
        self._count = 0
        self._tables: dict[str, Own] = {}
        self._stop_asked = threading.Event()

    @property
    def done(self) -> int:
        return sum(each.outcome is Outcome.DONE for each in self.made)

    def stop(self) -> None:
        self._stop_asked.set()

    def finish(self) -> None:
        """Raises what went wrong."""
        self.join(LONGEST_ANSWER * 4)
        assert not self.is_alive(), f"{self.name}: a call doesn't return"
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                try:
                    with ThriftClient(*self._chance.choice(self._servers), timeout=LONGEST_ANSWER) as client:
                        self._work(client)
                except (TTransportException, OSError):
                    time.sleep(0.05)
        except BaseException as error:
            self.failure = error

    def _work(self, client: ThriftClient) -> None:
        """Until the connection breaks, or it is time to take another."""
        for _ in range(50):
            if self._stop_asked.is_set():
                return
            try:
                self._change(client)
            except TTransportException:
                raise
            except TException:  # of a read; or the answer leaves open what became of the change
                time.sleep(0.05)
            time.sleep(self._chance.uniform(0, self._pause))  # a random moment of the work

    def _change(self, client: ThriftClient) -> None:
        table = self._chance.choice(sorted(self._tables)) if self._tables else None
        choices = [self._create, self._add_shared, self._add_shared, self._alter_shared, self._drop_all]
        if table is not None:
            for act, weight in (
                (self._add, 4),
                (self._alter, 2),
                (self._rename, 1),
                (self._create_again, 1),
                *([(self._alter_partitions, 3), (self._drop_partitions, 2)] if self._tables[table].values else []),
                *([(self._add_again, 1)] if self._tables[table].values else []),
                *([(self._commit, 2)] if self._tables[table].unready else []),
                *([(self._drop, 2)] if len(self._tables) > 4 else []),
            ):
                choices += [lambda client, act=act: act(client, table)] * weight
        self._chance.choice(choices)(client)

    def _try(self, mark: str, call: Callable[[], object]) -> bool:
        """Makes a change and takes a note of what became of it; whether it was committed."""
        made = Made(mark, Outcome.DOUBT)
        self.made.append(made)
        try:
            call()
        except SURELY_NOT:
            made.outcome = Outcome.FAILED
            return False
        except BaseException as error:
            self.doubts[f"{type(error).__name__}: {getattr(error, 'message', error)}"[:120]] += 1
            raise
        made.outcome = Outcome.DONE
        return True

    def _mark(self) -> str:
        """Of a change that sets it; now and then one that the pre-event listener doesn't let pass."""
        self._count += 1
        return f"{self.database}-{self._count}" + (f"-{UNWANTED}" if self._chance.random() < 0.07 else "")

    def _some(self, values: Sequence[str]) -> list[str]:
        """One, or many."""
        return self._chance.sample(values, 1 if self._chance.random() < 0.5 else self._chance.randint(1, len(values)))

    # -- tables ----------------------------------------------------------------------------------------------

    def _create(self, client: ThriftClient) -> None:
        mark = self._mark()
        name = f"t{self._number}_{self._count}"
        parameters = {MARK: mark, "partition.commit.mode": self._chance.choice(("none", "manual"))}
        table = builders.table(self.database, name, keys=("ds",), parameters=parameters)
        if self._try(mark, lambda: client.create_table(table)):
            self._tables[name] = Own()
            self._check_seen_at_once(client, name, mark)

    def _check_seen_at_once(self, client: ThriftClient, table: str, mark: str) -> None:
        """Whoever wrote sees its own event at once."""
        position = max(client.lake_event_positions(None).last - 200, 0)
        seen: list[str] = []
        while position < (page := client.lake_read_events(ReadEventsRequest(after=position))).last:
            position = page.position
            seen += [_mark(record) for record in page.events if record.table == table]
        seen += [_mark(record) for record in page.events if record.table == table]
        assert mark in seen, f"the creation of {table} was acknowledged and is not in the log"

    def _create_again(self, client: ThriftClient, name: str) -> None:
        mark = self._mark()
        table = builders.table(self.database, name, keys=("ds",), parameters={MARK: mark})
        assert not self._try(mark, lambda: client.create_table(table)), f"{name} was there"

    def _alter(self, client: ThriftClient, name: str) -> None:
        mark = self._mark()
        table = client.get_table(self.database, name)
        table.parameters[MARK] = mark
        self._try(mark, lambda: client.alter_table(self.database, name, table))

    def _rename(self, client: ThriftClient, name: str) -> None:
        mark = self._mark()
        new = f"t{self._number}_{self._count}"
        table = client.get_table(self.database, name)
        table.parameters[MARK], table.tableName = mark, new
        own = self._tables.pop(name)  # in doubt it is left alone
        renamed = self._try(mark, lambda: client.alter_table(self.database, name, table))
        self._tables[new if renamed else name] = own

    def _drop(self, client: ThriftClient, name: str) -> None:
        del self._tables[name]
        self._try(dropping(name), lambda: client.drop_table(self.database, name, True))

    def _drop_all(self, client: ThriftClient) -> None:
        """The tables' events are recorded before the veto, and must be gone with it."""
        if self._chance.random() < 0.2:
            mark = f"DROP_DATABASE {None}"
            assert not self._try(mark, lambda: client.drop_database(self.database, True, True)), "it is vetoed"

    # -- partitions ------------------------------------------------------------------------------------------

    def _add(self, client: ThriftClient, name: str) -> None:
        mark = self._mark()
        many = 1 if self._chance.random() < 0.5 else self._chance.randint(2, 30)
        values = [f"{self._count}_{number}" for number in range(many)]
        committed = self._chance.choice((None, "true", "false"))
        if self._try(mark, lambda: self._add_values(client, self.database, name, values, mark, committed)):
            self._tables[name].values += values
            if committed == "false":
                self._tables[name].unready += values

    def _add_again(self, client: ThriftClient, name: str) -> None:
        """New ones and one that is there: none is added."""
        mark = self._mark()
        values = [f"{self._count}_{number}" for number in range(3)] + [self._chance.choice(self._tables[name].values)]
        added = self._try(mark, lambda: self._add_values(client, self.database, name, values, mark, None))
        assert not added, f"{values} of {name}: one of them was there"

    def _add_values(
        self, client: ThriftClient, database: str, name: str, values: Sequence[str], mark: str, committed: str | None
    ) -> None:
        parameters = {MARK: mark, **({"commit": committed} if committed else {})}
        new = [builders.partition(database, name, value, parameters=parameters) for value in values]
        client.add_partitions_req(
            AddPartitionsRequest(dbName=database, tblName=name, parts=new, ifNotExists=False, needResult=False)
        )

    def _alter_partitions(self, client: ThriftClient, name: str) -> None:
        names = [f"ds={value}" for value in self._some(self._tables[name].values)]
        found: list[Partition] = client.get_partitions_by_names(self.database, f"{name}@includeuncommit", names)
        mark = self._mark()
        for each in found:
            each.tableName = name
            each.parameters[MARK] = mark
        assert len(found) == len(names), f"{name} has {len(found)} of {names}"
        self._try(mark, lambda: client.alter_partitions(self.database, name, found))

    def _commit(self, client: ThriftClient, name: str) -> None:
        own = self._tables[name]
        values = self._some(own.unready)
        # In doubt they are left alone: an alteration would say that they are ready, or not.
        own.values = [value for value in own.values if value not in values]
        own.unready = [value for value in own.unready if value not in values]
        names = [f"ds={value}" for value in values]
        request = CommitPartitionsRequest(TableReference(None, self.database, name), names)
        if self._try(turning("COMMIT_PARTITIONS", name, names), lambda: client.lake_commit_partitions(request)):
            own.values += values

    def _drop_partitions(self, client: ThriftClient, name: str) -> None:
        own = self._tables[name]
        values = self._some(own.values)
        own.values = [value for value in own.values if value not in values]
        own.unready = [value for value in own.unready if value not in values]
        names = [f"ds={value}" for value in values]
        request = DropPartitionsRequest(
            dbName=self.database,
            tblName=name,
            parts=RequestPartsSpec(names=names),
            deleteData=True,
            ifExists=False,
            needResult=False,
        )
        self._try(turning("DROP_PARTITIONS", name, names), lambda: client.drop_partitions_req(request))

    # -- what others change, too -----------------------------------------------------------------------------

    def _add_shared(self, client: ThriftClient) -> None:
        """Of those who add the same one succeeds."""
        mark = self._mark()
        highest = next(self.shared_values)
        values = [str(max(highest - number, 0) // len(SHARED_TABLES)) for number in range(SHARED_VALUES)]
        values = sorted(set(values[: self._chance.randint(1, SHARED_VALUES)]))
        self._try(
            mark, lambda: self._add_values(client, SHARED, self._chance.choice(SHARED_TABLES), values, mark, None)
        )

    def _alter_shared(self, client: ThriftClient) -> None:
        name = self._chance.choice(SHARED_TABLES)
        found = client.get_partitions(SHARED, name, 10)
        mark = self._mark()
        for each in found:
            each.parameters[MARK] = mark
        if found:
            self._try(mark, lambda: client.alter_partitions(SHARED, name, found))


def _mark(record: EventRecord) -> str:
    return mark_of(record.type or "", record.table, json.loads(record.payload or "{}"))

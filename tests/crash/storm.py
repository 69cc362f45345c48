"""Clients that change metadata as fast as they can, and know afterwards what must be there.

Each writer has a database of its own and keeps a model of it: what it looks like after all that was acknowledged. A
change whose reply never came is in doubt: it happened as a whole or not at all. So whatever crashed, the database
must look like one of at most two models, directories and files included.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AddPartitionsRequest, DropPartitionsRequest, MetaException, RequestPartsSpec
from tests.support import builders
from tests.support.target import local_path

MARK = "mark"  # the table's parameter that alterations change
CONTENT = "content"  # the file that a writer puts into each directory
NO_DIRECTORY = "no directory"
DATABASE_DOWN = "can't be reached"
COMMIT_SECONDS = 0.5  # after a worker's death Postgres may still finish a commit that it had begun

Connect = Callable[[], ThriftClient]


class Refused(Exception):
    """The server said no where it had to say yes."""


@dataclass(frozen=True)
class TableModel:
    """A table: its mark, what its file says (None: there is none), and what its partitions' files say, by value."""

    mark: str
    content: str | None
    partitions: Mapping[str, str | None] = field(default_factory=dict)


Model = Mapping[str, TableModel]


@dataclass(frozen=True)
class Change:
    """A call, the model after it, and the files that the writer adds once it is acknowledged."""

    text: str
    call: Callable[[ThriftClient], object]
    after: Model
    files: Mapping[str, str] = field(default_factory=dict)  # by "table" or "table/value"


def observe(client: ThriftClient, database: str) -> Model:
    """What a database looks like to a client that also looks at the files."""
    tables = {}
    for name in client.get_all_tables(database):
        table = client.get_table(database, name)
        partitions = client.get_partitions(database, name, -1)
        names = client.get_partition_names(database, name, -1)
        assert sorted(f"ds={p.values[0]}" for p in partitions) == sorted(names)
        tables[name] = TableModel(
            table.parameters[MARK],
            _content(table.sd.location),
            {p.values[0]: _content(p.sd.location) for p in partitions},
        )
    return tables


def _content(location: str) -> str | None:
    directory = local_path(location)
    if not directory.is_dir():
        return NO_DIRECTORY
    file = directory / CONTENT
    return file.read_text() if file.exists() else None


def _without_files(change: Change) -> Model:
    """The model after a change that nobody acknowledged, so that its writer added no files."""
    model = dict(change.after)
    for place in change.files:
        table, _, value = place.partition("/")
        old = model[table]
        if value:
            model[table] = replace(old, partitions={**old.partitions, value: None})
        else:
            model[table] = replace(old, content=None)
    return model


class Writer:
    """One client in a thread of its own: changes its database until the connection breaks or it is stopped.

    With `persistent` it goes on after a break: it connects again, finds out what became of the change in doubt,
    and fails if that is neither all nor nothing.
    """

    def __init__(
        self, connect: Connect, warehouse: Path, database: str, seed: int, *, persistent: bool = False
    ) -> None:
        self.database = database
        self.model: Model = {}
        self.in_doubt: Change | None = None
        self.acknowledged = 0
        self.breaks = 0
        self.slowest = 0.0  # seconds that a call took
        self.failure: BaseException | None = None
        self._connect = connect
        self._home = warehouse / f"{database}.db"
        self._persistent = persistent
        self._random = random.Random(seed)
        self._count = 0
        self._freed: list[str] = []  # names of tables that were dropped or renamed
        self._touched_by_doubt: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # -- life ------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        with self._connect() as client:
            client.create_database(builders.database(self.database))

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=self.database, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, seconds: float = 30.0) -> None:
        assert self._thread is not None
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"{self.database}: a call doesn't return"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    with self._connect() as client:
                        if self.in_doubt is not None:
                            self.settle(client)
                        self._work(client)
                except (TTransportException, OSError):
                    self.breaks += 1
                    if not self._persistent:
                        return
                    time.sleep(COMMIT_SECONDS)
        except BaseException as error:
            self.failure = error

    def _work(self, client: ThriftClient) -> None:
        while not self._stop.is_set():
            change = self._choose()
            self.in_doubt = change
            started = time.monotonic()
            try:
                change.call(client)
            except MetaException as error:
                if DATABASE_DOWN not in (error.message or ""):
                    raise Refused(f"{change.text}: {error}") from error
                self._doubt()
                self.breaks += 1
                if not self._persistent:
                    return
                time.sleep(0.05)
                self.settle(client)
            except (TTransportException, OSError):
                self._doubt()
                raise
            except Exception as error:
                raise Refused(f"{change.text}: {error!r}") from error
            else:
                self._acknowledge(client, change)
            finally:
                self.slowest = max(self.slowest, time.monotonic() - started)

    def _doubt(self) -> None:
        assert self.in_doubt is not None
        self._touched_by_doubt |= self.in_doubt.after.keys() ^ self.model.keys()

    def _acknowledge(self, client: ThriftClient, change: Change) -> None:
        """Takes note of a change, and writes the files that a writer of data would write now.

        All is done from what was acknowledged, without a question to the server: it may have died meanwhile.
        """
        self._freed += self.model.keys() - change.after.keys()
        self.model = change.after
        self.in_doubt = None
        self.acknowledged += 1
        for place, text in change.files.items():
            (self._directory(place) / CONTENT).write_text(text)

    def _directory(self, place: str) -> Path:
        table, _, value = place.partition("/")
        return self._home / table / (f"ds={value}" if value else "")

    # -- what must be true afterwards ------------------------------------------------------------------------

    def settle(self, client: ThriftClient, seconds: float = 20.0) -> None:
        """Sees to which side a change in doubt came down, and that all else is as it must be.

        Data may still be on its way for a moment after a restart. Raises AssertionError.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                seen = observe(client, self.database)
            except TException as error:  # a client of another dialect may see another kind than MetaException
                if DATABASE_DOWN not in (getattr(error, "message", "") or "") or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                continue
            if seen == self.model:
                break
            if self.in_doubt is not None and seen == _without_files(self.in_doubt):
                self._freed += self.model.keys() - seen.keys()
                self.model = seen
                break
            assert time.monotonic() < deadline, self._complaint(seen)
            time.sleep(0.05)
        self.in_doubt = None
        self._check_nothing_is_left()

    def _check_nothing_is_left(self) -> None:
        """Directories of tables that were dropped or renamed are gone, unless a crash interrupted that."""
        for name in set(self._freed) - self.model.keys() - self._touched_by_doubt:
            assert not self._directory(name).exists(), f"{self.database}.{name} is gone, its directory isn't"

    def _complaint(self, seen: Model) -> str:
        doubt = self.in_doubt
        lines = [f"{self.database} after {self.acknowledged} changes, in doubt: {doubt.text if doubt else None}"]
        for name in sorted(seen.keys() | self.model.keys() | (doubt.after.keys() if doubt else set())):
            before, after = self.model.get(name), doubt.after.get(name) if doubt else None
            if seen.get(name) not in (before, after) or (doubt is None and seen.get(name) != before):
                lines += [f"  {name}", f"    before {before}", f"    after {after}", f"    seen {seen.get(name)}"]
        return "\n".join(lines)

    # -- what it does ----------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _new_name(self) -> str:
        """Mostly a new name for a table, at times one that was in use before."""
        free = sorted(set(self._freed) - self.model.keys() - self._touched_by_doubt)
        if free and self._random.random() < 0.3:
            return self._random.choice(free)
        return f"t{self._number()}"

    def _choose(self) -> Change:
        if len(self.model) < 3:
            return self._create()
        name = self._random.choice(sorted(self.model))
        doings = [self._create, *(lambda do=do: do(name) for do in (self._add, self._add, self._alter, self._rename))]
        if self.model[name].partitions:
            doings += [lambda do=do: do(name) for do in (self._drop_partitions, self._rename_partition)]
        if len(self.model) > 5:
            doings += [lambda: self._drop(name)] * 2
        return self._random.choice(doings)()

    def _create(self) -> Change:
        name = self._new_name()
        table = builders.table(self.database, name, keys=("ds",), parameters={MARK: "new"})
        return Change(
            f"create {name}",
            lambda client: client.create_table(table),
            {**self.model, name: TableModel("new", f"of {name}")},
            {name: f"of {name}"},
        )

    def _add(self, name: str) -> Change:
        values = [f"p{self._number()}" for _ in range(self._random.randint(1, 20))]
        new = [builders.partition(self.database, name, value) for value in values]
        request = AddPartitionsRequest(dbName=self.database, tblName=name, parts=new, ifNotExists=False)
        old = self.model[name]
        return Change(
            f"add {values} to {name}",
            lambda client: client.add_partitions_req(request),
            {**self.model, name: replace(old, partitions={**old.partitions, **{v: f"of {v}" for v in values}})},
            {f"{name}/{value}": f"of {value}" for value in values},
        )

    def _alter(self, name: str) -> Change:
        mark = f"m{self._number()}"
        table = builders.table(self.database, name, keys=("ds",), parameters={MARK: mark})
        table.sd.location = f"file:{self._directory(name)}"
        return Change(
            f"mark {name} with {mark}",
            lambda client: client.alter_table(self.database, name, table),
            {**self.model, name: replace(self.model[name], mark=mark)},
        )

    def _rename(self, name: str) -> Change:
        new = self._new_name()
        old = self.model[name]
        table = builders.table(self.database, new, keys=("ds",), parameters={MARK: old.mark})
        table.sd.location = f"file:{self._directory(name)}"
        after = {key: value for key, value in self.model.items() if key != name}
        return Change(
            f"rename {name} to {new}",
            lambda client: client.alter_table(self.database, name, table),
            {**after, new: old},
        )

    def _drop(self, name: str) -> Change:
        return Change(
            f"drop {name}",
            lambda client: client.drop_table(self.database, name, True),
            {key: value for key, value in self.model.items() if key != name},
        )

    def _drop_partitions(self, name: str) -> Change:
        old = self.model[name]
        count = self._random.randint(1, len(old.partitions))
        values = self._random.sample(sorted(old.partitions), count)
        request = DropPartitionsRequest(
            dbName=self.database,
            tblName=name,
            parts=RequestPartsSpec(names=[f"ds={value}" for value in values]),
            deleteData=True,
            ifExists=False,
        )
        kept = {value: text for value, text in old.partitions.items() if value not in values}
        return Change(
            f"drop {values} of {name}",
            lambda client: client.drop_partitions_req(request),
            {**self.model, name: replace(old, partitions=kept)},
        )

    def _rename_partition(self, name: str) -> Change:
        old = self.model[name]
        value, new = self._random.choice(sorted(old.partitions)), f"p{self._number()}"
        partition = builders.partition(self.database, name, new, location=f"file:{self._directory(f'{name}/{value}')}")
        partitions = {new if each == value else each: text for each, text in old.partitions.items()}
        return Change(
            f"rename {value} of {name} to {new}",
            lambda client: client.rename_partition(self.database, name, [value], partition),
            {**self.model, name: replace(old, partitions=partitions)},
        )


class Storm:
    """Several writers on a server at once."""

    def __init__(
        self, connect: Connect, warehouse: Path, seed: int, *, writers: int = 4, persistent: bool = False
    ) -> None:
        self._connect = connect
        self.writers = [
            Writer(connect, warehouse, f"storm{number}", seed + number, persistent=persistent)
            for number in range(writers)
        ]
        for writer in self.writers:
            writer.prepare()

    @property
    def acknowledged(self) -> int:
        """Changes so far."""
        return sum(writer.acknowledged for writer in self.writers)

    def start(self) -> None:
        for writer in self.writers:
            writer.start()

    def stop(self) -> None:
        """Ends the storm. Raises what a writer complains of, or AssertionError if one never got its answer."""
        for writer in self.writers:
            writer.stop()
        for writer in self.writers:
            writer.join()

    def settle(self) -> None:
        """Checks that all that was acknowledged is there, and nothing by halves."""
        with self._connect() as client:
            for writer in self.writers:
                writer.settle(client)

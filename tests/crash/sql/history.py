"""Histories of statements of which something is killed, checked against plain models and by all readers."""

import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lake.client.lake_types import Instant
from lake.protocol.formats.keyed_table import KeyedTable
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import InstantConflict, SnapshotGone
from lake.tables.compaction import run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.crash.sql.cuts import Cut, CuttingRelay, Step
from tests.crash.sql.driver import Driver, Note
from tests.crash.sql.replay import Replay, Run
from tests.crash.sql.rows import NAMES, Keyed, Plain, State, sorted_rows
from tests.crash.sql.statements import KINDS, Rows, Statement, Statements
from tests.spark_extension.test_concurrent_histories import check_changes
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until

UNKNOWN = re.compile("whether .* was completed is not known")
"""What the extension says of a statement that may be complete. Any other error says that nothing was written."""

CALLS = (
    *("lake_begin_instant", "lake_begin_instant", "lake_complete_instants", "lake_complete_instants"),
    *("lake_complete_instants", "lake_get_snapshot", "lake_delete_instant", "lake_transition_instant", "lake_"),
    *("get_table", "alter_table", "create_table", "drop_table", ""),
)
"""Beginnings of methods, at which something happens. The steps of a statement come more often."""


@dataclass
class World:
    """A server, and a driver that reaches it through a relay. `directory`: of the test. `jar`: the extension's."""

    server: MetastoreServer
    relay: CuttingRelay
    directory: Path
    jar: Path
    chance: random.Random
    clusters: float
    lines: Sequence[str] = ("4",)
    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    running: Driver | None = None
    started: int = 0

    def driver(self) -> Driver:
        """The driver that runs, or a new one."""
        if self.running is None or not self.running.lives:
            self.started += 1
            self.running = Driver(
                self.chance.choice(self.lines),
                self.relay.uri,
                self.server.data_dir / "warehouse",
                self.jar,
                self.directory / f"spark-{self.started}",
                self.chance.random() < self.clusters,
            )
            print(f"  {self.running}")
        return self.running

    def close(self) -> None:
        if self.running is not None:
            self.running.close()


class Event:
    """Something that happens while statements run. `prepare` says when, and `over` waits until nothing more happens."""

    def __init__(self, name: str, world: World, driver: Driver, chance: random.Random) -> None:
        self.name, self.world, self.driver, self.chance = name, world, driver, chance
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        self.text = name

    def _kill_driver(self) -> None:
        self.driver.kill(spares_executors=self.chance.random() < 0.5)

    def _restart(self) -> None:
        """The server is dead when this returns, and comes back."""
        self.world.server.kill()
        pause = self.chance.choice([0.0, 0.5, 2.0])

        def start() -> None:
            time.sleep(pause)
            self.world.server.start()

        self._in_background(start)

    def _in_background(self, act: Callable[[], None]) -> None:
        def run() -> None:
            try:
                act()
            except BaseException as error:
                self._error = error

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def prepare(self) -> None:
        act, _, when = self.name.partition(" at ")
        if act == "executor killed" and not self.driver.is_cluster:
            act = "python killed"
        acts: dict[str, Callable[[], None]] = {
            "nothing": lambda: None,
            "cut": lambda: None,
            "driver killed": self._kill_driver,
            "server killed": self._restart,
            "executor killed": lambda: self.driver.kill_an_executor(self.chance),
            "python killed": lambda: self.driver.kill_a_python_worker(self.chance),
        }
        if when == "a step":
            method = self.chance.choice(CALLS)
            number = self.chance.randint(1, 12 if method in ("lake_", "get_table", "") else 2)
            step = self.chance.choice(list(Step))
            # The extension repeats a call once over a new connection, and a completion five times.
            times = self.chance.choice([1, 1, 1, 1, 1, 2, 2, 2, 2, 10]) if act == "cut" else 1
            self.world.relay.cut = Cut(method, number, step, acts[act], dropped=act != "nothing", times=times)
            self.text = f"{act} {step}: call {number} of {method or 'any method'}" + (f", {times} times" * (times > 1))
        elif when:
            pauses = [self.chance.uniform(0.0, 1.5) for _ in range(self.chance.randint(1, 3))]
            if act in ("driver killed", "server killed"):
                pauses = pauses[:1]
            self.text = f"{act} after {', '.join(f'{each:.2f}' for each in pauses)} s"

            def later() -> None:
                for pause in pauses:
                    time.sleep(pause)
                    acts[act]()

            self._in_background(later)

    def over(self) -> None:
        cut, self.world.relay.cut = self.world.relay.cut, None
        if cut is not None and cut.seen >= cut.number:
            assert cut.happened.wait(60)
            self.text += ", which happened"
        for each in list(self._threads):
            each.join()
        for each in self._threads:  # those that others have started
            each.join()
        if self._error is not None:
            raise self._error


EVENTS = {
    "nothing": 3,
    "cut at a step": 4,
    "driver killed at a step": 3,
    "driver killed at any time": 1,
    "server killed at a step": 3,
    "server killed at any time": 1,
    "executor killed at any time": 2,
    "python killed at any time": 1,
}


class History:
    """Statements on a table of its own, round by round; after each round all readers find the model's rows."""

    def __init__(self, world: World, client: LakeClient, name: str, kind: str, chance: random.Random) -> None:
        self.world, self.client, self.name, self.kind, self.chance = world, client, name, kind, chance
        self._ask(self._definition())
        self.lake: LakeTable = client.table(name)
        self.definition: KeyedTable | None = self.lake.schema().keyed_table()
        self.statements = Statements(name, kind, self.definition, chance, world.directory / name)
        start: Rows = Plain(NAMES) if self.definition is None else Keyed(self.definition, NAMES)
        self.models: list[Rows] = [start]
        self.states: list[State | None] = [start.state]
        self.carried: list[Run] = []
        self.was_killed = False

    def _definition(self) -> str:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in KINDS[self.kind].items())
        table = f"{self.name} (id BIGINT, v STRING, n INT, dt INT) USING parquet PARTITIONED BY (dt)"
        return f"spark.sql({f'CREATE TABLE {table} TBLPROPERTIES ({properties})'!r})\nresult = None"

    def _ask(self, code: str) -> Any:
        return self.world.driver().ask(code)

    # --- rounds -----------------------------------------------------------------------------------------------

    def round(self, event_name: str) -> None:
        """Runs some statements while something happens, and checks what has become of them."""
        driver = self.world.driver()
        alone = self.chance.random() < 0.4
        latest = self._latest()
        count = 1 if alone else self.chance.randint(2, 3)
        sessions = [
            [self.statements.next(latest, alone) for _ in range(1 if alone else self.chance.randint(1, 2))]
            for _ in range(count)
        ]
        _one_stream(sessions)
        given = [each for session in sessions for each in session]
        event = Event(event_name, self.world, driver, self.chance)
        event.prepare()
        try:
            notes = driver.run([[each.run() for each in session] for session in sessions])
        finally:
            event.over()
        print(f"  {event.text}")
        self.was_killed |= not driver.lives
        self._show(given, notes)
        if event_name == "nothing":
            self._check_errors(given, notes)
        self.check(given, notes)

    def _latest(self) -> str | None:
        """The timestamp of the last instant that changed rows."""
        found = [each for each in self.lake.instants(states=["completed"]) if each.action.endswith("commit")]
        return max(found, key=lambda each: each.position or 0).timestamp if found else None

    def _show(self, given: Sequence[Statement], notes: Sequence[Note]) -> None:
        ends = {each.number: each for each in notes}
        for each in given:
            end = ends.get(each.number)
            what = "never begun" if end is None else "killed" if end.what == "begin" else end.what
            self.world.counts[what] += 1
            if end is not None and end.what == "failed":
                self.world.errors[re.sub(r"An error.*\n: |\d+", "", end.error)[:120].split("\n")[0]] += 1
            print(f"    {what}: {each} {'' if end is None else end.error.strip()[:300]}")

    def _check_errors(self, given: Sequence[Statement], notes: Sequence[Note]) -> None:
        """If nothing was killed, statements only fail for a reason."""
        may_fail = {each.number: each.may_fail for each in given}
        for each in notes:
            assert each.what != "failed" or re.search(may_fail[each.number], each.error), each

    def check(self, given: Sequence[Statement], notes: Sequence[Note]) -> None:
        runs = self._runs(given, notes)
        instants = self._instants()
        last = max(instants, default=0)
        for position in range(len(self.models), last + 1):
            self.states.append(self._state(position))
        new = {position: self.states[position] for position in range(len(self.models), last + 1)}
        replay = Replay(self.models, new, instants, runs)
        assert replay.found(), replay.failure()
        self.carried = [
            Run(each.statement, must=False)
            for each in runs
            if not each.must and each not in replay.used and each.statement.kind != "micro-batch"
        ]
        done = {each.number for each in notes if each.what == "done"}
        for each in given:
            if each.columns != (None, None):
                self._check_columns(*each.columns, must=each.number in done)
            if each.made:
                self._check_made(each, each.number in done, new)
        used = {each.statement.number for each in replay.used}
        pending = self.statements.stream.pending
        pending[:] = [each for each in pending if each.number not in used]
        self._check_readers(instants)

    def _instants(self) -> dict[int, Instant]:
        found = self.lake.instants(states=["completed"], include_archived=True)
        return {each.position: each for each in found if each.position}

    def _state(self, position: int) -> State | None:
        with suppress(SnapshotGone):
            return self.models[-1].read(self.lake, position)
        return None

    def _runs(self, given: Sequence[Statement], notes: Sequence[Note]) -> list[Run]:
        """What may have completed: statements, micro-batches, and what drivers had sent that died a round before."""
        runs: dict[int, Run] = {}
        ended: list[Run] = []
        batches = [Run(each, must=False) for each in self.statements.stream.pending]
        for note in notes:
            statement = next(each for each in given if each.number == note.number)
            if note.what == "begin":
                runs[note.number] = Run(statement, must=False, after=list(ended))
            elif note.what == "done":
                runs[note.number].must = True
                ended += [runs[note.number]] if statement.effect is not None else []
                for batch in batches if statement.kind == "stream" else ():
                    batch.must = True
            elif not UNKNOWN.search(note.error):
                del runs[note.number]  # any other error says that nothing was written
        return [*self.carried, *(each for each in runs.values() if each.statement.effect is not None), *batches]

    # --- what is there ----------------------------------------------------------------------------------------

    def _check_columns(self, before: str | None, after: str | None, must: bool) -> None:
        """The change of a column has happened or not, as a whole; if it has, the rows follow."""
        names = [each.name for each in self.lake.schema().columns]
        names = [*(name for name in names if name != "dt"), "dt"]
        old = list(self.models[-1].columns)
        changed = self.models[-1].copy()
        changed.change_columns(before, after)
        new = list(changed.columns)
        assert names == new or (names == old and not must), f"{names} after {before} became {after} in {old}"
        if names == new:
            for each in {id(each): each for each in self.models}.values():
                each.change_columns(before, after)
            self.states = [None if s is None else changed.changed_state(s, before, after) for s in self.states]
            self.statements.columns = new

    def _check_made(self, statement: Statement, must: bool, new: dict[int, State | None]) -> None:
        """A table that is made with rows has all of them, or isn't there. A driver that dies leaves an empty one."""
        table = self.client.table(statement.made)
        try:
            definition = table.schema().keyed_table()
        except NoSuchObjectException:
            assert not must, f"{statement.made} is missing"
            return
        assert definition is not None
        position = table.position().position
        if position == 0:
            assert not must, f"{statement.made} is empty"
            found: State = {}
        else:
            found = Keyed(definition, self.statements.columns).read(table, position)
            before = self.states[min(new, default=len(self.states)) - 1]
            assert found in [before, *new.values()] or None in new.values(), f"{statement.made} has {found}"
        self.client.call(lambda client: client.drop_table(*statement.made.split("."), True))

    def _check_readers(self, instants: dict[int, Instant]) -> None:
        """SELECT, earlier positions and changes, by Spark and by Arrow."""
        last, oldest = len(self.models) - 1, self.lake.position().oldest_readable
        readable = [p for p in range(max(oldest, 1), last + 1) if self.states[p] is not None]
        if self.definition is None or not readable:
            if self.world.running is not None and self.world.running.lives:
                self._check_spark(last, None)
            return
        for position in {*self.chance.sample(readable, min(2, len(readable)))}:
            assert self.models[-1].read(self.lake, position) == self.states[position], f"as of {position}"
        first = 0 if oldest == 0 else self.chance.choice(readable)
        if self.states[last] is not None and self.statements.columns == NAMES:
            check_changes(self.lake, self.definition, self.states, first, last)  # type: ignore[arg-type]
        if self.world.running is not None and self.world.running.lives:
            self._check_spark(last, self.chance.choice(readable))

    def _check_spark(self, last: int, earlier: int | None) -> None:
        columns = ", ".join(self.statements.columns)
        code = "def rows(query):\n    return [list(row) for row in spark.sql(query).collect()]\n"
        code += f"result = [rows('SELECT {columns} FROM {self.name}'), list(spark.table('{self.name}').columns)"
        if earlier is not None:
            code += f", rows('SELECT {columns} FROM {self.name} VERSION AS OF {earlier}')"
            changed = f"{columns}, _change_type, _commit_version FROM lake_changes('{self.name}', {earlier})"
            code += f', rows("SELECT {changed}")'
        found = self._ask(code + "]")
        model = self.models[last]
        assert found[1] == self.statements.columns
        assert sorted_rows(found[0]) == model.listed(model.state), "what Spark reads"
        if earlier is not None:
            state = self.states[earlier]
            assert state is not None
            assert sorted_rows(found[2]) == model.listed(state), f"what Spark reads as of {earlier}"
            changes = self.lake.changes(earlier, last).to_arrow()
            names = [*self.statements.columns, "_change_type", "_commit_version"]
            assert sorted_rows(found[3]) == sorted_rows(
                [each[name] for name in names] for each in changes.to_pylist()
            ), f"what Spark says has changed since {earlier}"

    # --- the end ----------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """The stream goes on until all of its batches are part of the table, each once."""
        if self.statements.stream.pending:
            last = self.statements.stream_again()
            notes = self.world.driver().run([[last.run()]])
            assert [each.what for each in notes] == ["begin", "done"], notes
            self.check([last], notes)

    def check_leftovers(self) -> None:
        """No instant is in flight, no file is missing, and what nobody needs is deleted or found as an orphan."""
        wait_until(lambda: not list(self.lake.instants(states=["inflight"])), 60, "no instant is in flight")
        for plan in list(self.lake.instants(states=["requested"])):
            with suppress(InstantConflict):
                run_compaction(self.lake, plan.timestamp)
        assert self.models[-1].read(self.lake, self.lake.position().position) == self.models[-1].state
        with suppress(AssertionError):
            wait_until(lambda: not self._unnamed(), 10, "the files of dead writers are gone")
        remaining = self._unnamed()
        place = local_path(self.lake.location())
        two_days_ago = time.time() - 2 * 86_400
        for path in remaining:
            os.utime(place / path, (two_days_ago, two_days_ago))
        orphans = {each.path for page in self.lake.find_orphans(hours=24) for each in page}
        assert remaining <= orphans, f"files that are left for ever: {remaining - orphans}"
        assert self.was_killed or not remaining, f"files that only a dead driver leaves: {remaining}"
        self.world.counts["orphans"] += self.lake.remove_orphans(sorted(remaining), hours=24) if remaining else 0

    def _unnamed(self) -> set[str]:
        """Files of the table of no snapshot that aren't changelogs. Fails if a snapshot's file is missing."""
        place = local_path(self.lake.location())
        named = {each.path for each in self.lake.snapshot(all_versions=True, include_uncommitted=True)}
        there = {str(each.relative_to(place)) for each in place.rglob("*.parquet")}
        assert named <= there, f"files are missing: {named - there}"
        completed = {each.timestamp for each in self._instants().values()}
        changelogs = {
            each
            for each in there
            if each.endswith(".changelog.parquet") and each.split("/")[1].partition(".")[0] in completed
        }
        return there - named - changelogs


def _one_stream(sessions: list[list[Statement]]) -> None:
    """A stream has one query at a time."""
    found = False
    for session in sessions:
        for each in list(session):
            if each.kind == "stream" and found:
                session.remove(each)
            found = found or each.kind == "stream"

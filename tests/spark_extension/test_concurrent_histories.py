"""Concurrent statements of plain SQL and writers beside Spark, against a model that replays what was acknowledged.

Statements don't say at which position they completed. So the test searches for an order of them, within the positions
before and after each, in which the model has exactly the rows of the table at every position.
"""

import copy
import random
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from lake.client.lake_types import Begun, Instant
from lake.protocol.formats.keyed_table import DELETED, KeyedTable
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import InstantConflict, TableReference
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.tables.keyed.model import Key, Model, Record, key_of, rows_by_key
from tests.spark.session import SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_conflicts import directories
from tests.spark_extension.test_keyed_select import rows
from tests.support.long_runs import share_of

NAMES = ["id", "v", "n", "dt"]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32()), ("dt", pa.int32())])
SESSIONS = 3
STATEMENTS = 5
#: In place of a statement's index, where the instant says what was done.
FIXED = -1
MERGE_ON_READ = "'table-type' = 'merge-on-read'"
KINDS = {
    "copy-on-write": "'bucket' = '2'",
    "merge-on-read": f"{MERGE_ON_READ}, 'bucket' = '2'",
    "lookup": f"{MERGE_ON_READ}, 'changelog-producer' = 'lookup'",
    "sequence": f"{MERGE_ON_READ}, 'sequence.field' = 'n'",
    "sequence, copy-on-write": "'sequence.field' = 'n', 'changelog-producer' = 'lookup'",
    "first row": "'merge-engine' = 'first-row'",
    "partial update": f"{MERGE_ON_READ}, 'merge-engine' = 'partial-update'",
    "sum": f"{MERGE_ON_READ}, 'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'",
    "ignore": f"{MERGE_ON_READ}, 'insert.duplicate-key' = 'ignore'",
    "families": "'column-families' = 'one:n'",
    "over all partitions": "'bucket' = '2'",
    "over all partitions, merge-on-read": f"{MERGE_ON_READ}, 'bucket' = '2'",
}

#: Where most concurrent statements meet.
OFTEN = [each for each, properties in KINDS.items() if MERGE_ON_READ not in properties]

#: Runs the statements of each session one after the other, the sessions at the same time.
RUNNING = """
from concurrent.futures import ThreadPoolExecutor
from lake.tables.lake import LakeClient

def run(statements):
    session, found = spark.newSession(), []
    session.conf.set("spark.sql.adaptive.enabled", {adaptive!r})
    with LakeClient({uri!r}) as client:
        table = client.table({table!r})
        for number, statement in statements:
            before = table.position().position
            try:
                session.sql(statement)
                error = None
            except Exception as failed:
                error = str(failed).split("JVM stacktrace")[0]
            found.append([number, before, table.position().position, error])
    return found

with ThreadPoolExecutor({sessions}) as pool:
    result = [each for found in pool.map(run, {statements!r}) for each in found]
"""


class Statement(NamedTuple):
    """A change. `number`: of the statement, or the position that a rollback undoes.

    `replaced`: the value of the partition column whose rows are replaced.
    """

    kind: str
    sql: str = ""
    rows: Sequence[Record] = ()
    number: int = 0
    replaced: str | None = None

    @property
    def reads(self) -> bool:
        """Whether what it writes depends on the rows that it reads."""
        return self.kind not in ("insert", "overwrite")

    def records(self, model: Model) -> list[Record]:
        """What it writes if it reads the model's rows."""
        there = list(model.rows.values())
        changed: list[Record] = []
        match self.kind:
            case "insert" | "overwrite":
                return list(self.rows)
            case "delete keys":
                return [each for each in self.rows if key_of(model.table, each) in model.rows]
            case "insert new":
                return [each for each in self.rows if key_of(model.table, each) not in model.rows]
            case "update":
                changed = [{**row, "v": f"u{self.number}"} for row in there if row["id"] % 3 == self.number % 3]
            case "move":
                changed = [{**row, "id": row["id"] + 1} for row in there if row["id"] == self.number % 8]
                gone = [{**row, DELETED: True} for row in there if row["id"] == self.number % 8]
                return [*gone, *changed]
            case "delete":
                return [{**row, DELETED: True} for row in there if row["id"] % 4 == self.number % 4]
            case "copy":
                changed = [{**row, "id": row["id"] + 2, "v": f"c{self.number}"} for row in there if row["id"] % 2 == 0]
            case "merge":
                for each in self.rows:
                    old = model.rows.get(key_of(model.table, each))
                    if old is None:
                        changed.append(each)
                    else:
                        changed.append({**old, DELETED: True} if each["n"] == 1 else {**old, "v": each["v"]})
        return changed


def values(some: Sequence[Record]) -> str:
    texts = [
        ", ".join("NULL" if each[name] is None else repr(each[name]) for name in NAMES if name != "id") for each in some
    ]
    listed = ", ".join(f"({each['id']}L, {text})" for each, text in zip(some, texts, strict=True))
    return f"(SELECT * FROM VALUES {listed} AS s({', '.join(NAMES)}))"


def statement(table: str, definition: KeyedTable, kind: str, chance: random.Random, number: int) -> Statement:
    some = given(kind, chance, number)
    source = values(some)
    takes_all = definition.engine == "deduplicate" and kind != "ignore"
    choice = chance.randrange(10) if takes_all else 0
    if not definition.is_table_wide and chance.random() < 0.1:
        place = chance.randrange(2)
        some = list({each["id"]: {**each, "dt": place} for each in some}.values())
        sql = f"INSERT OVERWRITE {table} PARTITION (dt = {place}) SELECT id, v, n FROM {values(some)}"
        return Statement("overwrite", sql, some, number, str(place))
    match choice:
        case 4:
            return Statement("update", f"UPDATE {table} SET v = 'u{number}' WHERE id % 3 = {number % 3}", (), number)
        case 5:
            return Statement("delete", f"DELETE FROM {table} WHERE id % 4 = {number % 4}", (), number)
        case 6:
            sql = f"INSERT INTO {table} SELECT id + 2, 'c{number}', n, dt FROM {table} WHERE id % 2 = 0"
            return Statement("copy", sql, (), number)
        case 7:
            on = "t.id = s.id" + ("" if definition.is_table_wide else " AND t.dt = s.dt")
            sql = (
                f"MERGE INTO {table} t USING {source} s ON {on} WHEN MATCHED AND s.n = 1 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
            )
            return Statement("merge", sql, some, number)
        case 9:
            on = "t.id = s.id" + ("" if definition.is_table_wide else " AND t.dt = s.dt")
            clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            return Statement("insert", f"MERGE INTO {table} t USING {source} s ON {on} {clauses}", some, number)
        case 8 if not definition.sequence:
            return Statement("move", f"UPDATE {table} SET id = id + 1 WHERE id = {number % 8}", (), number)
        case _:
            kind = "insert new" if kind == "ignore" else "insert"
            return Statement(kind, f"INSERT INTO {table} SELECT * FROM {source}", some, number)


def given(kind: str, chance: random.Random, number: int) -> list[dict[str, Any]]:
    ids = 40 if kind in ("first row", "ignore") else 8  # there keys that exist would hide lost rows
    keys = {(chance.randrange(ids), chance.randrange(2)) for _ in range(chance.randint(1, 5))}
    if kind.startswith("over all"):
        keys = set(dict(sorted(keys)).items())
    text = [f"i{number}", None] if kind == "partial update" else [f"i{number}"]
    return [
        {"id": id, "v": chance.choice(text), "n": 1 << number if kind == "sum" else chance.randrange(4), "dt": dt}
        for id, dt in sorted(keys)
    ]


class Ran(NamedTuple):
    """A statement that was acknowledged, and the positions before it began and after it ended."""

    statement: Statement
    before: int
    after: int


class Noted(LakeTable):
    """Notes the timestamps of the instants that are begun by it."""

    def __init__(self, client: LakeClient, table: TableReference) -> None:
        super().__init__(client, table)
        self.begun: set[str] = set()

    def begin(self, *args: Any, **options: Any) -> Begun:
        found = super().begin(*args, **options)
        self.begun.add(found.instant.timestamp)
        return found


class Beside:
    """A writer beside Spark: upserts, deletes, compactions and rollbacks. `done`: by position."""

    def __init__(self, lake: Noted, table: KeyedTable, kind: str, chance: random.Random) -> None:
        self.lake, self.table, self.kind, self.chance = lake, table, kind, chance
        self.done: dict[int, Ran] = {}
        self.error: BaseException | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            number = 20
            while not self.over.wait(self.chance.uniform(0, 1.5)):
                number = number + 1 if number < 29 else 21
                self._step(number)
        except BaseException as error:
            self.error = error

    def _step(self, number: int) -> None:
        choice, before = self.chance.random(), self.lake.position().position
        if choice < 0.25:
            planned = plan_compaction(self.lake).instant
            if planned is not None:
                self.over.wait(self.chance.uniform(0, 0.5))
                try:
                    run_compaction(self.lake, planned.timestamp)
                except InstantConflict:
                    self.lake.abort(planned)
        elif choice < 0.35:
            self._roll_back(before)
        elif choice < 0.5 and self.table.engine == "deduplicate" and not self.table.sequence:
            names = ["id"] if self.table.is_table_wide else ["id", "dt"]
            some = [{name: each[name] for name in names} for each in given(self.kind, self.chance, number)]
            # Where nobody has such a key, nothing is written, and nothing conflicts with what others insert.
            kind = "delete keys" if self.table.is_table_wide else "insert"
            done = self.lake.delete(pa.Table.from_pylist(some, schema=pa.schema([SCHEMA.field(n) for n in names])))
            self._record(before, done.instant, Statement(kind, "", [{**each, DELETED: True} for each in some]))
        else:
            some = given(self.kind, self.chance, number)
            done = self.lake.upsert(pa.Table.from_pylist(some, schema=SCHEMA))
            self._record(before, done.instant, Statement("insert", "", some))

    def _record(self, before: int, instant: Instant | None, made: Statement) -> None:
        if instant is not None and instant.position is not None:
            self.done[instant.position] = Ran(made, before, instant.position)

    def _roll_back(self, before: int) -> None:
        completed = list(self.lake.instants(states=["completed"]))
        if completed:
            last = max(completed, key=lambda each: each.position or 0)
            if last.undone_by is None and last.action not in ("rollback", "restore"):
                try:
                    done = self.lake.roll_back(last)
                except (InvalidOperationException, InstantConflict):
                    return  # another completed first
                self._record(before, done.instant, Statement("rollback", "", (), last.position or 0))


class Replay:
    """Searches for the order in which statements completed. `states`: the rows at each position."""

    def __init__(
        self, table: KeyedTable, states: Sequence[dict[Key, Any]], fixed: dict[int, Ran], ran: Sequence[Ran]
    ) -> None:
        self.states, self.fixed, self.ran = states, fixed, ran
        self.models = [Model(table, NAMES)]
        self.used: set[int] = set()
        self.furthest = 0

    def runs(self) -> bool:
        """Whether there is such an order."""
        position = len(self.models)
        self.furthest = max(self.furthest, position)
        if position == len(self.states):
            return len(self.used) == len(self.ran)
        for index, model in self._candidates(position):
            if self.states[position] in (None, model.rows):
                self.models.append(model)
                self.used |= {index} - {FIXED}
                if self.runs():
                    return True
                self.models.pop()
                self.used -= {index}
        return False

    def failure(self, instants: Sequence[Any]) -> str:
        at = self.furthest
        texts = [
            f"{at} of {len(self.states)}, {instants}",
            f"before: {list(self.states[at - 1].values())}",
            f"after: {list(self.states[at].values()) if at < len(self.states) and self.states[at] else None}",
            f"fixed: {self.fixed.get(at)}",
            *(f"{each.before} - {each.after}: {each.statement.sql}" for each in self.ran),
        ]
        return "\n".join(texts)

    def _candidates(self, position: int) -> Iterator[tuple[int, Model]]:
        done = self.fixed.get(position)
        if done is not None and done.statement.kind == "rollback":
            undone = done.statement.number
            if all(each.rows == self.models[undone].rows for each in self.models[undone:]):
                yield FIXED, copy.deepcopy(self.models[undone - 1])
            return
        open_ = [each for each in enumerate(self.ran) if each[0] not in self.used]
        for index, each in open_ if done is None else [(FIXED, done)]:
            if each.before < position <= each.after:
                for read in range(each.before if each.statement.reads else position - 1, position):
                    if self._is_unchanged(each.statement, read, position):
                        yield index, self._after(each.statement, read)

    def _is_unchanged(self, made: Statement, read: int, position: int) -> bool:
        """Whether nobody changed the rows that a statement writes since it read them."""
        keys = [key_of(self.models[read].table, each) for each in made.records(self.models[read])]
        return all(
            model.rows.get(key) == self.models[read].rows.get(key)
            for model in self.models[read:position]
            for key in keys
        )

    def _after(self, made: Statement, read: int) -> Model:
        model = copy.deepcopy(self.models[-1])
        if made.replaced is not None:
            for key in [key for key in {*model.rows, *model.sequences} if str(key[1]) == made.replaced]:
                model.rows.pop(key, None)
                model.sequences.pop(key, None)
        model.apply(made.records(self.models[read]), "")
        return model


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("count", [0, pytest.param(share_of(30), marks=pytest.mark.long)], ids=["sample", "many"])
def test_concurrent_histories(spark: SparkSession, database: str, lake: Lake, count: int) -> None:
    """Several sessions of SQL and a writer beside them: no row is lost, doubled or wrong at any position."""
    kinds = [each for each in KINDS for _ in range(count)] or [random.choice(OFTEN)]
    again = 0
    for number, kind in enumerate(kinds):
        seed = random.randrange(1 << 32)
        print(f"{kind}: seed {seed}")
        again += history(spark, lake, f"{database}.h{number}", kind, random.Random(seed))
    assert again > 0, "no statement was merged again"


def history(spark: SparkSession, server: Lake, name: str, kind: str, chance: random.Random) -> int:
    """Runs one history and checks it. Returns how often the rows of a statement were merged again."""
    key = "id" if kind.startswith("over all") else "id,dt"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING, n INT, dt INT) USING parquet PARTITIONED BY (dt) "
        f"TBLPROPERTIES ('primary-key' = '{key}', {KINDS[kind]})"
    )
    with LakeClient(server.server.uri) as client, LakeClient(server.server.uri) as another:
        table = client.table(name)
        definition = table.schema().keyed_table()
        assert definition is not None
        given = [statement(name, definition, kind, chance, number) for number in range(SESSIONS * STATEMENTS)]
        texts = [[(each.number, each.sql) for each in given[first::SESSIONS]] for first in range(SESSIONS)]
        noted = Noted(another, table.reference)
        beside = Beside(noted, definition, kind, random.Random(chance.random()))
        beside.thread.start()
        try:
            adaptive = chance.choice(["true", "false"])
            code = RUNNING.format(
                uri=server.server.uri, table=name, sessions=SESSIONS, statements=texts, adaptive=adaptive
            )
            answers = spark.python(code)
        finally:
            beside.over.set()
            beside.thread.join()
        if beside.error is not None:
            raise beside.error
        errors = [each[3] for each in answers if each[3] is not None]
        conflicts = [each for each in errors if "run the statement again" in each]
        # A MERGE may find a row or a delete whose sequence is later than that of its own.
        older = [each for each in errors if definition.sequence and re.search("(has|deleted with) a later n", each)]
        assert len(conflicts) + len(older) == len(errors), errors
        ran = [Ran(given[each[0]], each[1], each[2]) for each in answers if each[3] is None]
        return check(spark, server, table, definition, ran, beside, len(conflicts), chance)


def check(
    spark: SparkSession,
    server: Lake,
    table: LakeTable,
    definition: KeyedTable,
    ran: Sequence[Ran],
    beside: Beside,
    refused: int,
    chance: random.Random,
) -> int:
    name = table.full_name
    instants = list(table.instants(include_archived=True))
    assert all(each.state == "completed" or each.begun_as == "compaction" for each in instants), instants
    compacted = [each.position for each in instants if each.position and each.begun_as == "compaction"]
    fixed = {each: Ran(Statement("insert"), each - 1, each) for each in compacted}
    last = table.position().position
    states: list[dict[Key, Any]] = [{}]
    for position in range(1, last + 1):
        states.append(rows_by_key(definition, table.scan(as_of=position).to_arrow().select(NAMES)))
    replay = Replay(definition, states, {**fixed, **beside.done}, ran)
    assert replay.runs(), replay.failure([(each.position, each.action) for each in instants])
    for position in {last, *chance.sample(range(1, last + 1), min(2, last))}:
        expected = sorted(([each[n] for n in NAMES] for each in states[position].values()), key=repr)
        assert rows(spark, f"SELECT * FROM {name} VERSION AS OF {position}") == expected
        check_changes(table, definition, states, chance.randrange(position), position)
    completed = {each.timestamp for each in instants if each.state == "completed"}
    kept = [each for each in directories(server, name) if "/kept" in each]
    assert not [each for each in kept if any(timestamp in each for timestamp in completed)], kept
    rejected = table.client.call(lambda client: client.lake_list_rejected_commits(table.reference))
    again = sum(each.timestamp not in beside.lake.begun for each in rejected) - refused
    print(f"  {last} positions, {len(ran)} statements, {refused} refused, {again} times merged again")
    return again


def check_changes(
    table: LakeTable, definition: KeyedTable, states: Sequence[dict[Key, Any]], first: int, last: int
) -> None:
    """The net changes turn the rows of one position into those of another."""
    found = dict(states[first])
    changes = table.changes(first, last).to_arrow().to_pylist()
    for kinds in (("delete", "update_preimage"), ("insert", "update_postimage")):
        for each in changes:
            if each["_change_type"] in kinds:
                row = {name: each[name] for name in NAMES}
                if kinds[0] == "delete":
                    assert found.pop(key_of(definition, row)) == row
                else:
                    assert key_of(definition, row) not in found
                    found[key_of(definition, row)] = row
    assert found == states[last], f"changes from {first} to {last}: {changes}"

"""Random statements of all kinds, and what each makes of the rows of a table."""

import itertools
import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lake.protocol.formats.keyed_table import DELETED, KeyedTable
from tests.crash.sql.driver import Run
from tests.crash.sql.rows import NAMES, Keyed, Plain
from tests.lake.tables.keyed.model import Record

Rows = Keyed | Plain
Effect = Callable[[Any, Any], Rows | None]
"""The rows after a change that has read some rows and meets others; None if it would be refused then."""

#: What a statement that nobody disturbs may fail with: others were quicker, or had other rows.
CONFLICT = "run the statement again|start the query again"
LATER = "has a later n|was deleted with a later n"
EXISTS = "exists, and insert.duplicate-key=fail"

DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
STATIC = {"spark.sql.sources.partitionOverwriteMode": "static"}

MERGE_ON_READ = {"table-type": "merge-on-read"}
TIMELINE = {"timeline.archived-days": "9"}
#: Properties of tables by what they are called here. Those without a primary key have a timeline by their properties.
KINDS: dict[str, dict[str, str]] = {
    "copy-on-write": {"primary-key": "id,dt", "bucket": "2"},
    "merge-on-read": {"primary-key": "id,dt", "bucket": "2", **MERGE_ON_READ},
    "lookup": {"primary-key": "id,dt", "changelog-producer": "lookup", **MERGE_ON_READ},
    "lookup, copy-on-write": {"primary-key": "id,dt", "bucket": "2", "changelog-producer": "lookup"},
    "sequence": {"primary-key": "id,dt", "sequence.field": "n", **MERGE_ON_READ},
    "sequence, copy-on-write": {"primary-key": "id,dt", "sequence.field": "n", "changelog-producer": "lookup"},
    "first row": {"primary-key": "id,dt", "merge-engine": "first-row"},
    "partial update": {
        "primary-key": "id,dt",
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
        **MERGE_ON_READ,
    },
    "sum": {
        "primary-key": "id,dt",
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.v.aggregate-function": "max",
        **MERGE_ON_READ,
    },
    "ignore": {"primary-key": "id,dt", "insert.duplicate-key": "ignore", **MERGE_ON_READ},
    "fail": {"primary-key": "id,dt", "insert.duplicate-key": "fail", "bucket": "2"},
    "families": {"primary-key": "id,dt", "column-families": "one:n"},
    "over all partitions": {"primary-key": "id", "bucket": "2"},
    "over all partitions, merge-on-read": {"primary-key": "id", "bucket": "2", **MERGE_ON_READ},
    "no key": TIMELINE,
}


@dataclass
class Statement:
    """One that a driver runs, or a micro-batch of one.

    `effect`: None if it changes no row, or says otherwise what became of it. `reads`: its effect follows from rows that
    it has read, which may be earlier ones. `may_fail`: the errors that are right even if nobody is killed.
    """

    number: int
    kind: str
    text: str
    effect: Effect | None = None
    reads: bool = False
    may_fail: str = CONFLICT
    is_code: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    #: Of a change of columns, the name before and after it.
    columns: tuple[str | None, str | None] = (None, None)
    #: Of a table that it makes, its name.
    made: str = ""

    def run(self) -> Run:
        return Run(self.number, {**DYNAMIC, **self.settings}, self.is_code, self.text)

    def __str__(self) -> str:
        return f"{self.number} {self.kind}: {self.text}"


class Statements:
    """Makes statements for one table."""

    def __init__(
        self, table: str, kind: str, definition: KeyedTable | None, chance: random.Random, directory: Path
    ) -> None:
        self.table, self.kind, self.definition, self.chance = table, kind, definition, chance
        self.columns = list(NAMES)
        self.numbers = itertools.count(1)
        self.stream = Stream(table, directory)

    @property
    def takes_all(self) -> bool:
        return self.definition is not None and self.definition.engine == "deduplicate"

    @property
    def is_table_wide(self) -> bool:
        return self.definition is not None and self.definition.is_table_wide

    # --- rows that are given ----------------------------------------------------------------------------------

    def given(self, number: int, place: int | None = None) -> list[dict[str, Any]]:
        """Some rows, one of each key. `place`: all of one partition."""
        chance = self.chance
        ids = 40 if self.kind in ("first row", "ignore", "fail") else 8  # there keys that exist would hide lost rows
        keys = {(chance.randrange(ids), place if place is not None else chance.randrange(2)) for _ in range(5)}
        if self.is_table_wide:
            keys = {(id, dt) for id, dt in dict(sorted(keys)).items()}
        texts = [f"i{number}", None] if self.kind == "partial update" else [f"i{number}"]
        found = []
        for id, dt in chance.sample(sorted(keys), chance.randint(1, len(keys))):
            n = 1 << number % 29 if self.kind == "sum" else chance.randrange(4)
            extra = {name: chance.choice([None, f"x{number}"]) for name in self.columns if name not in NAMES}
            found.append({"id": id, "v": chance.choice(texts), "n": n, **extra, "dt": dt})
        return found

    def values(self, rows: Sequence[Record], columns: Sequence[str] | None = None) -> str:
        """Rows as a query. A function of Python's is called for each, in one of six."""
        names = columns or self.columns
        listed = ", ".join("(" + ", ".join(_literal(name, row[name]) for name in names) + ")" for row in rows)
        query = f"SELECT * FROM VALUES {listed} AS s({', '.join(names)})"
        if self.chance.random() < 1 / 6:
            selected = ", ".join("slow(v) AS v" if name == "v" else name for name in names)
            query = f"SELECT {selected} FROM ({query})"
        return query

    # --- statements -------------------------------------------------------------------------------------------

    def next(self, latest: str | None, alone: bool) -> Statement:
        """`latest`: the timestamp of the table's last instant. `alone`: whether nothing runs beside it."""
        number, chance = next(self.numbers), self.chance
        if number == 1:
            return self._insert(number)
        makers: list[tuple[int, Callable[[int], Statement | None]]] = [
            (5, self._insert),
            (2, self._overwrite),
            (2, self._stream_step),
            (1, self._failing),
            (1, lambda number: self._call(number, latest)),
            (1, self._make_table),
        ]
        if self.takes_all:
            makers += [(6, self._change)]
        if self.definition is None:
            makers += [(3, self._replace_partition)]
        elif self.definition.engine == "deduplicate" or self.definition.remove_on_delete:
            makers += [(1, self._truncate)]
        if alone:
            makers += [(2, self._columns)]
        while True:
            (made,) = chance.choices([each for _, each in makers], [weight for weight, _ in makers])
            found = made(number)
            if found is not None:
                return found

    def _insert(self, number: int) -> Statement:
        rows = self.given(number)
        source = self.values(rows)
        may_fail = f"{CONFLICT}|{EXISTS}" if self.kind == "fail" else CONFLICT
        if self.takes_all and self.chance.random() < 0.2:
            text = f"MERGE INTO {self.table} t USING ({source}) s ON {self._on} WHEN NOT MATCHED THEN INSERT *"
            effect = _computed(lambda read: [each for each in rows if read.key(each) not in read.rows])
            return Statement(number, "merge that inserts", text, effect, reads=True, may_fail=may_fail)
        return Statement(
            number, "insert", f"INSERT INTO {self.table} {source}", self._inserted(rows), may_fail=may_fail
        )

    @property
    def _on(self) -> str:
        return "t.id = s.id" + ("" if self.is_table_wide else " AND t.dt = s.dt")

    def _inserted(self, rows: Sequence[Record]) -> Effect:
        def effect(_: Any, now: Any) -> Rows | None:
            there = [each for each in rows if self.kind in ("ignore", "fail") and now.key(each) in now.rows]
            if there and self.kind == "fail":
                return None
            return now.put([each for each in rows if each not in there])  # type: ignore[no-any-return]

        return effect

    def _overwrite(self, number: int) -> Statement:
        """Replaces the table, a partition that is named, or the partitions that get rows."""
        choice = self.chance.randrange(3) if not self.is_table_wide else 0
        place = self.chance.randrange(2)
        rows = self.given(number, place if choice == 1 else None)
        names = [name for name in self.columns if name != "dt"]
        if choice == 0 and self.chance.random() < 0.5:
            condition = f"id % 2 = {number % 2}"
            query = f"SELECT {', '.join(self.columns)} FROM {self.table} WHERE {condition}"
            if self.definition is not None:
                text = f"INSERT OVERWRITE {self.table} {query}"
                return Statement(number, "overwrite by itself", text, _kept(number % 2), reads=True, settings=STATIC)
        if choice == 0:
            text = f"INSERT OVERWRITE {self.table} {self.values(rows)}"
            return Statement(number, "overwrite", text, _replaced(lambda _: True, rows), settings=STATIC)
        if choice == 1:
            text = f"INSERT OVERWRITE {self.table} PARTITION (dt = {place}) {self.values(rows, names)}"
            settings = self.chance.choice([STATIC, DYNAMIC])
            effect = _replaced(lambda row: row["dt"] == place, rows)
            return Statement(number, "overwrite a partition", text, effect, settings=settings)
        places = {each["dt"] for each in rows}
        text = f"INSERT OVERWRITE {self.table} {self.values(rows)}"
        return Statement(number, "overwrite partitions", text, _replaced(lambda row: row["dt"] in places, rows))

    def _replace_partition(self, number: int) -> Statement:
        """Of a table without a key: by a condition on the partition, or nothing but a delete."""
        place = self.chance.randrange(2)
        effect = _replaced(lambda row: row["dt"] == place, [])
        if self.chance.random() < 0.4:
            return Statement(number, "delete", f"DELETE FROM {self.table} WHERE dt = {place}", effect)
        if self.chance.random() < 0.2:
            return self._truncate(number)
        rows = self.given(number, place)
        text = f"INSERT INTO {self.table} REPLACE WHERE dt = {place} {self.values(rows)}"
        return Statement(number, "replace where", text, _replaced(lambda row: row["dt"] == place, rows))

    def _truncate(self, number: int) -> Statement:
        text = self.chance.choice([f"TRUNCATE TABLE {self.table}", f"DELETE FROM {self.table}"])
        return Statement(number, "truncate", text, _replaced(lambda _: True, []))

    def _change(self, number: int) -> Statement | None:
        """An UPDATE, DELETE, MERGE or REPLACE WHERE, or an INSERT of what the table has."""
        t, rows = self.table, self.given(number)
        late = f"{CONFLICT}|{LATER}" if self.definition is not None and self.definition.sequence else CONFLICT
        match self.chance.randrange(6):
            case 0:
                text = f"UPDATE {t} SET v = 'u{number}' WHERE id % 3 = {number % 3}"
                changed = _computed(
                    lambda read: [
                        {**row, "v": f"u{number}"} for row in read.rows.values() if row["id"] % 3 == number % 3
                    ]
                )
                return Statement(number, "update", text, changed, reads=True, may_fail=late)
            case 1:
                text = f"DELETE FROM {t} WHERE id % 4 = {number % 4}"
                gone = _computed(
                    lambda read: [{**row, DELETED: True} for row in read.rows.values() if row["id"] % 4 == number % 4]
                )
                return Statement(number, "delete", text, gone, reads=True, may_fail=late)
            case 2 if self.kind not in ("ignore", "fail"):
                others = {"id": "id + 2", "v": f"'c{number}'"}
                selected = ", ".join(others.get(name, name) for name in self.columns)
                text = f"INSERT INTO {t} SELECT {selected} FROM {t} WHERE id % 2 = 0"
                copied = _computed(
                    lambda read: [
                        {**row, "id": row["id"] + 2, "v": f"c{number}"}
                        for row in read.rows.values()
                        if row["id"] % 2 == 0
                    ]
                )
                return Statement(number, "copy", text, copied, reads=True, may_fail=late)
            case 3 if self.definition is not None and not self.definition.sequence:
                text = f"UPDATE {t} SET id = id + 1 WHERE id = {number % 8}"
                return Statement(number, "move", text, _computed(lambda read: _moved(read, number % 8)), reads=True)
            case 4:
                return self._merge(number, rows, late)
            case 5 if self.definition is not None and not self.definition.sequence:
                rows = [{**each, "n": 2 + each["n"] % 2} for each in rows]
                text = f"INSERT INTO {t} REPLACE WHERE n >= 2 {self.values(rows)}"
                effect = _computed(
                    lambda read: [*({**row, DELETED: True} for row in read.rows.values() if row["n"] >= 2), *rows]
                )
                return Statement(number, "replace where", text, effect, reads=True, may_fail=late)
            case _:
                return None

    def _merge(self, number: int, rows: Sequence[Record], late: str) -> Statement:
        """Clauses of all kinds."""
        by_source = self.chance.choice(["", "UPDATE SET v = 'gone'", "DELETE"])
        text = (
            f"MERGE INTO {self.table} t USING ({self.values(rows)}) s ON {self._on} "
            "WHEN MATCHED AND s.n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED AND s.n < 3 THEN INSERT *"
        )
        if by_source:
            text += f" WHEN NOT MATCHED BY SOURCE AND t.id > 5 THEN {by_source}"

        def changed(read: Keyed) -> list[Record]:
            found: list[Record] = []
            given = {read.key(each) for each in rows}
            for each in rows:
                old = read.rows.get(read.key(each))
                if old is not None:
                    found.append({**old, DELETED: True} if each["n"] == 1 else {**old, "v": each["v"]})
                elif each["n"] < 3:
                    found.append(each)
            for key, old in read.rows.items():
                if by_source and key not in given and old["id"] > 5:
                    found.append({**old, DELETED: True} if by_source == "DELETE" else {**old, "v": "gone"})
            return found

        return Statement(number, "merge", text, _computed(changed), reads=True, may_fail=late)

    def _failing(self, number: int) -> Statement:
        """A statement of which a task fails: it is aborted."""
        rows = self.given(number)
        names = ", ".join(f"IF(id >= 0, raise_error('no such luck'), {n})" if n == "v" else n for n in self.columns)
        text = f"INSERT INTO {self.table} SELECT {names} FROM ({self.values(rows)})"
        return Statement(number, "failing", text, lambda *_: None, may_fail="no such luck")

    def _call(self, number: int, latest: str | None) -> Statement | None:
        """Procedures, which change no row, but for a rollback."""
        if self.definition is None or latest is None:
            return None
        calls = {
            "rollback": (f"'{self.table}', '{latest}'", ".*"),
            "savepoint": (f"'{self.table}', '{latest}'", ".*"),
            "clean": (f"table => '{self.table}', keep_commits => {self.chance.randint(1, 4)}", CONFLICT),
            "compact": (f"'{self.table}'", "ConcurrentModification|InstantConflict|changed|taken up"),
        }
        name = self.chance.choice(list(calls))
        arguments, may_fail = calls[name]
        text = f"CALL lake.system.{name}({arguments})"
        return Statement(number, name, text, may_fail=may_fail)

    def _make_table(self, number: int) -> Statement | None:
        if self.definition is None:
            return None
        made = f"{self.table}_{number}"
        key = ",".join((*self.definition.key, *(() if self.is_table_wide else ("dt",))))
        text = (
            f"CREATE TABLE {made} USING parquet PARTITIONED BY (dt) TBLPROPERTIES ('primary-key' = '{key}') "
            f"AS SELECT * FROM {self.table}"
        )
        return Statement(number, "create table as select", text, made=made)

    def _columns(self, number: int) -> Statement | None:
        """Adds, renames or drops a column. Tables without a key only get some."""
        if self.stream.pending:  # files that have arrived have the columns of before
            return None
        others = [name for name in self.columns if name not in NAMES]
        name, t = f"x{number}", self.table
        choice = self.chance.randrange(3) if others and self.definition is not None else 0
        if choice == 0 and len(others) < 2:
            text = f"ALTER TABLE {t} ADD COLUMNS ({name} STRING)"
            return Statement(number, "add a column", text, columns=(None, name))
        if self.definition is None:
            return None
        if choice == 1:
            text = f"ALTER TABLE {t} RENAME COLUMN {others[0]} TO {name}"
            return Statement(number, "rename a column", text, columns=(others[0], name))
        text = f"ALTER TABLE {t} DROP COLUMN {others[0]}"
        return Statement(number, "drop a column", text, columns=(others[0], None))

    def _stream_step(self, number: int) -> Statement | None:
        """A further micro-batch of a stream, or the one that it has begun before.

        A query that dies at the wrong moment leaves files that the next one takes together, so there is one at a time.
        """
        if self.kind in ("ignore", "fail"):
            return None
        if not self.stream.pending:
            rows = self.given(number)
            self.stream.arrive(rows)
            batch = next(self.numbers)
            effect: Effect = lambda _, now: now.put(rows)  # noqa: E731
            self.stream.pending.append(Statement(batch, "micro-batch", json.dumps(rows), effect))
        return self.stream_again(number)

    def stream_again(self, number: int | None = None) -> Statement:
        """The stream goes on with what has arrived."""
        schema = ", ".join(f"{name} {_SPARK_TYPES.get(name, 'STRING')}" for name in self.columns)
        text = self.stream.program(schema)
        return Statement(number or next(self.numbers), "stream", text, is_code=True)


class Stream:
    """Files that arrive in a directory, each of which is a micro-batch of a stream into a table."""

    def __init__(self, table: str, directory: Path) -> None:
        self.table = table
        self.source = directory / "source"
        self.source.mkdir(parents=True)
        self.checkpoint = directory / "checkpoint"
        self.pending: list[Statement] = []
        self._numbers = itertools.count()

    def arrive(self, rows: Sequence[Record]) -> None:
        number = next(self._numbers)
        staged = self.source / f".{number}"
        staged.write_text("\n".join(json.dumps(dict(each)) for each in rows))
        os.utime(staged, (number + 1_700_000_000,) * 2)  # Spark reads files in the order of their times
        staged.rename(self.source / f"{number:03}.json")

    def program(self, schema: str) -> str:
        """Spark 4.3 refuses a checkpoint that has the temporary file of a driver which died in its first batch."""
        return f"""
spark.conf.set("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
rows = spark.readStream.schema({schema!r}).option("maxFilesPerTrigger", 1).json({str(self.source)!r})
writer = rows.writeStream.option("checkpointLocation", {str(self.checkpoint)!r}).trigger(availableNow=True)
writer.toTable({self.table!r}).awaitTermination()
"""


_SPARK_TYPES = {"id": "BIGINT", "n": "INT", "dt": "INT"}


def _literal(name: str, value: Any) -> str:
    if value is None:
        return "CAST(NULL AS STRING)"
    return f"{value}L" if name == "id" else repr(value)


def _computed(records: Callable[[Keyed], list[Any]]) -> Effect:
    """What is written follows from rows that were read, and that nobody has changed since."""

    def effect(read: Keyed, now: Keyed) -> Rows | None:
        written = records(read)
        if any(read.rows.get(key) != now.rows.get(key) for key in map(now.key, written)):
            return None
        return now.put(written)

    return effect


def _moved(read: Keyed, id: int) -> list[Record]:
    found = [row for row in read.rows.values() if row["id"] == id]
    return [*({**row, DELETED: True} for row in found), *({**row, "id": id + 1} for row in found)]


def _replaced(holds: Callable[[Record], bool], rows: Sequence[Record]) -> Effect:
    return lambda _, now: now.without(holds).put(rows)


def _kept(remainder: int) -> Effect:
    """The table is replaced by some of its own rows."""

    def effect(read: Keyed, now: Keyed) -> Rows | None:
        if read.rows != now.rows:
            return None
        return now.without(lambda _: True).put([row for row in read.rows.values() if row["id"] % 2 == remainder])

    return effect

"""Random histories of Postgres's tables: statements that change columns among those that change rows, and captures that
are killed. While changes are held, each row is shown as it was when its agreed columns could last be told."""

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner

from lake.capture.postgres.capture import Capture
from lake.capture.schema_changes.policy import Policy
from lake.cli import main
from tests.lake.capture.schema_changes.test_held import ALL_APPLIED, ALL_HELD, shown
from tests.lake.capture.shop import Source

HISTORIES = int(os.environ.get("HISTORIES", "30"))
STEPS = 12
AGREED = ("id", "a", "n", "b")
LARGE = 2_000
"""Characters from which on Postgres leaves a text out of the change of another column."""
LARGEST = {"a": (1 << 31) - 1, "n": 9999}


class Killed(Exception):
    """A capture ends where it is."""


@dataclass
class History:
    """A table: `names` of the agreed columns by now, None for one that can't be told, and the states of its rows."""

    name: str
    rng: random.Random
    names: dict[str, str | None] = field(default_factory=lambda: {each: each for each in AGREED})
    types: dict[str, str] = field(default_factory=lambda: {"a": "int", "n": "numeric(6,2)", "b": "text"})
    others: list[str] = field(default_factory=list)
    retyped: list[str] = field(default_factory=list)
    last: dict[int, tuple[Any, ...] | None] = field(default_factory=dict)
    seen: dict[int, set[tuple[Any, ...]]] = field(default_factory=dict)
    made: int = 0
    statements: list[str] = field(default_factory=list)

    def fresh(self) -> str:
        """A name that no column has now; others may have had it."""
        taken = {*self.names.values(), *self.others, *self.retyped}
        self.made += 1
        return self.rng.choice([each for each in (*AGREED[1:], "c", "d", f"c{self.made}") if each not in taken])

    def alteration(self) -> str:
        """A statement that changes the table's columns."""
        agreed = [each for each in AGREED[1:] if self.names[each] is not None]
        kinds = ["add", "fill", *(["rename"] * 3 + ["type", "drop", "again"] if agreed else [])]
        kinds += ["widen"] * 2 if {*agreed} & {"a", "n"} else []
        kinds += ["rename_other", "drop_other", "again_other"] if self.others else []
        kind, table = self.rng.choice(kinds), f"ALTER TABLE {self.name}"
        if kind in ("add", "fill"):
            self.others.append(self.fresh())
            return f"{table} ADD {self.others[-1]} int" + (" DEFAULT 7" if kind == "fill" else "")
        if kind == "again_other":
            name = self.rng.choice(self.others)
            self.others.remove(name)  # its place is behind all others by then
            self.others.append(name)
            return f"{table} DROP {name}; {table} ADD {name} int"
        if kind in ("rename_other", "drop_other"):
            name, fresh = self.rng.choice(self.others), self.fresh()
            self.others.remove(name)
            if kind == "drop_other":
                return f"{table} DROP {name}"
            self.others.append(fresh)
            return f"{table} RENAME {name} TO {fresh}"
        column = self.rng.choice([each for each in agreed if kind != "widen" or each != "b"])
        name = self.names[column]
        if kind == "rename":
            self.names[column] = self.fresh()
            return f"{table} RENAME {name} TO {self.names[column]}"
        if kind == "widen":
            self.types[column] = {"a": "bigint", "n": "numeric(10,4)"}[column]
            return f"{table} ALTER {name} TYPE {self.types[column]}"
        self.names[column] = None
        if kind == "type":
            self.retyped.append(str(name))
            new = {"a": f"text USING 'n' || {name}", "n": f"text USING 'n' || {name}", "b": "int USING 5"}[column]
            return f"{table} ALTER {name} TYPE {new}"
        if kind == "again":
            self.others.append(str(name))
            return f"{table} DROP {name}; {table} ADD {name} int"
        return f"{table} DROP {name}"

    def change(self) -> str:
        """A statement that changes rows."""
        key, rng = rng_key(self.rng), self.rng
        values = {
            "a": str(rng.choice([rng.randrange(9), LARGEST["a"] + 1 if self.types["a"] == "bigint" else 3])),
            "n": str(rng.choice([rng.randrange(900) / 100, 2.2222 if "4" in self.types["n"] else 1.25])),
            "b": rng.choice(["NULL", f"'{rng.randrange(99)}'", f"repeat('{rng.randrange(99)}', 2000)"]),
        }
        told = {str(now): values[each] for each in AGREED[1:] if (now := self.names[each]) is not None}
        written = {**told, **{each: str(rng.randrange(9)) for each in self.others}}
        some = {name: value for name, value in written.items() if rng.random() < 0.5}
        match rng.choice(["insert", "insert", "update", "update", "update", "delete", "move", "truncate"]):
            case "insert":
                columns, listed = ", ".join(["id", *written]), ", ".join([str(key), *written.values()])
                return f"INSERT INTO {self.name} ({columns}) VALUES ({listed}) ON CONFLICT DO NOTHING"
            case "delete":
                return f"DELETE FROM {self.name} WHERE id = {key}"
            case "move":
                is_free = f"NOT EXISTS (SELECT 1 FROM {self.name} WHERE id = {key + 100})"
                return f"UPDATE {self.name} SET id = {key + 100} WHERE id = {key} AND {is_free}"
            case "truncate" if rng.random() < 0.1:
                return f"TRUNCATE {self.name}"
        sets = ", ".join(f"{name} = {value}" for name, value in some.items()) or "id = id"
        return f"UPDATE {self.name} SET {sets} WHERE id = {key}"

    def run(self, source: Any, statement: str) -> None:
        """Runs a statement, and keeps it for who looks at a failure."""
        self.statements.append(statement)
        source.run(statement)

    def shown(self, source: Any, policy: Policy | None) -> list[list[object]]:
        """The rows of the typed table."""
        return shown(source, self.name, policy)

    def note(self, source: Any) -> None:
        """Notes the states of the rows, where all agreed columns can be told."""
        listed = ", ".join("NULL" if now is None else now for now in self.names.values())
        rows = {row[0]: row for row in source.run(f"SELECT {listed} FROM {self.name}")}
        are_told = None not in self.names.values()
        self.last = {key: row if are_told and fits(row) else self.last.get(key) for key, row in rows.items()}
        for key, row in self.last.items():
            if row is not None:
                self.seen.setdefault(key, set()).add(row)

    def wanted(self) -> list[list[Any]]:
        """The rows that are shown while all changes are held."""
        return [[*row] for _, row in sorted(self.last.items()) if row is not None]

    def check(self, source: Any, step: int, *, is_told: bool, leaves_out: bool = False) -> None:
        """Checks the rows that are shown while all changes are held. `is_told`: the source tells all of its changes;
        else rows may wait that could be told, and none is shown that there never was. `leaves_out`: changes don't have
        large values that stay, so that one waits before which the table has begun to be read again."""
        found, wanted = self.shown(source, ALL_HELD), self.wanted()
        said = f"{self.name}, step {step}: {'; '.join(self.statements)}"
        are_large = all(len(row[3] or "") >= LARGE for row in wanted if row not in found)
        if is_told and not (leaves_out and are_large):
            assert found == wanted, said
            return
        for row in found:
            assert tuple(row) in self.seen.get(int(str(row[0])), ()), f"{row} of {said}"
            assert row[0] in self.last, f"{row} is gone, of {said}"


def rng_key(rng: random.Random) -> int:
    return rng.randrange(6)


def fits(row: tuple[Any, ...]) -> bool:
    """Whether the types that are agreed on have all values of a row."""
    _, a, n, _ = row
    return (a is None or a <= LARGEST["a"]) and (n is None or (n <= LARGEST["n"] and n == round(n, 2)))


def capture(source: Source, rng: random.Random) -> None:
    """Captures what there is, and is killed now and then before that."""
    capture_by(lambda **options: Capture(source.client, source.options(**options)), rng)


def capture_by(made: Callable[..., Any], rng: random.Random) -> None:
    """Captures by what is made with options, and is killed now and then before that."""
    for _ in range(rng.choice([0, 0, 1, 2])):
        left = rng.randrange(1, 8)

        def pause(_: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Killed

        killed = made(batch_rows=3, chunk_rows=2)
        killed.pause = pause
        try:
            killed.run(once=True)
        except Killed:
            continue
    made(batch_rows=rng.choice([3, 1000]), chunk_rows=rng.choice([2, 100])).run(once=True)


def begun(source: Source) -> tuple[random.Random, list[History]]:
    """Tables with some rows, which are captured."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed}, {HISTORIES} histories")
    rng = random.Random(seed)
    histories = [History(f"t{number}", rng) for number in range(HISTORIES)]
    for each in histories:
        source.run(f"CREATE TABLE {each.name} (id int PRIMARY KEY, a int, n numeric(6,2), b text)")
        source.run(f"ALTER TABLE {each.name} ALTER b SET STORAGE EXTERNAL")
        source.run(f"INSERT INTO {each.name} SELECT n, n, n, n FROM generate_series(0, 3) n")
        each.note(source)
    capture(source, rng)
    return rng, histories


def check_applied(source: Any, histories: Sequence[History], captured: Callable[[], None]) -> None:
    """Checks that all rows are the source's once all changes are applied.

    A column that is NULL in older rows is found with the first row that has it. So each table gets one more.
    """
    for each in histories:
        each.run(source, f"INSERT INTO {each.name} (id) VALUES (999)")
    captured()
    for each in histories:
        rows = [[*row] for row in source.run(f"SELECT * FROM {each.name} ORDER BY id")]
        for policy in (ALL_APPLIED, None):
            assert each.shown(source, policy) == rows, f"{each.name}: {'; '.join(each.statements)}"


@pytest.mark.long
def test_random_histories(source: Source) -> None:
    rng, histories = begun(source)
    for step in range(STEPS):
        for each in histories:
            if rng.random() < 0.4:
                for statement in each.alteration().split("; "):
                    each.run(source, statement)
        for _ in range(4):
            for each in histories:
                each.run(source, each.change())
                each.note(source)
        for each in histories:
            each.statements.append("-- captured")
        capture(source, rng)
        for each in histories:
            if step % 4 == 3 or rng.random() < 0.2:
                each.check(source, step, is_told=True, leaves_out=True)
    check_applied(source, histories, lambda: capture(source, rng))


@pytest.mark.long
@pytest.mark.parametrize("is_prepared", [True, False])
def test_several_changes_before_a_capture_hears_of_them(source: Source, is_prepared: bool) -> None:
    """The catalog that a capture reads is ahead of its log. Only a source that is prepared tells all changes then."""
    if is_prepared:
        result = CliRunner().invoke(main, ["capture", "prepare", source.url])
        assert result.exit_code == 0, result.output
    rng, histories = begun(source)
    for step in range(STEPS // 2):
        for _ in range(5):
            for each in histories:
                if rng.random() < 0.3:
                    for statement in each.alteration().split("; "):
                        each.run(source, statement)
                each.run(source, each.change())
                each.note(source)
        for each in histories:
            each.statements.append("-- captured")
        capture(source, rng)
        for each in histories:
            if step % 3 == 2 or rng.random() < 0.2:
                each.check(source, step, is_told=is_prepared, leaves_out=True)
    check_applied(source, histories, lambda: capture(source, rng))

"""What becomes of a table's rows by each kind of change at a source: while it is held, with what somebody says of it,
and once it is applied or approved. All tables begin with one row of id, a and b."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from lake.capture.definitions import definition
from lake.capture.errors import CaptureError
from lake.capture.schema_changes.amendments import Amendment
from lake.capture.schema_changes.decisions import amend, decide, with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action
from lake.capture.schema_changes.policy import Policy, Rule
from lake.tables.lake import LakeClient
from tests.lake.capture.typed_duck import query_in, typed_rows

Rows = list[list[object]]

ALL_HELD, ALL_APPLIED = (Policy((Rule("*", frozenset(), each),), ()) for each in (Action.HOLD, Action.APPLY))


class Case(NamedTuple):
    """A change, and the rows that are right.

    `run`: statements at a source, split by `; `. `held`: what is shown while all changes are held. `after`: once they
    are applied, or approved. `amended`: what is shown while they are held, by what somebody says of the first one.
    `columns` and `first`: of the table and its row before. `key`: what tells rows apart afterwards.
    """

    run: str
    held: Rows
    after: Rows
    amended: Mapping[str, Rows] = {}
    columns: str = "a int, b text"
    first: str = "(1, 10, 'x')"
    key: Sequence[str] = ("id",)


X: list[object] = [1, 10, "x"]
Y: list[object] = [2, 20, "y"]
ADDED = "; INSERT INTO {t} VALUES (2, 20, 'y', 5)"

CASES: dict[str, Case] = {
    "added": Case("ALTER TABLE {t} ADD c int" + ADDED, [X, Y], [[*X, None], [*Y, 5]]),
    "filled_and_touched": Case(
        "ALTER TABLE {t} ADD c int DEFAULT 7; UPDATE {t} SET a = 11 WHERE id = 1", [[1, 11, "x"]], [[1, 11, "x", 7]]
    ),
    "filled": Case("ALTER TABLE {t} ADD c int DEFAULT 7" + ADDED, [X, Y], [[*X, 7], [*Y, 5]]),
    "dropped": Case(
        "ALTER TABLE {t} DROP COLUMN b; INSERT INTO {t} VALUES (2, 20)",
        [X],
        [[1, 10], [2, 20]],
        {"drop+add b": [X], "rename b=a": [X], "cast a": [X]},
    ),
    "renamed": Case(
        "ALTER TABLE {t} RENAME COLUMN b TO d; INSERT INTO {t} VALUES (2, 20, 'y')",
        [X, Y],
        [X, Y],
        {"rename b=d": [X, Y], "drop+add b": [X]},
    ),
    "replaced": Case(
        "ALTER TABLE {t} DROP COLUMN b; ALTER TABLE {t} ADD b text; INSERT INTO {t} VALUES (2, 20, 'y')",
        [X],
        [[1, 10, None], Y],
        {"rename b=b": [[1, 10, None], Y], "drop+add b": [X]},
    ),
    "name_taken": Case(
        "ALTER TABLE {t} DROP COLUMN b; ALTER TABLE {t} RENAME COLUMN a TO b; INSERT INTO {t} VALUES (2, 20)",
        [X],
        [[1, 10], [2, 20]],
        {"rename b=b": [X], "rename a=b": [X]},
    ),
    "emptied": Case(
        "ALTER TABLE {t} RENAME COLUMN b TO d; TRUNCATE TABLE {t}; INSERT INTO {t} VALUES (2, 20, 'y')",
        [Y],
        [Y],
        {"drop+add b": []},
    ),
    "deleted": Case("ALTER TABLE {t} DROP COLUMN b; DELETE FROM {t} WHERE id = 1", [], [], {"drop+add b": []}),
    "two_held": Case(
        "ALTER TABLE {t} RENAME COLUMN b TO d; INSERT INTO {t} VALUES (2, 20, 'y');"
        " ALTER TABLE {t} RENAME COLUMN a TO e; INSERT INTO {t} VALUES (3, 30, 'z')",
        [X, Y, [3, 30, "z"]],
        [X, Y, [3, 30, "z"]],
    ),
}
"""By any source."""

SCALED: Rows = [[1, Decimal("2.50"), "x"], [2, Decimal("3.00"), "y"]]
POSTGRES: dict[str, Case] = {
    **CASES,
    "widened": Case(
        "ALTER TABLE {t} ALTER a TYPE bigint; INSERT INTO {t} VALUES (2, 1::bigint << 40, 'y'), (3, 30, 'z')",
        [X, [3, 30, "z"]],
        [X, [2, 1 << 40, "y"], [3, 30, "z"]],
        {"drop+add a": [X], "cast a": [X, [3, 30, "z"]]},
    ),
    "scaled": Case(
        "ALTER TABLE {t} ALTER n TYPE numeric(12,4); INSERT INTO {t} VALUES (2, 3, 'y'), (3, 3.0001, 'z')",
        SCALED,
        [[1, Decimal("2.5000"), "x"], [2, Decimal("3.0000"), "y"], [3, Decimal("3.0001"), "z"]],
        columns="n numeric(10,2), b text",
        first="(1, 2.5, 'x')",
    ),
    "another_type": Case(
        "ALTER TABLE {t} ALTER a TYPE text USING 'n' || a; UPDATE {t} SET b = 'X' WHERE id = 1;"
        " INSERT INTO {t} VALUES (2, '20', 'y')",
        [X],
        [[1, "n10", "X"], [2, "20", "y"]],
        {"cast a": [X, Y], "drop+add a": [X]},
    ),
    "labelled": Case(
        "ALTER TYPE mood_{t} RENAME VALUE 'x' TO 'z'; INSERT INTO {t} VALUES (2, 20, 'z')",
        [[1, 10, "z"], [2, 20, "z"]],
        [[1, 10, "z"], [2, 20, "z"]],
        columns="a int, b mood_{t}",
    ),
    "keyed": Case(
        "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (id, a); INSERT INTO {t} VALUES (1, 11, 'y')",
        [X],
        [X, [1, 11, "y"]],
        {"cast a": [X]},
        key=("id", "a"),
    ),
    "attached": Case(
        "CREATE TABLE {t}_p (id int NOT NULL, a int, b text); INSERT INTO {t}_p VALUES (15, 50, 'v');"
        " ALTER TABLE {t} ATTACH PARTITION {t}_p FOR VALUES FROM (10) TO (20)",
        [X, [15, 50, "v"]],
        [X, [15, 50, "v"]],
    ),
    "rolled_back": Case("BEGIN; ALTER TABLE {t} DROP b; ROLLBACK; INSERT INTO {t} VALUES (2, 20, 'y')", [X, Y], [X, Y]),
}

MARIADB: dict[str, Case] = {
    **CASES,
    "widened": Case(
        "ALTER TABLE {t} MODIFY a bigint; INSERT INTO {t} VALUES (2, 1 << 40, 'y'), (3, 30, 'z')",
        [X, [3, 30, "z"]],
        [X, [2, 1 << 40, "y"], [3, 30, "z"]],
        {"drop+add a": [X], "cast a": [X, [3, 30, "z"]]},
    ),
    "scaled": Case(
        "ALTER TABLE {t} MODIFY n decimal(12,4); INSERT INTO {t} VALUES (2, 3, 'y'), (3, 3.0001, 'z')",
        SCALED,
        [[1, Decimal("2.5000"), "x"], [2, Decimal("3.0000"), "y"], [3, Decimal("3.0001"), "z"]],
        columns="n decimal(10,2), b text",
        first="(1, 2.5, 'x')",
    ),
    "another_type": Case(
        "ALTER TABLE {t} MODIFY a varchar(9); UPDATE {t} SET a = 'n10' WHERE id = 1;"
        " INSERT INTO {t} VALUES (2, '20', 'y')",
        [X],
        [[1, "n10", "x"], [2, "20", "y"]],
        {"cast a": [X, Y], "drop+add a": [X]},
    ),
    "labelled": Case(
        "ALTER TABLE {t} MODIFY b enum('z','y','x'); INSERT INTO {t} VALUES (2, 20, 'z')",
        [X, [2, 20, "z"]],
        [X, [2, 20, "z"]],
        columns="a int, b enum('x','y')",
    ),
    "keyed": Case(
        "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, a); INSERT INTO {t} VALUES (1, 11, 'y')",
        [X],
        [X, [1, 11, "y"]],
        {"cast a": [X]},
        key=("id", "a"),
    ),
    "exchanged": Case(
        "CREATE TABLE {t}_p (id int PRIMARY KEY, a int, b varchar(9)); INSERT INTO {t}_p VALUES (15, 50, 'v');"
        " ALTER TABLE {t} EXCHANGE PARTITION p WITH TABLE {t}_p",
        [X, [15, 50, "v"]],
        [X, [15, 50, "v"]],
        columns="a int, b varchar(9)",
    ),
}


class Checked:
    """A captured table of a case."""

    def __init__(self, client: LakeClient, into: str, table: str, case: Case) -> None:
        self._client, self._into, self._table, self._case = client, into, table, case
        self._lake = client.table(into)

    def check(self, now: Callable[[], Sequence[Sequence[Any]]]) -> None:
        """Checks the rows under hold, with what is said of the last change, applied, and approved one after the other.
        `now`: the rows that the source has."""
        case, name = self._case, self._table
        assert self._rows(ALL_HELD) == case.held, f"{name} under hold"
        ats = [*dict.fromkeys(str(each.at) for each in changes_of(self._lake, name))]
        for said, rows in case.amended.items():
            amend(self._lake, ALL_HELD, name, ats[0], [Amendment.parse(said)])
            assert self._rows(with_decisions(ALL_HELD, self._lake)) == rows, f"{name} with {said}"
        if case.amended:
            amend(self._lake, ALL_HELD, name, ats[0], [])
        assert self._rows(with_decisions(ALL_HELD, self._lake)) == case.held, f"{name}, all taken back"
        assert sorted([*each] for each in now()) == case.after, f"{name} at the source"
        assert self._rows(ALL_APPLIED, case.key) == case.after, f"{name} applied"
        for at in ats[1:]:
            with pytest.raises(CaptureError, match=f"an earlier change of {name} is held, at {ats[0]}"):
                decide(self._lake, ALL_HELD, name, at, Action.APPLY)
        for at in ats:
            decide(self._lake, ALL_HELD, name, at, Action.APPLY)
        assert self._rows(with_decisions(ALL_HELD, self._lake), case.key) == case.after, f"{name} approved"

    def _rows(self, policy: Policy, key: Sequence[str] = ("id",)) -> Rows:
        """The rows of the typed table, as definitions come to them that are resolved now."""
        made = definition(self._lake, self._table, policy=policy, is_printed=False)
        query = query_in(made)
        found = [[*each.values()] for each in typed_rows(self._client, self._into, self._table, query, key)]
        return sorted(found, key=lambda row: tuple(map(repr, row)))

"""What a policy says of changes, and which files are refused."""

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lake.capture.errors import CaptureError
from lake.capture.schema_changes.agreed import columns_without, decided, held
from lake.capture.schema_changes.model import Action, Column, Difference, Kind, Position, SchemaChange
from lake.capture.schema_changes.policy import Policy, read_policy

A, K = Action, Kind


def change(kind: Kind, old: str | None, new: str | None, place: int = 1, table: str = "public.t") -> SchemaChange:
    made = [None if each is None else Column(each, "int", "int", False) for each in (old, new)]
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    return SchemaChange(table, Position(1, place, 2), moment, Difference(kind, "said", *made))


def policy(path: Path, text: str) -> Policy:
    file = path / "schema-changes.yml"
    file.write_text(text)
    return read_policy(file)


def test_defaults() -> None:
    found = {kind: Policy().decide(change(kind, "a", "b")).action for kind in Kind}
    waiting = {K.RENAME, K.REPLACE, K.UNCLEAR, K.NARROW, K.TYPE, K.KEY, K.CHARSET, K.RENAME_TABLE, K.UNKNOWN}
    assert {kind for kind, action in found.items() if action is A.HOLD} == waiting


def test_rules(tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        """
rules:
  - {table: public.audit_*, action: ignore}
  - {table: public.t, kind: [add, drop], action: hold}
  - {kind: rename, action: apply}
personal: ["*name*"]
decided:
  - {table: public.t, at: 1.7.2, action: apply}
""",
    )

    def decide(*args: object) -> tuple[Action, str]:
        return tuple(made.decide(change(*args)))  # type: ignore[arg-type, return-value]

    assert decide(K.TYPE, "a", "a", 1, "public.audit_log") == (A.IGNORE, "rule 1")
    assert decide(K.ADD, None, "c") == (A.HOLD, "rule 2")
    assert decide(K.ADD, None, "c", 7) == (A.APPLY, "decided")
    assert decide(K.ADD, None, "c", 1, "public.u") == (A.APPLY, "default")
    assert decide(K.RENAME, "a", "b") == (A.APPLY, "rule 3")
    assert decide(K.RENAME, "a", "First_Name") == (A.HOLD, "personal: *name*")
    assert decide(K.WIDEN, "name", "name") == (A.APPLY, "default"), "it was there before"
    assert decide(K.ADD, None, "name", 7) == (A.APPLY, "decided")
    assert decide(K.ADD, None, "c", 7) == (A.APPLY, "decided")
    blocked = dataclasses.replace(change(K.ADD, None, "c", 7), blocked="why")
    assert tuple(made.decide(blocked)) == (A.HOLD, "why")
    assert policy(tmp_path, "") == Policy(decided={})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules: [", "schema-changes.yml, line 1: it isn't YAML"),
        ("- a", "the file: expected rules, personal, decided"),
        ("rule: []", "there is no field rule"),
        ("rules: {}\npersonal: a", "personal: expected a list"),
        ("rules: a", "rules: expected a list"),
        ("rules: [{kind: renamed, action: hold}]", "rules, number 1: there is no such kind: add, "),
        ("rules: [{kind: add, action: held}]", "rules, number 1: expected action: apply, hold, ignore"),
        ("rules: [{kind: add}]", "expected action"),
        ("rules: [{tables: t, action: hold}]", "there is no field tables: table, kind, action"),
        ("decided: [{table: t, at: 1.5, action: hold}]", "expected table, and at as a text"),
        ("decided: [{table: t, at: 1.5.1, action: hold}, {table: t, at: 1.5.1, action: apply}]", "is decided twice"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        policy(tmp_path, text)


def test_columns_that_are_left_out() -> None:
    changes = [
        change(K.ADD, None, "email", 1),
        change(K.ADD, None, "a", 2),
        change(K.ADD, None, "phone", 3),
        change(K.DROP, "phone", None, 4),
        change(K.ADD, None, "b", 5),
    ]
    assert columns_without(decided(changes, Policy())) == {"email"}
    assert [str(each.at) for each in held(decided(changes, Policy()))] == ["1.1.2", "1.3.2"]
    renamed = Policy(decided={("public.t", "1.6.2"): A.APPLY})
    assert columns_without(decided([*changes, change(K.RENAME, "email", "mail", 6)], renamed)) == {"mail"}
    with pytest.raises(
        CaptureError, match=r"a change of public\.t is held \(default\): said, at 1\.6\.2; decide on it"
    ):
        columns_without(decided([*changes, change(K.RENAME, "a", "c", 6)], Policy()))

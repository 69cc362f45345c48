"""What is to become of changes: the policy of a project, in a file that is reviewed like code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lake.capture.errors import CaptureError
from lake.capture.schema_changes.amendments import Amendment
from lake.capture.schema_changes.model import UNTOUCHED, Action, Difference, Kind, SchemaChange, Untouched

FILE = "schema-changes.yml"
"""The name of the file in a project."""

DEFAULTS: Mapping[Kind, Action] = {
    **dict.fromkeys(Kind, Action.HOLD),
    **dict.fromkeys(
        (Kind.ADD, Kind.ADD_FILLED, Kind.DROP, Kind.WIDEN, Kind.MOVE, Kind.ROWS, Kind.PARTITIONS, Kind.TRUNCATE),
        Action.APPLY,
    ),
    **dict.fromkeys((Kind.NULLABILITY, Kind.LABELS), Action.APPLY),
    Kind.STALE: Action.IGNORE,
}
"""What becomes of a kind that no rule is about. What isn't understood is held."""

PERSONAL = (
    *("*email*", "*e_mail*", "*phone*", "*birth*", "*iban*", "*passport*", "*ssn*", "*tax_id*", "*social_security*"),
    *("*card_number*", "*password*", "*secret*"),
)
"""Names of columns that are held until somebody decides, unless the file has others: personal data, and secrets."""

_FIELDS = ("rules", "personal", "decided", "untouched")


class Rule(NamedTuple):
    """What becomes of some kinds of changes of some tables. `table`: a pattern of names; `kinds`: none for all."""

    table: str
    kinds: frozenset[Kind]
    action: Action


class UntouchedRule(NamedTuple):
    """What becomes of rows that some kinds of changes of some tables have changed without the log."""

    table: str
    kinds: frozenset[Kind]
    untouched: Untouched


class Decision(NamedTuple):
    """What becomes of a change. `why`: what says so."""

    action: Action
    why: str


@dataclass(frozen=True)
class Policy:
    """What becomes of changes. The first rule that fits counts; `decided`: of single changes, by table and position.

    `amended`: what somebody says of single changes, which the source doesn't tell. `untouched`: of rows that aren't in
    the log; the first one that fits counts.
    """

    rules: Sequence[Rule] = ()
    personal: Sequence[str] = PERSONAL
    decided: Mapping[tuple[str, str], Action] | None = None
    amended: Mapping[tuple[str, str], tuple[Amendment, ...]] | None = None
    untouched: Sequence[UntouchedRule] = ()

    def of_untouched(self, table: str, kind: Kind) -> Untouched:
        """What becomes of a table's rows that a change of a kind has changed without the log."""
        for each in self.untouched:
            if fnmatchcase(table, each.table) and kind in each.kinds:
                return each.untouched
        return Untouched.RE_READ

    def amendments(self, change: SchemaChange) -> tuple[Amendment, ...]:
        """What somebody says of a change, and of others at its position."""
        return (self.amended or {}).get((change.table, str(change.at)), ())

    def decide(self, change: SchemaChange) -> Decision:
        """What becomes of a change."""
        if change.blocked is not None:
            return Decision(Action.HOLD, change.blocked)
        decided = (self.decided or {}).get((change.table, str(change.at)))
        if decided is not None:
            return Decision(decided, "decided")
        difference = change.difference
        if difference.kind is Kind.STALE:  # it was decided when the rows weren't read again
            return Decision(Action.IGNORE, "untouched")
        if (pattern := self._personal(difference)) is not None:
            return Decision(Action.HOLD, f"personal: {pattern}")
        for number, each in enumerate(self.rules, 1):
            if fnmatchcase(change.table, each.table) and (not each.kinds or difference.kind in each.kinds):
                return Decision(each.action, f"rule {number}")
        return Decision(DEFAULTS[difference.kind], "default")

    def _personal(self, difference: Difference) -> str | None:
        """The pattern of a name by which a column is held that is there by the change."""
        if difference.new is None or (difference.old is not None and difference.old.name == difference.new.name):
            return None
        name = difference.new.name.casefold()
        return next((each for each in self.personal if fnmatchcase(name, each.casefold())), None)


def read_policy(path: Path) -> Policy:
    """The policy in a file. Raises CaptureError, with the line where there is one."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CaptureError(f"{path} can't be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise CaptureError(f"{path}{line}: it isn't YAML: {getattr(error, 'problem', None) or error}") from None
    try:
        return _policy({} if found is None else found)
    except ValueError as error:
        raise CaptureError(f"{path}: {error}") from None


def _policy(found: Any) -> Policy:
    """Raises ValueError."""
    _check_fields(found, _FIELDS, "the file")
    personal = found.get("personal", list(PERSONAL))
    if not isinstance(personal, list) or not all(isinstance(each, str) for each in personal):
        raise ValueError("personal: expected a list of patterns of columns' names")
    decided = {}
    for number, each in enumerate(_list(found, "decided"), 1):
        where = f"decided, number {number}"
        _check_fields(each, ("table", "at", "action"), where)
        table, at = each.get("table"), each.get("at")
        if not isinstance(table, str) or not isinstance(at, str):
            raise ValueError(
                f"{where}: expected table, and at as a text, as `metastore schema-changes list` prints them"
            )
        if (table, at) in decided:
            raise ValueError(f"{where}: {table} at {at} is decided twice")
        decided[table, at] = _action(each.get("action"), where)
    rules = [_rule(each, f"rules, number {number}") for number, each in enumerate(_list(found, "rules"), 1)]
    untouched = [_of_untouched(each, f"untouched, number {n}") for n, each in enumerate(_list(found, "untouched"), 1)]
    return Policy(tuple(rules), tuple(personal), decided, untouched=tuple(untouched))


def _of_untouched(given: Any, where: str) -> UntouchedRule:
    _check_fields(given, ("table", "kind", "action"), where)
    table, kinds = given.get("table", "*"), given.get("kind")
    if not isinstance(table, str) or not table:
        raise ValueError(f"{where}: expected table: a name with its schema, or a pattern such as public.*")
    try:
        untouched = Untouched(given.get("action"))
    except ValueError:
        raise ValueError(f"{where}: expected action: {', '.join(Untouched)}") from None
    possible = {kind.value: kind for kind, those in UNTOUCHED.items() if untouched in those}
    listed = kinds if isinstance(kinds, list) else [kinds]
    if not listed or any(each not in possible for each in listed):
        raise ValueError(f"{where}: expected kind: {untouched} is for {', '.join(possible)}")
    return UntouchedRule(table, frozenset(possible[each] for each in listed), untouched)


def _rule(given: Any, where: str) -> Rule:
    _check_fields(given, ("table", "kind", "action"), where)
    table, kinds = given.get("table", "*"), given.get("kind", [])
    if not isinstance(table, str) or not table:
        raise ValueError(f"{where}: expected table: a name with its schema, or a pattern such as public.*")
    try:
        of_kinds = frozenset(Kind(each) for each in (kinds if isinstance(kinds, list) else [kinds]))
    except ValueError:
        raise ValueError(f"{where}: there is no such kind: {', '.join(Kind)}") from None
    return Rule(table, of_kinds, _action(given.get("action"), where))


def _action(given: Any, where: str) -> Action:
    try:
        return Action(given)
    except ValueError:
        raise ValueError(f"{where}: expected action: {', '.join(Action)}") from None


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    given = found.get(name) or []
    if not isinstance(given, list):
        raise ValueError(f"{name}: expected a list")
    return given


def _check_fields(given: Any, fields: Sequence[str], where: str) -> None:
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected {', '.join(fields)}")
    if unknown := [str(each) for each in given if each not in fields]:
        raise ValueError(f"{where}: there is no field {unknown[0]}: {', '.join(fields)}")

"""What a layer is defined by, as records of refreshes keep it, and in what two definitions differ.

Spark says whether two queries have the same rows, by the canonical forms of their plans. Where that can't be said, they
differ: then all of the layer is computed.
"""

import dataclasses
import difflib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import sqlglot
from sqlglot.errors import SqlglotError

from lake.layers.compiler.texts.restated import Restated
from lake.layers.compiler.texts.written import Written
from lake.layers.errors import BadQuery

_SQL = "spark.sql."
_TUNING = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.shuffle.partitions",
    "spark.sql.warehouse.dir",
)
"""How settings begin that say how rows are computed, and not which."""

_OF_SESSION = frozenset({"handle", "plan", "sql", "text", "reason"})
"""What of an analyser's tree belongs to the session that has read it, or is for people."""

_COLUMN = re.compile(r"(`(?:[^`]|``)*`) (.+?)(?:, (?=`)|$)")
"""A column of a table in a request, and its type."""

_WITHOUT_ORDER = frozenset({"columns", "equal", "non_null"})
"""What a tree says of an expression in lists whose order means nothing."""


class Change(StrEnum):
    """In what two definitions of a layer differ that have other rows, or may have."""

    UNKNOWN = "unknown"  # what the layer was computed by isn't known
    QUERY = "query"
    COLUMNS = "columns"  # their names, types or order
    KEY = "key"  # or what hidden keys are made of
    EXPECTATIONS = "expectations"
    SETTINGS = "settings"  # Spark's, of the project
    TYPES = "types"  # of columns that tables have which it reads


class Analyser(Protocol):
    """What parses and analyses queries: Spark, or what knows its answers."""

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The tree of a query. Both are described at `LayerPlans.read` of the extension. Raises BadQuery."""


class Comparer(Analyser, Protocol):
    """What also compares what queries mean."""

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether two requests that can be read have the same rows, whatever their columns' names are. False where that
        can't be said."""


@dataclass(frozen=True)
class Defined:
    """What the rows and the table of a layer depend on.

    `queries`, `views` (by name) and `database` (of names without one) are as they were written. `tables`: those that
    they read, with `columns` and `hidden` ones as a request has them. `conditions`: of expectations, each with `name`,
    `condition` and `violation`. `columns`: the table's, with their types. `key`: of the table; `row_keys` and `form`:
    of what its hidden keys are made, and how. `settings`: the project's for Spark that rows may depend on. `restated`:
    the parts that the `queries` were made of, as of `Restated`; None for a table without such. `known`: by table that
    they read, what its rows are known by, None for nothing; None as a whole for a table without hidden keys that are
    made of that.
    """

    queries: Sequence[str]
    views: Mapping[str, str]
    database: str
    tables: Mapping[str, Any]
    conditions: Sequence[Mapping[str, str]]
    columns: Mapping[str, str]
    key: Sequence[str]
    row_keys: str | None
    form: int
    settings: Mapping[str, str]
    partitions: Sequence[str]
    properties: Mapping[str, str]
    is_quarantine: bool = False
    restated: Mapping[str, Any] | None = None
    known: Mapping[str, Sequence[str] | None] | None = None

    def as_json(self) -> dict[str, Any]:
        found = dataclasses.asdict(self)
        return {name: value for name, value in found.items() if value is not None or name not in ("restated", "known")}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> "Defined | None":
        """None for what another version has kept, which this one doesn't understand."""
        try:
            return cls(**given)
        except TypeError:
            return None

    @property
    def digest(self) -> str:
        """The same for the same definition only."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:16]

    @property
    def request(self) -> dict[str, Any]:
        """What an analyser is asked."""
        return {
            "queries": [*self.queries],
            "views": dict(self.views),
            "database": self.database,
            "tables": dict(self.tables),
            "conditions": [{name: each[name] for name in ("name", "condition")} for each in self.conditions],
        }

    @property
    def parts(self) -> Restated | None:
        """The parts that it consists of; None if it has one query for all rows."""
        return None if self.restated is None else Restated.of_json(self.restated)

    def texts(self) -> list[str]:
        """The texts of its queries and views."""
        return [*self.queries, *(self.views[name] for name in sorted(self.views))]

    def normal(self) -> tuple[object, ...] | None:
        """Its texts without comments, and with one blank wherever there is any; None for what can't be parsed."""
        try:
            queries = [Written.parsed(each).normal for each in self.queries]
            views = {name: Written.parsed(each).normal for name, each in self.views.items()}
        except BadQuery:
            return None
        return queries, views, self.database


def settings_of(configuration: Mapping[str, str]) -> dict[str, str]:
    """Those of a project's settings for Spark on which rows may depend."""
    return {name: configuration[name] for name in sorted(configuration) if _matters(name)}


def _matters(setting: str) -> bool:
    return setting.startswith(_SQL) and not setting.startswith(_TUNING)


def changes_between(before: Defined, now: Defined, comparer: Comparer) -> list[Change]:
    """In what two definitions of a layer differ that may have other rows; empty if they have the same."""
    found = []
    if [*before.columns.items()] != [*now.columns.items()]:
        found.append(Change.COLUMNS)
    keys = [(tuple(each.key), each.row_keys, each.form) for each in (before, now)]
    if keys[0] != keys[1] or have_other_keys(before, now):
        found.append(Change.KEY)
    if _outcomes(before) != _outcomes(now):
        found.append(Change.EXPECTATIONS)
    if dict(before.settings) != dict(now.settings):
        found.append(Change.SETTINGS)
    texts = before.normal()
    is_text_same = texts is not None and texts == now.normal()
    if not (is_text_same and _conditions(before) == _conditions(now)) and not _are_same(before, now, comparer):
        found.append(Change.EXPECTATIONS if is_text_same else Change.QUERY)
    if have_other_types(before, now):
        found.append(Change.TYPES)
    return [*dict.fromkeys(found)]


def have_other_types(before: Defined, now: Defined) -> bool:
    """Whether a column of a table that both read has another type now: the same text may mean something else then, as
    `amount > '9'` and `CAST(amount AS STRING)` do. Columns that came or went don't count."""
    types = [{name: _types_of(each) for name, each in one.tables.items()} for one in (before, now)]
    return any(
        types[1].get(table, {}).get(column, kind) != kind
        for table, columns in types[0].items()
        for column, kind in columns.items()
    )


def have_other_keys(before: Defined, now: Defined) -> bool:
    """Whether hidden keys are made of other columns now, since a table that both read is known by others, as a layer is
    that groups by another column. An increment would look for its rows by texts that no stored row has."""
    known = now.known or {}
    return any(table in known and (key or []) != (known[table] or []) for table, key in (before.known or {}).items())


def _types_of(table: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a table with their types, as a request has them."""
    return dict(_COLUMN.findall(table["columns"]))


def _outcomes(defined: Defined) -> list[tuple[str, ...]]:
    """What becomes of rows that don't meet the expectations; in a quarantine the rows have their names."""
    kept = ("violation", "name") if defined.is_quarantine else ("violation",)
    return [tuple(each[name] for name in kept) for each in defined.conditions]


def _conditions(defined: Defined) -> list[str]:
    return [each["condition"] for each in defined.conditions]


def _are_same(before: Defined, now: Defined, comparer: Comparer) -> bool:
    """Whether the queries and conditions of two definitions have the same rows, told apart by the same values."""
    try:
        shapes = [_shape(comparer.read(each.request)) for each in (before, now)]
    except BadQuery:  # nobody can say any more what it meant
        return False
    return shapes[0] == shapes[1] and comparer.same(before.request, now.request)


def _shape(answer: Mapping[str, Any]) -> Any:
    """The tree of a query without the names of its columns: they end with numbers, in the order of the tree."""
    numbers = {name: f"#{name.rpartition('_')[2]}" for name in answer["types"]}

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            found = {numbers.get(name, name): of(each) for name, each in value.items() if name not in _OF_SESSION}
            ordered = _WITHOUT_ORDER & found.keys() if "handle" in value else ()
            return found | {name: sorted(found[name], key=repr) for name in ordered}
        if isinstance(value, list):
            return [of(each) for each in value]
        return numbers.get(value, value) if isinstance(value, str) else value

    return of(answer["tree"]), {numbers[name]: kind for name, kind in answer["types"].items()}


def text_difference(before: Defined, now: Defined) -> list[str]:
    """How the texts of two definitions differ, for people: lines that begin with a minus, a plus or a blank."""
    texts = [[line for text in each.texts() for line in _pretty(text)] for each in (before, now)]
    lines = list(difflib.unified_diff(texts[0], texts[1], lineterm="", n=2))
    return [line for line in lines[2:] if not line.startswith("@@")]


def _pretty(text: str) -> list[str]:
    try:
        return sqlglot.parse_one(text, read="spark").sql("spark", pretty=True).splitlines()
    except SqlglotError:
        return text.splitlines()

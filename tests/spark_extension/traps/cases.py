"""What a case is: a table, statements, and the rows or refusals that they must give.

Statements name the case's table as `{t}`, other tables as `{t}_…`, its database as `{db}`, temporary views as `{v}`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import SparkError, SparkSession

KEYED = ("merge-on-read", "copy-on-write")
PLAIN = ("plain",)
ALL = KEYED + PLAIN

Rows = list[list[Any]]


@dataclass(frozen=True)
class Do:
    """A statement that succeeds."""

    statement: str


@dataclass(frozen=True)
class Gives:
    """A query and its rows, in any order."""

    query: str
    rows: Rows


@dataclass(frozen=True)
class Holds:
    """The rows of the table by `SELECT *`, which the timeline must have, too."""

    rows: Rows


@dataclass(frozen=True)
class Refused:
    """A statement that fails with such a message, and changes nothing."""

    statement: str
    message: str


@dataclass(frozen=True)
class Python:
    """Code that runs in the session; it finds the names of the table and the database as `table` and `database`."""

    code: str


Step = Do | Gives | Holds | Refused | Python


@dataclass(frozen=True)
class Case:
    """A trap: `trap` says whose test has it, `why` what ours do where systems don't agree, `caught` what ours did "
    "wrong."""

    name: str
    trap: str
    columns: str
    steps: Sequence[Step]
    rows: str = ""
    key: str = "id"
    partitions: str = ""
    on: tuple[str, ...] = KEYED
    properties: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ("3.5", "4")
    why: str = ""
    caught: str = ""


def parameters(cases: Sequence[Case]) -> list[Any]:
    """Each case on each kind of table."""
    return [pytest.param(case, kind, id=f"{case.name}-{kind}") for case in cases for kind in case.on]


class Run:
    """A case on one kind of table, in a session."""

    def __init__(
        self, spark: SparkSession, client: LakeClient, database: str, case: Case, kind: str, number: int
    ) -> None:
        self.spark = spark
        self.client = client
        self.case = case
        self.kind = kind
        self.before: Rows | None = None
        self.names = {"{t}": f"{database}.t{number}", "{db}": database, "{v}": f"v{number}"}

    def text(self, statement: str) -> str:
        for name, meant in self.names.items():
            statement = statement.replace(name, meant)
        return statement

    def sql(self, statement: str) -> Rows:
        return self.spark.sql(self.text(statement))

    def run(self) -> None:
        if self.spark.line not in self.case.lines:
            pytest.skip("of another Spark line")
        for name, value in self.case.settings.items():
            self.spark.sql(f"SET {name}={value}")
        try:
            if self.case.columns:
                self._create()
            for step in self.case.steps:
                self._take(step)
            self._are_as_before()
        finally:
            for name in self.case.settings:
                self.spark.sql(f"RESET {name}")
            self.spark.sql(self.text("DROP VIEW IF EXISTS {v}"))

    def _create(self) -> None:
        properties = {"timeline.archived-days": "9"}
        if self.kind in KEYED:
            properties = {"primary-key": self.case.key, "table-type": self.kind, "bucket": "2", **self.case.properties}
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        partitioned = f"PARTITIONED BY ({self.case.partitions}) " if self.case.partitions else ""
        self.sql(f"CREATE TABLE {{t}} ({self.case.columns}) USING parquet {partitioned}TBLPROPERTIES ({listed})")
        if self.case.rows:
            self.sql(f"INSERT INTO {{t}} VALUES {self.case.rows}")

    def _take(self, step: Step) -> None:
        if not isinstance(step, Refused):
            self._are_as_before()
        match step:
            case Do(statement):
                self.sql(statement)
            case Gives(query, expected):
                found = ordered(self.sql(query))
                assert found == ordered(expected), f"{self.text(query)}: {found}"
            case Holds(expected):
                self._holds(expected)
            case Refused(statement, message):
                self._is_refused(statement, message)
            case Python(code):
                names = f"table, database = {self.names['{t}']!r}, {self.names['{db}']!r}\n"
                self.spark.python(names + code)

    def _holds(self, expected: Rows) -> None:
        found = self._rows()
        assert found == ordered(expected), found
        code = "from lake.spark import read\nresult = [list(row) for row in read(spark, {t!r}).collect()]"
        if self.kind in KEYED:  # by the other way of reading, which goes by no catalog
            assert ordered(self.spark.python(code.replace("{t!r}", repr(self.names["{t}"])))) == found
        else:
            table = self.client.table(self.names["{t}"])
            assert sum(each.rows or 0 for each in table.snapshot(include_uncommitted=True)) == len(found)

    def _is_refused(self, statement: str, message: str) -> None:
        if self.case.columns and self.before is None:
            self.before = self._rows()
        instants = self._instants()
        with pytest.raises(SparkError, match=f"(?is){message}"):
            self.sql(statement)
            pytest.fail(f"not refused: {self.text(statement)}")
        assert self._instants() == instants, self.text(statement)

    def _are_as_before(self) -> None:
        """After statements that were refused, the table has the rows that it had before the first of them."""
        if self.before is not None:
            assert self._rows() == self.before
            self.before = None

    def _rows(self) -> Rows:
        return ordered(self.sql("SELECT * FROM {t}"))

    def _instants(self) -> list[tuple[str, str]]:
        """The instants that were not given up."""
        if not self.case.columns:
            return []
        return [(each.timestamp, each.state) for each in self.client.table(self.names["{t}"]).instants()]


def ordered(rows: Rows) -> Rows:
    return sorted((list(row) for row in rows), key=repr)

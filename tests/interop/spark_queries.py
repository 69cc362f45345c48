"""Runs in a process with Spark: the queries of one of Spark's own files of tests, as layers over the file's tables.

Commands are run as they are, so that tables, views and settings are there. The rows of the tables that a query names
are copied for it, some hundreds at most, and the layer is computed by `tests.lake.layers.spark_steps`.
"""

import contextlib
import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lake.layers.compiler.texts.written import Written
from lake.layers.errors import BadQuery
from lake.layers.runner.spark_engine import DEFAULTS
from tests.lake.layers.spark_steps import DATABASE, KEY, REFUSED, Outcome, Relation, Steps, columns_of

MOST_ROWS = 200
LEFT_OUT = "left out"
"""What is no layer over tables that a test can give."""

_QUERY = re.compile(r"(?:SELECT|WITH|VALUES|FROM|TABLE)\b|\(", re.IGNORECASE)
_WRITES = re.compile(r"\bINSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE)
_NO_EFFECT = re.compile(r"(?:EXPLAIN|DESC|DESCRIBE|SHOW|ANALYZE|CACHE|REFRESH)\b", re.IGNORECASE)
_ERRORS = (PySparkException, Py4JError)
_TENK = (
    "unique1 INT, unique2 INT, two INT, four INT, ten INT, twenty INT, hundred INT, thousand INT, twothousand INT,"
    " fivethous INT, tenthous INT, odd INT, even INT, stringu1 STRING, stringu2 STRING, string4 STRING"
)
_FILES = {"aggtest": ("agg", "a INT, b FLOAT"), "onek": ("onek", _TENK), "tenk1": ("tenk", _TENK)}
_SHARED = {
    "testdata": "SELECT CAST(id AS INT) AS key, CAST(id AS STRING) AS value FROM range(1, 101)",
    "arraydata": (
        "SELECT * FROM VALUES (array(1, 2, 3), array(array(1, 2, 3))), (array(2, 3, 4), array(array(2, 3, 4)))"
        " AS t(arraycol, nestedarraycol)"
    ),
    "mapdata": (
        "SELECT * FROM VALUES (map(1, 'a1', 2, 'b1', 3, 'c1', 4, 'd1', 5, 'e1')),"
        " (map(1, 'a2', 2, 'b2', 3, 'c2', 4, 'd2')), (map(1, 'a3', 2, 'b3', 3, 'c3')), (map(1, 'a4', 2, 'b4')),"
        " (map(1, 'a5')) AS t(mapcol)"
    ),
}
"""The tables that all files of Spark's tests may read."""


class Found(NamedTuple):
    """What became of a query."""

    query: str
    outcome: Outcome


def statements(text: str) -> list[str]:
    """The statements of a file of tests: they end with a semicolon, unless a backslash is before it."""
    lines, found, whole = [], [], False
    for line in text.splitlines():
        if line.startswith(("--QUERY-DELIMITER-START", "--QUERY-DELIMITER-END")):
            found += ["\n".join(lines)] if whole else _split(lines)
            lines, whole = [], line.startswith("--QUERY-DELIMITER-START")
        elif not line.lstrip().startswith("--"):
            lines.append(line)
    found += _split(lines)
    return [each.strip().removesuffix(";") for each in found if each.strip()]


def _split(lines: Sequence[str]) -> list[str]:
    return [each.replace("\\;", ";") for each in re.split(r"(?<!\\);", "\n".join(lines))]


class File:
    """A file's statements, in the order in which they stand. One of `every` queries is tried."""

    def __init__(self, spark: SparkSession, number: int, directory: str, every: int) -> None:
        self._steps = Steps(spark)
        self._session = spark.newSession()
        for key, value in DEFAULTS.items():
            self._session.conf.set(key, value)
        self._database = f"file_{number}"
        self._every = every
        self._known: dict[str, Relation | None] = {}
        self._session.sql(f"CREATE DATABASE {self._database}")
        self._session.sql(f"USE {self._database}")
        for name, query in _SHARED.items():
            self._session.sql(query).createOrReplaceTempView(name)
        for name, (file, columns) in _FILES.items():
            rows = self._session.read.csv(f"{directory}/{file}.data", columns, sep="\t")
            rows.createOrReplaceTempView(name)

    def run(self, text: str) -> Found | None:
        """Runs a statement. Returns what became of it as a layer, None if it isn't tried."""
        if not _QUERY.match(text) or _WRITES.search(text):
            if not _NO_EFFECT.match(text):
                self._command(text)
            return None
        if zlib.crc32(text.encode()) % self._every:
            return None
        return Found(text, self._outcome(text))

    def close(self) -> None:
        self._steps.close()
        self._command(f"DROP DATABASE {self._database} CASCADE")

    def _command(self, text: str) -> None:
        self._known.clear()
        with contextlib.suppress(*_ERRORS):  # many are there to be refused
            self._session.sql(text)

    def _outcome(self, text: str) -> Outcome:
        try:
            names = Written.parsed(text).reads(DATABASE)
        except BadQuery as error:
            return Outcome(REFUSED, str(error))
        tables: dict[str, Relation] = {}
        for each in names:
            database, _, name = each.partition(".")
            if database != DATABASE:
                return Outcome(LEFT_OUT, "names a table with its database")
            found = self._relation(name)
            if isinstance(found, str):
                return Outcome(LEFT_OUT, found)
            if found is not None:
                is_keyed = zlib.crc32(text.encode()) // self._every % 2 == 0
                tables[name] = found._replace(key=KEY if is_keyed else None)
        return self._steps.outcome(text, tables)

    def _relation(self, name: str) -> Relation | str | None:
        """A table by its name, None if there is none, or why no table of the metastore can be like it."""
        if name not in self._known:
            self._known[name] = None
            with contextlib.suppress(*_ERRORS):
                rows = self._session.table(f"`{name}`")
                if len({each.lower() for each in columns_of(rows)}) < len(columns_of(rows)):
                    return "columns have the same name"
                self._known[name] = self._steps.number(name, rows.limit(MOST_ROWS))
        return self._known[name]


_OPEN: dict[int, File] = {}


def outcomes(spark: SparkSession, number: int, directory: str, every: int, some: Sequence[str]) -> list[list[str]]:
    """Runs some of the statements of the file of a number, the next ones. Returns queries with their outcomes."""
    if number not in _OPEN:
        _OPEN[number] = File(spark, number, directory, every)
    found = [_OPEN[number].run(each) for each in some]
    return [[each.query, *each.outcome] for each in found if each is not None]


def close(number: int) -> None:
    """The file of a number has been run."""
    _OPEN.pop(number).close()

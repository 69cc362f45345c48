"""Runs in a process with Spark: the examples that Spark has of its functions, as layers over small tables.

An example's literals become columns of a table, each with the literal's value, where Spark answers the same then; its
inline tables become tables. What has neither reads a table all the same, so that there is something to refresh.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.lake.layers.spark_steps import FAILS, KEY, Outcome, Relation, Steps, texts

LITERALS = "literals"
_EXAMPLE = re.compile(r"^ *> (.*?);\s*$", re.MULTILINE | re.DOTALL)
_SET = re.compile(r"SET\s+([\w.]+)\s*=\s*(\S+)", re.IGNORECASE)
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_INTERVAL = r"\bINTERVAL\s+[-+]?(?:'[^']*'|\d+)\s+[A-Z]+(?:\s+TO\s+[A-Z]+)?(?:\s+[-+]?\d+\s+[A-Z]+)*"
_LITERAL = re.compile(
    rf"(?P<interval>{_INTERVAL})|(?:\b(?:DATE|TIME|TIMESTAMP(?:_NTZ|_LTZ)?|X|R)\s*)?(?:{_TEXT})"
    r"|(?<![\w.])(?:\d+(?:\.\d*)?|\.\d+)(?:E[-+]?\d+)?(?:BD|[LSYFD])?(?![\w.])|\b(?:TRUE|FALSE)\b",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"\bVALUES\s+(?P<rows>.*?)\s+(?:AS\s+)?(?P<alias>\w+)\s*(?P<columns>\(\s*[A-Z_]\w*(?:\s*,\s*[A-Z_]\w*)*\s*\))",
    re.IGNORECASE | re.DOTALL,
)
_ERRORS = (PySparkException, Py4JError)


class Example(NamedTuple):
    """A query that a function's description has, and Spark's settings for it."""

    text: str
    settings: Mapping[str, str]


def functions(spark: SparkSession, part: int, parts: int) -> list[str]:
    """One of some parts of the names of all functions."""
    names = sorted(row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
    return names[part::parts]


def examples(spark: SparkSession, function: str) -> list[Example]:
    """The examples in a function's description."""
    found, settings = [], dict[str, str]()
    lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED '{function}'").collect()
    for text in _EXAMPLE.findall("\n".join(row[0] for row in lines)):
        if (setting := _SET.fullmatch(text.strip())) is not None:
            settings[setting[1]] = setting[2]
        else:
            found.append(Example(text.strip(), dict(settings)))
    return found


def outcomes(spark: SparkSession, names: Sequence[str]) -> list[list[str]]:
    """What becomes of each example of some functions: the function, the query, the kind of outcome, and why."""
    found = []
    steps: dict[str, Steps] = {}
    for name in names:
        for example in examples(spark, name):
            key = repr(example.settings)
            if key not in steps:
                steps[key] = Steps(spark, example.settings)
            query, outcome = outcome_of(steps[key], example.text)
            found.append([name, query, *outcome])
    for each in steps.values():
        each.close()
    return found


def outcome_of(steps: Steps, text: str) -> tuple[str, Outcome]:
    """The query that is made of an example's, and what becomes of it as a layer."""
    session = steps.sides["after"]
    query, tables = _with_tables(steps, text)
    if not tables and re.search(r"\bFROM\b", _outermost(text), re.IGNORECASE) is None:
        query, literals = _with_columns(session, text)
        for with_nulls in (True, False):
            try:
                table = steps.number(LITERALS, session.sql(_literal_rows(literals, with_nulls=with_nulls)), key=KEY)
            except _ERRORS:  # a literal has a type that no table has
                query, literals = f"{text} FROM {LITERALS}", {}
                table = steps.number(LITERALS, session.sql(_literal_rows({}, with_nulls=False)), key=KEY)
            tables = {LITERALS: table}
            outcome = steps.outcome(query, tables)
            if outcome.kind != FAILS or not literals:
                break
        return query, outcome
    return query, steps.outcome(query, tables)


def _outermost(text: str) -> str:
    """A query's text without texts in it, and what is in parentheses."""
    text = re.sub(_TEXT, "''", text)
    while (less := re.sub(r"\([^()]*\)", "", text)) != text:
        text = less
    return text


def _with_tables(steps: Steps, text: str) -> tuple[str, dict[str, Relation]]:
    """A query with tables in the place of those that it has the rows of."""
    tables: dict[str, Relation] = {}

    def table(found: re.Match[str]) -> str:
        name = f"inline_{len(tables)}"
        alias = f"{found['alias']}{found['columns']}"
        rows = steps.sides["after"].sql(f"SELECT * FROM VALUES {found['rows']} AS {alias}")
        tables[name] = steps.number(name, rows, key=KEY if len(text) % 2 == 0 else None)
        return f"{name} AS {found['alias']}"

    return _INLINE.sub(table, text), tables


def _with_columns(session: SparkSession, text: str) -> tuple[str, dict[str, str]]:
    """A query with columns in the place of literals, and by these columns the literals.

    Those that Spark wants to be literals stay, and all of them if its answer isn't the same.
    """
    places = [found.span() for found in _LITERAL.finditer(text) if found["interval"] is None]
    literals = {f"l{number}": text[begin:end] for number, (begin, end) in enumerate(places)}
    try:
        wanted = texts(session.sql(text))
        session.sql(_values_of(literals)).createOrReplaceTempView(LITERALS)
    except _ERRORS:
        return f"{text} FROM {LITERALS}", {}
    chosen = {*literals}
    if not _is_analysed(session, _replaced(text, places, chosen)):
        chosen = set()
        for name in literals:
            if _is_analysed(session, _replaced(text, places, {*chosen, name})):
                chosen.add(name)
    try:
        if texts(session.sql(_replaced(text, places, chosen))) == wanted:
            return _replaced(text, places, chosen), {name: literals[name] for name in literals if name in chosen}
    except _ERRORS:
        pass
    return f"{text} FROM {LITERALS}", {}


def _is_analysed(session: SparkSession, query: str) -> bool:
    try:
        session.sql(query)
    except _ERRORS:
        return False
    return True


def _replaced(text: str, places: Sequence[tuple[int, int]], chosen: set[str]) -> str:
    parts, last = [], 0
    for number, (begin, end) in enumerate(places):
        if f"l{number}" in chosen:
            parts += [text[last:begin], f" l{number} "]
            last = end
    return f"{''.join(parts)}{text[last:]} FROM {LITERALS}"


def _values_of(literals: Mapping[str, str]) -> str:
    return f"SELECT {', '.join(['1 AS one', *(f'{value} AS {name}' for name, value in literals.items())])}"


def _literal_rows(literals: Mapping[str, str], *, with_nulls: bool) -> str:
    """Five rows with the values of literals; one has NULLs."""
    columns = ["id AS one"]
    for name, value in literals.items():
        columns.append(f"CASE WHEN id <> 3 THEN {value} END AS {name}" if with_nulls else f"{value} AS {name}")
    return f"SELECT {', '.join(columns)} FROM range(0, 5, 1, 1)"


def counted(found: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many queries had each kind of outcome, with the reasons of those that are refused, without names in these."""
    counts: dict[str, int] = defaultdict(int)
    for *_, kind, why in found:
        counts[kind if kind in (FAILS,) else f"{kind}: {reason(why)}"] += 1
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def reason(why: str) -> str:
    """A reason without what it says of one query alone."""
    if (condition := re.match(r"\[([A-Z_.]+)\]", why)) is not None:
        return condition[1]
    return re.sub(r"'[^']*'|`[^`]*`|\b\d+\b|\w+\(\)", "…", why)[:100]

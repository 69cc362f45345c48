"""Runs in a process with Spark: random queries over tables of many types, as layers.

What `tests.lake.layers.random_queries` leaves out, since DuckDB would read it otherwise, is here: joins of up to six
tables by columns of different types, generators, lambdas, nested unions whose branches have different types, windows
over joins, subqueries of all kinds.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from tests.lake.layers.spark_steps import Steps

TABLES, MOST_ROWS = 6, 24
NUMBERS = ("SMALLINT", "INT", "BIGINT", "DECIMAL(10,2)", "DECIMAL(4,0)", "DOUBLE")
TYPES = {
    "number": NUMBERS,
    "text": ("STRING",),
    "day": ("DATE", "TIMESTAMP"),
    "flag": ("BOOLEAN",),
    "numbers": ("ARRAY<INT>",),
    "pairs": ("ARRAY<STRUCT<x: INT, y: STRING>>",),
    "pair": ("STRUCT<x: INT, y: STRING>",),
    "map": ("MAP<STRING, INT>",),
}
"""By kind, the types of its columns. What is of one kind can be compared, and be in one column of a union."""

ORDERED = ("number", "text", "day", "flag")

Columns = Mapping[str, str]
"""Kinds by qualified names."""


class Made(NamedTuple):
    """A query and the kinds of its columns."""

    text: str
    kinds: dict[str, str]


class Source(NamedTuple):
    """What stands after FROM. No two of its rows have the same `ids`; without ids that isn't known."""

    text: str
    columns: dict[str, str]
    ids: list[str]


class Table(NamedTuple):
    """A table: its columns' types and kinds by name, and its rows, each a list of literals."""

    types: dict[str, str]
    kinds: dict[str, str]
    rows: list[list[str]]

    @property
    def values(self) -> str:
        """A query of its rows."""
        columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in self.types.items())
        rows = ", ".join(f"({', '.join(each)})" for each in self.rows)
        return f"SELECT {columns} FROM VALUES {rows} AS rows({', '.join(self.types)})"


def table(rng: random.Random) -> Table:
    """A table of some types, with the key `id`, many values that are equal, and NULLs."""
    types, kinds = {"id": "INT"}, {"id": "number"}
    for kind in ["number", "number", "text", "day", *rng.sample([*TYPES], 4)]:
        name = f"{kind[0]}{len(types)}"
        types[name], kinds[name] = rng.choice(TYPES[kind]), kind
    rows = []
    for number in range(rng.randint(9, MOST_ROWS)):
        # Of a row that changes there are two, as `spark_steps.KEYED` says.
        key = number + 1 if number % 6 == 0 else number
        values = ["NULL" if rng.random() < 0.15 else _literal(rng, kind) for kind in [*kinds.values()][1:]]
        rows.append([str(key), *values])
    return Table(types, kinds, rows)


def _literal(rng: random.Random, kind: str) -> str:
    number, text = str(rng.randint(0, 4)), rng.choice(["'Rome'", "'Oslo'", "''", "'3'", "'a b'"])
    match kind:
        case "number":
            return rng.choice([number, number, f"{number}.5", f"-{number}"])
        case "text":
            return text
        case "day":
            return f"TIMESTAMP '2026-01-0{rng.randint(1, 3)} {rng.choice(['00:00:00', '00:00:00', '12:30:00.5'])}'"
        case "flag":
            return rng.choice(["true", "false"])
        case "numbers":
            return f"array({', '.join(str(rng.randint(0, 4)) for _ in range(rng.randint(1, 3)))})"
        case "pairs":
            return f"array(named_struct('x', {number}, 'y', {text}))"
        case "pair":
            return f"named_struct('x', {number}, 'y', {text})"
        case _:
            return f"map('k', {number}, 'l', {rng.randint(0, 4)})"


class Queries:
    """Makes queries over tables by name."""

    def __init__(self, rng: random.Random, tables: Mapping[str, Table]) -> None:
        self.rng = rng
        self.tables = tables
        self._number = 0

    def query(self, depth: int) -> Made:
        """A query. A greater depth has more subqueries."""
        makers: list[Callable[[int], Made]] = [
            *[self._plain, self._grouped, self._windowed, self._latest] * 2,
            self._distinct,
            self._first,
        ]
        if depth > 0:
            makers += [self._union, self._union, self._cte]
        return self.rng.choice(makers)(depth)

    # -- names and columns -----------------------------------------------------------------------------------

    def _name(self, prefix: str = "c") -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _of(self, columns: Columns, *kinds: str) -> str:
        found = [name for name, kind in columns.items() if kind in kinds]
        return self.rng.choice(found) if found else self._constant(kinds[0])

    def _constant(self, kind: str) -> str:
        return _literal(self.rng, kind)

    # -- sources ---------------------------------------------------------------------------------------------

    def _one(self, depth: int) -> Source:
        alias = self._name("t")
        if depth > 0 and self.rng.random() < 0.4:
            inner = self.query(depth - 1)
            return Source(
                f"({inner.text}) {alias}", {f"{alias}.{name}": kind for name, kind in inner.kinds.items()}, []
            )
        name, found = self.rng.choice([*self.tables.items()])
        return Source(
            f"{name} {alias}", {f"{alias}.{each}": kind for each, kind in found.kinds.items()}, [f"{alias}.id"]
        )

    def _source(self, depth: int) -> Source:
        """Up to six tables or subqueries, joined, perhaps with generators."""
        one = self._one(depth)
        text, columns, ids = one.text, dict(one.columns), [*one.ids]
        known = bool(ids)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3, 5])):
            other = self._one(depth - 1)
            word = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN"])
            word = self.rng.choice([word, word, word, "LEFT ANTI JOIN", "CROSS JOIN" if len(columns) < 20 else word])
            on = "" if word == "CROSS JOIN" else f" ON {self._equal(columns, other.columns, word)}"
            text = f"{text} {word} {other.text}{on}"
            if "SEMI" not in word and "ANTI" not in word:
                columns |= other.columns
                known = known and bool(other.ids)
                ids += other.ids
        if self.rng.random() < 0.35:
            view, more, position = self._generator(columns)
            text, columns = f"{text} {view}", columns | more
            known = known and bool(position)
            ids += position
        return Source(text, columns, ids if known else [])

    def _equal(self, left: Columns, right: Columns, word: str) -> str:
        """A condition that joins by columns of one kind, whose types may differ."""
        kind = self.rng.choice(["number", "number", "number", "text", "day"])
        sign = self.rng.choice(["=", "=", "=", "=", "<=>"])
        one, other = self._of(left, kind), self._of(right, kind)
        more = self.rng.random()
        if more < 0.15 and word != "FULL JOIN":
            return f"{one} {sign} {other} AND {self._condition({**left, **right}, 0)}"
        if more < 0.25:
            return f"{one} {sign} {other} AND {self._of(left, 'text')} = {self._of(right, 'text')}"
        if more < 0.3:
            return f"{one} + 1 = {other}" if kind == "number" else f"{one} = {other}"
        return f"{one} {sign} {other}"

    def _generator(self, columns: Columns) -> tuple[str, dict[str, str], list[str]]:
        """LATERAL VIEW: its text, its columns, and those that tell the rows of one input row apart."""
        view, a, b, c = self._name("g"), self._name("x"), self._name("x"), self._name("x")
        outer = self.rng.choice(["", " OUTER"])
        numbers, pairs, made = self._of(columns, "numbers"), self._of(columns, "pairs"), self._of(columns, "map")
        text, kinds, position = self.rng.choice(
            [
                (f"explode({numbers}) {view} AS {a}", {a: "number"}, []),
                (f"posexplode({numbers}) {view} AS {a}, {b}", {a: "number", b: "number"}, [a]),
                (f"inline({pairs}) {view} AS {a}, {b}", {a: "number", b: "text"}, []),
                (f"posexplode({pairs}) {view} AS {a}, {b}", {a: "number", b: "pair"}, [a]),
                (f"explode({made}) {view} AS {a}, {b}", {a: "text", b: "number"}, [a]),
                (
                    f"stack(2, 1, 'one', 2, {self._of(columns, 'text')}) {view} AS {a}, {c}",
                    {a: "number", c: "text"},
                    [a],
                ),
            ]
        )
        qualified = {f"{view}.{name}": kind for name, kind in kinds.items()}
        return f"LATERAL VIEW{outer} {text}", qualified, [f"{view}.{each}" for each in position]

    # -- expressions -----------------------------------------------------------------------------------------

    def _value(self, columns: Columns, kind: str | None = None) -> tuple[str, str]:
        """An expression, and its kind."""
        kind = kind or self.rng.choice([*columns.values(), "number", "text", "day", "flag"])
        if self.rng.random() < 0.4:
            return self._of(columns, kind), kind
        return self.rng.choice(self._values(columns, kind)), kind

    def _values(self, columns: Columns, kind: str) -> Sequence[str]:
        number, other = self._of(columns, "number"), self._of(columns, "number")
        text, day, numbers = self._of(columns, "text"), self._of(columns, "day"), self._of(columns, "numbers")
        flag, pair, pairs = self._of(columns, "flag"), self._of(columns, "pair"), self._of(columns, "pairs")
        match kind:
            case "number":
                return [
                    f"{number} + {other}",
                    f"{number} * {other} - 1",
                    f"{number} / nullif({other}, 0)",
                    f"coalesce({number}, {other}, 7)",
                    f"CASE WHEN {flag} THEN {number} WHEN {number} > {other} THEN 2 END",
                    f"round({number}, 1)",
                    f"CAST({number} AS DECIMAL(12,3))",
                    f"length({text})",
                    f"size({numbers})",
                    f"aggregate({numbers}, 0, (a, x) -> a + x)",
                    f"try_cast({text} AS INT)",
                    f"datediff({day}, DATE '2026-01-01')",
                    f"{pair}.x",
                    f"element_at({self._of(columns, 'map')}, 'k')",
                    f"greatest({number}, {other})",
                ]
            case "text":
                return [
                    f"upper({text})",
                    f"concat({text}, '-', CAST({number} AS STRING))",
                    f"substr({text}, 2)",
                    f"date_format({day}, 'yyyy-MM')",
                    f"coalesce({text}, {pair}.y, 'none')",
                    f"if({flag}, {text}, 'no')",
                    f"array_join(transform({pairs}, each -> each.y), '+')",
                    f"to_json({pair})",
                ]
            case "day":
                return [
                    f"date_add(CAST({day} AS DATE), 1)",
                    f"date_trunc('DAY', {day})",
                    f"{day} + INTERVAL '1' DAY",
                    f"coalesce({day}, DATE '2026-01-02')",
                    f"CAST({day} AS DATE)",
                ]
            case "flag":
                return [self._condition(columns, 0), f"exists({numbers}, x -> x > {number})"]
            case "numbers":
                return [
                    f"transform({numbers}, x -> x + 1)",
                    f"filter({numbers}, x -> x > {number})",
                    f"array_sort({numbers})",
                    f"array(1, CAST({number} AS INT))",
                ]
            case "pairs":
                return [f"filter({pairs}, each -> each.x > 1)", f"array({pair})"]
            case "pair":
                return [f"named_struct('x', 1, 'y', {text})", f"{pairs}[0]", f"element_at({pairs}, 1)"]
            case _:
                return [f"map('k', CAST({number} AS INT))", self._of(columns, "map")]

    def _condition(self, columns: Columns, depth: int) -> str:
        number, text, day = self._of(columns, "number"), self._of(columns, "text"), self._of(columns, "day")
        simple = [
            f"{number} > {self.rng.randint(0, 3)}",
            f"{number} <> {self._of(columns, 'number')}",
            f"{number} BETWEEN 1 AND {self._of(columns, 'number')}",
            f"{number} IN (1, 2.5, NULL)",
            f"{text} = 'Rome'",
            f"{text} LIKE '%o%'",
            f"({number} < 2 OR {text} IS NULL)",
            f"{day} >= DATE '2026-01-02'",
            f"coalesce({self._of(columns, 'flag')}, {number} = 1)",
            f"NOT ({text} <=> 'Oslo')",
        ]
        if depth > 0 and self.rng.random() < 0.25:
            return self._subquery(columns, depth - 1)
        return self.rng.choice(simple)

    def _subquery(self, columns: Columns, depth: int) -> str:
        """A condition with a subquery, correlated or not."""
        inner = self._one(depth)
        number, other = self._of(columns, "number"), self._of(inner.columns, "number")
        where = f" WHERE {self._condition(inner.columns, 0)}" if self.rng.random() < 0.5 else ""
        and_more = f" AND {self._condition(inner.columns, 0)}" if self.rng.random() < 0.5 else ""
        return self.rng.choice(
            [
                f"{number} IN (SELECT {other} FROM {inner.text}{where})",
                f"{number} NOT IN (SELECT {other} FROM {inner.text}{where})",
                f"EXISTS (SELECT 1 FROM {inner.text} WHERE {other} = {number}{and_more})",
                f"NOT EXISTS (SELECT 1 FROM {inner.text} WHERE {other} = {number}{and_more})",
                f"{number} < (SELECT max({other}) FROM {inner.text}{where})",
                f"{number} >= (SELECT avg({self._of(inner.columns, 'number')}) FROM {inner.text}"
                f" WHERE {other} = {number})",
            ]
        )

    def _where(self, columns: Columns, depth: int) -> str:
        if self.rng.random() < 0.5:
            return ""
        return " WHERE " + " AND ".join(self._condition(columns, depth) for _ in range(self.rng.randint(1, 2)))

    def _items(self, columns: Columns, kinds: Sequence[str | None]) -> tuple[str, dict[str, str]]:
        made, found = [], {}
        for wanted in kinds:
            text, kind = self._value(columns, wanted)
            name = self._name()
            made.append(f"{text} AS {name}")
            found[name] = kind
        return ", ".join(made), found

    def _any(self) -> list[str | None]:
        return [None] * self.rng.randint(1, 4)

    # -- queries ---------------------------------------------------------------------------------------------

    def _plain(self, depth: int, kinds: Sequence[str | None] = ()) -> Made:
        source = self._source(depth)
        items, found = self._items(source.columns, kinds or self._any())
        return Made(f"SELECT {items} FROM {source.text}{self._where(source.columns, depth)}", found)

    def _distinct(self, depth: int) -> Made:
        kinds = [self.rng.choice(ORDERED) for _ in range(self.rng.randint(1, 3))]
        made = self._plain(depth, kinds)
        return Made(made.text.replace("SELECT", "SELECT DISTINCT", 1), made.kinds)

    def _grouped(self, depth: int) -> Made:
        source = self._source(depth)
        columns = source.columns
        by, items, kinds = [], [], {}
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            text, kind = self._value(columns, self.rng.choice(ORDERED))
            name = self._name()
            by.append(text)
            items.append(f"{text} AS {name}")
            kinds[name] = kind
        number, text, flag = self._of(columns, "number"), self._of(columns, "text"), self._of(columns, "flag")
        aggregates = [
            ("count(*)", "number"),
            (f"sum(CAST({number} AS DECIMAL(12,2)))", "number"),
            (f"min({number})", "number"),
            (f"max({text})", "text"),
            (f"avg(CAST({number} AS INT))", "number"),
            (f"count(DISTINCT {text})", "number"),
            (f"count(DISTINCT {number}, {text})", "number"),
            (f"count({number}) FILTER (WHERE {self._condition(columns, 0)})", "number"),
            (f"bool_or({flag})", "flag"),
            (f"max({self._of(columns, 'day')})", "day"),
            (f"array_sort(collect_set(CAST({number} AS INT)))", "numbers"),
            (f"max(named_struct('x', CAST({number} AS INT), 'y', {text}))", "pair"),
            (f"sum(CASE WHEN {self._condition(columns, 0)} THEN 1 ELSE 0 END) + count({text})", "number"),
        ]
        for aggregate, kind in self.rng.sample(aggregates, self.rng.randint(1, 3)):
            name = self._name()
            items.append(f"{aggregate} AS {name}")
            kinds[name] = kind
        group = f" GROUP BY {', '.join(by)}" if by else ""
        if by and self.rng.random() < 0.1:
            group = f" GROUP BY ROLLUP ({', '.join(by)})"
        having = f" HAVING count(*) > {self.rng.randint(0, 2)}" if by and self.rng.random() < 0.3 else ""
        return Made(f"SELECT {', '.join(items)} FROM {source.text}{self._where(columns, depth)}{group}{having}", kinds)

    def _windowed(self, depth: int) -> Made:
        source = self._source(depth)
        columns = source.columns
        partition, _ = self._value(columns, self.rng.choice(ORDERED))
        value, day = self._of(columns, "number"), self._of(columns, "day")
        functions = [
            (f"rank() OVER (PARTITION BY {partition} ORDER BY {value} DESC)", "number"),
            (f"dense_rank() OVER (PARTITION BY {partition} ORDER BY {day}, {value})", "number"),
            (f"sum(CAST({value} AS INT)) OVER (PARTITION BY {partition} ORDER BY {day})", "number"),
            (f"count(*) OVER (PARTITION BY {partition}, {self._of(columns, 'text')})", "number"),
            (f"max({day}) OVER (PARTITION BY {partition})", "day"),
            (f"min({value}) OVER (PARTITION BY {partition} ORDER BY {day} DESC)", "number"),
            (f"percent_rank() OVER (PARTITION BY {partition} ORDER BY {value})", "number"),
        ]
        if source.ids:
            order = f"{value}, {', '.join(source.ids)}"
            functions += [
                (f"row_number() OVER (PARTITION BY {partition} ORDER BY {order})", "number"),
                (f"lag({self._of(columns, 'text')}) OVER (PARTITION BY {partition} ORDER BY {order})", "text"),
                (
                    f"sum(CAST({value} AS INT)) OVER (PARTITION BY {partition} ORDER BY {order}"
                    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                    "number",
                ),
            ]
        items, kinds = self._items(columns, self._any())
        for text, kind in self.rng.sample(functions, self.rng.randint(1, 2)):
            name = self._name()
            items, kinds[name] = f"{items}, {text} AS {name}", kind
        return Made(f"SELECT {items} FROM {source.text}{self._where(columns, depth)}", kinds)

    def _latest(self, depth: int) -> Made:
        """The first row of each partition."""
        source = self._source(0)
        items, kinds = self._items(source.columns, self._any())
        if not source.ids:
            return Made(f"SELECT {items} FROM {source.text}", kinds)
        partition, _ = self._value(source.columns, self.rng.choice(ORDERED))
        order = ", ".join([f"{self._of(source.columns, 'number')} DESC", *source.ids])
        number, alias = self._name("n"), self._name("t")
        inner = (
            f"SELECT {items}, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS {number}"
            f" FROM {source.text}{self._where(source.columns, depth)}"
        )
        names = ", ".join(f"{alias}.{each}" for each in kinds)
        return Made(
            f"SELECT {names} FROM ({inner}) {alias} WHERE {alias}.{number} <= {self.rng.choice([1, 1, 2])}", kinds
        )

    def _first(self, depth: int) -> Made:
        """A few rows of an order."""
        source = self._source(0)
        items, kinds = self._items(source.columns, self._any())
        if not source.ids:
            return Made(f"SELECT {items} FROM {source.text}", kinds)
        order = ", ".join([f"{self._of(source.columns, 'number')} DESC NULLS LAST", *source.ids])
        limit = self.rng.randint(1, 4)
        text = f"SELECT {items} FROM {source.text}{self._where(source.columns, depth)} ORDER BY {order} LIMIT {limit}"
        alias = self._name("t")
        return Made(f"SELECT * FROM ({text}) {alias}", kinds)

    def _union(self, depth: int) -> Made:
        """Branches whose columns are of the same kinds, and of any types of these. Each may be a union."""
        kinds = [self.rng.choice(ORDERED) for _ in range(self.rng.randint(1, 3))]
        return self._union_of(depth, kinds)

    def _union_of(self, depth: int, kinds: Sequence[str]) -> Made:
        branches = []
        for _ in range(self.rng.choice([2, 2, 3])):
            nested = depth > 1 and self.rng.random() < 0.5
            branches.append(self._union_of(depth - 1, kinds) if nested else self._plain(depth - 1, kinds))
        word = self.rng.choice([" UNION ALL ", " UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "])
        return Made(word.join(f"({each.text})" for each in branches), branches[0].kinds)

    def _cte(self, depth: int) -> Made:
        inner = self.query(depth - 1)
        name, one, two = self._name("w"), self._name("t"), self._name("t")
        left = {f"{one}.{each}": kind for each, kind in inner.kinds.items()}
        right = {f"{two}.{each}": kind for each, kind in inner.kinds.items()}
        items, kinds = self._items({**left, **right}, self._any())
        on = self._equal(left, right, "JOIN")
        return Made(f"WITH {name} AS ({inner.text}) SELECT {items} FROM {name} {one} JOIN {name} {two} ON {on}", kinds)


def outcomes(spark: SparkSession, seed: int, count: int) -> list[list[str]]:
    """What becomes of some random queries over tables of their own: the query, the kind of outcome, and why."""
    rng = random.Random(seed)
    tables, keys = _tables(rng)
    queries = Queries(rng, tables)
    return _outcomes(spark, tables, keys, [queries.query(rng.choice([0, 1, 1, 2])).text for _ in range(count)])


def outcomes_of(spark: SparkSession, seed: int, texts: Sequence[str]) -> list[list[str]]:
    """The same of given queries, over the tables of a seed."""
    return _outcomes(spark, *_tables(random.Random(seed)), texts)


def _tables(rng: random.Random) -> tuple[dict[str, Table], dict[str, str | None]]:
    """Tables, and their keys."""
    tables = {f"table_{number}": table(rng) for number in range(TABLES)}
    return tables, {name: "id" if rng.random() < 0.85 else None for name in tables}


def _outcomes(
    spark: SparkSession, tables: Mapping[str, Table], keys: Mapping[str, str | None], texts: Sequence[str]
) -> list[list[str]]:
    steps = Steps(spark)
    session = steps.sides["after"]
    relations = {name: steps.number(name, session.sql(each.values), key=keys[name]) for name, each in tables.items()}
    found = [[text, *steps.outcome(text, relations)] for text in texts]
    steps.close()
    return found

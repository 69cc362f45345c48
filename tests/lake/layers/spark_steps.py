"""Runs in a process with Spark: computes layers over tables in memory, by the steps of refreshes alone.

No metastore and no files are needed, so that there is time for thousands of queries. A table has rows in two states. A
layer over them is computed as a whole in the first, and by an increment in the second. Each time it is compared with
what `spark.sql` makes of the same text: rows, types, and the changes that lead from one to the other.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lake.layers.compiler.building import Table
from lake.layers.compiler.compiling import Compiled, compiled
from lake.layers.compiler.deltas import Deltas, Relations
from lake.layers.compiler.graph import Graph, graph_of
from lake.layers.compiler.layers import recomputed, refresh
from lake.layers.definitions.model import Definitions, Project, View
from lake.layers.errors import BadDefinition, Place, first_line
from lake.layers.runner.spark_engine import DEFAULTS, SparkEngine
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType

DATABASE = "shop"
LAYER = "the_layer"
PLACE = Place(Path("layers.sql"), 1)
NUMBER, KEY = "_number", "_known_by"
"""The number of a row, from 0, and what it is known by in a table with a key, which queries don't see."""

SIDES = {"before": f"{NUMBER} % 3 <> 0", "after": f"{NUMBER} % 3 <> 1"}
CHANGED = {"old": f"{NUMBER} % 3 = 1", "new": f"{NUMBER} % 3 = 0"}
"""The rows of each state, and those that are in one alone. Of six rows two are kept, two are one row that changes, one
goes and one comes."""
KEYED = f"CASE WHEN {NUMBER} % 6 = 0 THEN {NUMBER} + 1 ELSE {NUMBER} END"

EQUAL, REFUSED, FAILS, WRONG = "equal", "refused", "fails", "wrong"

Row = tuple[str | None, ...]


class Outcome(NamedTuple):
    """What became of a query as a layer.

    `kind`: `equal`; `refused` when it is defined; `fails` in a refresh, as it does in Spark; or `wrong`. `why`: how it
    is refreshed, or the reason.
    """

    kind: str
    why: str


class Relation(NamedTuple):
    """A table: its columns with their types, by names in lower case, the global view that has its rows, and its key.

    The key is `KEY`, which queries don't see, one of its columns, or None.
    """

    types: Mapping[str, str]
    view: str
    key: str | None

    def table(self, name: str) -> Table:
        key = None if self.key is None else (self.key,)
        return Table(f"{DATABASE}.{name}", tuple(self.types), key, frozenset(key or ()))

    @property
    def stored(self) -> dict[str, str]:
        """The columns that the table has, with those that queries don't see."""
        return {**self.types, **({KEY: "bigint"} if self.key == KEY else {})}

    def rows(self, where: str) -> str:
        """A query of some of its rows."""
        columns = ", ".join(f"`{each}`" for each in self.types)
        key = f", {KEYED} AS {KEY}" if self.key == KEY else ""
        return f"SELECT {columns}{key} FROM global_temp.{self.view} WHERE {where}"

    def visible(self, where: str, view: str) -> str:
        """The same of another view, as queries see the table."""
        return self._replace(view=view, key=None).rows(where)


class _Engine(SparkEngine):
    """Spark's engine, whose relations a test gives."""

    @property
    def session(self) -> SparkSession:
        return self._spark

    def bind(self, name: str, rows: DataFrame) -> None:
        self._bind(name, rows)

    def kept(self, rows: DataFrame) -> DataFrame:
        return self._keep(rows)


class _Named:
    """An analyser that gives the columns of a query names, whatever they are: those of functions' results have none."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._engine.read(request)
        columns = [column for _, column in answer["outputs"]]
        return {**answer, "outputs": [[f"c{number}", column] for number, column in enumerate(columns)]}

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        return self._engine.same(before, now)


class Steps:
    """Sessions with the same settings: one that computes layers, and one for each state of the tables."""

    def __init__(self, spark: SparkSession, configuration: Mapping[str, str] | None = None) -> None:
        configuration = configuration or {}
        self.spark = spark
        self.engine = _Engine(spark, configuration)
        self.sides = {side: spark.newSession() for side in SIDES}
        for session in self.sides.values():
            for key, value in {**DEFAULTS, **configuration}.items():
                if session.conf.isModifiable(key):
                    session.conf.set(key, value)
        self._views: set[str] = set()
        self._backwards: set[str] = set()
        self._used = 0

    def number(self, name: str, rows: DataFrame, *, key: str | None = None) -> Relation:
        """Makes rows, which are computed now, those of a table. Their session is any.

        A column that is the key has the values that `KEYED` says, since they are counted from 0.
        """
        lower = [each.lower() for each in columns_of(rows)]
        numbered = rows.toDF(*lower).coalesce(1).withColumn(NUMBER, sf.monotonically_increasing_id())
        view = f"rows_of_{name}"
        numbered.localCheckpoint(eager=True).createOrReplaceGlobalTempView(view)
        self._views.add(view)
        self._backwards.discard(view)
        return Relation(dict(zip(lower, types_of(rows), strict=True)), view, key)

    def outcome(self, text: str, tables: Mapping[str, Relation]) -> Outcome:
        """What becomes of a query over tables as a layer."""
        try:
            graph = graph_of(Project(Path(), DATABASE, DATABASE, {}, Definitions([View(LAYER, text, PLACE)])))
            made = self._compiled(graph, tables)
        except BadDefinition as error:
            return Outcome(REFUSED, str(error).removeprefix(f"{PLACE}: "))
        except Exception as error:
            return Outcome(WRONG, f"can't be compiled: {error!r}")
        self._used += 1
        try:
            names = sorted(each.partition(".")[2] for each in made.node.reads)
            return self._compared(made, {name: tables[name] for name in names}, text)
        except AssertionError as error:
            return Outcome(WRONG, str(error))
        except Exception as error:
            return Outcome(WRONG, f"can't be computed: {error!r}")
        finally:
            self.engine.close()

    def expected(self, text: str, tables: Mapping[str, Relation], side: str, *, backwards: bool = False) -> DataFrame:
        """What Spark makes of a query in a state of the tables, whose rows may come in the other order."""
        session = self.sides[side]
        for name, each in tables.items():
            view = self._in_other_order(each.view) if backwards else each.view
            session.sql(each.visible(SIDES[side], view)).createOrReplaceTempView(name)
        return session.sql(text)

    def _in_other_order(self, view: str) -> str:
        made = f"{view}_backwards"
        if view not in self._backwards:
            rows = self.spark.table(f"global_temp.{view}").orderBy(sf.desc(NUMBER)).coalesce(1)
            rows.localCheckpoint(eager=True).createOrReplaceGlobalTempView(made)
            self._backwards.add(view)
            self._views.add(made)
        return made

    def _check_order(self, tables: Mapping[str, Relation], text: str, wanted: Counter[Row]) -> None:
        """Raises AssertionError for a query whose answer depends on the order in which rows are read."""
        other = _answer(lambda: self.expected(text, tables, "after", backwards=True))
        rows = other if isinstance(other, str) else other.rows
        if rows != wanted:
            raise AssertionError(f"depends on the order in which rows are read: {_some(wanted)} or {rows}")

    def close(self) -> None:
        """Forgets all rows."""
        for each in self._views:
            self.spark.catalog.dropGlobalTempView(each)
        self._views.clear()

    def _compiled(self, graph: Graph, tables: Mapping[str, Relation]) -> Compiled:
        sources = {f"{DATABASE}.{name}": (each.table(name), each.stored) for name, each in tables.items()}
        [made] = compiled(graph, sources, _Named(self.engine))
        return made

    def _compared(self, made: Compiled, tables: Mapping[str, Relation], text: str) -> Outcome:
        layer, prefix = made.layer, f"s{self._used}"
        relations = {}
        for name, each in tables.items():
            names = Relations(*(f"{prefix}_{name}_{part}" for part in (*SIDES, *CHANGED)))
            relations[f"{DATABASE}.{name}"] = names
            for relation, where in zip(names, (*SIDES.values(), *CHANGED.values()), strict=True):
                self.engine.bind(relation, self.engine.session.sql(each.rows(where)))
        nothing = ", ".join(f"CAST(NULL AS {made.types[each]}) AS `{each}`" for each in layer.columns)
        empty, stored = f"{prefix}_empty", f"{prefix}_stored"
        self.engine.bind(empty, self.engine.session.sql(f"SELECT {nothing} WHERE false"))
        rows: Counter[Row] = Counter()
        for side in SIDES:
            of_side = {name: each._replace(after=getattr(each, side)) for name, each in relations.items()}
            deltas = Deltas(of_side, [*relations], f"{prefix}_{side}", is_exact=True)
            whole = side == "before" or made.kind == "full"
            wanted = _answer(lambda side=side: self.expected(text, tables, side))

            def computed(deltas: Deltas = deltas, whole: bool = whole, side: str = side) -> DataFrame | None:
                there = empty if side == "before" else stored
                step = recomputed(layer, deltas, there) if whole else refresh(layer, deltas, there, merge=True)
                self.engine.run(deltas.steps)
                return None if step is None else self.engine.kept(self.engine.session.table(step))

            found = _answer(computed)
            if isinstance(wanted, str):
                if isinstance(found, str):
                    return Outcome(FAILS, wanted)
                raise AssertionError(f"has rows {side}, where Spark says {wanted}")
            if isinstance(found, str):
                raise AssertionError(f"fails {side}, where Spark doesn't: {found}")
            _same_types(made, wanted.types)
            rows = _with_changes(rows, found)
            _check(rows, wanted.rows, made)
            if found.frame is not None and side == "before":
                self.engine.bind(stored, found.frame.drop(CHANGE_TYPE))
            if tables and side == "after":
                self._check_order(tables, text, wanted.rows)
        return Outcome(EQUAL, made.kind)


class _Answer(NamedTuple):
    """Rows as texts, the types of their columns, and what they are computed by."""

    rows: Counter[Row]
    types: list[str]
    frame: DataFrame | None


def _answer(ask: Any) -> _Answer | str:
    """What a query answers, or why it fails."""
    try:
        frame = ask()
        if frame is None:
            return _Answer(Counter(), [], None)
        return _Answer(texts(frame), types_of(frame), frame)
    except (PySparkException, Py4JError) as error:
        return first_line(error)


def columns_of(rows: DataFrame) -> list[str]:
    """The names of columns, also of those whose types PySpark doesn't know."""
    return list(rows._jdf.columns())


def types_of(rows: DataFrame) -> list[str]:
    """Spark's names of the types of columns, with all that they say."""
    return [each.dataType().catalogString() for each in rows._jdf.schema().fields()]


_FRACTION = re.compile(r"-?\d+\.\d+(?:E-?\d+)?")


def texts(rows: DataFrame) -> Counter[Row]:
    """Rows as texts, of which Spark has one for each value. The last digits of floating-point numbers are left out."""
    kinds = types_of(rows)
    names = [f"column_{number}" for number in range(len(kinds))]
    as_text = [
        f"hex({name})" if kind == "binary" else f"CAST({name} AS STRING)"
        for name, kind in zip(names, kinds, strict=True)
    ]
    floating = ["double" in kind or "float" in kind for kind in kinds]
    found = rows.toDF(*names).selectExpr(*as_text).collect() if names else rows.collect()

    def shown(row: Any) -> Row:
        return tuple(
            _FRACTION.sub(lambda each: f"{float(each[0]):.9g}", value) if is_floating and value is not None else value
            for value, is_floating in zip(row, floating, strict=True)
        )

    return Counter(map(shown, found))


def _same_types(made: Compiled, wanted: Sequence[str]) -> None:
    types = [made.types[each] for each in made.layer.outputs]
    if types != [*wanted]:
        raise AssertionError(f"the columns' types are {types}, those of Spark's are {[*wanted]}")


def _with_changes(rows: Counter[Row], found: _Answer) -> Counter[Row]:
    """Rows after changes, which are of rows that are there, and leave no row as it was."""
    old, new = Counter[Row](), Counter[Row]()
    for (*values, kind), count in found.rows.items():
        is_old = kind in (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
        (old if is_old else new)[tuple(values)] += count
    if old - rows:
        raise AssertionError(f"changes remove rows that weren't there: {_some(old - rows)}")
    if old & new:
        raise AssertionError(f"changes of rows that are as they were: {_some(old & new)}")
    return rows - old + new


def _check(rows: Counter[Row], wanted: Counter[Row], made: Compiled) -> None:
    columns = made.layer.columns
    places = [columns.index(each) for each in made.layer.key]
    keys = Counter(tuple(row[each] for each in places) for row in rows.elements())
    if len(keys) < rows.total():
        raise AssertionError(f"several rows have the key {_some(keys)}")
    if any(None in key for key in keys):
        raise AssertionError("a column of the key is NULL")
    visible: Counter[Row] = Counter()
    for row, count in rows.items():
        visible[row[: len(made.layer.outputs)]] += count
    if visible != wanted:
        raise AssertionError(f"{made.kind}: misses {_some(wanted - visible)}, has {_some(visible - wanted)}")


def _some(rows: Counter[Row]) -> list[tuple[Row, int]]:
    return rows.most_common(3)

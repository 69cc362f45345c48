"""TPC-H's queries as layers: what refreshes take beside computing all, and whether their rows are DuckDB's."""

import math
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from bench.figures import Report, readable
from bench.layers_of_queries import runner_of
from bench.options import Options
from bench.progress import noted, say
from bench.spark_server import MEMORY, spark_on_server
from lake.layers.runner.results import RefreshResult
from lake.protocol.errors import UserError
from lake.spark import read, write
from lake.spark.session_client import lake_table
from tests.interop import maven

SCALE, QUICK_SCALE = 0.1, 0.01
SHARE = 1_000
"""One row of so many is inserted, and one is deleted."""

LARGE = 1.0
"""From this scale on layers are not refreshed by increments alone, which takes an hour. Results have their own file."""

WARM_UP = 3
"""Full refreshes before anything is measured: Spark compiles itself in the first ones."""

QUERIES = "org.apache.spark:spark-sql_2.13:4.2.0:tests"
"""Where the texts are read from, as `tpch/q1.sql` and so on: those of Spark's own tests."""

KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey,ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey,l_linenumber",
}
BUCKETS = {"orders": 4, "lineitem": 4, "partsupp": 4, "customer": 2, "part": 2}

_UNNAMED = {18: ("sum(l_quantity)\nfrom", "sum(l_quantity) as quantity\nfrom")}
"""Columns that a layer needs a name for."""

WAYS = ("auto", "increments", "all")

_NUMBERS = (int, float, Decimal)

_ABOUT = (
    "Scale {scale:g}. {count} of the 22 queries, as Spark's own tests have them, without their last ORDER BY and LIMIT:"
    " those of ties have no total order. One layer each. RF1 inserts 0.1 % of the orders with their lines, RF2 deletes"
    " as many, then the suppliers of one nation change. After each, all layers are refreshed by the cheaper way of each"
    " (auto); the same layers once more by increments alone; then all of the first is computed. One process"
    " of Spark {spark}, local[2], {memory}, warmed up by full refreshes. After each change all rows are compared with"
    " DuckDB's."
)


def _seconds(found: float | None) -> str:
    return "" if found is None else f"{readable(found)} s"


@dataclass
class Steps:
    """Seconds by step: of a refresh by the cheaper way, by increments alone, and of computing all."""

    title: str
    about: str
    found: dict[str, tuple[float, float | None, float]]

    @property
    def headings(self) -> Sequence[str]:
        return ("", *WAYS, "auto / all")

    def rows(self) -> list[list[str]]:
        return [
            [name, *map(_seconds, (auto, increments, whole)), readable(auto / whole)]
            for name, (auto, increments, whole) in self.found.items()
        ]


@dataclass
class ByLayer:
    """By layer and step: how it was refreshed, and the seconds of both ways."""

    title: str
    about: str
    found: list[tuple[str, str, str, list[float | None]]]

    @property
    def headings(self) -> Sequence[str]:
        return ("layer", "after", "way", "auto", "increment", "all")

    def rows(self) -> list[list[str]]:
        return [
            [layer, step, how, *map(_seconds, seconds)]
            for layer, step, how, seconds in self.found
            if how != "unchanged"
        ]


def run(options: Options) -> Report:
    """All of it. Raises UserError where something that it needs is missing, or where rows are not DuckDB's."""
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    texts = {name: text for name, text in _texts().items() if options.wants(name)}
    report = Report("tpch" if scale < LARGE else "tpch-large", arguments=options.arguments)
    with spark_on_server({}) as (spark, home):
        report.versions["Spark"] = spark.version
        with noted(f"making rows of scale {scale:g}"):
            tables = _generated(scale, home)
            _load(spark, tables)
        names = ("auto", "increments") if scale < LARGE else ("auto",)
        sides = {name: _Layers(spark, name, texts) for name in names}
        if "increments" in sides:
            sides["increments"].runner.choose = False
        for side in sides.values():
            with noted(f"first refresh, {side.name}"):
                side.refresh()
        times = WARM_UP if scale < LARGE else 1
        with noted(f"all of it, {times} times"):
            for _ in range(times):
                sides["auto"].refresh(whole=True)
        steps: dict[str, tuple[float, float | None, float]] = {}
        layers: list[tuple[str, str, str, list[float | None]]] = []
        for name, change in (("RF1", _insert), ("RF2", _delete), ("suppliers change", _change_suppliers)):
            change(spark)
            with noted(f"{name}: auto"):
                auto, cheaper = sides["auto"].refresh()
            increments, by_increment = None, {}
            if "increments" in sides:
                with noted(f"{name}: increments"):
                    increments, found = sides["increments"].refresh()
                by_increment = {each.layer.rpartition("_")[2]: each.seconds for each in found.layers}
            with noted(f"{name}: all"):
                whole, by_whole = sides["auto"].refresh(whole=True)
            steps[name] = (auto, increments, whole)
            say(f"{name}: {', '.join(f'{way} {_seconds(each)}' for way, each in zip(WAYS, steps[name], strict=True))}")
            for side in sides.values():
                side.check(texts)
            for chosen, full in zip(cheaper.layers, by_whole.layers, strict=True):
                layer = chosen.layer.rpartition("_")[2]
                layers.append((layer, name, chosen.how, [chosen.seconds, by_increment.get(layer), full.seconds]))
    about = _ABOUT.format(scale=scale, count=len(texts), spark=report.versions["Spark"], memory=MEMORY)
    report.sections.append(Steps("Refreshes of all layers", about, steps))
    report.sections.append(
        ByLayer("By layer", "Four layers are computed at a time, so that they slow each other.", layers)
    )
    return report


# -- rows ------------------------------------------------------------------------------------------------------


def _generated(scale: float, home: Path) -> Mapping[str, Path]:
    program = shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    if program is None:
        raise UserError("tpchgen-cli is missing: run tools/setup.sh --spark-connect")
    directory = home / "tpch"
    subprocess.run(
        [program, "parquet", "-s", f"{scale:g}", f"--output-dir={directory}"], check=True, capture_output=True
    )
    return {name: directory / f"{name}.parquet" for name in KEYS}


def _load(spark: SparkSession, tables: Mapping[str, Path]) -> None:
    spark.sql("CREATE DATABASE tpch")
    for name, path in tables.items():
        rows = spark.read.parquet(str(path))
        columns = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in rows.schema)
        spark.sql(
            f"CREATE TABLE tpch.{name} ({columns}) USING parquet"
            f" TBLPROPERTIES ('primary-key' = '{KEYS[name]}', 'bucket' = '{BUCKETS.get(name, 1)}')"
        )
        write(rows, f"tpch.{name}", operation="upsert")


def _some(remainder: int) -> str:
    """A condition that holds for one of `SHARE` orders, by their numbers."""
    return f"pmod(xxhash64({{}}), {SHARE}) = {remainder}"


def _insert(spark: SparkSession) -> None:
    """RF1: orders with their lines, as others are, under numbers of their own."""
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        found = read(spark, f"tpch.{table}").where(_some(1).format(key))
        # TPC-H leaves three of four numbers free for this.
        rows = found.selectExpr(f"{key} + 1000000000 AS {key}", *_others(found.columns, key))
        write(rows, f"tpch.{table}", operation="upsert")


def _delete(spark: SparkSession) -> None:
    """RF2."""
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        found = read(spark, f"tpch.{table}").where(_some(2).format(key))
        write(found, f"tpch.{table}", operation="delete")


def _change_suppliers(spark: SparkSession) -> None:
    found = read(spark, "tpch.supplier").where("s_nationkey = 7")
    changed = "CAST(s_acctbal + 1 AS DECIMAL(15, 2)) AS s_acctbal"
    write(found.selectExpr(changed, *_others(found.columns, "s_acctbal")), "tpch.supplier", operation="upsert")


def _others(columns: Sequence[str], *but: str) -> list[str]:
    return [each for each in columns if each not in but]


# -- layers ----------------------------------------------------------------------------------------------------


def _texts() -> dict[str, str]:
    try:
        [jar, *_] = maven.class_path([QUERIES], exclusions=["*:*"])
    except maven.Unavailable as reason:
        raise UserError(str(reason)) from None
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for number in range(1, 23):
            text = archive.read(f"tpch/q{number}.sql").decode().replace(*_UNNAMED.get(number, ("", "")))
            head, order, tail = text.rpartition("order by")
            found[f"q{number:02}"] = head if order and ")" not in tail else text
    return found


class _Layers:
    """A layer for each query, all with a name before theirs."""

    def __init__(self, spark: SparkSession, name: str, texts: Mapping[str, str]) -> None:
        self._spark = spark
        self.name = name
        self.runner = runner_of(spark, name, "tpch", {f"{name}_{layer}": text for layer, text in texts.items()})

    def refresh(self, *, whole: bool = False) -> tuple[float, RefreshResult]:
        began = time.monotonic()
        result = self.runner.refresh([each.name for each in self.runner.graph.nodes] if whole else ())
        return time.monotonic() - began, result

    def check(self, texts: Mapping[str, str]) -> None:
        """Raises UserError unless all layers have the rows that DuckDB answers."""
        with duckdb.connect() as connection:
            for table in KEYS:
                connection.register(table, lake_table(self._spark, f"tpch.{table}", None).scan().to_arrow())
            for layer, text in texts.items():
                expected = connection.execute(text)
                names = [each[0] for each in expected.description]
                rows = read(self._spark, f"tpch.{self.name}_{layer}").select(*names).collect()
                if not _same(_sorted(map(tuple, rows)), _sorted(expected.fetchall())):
                    raise UserError(f"{self.name}_{layer} doesn't have the rows that DuckDB answers")


def _sorted(rows: Any) -> list[tuple[Any, ...]]:
    """Rows in an order that doesn't depend on the last digits of numbers."""

    def place(row: tuple[Any, ...]) -> tuple[str, ...]:
        texts = [f"{value:.1f}" if isinstance(value, _NUMBERS) else str(value) for value in row]
        exact = [text for text, value in zip(texts, row, strict=True) if not isinstance(value, float | Decimal)]
        return (*exact, *texts)

    return sorted(rows, key=place)


def _same(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]]) -> bool:
    return len(ours) == len(theirs) and all(
        all(_equal(one, other) for one, other in zip(a, b, strict=True)) for a, b in zip(ours, theirs, strict=True)
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS):
        return math.isclose(float(one), float(other), rel_tol=1e-6, abs_tol=1e-4)
    if isinstance(one, datetime | date) and isinstance(other, datetime | date):
        return str(one)[:10] == str(other)[:10]
    return bool(one == other)

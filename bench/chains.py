"""Random chains of layers: what an increment takes beside the first refresh, which computes all."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bench.figures import Report, readable
from bench.layers_of_queries import runner_of
from bench.options import Options
from bench.progress import noted, say
from bench.spark_server import MEMORY, spark_on_server
from lake.layers.runner.results import RefreshResult
from lake.protocol.errors import UserError
from lake.spark import read, write

CHAINS, QUICK_CHAINS = 20, 2
ROWS, QUICK_ROWS = 200_000, 20_000
CHANGED = 20
SEED = 43

_DIMENSIONS = {"products": ("product", 1_000, 20), "shops": ("shop", 200, 8)}
"""By table: its key, how many rows it has, and of how many groups they are."""

_ABOUT = (
    "{chains} chains of two to five layers, by seed {seed}: {rows:,} orders joined with one or two dimensions, then"
    " sums, ranks, latest rows and filters, each over the layer before. The first refresh computes all, then {changed}"
    " orders change, and later a row of a dimension. `auto` takes the cheaper way of each layer, `increments` never"
    " computes all. One process of Spark {spark}, local[2], {memory}, warmed up by a chain that isn't counted. After"
    " each change all rows are compared with Spark's own answers. In {slower} of {count} the refresh by the cheaper way"
    " took longer than the first one, by increments alone in {strictly_slower}."
)


@dataclass
class Chains:
    """Seconds by chain: of the first refresh, and after each change of both ways."""

    title: str
    about: str
    found: list[tuple[str, list[float]]]

    @property
    def headings(self) -> Sequence[str]:
        return ("chain", "first", "orders: auto", "increments", "dimension: auto", "increments")

    def rows(self) -> list[list[str]]:
        return [[name, *(f"{readable(each)} s" for each in seconds)] for name, seconds in self.found]


def run(options: Options) -> Report:
    """All of it. Raises UserError where rows aren't what Spark answers."""
    rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    count = QUICK_CHAINS if options.quick else CHAINS
    report = Report("chains", arguments=options.arguments)
    found: list[tuple[str, list[float]]] = []
    with spark_on_server({}) as (spark, _):
        report.versions["Spark"] = spark.version
        with noted(f"{rows:,} orders"):
            _load(spark, rows)
        for number in range(count + 1):
            queries = random_chain(random.Random(SEED + number))
            with noted(f"chain {number}, {len(queries)} layers"):
                seconds = _measured(spark, number, queries, rows)
            say(f"chain {number}: " + ", ".join(f"{each:.1f} s" for each in seconds))
            if number:  # the first warms up
                found.append((f"{number}: {', '.join(name for name, _ in queries)}", seconds))
    about = _ABOUT.format(
        chains=count,
        seed=SEED,
        rows=rows,
        changed=CHANGED,
        spark=report.versions["Spark"],
        memory=MEMORY,
        count=2 * count,
        slower=sum(each > seconds[0] for _, seconds in found for each in (seconds[1], seconds[3])),
        strictly_slower=sum(each > seconds[0] for _, seconds in found for each in (seconds[2], seconds[4])),
    )
    report.sections.append(Chains("Increments beside the first refresh", about, found))
    return report


def random_chain(rng: random.Random) -> list[tuple[str, str]]:
    """The layers of a chain: what each does, and its query. `{before}` is the layer before it."""
    dimensions = rng.sample([*_DIMENSIONS], rng.randint(1, 2))
    columns = ["day", *(f"{each}_group" for each in dimensions)]
    joins = ""
    for each in dimensions:
        joins += f" {rng.choice(['LEFT JOIN', 'JOIN'])} bench.{each} ON o.{_DIMENSIONS[each][0]} = {each}.id"
    groups = ", ".join(f"{each}.kind AS {each}_group" for each in dimensions)
    found = [("joined", f"SELECT o.id, o.day, {groups}, o.amount AS amount FROM bench.orders o{joins}")]
    key = ["id", "day"]
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["sums", "ranks", "latest", "filtered"])
        kept = rng.sample(columns, rng.randint(1, len(columns)))
        whole_key = ", ".join(key)
        listed = ", ".join(dict.fromkeys((*key, *columns)))
        if kind == "sums":
            groups = ", ".join(kept)
            sums = f"sum(amount) AS amount, count(*) AS rows_{len(found)}"
            query = f"SELECT {groups}, {sums} FROM {{before}} GROUP BY {groups}"
            key, columns = kept, kept
        elif kind == "ranks":
            place = f"rank() OVER (PARTITION BY {kept[0]} ORDER BY amount DESC)"
            query = f"SELECT {listed}, amount, {place} AS place_{len(found)} FROM {{before}}"
        elif kind == "latest":
            number = f"row_number() OVER (PARTITION BY {kept[0]} ORDER BY amount DESC, {whole_key})"
            query = f"SELECT {listed}, amount FROM (SELECT *, {number} AS n FROM {{before}}) WHERE n <= 3"
        else:
            some = f"pmod(CAST(amount AS BIGINT), 7) <> {rng.randrange(7)}"
            query = f"SELECT {listed}, amount FROM {{before}} WHERE {some}"
        found.append((kind, query))
    return found


# -- rows ------------------------------------------------------------------------------------------------------


def _load(spark: SparkSession, rows: int) -> None:
    spark.sql("CREATE DATABASE bench")
    for name, (_, count, groups) in _DIMENSIONS.items():
        spark.sql(
            f"CREATE TABLE bench.{name} (id BIGINT, kind STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id')"
        )
        write(
            spark.range(count).selectExpr("id", f"concat('kind ', id % {groups}) AS kind"),
            f"bench.{name}",
            operation="upsert",
        )
    spark.sql(
        "CREATE TABLE bench.orders (id BIGINT, product BIGINT, shop BIGINT, amount DECIMAL(12,2), day STRING)"
        " USING parquet PARTITIONED BY (day) TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '2')"
    )
    _order(spark, 0, rows, 1, 0, rows)


def _order(spark: SparkSession, begin: int, end: int, step: int, version: int, rows: int) -> None:
    found = spark.range(begin, end, step).selectExpr(
        "id",
        "id * 7 % 1000 AS product",
        "id * 3 % 200 AS shop",
        f"CAST((id * 31 + {version}) % 10000 / 100 AS DECIMAL(12,2)) AS amount",
        f"CAST(date_add(DATE '2026-01-01', CAST(id * 20 DIV {rows} AS INT)) AS STRING) AS day",
    )
    write(found, "bench.orders", operation="upsert")


def _measured(spark: SparkSession, number: int, queries: Sequence[tuple[str, str]], rows: int) -> list[float]:
    """The seconds of a chain. Raises UserError where rows aren't what Spark answers."""
    auto, strict = (_Chain(spark, f"{name}_{number}", queries) for name in ("auto", "strict"))
    strict.runner.choose = False
    seconds = [auto.refresh()]
    strict.refresh()
    last = rows - rows // 20  # orders of the last day change
    _order(spark, last, last + CHANGED * 10, 10, number + 1, rows)
    seconds += [auto.refresh(), strict.refresh()]
    kind = f"SELECT CAST({number} AS BIGINT) AS id, 'kind {number + 1} changed' AS kind"
    for name in _DIMENSIONS:
        write(spark.sql(kind), f"bench.{name}", operation="upsert")
    seconds += [auto.refresh(), strict.refresh()]
    for each in (auto, strict):
        each.check()
    return seconds


class _Chain:
    """The layers of a chain, each over the one before."""

    def __init__(self, spark: SparkSession, name: str, queries: Sequence[tuple[str, str]]) -> None:
        self._spark = spark
        self._queries = {
            f"{name}_{number}": query.format(before=f"{name}_{number - 1}") for number, (_, query) in enumerate(queries)
        }
        self.runner = runner_of(spark, name, "bench", self._queries)

    def refresh(self) -> float:
        """Refreshes the layers; seconds."""
        began = time.monotonic()
        result: RefreshResult = self.runner.refresh()
        if any(each.how in ("failed", "skipped") for each in result.layers):
            raise UserError(f"a layer failed: {result.layers}")
        return time.monotonic() - began

    def check(self) -> None:
        """Raises UserError unless each layer has the rows of its query."""
        session = self._spark.newSession()
        session.sql("USE bench")
        for layer, query in self._queries.items():
            expected = session.sql(query)
            found = read(session, f"bench.{layer}", include_uncommitted=True).select(*expected.columns)
            if found.exceptAll(expected).count() or expected.exceptAll(found).count():
                raise UserError(f"{layer} doesn't have the rows that Spark answers: {query}")

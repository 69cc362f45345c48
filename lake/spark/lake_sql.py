"""SQL over lake tables: all of those that a query names are read as of one moment.

sqlglot finds where the query names tables. The query's own text goes to Spark, with other names in these places, so
that nothing of it depends on how well it can be translated.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlglot
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lake.client.lake_types import Moment
from lake.protocol.hive import NoSuchObjectException
from lake.spark.lake_reading import read
from lake.spark.session_client import lake_table
from lake.tables.lake import LakeTable

_SESSION_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class _Named:
    """A place in the text where a query names a table: characters from `start` to before `end`."""

    name: str
    database: str | None
    start: int
    end: int
    has_alias: bool


def sql(
    spark: SparkSession,
    query: str,
    *,
    as_of: Moment | datetime | None = None,
    include_uncommitted: bool = False,
    uri: str | None = None,
) -> DataFrame:
    """The result of a query in Spark's SQL, for which all lake tables are read as of one moment, by default now.

    Lake tables are those with completed instants, and keyed tables. All others, and views, are read by Spark's own
    catalog. `as_of` is a `Moment`, or a time with its zone. Uncommitted partitions of lake tables are hidden unless
    `include_uncommitted`. Raises ValueError for what isn't one query, or another `as_of`: instants and positions are of
    one table. Further: SnapshotGone, and Spark's exceptions.
    """
    if as_of is not None and not isinstance(as_of, Moment | datetime):
        raise ValueError(f"as_of={as_of!r} is of one table: give a Moment or a time, which hold for all")
    if isinstance(as_of, datetime) and as_of.tzinfo is not None and as_of > datetime.now(UTC):
        raise ValueError(f"as_of={as_of} is in the future: what will be there then isn't known")
    tree = _parsed(query)
    places = list(_named(tree))
    tables = _lake_tables(spark, places, uri)
    at = as_of
    if at is None and tables:
        at = Moment(max(each.position().moment or 0 for each in tables.values()))
    views: dict[tuple[str | None, str], str] = {}
    try:
        for key, lake in tables.items():
            views[key] = f"_metastore_{uuid.uuid4().hex}"
            rows = read(spark, lake.reference, as_of=at, include_uncommitted=include_uncommitted, uri=uri)
            rows.createTempView(views[key])
        return spark.sql(_rewritten(query, tree, places, views))
    finally:
        # The result has been analysed: it needs the names no more.
        for view in views.values():
            spark.catalog.dropTempView(view)


def _parsed(query: str) -> exp.Query:
    try:
        trees = sqlglot.parse(query, dialect="spark")
    except SqlglotError as error:
        raise ValueError(f"the query can't be parsed: {str(error).splitlines()[0]}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ValueError("sql takes one query, a SELECT; other statements go to spark.sql")
    return trees[0]


def _named(tree: exp.Query) -> Iterator[_Named]:
    """The places where a query names tables that it doesn't define itself."""
    for table in tree.find_all(exp.Table):
        own, database, catalog = table.this, table.args.get("db"), table.args.get("catalog")
        if not isinstance(own, exp.Identifier) or table.find_ancestor(exp.Hint):
            continue
        if catalog is not None and catalog.name.lower() != _SESSION_CATALOG:
            continue
        if database is None and own.name.lower() in _defined(table):
            continue
        if table.args.get("version") or table.args.get("when"):
            raise ValueError(f"{own.name}: say as_of=, which is of all tables, instead of VERSION or TIMESTAMP AS OF")
        if table.args.get("sample") and not table.args.get("alias"):
            raise ValueError(f"give the table {own.name}, of which you take a sample, an alias")
        first = catalog or database or own
        start, end = first.meta.get("start"), own.meta.get("end")
        if start is None or end is None:
            continue
        yield _Named(
            own.name, None if database is None else database.name, start, end + 1, bool(table.args.get("alias"))
        )


def _defined(table: exp.Table) -> set[str]:
    """The names, in lower case, that WITH clauses give to queries where a table is named."""
    found: set[str] = set()
    inside: Any = table
    while inside is not None:
        clause = inside.args.get("with_") or inside.args.get("with")
        if isinstance(clause, exp.With):
            found |= {each.alias.lower() for each in clause.expressions}
        if isinstance(inside, exp.CTE) and isinstance(inside.parent, exp.With):
            # A query of a WITH clause knows those before it.
            with_clause = inside.parent
            known = with_clause.expressions
            if not with_clause.args.get("recursive"):
                known = known[: known.index(inside)]
            found |= {each.alias.lower() for each in known}
            inside = with_clause.parent  # its own WITH clause is dealt with
        inside = None if inside is None else inside.parent
    return found


def _lake_tables(
    spark: SparkSession, places: list[_Named], uri: str | None
) -> Mapping[tuple[str | None, str], LakeTable]:
    """The lake tables among those that a query names, by database (None for the current one) and name."""
    found = {}
    for each in places:
        key = (each.database, each.name)
        if key in found or (each.database is None and _is_temporary(spark, each.name)):
            continue
        lake = lake_table(spark, each.name if each.database is None else f"{each.database}.{each.name}", uri)
        if _is_lake_table(lake):
            found[key] = lake
    return found


def _is_temporary(spark: SparkSession, name: str) -> bool:
    return any(each.isTemporary and each.name.lower() == name.lower() for each in spark.catalog.listTables())


def _is_lake_table(lake: LakeTable) -> bool:
    try:
        return lake.schema().keyed_table() is not None or lake.position().position > 0
    except NoSuchObjectException:
        return False  # Spark says it better, or knows it from another catalog


def _rewritten(query: str, tree: exp.Query, places: list[_Named], views: Mapping[tuple[str | None, str], str]) -> str:
    """The text of a query with views in the places of tables."""
    changes = []
    for each in places:
        view = views.get((each.database, each.name))
        if view is not None:
            alias = "" if each.has_alias else f" AS `{each.name.replace('`', '``')}`"
            changes.append((each.start, each.end, f"`{view}`{alias}"))
    replaced = {(database or "").lower() + "." + name.lower() for database, name in views}
    for column in tree.find_all(exp.Column):
        database, own = column.args.get("db"), column.args.get("table")
        if database is not None and own is not None and f"{database.name}.{own.name}".lower() in replaced:
            first = column.args.get("catalog") or database
            changes.append((first.meta["start"], own.meta["start"], ""))  # `shop.orders.id` is `orders.id` now
    for start, end, text in sorted(changes, reverse=True):
        query = f"{query[:start]}{text}{query[end:]}"
    return query

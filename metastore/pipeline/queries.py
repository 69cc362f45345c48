"""Reads queries in Spark's SQL: parses them, and qualifies their names by the columns of the tables that they read."""

from collections.abc import Callable, Iterator, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from metastore.pipeline import determinism, streams, time_windows
from metastore.pipeline.building import Builder, Built, Table
from metastore.pipeline.errors import BadQuery

_SPARK = sqlglot.Dialect.get_or_raise("spark")


def parsed(text: str) -> exp.Query:
    """The syntax tree of one query. Raises BadQuery for what isn't one, or gives another result each time."""
    try:
        found = streams.as_tables(time_windows.as_functions(_SPARK.tokenize(text)))
        trees = _SPARK.parser().parse(found, text)
    except SqlglotError as error:
        raise BadQuery(f"the query can't be parsed: {str(error).splitlines()[0]}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise BadQuery("expected one query, a SELECT")
    tree = trees[0]
    determinism.check(tree)
    time_windows.rewrite(tree)
    return tree


def tables_in(tree: exp.Query, database: str) -> dict[str, exp.Table]:
    """The tables that a query names and doesn't define itself, as `database.table` in lower case.

    `database` is that of names without one. Raises BadQuery for names of other catalogs.
    """
    found: dict[str, exp.Table] = {}
    for name, each in _places(tree, database):
        if each.args.get("catalog") is not None and each.catalog.lower() != "spark_catalog":
            raise BadQuery(f"{each.sql('spark')} is of another catalog: layers read tables of the metastore alone")
        found.setdefault(name, each)
    return found


def with_relations(tree: exp.Query, database: str, relation: Callable[[str], str]) -> exp.Query:
    """A query over relations in the place of the tables that it names. `relation`: by `database.table`."""
    copied = tree.copy()
    for name, each in list(_places(copied, database)):
        each.set("this", exp.to_identifier(relation(name)))
        each.set("db", None)
        each.set("catalog", None)
        if not each.alias:
            each.set("alias", exp.TableAlias(this=exp.to_identifier(name.partition(".")[2])))
    for column in copied.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return copied


def _places(tree: exp.Query, database: str) -> Iterator[tuple[str, exp.Table]]:
    """The places where a query names tables that it doesn't define itself, with the names."""
    for each in tree.find_all(exp.Table):
        if isinstance(each.this, exp.Identifier) and (each.db or each.name.lower() not in _defined_around(each)):
            yield f"{each.db or database}.{each.name}".lower(), each


def qualified(tree: exp.Query, tables: Mapping[str, Table], database: str) -> exp.Query:
    """A query whose columns all say which relation they are of, without `*`. Raises BadQuery for unknown names."""
    schema: dict[str, object] = {}
    for name, table in tables.items():
        first, _, second = name.partition(".")
        within = schema.setdefault(first, {})
        assert isinstance(within, dict)
        within[second] = dict.fromkeys(table.columns, "unknown")
    copied = tree.copy()
    for each in list(copied.find_all(exp.Table)):
        each.set("catalog", None)
        if isinstance(each.this, exp.Identifier) and each.db:
            each.set("db", exp.to_identifier(each.db.lower()))
    try:
        made = qualify(copied, schema=schema, dialect="spark", db=database.lower(), quote_identifiers=False)
    except SqlglotError as error:
        raise BadQuery(" ".join(str(error).split())) from None
    if not isinstance(made, exp.Query):
        raise BadQuery("expected one query, a SELECT")
    _use_one_side(made)
    return made


def built(tree: exp.Query, tables: Mapping[str, Table], database: str) -> Built:
    """The operators of a query. Raises BadQuery."""
    return Builder(tables).build(qualified(tree, tables, database))


def _use_one_side(tree: exp.Query) -> None:
    """Makes columns of JOIN … USING those of the left side, where that is the same: in inner and left joins.

    Qualifying makes a COALESCE of both sides in some places and not in others.
    """
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        if not all((each.side or "").upper() in ("", "LEFT") for each in joins):
            continue
        conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
        pairs = {
            (each.this.sql(), each.expression.sql())
            for condition in conditions
            for each in (condition.flatten() if isinstance(condition, exp.And) else [condition])
            if isinstance(each, exp.EQ)
        }
        for coalesce in list(select.find_all(exp.Coalesce)):
            others = coalesce.expressions
            if len(others) == 1 and (coalesce.this.sql(), others[0].sql()) in pairs:
                coalesce.replace(coalesce.this.copy())


def _defined_around(table: exp.Table) -> set[str]:
    """The names, in lower case, that WITH clauses around a table give to queries."""
    found: set[str] = set()
    inside: exp.Expr | None = table
    while inside is not None:
        if isinstance(inside, exp.Query):
            found |= {each.alias.lower() for each in inside.ctes}
        inside = inside.parent
    return found

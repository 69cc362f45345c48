"""Reads queries in Spark's SQL: parses them, and qualifies their names by the columns of the tables that they read."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify

from lake.layers import verbatim
from lake.layers.compiler import determinism, streams, time_windows
from lake.layers.compiler.building import Builder, Built, Table
from lake.layers.errors import BadQuery


class Parsed(NamedTuple):
    """A query's syntax tree, and its text without the words that say that a table is read as a stream.

    `as_written` is the tree before windows of time became expressions: the same one in a query that has none. Its names
    of tables and columns say where they stand in the text.
    """

    tree: exp.Query
    text: str
    as_written: exp.Query

    @property
    def has_windows(self) -> bool:
        """Whether the query has windows of time."""
        return self.as_written is not self.tree


def parsed(text: str) -> Parsed:
    """One query. Raises BadQuery for what isn't one, or gives another result each time."""
    try:
        tokens = time_windows.as_functions(verbatim.tokens(text))
        found = streams.as_tables(tokens)
        trees = verbatim.trees(found, text)
    except SqlglotError as error:
        raise BadQuery(f"the query can't be parsed: {str(error).splitlines()[0]}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise BadQuery("expected one query, a SELECT")
    tree = trees[0]
    for join in tree.find_all(exp.Join):
        if join.args.keys() == {"this", "kind"}:
            join.set("kind", "INNER")  # a comma, which sqlglot takes for CROSS JOIN, and Spark doesn't
    determinism.check(tree)
    kept = {id(each) for each in found}
    for each in tokens:
        if id(each) not in kept:
            text = f"{text[: each.start]}{' ' * (each.end + 1 - each.start)}{text[each.end + 1 :]}"
    rewritten = tree.copy()
    if not time_windows.rewrite(rewritten):
        rewritten = tree
    return Parsed(rewritten, text, tree)


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


def places(tree: exp.Query) -> list[exp.Table]:
    """The places where a query names tables that it doesn't define itself."""
    return [
        each
        for each in tree.find_all(exp.Table)
        if isinstance(each.this, exp.Identifier)
        and (each.db or each.name.lower() not in _defined_around(each))
        and each.find_ancestor(exp.Hint) is None
    ]


def _places(tree: exp.Query, database: str) -> Iterator[tuple[str, exp.Table]]:
    """The places where a query names tables, with these as `database.table`."""
    for each in places(tree):
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
    _inline_windows(made)
    return made


def built(tree: exp.Query, tables: Mapping[str, Table], database: str) -> Built:
    """The operators of a query. Raises BadQuery."""
    return Builder(tables).build(qualified(tree, tables, database))


def _use_one_side(tree: exp.Query) -> None:
    """Makes columns of JOIN … USING those of one side, where that is the same: in inner, left, and single right joins.

    Qualifying makes a COALESCE of both sides in some places and not in others.
    """
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        sides = [(each.side or "").upper() for each in joins]
        if sides != ["RIGHT"] and not {*sides} <= {"", "LEFT"}:
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
                coalesce.replace((others[0] if sides == ["RIGHT"] else coalesce.this).copy())


def _inline_windows(tree: exp.Query) -> None:
    """Puts the windows that a WINDOW clause names in the places that name them."""
    for select in tree.find_all(exp.Select):
        named = {each.name.lower(): each for each in select.args.get("windows") or ()}
        for window in list(select.find_all(exp.Window)) if named else ():
            found = named.get(window.alias.lower()) if window.parent_select is select else None
            if found is not None:
                window.set("alias", None)
                for part in ("partition_by", "order", "spec"):
                    if value := found.args.get(part):
                        window.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
        if named:
            select.set("windows", None)


def _defined_around(table: exp.Table) -> set[str]:
    """The names, in lower case, that WITH clauses around a table give to queries.

    Within a WITH clause only the queries before are known: the query `t` may read the table `t`.
    """
    found: set[str] = set()
    inside: exp.Expr | None = table
    within: exp.CTE | None = None
    while inside is not None:
        if isinstance(inside, exp.CTE):
            within = inside
        elif isinstance(inside, exp.Query):
            for each in inside.ctes:
                if each is within:
                    break
                found.add(each.alias.lower())
            within = None
        inside = inside.parent
    return found

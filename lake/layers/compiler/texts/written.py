"""Queries as they were written. Here it is found out which tables they name; what they mean, Spark says."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from lake.layers.compiler.texts import streams
from lake.layers.errors import BadQuery

_SPARK = sqlglot.Dialect.get_or_raise("spark")
_SPECIAL_TIME = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TIMES = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})


@dataclass(frozen=True)
class Written:
    """A query's text, without the words that say that a table is read as a stream. `tree` has the names in it.

    `normal` is the text without comments, and with one blank wherever there is any. `views` are the temporary views
    that it reads, directly or through others, by their names.
    """

    text: str
    normal: str
    tree: exp.Query
    views: "Mapping[str, Written]" = field(default_factory=dict)

    @classmethod
    def parsed(cls, text: str) -> "Written":
        """Raises BadQuery for a text that isn't one query."""
        try:
            tokens = _with_windows(_SPARK.tokenize(text))
            _check_times(tokens)
            found = streams.as_tables(tokens)
            trees = SparkParser(dialect=_SPARK).parse(found, text)
        except SqlglotError as error:
            raise BadQuery(f"the query can't be parsed: {str(error).splitlines()[0]}") from None
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise BadQuery("expected one query, a SELECT")
        normal = " ".join(text[each.start : each.end + 1] for each in found)
        kept = {id(each) for each in found}
        for each in tokens:
            if id(each) not in kept:
                text = f"{text[: each.start]}{' ' * (each.end + 1 - each.start)}{text[each.end + 1 :]}"
        return cls(text, normal, trees[0])

    def with_views(self, views: "Mapping[str, Written]") -> "Written":
        """The query with the temporary views that it names. Views may name others, in no circle."""
        found: dict[str, Written] = {}
        pending = [self]
        while pending:
            for name in views_in(pending.pop(), views) - found.keys():
                found[name] = views[name]
                pending.append(views[name])
        return Written(self.text, self.normal, self.tree, found)

    def reads(self, database: str) -> set[str]:
        """The tables that the query reads, as `database.table` in lower case. `database` is that of names without one.

        Raises BadQuery for names of other catalogs.
        """
        found = set()
        for each in itertools.chain(_places(self.tree), *(_places(view.tree) for view in self.views.values())):
            if each.db == "" and each.name.lower() in self.views:
                continue
            if each.args.get("catalog") is not None and each.catalog.lower() != "spark_catalog":
                raise BadQuery(f"{each.sql('spark')} is of another catalog: layers read tables of the metastore alone")
            found.add(f"{each.db or database}.{each.name}".lower())
        return found


def views_in(query: Written, views: Mapping[str, object]) -> set[str]:
    """The names of temporary views, among some, that a query names itself."""
    return {each.name.lower() for each in _places(query.tree) if not each.db and each.name.lower() in views}


def _places(tree: exp.Query) -> Iterator[exp.Table]:
    """The places where a query names tables that it doesn't define itself."""
    for each in tree.find_all(exp.Table):
        if (
            isinstance(each.this, exp.Identifier)
            and (each.db or each.name.lower() not in _defined_around(each))
            and each.find_ancestor(exp.Hint) is None
        ):
            yield each


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


def _with_windows(found: list[Token]) -> list[Token]:
    """A query's tokens, in which `window(` is a function's name also where sqlglot expects a clause."""
    for each, after in itertools.pairwise(found):
        if each.token_type is TokenType.WINDOW and after.token_type is TokenType.L_PAREN:
            each.token_type = TokenType.VAR
    return found


def _check_times(found: Sequence[Token]) -> None:
    """Raises BadQuery for times such as DATE 'today': Spark's parser puts that day in the place of the text."""
    for each, after in itertools.pairwise(found):
        if (
            each.text.upper() in _TIMES
            and after.token_type in (TokenType.STRING, TokenType.RAW_STRING)
            and _SPECIAL_TIME.match(after.text)
        ):
            special = after.text.strip().lower()
            raise BadQuery(f"'{special}' as a time has another value at each refresh: store the time in a source")

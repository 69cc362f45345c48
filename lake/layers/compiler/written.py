"""Queries as they were written. Spark computes a text that sqlglot has written again, so the two are compared.

A text keeps every character of the user's, but for the names of tables, in whose place relations stand.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler import queries
from lake.layers.compiler.building import Table
from lake.layers.errors import BadQuery


class Mention(NamedTuple):
    """A place where a text names a table.

    `database` is None for a name without one. `alias` is what a relation in its place has to be called; None where the
    text itself says so.
    """

    database: str | None
    name: str
    alias: str | None

    def table(self, database: str) -> str:
        """The table as `database.table`, in lower case. `database` is that of names without one."""
        return f"{self.database or database}.{self.name}".lower()


Text = tuple[str | Mention, ...]
"""A query's text, cut at the places where it names tables."""


@dataclass(frozen=True)
class Written:
    """A query's text, and what it is compiled from.

    `windows` is the syntax tree before windows of time became expressions; None for a query without such windows.
    """

    tree: exp.Query
    text: Text
    windows: exp.Query | None = None

    @classmethod
    def parsed(cls, text: str) -> "Written":
        """Raises BadQuery for a text that isn't one query, or that gives another result each time."""
        found = queries.parsed(text)
        return cls(found.tree, _cut(found.text, found.as_written), found.as_written if found.has_windows else None)

    def over(self, database: str, relation: Callable[[str], str]) -> str:
        """The text over relations in the place of tables. `relation` gives their names, by `database.table`."""
        return "".join(
            each if isinstance(each, str) else _named(relation(each.table(database)), each.alias) for each in self.text
        )

    def with_views(self, views: Mapping[str, "Written"]) -> "Written":
        """The query with the temporary views that it names as subqueries. Views may name others, in no circle."""
        names = {each.name.lower() for each in self.text if isinstance(each, Mention) and each.database is None}
        if not names & views.keys():
            return self
        windows = [each.windows for each in (self, *views.values())]
        whole = {name: view.windows or view.tree for name, view in views.items()}
        return Written(
            _expanded(self.tree, {name: view.tree for name, view in views.items()}),
            tuple(_spliced(self.text, views)),
            None if windows == [None] * len(windows) else _expanded(self.windows or self.tree, whole),
        )

    def rewritings(
        self, tables: Mapping[str, Table], database: str, relation: Callable[[str], str]
    ) -> list[tuple[str, exp.Query]]:
        """Pairs of a text and the query that it became, which must mean the same. Together they lead to what is run.

        `tables` are those that the query reads. `relation` gives the names of relations in their place.
        Raises BadQuery.
        """
        compiled = queries.with_relations(queries.qualified(self.tree, tables, database), database, relation)
        _drop_needless_names(compiled)
        text = self.over(database, relation)
        if self.windows is None:
            return [(text, compiled)]
        before, after = (queries.with_relations(each, database, relation) for each in (self.windows, self.tree))
        return [(text, before), (after.sql("spark"), compiled)]


def _cut(text: str, tree: exp.Query) -> Text:
    """A text, cut at the names of tables. Columns lose the database of their table."""
    cuts: list[tuple[int, int, Mention | None]] = []
    databases: set[tuple[str, str]] = set()
    for each in queries.places(tree):
        first = each.args.get("catalog") or each.args.get("db") or each.this
        mention = Mention(each.db or None, each.name, None if each.alias else each.name)
        cuts.append((first.meta["start"], each.this.meta["end"] + 1, mention))
        databases.add((each.db.lower(), each.name.lower()))
    for column in tree.find_all(exp.Column):
        database, table = column.args.get("db"), column.args.get("table")
        if database is not None and table is not None and (column.db.lower(), column.table.lower()) in databases:
            first = column.args.get("catalog") or database
            cuts.append((first.meta["start"], table.meta["start"], None))
    found: list[str | Mention] = []
    place = 0
    for start, end, instead in sorted(cuts, key=lambda cut: cut[:2]):
        found += [text[place:start], *([] if instead is None else [instead])]
        place = end
    return (*found, text[place:])


def _spliced(text: Text, views: Mapping[str, Written]) -> Iterator[str | Mention]:
    for each in text:
        if isinstance(each, Mention) and each.database is None and each.name.lower() in views:
            yield "("
            yield from _spliced(views[each.name.lower()].text, views)
            yield "\n)"  # the text may end with a comment
            yield "" if each.alias is None else f" AS {_quoted(each.alias)}"
        else:
            yield each


def _named(relation: str, alias: str | None) -> str:
    return _quoted(relation) if alias is None else f"{_quoted(relation)} AS {_quoted(alias)}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _expanded(tree: exp.Query, views: Mapping[str, exp.Query]) -> exp.Query:
    """A query with the temporary views that it names as subqueries."""
    made = tree.copy()
    while True:
        places = [each for each in queries.places(made) if not each.db and each.name.lower() in views]
        if not places:
            return made
        for each in places:
            alias = exp.TableAlias(this=exp.to_identifier(each.alias_or_name))
            found = exp.Subquery(this=views[each.name.lower()].copy(), alias=alias)
            for name in ("joins", "laterals"):
                if each.args.get(name):
                    found.set(name, each.args[name])
            each.replace(found)


def _drop_needless_names(tree: exp.Query) -> None:
    """Has `t.a AS a` be `t.a`. Spark's plans differ by such names, and nothing else does."""
    for each in list(tree.find_all(exp.Alias)):
        if isinstance(each.this, exp.Column) and each.alias == each.this.name and isinstance(each.parent, exp.Select):
            each.replace(each.this)


def refused(query: exp.Query, columns: list[str]) -> BadQuery:
    """What is said of a text that would be computed as another query. `columns`: those that differ; none for all."""
    query = query.copy()
    for each in query.find_all(exp.Table):  # the names of relations mean nothing to users
        if each.alias:
            each.set("this", exp.to_identifier(each.alias))
            each.set("alias", None)
    by_name = {each.alias_or_name: each.unalias() for each in query.selects}
    blamed = [name for name in columns if not isinstance(by_name.get(name), exp.Column | None)]
    shown = ", and ".join(f"{name} as {by_name[name].sql('spark')[:200]}" for name in blamed[:3])
    return BadQuery(
        f"it would be computed as another query than it says, {shown or query.sql('spark')[:500]}:"
        " write that part as a call of a function, for calls are run as they were written"
    )

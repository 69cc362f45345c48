"""Which layers name a column of a table. For people, and by the text: what a query means, Spark says."""

from collections.abc import Collection, Iterator

from sqlglot import exp

from lake.layers.compiler.graph import Graph, Node
from lake.layers.compiler.texts.written import Written


def layers_naming(graph: Graph, tables: Collection[str], columns: Collection[str] | None) -> list[str]:
    """The layers whose queries name a column of some tables, or take it by `*`, and those that get it from these.

    `tables`: names as of `Node.reads`. `columns`: in any case; None for all layers that read the tables themselves.
    A column of another table counts, too, if it has the name.
    """
    passed: dict[str, set[str]] = {each: {name.lower() for name in columns or ()} for each in tables}
    found = []
    for node in graph.nodes:
        if columns is None:
            if not node.reads.isdisjoint(tables):
                found.append(node.name)
            continue
        wanted = {name for table in node.reads for name in passed.get(table, ())}
        names, outputs = _uses(node, wanted)
        if names:
            found.append(node.name)
            passed[node.name] = outputs
    return found


def _uses(node: Node, wanted: set[str]) -> tuple[bool, set[str]]:
    """Whether a layer names some columns, and as what it has them itself."""
    if not wanted:
        return False, set()
    if node.flow is not None:
        return True, wanted
    queries = [each for each in (node.query, *node.appends) if each is not None]
    trees = [tree for each in queries for tree in _trees(each)]
    stars = any(_is_of_all(each) for tree in trees for each in tree.find_all(exp.Star))
    names = {name for tree in trees for name in _names(tree)}
    has = {*wanted} if stars else wanted & names
    renamed = [pair for tree in trees for pair in _renamed(tree)]
    while more := {to for name, to in renamed if name in has} - has:
        has |= more
    return bool(has), has


def _trees(query: Written) -> Iterator[exp.Query]:
    yield query.tree
    yield from (each.tree for each in query.views.values())


def _is_of_all(star: exp.Star) -> bool:
    """Whether a star stands for all columns, as in `*` and `t.*`, unlike that of `count(*)`."""
    above = star.parent
    return isinstance(above, exp.Select) or (isinstance(above, exp.Column) and isinstance(above.parent, exp.Select))


def _names(tree: exp.Query) -> Iterator[str]:
    """The columns that a query names, in lower case."""
    for each in tree.find_all(exp.Column):
        yield each.name.lower()
    for join in tree.find_all(exp.Join):
        yield from (each.name.lower() for each in join.args.get("using") or ())
    for star in tree.find_all(exp.Star):
        yield from (each.name.lower() for each in star.args.get("except_") or star.args.get("except") or ())


def _renamed(tree: exp.Query) -> Iterator[tuple[str, str]]:
    """Columns that a query gives another name, and these."""
    for each in tree.find_all(exp.Alias):
        if isinstance(each.this, exp.Column):
            yield each.this.name.lower(), each.alias.lower()

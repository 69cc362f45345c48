"""Builds the operators of a query from the tree that Spark's analyser made of it, and finds what tells rows apart.

The tree comes from the extension's `PlanReader`. Its columns have names that are unique within it, and its expressions
are handles. What Spark's tree has no operator for is an `Opaque` one: always right, and never by increments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlglot import exp

from lake.layers.compiler.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    JoinKind,
    Merge,
    Opaque,
    Operator,
    Project,
    Source,
    Span,
    UnionAll,
    Window,
)
from lake.layers.compiler.disjoint import Branch, SharedKey, shared_key
from lake.layers.compiler.handles import value_of
from lake.layers.compiler.needed import columns_of, needed
from lake.layers.compiler.typed import are_alike, has_map
from lake.layers.errors import BadQuery

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table that queries read: `database.table`, its columns, and those that tell its rows apart; None without such.

    Of these, some may not be among the columns: `*` doesn't name them. `non_null`: columns without NULLs.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    non_null: frozenset[str] = frozenset()


class Built(NamedTuple):
    """An operator, and the columns of the query's result: their names and the operator's columns, in order."""

    operator: Operator
    outputs: tuple[tuple[str, str], ...]


class Builder:
    """Builds operators, with names for columns that are unique in all that it builds."""

    def __init__(self, tables: Mapping[str, Table], types: dict[str, str], *, shares_keys: bool = True) -> None:
        """`tables`: those that queries may read. `types`: of the tree's columns; those of further ones are added.

        `shares_keys`: the branches of a union that can have no rows with the same key keep it.
        """
        self._shares_keys = shares_keys
        self._tables = tables
        self._types = types
        self._used = len(types)
        self._operators: Mapping[str, Callable[[Tree], Operator]] = {
            "source": self._source,
            "project": self._project,
            "filter": self._filter,
            "join": self._join,
            "union": self._union,
            "distinct": self._distinct,
            "aggregate": self._aggregate,
            "window": self._window,
            "explode": self._explode,
            "whole": self._whole,
        }

    def built(self, answer: Tree) -> Built:
        """The operators of what the analyser answers. Raises BadQuery as `build`."""
        outputs = tuple((name.lower(), column) for name, column in answer["outputs"])
        wanted = {column for _, column in outputs} | columns_of(answer["conditions"])
        keys = {name: table.key or () for name, table in self._tables.items()}
        return Built(self.build(needed(answer["tree"], wanted, keys)), outputs)

    def build(self, tree: Tree) -> Operator:
        """The operators of a tree. Raises BadQuery for what may take other rows, or give other numbers, each time."""
        return self._operators[tree["op"]](tree)

    def _fresh(self, name: str, kind: str) -> str:
        self._used += 1
        made = f"{name}_{self._used}"
        self._types[made] = kind
        return made

    # --- rows of one relation -----------------------------------------------------------------------------------

    def _source(self, tree: Tree) -> Operator:
        table = self._tables[tree["table"]]
        stored: Mapping[str, str] = tree["columns"]
        columns = {name: mine for mine, name in stored.items()}
        key = None if table.key is None else tuple(columns[each] for each in table.key)
        non_null = frozenset(columns[each] for each in table.non_null if each in columns)
        return Source(tuple(stored), key, table.name, stored, non_null=non_null)

    def _project(self, tree: Tree) -> Operator:
        return self._projected(self.build(tree["input"]), tree["columns"])

    def _projected(self, operator: Operator, items: Sequence[tuple[str, Any]]) -> Operator:
        """Values over an operator's columns. What is plain keeps its name, so that others pass through."""
        if all(column == value for column, value in items):
            return operator
        expressions = {column: value_of(value) for column, value in items}
        for each in operator.key or ():  # kept, so that rows stay apart
            expressions.setdefault(each, exp.column(each))
        columns = tuple(expressions)
        return Project(columns, operator.key, operator, expressions, non_null=operator.non_null & frozenset(columns))

    def _filter(self, tree: Tree) -> Operator:
        operator = self.build(tree["input"])
        conditions: Sequence[Tree] = tree["conditions"]
        if not conditions:
            return operator
        ones = [each["one"] for each in conditions if "one" in each]
        selected = _selected(tree["input"])
        partitions = [found for each in ones if (found := _numbered_within(operator, each))]
        key = next((each for each in partitions if selected is None or {*each} <= selected), operator.key)
        non_null = operator.non_null.union(*(each["non_null"] for each in conditions))
        fixed: dict[str, frozenset[str]] = {}
        for each in conditions:
            if "fixed" in each:
                column, values = each["fixed"]["column"], frozenset(each["fixed"]["values"])
                fixed[column] = fixed.get(column, values) & values
        spans: dict[str, Span] = {}
        for bound in (each["bound"] for each in conditions if "bound" in each):
            spans[bound["column"]] = _span(bound).within(spans.get(bound["column"], Span()))
        condition = exp.and_(*map(value_of, conditions))
        return Filter(operator.columns, key, operator, condition, fixed, spans, non_null=non_null & {*operator.columns})

    def _distinct(self, tree: Tree) -> Operator:
        columns = tuple(dict.fromkeys(tree["columns"]))
        return self._one_each(self.build(tree["input"]), columns)

    @staticmethod
    def _one_each(operator: Operator, columns: tuple[str, ...]) -> Operator:
        """One row of those that are equal: what tells these apart isn't needed."""
        non_null = operator.non_null & frozenset(columns)
        bag = Project(columns, None, operator, {name: exp.column(name) for name in columns}, non_null=non_null)
        return Aggregate(columns, columns, bag, columns, {}, non_null=non_null)

    def _aggregate(self, tree: Tree) -> Operator:
        inner = self.build(tree["input"])
        if tree["computed"]:
            inner = _extended(inner, {column: value_of(value) for column, value in tree["computed"]})
        groups = tuple(tree["groups"])
        if any(has_map(self._types[each]) for each in groups):
            raise BadQuery("GROUP BY a map: which groups a change touches can't be said, group by to_json of it")
        aggregates = {column: value_of(value) for column, value in tree["aggregates"]}
        merges = {
            column: Merge(
                value["merge"], value_of(value["argument"]) if "argument" in value else None, self._types[column]
            )
            for column, value in tree["aggregates"]
            if "merge" in value
        }
        non_null = inner.non_null & frozenset(groups)
        key = tuple(dict.fromkeys(tree["key"]))
        made = Aggregate((*groups, *aggregates), key, inner, groups, aggregates, non_null=non_null, merges=merges)
        return self._projected(made, tree["results"])

    def _window(self, tree: Tree) -> Operator:
        operator = self.build(tree["input"])
        partition = tuple(dict.fromkeys(tree["partition"]))
        for _, function in tree["functions"]:
            _check_order(function, operator, partition)
        functions = {column: value_of(function) for column, function in tree["functions"]}
        numbers = frozenset(column for column, each in tree["functions"] if each["function"] == "row_number")
        columns = (*operator.columns, *functions)
        return Window(columns, operator.key, operator, partition, functions, numbers, non_null=operator.non_null)

    def _explode(self, tree: Tree) -> Operator:
        operator = self.build(tree["input"])
        position, made = tree["position"], tuple(tree["made"])
        key = None if operator.key is None else (*operator.key, position)
        columns = (*operator.columns, position, *made)
        generator = value_of(tree["generator"])
        return Explode(
            columns, key, operator, generator, position, made, bool(tree["outer"]), non_null=operator.non_null
        )

    # --- what is computed as a whole --------------------------------------------------------------------------

    def _whole(self, tree: Tree) -> Operator:
        for each in tree["checks"]:
            if each["check"] == "window":
                _check_order(each, self.build(each["input"]), each["partition"])
            else:
                self._check_limit(each)
        columns = tuple(tree["columns"])
        return Opaque(columns, None, tree["plan"], tuple(tree["tables"]), tree["reason"])

    def _check_limit(self, check: Tree) -> None:
        """Raises BadQuery unless the ORDER BY of a query with LIMIT or OFFSET leaves no rows that tie and differ."""
        if "input" not in check:
            raise BadQuery("LIMIT without ORDER BY takes any rows: order them by something that tells all apart")
        operator = self.build(check["input"])
        ordered = {*check["order"]}
        if not {*check["columns"]} <= ordered and (operator.key is None or not {*operator.key} <= ordered):
            advice = _names(operator.key or ()) or "all columns"
            raise BadQuery(f"LIMIT takes any of the rows that tie in ORDER BY: add {advice} to it")

    # --- UNION ------------------------------------------------------------------------------------------------

    def _union(self, tree: Tree) -> Operator:
        columns = tuple(tree["columns"])
        parts = [(self.build(each), tuple(values)) for each, values in _branches(tree)]
        keys = [operator.key for operator, _ in parts]
        if any(key is None for key in keys):
            branches = [
                Project(columns, None, part, {name: exp.column(each) for name, each in zip(columns, own, strict=True)})
                for part, own in parts
            ]
            return UnionAll(columns, None, tuple(branches))
        if self._shares_keys and (shared := shared_key(columns, parts, self._types)) is not None:
            return self._disjoint(columns, parts, shared)
        # Each branch's key has columns of its own, which are NULL in the others: their types may differ. A branch that
        # is added at the end leaves the keys of the others as they are.
        tag = self._fresh("branch", "int")
        owns = [{self._fresh("key", self._types[name]): name for name in key or ()} for key in keys]
        key = (tag, *(column for each in owns for column in each))
        made = []
        for number, (operator, values) in enumerate(parts):
            expressions: dict[str, exp.Expr] = {
                column: exp.column(value) for column, value in zip(columns, values, strict=True)
            }
            expressions[tag] = exp.Literal.number(number)
            for which, some in enumerate(owns):
                expressions |= {
                    column: exp.column(name) if which == number else self._null(name) for column, name in some.items()
                }
            made.append(Project(tuple(expressions), key, operator, expressions))
        return UnionAll((*columns, *key), key, tuple(made), non_null=frozenset([tag]))

    def _disjoint(self, columns: tuple[str, ...], parts: Sequence[Branch], shared: SharedKey) -> Operator:
        """Branches that have no rows with the same key, which stays what it is in each of them."""
        hidden = [self._fresh("key", self._types[each]) for each in shared.hidden[0]]
        key = tuple(hidden[each] if isinstance(each, int) else each for each in shared.key)
        made = []
        for (operator, values), owns in zip(parts, shared.hidden, strict=True):
            pairs = [*zip(columns, values, strict=True), *zip(hidden, owns, strict=True)]
            expressions: dict[str, exp.Expr] = {column: exp.column(own) for column, own in pairs}
            non_null = frozenset(column for column, own in pairs if own in operator.non_null)
            made.append(Project(tuple(expressions), key, operator, expressions, non_null=non_null))
        non_null = frozenset[str].intersection(*(each.non_null for each in made))
        return UnionAll((*columns, *hidden), key, tuple(made), True, non_null=non_null)

    def _null(self, column: str) -> exp.Expr:
        """A NULL of a column's type."""
        kind = self._types[column]
        return exp.Null() if kind == "void" else exp.cast(exp.Null(), kind, dialect="spark")

    # --- JOIN -------------------------------------------------------------------------------------------------

    def _join(self, tree: Tree) -> Operator:
        kind = JoinKind(tree["kind"])
        left, right = self.build(tree["left"]), self.build(tree["right"])
        if kind is JoinKind.FULL:  # a row without partner is told apart from one whose key is NULL
            left, right = self._marked(left), self._marked(right)
        conditions: Sequence[Tree] = tree["conditions"]
        pairs: list[tuple[str, str]] = []
        not_null: set[str] = set()
        for each in conditions:
            not_null |= {*each["non_null"]}
            found = _sides(each, left, right)
            if found is not None:
                alike = self._plain_pair(*found)
                left, first = self._column(left, found[0], alike)
                right, second = self._column(right, found[1], alike)
                pairs.append((first, second))
                not_null |= {first, second} if each["kind"] == "equal" else set()
        only_left = kind in (JoinKind.SEMI, JoinKind.ANTI)
        non_null = frozenset() if kind is JoinKind.FULL else left.non_null
        if kind is JoinKind.INNER:
            non_null |= right.non_null | not_null
        elif kind is JoinKind.SEMI:
            non_null |= not_null & {*left.columns}
        return Join(
            left.columns if only_left else (*left.columns, *right.columns),
            _joined_key(left, right, kind, pairs),
            left,
            right,
            kind,
            exp.and_(*map(value_of, conditions)) if conditions else None,
            tuple(pairs),
            non_null=non_null,
        )

    def _marked(self, operator: Operator) -> Operator:
        """An operator with a column that is never NULL, as a part of its key."""
        if operator.key is None:
            return operator
        mark = self._fresh("there", "int")
        return _extended(operator, {mark: exp.Literal.number(1)}, key=(mark, *operator.key), non_null={mark})

    def _plain_pair(self, first: Tree, second: Tree) -> bool:
        """Whether two values that are equal are those of columns, cast at most to where they have room."""
        kinds = [self._types.get(each.get("column") or each.get("cast_of") or "") for each in (first, second)]
        return None not in kinds and are_alike(kinds[0] or "", kinds[1] or "")

    def _column(self, operator: Operator, value: Tree, plain: bool) -> tuple[Operator, str]:
        """A value as a column of an operator, with the operator that has it."""
        if "column" in value or plain:
            return operator, value.get("column") or value["cast_of"]
        name = self._fresh("value", value["type"])
        return _extended(operator, {name: value_of(value)}), name


def numbered(built: Built, types: dict[str, str]) -> Built:
    """A query whose rows nothing tells apart, with equal rows numbered. The number and the values are the key."""
    columns = tuple(dict.fromkeys(column for _, column in built.outputs))
    for output, column in built.outputs:
        if has_map(types[column]):
            raise BadQuery(
                f"nothing tells the rows apart, and {output} is a map, which isn't compared: select a key, too"
            )
    bag = Project(columns, None, built.operator, {name: exp.column(name) for name in columns})
    order = exp.Order(expressions=[exp.Ordered(this=exp.column(columns[0]), nulls_first=True)])
    number = exp.Window(
        this=exp.RowNumber(), partition_by=[exp.column(name) for name in columns], order=order, over="OVER"
    )
    types["copy_0"] = "int"
    made = Window((*columns, "copy_0"), (*columns, "copy_0"), bag, columns, {"copy_0": number})
    return Built(made, built.outputs)


def _branches(tree: Tree) -> list[tuple[Tree, Sequence[str]]]:
    """The branches of a chain of UNION ALL, with the columns of each. Spark has a union of two for each word UNION."""
    first, *others = tree["branches"]
    inner: Tree = first["input"]
    while inner["op"] == "project" and all(column == value for column, value in inner["columns"]):
        inner = inner["input"]
    found: list[tuple[Tree, Sequence[str]]] = [(first["input"], first["values"])]
    if inner["op"] == "union":
        places = [inner["columns"].index(each) for each in first["values"]]
        found = [(each, [values[place] for place in places]) for each, values in _branches(inner)]
    return [*found, *((each["input"], each["values"]) for each in others)]


def _span(bound: Tree) -> Span:
    """The range in which a condition wants a column."""
    value: int | str = bound["value"]
    low, high = {
        "<": (None, (value, 0)),
        "<=": (None, (value, 1)),
        ">": ((value, 1), None),
        ">=": ((value, 0), None),
        "=": ((value, 0), (value, 1)),
    }[bound["side"]]
    return Span(low, high, bound["or_null"])


def _sides(condition: Tree, left: Operator, right: Operator) -> tuple[Tree, Tree] | None:
    """The two values that a condition says are equal, of the left and of the right relation; None if it doesn't."""
    if "equal" not in condition:
        return None
    first, second = condition["equal"]
    of_first, of_second = ({each["column"]} if "column" in each else {*each["columns"]} for each in (first, second))
    if not of_first or not of_second:
        return None
    if condition["kind"] == "or unknown":  # what is unknown may be equal to anything
        plain = {each.get("column") for each in (first, second)}
        if not plain <= left.non_null | right.non_null:
            return None
    if of_first <= {*left.columns} and of_second <= {*right.columns}:
        return first, second
    if of_first <= {*right.columns} and of_second <= {*left.columns}:
        return second, first
    return None


def _selected(tree: Tree) -> frozenset[str] | None:
    """The columns that a subquery selects; None where the tree's root isn't one. Its operator may have more."""
    if tree["op"] == "filter":
        return _selected(tree["input"])
    if tree["op"] != "project":
        return None
    return frozenset(tree.get("selected") or (column for column, _ in tree["columns"]))  # all, where none was left out


def _numbered_within(operator: Operator, column: str) -> tuple[str, ...] | None:
    """The partition in which a column numbers the rows, by an operator's own columns; None if it doesn't."""
    match operator:
        case Window(numbers=numbers, partition=partition) if column in operator.functions:
            return partition if column in numbers and partition else None
        case Window(input=input) | Filter(input=input):
            return _numbered_within(input, column)
        case Project(input=input):
            inner = operator.plain(column)
            found = None if inner is None else _numbered_within(input, inner)
            own = {name: each for each in operator.columns if (name := operator.plain(each)) is not None}
            return tuple(own[each] for each in found) if found is not None and {*found} <= {*own} else None
    return None


def _check_order(function: Tree, operator: Operator, partition: Sequence[str]) -> None:
    """Raises BadQuery unless a window's order is total where its function depends on it."""
    if not function["total"]:
        return
    known = {*function["order"], *partition}
    if {*operator.columns} <= known:
        return  # rows that tie are equal
    if operator.key is None or not {*operator.key} <= known:
        key = _names(operator.key or ())
        advice = f"add {key} to its ORDER BY" if key else "the rows have no key that could order them"
        name = function["function"]
        raise BadQuery(f"{name} has no total order, so that rows that tie may change places: {advice}")


def _names(columns: Sequence[str]) -> str:
    """The names that columns have in the query, as a list for people."""
    return ", ".join(each.rpartition("_")[0] for each in columns)


def _joined_key(
    left: Operator, right: Operator, kind: JoinKind, pairs: Sequence[tuple[str, str]]
) -> tuple[str, ...] | None:
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left.key
    if left.key is None or right.key is None:
        return None
    if kind is not JoinKind.FULL and {*right.key} <= {second for _, second in pairs}:
        return left.key  # each row has one partner at most
    if kind is JoinKind.INNER and {*left.key} <= {first for first, _ in pairs}:
        return right.key
    return (*left.key, *right.key)


def _extended(
    operator: Operator,
    further: Mapping[str, exp.Expr],
    *,
    key: tuple[str, ...] | None = None,
    non_null: set[str] | None = None,
) -> Project:
    """An operator with further columns."""
    expressions = {**{name: exp.column(name) for name in operator.columns}, **further}
    known = operator.non_null | frozenset(non_null or ())
    return Project(tuple(expressions), key or operator.key, operator, expressions, non_null=known)

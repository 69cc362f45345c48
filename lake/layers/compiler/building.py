"""Builds the operators of a query from its syntax tree, whose names are qualified.

What can't be built is computed as a whole, as an `Opaque` operator: always right, and never by increments.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler import determinism
from lake.layers.compiler.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    JoinKind,
    Opaque,
    Operator,
    Project,
    Source,
    UnionAll,
    Window,
)
from lake.layers.errors import BadQuery


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


class _CannotBuild(Exception):
    """A part of a query has no operator. The message says which."""


class Pair(NamedTuple):
    """Two values that a join's condition says are equal: the number of the join, and of the pair within, in the order
    in which they are built."""

    join: int
    number: int


_Names = dict[tuple[str, str], str]
"""By a relation's alias and a column's name, the operator's column."""

_SELECT_PARTS = frozenset(
    [
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "distinct",
        "with_",
        "laterals",
        "hint",
        "order",
        "kind",
        "operation_modifiers",
    ]
)
"""The clauses of a SELECT that are built. Others make the SELECT opaque."""


@dataclass(frozen=True)
class _Shared:
    """A query of a WITH clause, and those that it may name."""

    query: exp.Query
    known: "Mapping[str, _Shared]"


class Builder:
    """Builds operators, with names for columns that are unique in all that it builds."""

    def __init__(self, tables: Mapping[str, Table], unlike: Collection["Pair"] = ()) -> None:
        """`tables`: those that queries may read, by `database.table`. `unlike`: pairs that a join doesn't match by."""
        self._tables = tables
        self._unlike = frozenset(unlike)
        self._used = 0
        self._joins = 0
        self.pairs: dict[Pair, tuple[Join, str, str]] = {}
        """The pairs of columns that joins match by, each with its join."""

    def build(self, query: exp.Query) -> Built:
        """The operators of a qualified query. Raises BadQuery for what no computation makes repeatable."""
        return self._query(query, {})

    def _fresh(self, name: str) -> str:
        self._used += 1
        kept = "".join(each if each.isascii() and (each.isalnum() or each == "_") else "_" for each in name.lower())
        return f"{kept[:40]}_{self._used}"

    def _query(self, query: exp.Query, known: Mapping[str, _Shared]) -> Built:
        if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
            return self._query(query.this, known)
        for each in query.ctes:
            known = {**known, each.alias.lower(): _Shared(each.this, known)}
        try:
            if query.args.get("limit") or query.args.get("offset"):
                raise _CannotBuild("LIMIT keeps the first rows of all")
            if isinstance(query, exp.Union):
                return self._union(query, known)
            if isinstance(query, exp.Select):
                return self._select(query, known)
            raise _CannotBuild(f"{query.key.upper()} is computed as a whole")
        except _CannotBuild as reason:
            return self._opaque(query, known, str(reason))

    def _opaque(self, query: exp.Query, known: Mapping[str, _Shared], reason: str) -> Built:
        self._check_repeatable(query, known)
        whole = _with(query.copy(), known)
        names = _output_names(whole)
        columns = tuple(self._fresh(name) for name in names)
        tables = _tables_in(whole)
        if unknown := sorted(tables - self._tables.keys()):
            raise BadQuery(f"there is no table {unknown[0]}")
        made = Opaque(columns, None, whole, tuple(sorted(tables)), reason)
        return Built(made, tuple(zip(names, columns, strict=True)))

    # --- what is computed as a whole --------------------------------------------------------------------------

    def _check_repeatable(self, query: exp.Query, known: Mapping[str, _Shared]) -> None:
        """Raises BadQuery unless a query that is computed as a whole takes the same rows, and numbers, each time."""
        for each in list(query.find_all(exp.Query)):
            around = _known_around(each, query, known)
            if each.args.get("limit") or each.args.get("offset"):
                self._check_limit(each, around)
            if isinstance(each, exp.Select):
                self._check_windows(each, around)

    def _check_limit(self, query: exp.Query, known: Mapping[str, _Shared]) -> None:
        """Raises BadQuery unless the ORDER BY of a query with LIMIT or OFFSET leaves no rows that tie and differ."""
        if not query.args.get("order"):
            raise BadQuery("LIMIT without ORDER BY takes any rows: order them by something that tells all apart")
        by = [each.this for each in query.args["order"].expressions if isinstance(each.this, exp.Column)]
        names = {each.name.lower() for each in by if not each.table}
        bare = query.copy()
        for part in ("limit", "offset", "order"):
            bare.set(part, None)
        extra = [f"order_{number}_" for number in range(len(by))]
        if isinstance(bare, exp.Select) and not bare.args.get("distinct"):
            for name, column in zip(extra, by, strict=True):
                if column.table:
                    bare.append("expressions", exp.alias_(column.copy(), name))
        built = self._query(bare, known)
        ordered = {column for name, column in built.outputs if name in names or name in extra}
        visible = {column for name, column in built.outputs if name not in extra}
        key = built.operator.key
        if not visible <= ordered and (key is None or not {*key} <= ordered):
            advice = ", ".join(each.rpartition("_")[0] for each in key or ()) or "all columns"
            raise BadQuery(f"LIMIT takes any of the rows that tie in ORDER BY: add {advice} to it")

    def _check_windows(self, select: exp.Select, known: Mapping[str, _Shared]) -> None:
        """Raises BadQuery unless the window functions of a SELECT give each row the same value each time."""
        windows = [
            each
            for each in select.find_all(exp.Window)
            if each.parent_select is select and determinism.needs_total_order(each)
        ]
        if not windows:
            return
        bare = exp.Select(
            expressions=[exp.alias_(each.copy(), f"window_{number}") for number, each in enumerate(windows)]
        )
        for part in ("from_", "joins", "laterals", "group"):
            if value := select.args.get(part):
                bare.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
        try:
            self._select(bare, known)
        except _CannotBuild as reason:
            function = windows[0].this.sql("spark").split("(")[0].lower()
            raise BadQuery(
                f"{function} needs a total order, and whether this is one can't be said ({reason}): compute it in a"
                " subquery of its own"
            ) from None

    # --- UNION ------------------------------------------------------------------------------------------------

    def _union(self, query: exp.Union, known: Mapping[str, _Shared]) -> Built:
        if query.args.get("by_name"):
            raise _CannotBuild("UNION BY NAME is computed as a whole")
        parts = [self._query(each, known) for each in _branches(query)]
        names = [name for name, _ in parts[0].outputs]
        if any(len(each.outputs) != len(names) for each in parts):
            raise BadQuery("the queries of a UNION have different numbers of columns")
        columns = tuple(self._fresh(name) for name in names)
        if query.args.get("distinct"):
            # Rows that are equal are one, so what tells them apart isn't needed.
            branches = [_renamed(part, columns) for part in parts]
            united = UnionAll(columns, None, tuple(branches))
            return Built(Aggregate(columns, columns, united, columns, {}), tuple(zip(names, columns, strict=True)))
        keys = [part.operator.key for part in parts]
        if any(key is None for key in keys):
            return Built(
                UnionAll(columns, None, tuple(_renamed(part, columns) for part in parts)),
                tuple(zip(names, columns, strict=True)),
            )
        # Each branch's key has columns of its own, which are NULL in the others: their types may differ. A branch that
        # is added at the end leaves the keys of the others as they are.
        tag = self._fresh("branch")
        own = [{self._fresh("key"): name for name in key or ()} for key in keys]
        key = (tag, *(column for each in own for column in each))
        branches = []
        for number, part in enumerate(parts):
            expressions: dict[str, exp.Expr] = {
                column: exp.column(value) for column, (_, value) in zip(columns, part.outputs, strict=True)
            }
            expressions[tag] = exp.Literal.number(number)
            for which, some in enumerate(own):
                expressions |= {
                    column: exp.column(name) if which == number else exp.Null() for column, name in some.items()
                }
            branches.append(Project(tuple(expressions), key, part.operator, expressions))
        united = UnionAll((*columns, *key), key, tuple(branches), non_null=frozenset([tag]))
        return Built(united, tuple(zip(names, columns, strict=True)))

    # --- FROM -------------------------------------------------------------------------------------------------

    def _relation(self, relation: exp.Expr, known: Mapping[str, _Shared]) -> tuple[Operator, _Names]:
        """A table, a query of a WITH clause, or a subquery, and how its columns are named."""
        if relation.args.get("joins") or relation.args.get("laterals") or relation.args.get("pivots"):
            raise _CannotBuild("a join in brackets or a PIVOT is computed as a whole")
        alias = relation.alias_or_name.lower()
        if isinstance(relation, exp.Subquery):
            built = self._query(relation.this, known)
        elif isinstance(relation, exp.Table) and not relation.db and relation.name.lower() in known:
            shared = known[relation.name.lower()]
            built = self._query(shared.query, shared.known)
        elif isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            return self._source(_name(relation), alias)
        else:
            raise _CannotBuild(f"{relation.sql('spark')[:60]} in FROM is computed as a whole")
        return built.operator, {(alias, name.lower()): column for name, column in built.outputs}

    def _source(self, name: str, alias: str) -> tuple[Operator, _Names]:
        table = self._tables.get(name)
        if table is None:
            raise BadQuery(f"there is no table {name}")
        stored = {self._fresh(column): column for column in dict.fromkeys((*table.columns, *(table.key or ())))}
        columns = {column: mine for mine, column in stored.items()}
        key = None if table.key is None else tuple(columns[each] for each in table.key)
        made = Source(
            tuple(stored),
            key,
            table.name,
            stored,
            non_null=frozenset(columns[each] for each in table.non_null if each in columns),
        )
        return made, {(alias, column): mine for column, mine in columns.items()}

    def _joined(
        self,
        left: Operator,
        names: _Names,
        join: exp.Join,
        known: Mapping[str, _Shared],
        where: list[exp.Expr] | None = None,
    ) -> tuple[Operator, _Names]:
        """A join with what is left of it. Conditions of `where` that are about the right side alone are taken out."""
        if join.args.get("method") or join.args.get("using"):
            raise _CannotBuild("a NATURAL join is computed as a whole")
        right, others = self._relation(join.this, known)
        if where is not None:
            right, where[:] = self._guarded(right, others, where)
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        on = join.args.get("on")
        both = {**names, **others}
        condition = None if on is None or (isinstance(on, exp.Boolean) and on.this) else _translated(on, both)
        if kind in ("SEMI", "ANTI"):
            return self._join(left, right, JoinKind(kind.lower()), condition), names
        if kind not in ("", "INNER", "OUTER", "CROSS"):
            raise _CannotBuild(f"{kind} JOIN is computed as a whole")
        if side == "RIGHT":
            return self._join(right, left, JoinKind.LEFT, condition), both
        return self._join(left, right, JoinKind(side.lower() or "inner"), condition), both

    def _join(self, left: Operator, right: Operator, kind: JoinKind, condition: exp.Expr | None) -> Operator:
        self._joins += 1
        if kind is JoinKind.FULL:  # a row without partner is told apart from one whose key is NULL
            left, right = self._marked(left), self._marked(right)
        # What is said of one side guards what is computed of it to be compared, as where Spark plans the join.
        if kind in (JoinKind.INNER, JoinKind.SEMI):
            left = _with_own(left, condition)
        if kind is not JoinKind.FULL:
            right = _with_own(right, condition)
        pairs: list[tuple[str, str]] = []
        unlike: list[tuple[str, str]] = []
        numbered: dict[Pair, tuple[str, str]] = {}
        not_null: set[str] = set()
        for part in _conjuncts(condition):
            pair = _equality(part, left, right)
            if pair is not None:
                (left, first), (right, second) = (self._column(*each) for each in zip((left, right), pair, strict=True))
                place = Pair(self._joins, len(pairs) + len(unlike))
                numbered[place] = first, second
                (unlike if place in self._unlike else pairs).append((first, second))
                not_null |= {first, second} if isinstance(part, exp.EQ) else set()
        only_left = kind in (JoinKind.SEMI, JoinKind.ANTI)
        non_null = frozenset() if kind is JoinKind.FULL else left.non_null
        if kind is JoinKind.INNER:
            non_null |= right.non_null | not_null
        elif kind is JoinKind.SEMI:
            non_null |= not_null & set(left.columns)
        made = Join(
            left.columns if only_left else (*left.columns, *right.columns),
            _joined_key(left, right, kind, pairs),
            left,
            right,
            kind,
            condition,
            tuple(pairs),
            tuple(unlike),
            non_null=non_null,
        )
        self.pairs |= {place: (made, *names) for place, names in numbered.items()}
        return made

    def _marked(self, operator: Operator) -> Operator:
        """An operator with a column that is never NULL, as a part of its key."""
        if operator.key is None:
            return operator
        mark = self._fresh("there")
        return _extended(operator, {mark: exp.Literal.number(1)}, key=(mark, *operator.key), non_null={mark})

    def _column(self, operator: Operator, value: exp.Expr) -> tuple[Operator, str]:
        """A value as a column of an operator, with the operator that has it."""
        if isinstance(value, exp.Column):
            return operator, value.name
        name = self._fresh("value")
        return _extended(operator, {name: value}), name

    # --- SELECT -----------------------------------------------------------------------------------------------

    def _select(self, select: exp.Select, known: Mapping[str, _Shared]) -> Built:
        if further := [name for name, value in select.args.items() if value and name not in _SELECT_PARTS]:
            raise _CannotBuild(f"{further[0].upper()} is computed as a whole")
        if select.args.get("from_") is None:
            raise _CannotBuild("a SELECT without FROM is computed as a whole")
        if isinstance(select.args.get("distinct"), exp.Distinct) and select.args["distinct"].args.get("on"):
            raise _CannotBuild("DISTINCT ON is computed as a whole")
        operator, names = self._relation(select.args["from_"].this, known)
        where = [] if select.args.get("where") is None else list(_conjuncts(select.args["where"].this))
        joins = select.args.get("joins") or []
        moves = all(_is_inner(each) for each in joins)
        if joins and all(_keeps_left(each) for each in joins):
            operator, where = self._guarded(operator, names, where)
        for number, join in enumerate(joins):
            operator, names = self._joined(operator, names, join, known, where if moves else None)
            if moves:
                operator, where = self._with_conditions(operator, names, where, is_last=number == len(joins) - 1)
        for lateral in select.args.get("laterals") or ():
            operator, names = self._exploded(operator, names, lateral)
        operator = self._filtered(operator, names, where, known)
        if generators := [each for item in select.expressions for each in item.find_all(exp.Func) if _generates(each)]:
            name = min(determinism.names_of(generators[0]))
            raise _CannotBuild(f"{name}() in the SELECT list is computed as a whole, unlike LATERAL VIEW explode")
        items = [(each.alias_or_name.lower(), _translated(each.unalias(), names)) for each in select.expressions]
        having = select.args.get("having")
        condition = None if having is None else _translated(having.this, names)
        operator, items = self._aggregated(select, operator, names, items, condition)
        operator, items = self._windowed(operator, items)
        return self._projected(operator, items, distinct=bool(select.args.get("distinct")))

    def _guarded(self, operator: Operator, names: _Names, where: list[exp.Expr]) -> tuple[Operator, list[exp.Expr]]:
        """A relation with those conditions of WHERE that are about it alone, and the other conditions.

        They come before its join, as where Spark plans it: they may guard a cast in the join's condition.
        """
        own: list[exp.Expr] = []
        left: list[exp.Expr] = []
        for each in where:
            try:
                about = bool(_columns_of(_translated(each, names)))
            except _CannotBuild:
                about = False
            (own if about else left).append(each)
        return self._filtered(operator, names, own, {}), left

    def _with_conditions(
        self, operator: Operator, names: _Names, where: list[exp.Expr], *, is_last: bool
    ) -> tuple[Operator, list[exp.Expr]]:
        """An inner join with those conditions of WHERE that compare its two sides. Else a list of tables with commas
        would compare each row with each."""
        if not isinstance(operator, Join) or not where:
            return operator, where
        moved: list[exp.Expr] = []
        left: list[exp.Expr] = []
        for each in where:
            try:
                condition = _translated(each, names)
            except _CannotBuild:
                left.append(each)
                continue
            pair = _equality(condition, operator.left, operator.right)
            (moved if pair is not None else left).append(condition if pair is not None else each)
        if not moved:
            return operator, where
        whole = exp.and_(*([] if operator.condition is None else [operator.condition]), *moved)
        return self._join(operator.left, operator.right, operator.kind, whole), left

    def _filtered(
        self, operator: Operator, names: _Names, where: Sequence[exp.Expr], known: Mapping[str, _Shared]
    ) -> Operator:
        plain = []
        for each in where:
            if isinstance(each, exp.In) and each.args.get("query") is not None:
                operator = self._among(operator, names, each, known)
            else:
                plain.append(_translated(each, names))
        if not plain:
            return operator
        non_null = operator.non_null | {column for each in plain for column in _never_null_in(each)}
        key = next((found for each in plain if (found := _one_per_partition(operator, each))), operator.key)
        return Filter(operator.columns, key, operator, exp.and_(*plain), non_null=frozenset(non_null))

    def _among(self, operator: Operator, names: _Names, test: exp.In, known: Mapping[str, _Shared]) -> Operator:
        """The rows whose value is among those of a subquery, which is a semi join."""
        query = test.args["query"]
        query = query.this if isinstance(query, exp.Subquery) else query
        value = _translated(test.this, names)
        built = self._query(query, known)
        if len(built.outputs) != 1:
            raise _CannotBuild("IN with several columns is computed as a whole")
        condition = exp.EQ(this=value, expression=exp.column(built.outputs[0][1]))
        return self._join(operator, built.operator, JoinKind.SEMI, condition)

    def _exploded(self, operator: Operator, names: _Names, lateral: exp.Lateral) -> tuple[Operator, _Names]:
        generator, alias = lateral.this, lateral.args.get("alias")
        if not isinstance(generator, exp.Explode | exp.Posexplode) or not lateral.args.get("view") or alias is None:
            raise _CannotBuild("LATERAL but for LATERAL VIEW explode and posexplode is computed as a whole")
        with_position = isinstance(generator, exp.Posexplode)
        given = [each.name.lower() for each in alias.args.get("columns") or ()]
        values = given[1:] if with_position else given
        if len(values) not in (1, 2) or (with_position and len(given) < 2):
            raise _CannotBuild("LATERAL VIEW without names of its columns is computed as a whole")
        position, made = self._fresh("position"), [self._fresh(name) for name in values]
        key = None if operator.key is None else (*operator.key, position)
        exploded = Explode(
            (*operator.columns, position, *made),
            key,
            operator,
            _translated(generator.this, names),
            position,
            tuple(made),
            bool(lateral.args.get("outer")),
            non_null=operator.non_null,
        )
        own = dict(zip(given, [position, *made] if with_position else made, strict=True))
        return exploded, {**names, **{(alias.name.lower(), name): column for name, column in own.items()}}

    def _aggregated(
        self,
        select: exp.Select,
        operator: Operator,
        names: _Names,
        items: list[tuple[str, exp.Expr]],
        having: exp.Expr | None,
    ) -> tuple[Operator, list[tuple[str, exp.Expr]]]:
        """The groups of a SELECT, and its items over them."""
        group = select.args.get("group")
        has_aggregates = any(_aggregates_in(value) for _, value in items) or having is not None
        if group is None and not has_aggregates:
            return operator, items
        by: list[exp.Expr] = []
        if group is not None:
            if any(value for name, value in group.args.items() if name not in ("expressions", "all")):
                raise _CannotBuild("ROLLUP, CUBE and GROUPING SETS are computed as a whole")
            if group.args.get("all"):
                by = [value for _, value in items if not _aggregates_in(value)]
            by += [_translated(each, names) for each in group.expressions]
        if any(isinstance(each, exp.GroupingSets | exp.Cube | exp.Rollup) for each in by):
            raise _CannotBuild("ROLLUP, CUBE and GROUPING SETS are computed as a whole")
        columns: dict[str, exp.Expr] = {}
        computed: dict[str, exp.Expr] = {}
        for each in by:
            if each in columns.values():
                continue
            name = each.name if isinstance(each, exp.Column) else self._fresh("group")
            columns[name] = each
            computed |= {} if isinstance(each, exp.Column) else {name: each}
        inner = _extended(operator, computed) if computed else operator
        found: dict[str, exp.Expr] = {}
        replaced = [(name, self._over_groups(value, columns, found)) for name, value in items]
        condition = None if having is None else self._over_groups(having, columns, found)
        groups = tuple(columns)
        result: Operator = Aggregate(
            (*groups, *found), groups, inner, groups, found, non_null=inner.non_null & frozenset(groups)
        )
        if condition is not None:
            result = Filter(result.columns, result.key, result, condition, non_null=result.non_null)
        return result, replaced

    def _over_groups(self, value: exp.Expr, groups: Mapping[str, exp.Expr], found: dict[str, exp.Expr]) -> exp.Expr:
        """An expression over the columns of groups. `found` gets the aggregates in it."""

        def replace(node: exp.Expr) -> exp.Expr:
            for name, each in groups.items():
                if node == each:
                    return exp.column(name)
            if _is_aggregate(node) and not _is_window_function(node):
                for name, each in found.items():
                    if node == each:
                        return exp.column(name)
                name = self._fresh("aggregate")
                found[name] = node.copy()
                return exp.column(name)
            return node

        made = _replaced(value, replace)
        if wrong := [each for each in made.find_all(exp.Column) if each.name not in {*groups, *found}]:
            raise BadQuery(f"{wrong[0].name.rpartition('_')[0]} is neither in GROUP BY nor in an aggregate")
        return made

    def _windowed(
        self, operator: Operator, items: list[tuple[str, exp.Expr]]
    ) -> tuple[Operator, list[tuple[str, exp.Expr]]]:
        """The window functions of a SELECT, one operator for those of the same partitions."""
        by_partition: dict[tuple[str, ...], dict[str, exp.Expr]] = {}
        computed: dict[str, exp.Expr] = {}

        def replace(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Window):
                return node
            if node.args.get("alias") or node.args.get("over") not in (None, "OVER"):
                raise _CannotBuild("a window with a name is computed as a whole")
            partition = []
            for each in node.args.get("partition_by") or ():
                if not isinstance(each, exp.Column):
                    name = next((known for known, value in computed.items() if value == each), None)
                    name = name or self._fresh("partition")
                    computed[name] = each.copy()
                    each = exp.column(name)
                partition.append(each.name)
            _check_order(node, operator, partition)
            functions = by_partition.setdefault(tuple(dict.fromkeys(partition)), {})
            name = self._fresh("window")
            functions[name] = node.copy()
            return exp.column(name)

        items = [(name, _replaced(value, replace)) for name, value in items]
        if computed:
            operator = _extended(operator, computed)
        for partition, functions in by_partition.items():
            columns = (*operator.columns, *functions)
            operator = Window(columns, operator.key, operator, partition, functions, non_null=operator.non_null)
        return operator, items

    def _projected(self, operator: Operator, items: Sequence[tuple[str, exp.Expr]], *, distinct: bool) -> Built:
        expressions: dict[str, exp.Expr] = {}
        outputs = []
        for name, value in items:
            column = self._fresh(name) if not isinstance(value, exp.Column) else value.name
            expressions[column] = value
            outputs.append((name, column))
        if distinct:
            columns = tuple(expressions)
            non_null = operator.non_null & frozenset(columns)
            bag = Project(columns, None, operator, expressions, non_null=non_null)
            return Built(Aggregate(columns, columns, bag, columns, {}, non_null=non_null), tuple(outputs))
        for each in operator.key or ():  # kept, so that rows stay apart
            expressions.setdefault(each, exp.column(each))
        columns = tuple(expressions)
        non_null = operator.non_null & frozenset(columns)
        return Built(Project(columns, operator.key, operator, expressions, non_null=non_null), tuple(outputs))


def numbered(built: Built) -> Built:
    """A query whose rows nothing tells apart, with equal rows numbered. The number and the values are the key."""
    columns = tuple(dict.fromkeys(column for _, column in built.outputs))
    bag = Project(columns, None, built.operator, {name: exp.column(name) for name in columns})
    order = exp.Order(expressions=[exp.Ordered(this=exp.column(columns[0]), nulls_first=True)])
    number = exp.Window(
        this=exp.RowNumber(), partition_by=[exp.column(name) for name in columns], order=order, over="OVER"
    )
    made = Window((*columns, "copy_0"), (*columns, "copy_0"), bag, columns, {"copy_0": number})
    return Built(made, built.outputs)


def _one_per_partition(operator: Operator, condition: exp.Expr) -> tuple[str, ...] | None:
    """The columns of which each value has one row at most where row_number() OVER (PARTITION BY these …) is 1.

    None if the condition doesn't say that.
    """
    if not isinstance(condition, exp.EQ):
        return None
    for column, value in ((condition.this, condition.expression), (condition.expression, condition.this)):
        if isinstance(column, exp.Column) and value == exp.Literal.number(1):
            return _numbered_within(operator, column.name)
    return None


def _numbered_within(operator: Operator, column: str) -> tuple[str, ...] | None:
    """The partition in which a column numbers the rows, by an operator's own columns; None if it doesn't."""
    match operator:
        case Window(functions=functions, partition=partition) if column in functions:
            return partition if isinstance(functions[column].this, exp.RowNumber) and partition else None
        case Window(input=input) | Filter(input=input):
            return _numbered_within(input, column)
        case Project(input=input):
            inner = operator.plain(column)
            found = None if inner is None else _numbered_within(input, inner)
            own = {name: each for each in operator.columns if (name := operator.plain(each)) is not None}
            return tuple(own[each] for each in found) if found is not None and {*found} <= {*own} else None
    return None


def _check_order(window: exp.Window, operator: Operator, partition: Sequence[str]) -> None:
    """Raises BadQuery unless a window's order is total where its function depends on it."""
    if not determinism.needs_total_order(window):
        return
    order = window.args.get("order")
    ordered = {each.this.name for each in (order.expressions if order else ()) if isinstance(each.this, exp.Column)}
    known = ordered | {*partition}
    if {*operator.columns} <= known:
        return  # rows that tie are equal
    if operator.key is None or not {*operator.key} <= known:
        function = window.this.sql("spark").split("(")[0].lower()
        key = ", ".join(each.rpartition("_")[0] for each in operator.key or ())
        advice = f"add {key} to its ORDER BY" if key else "the rows have no key that could order them"
        raise BadQuery(f"{function} has no total order, so that rows that tie may change places: {advice}")


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


def _renamed(built: Built, columns: Sequence[str]) -> Project:
    """The result of a query under other names, as a bag."""
    values = {name: exp.column(column) for name, (_, column) in zip(columns, built.outputs, strict=True)}
    return Project(tuple(columns), None, built.operator, values)


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    if condition is None:
        return []
    if isinstance(condition, exp.Paren):
        return _conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [condition]


def _equality(condition: exp.Expr, left: Operator, right: Operator) -> tuple[exp.Expr, exp.Expr] | None:
    """The two values that a condition says are equal, of the left and the right relation."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    first, second = condition.this, condition.expression
    of_first, of_second = ({each.name for each in side.find_all(exp.Column)} for side in (first, second))
    if not of_first or not of_second:
        return None
    if of_first <= {*left.columns} and of_second <= {*right.columns}:
        return first, second
    if of_first <= {*right.columns} and of_second <= {*left.columns}:
        return second, first
    return None


def _never_null_in(condition: exp.Expr) -> set[str]:
    """The columns that aren't NULL where a condition holds."""
    if isinstance(condition, exp.Not) and isinstance(condition.this, exp.Is):
        test = condition.this
        return (
            {test.this.name} if isinstance(test.this, exp.Column) and isinstance(test.expression, exp.Null) else set()
        )
    if isinstance(condition, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return {each.name for each in (condition.this, condition.expression) if isinstance(each, exp.Column)}
    return set()


def _translated(value: exp.Expr, names: _Names) -> exp.Expr:
    """An expression over an operator's columns. Raises _CannotBuild for subqueries and columns of elsewhere."""
    if value.find(exp.Query):
        raise _CannotBuild("a subquery within an expression is computed as a whole")
    if value.find(exp.ArraysZip):
        raise _CannotBuild("arrays_zip() names fields after columns, and is computed as a whole")

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            raise _CannotBuild("a * within an expression is computed as a whole")
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        place = node.table.lower(), node.name.lower()
        if not place[0] and _is_parameter(node):
            return node
        if not place[0]:
            found = {column for (_, name), column in names.items() if name == place[1]}
            if len(found) == 1:
                return exp.column(found.pop())
        if place not in names:
            raise _CannotBuild(f"{node.sql('spark')} is computed with the query around it")
        return exp.column(names[place])

    return value.copy().transform(replace)


def _is_parameter(node: exp.Column) -> bool:
    """Whether a name is that of a parameter of a lambda function around it."""
    around = node.find_ancestor(exp.Lambda)
    while around is not None:
        if any(each.name.lower() == node.name.lower() for each in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _replaced(value: exp.Expr, replace: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """An expression in which some parts are replaced; what comes out isn't looked at again."""
    made = replace(value)
    if made is not value:
        return made
    copied = value.copy()
    for child in list(copied.iter_expressions()):
        new = _replaced(child, replace)
        if new is not child:
            child.replace(new)
    return copied


_FURTHER_AGGREGATES = frozenset(
    [
        "try_sum",
        "try_avg",
        "some",
        "every",
        "std",
        "percentile",
        "histogram_numeric",
        "any",
        "bit_and",
        "bit_or",
        "bit_xor",
        "hll_sketch_agg",
        "count_min_sketch",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "regr_r2",
        "regr_slope",
        "regr_intercept",
        "regr_avgx",
        "regr_avgy",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "theta_sketch_agg",
        "kll_sketch_agg_bigint",
    ]
)
"""Spark's aggregates that sqlglot takes for plain functions."""


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return _is_aggregate(node.this)
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in _FURTHER_AGGREGATES


def _is_window_function(node: exp.Expr) -> bool:
    """Whether an aggregate is the function of a window."""
    while isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _aggregates_in(value: exp.Expr) -> bool:
    """Whether an expression has aggregates, other than those of windows."""
    if isinstance(value, exp.Window):
        function: exp.Expr = value.this
        parts: list[exp.Expr] = [each for each in value.iter_expressions() if each is not function]
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
            parts += [each for each in function.iter_expressions() if each is not function.this]
            function = function.this
        parts += list(function.iter_expressions())
        return any(_aggregates_in(each) for each in parts)
    return _is_aggregate(value) or any(_aggregates_in(each) for each in value.iter_expressions())


def _branches(query: exp.Union) -> list[exp.Query]:
    """The queries of a chain of UNION ALL, or the two of another union."""
    left = query.left
    parts = ("distinct", "limit", "offset", "order", "with_", "by_name")
    if query.args.get("distinct") or not isinstance(left, exp.Union) or any(left.args.get(part) for part in parts):
        return [left, query.right]
    return [*_branches(left), query.right]


_GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "variant_explode",
        "variant_explode_outer",
    ]
)
"""Functions that make several rows of one."""


def _generates(function: exp.Func) -> bool:
    return isinstance(function, exp.UDTF) or bool(determinism.names_of(function) & _GENERATORS)


def _output_names(query: exp.Query) -> list[str]:
    """The names of a query's columns. A generator may have several."""
    first: exp.Expr = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select):
        return query.named_selects
    found: list[str] = []
    for each in first.selects:
        found += [name.name for name in each.expressions] if isinstance(each, exp.Aliases) else [each.output_name]
    return found


def _with_own(operator: Operator, condition: exp.Expr | None) -> Operator:
    """The rows of one side of a join of which its condition says what is about this side alone."""
    columns = {*operator.columns}
    own = [each for each in _conjuncts(condition) if (found := _columns_of(each)) and found <= columns]
    if not own:
        return operator
    non_null = operator.non_null | {column for each in own for column in _never_null_in(each)}
    together = exp.and_(*(each.copy() for each in own))
    return Filter(operator.columns, operator.key, operator, together, non_null=frozenset(non_null))


def _columns_of(value: exp.Expr) -> set[str]:
    return {each.name for each in value.find_all(exp.Column) if not _is_parameter(each)}


def _keeps_left(join: exp.Join) -> bool:
    """Whether a condition of WHERE about the left side may come before a join."""
    return (join.side or "").upper() in ("", "LEFT")


def _is_inner(join: exp.Join) -> bool:
    return not join.side and (join.kind or "").upper() in ("", "INNER", "CROSS")


def _name(table: exp.Table) -> str:
    return f"{table.db}.{table.name}".lower()


def _tables_in(query: exp.Query) -> set[str]:
    """The tables that a query reads, without those that its WITH clauses define."""
    return {_name(each) for each in query.find_all(exp.Table) if each.db and isinstance(each.this, exp.Identifier)}


def _known_around(inner: exp.Query, outer: exp.Query, known: Mapping[str, _Shared]) -> Mapping[str, _Shared]:
    """The queries of WITH clauses that one within a query may name, its own among them."""
    path: list[exp.Expr] = [inner]
    while path[-1] is not outer and path[-1].parent is not None:
        path.append(path[-1].parent)
    for each in reversed(path):
        for cte in each.ctes if isinstance(each, exp.Query) else ():
            known = {**known, cte.alias.lower(): _Shared(cte.this, known)}
    return known


def _with(query: exp.Query, known: Mapping[str, _Shared]) -> exp.Query:
    """A query with the WITH clauses that are around it. Later ones may name earlier ones."""
    own = list(query.ctes)
    around = [
        exp.CTE(this=shared.query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
        for name, shared in known.items()
        if name not in {each.alias.lower() for each in own}
    ]
    if around:
        query.set("with_", exp.With(expressions=[*around, *own]))
    return query

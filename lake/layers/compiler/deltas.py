"""The rules of increments: from a query's operators to steps that compute what a change of its tables changes.

Two states of the tables are known, before and after. The *delta* of an operator is two bags: old rows, which are part
of its result before, and new rows, which are part of its result after. Without the old rows before, and without the
new rows after, both results are the same. A delta may have rows that didn't change. So each rule only has to find a set
of rows that is large enough, and to compute its part of both states:

    table           what its changes say
    SELECT, WHERE   the same over the delta of the input
    UNION ALL       the deltas of all branches
    GROUP BY        the groups that the delta of the input touches, computed before and after; so is DISTINCT
    OVER            the partitions that the delta of the input touches
    JOIN            inner: the rows of one side that changed with all of the other, and those of the other side that
                    changed with the rest of the first; else the rows of the left that changed, or have partners that
                    changed, joined before and after
    FULL JOIN       all rows with a value of the join's columns that has changed on either side
    others          everything: the whole result before and after

Where only some groups or join values are needed, the steps read nothing else, down to the tables: the restriction is
pushed through all operators that keep its columns.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sqlglot import exp

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
    tables_of,
    walk,
)


class Side(StrEnum):
    """A state of the tables: at the last refresh, or now."""

    BEFORE = "before"
    AFTER = "after"


class Restriction(NamedTuple):
    """That a step reads of a relation only rows whose columns have values that another step lists.

    `columns`: pairs of the relation's column and that step's.
    """

    relation: str
    values: str
    columns: tuple[tuple[str, str], ...]


class Whole(NamedTuple):
    """A plan of Spark's by its handle, the names that its columns get, and the relations in the place of its tables."""

    plan: int
    columns: tuple[str, ...]
    relations: Mapping[str, str]


class Step(NamedTuple):
    """A named query over steps before it and over relations of tables. `keep`: it is read several times.

    Expressions of users are handles in the query. `restriction` lets who runs it read less of a table; the query says
    the same. `over`: the relation of which this has the columns, with other rows for some: where less of this is read,
    less of that is. `observed`: aggregates over all of its rows, with names, that are wanted beside them. `whole`: what
    is computed as a whole; the query only names its relations then. `only_if`: a step before it; where that has no
    rows, this isn't run, or `otherwise` in its place. That is how it mostly is.
    """

    name: str
    query: exp.Query
    keep: bool
    restriction: Restriction | None = None
    over: str | None = None
    observed: tuple[exp.Alias, ...] = ()
    whole: Whole | None = None
    only_if: str | None = None
    otherwise: exp.Query | None = None


class Relations(NamedTuple):
    """The names of a table's relations: its rows before and after, and those that changed, as they were and are."""

    before: str
    after: str
    old: str
    new: str

    def rows(self, side: Side) -> str:
        return self.before if side is Side.BEFORE else self.after

    def changed(self, side: Side) -> str:
        return self.old if side is Side.BEFORE else self.new


@dataclass(frozen=True)
class Among:
    """A restriction: rows whose columns have values that a step lists. `on`: pairs of column and the step's column."""

    step: str
    on: tuple[tuple[str, str], ...]


class Deltas:
    """Makes the steps of one refresh of one query. `steps` are those that were asked for, in their order."""

    def __init__(
        self,
        relations: Mapping[str, Relations],
        changed: Collection[str],
        prefix: str,
        *,
        grown: Collection[str] = (),
        prunes: Callable[[str, Sequence[str]], bool] = lambda relation, columns: True,
        is_exact: bool = False,
    ) -> None:
        """`changed`: the tables that may have changed. `prefix`: what names of steps begin with.

        `grown`: tables of which no row has changed or gone, some have only come. `prunes`: whether less is read of a
        relation if the values of some of its columns are known. `is_exact`: what is stored is the query's answer
        before, so that rows count for nothing that a condition leaves out before and after.
        """
        self._relations = relations
        self._changed = frozenset(changed)
        self._grown = frozenset(grown)
        self.prunes = prunes
        self.is_exact = is_exact
        self._prefix = prefix
        self._made: dict[tuple[object, ...], str | None] = {}
        self.steps: list[Step] = []

    def may_change(self, operator: Operator) -> bool:
        """Whether a table below an operator may have changed."""
        return not self._changed.isdisjoint(tables_of(operator))

    def rows(self, operator: Operator, side: Side, among: Among | None = None) -> str:
        """The step with the rows of an operator in one state, or those that a restriction lets through."""
        key = ("rows", operator, side, among)
        if key not in self._made:
            self._made[key] = self._rows(operator, side, among)
        found = self._made[key]
        assert found is not None
        return found

    def delta(self, operator: Operator, side: Side) -> str | None:
        """The step with the old or the new rows of an operator's delta; None if nothing can have changed."""
        key = ("delta", operator, side)
        if key not in self._made:
            self._made[key] = self._delta(operator, side) if self.may_change(operator) else None
        return self._made[key]

    def touched(
        self, operator: Operator, columns: Sequence[str], expressions: Sequence[exp.Expr], *, keep: bool
    ) -> str | None:
        """The step with values of expressions over some columns of an operator, of all rows that may have changed.

        The values are named as the expressions' aliases. None if nothing can have changed.
        """
        found = list(self._where_touched(operator, {name: name for name in columns}))
        if not found:
            return None
        selects = []
        for step, names in found:
            renamed = {name: exp.column(given) for name, given in names.items()}
            selects.append(select_from([_renamed(each, renamed) for each in expressions], step))
        return self.add("touched", _distinct_of(selects), keep=keep)

    def add(
        self,
        name: str,
        query: exp.Query,
        *,
        keep: bool = False,
        restriction: Restriction | None = None,
        over: str | None = None,
    ) -> str:
        """Makes a step."""
        made = f"{self._prefix}_{len(self.steps)}_{name}"
        self.steps.append(Step(made, query, keep, restriction, over))
        return made

    def grouped_again(self, operator: Aggregate, groups: str, otherwise: exp.Query) -> str:
        """The step with the rows of some groups now, which a step lists. `otherwise`: the same, where it lists none."""
        begin = len(self.steps)
        among = Among(groups, tuple((name, name) for name in operator.groups)) if operator.groups else None
        made = self._aggregate(operator, self.rows(operator.input, Side.AFTER, among))
        self.steps[begin:] = [each._replace(only_if=groups) for each in self.steps[begin:]]
        self.steps[-1] = self.steps[-1]._replace(otherwise=otherwise)
        return made

    def rows_computed(self, operator: Operator, *, whole: bool) -> str | None:
        """The step with the rows of an operator that a refresh computes: all of them, or those that may be new."""
        return self.rows(operator, Side.AFTER) if whole else self.delta(operator, Side.AFTER)

    def observe(self, name: str, aggregates: Sequence[exp.Alias]) -> None:
        """Has aggregates be computed beside a step's rows. If several steps read these, they are kept."""
        readers = [table for each in self.steps for table in each.query.find_all(exp.Table) if table.name == name]
        self.steps = [
            each._replace(keep=each.keep or len(readers) > 1, observed=tuple(aggregates)) if each.name == name else each
            for each in self.steps
        ]

    # --- the rows of one state --------------------------------------------------------------------------------

    def _rows(self, operator: Operator, side: Side, among: Among | None) -> str:
        match operator:
            case Source():
                columns = [exp.column(name, quoted=True).as_(mine) for mine, name in operator.stored.items()]
                named = self._relations[operator.table].rows(side)
                if among is None:
                    return self.add("table", select_from(columns, named))
                stored = {mine: exp.column(name, table="l", quoted=True) for mine, name in operator.stored.items()}
                some = [value.copy().as_(mine) for mine, value in stored.items()]
                pairs = tuple((operator.stored[column], value) for column, value in among.on)
                restriction = Restriction(named, among.step, pairs)
                return self.add("table", _semi_join(some, named, among, stored), restriction=restriction)
            case Opaque():
                return self._filtered(self._opaque(operator, side), operator.columns, among)
            case Project():
                return self._projected_rows(operator, side, among)
            case Filter():
                return self._filter(operator, self.rows(operator.input, side, among))
            case Explode():
                inner, outer = _split(among, operator.input.columns)
                made = self._explode(operator, self.rows(operator.input, side, inner))
                return self._filtered(made, operator.columns, outer)
            case UnionAll():
                # The branches may have other types than the union: what passes there is compared again as the union's.
                parts = [self.rows(each, side, among) for each in operator.branches]
                return self._filtered(self._union(operator, parts), operator.columns, among)
            case Aggregate():
                inner, outer = _split(among, operator.groups)
                return self._filtered(
                    self._aggregate(operator, self.rows(operator.input, side, inner)), operator.columns, outer
                )
            case Window():
                inner, outer = _split(among, operator.partition)
                return self._filtered(
                    self._window(operator, self.rows(operator.input, side, inner)), operator.columns, outer
                )
            case Join():
                return self._joined_rows(operator, side, among)
        raise AssertionError(f"an operator {type(operator).__name__} without a rule")

    def _projected_rows(self, operator: Project, side: Side, among: Among | None) -> str:
        pushed: list[tuple[str, str]] = []
        for column, value in () if among is None else among.on:
            if (plain := operator.plain(column)) is not None:
                pushed.append((plain, value))
        if among is None or not pushed:
            made = self._project(operator, self.rows(operator.input, side))
            return self._filtered(made, operator.columns, among)
        made = self._project(operator, self.rows(operator.input, side, Among(among.step, tuple(pushed))))
        return self._filtered(made, operator.columns, among if len(pushed) < len(among.on) else None)

    def _joined_rows(self, operator: Join, side: Side, among: Among | None) -> str:
        left = right = None
        if among is not None and operator.kind is not JoinKind.FULL:
            left = _part(among, operator.left.columns)
            partners = dict(operator.equal)
            over = [(partners[column], value) for column, value in among.on if column in partners]
            right = Among(among.step, tuple(over)) if over else None
            if operator.kind is JoinKind.INNER:
                left, right = self._inner_restrictions(operator, among, left, right)
        made = self._join(operator, self.rows(operator.left, side, left), self.rows(operator.right, side, right))
        is_whole = among is not None and left is not None and len(left.on) == len(among.on)
        return made if is_whole else self._filtered(made, operator.columns, among)

    @staticmethod
    def _inner_restrictions(
        operator: Join, among: Among, left: Among | None, right: Among | None
    ) -> tuple[Among | None, Among | None]:
        """Of an inner join either side may be restricted, and each by what the other is."""
        if left is None:
            partners = {second: first for first, second in operator.equal}
            over = [(partners[column], value) for column, value in among.on if column in partners]
            left = Among(among.step, tuple(over)) if over else None
            return left, _part(among, operator.right.columns)
        return left, right

    def _filtered(self, step: str, columns: Sequence[str], among: Among | None) -> str:
        if among is None:
            return step
        own = {name: exp.column(name, table="l") for name in columns}
        return self.add("among", _semi_join([value.copy() for value in own.values()], step, among, own))

    # --- deltas -----------------------------------------------------------------------------------------------

    def _delta(self, operator: Operator, side: Side) -> str | None:
        match operator:
            case Source():
                if side is Side.BEFORE and operator.table in self._grown:
                    return None
                named = self._relations[operator.table].changed(side)
                columns = [exp.column(name, quoted=True).as_(mine) for mine, name in operator.stored.items()]
                return self.add("changed", select_from(columns, named))
            case Opaque():
                return self.rows(operator, side)
            case Project() | Filter() | Explode():
                step = self.delta(operator.input, side)
                return None if step is None else self._over_row(operator, step)
            case UnionAll():
                parts = [self.delta(each, side) for each in operator.branches]
                present = [(each, part) for each, part in zip(operator.branches, parts, strict=True) if part]
                if not present:
                    return None
                return self._union(operator, [part for _, part in present])
            case Aggregate():
                return self._aggregate(operator, self._touched_rows(operator.input, operator.groups, side))
            case Window():
                return self._window(operator, self._touched_rows(operator.input, operator.partition, side))
            case Join():
                return self._joined_delta(operator, side)
        raise AssertionError(f"an operator {type(operator).__name__} without a rule")

    def _over_row(self, operator: Project | Filter | Explode, step: str) -> str:
        match operator:
            case Project():
                return self._project(operator, step)
            case Filter():
                return self._filter(operator, step)
            case Explode():
                return self._explode(operator, step)

    def _touched_rows(self, input: Operator, columns: Sequence[str], side: Side) -> str:
        """The rows of an operator that share their values of some columns with rows that may have changed."""
        if not columns:
            return self.rows(input, side)
        step = self._values(input, columns)
        return self.rows(input, side, Among(step, tuple((name, name) for name in columns)))

    def _values(self, operator: Operator, columns: Sequence[str]) -> str:
        """The step with the values of some columns in all rows that may have changed, for an operator that has some."""
        key = ("values", operator, tuple(columns))
        if key not in self._made:
            self._made[key] = self.touched(operator, columns, [exp.column(name) for name in columns], keep=True)
        found = self._made[key]
        assert found is not None
        return found

    def _joined_delta(self, operator: Join, side: Side) -> str | None:
        left_key, right_key = operator.left.key, operator.right.key
        both = self.may_change(operator.left) and self.may_change(operator.right)
        if operator.kind is JoinKind.INNER and not (both and left_key is None and right_key is None):
            return self._inner_delta(operator, side)
        if operator.kind is JoinKind.FULL or (left_key is None and not operator.equal):
            return self._delta_by_value(operator, side)
        if left_key is None:
            return self._delta_by_row(operator, side)
        left = self._touched_left(operator, side)
        if left is None:
            return None
        if not self._reads_less(operator.right, [second for _, second in operator.equal]):
            return self._join(operator, left, self.rows(operator.right, side))
        key = ("partners", operator)
        if key not in self._made:
            columns = [exp.column(first) for first, _ in operator.equal]
            touched = [step for each in Side if (step := self._touched_left(operator, each)) is not None]
            lists = [select_from([each.copy() for each in columns], step) for step in touched]
            self._made[key] = self.add("partners", _distinct_of(lists), keep=True)
        step = self._made[key]
        assert step is not None
        partners = Among(step, tuple((second, first) for first, second in operator.equal))
        return self._join(operator, left, self.rows(operator.right, side, partners))

    def _inner_delta(self, operator: Join, side: Side) -> str | None:
        """Rows of one side that changed with all of the other, and the rest of the one with rows that changed there."""
        is_left = operator.left.key is not None or not self.may_change(operator.left)
        one, other = (operator.left, operator.right) if is_left else (operator.right, operator.left)
        both = self.may_change(one) and self.may_change(other)
        of_other = self._partners(operator, one, other, again=both)
        of_one = self._partners(operator, other, one, again=False)
        found = []
        if (changed := self.delta(one, side)) is not None:
            found.append((changed, self.rows(other, side, of_other)))
        if (changed := self.delta(other, side)) is not None:
            rest = self.rows(one, side, of_one)
            if (gone := self.delta(one, side)) is not None:
                rest = self.add("rest", _unlike(one, rest, gone))
            found.append((rest, changed))
        steps = [self._join(operator, *(pair if is_left else pair[::-1])) for pair in found]
        if len(steps) < 2:
            return steps[0] if steps else None
        return self.add("joined", union_of([select_from(operator.columns, each) for each in steps]))

    def _partners(self, operator: Join, changed: Operator, read: Operator, *, again: bool) -> Among | None:
        """What of one side of a join is read for the rows of the other that changed; None for all of it.

        What isn't less to read needs no list of values: the join itself leaves out what has no partner. `again`: the
        rows that changed are read for something else, too.
        """
        if not self.may_change(changed):
            return None
        own, others = (0, 1) if changed is operator.left else (1, 0)
        columns = [pair[others] for pair in operator.equal]
        is_restricted = self._reads_less(read, columns)
        if (is_restricted or again) and not _is_over_rows(changed):
            self._keep_delta(changed)
        if not is_restricted:
            return None
        values = self._values(changed, [pair[own] for pair in operator.equal])
        return Among(values, tuple((pair[others], pair[own]) for pair in operator.equal))

    def _reads_less(self, operator: Operator, columns: Sequence[str]) -> bool:
        """Whether less is read, or computed, of an operator if values of some of its columns are known."""
        match operator:
            case _ if not columns:
                return False
            case Source():
                stored = [operator.stored[each] for each in columns]
                return self.prunes(self._relations[operator.table].after, stored)
            case Filter():
                return self._reads_less(operator.input, columns)
            case Project():
                plain = [own for each in columns if (own := operator.plain(each)) is not None]
                return self._reads_less(operator.input, plain)
        return True

    def _keep_delta(self, operator: Operator) -> None:
        """Computes the delta of an operator once for all that read it."""
        for side in Side:
            key = ("delta", operator, side)
            step = self.delta(operator, side)
            if step is not None and ("kept", *key) not in self._made:
                self._made[key] = self.add("changed", select_from(operator.columns, step), keep=True)
                self._made["kept", *key] = step

    def _touched_left(self, operator: Join, side: Side) -> str | None:
        """The rows of a join's left side that changed, and the others that may have partners that changed."""
        key = ("left", operator, side)
        if key in self._made:
            return self._made[key]
        parts = []
        if (changed := self.delta(operator.left, side)) is not None:
            parts.append(select_from(operator.left.columns, changed))
        if self.may_change(operator.right):
            among = None
            if operator.equal:
                step = self._values(operator.right, [second for _, second in operator.equal])
                among = Among(step, operator.equal)
            # Both states have the rows that didn't change: those after, without the ones that are new.
            same = self.rows(operator.left, Side.AFTER, among)
            new = self.delta(operator.left, Side.AFTER)
            parts.append(_unlike(operator.left, same, new))
        self._made[key] = self.add("left", union_of(parts), keep=True) if parts else None
        return self._made[key]

    def _delta_by_row(self, operator: Join, side: Side) -> str | None:
        """The rows of the left that changed, joined, and all those with values of the join's columns that changed on
        the right. Nothing tells rows of the left apart: what is of both kinds is left out of the first."""
        partners = self._partners(operator, operator.left, operator.right, again=False)
        changed, found = self.delta(operator.left, side), None
        if not self.may_change(operator.right):
            return changed and self._join(operator, changed, self.rows(operator.right, side, partners))
        touched = self._values(operator.right, [second for _, second in operator.equal])
        among = Among(touched, operator.equal)
        if changed is not None:
            own = {name: exp.column(name, table="l") for name in operator.left.columns}
            columns = [value.copy() for value in own.values()]
            apart = self.add("apart", _semi_join(columns, changed, among, own, kind="ANTI"))
            found = self._join(operator, apart, self.rows(operator.right, side, partners))
        like = found if found is not None or side is Side.AFTER else self.delta(operator, Side.AFTER)
        begin, known = len(self.steps), dict(self._made)
        left = self.rows(operator.left, side, among)
        of_right = Among(touched, tuple((second, second) for _, second in operator.equal))
        joined = self._join(operator, left, self.rows(operator.right, side, of_right))
        if like is not None:  # mostly nothing has changed on the right, and these steps are nothing for others then
            none = select_from(operator.columns, like).where(exp.false())
            self.steps[begin:] = [each._replace(only_if=touched) for each in self.steps[begin:]]
            self.steps[-1] = self.steps[-1]._replace(otherwise=none)
            self._made = known
        if found is None:
            return joined
        return self.add("joined", union_of([select_from(operator.columns, each) for each in (found, joined)]))

    def _delta_by_value(self, operator: Join, side: Side) -> str:
        """All rows of a join with values of its columns that changed on either side; all rows, without such columns."""
        if not operator.equal:
            return self._join(operator, self.rows(operator.left, side), self.rows(operator.right, side))
        found = []
        for input, which in ((operator.left, 0), (operator.right, 1)):
            restrictions = []
            for changed, own in ((operator.left, 0), (operator.right, 1)):
                if self.may_change(changed):
                    step = self._values(changed, [pair[own] for pair in operator.equal])
                    restrictions.append(Among(step, tuple((pair[which], pair[own]) for pair in operator.equal)))
            found.append(self._rows_among_any(input, side, restrictions))
        return self._join(operator, found[0], found[1])

    def _rows_among_any(self, operator: Operator, side: Side, restrictions: Sequence[Among]) -> str:
        """The rows that at least one of two restrictions lets through.

        They aren't united into one: their columns may be of other types, which compare differently.
        """
        first, *others = restrictions
        step = self.rows(operator, side, first)
        for other in others:
            further = self.rows(operator, side, other)
            own = {name: exp.column(name, table="l") for name in operator.columns}
            rest = _semi_join([value.copy() for value in own.values()], further, first, own, kind="ANTI")
            step = self.add("either", union_of([select_from(operator.columns, step), rest]))
        return step

    # --- which values may have changed ------------------------------------------------------------------------

    def _where_touched(self, operator: Operator, names: Mapping[str, str]) -> Iterable[tuple[str, Mapping[str, str]]]:
        """Steps that have the values of some columns in all rows that may have changed.

        `names`: by the name that is asked for, the operator's column. Gives steps with the step's columns instead.
        """
        if not self.may_change(operator):
            return
        wanted = [*names.values()]
        if isinstance(operator, Aggregate) and {*wanted} <= {*operator.groups} and operator.groups:
            yield self._values(operator.input, operator.groups), names
        elif isinstance(operator, Window) and {*wanted} <= {*operator.partition} and operator.partition:
            yield self._values(operator.input, operator.partition), names
        elif isinstance(operator, Filter) and not (self.is_exact and _is_by_row(operator)):
            yield from self._where_touched(operator.input, names)
        elif isinstance(operator, Project) and all(operator.plain(each) is not None for each in wanted):
            yield from self._where_touched(
                operator.input, {name: operator.plain(each) or "" for name, each in names.items()}
            )
        elif isinstance(operator, UnionAll) and not operator.shares_key:
            for each in operator.branches:
                yield from self._where_touched(each, names)
        else:
            for side in Side:
                if (step := self.delta(operator, side)) is not None:
                    yield step, names

    # --- one operator over steps ------------------------------------------------------------------------------

    def _opaque(self, operator: Opaque, side: Side) -> str:
        relations = {table: self._relations[table].rows(side) for table in operator.tables}
        named = exp.Select(expressions=[exp.column(name) for name in operator.columns])
        for number, each in enumerate(relations.values()):
            named = named.from_(relation(each)) if number == 0 else named.join(relation(each), join_type="cross")
        made = self.add("whole", named)
        self.steps[-1] = self.steps[-1]._replace(whole=Whole(operator.plan, operator.columns, relations))
        return made

    def _project(self, operator: Project, step: str) -> str:
        columns = [_named(value, name) for name, value in operator.expressions.items()]
        return self.add("select", select_from(columns, step))

    def _filter(self, operator: Filter, step: str) -> str:
        return self.add("where", select_from(operator.columns, step).where(operator.condition.copy()))

    def _explode(self, operator: Explode, step: str) -> str:
        columns = [operator.position, *operator.made]
        view = exp.Lateral(
            this=exp.Posexplode(this=operator.generator.copy()),
            view=True,
            outer=operator.outer,
            alias=exp.TableAlias(
                this=exp.to_identifier("exploded"), columns=[exp.to_identifier(name) for name in columns]
            ),
        )
        query = select_from(operator.columns, step)
        query.append("laterals", view)
        return self.add("explode", query)

    def _union(self, operator: UnionAll, steps: Sequence[str]) -> str:
        return self.add("union", union_of([select_from(operator.columns, each) for each in steps]))

    def _aggregate(self, operator: Aggregate, step: str) -> str:
        if not operator.aggregates:
            return self.add("distinct", select_from(operator.groups, step).distinct(copy=False))
        columns = [_named(value, name) for name, value in operator.aggregates.items()]
        query = select_from([*operator.groups, *columns], step)
        return self.add("groups", grouped(query, operator.groups))

    def _window(self, operator: Window, step: str) -> str:
        columns = [_named(value, name) for name, value in operator.functions.items()]
        return self.add("window", select_from([*operator.input.columns, *columns], step))

    def _join(self, operator: Join, left: str, right: str) -> str:
        kinds: dict[JoinKind, dict[str, str]] = {
            JoinKind.INNER: {"kind": "INNER"},
            JoinKind.LEFT: {"side": "LEFT"},
            JoinKind.FULL: {"side": "FULL", "kind": "OUTER"},
            JoinKind.SEMI: {"kind": "SEMI"},
            JoinKind.ANTI: {"kind": "ANTI"},
        }
        condition = exp.true() if operator.condition is None else operator.condition.copy()
        query = joined(operator.columns, left, right, operator.right.columns, condition, **kinds[operator.kind])
        return self.add("join", query)


def relation(name: str, alias: str | None = None) -> exp.Table:
    """A relation in FROM."""
    named = None if alias is None else exp.TableAlias(this=exp.to_identifier(alias))
    return exp.Table(this=exp.to_identifier(name), alias=named)


def select_from(columns: Iterable[exp.Expr | str], source: str | exp.Expr) -> exp.Select:
    """A SELECT of columns, or of the columns of some names, from a relation."""
    selected = [exp.column(each) if isinstance(each, str) else each for each in columns]
    table = relation(source) if isinstance(source, str) else source
    return exp.Select(expressions=selected, from_=exp.From(this=table))


def joined(
    columns: Iterable[exp.Expr | str], left: str, right: str, used: Iterable[str], on: exp.Expr, **kind: str
) -> exp.Select:
    """A SELECT of columns from the rows of one relation, `l`, joined with those of another, `r`.

    `used`: the columns of `r` that are read. `kind`: as of sqlglot's joins.
    """
    join = exp.Join(this=renamed(right, "r", used), on=on, **kind)
    return select_from(columns, relation(left, "l")).join(join, copy=False)


def renamed(name: str, alias: str, columns: Iterable[str]) -> exp.Subquery:
    """Columns of a relation as the right side of a join, by their names, under ids of their own in Spark.

    Where both sides come from one step, Spark 3.5 doesn't always tell their columns apart.
    """
    own = [exp.alias_(exp.column(each, quoted=True), each, quoted=True) for each in columns]
    return exp.Subquery(this=select_from(own, name), alias=exp.TableAlias(this=exp.to_identifier(alias)))


def grouped(query: exp.Select, columns: Sequence[str]) -> exp.Select:
    """A query of aggregates by the columns of some names; of all rows together for none."""
    return query.group_by(*map(exp.column, columns)) if columns else query


def as_text(column: str) -> exp.Expr:
    """A column as text, under its own name."""
    return exp.alias_(exp.cast(exp.column(column, quoted=True), "string"), column, quoted=True)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    if isinstance(value, exp.Column) and value.name == name:
        return value.copy()
    return exp.alias_(value.copy(), name)


def _renamed(value: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression with other names for its columns, under its own name."""
    if isinstance(value, exp.Column):
        return _named(names[value.name], value.name)

    def replace(node: exp.Expr) -> exp.Expr:
        return names[node.name].copy() if isinstance(node, exp.Column) else node

    return value.copy().transform(replace)


def _semi_join(
    columns: Sequence[exp.Expr],
    step: str,
    among: Among,
    own: Mapping[str, exp.Expr],
    *,
    kind: str = "SEMI",
) -> exp.Select:
    """Rows whose columns have values that a step lists, where NULL is a value like others."""
    conditions = [
        exp.NullSafeEQ(this=own[column].copy(), expression=exp.column(value, table="r")) for column, value in among.on
    ]
    values = dict.fromkeys(value for _, value in among.on)
    return joined(columns, step, among.step, values, exp.and_(*conditions), kind=kind)


def _is_by_row(operator: Operator) -> bool:
    """Whether only its rows say what an operator touches, and not groups, which are known without them."""
    match operator:
        case Filter(input=input) | Project(input=input):
            return _is_by_row(input)
        case UnionAll(branches=branches):
            return all(map(_is_by_row, branches))
        case Aggregate(groups=groups):
            return not groups
        case Window(partition=partition):
            return not partition
    return True


def _is_over_rows(operator: Operator) -> bool:
    """Whether an operator looks at each row of its tables by itself."""
    return not any(isinstance(each, Join | Aggregate | Window | Opaque) for each in walk(operator))


def _unlike(operator: Operator, step: str, others: str | None) -> exp.Select:
    """The rows of an operator whose key is not among those of other rows of it."""
    if others is None:
        return select_from(operator.columns, step)
    own = {name: exp.column(name, table="l") for name in operator.columns}
    columns = [value.copy() for value in own.values()]
    if not operator.key:  # one row at most, which is another now
        return select_from(columns, relation(step, "l")).where(exp.false())
    return _semi_join(columns, step, Among(others, tuple((name, name) for name in operator.key)), own, kind="ANTI")


def union_of(parts: Sequence[exp.Query]) -> exp.Query:
    """The rows of several queries, as they are."""
    first, *others = parts
    for each in others:
        first = exp.union(first, each, distinct=False, copy=False)
    return first


def _distinct_of(parts: Sequence[exp.Select]) -> exp.Query:
    """The distinct rows of several queries."""
    if len(parts) == 1:
        return parts[0].distinct(copy=False)
    first: exp.Query = parts[0]
    for each in parts[1:]:
        first = exp.union(first, each, distinct=True, copy=False)
    return first


def _part(among: Among, columns: Collection[str]) -> Among | None:
    """The part of a restriction that is about some columns."""
    some = tuple(pair for pair in among.on if pair[0] in columns)
    return Among(among.step, some) if some else None


def _split(among: Among | None, columns: Collection[str]) -> tuple[Among | None, Among | None]:
    """What of a restriction an operator's input can be asked for, and what is left for its result."""
    if among is None:
        return None, None
    inner = _part(among, columns)
    return inner, None if inner is not None and len(inner.on) == len(among.on) else among

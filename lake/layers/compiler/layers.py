"""A layer: a query whose result is kept in a keyed table, and the steps that bring the table to the query's answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lake.layers.compiler.algebra import Aggregate, Join, JoinKind, Opaque, Operator, Window, tables_of, walk
from lake.layers.compiler.building import Built, numbered
from lake.layers.compiler.deltas import Deltas, Relations, Restriction, Side, joined, select_from
from lake.layers.compiler.differences import Shape, differences, same_key
from lake.layers.compiler.merging import Mergeable, changed_groups, mergeable_in, merged_rows
from lake.layers.compiler.typed import as_json, has_map
from lake.layers.errors import BadQuery
from lake.protocol.formats.keyed_table import KEY_TYPES
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType

ROW_KEY = "_row_key"
"""A column of tables whose rows are known by something that their visible columns can't say: a text of it."""


@dataclass(frozen=True)
class Layer:
    """What a layer's table has.

    `outputs`: by the table's column, the operator's. `key`: the columns of the table's primary key, with those of its
    partitions if they belong to it. `row_key`: the text that tells rows apart, over the operator's columns, if the
    table has `ROW_KEY`. `known_by`: the columns that tell rows apart for queries, which may have NULLs. `texts`: the
    columns that can only be compared as texts. `mergeable`: the aggregate that it is, if its groups can be merged.
    """

    name: str
    operator: Operator
    outputs: Mapping[str, str]
    key: tuple[str, ...]
    row_key: exp.Expr | None
    known_by: tuple[str, ...]
    texts: frozenset[str] = frozenset()
    mergeable: Mergeable | None = None

    @property
    def columns(self) -> list[str]:
        """The table's columns."""
        return [*self.outputs, *([ROW_KEY] if self.row_key is not None else [])]

    @property
    def sources(self) -> set[str]:
        """The tables that the query reads."""
        return tables_of(self.operator)

    @property
    def non_null(self) -> frozenset[str]:
        """The table's columns without NULLs."""
        known = {name for name, column in self.outputs.items() if column in self.operator.non_null}
        return frozenset(known | {*self.key})

    def key_expressions(self) -> list[exp.Expr]:
        """The key's columns over the operator's columns."""
        return [self._expression(name) for name in self.key]

    def expressions(self) -> list[exp.Expr]:
        """The table's columns over the operator's columns."""
        return [self._expression(name) for name in self.columns]

    def _expression(self, name: str) -> exp.Expr:
        if name == ROW_KEY and self.row_key is not None:
            return exp.alias_(self.row_key.copy(), ROW_KEY)
        return exp.alias_(exp.column(self.outputs[name]), name, quoted=True)


def keyed(built: Built, types: dict[str, str]) -> Built:
    """A query whose rows are told apart by a key, if need be by numbering those that are equal.

    `types`: of the operator's columns; that of the numbers is added.
    """
    return built if built.operator.key is not None else numbered(built, types)


def layer_of(
    name: str,
    built: Built,
    types: Mapping[str, str],
    partitions: Sequence[str] = (),
    declared: Sequence[str] = (),
    stored: tuple[str, ...] = (),
) -> Layer:
    """The layer of a query.

    `types`: Spark's names of the types of the operator's columns. `partitions`: the columns that partition the table.
    `declared`: the primary key that the definition gives, if it does. `stored`: that of the table, if it is there. It
    stays where it tells rows apart as well. Raises BadQuery if these can't be.
    """
    outputs = _checked_outputs(built)
    if unknown := [each for each in (*partitions, *declared) if each not in outputs]:
        raise BadQuery(f"the query has no column {unknown[0]}, by which the table is keyed or partitioned")
    operator_key = built.operator.key or ()
    visible = {column: output for output, column in outputs.items()}
    named = tuple(visible[each] for each in operator_key if each in visible)
    is_plain = len(named) == len(operator_key) and bool(named)
    if declared:
        is_key = {*declared} - {*partitions} == {*named} - {*partitions}
        if not is_plain or not (is_key or ({*declared} == {*stored} and {*named} <= {*stored})):
            apart = ", ".join(each.rpartition("_")[0] for each in operator_key) or "nothing: there is one row"
            raise BadQuery(f"primary-key is {', '.join(declared)}, and what tells the rows apart is {apart}")
        key = stored if {*stored} == {*declared} else tuple(declared)
        row_key = None
    else:
        further = {*stored} - {*named}
        stays = (
            is_plain and {*named} <= {*stored} and all(outputs.get(each) in built.operator.non_null for each in further)
        )
        fits = all(each in built.operator.non_null and _is_key_type(types[each]) for each in operator_key)
        wanted = {*partitions}
        within = wanted <= {*named} or not wanted & {*named}
        is_found = is_plain and fits and within and bool({*named} - wanted) and stored[:1] != (ROW_KEY,)
        row_key = None if stays or is_found else _row_key(operator_key, types)
        rest = tuple(each for each in partitions if wanted <= {*named} and is_plain)
        key = named if row_key is None else (ROW_KEY, *rest)
        if stays or (row_key is not None and stored[:1] == (ROW_KEY,) and {*stored[1:]} <= wanted):
            key = stored
    texts = frozenset(output for output, column in outputs.items() if has_map(types.get(column, "")))
    known_by = named if is_plain and (declared or row_key is not None) else key
    merging = mergeable_in(built.operator, [*outputs.values()], operator_key, types)
    return Layer(name, built.operator, outputs, key, row_key, known_by, texts, merging)


def _checked_outputs(built: Built) -> dict[str, str]:
    outputs: dict[str, str] = {}
    for number, (output, column) in enumerate(built.outputs, 1):
        if output.startswith(("_col_", "_metastore_", ROW_KEY)) or not output.replace("_", "a").isalnum():
            shown = "" if output.startswith("_col_") else f", {output[:50]},"
            raise BadQuery(
                f"column {number}{shown} needs a name of letters, digits and underscores: give it one with AS"
            )
        if output in outputs:
            raise BadQuery(f"the query has two columns {output}: give one of them another name with AS")
        outputs[output] = column
    return outputs


def refresh(layer: Layer, deltas: Deltas, stored: str, *, merge: bool) -> str | None:
    """The step with the changes of a layer's table, from those of its sources; None if none can have changed.

    `stored` is the relation of the table's rows. The changes are its columns and `_change_type`. They are net: no row
    of them is as it was. `merge`: the rows are the query's answer before, so that its groups can be merged.
    """
    if merge and layer.mergeable is not None:
        return _merged(layer, layer.mergeable, deltas, stored)
    operator = layer.operator
    names = sorted(_columns_in(layer.key_expressions()))
    listed = deltas.prunes(stored, layer.key)
    keys = deltas.touched(operator, names, layer.key_expressions(), keep=listed)
    rows = deltas.delta(operator, Side.AFTER)
    if keys is None or rows is None:
        return None
    new = deltas.add("new", select_from(layer.expressions(), rows))
    return differences_of(layer, deltas, _stored(layer, deltas, stored, keys, listed=listed), new)


def _merged(layer: Layer, mergeable: Mergeable, deltas: Deltas, stored: str) -> str | None:
    """The same, by merging what came and went with the stored rows of the groups."""
    changed = changed_groups(deltas, mergeable)
    if changed is None:
        return None
    of_key = {name: exp.column(mergeable.columns[name]) for name in sorted(_columns_in(layer.key_expressions()))}
    named = changed.step
    if of_key:
        named = deltas.add("named", select_from([exp.alias_(own, name) for name, own in of_key.items()], named))
    listed = deltas.prunes(stored, layer.key)
    keys = deltas.add("touched", select_from(layer.key_expressions(), named).distinct(copy=False), keep=listed)
    old = _stored(layer, deltas, stored, keys, listed=listed)
    own = [exp.alias_(exp.column(name, quoted=True), mergeable.columns[each]) for name, each in layer.outputs.items()]
    rows = merged_rows(deltas, mergeable, changed, deltas.add("groups_stored", select_from(own, old)))
    renamed = [exp.alias_(exp.column(own), name) for name, own in mergeable.columns.items()]
    new = deltas.add("new", select_from(layer.expressions(), deltas.add("named", select_from(renamed, rows))))
    return differences_of(layer, deltas, old, new)


def _stored(layer: Layer, deltas: Deltas, stored: str, keys: str, *, listed: bool) -> str:
    """The step with the rows of a layer's table that have the keys of another step. `listed`: less is read by these."""
    own = [exp.column(name, table="l", quoted=True) for name in layer.columns]
    query = joined(own, stored, keys, layer.key, same_key(layer.key), kind="SEMI")
    pairs = tuple((name, name) for name in layer.key)
    same = Restriction(stored, keys, pairs) if listed else None
    return deltas.add("stored", query, restriction=same)


def recomputed(layer: Layer, deltas: Deltas, stored: str) -> str:
    """The step with the changes of a layer's table, from the whole answer of its query now."""
    new = deltas.add("new", select_from(layer.expressions(), deltas.rows(layer.operator, Side.AFTER)))
    return differences_of(layer, deltas, stored, new)


def all_rows(layer: Layer, deltas: Deltas) -> tuple[str, str]:
    """The steps with the whole answer of a layer's query, and with the same as changes of an empty table."""
    rows = select_from(layer.expressions(), deltas.rows(layer.operator, Side.AFTER))
    new = deltas.add("new", rows, keep=True)
    return new, as_inserted(layer, deltas, new)


def as_inserted(layer: Layer, deltas: Deltas, rows: str) -> str:
    """The step with rows of a layer as changes of an empty table."""
    columns = [exp.column(name, quoted=True) for name in layer.columns]
    kind = exp.alias_(exp.Literal.string(str(ChangeType.INSERT)), CHANGE_TYPE)
    return deltas.add("changes", select_from([*columns, kind], rows))


def relations_after(layer: Layer, deltas: Deltas, stored: str, changes: str | None) -> Relations:
    """The relations of a layer's table for the layers above it: its rows before and after, and those that changed."""
    if changes is None:
        return Relations(stored, stored, stored, stored)
    columns = [exp.column(name, quoted=True) for name in layer.columns]

    def of(*kinds: ChangeType) -> exp.Select:
        return select_from(columns, changes).where(exp.column(CHANGE_TYPE).isin(*(str(each) for each in kinds)))

    old = deltas.add("old", of(ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE))
    new = deltas.add("new", of(ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE))
    own = [exp.column(name, table="l", quoted=True) for name in layer.columns]
    kept = joined(own, stored, changes, layer.key, same_key(layer.key), kind="ANTI")
    after = deltas.add("after", exp.union(kept, select_from(columns, new), distinct=False), over=stored)
    return Relations(stored, after, old, new)


def differences_of(layer: Layer, deltas: Deltas, old: str, new: str) -> str:
    """The step with the changes that make a layer's rows of the relation `old` those of `new`."""
    return differences(deltas, Shape(tuple(layer.columns), layer.key, layer.texts), old, new)


def _is_key_type(kind: str) -> bool:
    return kind.lower() in KEY_TYPES


def _row_key(columns: Sequence[str], types: Mapping[str, str]) -> exp.Expr:
    """A text that is the same for the same values only: each with its length before it, or a hyphen for NULL.

    It has no hyphens at its end, so that it is the same when further columns come that are NULL: those of a branch that
    a union gets. The lengths say which of them belonged to a value.
    """
    if not columns:
        return exp.Literal.string("one row")
    parts: list[exp.Expr] = []
    for column in columns:
        text = _text(column, types[column].lower())
        length = exp.cast(exp.Length(this=text.copy()), "string")
        known = exp.Concat(expressions=[length, exp.Literal.string(":"), text], coalesce=False)
        is_null = exp.Is(this=exp.column(column), expression=exp.Null())
        parts.append(exp.Case().when(is_null, exp.Literal.string("-")).else_(known))
    if len(parts) == 1:
        return parts[0]
    rest = parts[1] if len(parts) == 2 else exp.Concat(expressions=parts[1:], coalesce=False)
    trimmed = exp.Trim(this=rest, expression=exp.Literal.string("-"), position="TRAILING")
    return exp.Concat(expressions=[parts[0], trimmed], coalesce=False)


def _text(column: str, kind: str) -> exp.Expr:
    """A text of a column that tells its values apart."""
    value = exp.column(column)
    if kind == "binary":
        return exp.Hex(this=value)
    if kind == "timestamp":
        return exp.cast(exp.UnixMicros(this=value), "string")
    if kind.startswith(("array<", "struct<", "map<")):
        return as_json(value)
    text = exp.cast(value, "string")
    if kind in ("double", "float"):  # 0.0 and -0.0 are equal, and have two texts
        return exp.Case().when(exp.column(column).eq(0), exp.Literal.string("0")).else_(text)
    return text


def _columns_in(expressions: Sequence[exp.Expr]) -> set[str]:
    return {each.name for value in expressions for each in value.find_all(exp.Column)}


def how(operator: Operator, mergeable: Mergeable | None = None) -> tuple[str, list[str]]:
    """How increments of a query are computed, `incremental`, `by group` or `full`, and the reasons, those for the
    whole first. `mergeable`: the aggregate that it is, if its groups are merged."""
    whole, reasons, kind = list[str](), list[str](), "incremental"
    for each in walk(operator):
        named = ""
        match each:
            case Opaque(reason=reason):
                named = reason
            case Aggregate(groups=()) if mergeable is None or each is not mergeable.aggregate:
                named = "an aggregate over all rows has one group"
            case Window(partition=()):
                named = "a window without PARTITION BY is over all rows"
            case Join(equal=()):
                named = "a join without equal columns compares each row with each"
        if named:
            kind = "full"
            whole.append(named)
        elif isinstance(each, Aggregate | Window) or (isinstance(each, Join) and each.kind is JoinKind.FULL):
            kind = kind if kind == "full" else "by group"
            merges = mergeable is not None and each is mergeable.aggregate
            reasons.append(_group_reason(each, merges=merges))
    return kind, list(dict.fromkeys([*whole, *reasons]))


def _group_reason(operator: Operator, *, merges: bool) -> str:
    def plain(names: Sequence[str]) -> str:
        return ", ".join(each.rpartition("_")[0] for each in names)

    match operator:
        case Aggregate(aggregates=aggregates, groups=groups):
            of = f"{'groups of' if aggregates else 'distinct values of'} {plain(groups)}" if groups else "one group"
            return f"{of} that changes touch{', merged with their rows' if merges else ''}"
        case Window(partition=partition):
            return f"partitions of {plain(partition)} that changes touch"
        case Join(equal=equal):
            return f"rows of a full join with values of {plain([first for first, _ in equal])} that changes touch"
    raise AssertionError(f"{type(operator).__name__} has no groups")

"""Refuses what gives another result when it is computed again: a layer is its query's answer, whenever computed."""

from sqlglot import exp

from lake.layers.errors import BadQuery

_CHANGING = frozenset(
    [
        "current_timestamp",
        "current_date",
        "current_time",
        "current_user",
        "current_database",
        "current_schema",
        "current_catalog",
        "localtimestamp",
        "localtime",
        "now",
        "curdate",
        "user",
        "session_user",
        "version",
        "rand",
        "random",
        "randn",
        "randstr",
        "uniform",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "reflect",
        "java_method",
        "try_reflect",
    ]
)
"""Functions whose value depends on when or where they are computed."""

_CHANGING_WITHOUT_ARGUMENTS = frozenset(["unix_timestamp"])
"""Functions that are about the current time unless they have arguments."""

_SPECIAL_TIMES = frozenset(["now", "today", "tomorrow", "yesterday"])
"""Texts that Spark takes for times, and for other ones each day."""

_OF_ANY_ROW = frozenset(["first", "first_value", "last", "last_value", "any_value", "mode", "max_by", "min_by"])
"""Aggregates that take a value of any row among several that tie."""

_IN_ANY_ORDER = frozenset(
    ["collect_list", "collect_set", "array_agg", "array_unique_agg", "string_agg", "group_concat", "listagg"]
)
"""Aggregates that bring values together in the order in which rows are read."""

_ORDER_DOES_NOT_MATTER = frozenset(["sort_array", "array_sort", "size", "cardinality", "array_size"])
"""Functions of arrays whose value is the same for any order."""

_OF_ORDERED_ROWS = frozenset(
    [
        "row_number",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
        "first",
        "last",
        "any_value",
        "collect_list",
        "array_agg",
        "array_unique_agg",
        "collect_set",
    ]
)
"""Window functions whose value depends on the order of rows that tie."""


def names_of(function: exp.Expr) -> set[str]:
    """The names of a function in lower case; none for what isn't a function."""
    if isinstance(function, exp.Anonymous | exp.AnonymousAggFunc):
        return {function.name.lower()}
    return {each.lower() for each in type(function).sql_names()} if isinstance(function, exp.Func) else set()


def check(query: exp.Expr) -> None:
    """Raises BadQuery for functions whose value depends on when, or in which order of rows, they are computed."""
    for each in query.find_all(exp.Func):
        names = names_of(each)
        changing = names & _CHANGING
        if isinstance(each, exp.Anonymous) and not each.expressions:
            changing |= names & _CHANGING_WITHOUT_ARGUMENTS
        if changing:
            raise BadQuery(
                f"{min(changing)}() has another value at each refresh: store the time, or the value, in a source"
            )
        if isinstance(_around(each), exp.Window):
            continue  # checked with its window, whose order may be total
        if of_any := names & _OF_ANY_ROW:
            raise BadQuery(
                f"{min(of_any)}() takes any row of those that tie: use min or max, or row_number() with a total order"
            )
        if (unordered := names & _IN_ANY_ORDER) and not _is_ordered(each):
            raise BadQuery(f"{min(unordered)}() has its values in any order: sort them with sort_array around it")
    for each in query.find_all(exp.Cast):
        text = each.this.name.strip().lower() if isinstance(each.this, exp.Literal) else ""
        if text in _SPECIAL_TIMES and each.to.this in exp.DataType.TEMPORAL_TYPES:
            raise BadQuery(f"'{text}' as a time has another value at each refresh: store the time in a source")
    if query.find(exp.TableSample):
        raise BadQuery("TABLESAMPLE takes other rows each time: filter by a hash of the key")


def needs_total_order(window: exp.Window) -> bool:
    """Whether a window function's value depends on the order of rows that tie in its ORDER BY."""
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    if names_of(function) & _OF_ORDERED_ROWS:
        return True
    spec = window.args.get("spec")
    return spec is not None and (spec.args.get("kind") or "").upper() == "ROWS"


def _around(function: exp.Expr) -> exp.Expr | None:
    """What a function is in, without FILTER and IGNORE NULLS."""
    parent = function.parent
    while isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        parent = parent.parent
    return parent


def _is_ordered(function: exp.Expr) -> bool:
    """Whether the order of an aggregate's values doesn't matter: they are sorted, or counted, or have an order."""
    parent = _around(function)
    while isinstance(parent, exp.Distinct | exp.Cast):
        parent = parent.parent
    if isinstance(parent, exp.WithinGroup):
        return True
    return parent is not None and bool(names_of(parent) & _ORDER_DOES_NOT_MATTER)

"""The filters of get_table_names_by_filter: on a table's name, type, owner, last access time and parameters.

The operand of LIKE is a regular expression. `patterns` converts it as Hive does for its database. The prefix `(?i)`
makes it case-insensitive.
Hive 4's client lists tables by such a filter on their names.
"""

from lake.protocol.hive import InvalidOperationException, MetaException
from metastore.services.filters import grammar
from metastore.services.filters.grammar import MAX_LIKES, AllOf, AnyOf, Condition, Expression, Negation, leaves
from metastore.services.model.patterns import check_like, regex_to_like
from metastore.store.table import table_conditions

NAME = "hive_filter_field_tablename__"
TYPE = "hive_filter_field_tabletype__"
OWNER = "hive_filter_field_owner__"
LAST_ACCESS = "hive_filter_field_last_access__"
PARAMETER = "hive_filter_field_params__"
IGNORE_CASE = "(?i)"

MAX_CONDITIONS = 1_000
"""The most conditions in a filter."""


def parse(text: str | None) -> table_conditions.Condition | None:
    """The condition that a filter states; None if it is empty.

    Raises InvalidOperationException if `text` is None. Raises MetaException if it can't be parsed, has more than
    MAX_CONDITIONS conditions, or has patterns that are too costly.
    """
    if text is None:
        raise InvalidOperationException("cannot apply null filter")
    expression = grammar.parse(text)
    if expression is None:
        return None
    conditions = list(leaves(expression))
    if len(conditions) > MAX_CONDITIONS:
        raise MetaException(f"{len(conditions)} conditions are more than {MAX_CONDITIONS}: list fewer names at a time")
    if (likes := sum(each.operator == "LIKE" for each in conditions)) > MAX_LIKES:
        raise MetaException(f"{likes} times LIKE are more than {MAX_LIKES}: use wider patterns")
    return _condition(expression)


def _condition(node: Expression) -> table_conditions.Condition:
    match node:
        case AllOf(parts):
            return table_conditions.all_of([_condition(part) for part in parts])
        case AnyOf(parts):
            return table_conditions.any_of([_condition(part) for part in parts])
        case Negation(part):
            return table_conditions.opposite(_condition(part))
        case Condition(key, operator, value):
            return _leaf(key, operator, value)


def _leaf(key: str, operator: str, value: object) -> table_conditions.Condition:
    name = key.lower()
    if name == LAST_ACCESS:
        if operator == "LIKE":
            raise MetaException("Like is not supported for HIVE_FILTER_FIELD_LAST_ACCESS")
        if not isinstance(value, int):
            raise MetaException(f"the last access time is a number of seconds, not {value!r}")
        return table_conditions.last_access(operator, value)
    if name.startswith(PARAMETER) and operator not in ("=", "<>", "LIKE"):
        raise MetaException("Only [=, !=, <>, LIKE] are supported operators for HIVE_FILTER_FIELD_PARAMS")
    text = str(value)
    if operator == "LIKE":
        operator = "ILIKE" if text.startswith(IGNORE_CASE) else "LIKE"
        text = regex_to_like(text.removeprefix(IGNORE_CASE))
        check_like(text)
    if name == NAME:
        return table_conditions.name(operator, text)
    if name == TYPE:
        return table_conditions.kind(operator, text)
    if name == OWNER:
        return table_conditions.owner(operator, text)
    if name.startswith(PARAMETER):
        return table_conditions.parameter(key[len(PARAMETER) :], operator, text)
    raise MetaException("Invalid key name in filter.  Use constants from org.apache.hadoop.hive.metastore.api")

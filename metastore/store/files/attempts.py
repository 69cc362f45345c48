"""What failed is tried again, after pauses that grow: when."""

from sqlalchemy import ColumnElement, func, literal_column, or_
from sqlalchemy.sql.sqltypes import DateTime

_DAY = 86_400


def next_attempt(attempts: ColumnElement[int]) -> ColumnElement[DateTime]:
    """When to try again after so many attempts and one more: at once, then in 10, 30, 70, ... s, up to a day."""
    seconds = func.least(10 * (func.power(2, func.least(attempts, 20)) - 1), _DAY)
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def is_due(next_attempt_at: ColumnElement[DateTime]) -> ColumnElement[bool]:
    """Whether the time has come; also if it lies so far ahead that the clock must have been put back since."""
    now = func.clock_timestamp()
    return or_(next_attempt_at <= now, next_attempt_at > now + literal_column("interval '1 day'"))

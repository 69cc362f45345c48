"""The parts into which the events of a group are divided: those of one table are in one of them.

What is about a database, but none of its tables, goes by the database's name, and what is about a catalog by the
catalog's. Postgres and Python reckon alike.
"""

import hashlib
from collections.abc import Mapping

from sqlalchemy import ColumnElement, Integer, and_, func, or_, type_coerce

from eventbus.schema import events

SHARDS = 16


def shard_of(catalog: str | None, database: str | None, table: str | None) -> int:
    """In which shard the events about these names are."""
    return hashlib.sha256(f"{catalog or ''}.{database or ''}.{table or ''}".encode()).digest()[0] % SHARDS


def after(positions: Mapping[int, int]) -> ColumnElement[bool]:
    """Of some shards the events after a number, for each its own."""
    if len(positions) == SHARDS and len(set(positions.values())) == 1:
        return events.c.number > next(iter(positions.values()))  # as for somebody who reads everything
    by_number: dict[int, list[int]] = {}
    for shard, number in positions.items():
        by_number.setdefault(number, []).append(shard)
    return or_(*(and_(events.c.number > number, _SHARD.in_(some)) for number, some in by_number.items()))


def _name(column: ColumnElement[str | None]) -> ColumnElement[str]:
    return func.coalesce(column, "")


_SHARD = (
    type_coerce(
        func.get_byte(
            func.sha256(
                func.convert_to(
                    _name(events.c.catalog) + "." + _name(events.c.database_name) + "." + _name(events.c.table_name),
                    "UTF8",
                )
            ),
            0,
        ),
        Integer,
    )
    % SHARDS
)

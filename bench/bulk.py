"""Fills our server's database with more than clients could in reasonable time: one row is copied in the database.

Copied tables and partitions have no directories. What the server has in its caches does not see them: fill before
reading.
"""

from collections.abc import Mapping

from sqlalchemy import URL

from bench.postgres import tidy, transaction
from bench.shapes import DATABASE, HOURS

_FIRST_DAY = "2024-01-01"
_DAY = f"(DATE '{_FIRST_DAY}' + (n / {HOURS})::int)::text"
_HOUR = f"lpad((n % {HOURS})::text, 2, '0')"
_NAME = f"'dt=' || {_DAY} || '/hr=' || {_HOUR}"
_HOUR_FOLLOWS = r"'\x00000002'::bytea"  # as a string of two bytes
# The values are in the encoded part, too, where those of all partitions are equally long.
_VALUES = f"convert_to({_DAY}, 'UTF8') || {_HOUR_FOLLOWS} || convert_to({_HOUR}, 'UTF8')"
_BODY = f"overlay(body PLACING {_VALUES} FROM position('{_FIRST_DAY}'::bytea IN body))"
_PARTITION = {"name": _NAME, "values": f"ARRAY[{_DAY}, {_HOUR}]", "path": _NAME, "body": _BODY}


def partitions(url: URL, table: str, count: int) -> None:
    """Makes the one partition of a table the first of so many, by day and hour as those of a `Shape`."""
    where = (
        "table_id = (SELECT t.id FROM tables t JOIN databases d ON d.id = t.database_id"
        f" WHERE d.name = '{DATABASE}' AND t.name = '{table}')"
    )
    _copy(url, "partitions", where, _PARTITION, count)


def tables(url: URL, database: str, count: int) -> None:
    """Makes the one table `t000000` of a database the first of so many."""
    where = f"name = 't000000' AND database_id = (SELECT id FROM databases WHERE name = '{database}')"
    name = "'t' || lpad(n::text, 6, '0')"
    location = f"regexp_replace(location, '[^/]*$', {name})"
    _copy(url, "tables", where, {"name": name, "location": location}, count)


def _copy(url: URL, table: str, where: str, changed: Mapping[str, str], count: int) -> None:
    """`changed` has SQL expressions of the row's number `n`, by column."""
    with transaction(url) as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name = %s AND column_name <> 'id'",
            [table],
        )
        columns = [name for (name,) in cursor.fetchall()]
        into = ", ".join(f'"{name}"' for name in columns)
        values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
        cursor.execute(
            f"INSERT INTO {table} ({into}) SELECT {values} FROM {table}, generate_series(1, {count - 1}) AS n"
            f" WHERE {where}"
        )
    tidy(url)

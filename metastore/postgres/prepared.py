"""Prepared statements: SQLAlchemy compiles them once, and Postgres plans them once per connection.

For a statement that finds a few rows, planning takes longer than executing it, and compiling takes as long again. Use
this for frequent statements for which one plan fits all values.
"""

import hashlib
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, NamedTuple, cast

from sqlalchemy import ARRAY, ClauseElement, ColumnElement, Connection, bindparam, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects import registry
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from metastore.postgres.joined_messages import JoiningConnection

_KNOWN = "prepared"  # where a connection keeps the names of what it has prepared
_NONE: Mapping[str, Any] = {}
_DIALECT = registry.load("postgresql.psycopg2")()


class _Numbers(dict[str, str]):
    """A statement's placeholders by name: `$1`, `$2`, … in the order of their first use."""

    def __missing__(self, name: str) -> str:
        number = self[name] = f"${len(self) + 1}"
        return number


class _Form(NamedTuple):
    """The texts that are sent to Postgres. `constants`: values that are part of the statement."""

    name: str
    prepare: str
    execute: str
    constants: Mapping[str, Any]


class Prepared:
    """A prepared SQLAlchemy statement, whose parameters are `bindparam`s. It can be executed in any transaction.

    Values are passed to psycopg2 unconverted: pass JSON as `psycopg2.extras.Json`; byte strings return as memoryview.
    Errors are psycopg2's own, not SQLAlchemy's.
    """

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        """`columns`: for INSERT or UPDATE, the names of the columns that get values."""
        self._statement = statement
        self._columns = columns
        self._make: Callable[[Any], Any] | None = None

    @cached_property
    def form(self) -> _Form:
        compiled = cast(SQLCompiler, self._statement.compile(dialect=_DIALECT, column_keys=self._columns))
        numbers = _Numbers()
        text = str(compiled) % numbers
        name = f"metastore_{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
        values = ", ".join(f"%({each})s" for each in numbers)
        return _Form(
            name,
            f"PREPARE {name} AS {text}",
            f"EXECUTE {name} ({values})" if values else f"EXECUTE {name}",
            {key: bound.value for key, bound in compiled.binds.items() if not bound.required},
        )

    def all(
        self, tx: Connection, values: Mapping[str, Any] = _NONE, *, after: "Sequence[Prepared | Call]" = ()
    ) -> list[Any]:
        """Executes the statement. Returns its rows as named tuples. `after`: as of `first`."""
        with _executed(tx, _calls([*after, self], values)) as cursor:
            if self._make is None:
                self._make = cast(Any, namedtuple("Row", [column.name for column in cursor.description]))._make
            return [*map(self._make, cursor.fetchall())]

    def first(
        self, tx: Connection, values: Mapping[str, Any] = _NONE, *, after: "Sequence[Prepared | Call]" = ()
    ) -> Any:
        """The first row, as a named tuple; None if there is none.

        `after`: statements that are executed before, in the same message, with the same values or their own. Their rows
        are discarded.
        """
        return next(iter(self.all(tx, values, after=after)), None)

    def scalars(self, tx: Connection, values: Mapping[str, Any] = _NONE) -> list[Any]:
        """The first column of each row."""
        with _executed(tx, [Call(self, values)]) as cursor:
            return [row[0] for row in cursor.fetchall()]

    def scalar(self, tx: Connection, values: Mapping[str, Any] = _NONE) -> Any:
        """The first column of the first row; None if there is none."""
        return next(iter(self.scalars(tx, values)), None)

    def execute(self, tx: Connection, values: Mapping[str, Any] = _NONE) -> int:
        """Executes the statement. Returns how many rows it found or changed."""
        with _executed(tx, [Call(self, values)]) as cursor:
            return int(cursor.rowcount)


class Call(NamedTuple):
    """A prepared statement with values of its own, to be executed together with others."""

    statement: Prepared
    values: Mapping[str, Any]


def few(name: str, type_: type[TypeEngine[Any]] | TypeEngine[Any]) -> ColumnElement[Any]:
    """An array parameter of a `Prepared` that mostly has few values, for a statement with one plan for any number.

    Postgres takes an array for ten values if it doesn't know it, so that the plan for any array seems to cost more than
    one for an array of one or two. It would then plan for each execution. Out of a subquery, it never knows the array.
    """
    array = ARRAY(type_)
    return sql_cast(
        select(bindparam(name, type_=array)).scalar_subquery(), array
    )  # ANY would look into a bare subquery


def execute_all(tx: Connection, statements: Sequence[Prepared | Call], values: Mapping[str, Any] = _NONE) -> None:
    """Executes statements in order, with the same values or their own, in one message. Discards their rows."""
    if statements:
        _executed(tx, _calls(statements, values)).close()


def put_off(tx: Connection, statements: Sequence[Prepared | Call], values: Mapping[str, Any] = _NONE) -> None:
    """As `execute_all`, but together with the next message, or with that of COMMIT; at once if psycopg2 sends that.

    Their errors are raised there, too. So it is for the last statements of a transaction, after which nothing is done
    that a rollback can't undo.
    """
    connection = tx.connection.driver_connection
    if not isinstance(connection, JoiningConnection):
        execute_all(tx, statements, values)
        return
    with closing(tx.connection.cursor()) as cursor:
        for call in _calls(statements, values):
            connection.put_off(_text(tx, cursor, call))


def _calls(statements: Sequence[Prepared | Call], values: Mapping[str, Any]) -> list[Call]:
    return [each if isinstance(each, Call) else Call(each, values) for each in statements]


def _executed(tx: Connection, calls: Sequence[Call]) -> Any:
    cursor = tx.connection.cursor()
    try:
        cursor.execute(b";\n".join([_text(tx, cursor, call) for call in calls]))
    except BaseException:
        cursor.close()
        raise
    return cursor


def _text(tx: Connection, cursor: Any, call: Call) -> bytes:
    """What executes a statement, which is prepared if the connection doesn't know it yet."""
    known = tx.info.setdefault(_KNOWN, set())
    statement, values = call
    form = statement.form
    if form.name not in known:
        cursor.execute(form.prepare)
        known.add(form.name)
    text: bytes = cursor.mogrify(form.execute, {**form.constants, **values} if form.constants else values)
    return text

"""Connections that send the begin and the end of a transaction together with its statements.

psycopg2 sends BEGIN and COMMIT as messages of their own, for each of which both processes are woken up. For a short
transaction that is most of its time. Here BEGIN goes with the first statement. Statements whose results nobody needs
can be put off: they go with the next one, or with COMMIT. If all of them have been put off, they are one message
without BEGIN and COMMIT: Postgres executes the statements of a message as one transaction. A call in an event loop
(`metastore.in_loop`) can have such a transaction, and the loop goes on with others meanwhile. All else needs a thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import psycopg2
import psycopg2.errors
import psycopg2.extensions as driver

from metastore import in_loop
from metastore.in_loop import LoopCall
from metastore.postgres import messages as postgres

_IDLE = driver.TRANSACTION_STATUS_IDLE
_BEGIN = b"BEGIN"
# The codes of statements that have taken too long, or waited too long for a lock: another attempt would take as long.
_FINAL = ("57014", "55P03")

Then = Callable[[tuple[Any, ...]], None]
"""Is called with the first row of a transaction's last statement, once that has committed."""


class JoiningCursor(driver.cursor):
    """A cursor whose statements take along what its connection has put off."""

    def execute(self, query: Any, values: Any = None) -> None:
        """As psycopg2's. What was put off is executed before it, and can be what fails."""
        in_loop.before_waiting()
        if waiting := self._waiting():
            query, values = b";\n".join([*waiting, self.mogrify(query, values)]), None
        super().execute(query, values)

    def executemany(self, query: Any, sequence: Any) -> None:
        in_loop.before_waiting()
        self._send()
        super().executemany(query, sequence)

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        in_loop.before_waiting()
        self._send()
        super().copy_expert(sql, file, size)

    def _send(self) -> None:
        if waiting := self._waiting():
            super().execute(b";\n".join(waiting))

    def _waiting(self) -> Sequence[bytes]:
        connection = self.connection
        return connection.take_waiting() if isinstance(connection, JoiningConnection) else ()


class JoiningConnection(driver.connection):
    """A connection that is psycopg2's as long as `autocommit` is off."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cursor_factory = JoiningCursor
        self._waiting: list[bytes] = []
        self._then: Then | None = None

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """As psycopg2's. Raises TypeError for a cursor that would forget to begin the transaction."""
        made = super().cursor(*args, **kwargs)
        if self._waiting and not isinstance(made, JoiningCursor):
            raise TypeError(f"a transaction begins with a {JoiningCursor.__name__}, not with a {type(made).__name__}")
        return made

    def begin(self) -> None:
        """The next statement begins a transaction. `autocommit` has to be on, and no transaction open."""
        self._waiting, self._then = [_BEGIN], None

    def put_off(self, statement: bytes) -> None:
        """Executes a statement together with the next one, or with `commit`, whose error it then is."""
        self._waiting.append(statement)

    def put_last(self, statement: bytes, then: Then, *, instead_of: bytes = b"") -> None:
        """Puts off the last statement of a transaction, which returns a row. `then` must not raise.

        `instead_of`: a statement that was put off, and needs no execution if it still waits.
        """
        self._waiting = [each for each in self._waiting if each is not instead_of]
        self._waiting.append(statement)
        self._then = then

    def take_waiting(self) -> Sequence[bytes]:
        """What has to be executed now, before anything else."""
        waiting = self._waiting
        if waiting:
            self._waiting = []
        return waiting

    def commit(self) -> None:
        """As psycopg2's; with `autocommit` it ends what `begin` began."""
        if not self.autocommit:
            return super().commit()
        waiting, then, row = self.take_waiting(), self._then, None
        if waiting and waiting[0] is _BEGIN:  # nothing was executed
            if len(waiting) > 1:
                row = self._execute_alone(waiting[1:])
        elif then is not None:
            row = self._execute(waiting)
            self._execute([b"COMMIT"])
        elif waiting or self.info.transaction_status != _IDLE:
            self._execute([*waiting, b"COMMIT"])
        if then is not None and row is not None:
            then(row)
        return None

    def rollback(self) -> None:
        """As psycopg2's; with `autocommit` it ends what `begin` began."""
        if not self.autocommit:
            return super().rollback()
        self._waiting, self._then = [], None
        if self.info.transaction_status == _IDLE:
            return None
        self._execute([b"ROLLBACK"])
        return None

    def _execute_alone(self, statements: Sequence[bytes]) -> tuple[Any, ...] | None:
        """As `_execute`, for all statements of a transaction."""
        call = in_loop.current()
        return self._execute(statements) if call is None else self._execute_within(call, statements)

    def _execute_within(self, call: LoopCall[Any], statements: Sequence[bytes]) -> tuple[Any, ...] | None:
        """Sends and reads without libpq, which would wait. Most errors are raised by the same call in a thread."""
        try:
            answer = call.exchange(self.fileno(), postgres.query(b";\n".join(statements)), postgres.answer)
        except (OSError, EOFError, ValueError) as error:
            self.close()  # libpq can't know that it is broken
            raise psycopg2.OperationalError("the connection to Postgres broke") from error
        if answer.error in _FINAL:
            raise psycopg2.errors.lookup(answer.error)("Postgres has cancelled the statement")
        if answer.error is not None:
            raise call.undone()
        return answer.row

    def _execute(self, statements: Sequence[bytes]) -> tuple[Any, ...] | None:
        """Executes statements in one message. Returns the first row of the last one, if it has rows."""
        in_loop.before_waiting()
        with super().cursor(cursor_factory=driver.cursor) as cursor:
            cursor.execute(b";\n".join(statements))
            return None if cursor.description is None else cursor.fetchone()

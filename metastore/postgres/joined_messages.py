"""Connections that send the begin and the end of a transaction together with its statements.

psycopg2 sends BEGIN and COMMIT as messages of their own, for each of which both processes are woken up. For a short
transaction that is most of its time. Here BEGIN goes with the first statement. Statements whose results nobody needs
can be put off: they go with the next one, or with COMMIT. If all of them have been put off, they are one message
without BEGIN and COMMIT: Postgres executes the statements of a message as one transaction.
"""

from collections.abc import Sequence
from typing import Any

import psycopg2.extensions as driver

_IDLE = driver.TRANSACTION_STATUS_IDLE
_BEGIN = b"BEGIN"


class JoiningCursor(driver.cursor):
    """A cursor whose statements take along what its connection has put off."""

    def execute(self, query: Any, values: Any = None) -> None:
        """As psycopg2's. What was put off is executed before it, and can be what fails."""
        if waiting := self._waiting():
            query, values = b";\n".join([*waiting, self.mogrify(query, values)]), None
        super().execute(query, values)

    def executemany(self, query: Any, sequence: Any) -> None:
        self._send()
        super().executemany(query, sequence)

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
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

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """As psycopg2's. Raises TypeError for a cursor that would forget to begin the transaction."""
        made = super().cursor(*args, **kwargs)
        if self._waiting and not isinstance(made, JoiningCursor):
            raise TypeError(f"a transaction begins with a {JoiningCursor.__name__}, not with a {type(made).__name__}")
        return made

    def begin(self) -> None:
        """The next statement begins a transaction. `autocommit` has to be on, and no transaction open."""
        self._waiting = [_BEGIN]

    def put_off(self, statement: bytes) -> None:
        """Executes a statement together with the next one, or with `commit`, whose error it then is."""
        self._waiting.append(statement)

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
        waiting = self.take_waiting()
        if waiting and waiting[0] is _BEGIN:  # nothing was executed
            if len(waiting) > 1:
                self._execute(waiting[1:])
        elif waiting or self.info.transaction_status != _IDLE:
            self._execute([*waiting, b"COMMIT"])
        return None

    def rollback(self) -> None:
        """As psycopg2's; with `autocommit` it ends what `begin` began."""
        if not self.autocommit:
            return super().rollback()
        self._waiting = []
        if self.info.transaction_status == _IDLE:
            return None
        self._execute([b"ROLLBACK"])
        return None

    def _execute(self, statements: Sequence[bytes]) -> None:
        """Executes statements in one message, and discards their rows."""
        with super().cursor(cursor_factory=driver.cursor) as cursor:
            cursor.execute(b";\n".join(statements))

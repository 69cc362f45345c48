"""How a database is frozen, and where its clients are sent: by the file of a front, or by the operator's hand."""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.struct import ExceptionStruct
from metastore.migration.switching.front_file import FrontFile, Site

LOOK_SECONDS = 1.5
"""A front looks at its file each second. So long after a change its workers have taken it, unless they can't.

Before that one of them may let changes through. A worker that is late at the end only refuses them for longer.
"""

TAKEN_SECONDS = 30.0
"""How long a front may take for that."""

PROBES = 16
"""Connections of which each has to find a database as the file says: each worker of a front answers some."""

_READ_ONLY = "is read-only here"


class NotTaken(UserError):
    """A front doesn't do what its file says."""


class Gate(Protocol):
    """The way from clients to one database, which lives in `old` or `new`."""

    @property
    def way(self) -> str:
        """The options that stand for it."""

    def check(self) -> None:
        """Raises UserError if the rest can't be done."""

    def freeze(self) -> None:
        """From here on nobody changes it. Raises UserError."""

    def thaw(self) -> None:
        """Ends that. Raises UserError, NotTaken."""

    def switch(self) -> None:
        """Sends clients to the other metastore, where they may change it. Raises UserError, NotTaken."""

    def is_switched(self) -> bool:
        """Whether clients are sent there, as far as it is known."""

    def said(self) -> str | None:
        """What the operator has to do now, in a line."""


class FrontGate:
    """A database in the file of a front. `uris`: the fronts that have this file."""

    def __init__(self, file: FrontFile, front: str, old: Site, new: Site, uris: Sequence[str], login: Login) -> None:
        self._file = file
        self._front = front
        self._old = old
        self._new = new
        self._uris = uris
        self._login = login

    @property
    def way(self) -> str:
        return f"--front {self._file.path.name}"  # others may see it in another directory

    def check(self) -> None:
        self._file.lead(self._front, self._old, self._new, only_tried=True)

    def freeze(self) -> None:
        self._file.freeze(self._old)
        time.sleep(LOOK_SECONDS)
        self._until(_is_frozen, "doesn't refuse changes")

    def thaw(self) -> None:
        self._file.thaw(self._old)
        self._until(_is_open, "still refuses changes")

    def switch(self) -> None:
        if not (self.is_switched() or self._file.is_frozen(self._old)):
            raise UserError(f"{self._file.path}: somebody has let {self._front} be changed again in the meantime")
        self._file.lead(self._front, self._old, self._new)
        self._until(_is_open, "still sends clients to the other metastore, or refuses changes")

    def is_switched(self) -> bool:
        return self._file.leads_to(self._front, self._new)

    def said(self) -> str | None:
        return None

    def _until(self, wanted: Callable[[ThriftClient, str], bool], otherwise: str) -> None:
        """Until the fronts do what the file says. Raises NotTaken."""
        begun = time.monotonic()
        for uri in self._uris:
            good, last = 0, ""
            while good < PROBES:
                try:
                    with ThriftClient.from_uri(uri, timeout=TAKEN_SECONDS, login=self._login) as client:
                        good = good + 1 if wanted(client, self._front) else 0
                except (TException, OSError, LoginRefused) as error:
                    good, last = 0, f": {error}"
                if not good:
                    if time.monotonic() - begun > TAKEN_SECONDS:
                        raise NotTaken(f"the front {uri} {otherwise} for {self._front}{last}: see its log")
                    time.sleep(0.2)


def _is_frozen(client: ThriftClient, front: str) -> bool:
    """Whether a change is refused: a table is dropped that can't be there."""
    try:
        client.drop_table(front, f"no_such_table_{secrets.token_hex(8)}", False)
    except (ExceptionStruct, TApplicationException) as error:
        return _READ_ONLY in str(getattr(error, "message", ""))
    return False


def _is_open(client: ThriftClient, front: str) -> bool:
    """Whether it isn't refused. It was before, so the front sends clients to the other metastore by now."""
    with suppress(ExceptionStruct, TApplicationException):
        client.get_database(front)
        return not _is_frozen(client, front)
    return False


class HandGate:
    """The operator has stopped the writers, and will send them to the other metastore."""

    way = "--frozen-by-hand"

    def __init__(self, database: str, where: str) -> None:
        self._database = database
        self._where = where
        self._switched = False

    def check(self) -> None:
        """Nothing is known."""

    def freeze(self) -> None:
        """It is frozen already, as the operator says."""

    def thaw(self) -> None:
        """The operator does that."""

    def switch(self) -> None:
        self._switched = True

    def is_switched(self) -> bool:
        return self._switched

    def said(self) -> str | None:
        return f"send the clients of {self._database} to {self._where} now, and none to the other metastore"

"""What a database says of itself at the metastore that it leaves, for the listener that may be installed there.

The listener (`lake.metastore.hive.MovedDatabases`) refuses changes of a database that is marked, and says where to go.
Hive lets databases be altered in any case, so a mark can always be taken away.
"""

from collections.abc import Callable

from thrift.Thrift import TApplicationException

from lake.protocol.hive import Database
from lake.protocol.struct import ExceptionStruct
from metastore.migration.objects import MOVED_TO, MOVING_TO, DatabaseKey, without_marks
from metastore.migration.source import error_text
from metastore.migration.thrift_source import ThriftSource

LISTENER = "lake.metastore.hive.MovedDatabases"
_LISTENERS = ("hive.metastore.pre.event.listeners", "metastore.pre.event.listeners")


def claimed_by(database: Database) -> str | None:
    """Where a database there goes to, or has gone, as its marks say; None if it stays."""
    parameters = database.parameters or {}
    return parameters.get(MOVED_TO) or parameters.get(MOVING_TO) or None


class Marks:
    """Those of the metastore that is left. `address`: where clients find its databases. `say` gets lines for people.

    All may be repeated, do nothing where the database isn't there, and raise SourceFailed.
    """

    def __init__(self, old: ThriftSource, address: str, say: Callable[[str], None]) -> None:
        self._old = old
        self._address = address
        self._say = say

    def moving(self, key: DatabaseKey) -> bool:
        """From here on the listener lets nobody change it there. Whether that has altered the database."""
        return self._set(key, {MOVING_TO: self._address})

    def moved(self, key: DatabaseKey) -> bool:
        """From here on the listener lets nobody read its tables there, either. As `moving`."""
        return self._set(key, {MOVED_TO: self._address})

    def has_moved(self, key: DatabaseKey) -> bool:
        """Whether `moved` was done."""
        database = self._old.database(key)
        return database is not None and MOVED_TO in (database.parameters or {})

    def clear(self, key: DatabaseKey) -> None:
        """Ends both."""
        self._set(key, {})

    def is_guarded(self) -> bool:
        """Whether the listener is installed there, as far as one of its servers tells."""
        try:
            return any(LISTENER in (self._old.call("get_config_value", name, "") or "") for name in _LISTENERS)
        except (ExceptionStruct, TApplicationException):  # names that begin otherwise are refused by old ones
            return False

    def _set(self, key: DatabaseKey, mark: dict[str, str]) -> bool:
        altered = False

        def look_and_alter() -> None:
            nonlocal altered
            database = self._old.database(key)
            if database is None:
                return
            before = database.parameters or {}
            after = without_marks(before) | mark
            if after != before:
                altered = True  # also if it then fails: it may have been done
                self._old.call("alter_database", key.on_the_wire, database.replace(parameters=after))

        try:
            self._old.insist(look_and_alter)
        except (ExceptionStruct, TApplicationException) as error:
            if not mark:
                raise
            self._say(f"{key}: it can't be marked there, so a listener there lets it be changed: {error_text(error)}")
            return False
        return altered

"""Makes constraints of a Hive's tables what they are here.

A constraint of Hive's belongs to a list of columns, which is another list as soon as a column changes. Hive 2.3 then
refuses the change, or doesn't tell the constraint any more, but keeps its name: each name once in all databases. A
foreign key it tells only while there is the primary key that it refers to. So whatever names a column is dropped before
that column changes, and foreign keys before the key that they refer to.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    DropConstraintRequest,
    ForeignKeysRequest,
    NoSuchObjectException,
    SQLAllTableConstraints,
    SQLForeignKey,
)
from lake.protocol.struct import ExceptionStruct
from metastore.migration.objects import TableKey, TableParts
from metastore.migration.source import error_text
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import constraint_form, constraint_own_name

_ADD: dict[str, Callable[[list[Any]], tuple[str, Any]]] = {
    "primaryKeys": lambda some: ("add_primary_key", AddPrimaryKeyRequest(some)),
    "foreignKeys": lambda some: ("add_foreign_key", AddForeignKeyRequest(some)),
    "uniqueConstraints": lambda some: ("add_unique_constraint", AddUniqueConstraintRequest(some)),
    "notNullConstraints": lambda some: ("add_not_null_constraint", AddNotNullConstraintRequest(some)),
    "defaultConstraints": lambda some: ("add_default_constraint", AddDefaultConstraintRequest(some)),
    "checkConstraints": lambda some: ("add_check_constraint", AddCheckConstraintRequest(some)),
}
_FOREIGN = "foreignKeys"
_TAKEN = ("could not be made persistent", "Constraint name already exists", "KEY_CONSTRAINTS")
"""What Hive answers where a name is taken. Version 2.3 doesn't say why."""

_REFERRED_TO = ("primaryKeys", "uniqueConstraints")


class Constraints:
    """`problem` is told what can't be made: of which table or constraint, and why."""

    def __init__(self, old: ThriftSource, problem: Callable[[str, str], None]) -> None:
        self._old = old
        self._problem = problem
        self._foreign: dict[TableKey, list[list[SQLForeignKey]]] = {}
        self._databases: list[str] | None = None
        self.bereft: set[TableKey] = set()
        """Tables whose foreign keys were dropped, since what they refer to changes."""

    def make(self, there: TableParts, wanted: SQLAllTableConstraints) -> None:
        """Makes those of a table there the wanted ones. Foreign keys are added by `make_foreign_keys`."""
        if any(_gone(there.constraints, wanted, kind) for kind in _REFERRED_TO):
            if not self.let_go(there):
                return
            there = replace(there, constraints=SQLAllTableConstraints())
        for kind in _ADD:
            gone = _gone(there.constraints, wanted, kind)
            dropped = {name for name, some in gone.items() if self._drop(there.key, some)}
            kept = _by_name(there.constraints, kind).keys() - dropped
            new = [some for name, some in _by_name(wanted, kind).items() if name not in kept]
            if kind == _FOREIGN:
                self._foreign[there.key] = new
                continue
            for some in new:
                self._add(there.key, kind, some)

    def let_go(self, there: TableParts) -> bool:
        """Drops all that names columns of a table, so that these can change. Returns whether they can.

        It is up to the caller to make the table's own constraints again, and the foreign keys of `bereft` tables.
        """
        key = there.key
        referring = [each for each in self._referring(there) if _child(key, each) != key]
        far = [each for each in referring if _child(key, each).of_database != key.of_database]
        for name in sorted({f"{_child(key, each)} {each.fk_name}" for each in far}):
            text = f"{name} refers to it from another database: drop that there, and add it again afterwards"
            self._problem(str(key), text)
        if far:
            return False
        for child in sorted({_child(key, each) for each in referring}):
            own = [each for each in referring if _child(key, each) == child]
            self.bereft.add(child)
            for some in _by_name(SQLAllTableConstraints(foreignKeys=own), _FOREIGN).values():
                if not self._drop(child, some):
                    return False
        for kind in (_FOREIGN, *(each for each in _ADD if each != _FOREIGN)):
            for some in _by_name(there.constraints, kind).values():
                if not self._drop(key, some):
                    return False
        return True

    def make_foreign_keys(self) -> None:
        """Adds those that are wanted, when all tables are there."""
        for key, new in self._foreign.items():
            added = [some for some in new if self._add(key, _FOREIGN, some)]
            if not added:
                continue
            request = ForeignKeysRequest(None, None, key.database, key.table, catName=key.catalog)
            answer = self._old.call("get_foreign_keys", request)
            told = _by_name(SQLAllTableConstraints(foreignKeys=answer.foreignKeys), _FOREIGN)
            for some in added:
                if len(told.get(_name(some).lower(), ())) < len(some):
                    text = "Hive tells foreign keys to a primary key alone: drop it here"
                    self._problem(f"{key} {_name(some)}", text)
        self._foreign.clear()

    def _referring(self, there: TableParts) -> list[SQLForeignKey]:
        """Foreign keys that refer to a table. Hive 2.3 has to be asked for each database that they may be in."""
        if not any(getattr(there.constraints, kind) for kind in _REFERRED_TO):
            return []
        catalog, database, table = there.key
        if self._databases is None:
            self._databases = [each.name or "" for each in self._old.databases(catalog)]
        found: list[SQLForeignKey] = []
        for home in self._databases:
            request = ForeignKeysRequest(database, table, home, None, catName=catalog)
            found += self._old.call("get_foreign_keys", request).foreignKeys or ()
        return found

    def _drop(self, key: TableKey, some: Sequence[Any]) -> bool:
        """Whether it isn't there any more."""
        name = _name(some)
        if self._is_by_name and min(_position(each) for each in some) > 1:
            text = "its first column is missing, so Hive would drop another table's constraint of this name with it"
            self._problem(f"{key} {name}", text)
            return False
        try:
            self._old.call("drop_constraint", _dropping(key, name))
        except NoSuchObjectException:
            pass
        except (ExceptionStruct, TApplicationException) as error:
            self._problem(f"{key} {name}", f"drop_constraint: {error_text(error)}")
            return False
        return True

    def _add(self, key: TableKey, kind: str, some: list[Any]) -> bool:
        """Adds a constraint. Returns whether it was done.

        Hive 2.3 adds the columns of a key that have room, even where it refuses the key since another table's has its
        name. To drop them would drop that one, too. So the first column goes ahead.
        """
        first = some[:1]
        alone = len(some) == 1 or not self._is_by_name
        return (alone or (self._insist(key, kind, first) and self._drop(key, first))) and self._insist(key, kind, some)

    def _insist(self, key: TableKey, kind: str, some: list[Any]) -> bool:
        """What is refused may be so because of one of this name that isn't told, see above."""
        method, request = _ADD[kind](some)
        with suppress(ExceptionStruct, TApplicationException):
            self._old.call(method, request)
            return True
        with suppress(ExceptionStruct, TApplicationException):  # mostly there is none
            self._old.call("drop_constraint", _dropping(key, _name(some)))
        try:
            self._old.call(method, request)
        except (ExceptionStruct, TApplicationException) as error:
            self._problem(f"{key} {_name(some)}", _why(method, error))
            return False
        return True

    @property
    def _is_by_name(self) -> bool:
        """Whether the metastore there drops constraints by their names alone: Hive 2.3."""
        return self._old.lacks("get_unique_constraints")


def _why(method: str, error: Exception) -> str:
    text = error_text(error)
    if getattr(error, "type", None) == TApplicationException.UNKNOWN_METHOD:
        return f"{method}: that Hive knows no such constraints: drop it here"
    if any(each in text for each in _TAKEN):
        return f"{method}: does another table there have a constraint of this name? That Hive takes each once: {text}"
    return f"{method}: {text}"


def _dropping(key: TableKey, name: str) -> DropConstraintRequest:
    return DropConstraintRequest(key.database, key.table, name, key.catalog)


def _name(some: Sequence[Any]) -> str:
    return constraint_own_name(some[0])


def _position(column: Any) -> int:
    return getattr(column, "key_seq", None) or 1


def _child(parent: TableKey, key: SQLForeignKey) -> TableKey:
    """The table that a foreign key is on."""
    return TableKey(parent.catalog, (key.fktable_db or "").lower(), (key.fktable_name or "").lower())


def _gone(there: SQLAllTableConstraints, wanted: SQLAllTableConstraints, kind: str) -> dict[str, list[Any]]:
    """Those that aren't wanted any more, or in another form."""
    other = _by_name(wanted, kind)
    return {name: some for name, some in _by_name(there, kind).items() if _forms(other.get(name, ())) != _forms(some)}


def _by_name(some: SQLAllTableConstraints, kind: str) -> dict[str, list[Any]]:
    """The columns of each constraint of a kind."""
    found: dict[str, list[Any]] = {}
    for each in sorted(getattr(some, kind) or (), key=_position):
        found.setdefault(constraint_own_name(each).lower(), []).append(each)
    return dict(sorted(found.items()))


def _forms(some: Iterable[Any]) -> list[Any]:
    return [constraint_form(each) for each in some]

"""Carries the names in a request to its backend, and those in the answer back."""

import json
from dataclasses import dataclass, field
from functools import partial

from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.hive import EnvironmentContext, GetOpenTxnsResponse, MetaException, Table
from lake.protocol.lake import EventRecord
from lake.protocol.struct import Struct, fields
from metastore.federation import identifiers, views
from metastore.federation.fields import Hidden, plan, walk
from metastore.federation.mapping import Mapping, Place
from metastore.federation.names import DEFAULT_CATALOG, Name, check_text, joined, normal, split

EVERY = "*"
"""In place of a database in requests for events: all of them."""

_TRANSACTION = "txnId"
"""The property of a call's context by which Hive 4 names the transaction that it belongs to."""

_DIGITS = 20  # of a number that takes more than 8 bytes

_MOVES = frozenset({"ALTER_TABLE", "ALTER_FUNCTION"})
"""Types of a lake metastore's events that may say that something has gone from one database to another."""


@dataclass(slots=True)
class Asked:
    """What a request names: databases and catalogs of the front, and the numbers that ids in it are marked with.

    `plain`: no name is in the form of Hive 3, with its catalog, which older versions don't know. `nameless_ids`: a
    table is named by its id alone. `replays`: it repeats a transaction of another metastore, by that one's ids.
    """

    names: list[Name] = field(default_factory=list)
    catalogs: list[str] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    plain: bool = True
    nameless_ids: bool = False
    replays: bool = False


def asked(arguments: Struct) -> Asked:
    """What the arguments of a call name, in all of their fields. Raises MetaException for a malformed name."""
    found = Asked()
    walk(arguments, _Collecting(found))
    return found


def to_backend(arguments: Struct, mapping: Mapping, backend: str) -> None:
    """Puts the backend's own names and ids into arguments, all of whose names lead there."""
    walk(arguments, _ToBackend(mapping, backend))


def to_front(value: Struct, mapping: Mapping, backend: str) -> None:
    """Puts the front's names and ids into an answer of a backend.

    Items of lists about databases without a name in the front are left out; they are hidden. Raises Hidden where that
    leaves nothing, MetaException for an id that can't be marked.
    """
    walk(value, _ToFront(mapping, backend))


def name_to_front(database: str, mapping: Mapping, backend: str, catalog: str | None = None) -> str:
    """The front's name of a backend's database. Raises Hidden if it has none."""
    return _ToFront(mapping, backend).database(catalog, database, has_catalog=False, inherited=None)[1]


def identifier_to_front(number: int, mapping: Mapping, backend: str) -> int:
    """A backend's id of a transaction or lock, marked as the backend's. Raises MetaException if it can't be marked."""
    return _ToFront(mapping, backend).identifier(number)


def parsed(catalog: str | None, inherited: str | None, database: str, default: str = DEFAULT_CATALOG) -> Name:
    """The database that a field names. Raises MetaException."""
    before, name = split(database)
    return Name(check_text(normal(catalog or before or inherited or default)), check_text(normal(name or "")))


class _OpenTransactionsOf23(Struct):
    """The field of GetOpenTxnsResponse that Hive 2.3 has as a set."""

    __slots__ = ("open_txns", "unknown")
    thrift_spec = fields(None, None, (2, "open_txns", TType.SET, (TType.I64, None, False)))

    def __init__(self) -> None:
        self.open_txns: set[int] | None = None


class _Plain:
    """A visitor that changes nothing."""

    def catalog(self, catalog: str) -> str:
        return catalog

    def identifier(self, number: int) -> int:
        return number

    def highest(self, number: int) -> int:
        return self.identifier(number)

    def table_id(self, holder: Struct, number: int) -> int | None:
        return number

    def transactions(self, text: str) -> str:
        return text

    def whole(self, value: Struct) -> None:
        pass


class _Collecting(_Plain):
    def __init__(self, found: Asked) -> None:
        self._found = found

    def database(
        self, catalog: str | None, database: str, *, has_catalog: bool, inherited: str | None
    ) -> tuple[str | None, str]:
        name = parsed(catalog, inherited, database)
        if database.startswith("@"):
            self._found.plain = False
        if name.database == EVERY:
            return catalog, database
        if name.database:
            self._found.names.append(name)
        else:
            self._found.catalogs.append(name.catalog)
        return catalog, database

    def catalog(self, catalog: str) -> str:
        self._found.catalogs.append(normal(catalog))
        return catalog

    def qualified(self, name: str) -> str:
        database, _ = split_qualified(name)
        if database.database:
            self._found.names.append(database)
        return name

    def identifier(self, number: int) -> int:
        if (found := identifiers.number_of(number)) is not None:
            self._found.numbers.add(found)
        return number

    def table_id(self, holder: Struct, number: int) -> int | None:
        if not plan(type(holder)).databases:
            self._found.nameless_ids = True
        return number

    def whole(self, value: Struct) -> None:
        if isinstance(value, EnvironmentContext):
            if (number := _transaction_of(value)) is not None:
                self.identifier(number)
        elif getattr(value, "replPolicy", None):
            self._found.replays = True

    def transactions(self, text: str) -> str:
        def note(transactions: str) -> str:
            self._found.numbers |= identifiers.numbers_in(transactions)
            return transactions

        identifiers.in_snapshot(text, note, self.qualified)
        return text


class _ToBackend(_Plain):
    def __init__(self, mapping: Mapping, backend: str) -> None:
        self._mapping = mapping
        self._backend = backend
        self._catalog = mapping.backends[backend].backend_catalog
        self._identity = mapping.is_identity(backend)

    def database(
        self, catalog: str | None, database: str, *, has_catalog: bool, inherited: str | None
    ) -> tuple[str | None, str]:
        name = parsed(catalog, inherited, database)
        if name.database == EVERY or (self._identity and not database.startswith("@")):
            return catalog, database
        there = Name(self._catalog, "") if not name.database else self._there(name)
        if there.catalog == DEFAULT_CATALOG:  # old versions know no catalogs, and `@`
            new = database if there.database == normal(database) else there.database
            return (catalog and there.catalog), new
        if has_catalog:
            return there.catalog, there.database
        return None, joined(there.catalog, there.database)

    def catalog(self, catalog: str) -> str:
        return self._catalog

    def qualified(self, name: str) -> str:
        front, table = split_qualified(name)
        return f"{self._there(front).database}.{table}" if front.database else name

    def identifier(self, number: int) -> int:
        return identifiers.unmarked(number)

    def table_id(self, holder: Struct, number: int) -> int | None:
        own, found = self._mapping.number(self._backend), identifiers.number_of(number)
        if own is None or found is None:
            return number
        if found == own:
            return identifiers.unmarked(number)
        if isinstance(holder, Table):  # that of another backend, of which a new one is made
            return None
        raise MetaException(
            f"a table's id in the request is not of backend {self._backend}: the name was another backend's before."
            " Read the table again"
        )

    def transactions(self, text: str) -> str:
        return identifiers.in_snapshot(text, partial(identifiers.in_text, change=identifiers.unmarked), self.qualified)

    def whole(self, value: Struct) -> None:
        if isinstance(value, EnvironmentContext) and (number := _transaction_of(value)) is not None:
            value.properties = {**(value.properties or {}), _TRANSACTION: str(identifiers.unmarked(number))}
        if isinstance(value, Table) and not self._identity and (value.viewOriginalText or value.viewExpandedText):
            self._view(value)

    def _view(self, table: Table) -> None:
        if views.UNMAPPED in (table.parameters or {}):
            raise MetaException(
                f"the text of view {table.tableName} names databases as backend {self._backend} does, and can't be told"
                f" from the front's names: change the view by a client of {self._backend} itself"
            )
        try:
            views.rename_in(table, self._of_text)
        except views.NotUnderstood as reason:
            raise MetaException(
                f"the names of databases in the text of view {table.tableName} can't be told for certain ({reason}):"
                f" make the view by a client of backend {self._backend} itself"
            ) from None

    def _of_text(self, database: str) -> str:
        front = Name(self._mapping.backends[self._backend].catalog, database)
        return self._there(front).database

    def _there(self, name: Name) -> Name:
        there = self._mapping.at(self._backend, name)
        if there is None:
            place: Place | None = self._mapping.place(name)
            where = "no backend" if place is None else f"backend {place.backend}"
            raise MetaException(
                f"database {name} is of {where}, and not of backend {self._backend} like what else the request names: a"
                " request is about one backend"
            )
        return there


class _ToFront(_Plain):
    def __init__(self, mapping: Mapping, backend: str) -> None:
        self._mapping = mapping
        self._backend = backend
        self._default = mapping.backends[backend].backend_catalog
        self._number = mapping.number(backend)
        self._identity = mapping.is_identity(backend)

    def database(
        self, catalog: str | None, database: str, *, has_catalog: bool, inherited: str | None
    ) -> tuple[str | None, str]:
        there = parsed(catalog, inherited, database, self._default)
        name = self._name(there)
        if not has_catalog:
            return None, name.database
        return (name.catalog if catalog is not None or name.catalog != DEFAULT_CATALOG else None), name.database

    def catalog(self, catalog: str) -> str:
        return self._mapping.backends[self._backend].catalog if normal(catalog) == self._default else catalog

    def qualified(self, name: str) -> str:
        there, table = split_qualified(name)
        return name if not there.database else f"{self._name(Name(self._default, there.database)).database}.{table}"

    def identifier(self, number: int) -> int:
        if self._number == 0 or identifiers.number_of(number) is None:
            return number
        if self._number is None:
            raise MetaException(
                f"backend {self._backend} answers with the id of a transaction, lock or moment, and later calls"
                f" couldn't tell whose it is: give backends.{self._backend} a number in the front's file"
            )
        return identifiers.marked(self._number, number)

    def highest(self, number: int) -> int:
        return identifiers.highest(self._number, number) if self._number else self.identifier(number)

    def table_id(self, holder: Struct, number: int) -> int | None:
        return identifiers.marked(self._number, number) if self._number else number

    def transactions(self, text: str) -> str:
        return identifiers.in_snapshot(text, partial(identifiers.in_text, change=self.identifier), self.qualified)

    def whole(self, value: Struct) -> None:
        if isinstance(value, GetOpenTxnsResponse):
            self._open_transactions(value)
        elif isinstance(value, EventRecord):
            self._event(value)
        elif isinstance(value, Table) and not self._identity:
            try:
                views.rename_in(value, self._of_text)
            except (views.NotUnderstood, Hidden):
                views.mark(value)

    def _open_transactions(self, value: GetOpenTxnsResponse) -> None:
        """Marks the ids in the field that Hive 2.3 has as a set, and later versions as a list."""
        unknown = getattr(value, "unknown", b"")
        if not self._number or not unknown:
            return
        older = binary.decode(_OpenTransactionsOf23, unknown + binary.STOP)
        older.open_txns = {self.identifier(each) for each in older.open_txns or ()}
        marked = binary.encode_fields(older)
        if len(marked) != len(unknown):
            raise MetaException(f"backend {self._backend} answers with more than is known of open transactions")
        value.unknown = marked

    def _event(self, event: EventRecord) -> None:
        """Takes out of an event what it says of databases that have no name here.

        For who reads it, a table that comes from one is made, and one that goes to one is dropped.
        """
        if event.type in _MOVES:
            payload = json.loads(event.payload or "")
            sides = [payload["before"], payload["after"]]
            shown = [side for side in sides if self._has_name(side.get("catName"), side.get("dbName"))]
            if len(shown) == 1:
                is_new = shown[0] is sides[1]
                event.type = event.type.replace("ALTER", "CREATE" if is_new else "DROP")
                event.database = shown[0]["dbName"]
                event.table = event.table and shown[0]["tableName"]
                del payload["before" if is_new else "after"]
                event.payload = json.dumps(payload, separators=(",", ":"))
        elif event.type == "ADD_CONSTRAINTS":
            payload = json.loads(event.payload or "")
            keys = payload["constraints"].get("foreignKeys", [])
            kept = [
                key
                for key in keys
                if all(self._has_name(key.get("catName"), key.get(f"{side}table_db")) for side in ("pk", "fk"))
            ]
            if len(kept) < len(keys):
                payload["constraints"]["foreignKeys"] = kept
                if not any(payload["constraints"].values()):
                    raise Hidden("all of its keys name databases that have no name here")
                event.payload = json.dumps(payload, separators=(",", ":"))

    def _has_name(self, catalog: str | None, database: str | None) -> bool:
        return self._mapping.name(self._backend, parsed(catalog, None, database or "", self._default)) is not None

    def _of_text(self, database: str) -> str:
        return self._name(Name(self._default, database)).database

    def _name(self, there: Name) -> Name:
        name = self._mapping.name(self._backend, there)
        if name is None:
            raise Hidden(f"database {there} of backend {self._backend} has no name here: another rule hides it")
        return name


def _transaction_of(context: EnvironmentContext) -> int | None:
    """The transaction in whose name a table is dropped or made."""
    text = (context.properties or {}).get(_TRANSACTION, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < _DIGITS else None


def split_qualified(name: str) -> tuple[Name, str]:
    """Splits `database.table` or `catalog.database.table`."""
    before, _, table = name.rpartition(".")
    catalog, _, database = before.rpartition(".")
    return Name(check_text(normal(catalog)) or DEFAULT_CATALOG, check_text(normal(database))), table

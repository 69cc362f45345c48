"""Data connectors: connections to databases elsewhere. They are stored and returned to engines, never used here."""

import getpass
import re

from lake.protocol.clock import now_seconds
from lake.protocol.codec import binary
from lake.protocol.events.types import EventType
from lake.protocol.hive import (
    AlreadyExistsException,
    DataConnector,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
)
from metastore.services.events.recorder import Events
from metastore.services.model import names as given
from metastore.services.model.validation import check_length
from metastore.store import Conflict, Database
from metastore.store.registry import named_objects
from metastore.store.registry.named_objects import Kind, NamedRow

# What Hive 4 takes as the name of a table or connector.
_NAME = re.compile(r"""[\w "%&'()*+,\-./:;<=>?\[\]|{}$^!~#@`]+""", re.ASCII)


class DataConnectorService:
    """Hive's calls for data connectors."""

    def __init__(self, database: Database, events: Events) -> None:
        self._database = database
        self._events = events

    def create(self, connector: DataConnector, user: str | None) -> None:
        """Adds a connector with the current time. Without an owner it belongs to `user`, or to the server.

        Raises AlreadyExistsException, InvalidObjectException for a bad name.
        """
        name = _name(connector.name)
        if not _NAME.fullmatch(connector.name or ""):
            raise InvalidObjectException(f"{connector.name} is not a valid dataconnector name")
        check_length(name, "connector")
        kept = connector.replace(
            createTime=now_seconds(),
            ownerName=connector.ownerName or user or getpass.getuser(),
            ownerType=connector.ownerType or PrincipalType.USER,
            parameters=connector.parameters or {},
        )
        try:
            with self._database.write() as tx:
                named_objects.add(tx, Kind.DATA_CONNECTOR, name, _body(kept))
                shown = kept.replace(name=name)
                self._events.data_connector(tx, EventType.CREATE_DATA_CONNECTOR, None, shown)
        except Conflict:
            raise AlreadyExistsException(f"DataConnector {connector.name} already exists") from None

    def get(self, name: str | None) -> DataConnector:
        """One connector. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = named_objects.find(tx, Kind.DATA_CONNECTOR, _name(name))
        if row is None:
            raise NoSuchObjectException(f"Dataconnector named {name} does not exist")
        return _connector(row)

    def names(self) -> list[str]:
        """All connectors' names, in order."""
        with self._database.read() as tx:
            return named_objects.names(tx, Kind.DATA_CONNECTOR)

    def alter(self, name: str | None, new: DataConnector) -> None:
        """Changes the URL, the parameters and the owner. Changes the owner's type and the description if given.

        Raises NoSuchObjectException.
        """
        with self._database.write() as tx:
            row = named_objects.find(tx, Kind.DATA_CONNECTOR, _name(name), lock=True)
            if row is None:
                raise NoSuchObjectException(f"Dataconnector named {name} does not exist")
            old = _connector(row)
            changed = old.replace(
                url=new.url,
                parameters=new.parameters or {},
                ownerName=new.ownerName,
                ownerType=new.ownerType or old.ownerType,
                description=new.description if (new.description or "").strip() else old.description,
            )
            named_objects.change(tx, row.id, _body(changed))
            self._events.data_connector(tx, EventType.ALTER_DATA_CONNECTOR, old, changed)

    def drop(self, name: str | None, *, if_exists: bool) -> None:
        """Removes a connector, even if databases refer to it. Raises NoSuchObjectException unless `if_exists`."""
        with self._database.write() as tx:
            row = named_objects.find(tx, Kind.DATA_CONNECTOR, _name(name), lock=True)
            if row is not None:
                named_objects.remove(tx, row.id)
                self._events.data_connector(tx, EventType.DROP_DATA_CONNECTOR, _connector(row), None)
            elif not if_exists:
                raise NoSuchObjectException(f"DataConnector {name} doesn't exist")


def _name(name: str | None) -> str:
    if name is None:
        raise MetaException("Data connector name cannot be null.")
    return given.normalized(name)


def _body(connector: DataConnector) -> bytes:
    return binary.encode(connector.replace(name=None))


def _connector(row: NamedRow) -> DataConnector:
    value = binary.decode_preserving(DataConnector, row.body)
    value.name = row.name
    return value

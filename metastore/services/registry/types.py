"""Types that clients define by name, from Hive's first versions."""

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Type,
)
from metastore.services.model.validation import check_length, is_name
from metastore.store import Conflict, Database
from metastore.store.registry import named_objects
from metastore.store.registry.named_objects import Kind


class TypeService:
    """Hive's calls for types. Names are case-sensitive, and stripped."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, value: Type) -> None:
        """Adds a type. Raises InvalidObjectException for a bad name, AlreadyExistsException."""
        name = _name(value.name)
        if not is_name(name):
            raise InvalidObjectException("Invalid type name")
        check_length(name, "type")
        body = binary.encode(value.replace(name=None, fields=value.fields or []))
        try:
            with self._database.write() as tx:
                named_objects.add(tx, Kind.TYPE, name, body)
        except Conflict:
            raise AlreadyExistsException(f"Type {name} already exists") from None

    def get(self, name: str | None) -> Type:
        """One type. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = named_objects.find(tx, Kind.TYPE, _name(name).strip())
        if row is None:
            raise NoSuchObjectException(f'Type "{name}" not found.')
        value = binary.decode_preserving(Type, row.body)
        value.name = row.name
        return value

    def drop(self, name: str | None) -> None:
        """Removes a type, if there is one."""
        with self._database.write() as tx:
            row = named_objects.find(tx, Kind.TYPE, _name(name).strip(), lock=True)
            if row is not None:
                named_objects.remove(tx, row.id)


def _name(name: str | None) -> str:
    if name is None:
        raise MetaException("the type's name is missing")
    return name

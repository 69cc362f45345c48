"""Delegation tokens and their signing keys, stored for servers that use this metastore as their token store.

Clients may read and change all of them, as in Hive. The metastore's own tokens are elsewhere: `issued_tokens`.
"""

from lake.protocol.hive import MetaException, NoSuchObjectException
from metastore.store import Conflict, Database
from metastore.store.access import master_keys
from metastore.store.registry import named_objects
from metastore.store.registry.named_objects import Kind


class DelegationTokenService:
    """Hive's calls for stored tokens and keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, identifier: str | None, token: str | None) -> bool:
        """Stores a token. Returns whether the identifier was unused."""
        if identifier is None or token is None:
            raise MetaException("a token needs an identifier and a value")
        try:
            with self._database.write() as tx:
                named_objects.add(tx, Kind.DELEGATION_TOKEN, identifier, token.encode())
        except Conflict:
            return False
        return True

    def get(self, identifier: str | None) -> str | None:
        """The token of an identifier; None if there is none."""
        with self._database.read() as tx:
            row = named_objects.find(tx, Kind.DELEGATION_TOKEN, identifier or "")
        return None if row is None else row.body.decode()

    def remove(self, identifier: str | None) -> bool:
        """Removes a token. Returns whether there was one."""
        with self._database.write() as tx:
            row = named_objects.find(tx, Kind.DELEGATION_TOKEN, identifier or "", lock=True)
            if row is not None:
                named_objects.remove(tx, row.id)
        return row is not None

    def identifiers(self) -> list[str]:
        """The identifiers of all tokens, in order."""
        with self._database.read() as tx:
            return named_objects.names(tx, Kind.DELEGATION_TOKEN)

    def add_key(self, key: str | None) -> int:
        """Stores a signing key and returns its number."""
        with self._database.write() as tx:
            return master_keys.add(tx, _key(key))

    def update_key(self, number: int, key: str | None) -> None:
        """Replaces a key. Raises NoSuchObjectException."""
        with self._database.write() as tx:
            if not master_keys.change(tx, number, _key(key)):
                raise NoSuchObjectException(f"No key found with keyId: {number}")

    def remove_key(self, number: int) -> bool:
        """Removes a key. Returns whether there was one of that number."""
        with self._database.write() as tx:
            return master_keys.remove(tx, number)

    def keys(self) -> list[str]:
        """All keys, the oldest first."""
        with self._database.read() as tx:
            return master_keys.find_all(tx)


def _key(key: str | None) -> str:
    if key is None:
        raise MetaException("the key is missing")
    return key

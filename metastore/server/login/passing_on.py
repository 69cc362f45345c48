"""How a process of the server tells a worker whose calls it passes on, once it has found out who that is."""

import json
from dataclasses import asdict, dataclass
from typing import Self

from metastore.server.credentials.identity import Identity


@dataclass(frozen=True, slots=True)
class PassedOn:
    """Whose calls follow. `identity`: None for who has proven nothing. `peer`: the client's address and port."""

    identity: Identity | None
    peer: str

    def encode(self) -> bytes:
        identity = None if self.identity is None else asdict(self.identity)
        return json.dumps({"identity": identity, "peer": self.peer}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Of what `encode` made: only who knows the server's secret is listened to."""
        fields = json.loads(data)
        given = fields["identity"]
        if given is None:
            return cls(None, fields["peer"])
        passwords = tuple((user, version) for user, version in given["passwords"])
        identity = Identity(**{**given, "groups": tuple(given["groups"]), "passwords": passwords})
        return cls(identity, fields["peer"])

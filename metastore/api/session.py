"""What the server remembers about one connection."""

from dataclasses import dataclass, field

from metastore.services.access.caller import Caller, Mechanism


@dataclass(slots=True)
class Session:
    """One client's connection: who it is and what it asked for.

    `hive4` turns true with the first call that only newer clients know; until then answers are those of Hive 2.3
    where the two differ. `include_uncommitted`: reads show uncommitted partitions, too; it begins as the listener
    says on which the client connected, and `setMetaConf` changes it.
    """

    connection_id: str
    peer: str
    user: str | None = None
    groups: tuple[str, ...] = ()
    mechanism: Mechanism = "none"
    real_user: str | None = None
    metaconf: dict[str, str] = field(default_factory=dict)
    hive4: bool = False
    include_uncommitted: bool = False

    @property
    def caller(self) -> Caller:
        """Who makes the calls of this connection, as it stands now."""
        return Caller(self.user, self.groups, self.mechanism, self.real_user, self.peer)

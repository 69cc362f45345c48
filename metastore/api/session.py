"""What the server remembers about one connection."""

from dataclasses import dataclass, field

from metastore.services.access.caller import Caller
from metastore.store.access.request_keys import Claim
from metastore.store.catalog.followed_sources import Held


@dataclass(slots=True)
class Session:
    """One client's connection: who makes its calls and what it asked for.

    `hive4` turns true with the first call that only newer clients know; until then answers are those of Hive 2.3
    where the two differ. `include_uncommitted`: reads show uncommitted partitions, too; it begins as the listener
    says on which the client connected, and `setMetaConf` changes it. `request`: whose changes the connection makes, if
    its client may send a request again. `held`: the source that the connection follows; what it changes is refused once
    somebody else has taken that. `wrote_at`: of a front of several metastores, when it has changed something in
    each of them last.
    """

    connection_id: str
    caller: Caller
    metaconf: dict[str, str] = field(default_factory=dict)
    hive4: bool = False
    include_uncommitted: bool = False
    request: Claim | None = None
    held: Held | None = None
    wrote_at: dict[str, float] = field(default_factory=dict)

    @property
    def user(self) -> str | None:
        return self.caller.user

    @property
    def peer(self) -> str:
        """The client's address."""
        return self.caller.peer

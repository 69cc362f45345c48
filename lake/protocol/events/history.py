"""The value types for the log's epochs. What an epoch is, and how one begins: see `epochs`."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple


class Epoch(NamedTuple):
    """One epoch of the log. Events up to the number `after` are those of the epoch before it.

    `lossy`: subscribers may have received later events of the epoch before; these are undone.
    """

    id: int
    name: str
    after: int
    lossy: bool
    reason: str
    begun_at: datetime | None


class History(NamedTuple):
    """The log's identity, and its epochs in order, the current one last."""

    identity: str
    epochs: Sequence[Epoch]

    @property
    def now(self) -> Epoch:
        """The current epoch."""
        return self.epochs[-1]

    def common(self, epoch: str) -> int | None:
        """The last number up to which events received in an epoch, given by name, are still valid.

        None: all of them are. 0: none is, because this log never had such an epoch.
        """
        names = [each.name for each in self.epochs]
        if epoch not in names:
            return 0
        return min((each.after for each in self.epochs[names.index(epoch) + 1 :]), default=None)

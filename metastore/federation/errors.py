"""What goes wrong between the front and its backends, in words for clients."""

from lake.protocol.errors import NOTHING_DONE, OUTCOME_UNKNOWN


class BackendError(Exception):
    """A backend gave no answer. The text says which, and whether something may have happened there.

    `unreachable`: whether another backend's answer may do without it. Nothing was done there, or nothing that changes
    anything.
    """

    unreachable = False


class Unreachable(BackendError):
    """Nothing was done: the same request may succeed later.

    Hive's clients repeat a call whose error names TTransportException, so the text does.
    """

    unreachable = True

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(
            f"backend {backend} of this front can't be reached (TTransportException: {reason}). {NOTHING_DONE} later"
        )
        self.backend = backend


class Busy(BackendError):
    """All connections to a backend are in use."""

    unreachable = True

    def __init__(self, backend: str, connections: int, seconds: float) -> None:
        super().__init__(
            f"all {connections} connections of this worker to backend {backend} are busy, and it has answered nothing"
            f" for {seconds:.1f} s (TTransportException). {NOTHING_DONE}, or raise backends."
            f"{backend}.connections"
        )
        self.backend = backend


class Unknown(BackendError):
    """The answer to a change was lost: nobody knows whether it was made."""

    def __init__(self, backend: str, reason: str) -> None:
        super().__init__(
            f"the answer of backend {backend} was lost ({reason}), so {OUTCOME_UNKNOWN}: look before you repeat it"
        )
        self.backend = backend

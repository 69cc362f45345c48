"""The exceptions of the warehouse."""


class WarehouseError(Exception):
    """A directory could not be used: the message says what was tried, on which location, and what to do."""


class StorageFailed(WarehouseError):
    """The storage refused, or didn't answer. The location may be right, and the same call may succeed later."""


class FileGone(WarehouseError):
    """A file that is to be moved is neither where it was nor where it is to be."""

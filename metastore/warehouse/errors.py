"""The one exception of the warehouse."""


class WarehouseError(Exception):
    """A directory could not be used: the message says what was tried, on which location, and what to do."""

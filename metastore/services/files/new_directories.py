"""Directories that are made before the transaction that needs them."""

from collections.abc import Iterator
from contextlib import contextmanager

from lake.protocol.struct import ExceptionStruct
from metastore.store import Conflict, DatabaseFull, DatabaseReadOnly, DatabaseUnavailable
from metastore.warehouse import Warehouse


@contextmanager
def new_directories(warehouse: Warehouse, taken: ExceptionStruct) -> Iterator[set[str]]:
    """Gives a set for the directories that the block makes; if the block fails, those that are empty are removed again.

    Raises `taken` if somebody else was as quick: the directories may be theirs now, and stay. They stay without a
    database, too: it may have failed in the middle of the commit.
    """
    made: set[str] = set()
    try:
        yield made
    except Conflict:
        raise taken from None
    except BaseException as error:
        if not isinstance(error, DatabaseUnavailable) or isinstance(error, DatabaseFull | DatabaseReadOnly):
            for place in made:
                warehouse.delete_empty_directory(place)
        raise

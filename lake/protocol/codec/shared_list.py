"""Lists that many structs share, such as the columns of a table."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class SharedList(list[Any]):
    """A list that nobody may change. What is made of it is made once."""

    __slots__ = ("_made",)

    _made: dict[Any, Any]

    def of(self, make: Callable[["SharedList"], T]) -> T:
        """What a function makes of the list: the same object each time."""
        try:
            made = self._made
        except AttributeError:
            made = self._made = {}
        try:
            found: T = made[make]
        except KeyError:
            found = made[make] = make(self)
        return found

"""Bounds the memory that the requests of a worker take together. Event loop only."""

from typing import Protocol


class MemoryUser(Protocol):
    """A connection whose request takes memory."""

    def memory_granted(self) -> None:
        """The size of the last refused `take` is reserved now."""


class MemoryBudget:
    """A number of bytes that requests share, each from its first byte until its thread is done.

    A request that doesn't fit waits. Half-received requests could block one another for ever. So while no request is
    being answered, the one that has waited longest may exceed the budget until it is done.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._taken: dict[MemoryUser, int] = {}
        self._waiting: dict[MemoryUser, tuple[int, bool]] = {}
        self._answered: set[MemoryUser] = set()
        self._beyond: MemoryUser | None = None  # the one that may exceed the budget

    def take(self, user: MemoryUser, size: int, *, answered: bool = False) -> bool:
        """Reserves so many bytes in place of what the user has, and returns True.

        Returns False if they don't fit: the user keeps what it has, and `memory_granted` is called once they do.
        `answered`: the request is complete, and a thread is going to work on it.
        """
        used = self._used - self._taken.get(user, 0) + size
        if used > self._size and self._beyond is not user:
            if self._beyond is not None or self._answered:
                self._waiting[user] = size, answered
                return False
            self._beyond = user
        self._used = used
        self._taken[user] = size
        self._waiting.pop(user, None)
        if answered:
            self._answered.add(user)
        return True

    @property
    def waiting(self) -> int:
        """How many users wait for memory."""
        return len(self._waiting)

    def release(self, user: MemoryUser) -> None:
        """Returns all that a user has, and grants what fits now to those that wait. The user waits no more."""
        self._used -= self._taken.pop(user, 0)
        self._waiting.pop(user, None)
        self._answered.discard(user)
        if self._beyond is user:
            self._beyond = None
        for each, (size, answered) in list(self._waiting.items()):
            if each in self._waiting and self.take(each, size, answered=answered):
                each.memory_granted()

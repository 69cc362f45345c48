"""What protects messages after a login by SASL, whatever the mechanism."""

from typing import Protocol


class BadMessage(Exception):
    """A message was changed, repeated, left out or not encrypted, or the context has ended."""


class Protection(Protocol):
    """Wraps and unwraps messages. Not thread-safe: messages have an order."""

    max_bytes: int
    """Most bytes that `wrap` may be given at a time."""

    def wrap(self, data: bytes | memoryview) -> bytes:
        """Raises BadMessage."""

    def unwrap(self, data: bytes) -> bytes:
        """Raises BadMessage."""

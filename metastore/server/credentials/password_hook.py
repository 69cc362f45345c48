"""Passwords that a function of the operator's checks.

def check(user: str, password: str, peer: str) -> list[str] | bool:
    "The user's groups, or just whether the password is right."
"""

import importlib
from collections.abc import Callable
from typing import Any

from lake.protocol.errors import UserError
from metastore.server.credentials.bounded_calls import BoundedCalls
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked


class BadHook(UserError):
    """The function can't be imported, or is none."""


class PasswordHook:
    """Checks passwords with a function, each call within a time. Thread-safe."""

    def __init__(self, place: str, seconds: float) -> None:
        """`place`: `package.module:function`. Raises BadHook."""
        self._place = place
        self._function = _load(place)
        self._calls = BoundedCalls(place, "passwords can't be checked", seconds)

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. `peer`: the client's address. Raises Denied."""
        answer = self._ask(user, password, peer)
        if answer is None or answer is False:
            raise Denied("wrong user or password", f"{self._place} says no")
        groups = () if answer is True else answer
        if isinstance(groups, str) or not all(isinstance(group, str) for group in groups):
            raise Unavailable("passwords can't be checked", f"{self._place} returned {type(answer).__name__}")
        return checked(Identity(user, "plain", tuple(groups)))

    def known(self, user: str, password: str) -> Identity | None:
        """None: the function is asked each time."""
        return None

    def groups(self, user: str) -> tuple[str, ...]:
        """None are known of a user who doesn't log in."""
        return ()

    def _ask(self, user: str, password: str, peer: str) -> Any:
        def ask() -> Any:
            found = self._function(user, password, peer)
            return found if isinstance(found, bool) or found is None else list(found)

        return self._calls.call(ask)


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise BadHook(f"can't import password_hook {place}: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise BadHook(f"password_hook {place} is no function")
    return found  # type: ignore[no-any-return]

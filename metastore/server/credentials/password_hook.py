"""Passwords that a function of the operator's checks.

def check(user: str, password: str, peer: str) -> list[str] | bool:
    "The user's groups, or just whether the password is right."
"""

import importlib
import threading
from collections.abc import Callable
from typing import Any

import structlog

from metastore.errors import UserError
from metastore.server.credentials.identity import Denied, Identity, Unavailable, checked

MOST_AT_ONCE = 16
"""Calls of the function at the same time. One that hangs counts until it returns."""

log = structlog.get_logger(__name__)


class BadHook(UserError):
    """The function can't be imported, or is none."""


class PasswordHook:
    """Checks passwords with a function, each call within a time. Thread-safe."""

    def __init__(self, place: str, seconds: float) -> None:
        """`place`: `package.module:function`. Raises BadHook."""
        self._place = place
        self._seconds = seconds
        self._function = _load(place)
        self._slots = threading.Semaphore(MOST_AT_ONCE)

    def check(self, user: str, password: str, peer: str) -> Identity:
        """Who has this name and password. `peer`: the client's address. Raises Denied."""
        answer = self._ask(user, password, peer)
        if answer is None or answer is False:
            raise Denied("wrong user or password", f"{self._place} says no")
        groups = () if answer is True else answer
        if isinstance(groups, str) or not all(isinstance(group, str) for group in groups):
            raise Unavailable("passwords can't be checked", f"{self._place} returned {type(answer).__name__}")
        return checked(Identity(user, "plain", tuple(groups)))

    def groups(self, user: str) -> tuple[str, ...]:
        """None are known of a user who doesn't log in."""
        return ()

    def _ask(self, user: str, password: str, peer: str) -> Any:
        """Calls the function in a thread of its own: one that hangs can't be ended, but the login can."""
        if not self._slots.acquire(blocking=False):
            raise Unavailable("passwords can't be checked", f"{MOST_AT_ONCE} calls of {self._place} have not returned")
        answered = threading.Event()
        results: list[Any] = []

        def call() -> None:
            try:
                found = self._function(user, password, peer)
                results.append(found if isinstance(found, bool) or found is None else list(found))
            except BaseException as error:
                # Its text may hold the password.
                log.error("the password hook failed", hook=self._place, error=type(error).__name__)
            finally:
                self._slots.release()
                answered.set()

        threading.Thread(target=call, name="password hook", daemon=True).start()
        if not answered.wait(self._seconds):
            raise Unavailable("passwords can't be checked", f"{self._place} did not answer within {self._seconds:g} s")
        if not results:
            raise Unavailable("passwords can't be checked", f"{self._place} failed")
        return results[0]


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

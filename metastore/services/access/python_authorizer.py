"""An authorizer of the operator's, in Python: called with a time limit; no answer is a refusal.

    class Policy:
        def decide(self, caller, action, object):
            return Decision(caller.user == "alice", "only alice")

    def factory():
        return Policy()

`visible(caller, objects, action)` is optional, for answers with many objects; without it each object is decided on.
"""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

import structlog

from eventbus.outlets.listeners import BadListener, load
from lake.protocol.errors import UsageError
from metastore.services.access.caller import Caller
from metastore.services.access.rights import Action, Decision, Securable

T = TypeVar("T")

MOST_AT_ONCE = 16
"""Concurrent calls in a process. A call that hangs counts until it returns."""

log = structlog.get_logger(__name__)


class PythonAuthorizer:
    """Asks an object of the operator's. It fails closed."""

    def __init__(self, place: str, seconds: float) -> None:
        """`place`: `package.module:factory`; `seconds`: what one decision may take. Raises UsageError."""
        try:
            self._policy: Any = load(place)()
        except BadListener as error:
            raise UsageError(f"authorization: {error}".replace("listener", "authorizer")) from None
        except Exception as error:
            raise UsageError(f"authorization: {place} failed: {type(error).__name__}: {error}") from error
        if not callable(getattr(self._policy, "decide", None)):
            raise UsageError(f"authorization: what {place} returns has no method decide(caller, action, object)")
        self._place = place
        self._seconds = seconds
        self._slots = threading.Semaphore(MOST_AT_ONCE)

    def decide(self, caller: Caller, action: Action, object: Securable) -> Decision:
        """See `Authorizer`. A failure is a refusal."""
        return self.decide_all(caller, [(action, object)])[0]

    def decide_all(self, caller: Caller, wanted: Sequence[tuple[Action, Securable]]) -> list[Decision]:
        """See `Authorizer`: all of them together have the time of one decision."""

        def ask() -> list[Decision]:
            return [_checked(self._policy.decide(caller, action, object)) for action, object in wanted]

        found = self._limited(ask)
        if isinstance(found, str):
            return [Decision(False, found)] * len(wanted)
        return found

    def visible(self, caller: Caller, objects: Sequence[Securable], action: Action = Action.SEE) -> list[bool]:
        """See `Authorizer`. After a failure nothing is visible."""
        visible = getattr(self._policy, "visible", None)
        if visible is None:
            return [each.allowed for each in self.decide_all(caller, [(action, object) for object in objects])]
        most = len(objects) + 1  # an answer without an end is a wrong one
        found = self._limited(lambda: [each is True for each in islice(visible(caller, objects, action), most)])
        return found if isinstance(found, list) and len(found) == len(objects) else [False] * len(objects)

    def roles(self, caller: Caller) -> frozenset[str]:
        """See `Authorizer`: none."""
        return frozenset()

    def trouble(self) -> None:
        """See `Authorizer`: none that could be known."""

    def _limited(self, ask: Callable[[], T]) -> T | str:
        """What `ask` returns, or why it returned nothing in time. It runs in a thread of its own, which may hang."""
        until = time.monotonic() + self._seconds
        if not self._slots.acquire(timeout=self._seconds):
            return f"the authorizer {self._place} hangs"
        answered = threading.Event()
        found: list[T] = []

        def call() -> None:
            try:
                found.append(ask())
            except BaseException as error:
                log.error("the authorizer failed", authorizer=self._place, exc_info=error)
            finally:
                self._slots.release()
                answered.set()

        try:
            threading.Thread(target=call, name=f"authorizer {self._place}", daemon=True).start()
        except RuntimeError as error:  # no more threads
            self._slots.release()
            return f"the authorizer {self._place} can't be called: {error}"
        if not answered.wait(max(until - time.monotonic(), 0)):
            return f"the authorizer {self._place} did not answer within {self._seconds:g} s"
        return found[0] if found else f"the authorizer {self._place} failed"


def _checked(decision: Any) -> Decision:
    if not isinstance(decision, Decision) or not isinstance(decision.allowed, bool):
        raise TypeError(f"an authorizer returns a Decision, not {decision!r}")
    if not isinstance(decision.reason, str):  # it goes into the audit log
        raise TypeError(f"a Decision's reason is a text, not {decision.reason!r}")
    return decision

"""Waiting for what other threads, processes and servers do."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value], seconds: float = 30.0, what: str = "what a test waits for") -> Value:
    """Returns the condition's value once it is true. Raises AssertionError, naming `what`, after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
    return value

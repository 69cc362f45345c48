"""What tests do to processes."""

import psutil

from tests.support.waiting import wait_until


def suspend(process: psutil.Process, *, seconds: float = 30.0) -> None:
    """Stops a process, and waits until it has stopped: the signal doesn't keep it from what it does just now."""
    process.suspend()
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, seconds, f"{process} stops")

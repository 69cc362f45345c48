"""What a table management service may say of tables and jobs: texts and numbers that are stored, and their bounds."""

import math

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import JobRequest
from metastore.services.instant_rules import states as rules
from metastore.services.model import client_texts
from metastore.store.table_services.jobs import NewJob

ORPHANS = "orphans"
"""The removal of orphan files, which is no instant."""

ICEBERG = "iceberg"
"""The merging of log files for Iceberg's readers, which is no instant either."""

ACTIONS = (rules.COMPACTION, rules.CLUSTERING, rules.CLEAN, rules.PUBLISH, ORPHANS, ICEBERG)
"""What the table management service does to tables."""

MAX_REASON = 2_000
"""Characters of a reason. Longer ones are cut off."""

MAX_LOG = 20_000
"""Characters of a job's log, of which the last are kept."""

MAX_FIGURES = 20_000
"""Characters of a decision's figures."""

MAX_WINDOWS = 1_000
"""Characters of the windows in which a job may run."""

MAX_PRIORITY = 1_000_000
"""The greatest priority of a job, and with a minus the least."""

MAX_BYTES = 1 << 62
"""The greatest number of bytes that a job can be said to read."""


def check_action(action: str | None) -> str:
    """Checks the name of a table service. Raises InvalidOperationException."""
    if action not in ACTIONS:
        raise InvalidOperationException(f"{action!r} is no table service: they are {', '.join(ACTIONS)}")
    return action


def check_number(what: str, value: float | None) -> float | None:
    """Checks a gain or cost. Raises InvalidOperationException for one that isn't finite, or is negative."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InvalidOperationException(f"a {what} is a number from 0 on, not {value}")
    return value


def check_within(what: str, value: int | None, least: int, most: int) -> int:
    """Checks a whole number. Raises InvalidOperationException for one that is missing or out of its bounds."""
    if value is None or not least <= value <= most:
        raise InvalidOperationException(f"{what}: expected {least} to {most}, not {value}")
    return value


def check_text(what: str, text: str | None, most: int) -> str | None:
    """Checks the length of a text. Raises InvalidOperationException."""
    if text is not None and len(text) > most:
        raise InvalidOperationException(f"{what}: at most {most} characters, not {len(text)}")
    return text


def check_name(what: str, name: str | None) -> str:
    """Checks a name that is stored. Raises InvalidOperationException."""
    if not name or len(name) > client_texts.MAX_HINT:
        raise InvalidOperationException(f"{what}: expected 1 to {client_texts.MAX_HINT} characters")
    return name


def new_job(request: JobRequest) -> NewJob:
    """A job that is to be enqueued. Raises InvalidOperationException."""
    return NewJob(
        action=check_action(request.action),
        instant=None if request.instant is None else rules.check_timestamp(request.instant),
        reason=None if request.reason is None else request.reason[:MAX_REASON],
        gain=check_number("gain", request.gain),
        cost=check_number("cost", request.cost),
        bytes=None if request.bytes is None else check_within("bytes", request.bytes, 0, MAX_BYTES),
        priority=check_within("priority", request.priority or 0, -MAX_PRIORITY, MAX_PRIORITY),
        windows=check_text("windows", request.windows, MAX_WINDOWS),
        pool=None if request.pool is None else check_name("pool", request.pool).lower(),
    )

"""What the log says in a form that a program can look for: an object with `alarm`."""

import json
import logging

from lake.capture import metrics
from lake.capture.state import DatabaseState

logger = logging.getLogger(__name__)


def alarm(what: str, **fields: object) -> None:
    """Logs a warning."""
    logger.warning(json.dumps({"alarm": what, **fields}))


def note_trouble(state: DatabaseState, table: str, why: str) -> None:
    """Notes in the state that a table can't be read, and warns of it."""
    state.troubles[table] = why
    metrics.TROUBLED_TABLES.set(len(state.troubles))
    alarm("unreadable table", table=table, reason=why)

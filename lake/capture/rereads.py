"""Orders to read a table again: kept in a property of the raw table, so that whoever may alter it may give them, and
the server's log of calls has who did. The capture that runs, or the next one, carries them out."""

import json
from collections.abc import Collection
from typing import Final

from lake.capture.errors import CaptureError
from lake.capture.raw_table import DECISIONS
from lake.protocol.clock import now_ms
from lake.protocol.hive import MetaException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

ORDERS: Final = "capture.read-again"
"""The table's property: when each of the source's tables was last to be read again, in milliseconds since 1970."""

_ATTEMPTS = 5


def ordered(lake: LakeTable) -> dict[str, int]:
    """When tables were last to be read again, by their names. Raises CaptureError for an unreadable property."""
    text = (lake.describe().parameters or {}).get(ORDERS)
    try:
        return {str(table): int(at) for table, at in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        raise CaptureError(f"the property {ORDERS} of {lake.name} isn't readable: {(text or '')[:100]}") from None


def order(lake: LakeTable, tables: Collection[str]) -> None:
    """Orders that some tables are read again. Raises what the server raises for who may not alter the table."""
    for _ in range(_ATTEMPTS):
        known = ordered(lake)
        made = known | {each: max(now_ms(), known.get(each, 0) + 1) for each in tables}
        decisions = (lake.describe().parameters or {}).get(DECISIONS)
        expected = {}
        if decisions is not None:  # what others decide at the same time stays
            expected = {"expected_parameter_key": DECISIONS, "expected_parameter_value": decisions}
        try:
            keep_property(lake, ORDERS, json.dumps(made), expected)
        except MetaException:
            if (lake.describe().parameters or {}).get(DECISIONS) == decisions:
                raise
            continue
        if all(ordered(lake).get(each, 0) >= made[each] for each in tables):
            return
    raise CaptureError(f"others change the properties of {lake.name} at the same time: try again")

"""Orders to read a table again, which the capture that runs, or the next one, carries out."""

import json
from collections.abc import Collection

from lake.capture.errors import CaptureError
from lake.capture.raw_table import ORDERS
from lake.capture.said import ATTEMPTS, said, say
from lake.protocol.clock import now_ms
from lake.tables.lake import LakeTable


def ordered(lake: LakeTable) -> dict[str, int]:
    """When tables were last to be read again, by their names. Raises CaptureError for an unreadable property."""
    return _orders(lake, said(lake)[ORDERS])


def order(lake: LakeTable, tables: Collection[str]) -> None:
    """Orders that some tables are read again. Raises what the server raises for who may not alter the table."""
    for _ in range(ATTEMPTS):
        before = said(lake)
        known = _orders(lake, before[ORDERS])
        made = known | {each: max(now_ms(), known.get(each, 0) + 1) for each in tables}
        if say(lake, before, ORDERS, json.dumps(made)):
            return
    raise CaptureError(f"others change the properties of {lake.name} at the same time: try again")


def _orders(lake: LakeTable, text: str | None) -> dict[str, int]:
    try:
        return {str(table): int(at) for table, at in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        raise CaptureError(f"the property {ORDERS} of {lake.name} isn't readable: {(text or '')[:100]}") from None

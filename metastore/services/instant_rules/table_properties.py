"""Checks a table's timeline properties, before an instant begins."""

import re
from collections.abc import Mapping

from lake.protocol.hive import InvalidOperationException
from metastore.services.instant_rules.conflicts import Strategy
from metastore.services.instant_rules.schema_evolution import allowed_changes
from metastore.store.timeline.instants import ARCHIVED_DAYS

_DAYS = re.compile("[0-9]{1,6}")


def check_timeline_properties(parameters: Mapping[str, str]) -> None:
    """Raises InvalidOperationException, as a completion would, if a property has an invalid value."""
    Strategy.of_table(parameters)
    allowed_changes(parameters)
    days = parameters.get(ARCHIVED_DAYS)
    if days is not None and _DAYS.fullmatch(days) is None:
        raise InvalidOperationException(f"{ARCHIVED_DAYS} is {days[:100]!r}: expected a whole number of days")

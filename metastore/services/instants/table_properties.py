"""Checks a table's timeline properties, before an instant begins."""

from collections.abc import Mapping

from metastore.services.instants.conflicts import Strategy
from metastore.services.instants.schema_evolution import allowed_changes


def check_timeline_properties(parameters: Mapping[str, str]) -> None:
    """Raises InvalidOperationException, as a completion would, if a property has an invalid value."""
    Strategy.of_table(parameters)
    allowed_changes(parameters)

"""The properties of a table that say how its timeline is kept, looked at before anything depends on them."""

from collections.abc import Mapping

from metastore.services.instant_conflicts import Strategy
from metastore.services.lake_columns import allowed_changes


def check_timeline_properties(parameters: Mapping[str, str]) -> None:
    """Raises InvalidOperationException, with the words of a completion, if one would be refused for a bad value."""
    Strategy.of_table(parameters)
    allowed_changes(parameters)

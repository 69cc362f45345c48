"""The identity of a table in calls of Hive's interface, which name tables by their names alone."""

from typing import Final

EXPECTED_ID: Final = "expected_table_id"
"""The property of an environment context that holds the id of the table that the caller read. A call is refused if its
name has passed on to another table since."""

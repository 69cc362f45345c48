"""What calls of Hive's interface, which name tables by their names alone, expect of a table."""

from typing import Final

EXPECTED_ID: Final = "expected_table_id"
"""The property of an environment context that holds the id of the table that the caller read. A call is refused if its
name has passed on to another table since."""

EXPECTED_PARAMETER: Final = "expected_parameter."
"""The beginning of properties of an environment context that name a parameter and hold its value. An alteration is
refused if the table's parameter has another value by then, or none. Hive's own pair is for one parameter only."""

ABSENT_PARAMETER: Final = "absent_parameter."
"""Likewise, of a parameter that the table must not have. Their values say nothing."""

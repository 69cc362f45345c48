"""Keeps what must be remembered of a table in its properties."""

from collections.abc import Mapping

from lake.protocol.formats.table_identity import ABSENT_PARAMETER, EXPECTED_ID, EXPECTED_PARAMETER
from lake.protocol.hive import EnvironmentContext
from lake.tables.lake import LakeTable


def keep_property(
    lake: LakeTable, key: str, value: str | None, expected: Mapping[str, str | None] | None = None
) -> None:
    """Gives a table a property, or takes it away (None). `expected`: properties that the table must have until then,
    None for one that it must not have.

    Raises MetaException if the table is another one, or isn't as expected.
    """
    database, _, name = lake.name.partition(".")
    altered, table_id = lake.describe(), lake.id
    known = {**(altered.parameters or {}), **(expected or {}), key: value}
    # As expected rather than as read: between the two somebody may have changed it, and changed it back.
    altered.parameters = {each: text for each, text in known.items() if text is not None}
    context = {} if table_id is None else {EXPECTED_ID: str(table_id)}
    for each, text in (expected or {}).items():
        context[f"{ABSENT_PARAMETER if text is None else EXPECTED_PARAMETER}{each}"] = text or ""
    if (before := (expected or {}).get(key)) is not None:  # as servers know it that don't know the others
        context |= {"expected_parameter_key": key, "expected_parameter_value": before}
    sent = EnvironmentContext(context)
    lake.client.call(lambda thrift: thrift.alter_table_with_environment_context(database, name, altered, sent))

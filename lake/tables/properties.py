"""Keeps what must be remembered of a table in its properties."""

from collections.abc import Mapping

from lake.protocol.formats.table_identity import EXPECTED_ID
from lake.protocol.hive import EnvironmentContext
from lake.tables.lake import LakeTable


def keep_property(lake: LakeTable, key: str, value: str | None, expected: Mapping[str, str] | None = None) -> None:
    """Gives a table a property, or takes it away (None). `expected`: what Hive's call expects of the table, too.

    Raises MetaException if the table is another one, or isn't as expected.
    """
    database, _, name = lake.name.partition(".")
    altered, table_id = lake.describe(), lake.id
    others = {name: text for name, text in (altered.parameters or {}).items() if name != key}
    altered.parameters = others if value is None else {**others, key: value}
    context = EnvironmentContext({**(expected or {}), **({} if table_id is None else {EXPECTED_ID: str(table_id)})})
    lake.client.call(lambda thrift: thrift.alter_table_with_environment_context(database, name, altered, context))

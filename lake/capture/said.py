"""What people have said of the tables in a raw table: kept in its properties, so that whoever may alter it may say so,
and the server's log of calls has who did."""

from typing import Final, TypeAlias

from lake.capture.raw_table import AMENDMENTS, DECISIONS, ORDERS
from lake.protocol.hive import MetaException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

ATTEMPTS: Final = 5
"""How often a change is tried while others change something at the same time."""

Said: TypeAlias = dict[str, str | None]
"""The texts of the properties, by their names; None for one that isn't there."""


def said(lake: LakeTable) -> Said:
    """What is kept now, all of one moment."""
    kept = lake.describe().parameters or {}
    return {each: kept.get(each) for each in (DECISIONS, AMENDMENTS, ORDERS)}


def say(lake: LakeTable, before: Said, name: str, text: str) -> bool:
    """Keeps a text in a property if all is as it was `before`; False, and nothing, if somebody else has said something
    meanwhile. Raises what the server raises where the caller may not alter the table."""
    try:
        keep_property(lake, name, text, before)
    except MetaException:
        if said(lake) == before:
            raise
        return False
    return True

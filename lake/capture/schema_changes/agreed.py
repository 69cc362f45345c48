"""What of a table's columns is agreed on."""

from collections.abc import Iterable
from typing import NamedTuple

from lake.capture.errors import CaptureError
from lake.capture.schema_changes.model import ADDS, Action, Kind, SchemaChange
from lake.capture.schema_changes.policy import FILE, Decision, Policy


class Decided(NamedTuple):
    """A change, and what becomes of it."""

    change: SchemaChange
    decision: Decision


def decided(changes: Iterable[SchemaChange], policy: Policy) -> list[Decided]:
    """What a policy says of changes, in their order."""
    return [Decided(each, policy.decide(each)) for each in changes]


def held(changes: Iterable[Decided]) -> list[SchemaChange]:
    """The changes that wait for somebody to decide."""
    return [each.change for each in changes if each.decision.action is Action.HOLD]


def columns_without(changes: Iterable[Decided]) -> frozenset[str]:
    """The columns of a table, as they are called by now, that typed tables don't get: held, or ignored.

    `changes`: all of the table, in their order. Truncations count whatever is decided. Raises CaptureError if another
    change than a new column is held.
    """
    left_out: set[str] = set()
    for change, decision in changes:
        difference = change.difference
        if decision.action is Action.HOLD and difference.kind not in ADDS | {Kind.TRUNCATE}:
            raise CaptureError(
                f"a change of {change.table} is held ({decision.why}): {difference.said}, at {change.at}; decide on it"
                f" by metastore schema-changes approve, or in {FILE}"
            )
        if difference.old is not None:
            was_left_out = difference.old.name in left_out
            left_out.discard(difference.old.name)
            if difference.kind is Kind.RENAME and was_left_out and difference.new is not None:
                left_out.add(difference.new.name)
        if difference.kind in ADDS and difference.new is not None and decision.action is not Action.APPLY:
            left_out.add(difference.new.name)
    return frozenset(left_out)

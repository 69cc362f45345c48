"""Decisions on single changes: kept in a property of the raw table, so that whoever may alter it may decide, and the
server's log of calls has who did."""

import dataclasses
import json
from collections.abc import Mapping, Sequence

from lake.capture.errors import CaptureError
from lake.capture.raw_table import AMENDMENTS, DECISIONS
from lake.capture.schema_changes.agreed import Decided, decided
from lake.capture.schema_changes.amendments import Amendment, check, parsed, sent
from lake.capture.schema_changes.history import changes_of, history_of
from lake.capture.schema_changes.model import ADDS, Action
from lake.capture.schema_changes.policy import Policy
from lake.protocol.hive import MetaException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

_ATTEMPTS = 5


def with_decisions(policy: Policy, lake: LakeTable) -> Policy:
    """A policy with what was decided on changes in a raw table, and said of them. What the policy's file says of one
    counts more.

    Raises CaptureError for a property that isn't readable.
    """
    kept = lake.describe().parameters or {}
    decisions = _decisions(kept.get(DECISIONS))
    return dataclasses.replace(
        policy, decided={**decisions, **(policy.decided or {})}, amended=parsed(kept.get(AMENDMENTS))
    )


def amend(lake: LakeTable, policy: Policy, table: str, at: str, amendments: Sequence[Amendment]) -> list[Decided]:
    """Says what has become of columns by the changes of a table at a position, which stay held; gives these.

    Amendments take the place of earlier ones; none takes them back. Raises CaptureError if there are no such changes,
    if an earlier change of the table is held, if they aren't held, or if the amendments aren't about their columns;
    and what the server raises where the caller may not alter the table.
    """
    history = history_of(lake, table)
    for _ in range(_ATTEMPTS):
        known = with_decisions(policy, lake)
        chosen = _chosen(decided(history.changes, known), table, at)
        if all(each.decision.action is not Action.HOLD for each in chosen):
            raise CaptureError(f"the change of {table} at {at} isn't held: there is nothing to amend")
        number = next((n for n, each in enumerate(history.eras) if any(str(one.at) == at for one in each.changes)), 0)
        if not number:
            raise CaptureError(f"the change of {table} at {at} has left all columns as they were")
        check(amendments, history.eras[number - 1].columns, history.eras[number].columns)
        text = (lake.describe().parameters or {}).get(AMENDMENTS)
        made = {**parsed(text), (table, at): tuple(amendments)}
        if not amendments:
            del made[table, at]
        if parsed(text) != made:
            try:
                keep_property(lake, AMENDMENTS, sent(made), _expecting(AMENDMENTS, text))
            except MetaException:
                if (lake.describe().parameters or {}).get(AMENDMENTS) == text:
                    raise
                continue  # somebody else has said something meanwhile
        return chosen
    raise CaptureError(f"others decide on changes in {lake.name} at the same time: try again")


def decide(lake: LakeTable, policy: Policy, table: str, at: str, action: Action) -> list[Decided]:
    """Decides on the changes of a table at a position; gives them.

    Raises CaptureError if there are none, if an earlier change of the table is held, if they aren't to be decided, or
    if the file of the policy says something else; and what the server raises where the caller may not alter the table.
    """
    changes = changes_of(lake, table)
    for _ in range(_ATTEMPTS):
        text = _text_of(lake)
        decisions = _decisions(text)
        known = dataclasses.replace(policy, decided={**decisions, **(policy.decided or {})})
        chosen = _chosen(decided(changes, known), table, at)
        if action is Action.IGNORE and (others := [each for each in chosen if each.change.difference.kind not in ADDS]):
            raise CaptureError(
                f"only a new column can be left out, and the change of {table} at {at} is another one: "
                f"{others[0].change.difference.said}; approve it, or change the source back"
            )
        if (policy.decided or {}).get((table, at), action) is not action:
            raise CaptureError(f"the policy's file decides on the change of {table} at {at}: change it there")
        if decisions.get((table, at)) is not action:
            made = _text({**decisions, (table, at): action})
            try:
                keep_property(lake, DECISIONS, made, _expecting(DECISIONS, text))
            except MetaException:
                if _text_of(lake) == text:
                    raise
                continue  # somebody else has decided meanwhile
        known = dataclasses.replace(policy, decided={**decisions, (table, at): action})
        return decided([each.change for each in chosen], known)
    raise CaptureError(f"others decide on changes in {lake.name} at the same time: try again")


def _chosen(changes: list[Decided], table: str, at: str) -> list[Decided]:
    """The changes at a position. Raises CaptureError unless they may be decided."""
    chosen = [each for each in changes if str(each.change.at) == at]
    if not chosen:
        raise CaptureError(f"{table} has no change at {at}: metastore schema-changes list --all shows which there are")
    if (why := next((each.change.blocked for each in chosen if each.change.blocked), None)) is not None:
        raise CaptureError(why)
    for change, decision in changes:
        if change.at < chosen[0].change.at and decision.action is Action.HOLD:
            raise CaptureError(
                f"an earlier change of {table} is held, at {change.at}: {change.difference.said}; decide on that first"
            )
    return chosen


def _text_of(lake: LakeTable) -> str | None:
    return (lake.describe().parameters or {}).get(DECISIONS)


def _expecting(name: str, text: str | None) -> Mapping[str, str]:
    # A table of an earlier version has no such property, and Hive's call can't expect that.
    return {} if text is None else {"expected_parameter_key": name, "expected_parameter_value": text}


def _decisions(text: str | None) -> dict[tuple[str, str], Action]:
    try:
        found = json.loads(text or "{}")
        return {(table, at): Action(action) for table, made in found.items() for at, action in made.items()}
    except (ValueError, AttributeError):
        raise CaptureError(f"the property {DECISIONS} of the raw table isn't readable: {(text or '')[:100]}") from None


def _text(decisions: Mapping[tuple[str, str], Action]) -> str:
    found: dict[str, dict[str, str]] = {}
    for (table, at), action in sorted(decisions.items()):
        found.setdefault(table, {})[at] = action.value
    return json.dumps(found)

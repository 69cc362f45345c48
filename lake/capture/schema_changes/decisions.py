"""Decisions on single changes, and what somebody says of them. Of two people who speak of one change at the same time
the second is refused, and hears what the first has said."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from lake.capture.errors import CaptureError
from lake.capture.raw_table import AMENDMENTS, DECISIONS
from lake.capture.said import ATTEMPTS, Said, said, say
from lake.capture.schema_changes.agreed import Decided, decided
from lake.capture.schema_changes.amendments import Amendment, check, parsed, sent
from lake.capture.schema_changes.history import changes_of, history_of
from lake.capture.schema_changes.model import ADDS, Action
from lake.capture.schema_changes.policy import Policy
from lake.tables.lake import LakeTable


def with_decisions(policy: Policy, lake: LakeTable) -> Policy:
    """A policy with what was decided on changes in a raw table, and said of them. What the policy's file says of one
    counts more.

    Raises CaptureError for a property that isn't readable.
    """
    return _with(policy, said(lake))


def amend(lake: LakeTable, policy: Policy, table: str, at: str, amendments: Sequence[Amendment]) -> list[Decided]:
    """Says what has become of columns by the changes of a table at a position, which stay held; gives these.

    Amendments take the place of earlier ones; none takes them back. Raises CaptureError if there are no such changes,
    if an earlier change of the table is held, if they aren't held, if the amendments aren't about their columns, or if
    somebody else says something of these changes at the same time; and what the server raises where the caller may not
    alter the table.
    """
    history = history_of(lake, table)

    def said_now(before: Said) -> str | None:
        chosen = _chosen(decided(history.changes, _with(policy, before)), table, at)
        if all(each.decision.action is not Action.HOLD for each in chosen):
            raise CaptureError(f"the change of {table} at {at} isn't held: there is nothing to amend")
        number = next((n for n, each in enumerate(history.eras) if any(str(one.at) == at for one in each.changes)), 0)
        if not number:
            raise CaptureError(f"the change of {table} at {at} has left all columns as they were")
        check(amendments, history.eras[number - 1].columns, history.eras[number].columns)
        known = parsed(before[AMENDMENTS])
        made = {**known, (table, at): tuple(amendments)}
        if not amendments:
            del made[table, at]
        return None if made == known else sent(made)

    after = _change(lake, table, at, AMENDMENTS, said_now)
    return _chosen(decided(history.changes, _with(policy, after)), table, at)


def decide(lake: LakeTable, policy: Policy, table: str, at: str, action: Action) -> list[Decided]:
    """Decides on the changes of a table at a position; gives them.

    Raises CaptureError if there are none, if an earlier change of the table is held, if they aren't to be decided, if
    the file of the policy says something else, or if somebody else says something of these changes at the same time;
    and what the server raises where the caller may not alter the table.
    """
    changes = changes_of(lake, table)

    def decided_now(before: Said) -> str | None:
        chosen = _chosen(decided(changes, _with(policy, before)), table, at)
        if action is Action.IGNORE and (others := [each for each in chosen if each.change.difference.kind not in ADDS]):
            raise CaptureError(
                f"only a new column can be left out, and the change of {table} at {at} is another one: "
                f"{others[0].change.difference.said}; approve it, or change the source back"
            )
        if (policy.decided or {}).get((table, at), action) is not action:
            raise CaptureError(f"the policy's file decides on the change of {table} at {at}: change it there")
        known = _decisions(before[DECISIONS])
        return None if known.get((table, at)) is action else _text({**known, (table, at): action})

    after = _change(lake, table, at, DECISIONS, decided_now)
    return _chosen(decided(changes, _with(policy, after)), table, at)


def _change(lake: LakeTable, table: str, at: str, name: str, made: Callable[[Said], str | None]) -> Said:
    """Changes what is kept of the changes at a position; gives what is kept then.

    `name`: of the property. `made`: gives its new text by what is kept so far, None to leave it as it is. Raises
    CaptureError if somebody else says something of these changes meanwhile, and what `made` raises.
    """
    first: Said | None = None
    for _ in range(ATTEMPTS):
        before = said(lake)
        if first is not None and (others := _of_change(before, table, at)) != _of_change(first, table, at):
            with suppress(CaptureError):
                if made(before) is None:  # the same, or it was this call whose answer was lost
                    return before
            now = ", ".join(others) or "what was said is taken back"
            raise CaptureError(f"somebody else spoke of the change of {table} at {at} at the same time: {now}")
        first = first or before
        text = made(before)
        if text is None:
            return before
        if say(lake, before, name, text):
            return {**before, name: text}
    raise CaptureError(f"others decide on changes in {lake.name} at the same time: try again")


def _of_change(kept: Said, table: str, at: str) -> list[str]:
    """What was decided on changes, and said of them, in words."""
    action = _decisions(kept[DECISIONS]).get((table, at))
    return [*([] if action is None else [action.value]), *map(str, parsed(kept[AMENDMENTS]).get((table, at), ()))]


def _with(policy: Policy, kept: Said) -> Policy:
    decisions = _decisions(kept[DECISIONS])
    return dataclasses.replace(
        policy, decided={**decisions, **(policy.decided or {})}, amended=parsed(kept[AMENDMENTS])
    )


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

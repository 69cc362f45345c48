"""Completes micro-batches of streams: rows for partitions that are ready already go where the table says.

The metastore routes by `partition.late-rows`, and finds in the transaction of a completion which partitions have turned
ready since: then nothing has changed, and the rows are routed again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lake.client.lake_types import Completed, Completion, LateCounts, Route
from lake.protocol.errors import UserError
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode

if TYPE_CHECKING:
    from lake.tables.lake import Writing

logger = logging.getLogger(__name__)

MOST_REFUSALS = 20
"""How often a completion may be refused because further partitions turned ready, before the batch fails."""

WRITE, NEXT, REOPEN, DROP = "write", "next", "reopen", "drop"


class LateRowsRefused(UserError):
    """A batch can't be brought to an end; the message says why. Nothing of it was written."""


def _is_routed(properties: Mapping[str, str]) -> bool:
    """Whether partitions of a table with these properties turn ready later than they are added."""
    return properties.get(COMMIT_MODE, CommitMode.NONE).strip().lower() != CommitMode.NONE


def complete_batch(
    writing: "Writing",
    completion: Completion,
    properties: Mapping[str, str],
    rows: Callable[[], Mapping[str, int]] | None = None,
    *,
    remove: Callable[[Sequence[str]], None],
) -> tuple[Completed, Completion]:
    """Completes the instant of a micro-batch; returns what became of it, and what it brought after routing.

    `properties`: the table's. `rows`: the batch's rows by partition; by default those of its files. Of files that go to
    another partition, the names must be unique in the batch. `remove`: removes files by their URIs, for those of rows
    that are dropped, of which the metastore never learns. Raises LateRowsRefused, and what a completion raises.
    """
    replaces = bool(completion.replaced_partitions)
    if replaces or completion.batch is None:
        return writing.complete(completion), completion
    if not _is_routed(properties):
        completion = replace(completion, keeps_ready=True)
        done = writing.complete(completion)
        if done.already_ready:
            raise LateRowsRefused(
                f"{writing.table.name}: its partitions turn ready since this batch began: write the batch again"
            )
        return done, completion
    names = sorted({each.partition for each in completion.added if each.partition})
    counted = _rows_of(completion) if rows is None else rows()
    refused: list[str] = []
    for _ in range(MOST_REFUSALS):
        routes = {each.name: each for each in writing.table.route(names)} if names else {}
        routed = _routed(completion, routes, counted)
        done = writing.complete(routed)
        if not done.already_ready:
            _remove_left(writing, completion, routed, remove)
            return done, routed
        refused = [*done.already_ready]
    raise LateRowsRefused(
        f"{writing.table.name}: the batch was refused {MOST_REFUSALS} times, because partitions turned ready that it"
        f" wrote to; the last ones: {', '.join(refused)}"
    )


def _remove_left(
    writing: "Writing", written: Completion, completed: Completion, remove: Callable[[Sequence[str]], None]
) -> None:
    """Removes the files that a completion left out. What can't be removed is logged: nobody reads it."""
    kept = {each.path for each in (*completed.added, *(completed.changelog or ()))}
    left = [each.path for each in (*written.added, *(written.changelog or ())) if each.path not in kept]
    try:
        if left:
            remove([writing.directory + path.removeprefix(writing.path) for path in left])
    except Exception as error:  # whatever the storage raises: the rows are written
        logger.warning("can't clear up %s: %s", writing.directory, str(error).split("\n", 1)[0])


def _rows_of(completion: Completion) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in completion.added:
        found[each.partition] = found.get(each.partition, 0) + (each.rows or 0)
    return found


def _routed(completion: Completion, routes: Mapping[str, Route], rows: Mapping[str, int]) -> Completion:
    """A completion whose files go where their rows do."""
    counts = dict.fromkeys((WRITE, NEXT, REOPEN, DROP), 0)
    for name, route in routes.items():
        counts[route.action] += rows.get(name, 0)
    targets = {name: route.target for name, route in routes.items() if route.action != DROP}
    kept = [each for each in completion.added if not each.partition or each.partition in targets]
    changelog = completion.changelog
    if changelog is not None:
        changelog = [each for each in changelog if not each.partition or each.partition in targets]
    return replace(
        completion,
        added=[each._replace(partition=targets.get(each.partition, each.partition)) for each in kept],
        changelog=changelog,
        keeps_ready=True,
        reopen=sorted(name for name, route in routes.items() if route.action == REOPEN),
        late=LateCounts(counts[NEXT], counts[REOPEN], counts[DROP]),
    )

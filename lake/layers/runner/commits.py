"""Completes the instants of all layers of a refresh together, each with a record of what its rows come from."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lake.client.lake_types import Completion, Instant, StreamBatch
from lake.layers.errors import RefreshLost
from lake.layers.runner.records import STREAM, Read, Record
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import InstantConflict
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeClient, Writing

MAX_TOGETHER = 1_000
"""Instants that the metastore completes together."""


@dataclass(frozen=True)
class LayerCommit:
    """What a refresh writes into one layer. `layer` is its name. `record` is as yet without what it read of layers of
    the same refresh, which are in `from_layers`: their instants are known once they have begun."""

    layer: str
    action: Action
    record: Record
    from_layers: Sequence[str]


class NotWritten(Exception):
    """The rows of a layer couldn't be written, and so nothing was. The cause says why."""

    def __init__(self, layer: str) -> None:
        super().__init__(layer)
        self.layer = layer


def complete_together(
    client: LakeClient,
    commits: Sequence[LayerCommit],
    heartbeat_seconds: float,
    pause: Callable[[str], None],
    errors: tuple[type[Exception], ...] = (),
) -> Mapping[str, Instant]:
    """Completes the instants of all layers at one moment. Returns them by layer.

    `pause` is called with the name of each stage, for tests that kill the process there. `errors` are those of the
    engine that computes the rows. Raises RefreshLost if another runner, or another writer, was quicker, and NotWritten
    for rows that can't be computed, or don't fit their table; then nothing is written.
    """
    try:
        with ExitStack() as stack:
            writings: dict[str, Writing] = {}
            for each in commits:
                options = {"read_position": each.action.read_position, "heartbeat_seconds": heartbeat_seconds}
                writings[each.layer] = stack.enter_context(each.action.lake.writing(each.action.name, **options))  # type: ignore[arg-type]
            pause("begun")
            completions = [_completion(each, writings, errors) for each in commits]
            pause("written")
            done = client.complete(
                [
                    (each.action.lake, writings[each.layer].instant, completion)
                    for each, completion in zip(commits, completions, strict=True)
                ]
            )
            for each, found in zip(commits, done, strict=True):
                writings[each.layer].completed = found
            pause("completed")
    except InstantConflict as error:
        raise RefreshLost(f"another writer was quicker: {' '.join(str(error).split())}") from None
    except InvalidOperationException as error:
        if "batch" not in str(error):
            raise
        raise RefreshLost("another runner has refreshed some of the layers meanwhile") from None
    if any(each.batch_repeated for each in done):
        raise RefreshLost("another runner has refreshed the layers meanwhile")
    return {each.layer: found.instant for each, found in zip(commits, done, strict=True)}


def _completion(
    commit: LayerCommit, writings: Mapping[str, Writing], errors: tuple[type[Exception], ...]
) -> Completion:
    own = writings[commit.layer]
    read = {name: writings[name] for name in commit.from_layers}
    sources = {
        **commit.record.sources,
        **{name: Read(each.instant.timestamp, each.instant.action, each.table.id) for name, each in read.items()},
    }
    record = dataclasses.replace(commit.record, sources=sources)
    foreseen: tuple[type[Exception], ...] = (UnfitRows, *errors)
    try:
        completion = commit.action.write(own)
    except foreseen as error:
        raise NotWritten(commit.layer) from error
    return dataclasses.replace(completion, metadata=record.metadata(), batch=StreamBatch(STREAM, record.number))

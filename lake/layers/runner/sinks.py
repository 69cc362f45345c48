"""Delivers to sinks what their flows have appended.

A sink's rows are in a table of its name. Each instant of that table which changes rows is delivered as one batch, in
their order, after it has completed. A property of the table says up to where that is done. So a batch is delivered at
least once, and with the same rows and number each time.
"""

import logging
from collections.abc import Iterable, Mapping

from lake.layers.compiler.compiling import Compiled
from lake.layers.definitions.model import Sink
from lake.layers.errors import first_line
from lake.layers.runner.engine import Engine
from lake.layers.runner.records import writes_rows
from lake.protocol.errors import UserError
from lake.protocol.hive import MetaException
from lake.tables.lake import LakeTable
from lake.tables.properties import keep_property

logger = logging.getLogger(__name__)

DELIVERED = "pipeline.sink.delivered"
"""A property of sinks' tables: the position of the last instant that was delivered."""


class SinkFailed(UserError):
    """A sink didn't take a batch. The tables are up to date."""


def undelivered(lake: LakeTable) -> list[int]:
    """The positions of the instants of a sink's table whose rows the sink hasn't got, in order."""
    return _after(lake, _delivered(lake))


def deliver_all(engine: Engine, layers: Iterable[Compiled], lakes: Mapping[str, LakeTable]) -> dict[str, int]:
    """Delivers what sinks haven't got. Returns the number of batches by sink.

    Raises SinkFailed once all sinks had their turn. What was delivered stays so.
    """
    found: dict[str, int] = {}
    failed: list[SinkFailed] = []
    for each in layers:
        if each.node.sink is not None:
            try:
                found[each.name] = _deliver(engine, each, each.node.sink, lakes[each.name])
            except SinkFailed as error:
                failed.append(error)
    if failed:
        raise failed[0]
    return found


def _deliver(engine: Engine, made: Compiled, sink: Sink, lake: LakeTable) -> int:
    count, done = 0, _delivered(lake)
    if DELIVERED not in lake.schema().properties:  # somebody has unset it, and what isn't there can't be expected
        keep_property(lake, DELIVERED, str(done))
    for position in _after(lake, done):
        try:
            engine.deliver(sink, lake, position, [*made.layer.outputs])
        except Exception as error:
            raise SinkFailed(
                f"the sink {made.name} didn't take batch {position}, which the next refresh delivers again:"
                f" {first_line(error)}. ALTER TABLE {made.name} SET TBLPROPERTIES ('{DELIVERED}' = '{position}')"
                " leaves it out"
            ) from error
        if not _record_delivery(lake, done, position):
            logger.info("another runner delivers to %s, too", made.name)
            return count
        count, done = count + 1, position
    return count


def _after(lake: LakeTable, position: int) -> list[int]:
    return [
        each.instant.position
        for each in lake.changes(position, include_uncommitted=True)
        if each.instant.position is not None and writes_rows(each) and each.instant.undone_by is None
    ]


def _delivered(lake: LakeTable) -> int:
    found = lake.schema().properties.get(DELIVERED, "0")
    try:
        return int(found)
    except ValueError:
        raise SinkFailed(f"{DELIVERED} of {lake.name} is {found[:50]!r}, and that is no position") from None


def _record_delivery(lake: LakeTable, before: int, position: int) -> bool:
    """Keeps in a table up to where it is delivered; False if somebody else has changed that meanwhile."""
    try:
        keep_property(lake, DELIVERED, str(position), {DELIVERED: str(before)})
    except MetaException:
        if _delivered(lake) == before:
            raise
        return False
    return True

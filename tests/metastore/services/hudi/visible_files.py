"""Timelines that Hudi keeps in files, sent to a server by the calls of Hudi's metaserver."""

from collections.abc import Mapping
from pathlib import Path

from hudi import HudiTableBuilder

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hudi import TAction, THoodieInstant, TState
from metastore.warehouse.hudi_files import timeline as hudi_timeline


def seen_by_hudi_rs(location: Path) -> set[str]:
    """The files of the table's latest slices, in the eyes of an implementation that shares nothing with ours."""
    slices = HudiTableBuilder.from_base_uri(str(location)).build().get_file_slices()
    return {path for each in slices for path in (each.base_file_relative_path(), *each.log_files_relative_paths())}


def tell(
    client: ThriftClient,
    database: str,
    table: str,
    step: hudi_timeline.Step,
    contents: Mapping[str, bytes],
    states: dict[tuple[str, str], TState],
) -> None:
    """Brings an instant as far as its files are, from where it is."""
    each = step.instant
    begun = THoodieInstant(each.timestamp, _action(each.action), TState.REQUESTED)
    inflight = begun.replace(state=TState.INFLIGHT)
    state = states.get((each.timestamp, each.action))
    if state is None:  # a savepoint begins as inflight
        first = inflight if each.requested is None else begun
        client.createNewInstantWithTime(database, table, first, contents.get(each.requested or "", b""))
        state = TState(first.state)
    if each.inflight is not None and state is TState.REQUESTED:
        content = contents[each.inflight]
        client.transitionInstantState(database, table, begun, inflight, content)
        state = TState.INFLIGHT
    if step.completed and state is not TState.COMPLETED:
        done = THoodieInstant(each.timestamp, _action(each.completed_as or each.action), TState.COMPLETED)
        client.transitionInstantState(database, table, inflight, done, contents[each.completed or ""])
        state = TState.COMPLETED
    states[each.timestamp, each.action] = state


def _action(name: str) -> TAction:
    """As the protocol has it, which doesn't know all of them."""
    return {"clustering": TAction.REPLACECOMMIT}.get(name) or TAction[name.upper()]

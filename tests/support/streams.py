"""What a writer of a stream tells the metastore, without the files."""

from collections.abc import Mapping, Sequence

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import BeginInstantRequest, CompletedInstant, CompleteInstantRequest, LateRows, TableReference


def report(
    client: ThriftClient,
    table: TableReference,
    event_times: Mapping[str, int] | None = None,
    *,
    chain: str | None = None,
    reopen: Sequence[str] = (),
    late: LateRows | None = None,
) -> CompletedInstant:
    """Completes an instant that brings event times, by source, and opens partitions again for late rows."""
    begun = client.lake_begin_instant(BeginInstantRequest(table, "commit", state="inflight"))
    request = CompleteInstantRequest(
        table,
        begun.timestamp,
        "commit",
        chain=chain,
        eventTimes=dict(event_times or {}),
        keepsReady=True,
        reopen=list(reopen),
        late=late,
    )
    [done] = client.lake_complete_instants([request])
    assert not done.alreadyReady
    return done

"""Writes streams into partitioned tables, each batch exactly once, and reports how far event time has come.

    with BatchWriter("thrift://metastore:9083", "shop.orders", "orders-job") as writer:
        batch = writer.begin(17)
        if batch is not None:  # else an earlier run of batch 17 was accepted
            ...  # write files below batch.staging_location, each with rows of one partition alone
            batch.report({"shard-1": 1767225600000}, {"dt=2026-01-01/hr=00": Staged(["part-0.parquet"], rows=250)})

Until the report is accepted nobody sees the files. The partitions are those that rows belong to by their event time;
where one has turned ready meanwhile, the report sends its files where the table's late policy says.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from lake.client.reconnecting import Connect, ReconnectingClient, connect_to
from lake.client.references import reference
from lake.client.staging import Directories, FsspecDirectories, clear_earlier
from lake.protocol.connection.closing import Closing
from lake.protocol.formats.partition_names import values_in
from lake.protocol.formats.table_identity import EXPECTED_ID
from lake.protocol.hive import (
    AddPartitionsRequest,
    EnvironmentContext,
    GetTableRequest,
    MetaException,
    Partition,
    Table,
)
from lake.protocol.lake import (
    BeginBatchRequest,
    LateRows,
    ReportBatchRequest,
    ReportBatchResponse,
    RoutePartitionsRequest,
    StagedFile,
    TableReference,
    TableReplaced,
)

#: How often a report may be refused because further partitions turned ready, before the batch fails.
MOST_REJECTIONS = 20

NEXT, REOPEN, DROP = "next", "reopen", "drop"


class BatchError(Exception):
    """A batch can't be brought to an end; the message says why."""


@dataclass(frozen=True)
class Route:
    """Where rows of the partition `name` go: to `target`. `late`: it is ready already, or its time has passed.

    `action` is `write`, `next` (to a later partition), `reopen` (the partition is ready and is to be opened again) or
    `drop` (nowhere).
    """

    name: str
    target: str
    late: bool
    action: str


@dataclass(frozen=True)
class LateCounts:
    """Rows that went to a later partition, for which a ready partition was opened again, and that were left out."""

    rerouted: int = 0
    reopened: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class Staged:
    """What a batch staged for one partition: files as paths relative to the staging location, and their rows."""

    files: Sequence[str]
    rows: int


@dataclass(frozen=True)
class Outcome:
    """What became of a report that was accepted.

    `repeated`: an earlier report of the same batch was, and this one changed nothing; the other fields then tell what
    this one would have done. `late` are the batch's rows that did not go where they belong, or for which a ready
    partition was opened; `committed` the partitions that turned ready by the report; `watermark` the table's, in
    milliseconds since 1970 (None: not known yet); `rejections` how often it was refused before.
    """

    repeated: bool
    watermark: int | None
    committed: Sequence[str]
    late: LateCounts
    routes: Sequence[Route]
    rejections: int = 0


class BatchWriter(Closing):
    """One writer of one table, that which has the name when the first batch begins. Not thread-safe.

    Calls are repeated while the server or its database is away, for a while.
    """

    def __init__(
        self,
        connect: str | Connect,
        table: str | TableReference,
        writer: str,
        *,
        chain: str | None = None,
        retry_seconds: float = 300.0,
        directories: Directories | None = None,
    ) -> None:
        """`connect` is a URI `thrift://host:port` (several with commas) or makes a client. Nothing is called yet.

        `writer` names the query, the same after a restart, and no other one ever: a batch number that was accepted from
        it is never written again. `chain` names the copy of the stream, where several writers write the same data:
        whichever is ahead makes partitions ready (default: there is one). `retry_seconds` is how long a call is
        repeated that gets no answer. `directories` clears up the staging area (default: through fsspec).
        Raises ValueError for a table not of the form `database.table`.
        """
        self.table = reference(table)
        self.writer = writer
        self.chain = chain
        self._client = ReconnectingClient(
            connect_to(connect) if isinstance(connect, str) else connect, retry_seconds=retry_seconds
        )
        self._directories = directories or FsspecDirectories()

    def describe(self) -> Table:
        """The table as the metastore has it. Raises NoSuchObjectException if it isn't there."""
        request = GetTableRequest(dbName=self.table.database, tblName=self.table.table, catName=self.table.catalog)
        table: Table = self._client.call(lambda client: client.get_table_req(request)).table
        if self.table.id is not None and table.id != self.table.id:
            raise TableReplaced(
                f"{self.table.database}.{self.table.table} is another table (id {table.id}) than the one that batches"
                f" were written into (id {self.table.id}): that one was dropped or renamed",
                table.id,
            )
        return table

    def begin(self, batch: int) -> "Batch | None":
        """Begins a run of a batch; None if an earlier run was accepted, so that nothing is to be done.

        What earlier batches of the writer left in the staging area is removed. Raises NoSuchObjectException if the
        table isn't there, TableReplaced if it is another one than that of earlier batches, InvalidOperationException if
        it takes no batches.
        """
        request = BeginBatchRequest(table=self.table, writer=self.writer, batch=batch)
        begun = self._client.call(lambda client: client.lake_begin_batch(request))
        self.table = self.table.replace(id=begun.tableId or self.table.id)  # from now on it is this one
        if begun.accepted:
            return None
        clear_earlier(begun.stagingLocation, self._directories)
        return Batch(self, batch, begun.stagingLocation, begun.attempt, begun.watermark)

    def route(self, names: Sequence[str]) -> list[Route]:
        """Where rows that belong to the partitions of these names go at this moment, in the same order."""
        request = RoutePartitionsRequest(table=self.table, names=list(names))
        routes = self._client.call(lambda client: client.lake_route_partitions(request)).routes
        # Under the names of the request: the server spells them as Hive does.
        return [Route(name, route.target, route.late, route.action) for name, route in zip(names, routes, strict=True)]

    def add_partitions(self, names: Collection[str]) -> None:
        """Adds the partitions that are missing, stored like the table; uncommitted if the table says so.

        Raises TableReplaced if the table is another one than that of earlier batches.
        """
        storage = deepcopy(self.describe().sd)
        assert storage is not None
        storage.location = None  # the default: below the table's
        database, table, catalog = self.table.database, self.table.table, self.table.catalog
        parts = [
            Partition(values=values_in(name), dbName=database, tableName=table, sd=storage, catName=catalog)
            for name in names
        ]
        context = None if self.table.id is None else EnvironmentContext({EXPECTED_ID: str(self.table.id)})
        request = AddPartitionsRequest(
            dbName=database,
            tblName=table,
            catName=catalog,
            parts=parts,
            ifNotExists=True,
            needResult=False,
            environmentContext=context,
        )
        try:
            self._client.call(lambda client: client.add_partitions_req(request))
        except MetaException:
            self.describe()  # raises TableReplaced if that is the reason
            raise

    def send_report(self, request: ReportBatchRequest) -> ReportBatchResponse:
        response: ReportBatchResponse = self._client.call(lambda client: client.lake_report_batch(request))
        return response

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class Batch:
    """One run of a batch, from `BatchWriter.begin`: write files below `staging_location`, then `report` once.

    `watermark` is the table's when the batch began, in milliseconds since 1970 (None: not known yet).
    """

    writer: BatchWriter = field(repr=False)
    number: int
    staging_location: str
    attempt: str
    watermark: int | None

    def file_name(self, count: int, suffix: str = ".parquet") -> str:
        """A name for the batch's file number `count`, that no other batch of any writer gives."""
        return f"part-{self.writer.writer}-{self.number}-{count}{suffix}"

    def route(self, names: Sequence[str]) -> list[Route]:
        """As `BatchWriter.route`: for writers that need the targets before they write. `report` routes by itself."""
        return self.writer.route(names)

    def report(self, event_times: Mapping[str, int], staged: Mapping[str, Staged]) -> Outcome:
        """Ends the batch: its files join their partitions, and the table's watermark follows its event times.

        `event_times` is the smallest event time of the batch by source, in milliseconds since 1970; a source without
        rows is left out. `staged` says, by the name of the partition that the rows belong to, what was staged. Missing
        partitions are added. If a partition turns ready before the server has accepted the report, its files are routed
        anew and the report is repeated.

        Raises BatchError if partitions turn ready faster than they are routed, NoSuchObjectException if the table was
        dropped, InvalidOperationException if the server can't take the report.
        """
        rejections = 0
        while True:
            routes = self.writer.route(sorted(staged)) if staged else []
            targets = sorted({route.target for route in routes if route.action != DROP})
            if targets:
                self.writer.add_partitions(targets)
            late = _late(staged, routes)
            response = self.writer.send_report(self._request(event_times, staged, routes, late))
            if response.accepted:
                return Outcome(
                    repeated=bool(response.repeated),
                    watermark=response.watermark,
                    committed=response.committed or [],
                    late=late,
                    routes=routes,
                    rejections=rejections,
                )
            rejections += 1
            if rejections > MOST_REJECTIONS:
                raise BatchError(
                    f"batch {self.number} of {self.writer.writer} was refused {rejections} times, because partitions "
                    f"turned ready that it wrote to; the last ones: {', '.join(response.alreadyReady or [])}"
                )

    def _request(
        self,
        event_times: Mapping[str, int],
        staged: Mapping[str, Staged],
        routes: Sequence[Route],
        late: LateCounts,
    ) -> ReportBatchRequest:
        return ReportBatchRequest(
            table=self.writer.table,
            writer=self.writer.writer,
            batch=self.number,
            chain=self.writer.chain,
            attempt=self.attempt,
            eventTimes=dict(event_times),
            files=[
                StagedFile(path=path, partition=route.target)
                for route in routes
                if route.action != DROP
                for path in staged[route.name].files
            ],
            reopen=sorted({route.target for route in routes if route.action == REOPEN}),
            late=LateRows(rerouted=late.rerouted, reopened=late.reopened, dropped=late.dropped),
        )


def _late(staged: Mapping[str, Staged], routes: Sequence[Route]) -> LateCounts:
    def rows(action: str) -> int:
        return sum(staged[route.name].rows for route in routes if route.action == action)

    return LateCounts(rerouted=rows(NEXT), reopened=rows(REOPEN), dropped=rows(DROP))

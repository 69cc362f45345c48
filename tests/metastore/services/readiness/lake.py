"""A table that streaming writers write, as tests see it: through the services, with real files."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from lake.protocol.formats import partition_names
from lake.protocol.formats.commit_mode import COMMIT_MODE
from lake.protocol.hive import Partition
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    Instant,
    LateRows,
    PartitionState,
    Route,
    TableReference,
    Watermark,
)
from metastore.services.commit_flag.policy import TIMESTAMP_PATTERN
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.support import builders
from tests.support.target import local_path

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

HOURLY = {COMMIT_MODE: "event-time", TIMESTAMP_PATTERN: "$dt $hr:00:00", "sink.partition-commit.delay": "1 h"}


def at(text: str) -> int:
    """The milliseconds of `2026-01-31 07:00`, UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def hour(number: int) -> str:
    """The name of the partition of an hour, counted from the beginning of 2026."""
    return f"{datetime(2026, 1, 1) + timedelta(hours=number):dt=%Y-%m-%d/hr=%H}"


@dataclass(frozen=True)
class Begun:
    """An instant that a batch of a stream writes."""

    instant: Instant

    @property
    def place(self) -> str:
        """Where its files go."""
        return self.instant.directory or ""


class Report(NamedTuple):
    """What became of a batch: `already_ready` are partitions that refused it, `committed` those that turned."""

    accepted: bool
    repeated: bool
    already_ready: list[str]
    watermark: int | None
    committed: list[str]


class StreamTable:
    """A table partitioned by `dt` and `hr`, or by other keys, and its writers."""

    def __init__(
        self,
        metastore: Metastore,
        db: str,
        name: str = "t",
        *,
        keys: Sequence[str] = ("dt", "hr"),
        properties: Mapping[str, str] = HOURLY,
        external: bool = False,
    ) -> None:
        self.metastore, self.db, self.name = metastore, db, name
        build = builders.external_table if external else builders.table
        metastore.tables.create(build(db, name, keys=tuple(keys), parameters=dict(properties)), {})

    def through(self, metastore: Metastore) -> "StreamTable":
        """The same table, as another server sees it."""
        other = copy(self)
        other.metastore = metastore
        return other

    @property
    def reference(self) -> TableReference:
        return TableReference(database=self.db, table=self.name)

    @property
    def directory(self) -> Path:
        table = self.metastore.tables.get(self.db, self.name)
        assert table.sd is not None
        return local_path(table.sd.location or "")

    @property
    def version(self) -> int:
        with self.metastore.database.read() as tx:
            return self.metastore.tables.row(tx, self.db, self.name).version

    def change(self, **properties: str) -> None:
        """Sets properties, their names with `_` for `.` and `__` for `-`."""
        table = self.metastore.tables.get(self.db, self.name)
        assert table.parameters is not None
        table.parameters |= {key.replace("__", "-").replace("_", "."): value for key, value in properties.items()}
        self.metastore.tables.alter(self.db, self.name, table, {})

    def rename(self, name: str) -> None:
        table = self.metastore.tables.get(self.db, self.name)
        self.metastore.tables.alter(self.db, self.name, table.replace(tableName=name), {})
        self.name = name

    # --- partitions -------------------------------------------------------------------------------------------

    def partition(self, name: str) -> Partition:
        """A partition as a client sends it."""
        return builders.partition(self.db, self.name, *partition_names.parse_name(name).values())

    def add(self, *names: str) -> None:
        """Adds those that are missing."""
        new = [self.partition(name) for name in dict.fromkeys(names)]
        self.metastore.partitions.add(self.db, self.name, new, {}, if_not_exists=True)

    def get(self, name: str) -> Partition:
        return self.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, self.db, self.name, name)

    def states(self) -> dict[str, PartitionState]:
        found = self.metastore.partition_states.listing(Scope.UNCOMMITTED, self.reference, None, None, None)
        return {state.name or "": state for state in found}

    def ready(self) -> list[str]:
        return self.metastore.partition_reads.names(Scope.READY, self.db, self.name)

    def commit(self, *names: str, by: str | None = None) -> list[str]:
        turned, _ = self.metastore.partition_states.commit(self.reference, names, None, by)
        return turned

    def reopen(self, *names: str) -> list[str]:
        turned, _ = self.metastore.partition_states.reopen(self.reference, names, None)
        return turned

    def files(self, name: str) -> set[str]:
        """What is in a partition's directory."""
        partition = self.get(name)
        assert partition.sd is not None
        return {path.name for path in local_path(partition.sd.location or "").iterdir()}

    def all_files(self) -> dict[str, str]:
        """The text of every file that readers of the table's directory see, by its path; each text is another."""
        directory = self.directory
        paths = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
        seen = [path for path in paths if not any(step.startswith((".", "_")) for step in path.parts)]
        found = {str(path): (directory / path).read_text() for path in seen}
        assert len(set(found.values())) == len(found)
        return found

    def on_the_way(self) -> int:
        """How many files of accepted batches haven't arrived."""
        with self.metastore.database.read() as tx:
            table_id = self.metastore.tables.row(tx, self.db, self.name).id
            query = "SELECT count(*) FROM publications WHERE table_id = %s"
            return int(tx.exec_driver_sql(query, (table_id,)).scalar_one())

    # --- writers ----------------------------------------------------------------------------------------------

    def begin(self, batch: int = 0, writer: str = "w") -> Begun:
        """An instant for a batch of a stream. `batch` and `writer` are said when it ends."""
        request = BeginInstantRequest(table=self.reference, action="commit", state="inflight")
        return Begun(self.metastore.timeline.begin(request))

    def stage(self, begun: Begun, *paths: str) -> None:
        """Writes files into an instant's directory; each says its own path and instant."""
        for path in paths:
            file = local_path(begun.place) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{begun.instant.timestamp} {path}")

    def report(
        self,
        batch: int,
        begun: Begun | None = None,
        files: Mapping[str, str] | None = None,
        *,
        writer: str = "w",
        chain: str | None = None,
        reopen: Sequence[str] = (),
        late: LateRows | None = None,
        **event_times: int,
    ) -> Report:
        """Completes a batch; `files` says by path which partition each joins."""
        begun = begun or self.begin()
        instant = begun.instant
        directory = begun.place.partition("/.instants/")[2]
        added = [
            DataFile(name, path, instant.timestamp, f".instants/{directory}/{path}", size=10, rows=1, staged=True)
            for path, name in (files or {}).items()
        ]
        before = self.states()
        request = CompleteInstantRequest(
            self.reference,
            instant.timestamp,
            instant.action,
            added=added or None,
            chain=chain,
            eventTimes=event_times,
            stream=writer,
            batch=batch,
            keepsReady=True,
            reopen=list(reopen),
            late=late,
        )
        [done] = self.metastore.instant_completion.complete([request])
        turned = [
            name
            for name, state in self.states().items()
            if state.ready and (name not in before or before[name].commitTime != state.commitTime)
        ]
        ready = list(done.alreadyReady or ())
        watermark = self.watermark().watermark
        return Report(not ready, bool(done.batchRepeated), ready, watermark, [] if ready else turned)

    def write(self, batch: int, *names: str, writer: str = "w", **more: object) -> Report:
        """A whole batch with a file for each of some partitions, which are added if they are missing."""
        begun = self.begin(batch, writer)
        self.add(*names)
        files = {f"{writer}-{batch}-{number}.parquet": name for number, name in enumerate(names)}
        self.stage(begun, *files)
        return self.report(batch, begun, files, writer=writer, **more)  # type: ignore[arg-type]

    def route(self, *names: str) -> list[Route]:
        return self.metastore.routes.route(self.reference, names)

    def watermark(self) -> Watermark:
        return self.metastore.readiness.watermark(self.reference)

    def commit_due(self) -> list[str]:
        with self.metastore.database.read() as tx:
            table_id = self.metastore.tables.row(tx, self.db, self.name).id
        return self.metastore.readiness.commit_due(table_id)

"""A table with a timeline, as tests write and read it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lake.protocol.hive import Table
from lake.protocol.lake import (
    BeginInstantRequest,
    CompletedInstant,
    CompleteInstantRequest,
    DataFile,
    FileGroup,
    Instant,
    ListInstantsRequest,
    PlanCleanRequest,
    ReadChangesRequest,
    ReadChangesResponse,
    SnapshotRequest,
    SnapshotResponse,
    TableReference,
)
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.store.engine.names import TableName
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.timeline import instants
from tests.support import builders
from tests.support.target import local_path

DAY = "dt=2026-01-0{}".format
"""The name of a partition."""


def file(partition: str, group: str, slice: str, *, kind: str = "base", **fields: Any) -> DataFile:
    """A file of 100 bytes and 10 rows, named after what it belongs to."""
    version = fields.get("version")
    suffix = f".{version}.log" if kind == "log" else ".parquet"
    columns = "".join(fields.get("columns") or ())
    path = fields.pop("path", f"{partition or '.'}/{group}_{slice}{columns}{suffix}".removeprefix("./"))
    fields.setdefault("size", 100)
    fields.setdefault("rows", 10)
    return DataFile(partition=partition, fileGroup=group, slice=slice, path=path, kind=kind, **fields)


class LakeTable:
    """Shorthands; whatever they don't do is done with `reference`."""

    def __init__(
        self,
        metastore: Metastore,
        db: str,
        name: str = "t",
        *,
        keys: tuple[str, ...] = ("dt",),
        parameters: dict[str, str] | None = None,
        **fields: Any,
    ) -> None:
        self.metastore = metastore
        self.db, self.name = db, name
        metastore.tables.create(builders.table(db, name, keys=keys, parameters=parameters or {}, **fields), {})
        self.reference = TableReference(database=db, table=name)

    def on(self, metastore: Metastore) -> "LakeTable":
        """The same table by another server."""
        other = object.__new__(LakeTable)
        other.__dict__.update(self.__dict__, metastore=metastore)
        return other

    @property
    def hive(self) -> Table:
        return self.metastore.tables.get(self.db, self.name)

    @property
    def directory(self) -> Path:
        assert self.hive.sd is not None
        return local_path(self.hive.sd.location or "")

    def begin(self, action: str = "commit", timestamp: str | None = None, **fields: Any) -> Instant:
        """An instant that is inflight."""
        fields.setdefault("state", "inflight")
        return self.metastore.timeline.begin(
            BeginInstantRequest(table=self.reference, action=action, timestamp=timestamp, **fields)
        )

    def request(self, instant: Instant, *added: DataFile, **fields: Any) -> CompleteInstantRequest:
        return CompleteInstantRequest(
            table=self.reference,
            timestamp=instant.timestamp,
            action=instant.action,
            added=list(added) or None,
            **fields,
        )

    def complete(self, instant: Instant, *added: DataFile, **fields: Any) -> CompletedInstant:
        return self.metastore.instant_completion.complete([self.request(instant, *added, **fields)])[0]

    def commit(self, *groups: str, action: str = "commit", partition: str = DAY(1), **fields: Any) -> CompletedInstant:
        """Begins and completes an instant that writes a base file to each of these file groups of a partition."""
        instant = self.begin(action)
        return self.complete(instant, *(file(partition, each, instant.timestamp) for each in groups), **fields)

    def snapshot(self, scope: Scope = Scope.READY, **fields: Any) -> SnapshotResponse:
        return self.metastore.file_snapshots.read(scope, SnapshotRequest(table=self.reference, **fields))

    def paths(self, **fields: Any) -> list[str]:
        """The files of a snapshot."""
        return [each.path or "" for each in self.snapshot(**fields).files or ()]

    def changes(self, after: int, up_to: int | None = None, **fields: Any) -> ReadChangesResponse:
        return self.metastore.file_snapshots.changes(
            Scope.READY, ReadChangesRequest(table=self.reference, after=after, upTo=up_to, **fields)
        )

    def instants(self, **fields: Any) -> list[Instant]:
        return self.metastore.timeline_queries.listing(ListInstantsRequest(table=self.reference, **fields))

    def keys(self, **fields: Any) -> list[tuple[str, str]]:
        """The instants as (action, state)."""
        return [(each.action or "", each.state or "") for each in self.instants(**fields)]

    def clean_plan(self, **fields: Any) -> list[str]:
        plan = self.metastore.file_snapshots.plan_clean(PlanCleanRequest(table=self.reference, **fields))
        return [each.path or "" for each in plan]

    def clean(self, paths: Sequence[str]) -> CompletedInstant:
        return self.complete(self.begin("clean"), cleanedPaths=list(paths))

    def delete_files(self) -> None:
        """Runs the leader tasks of every second."""
        self.metastore.file_deletions.run()

    def group(self, name: str, partition: str = DAY(1)) -> FileGroup:
        return FileGroup(partition, name)

    def hive_partitions(self) -> dict[str, dict[str, str]]:
        """The partitions in Hive's view, with their counts; those that are uncommitted, too."""
        with self.metastore.database.read() as tx:
            row = self.metastore.tables.row(tx, self.db, self.name)
            names = partitions.names(tx, Selection(row.id))
        found = {}
        for name in names:
            value = self.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, self.db, self.name, name)
            parameters = value.parameters or {}
            found[name] = {
                key: parameters[key] for key in ("numFiles", "totalSize", "numRows", "commit") if key in parameters
            }
        return found

    def kept(self) -> tuple[object, ...]:
        """Everything that a refused call must leave as it was."""
        with self.metastore.database.read() as tx:
            row = self.metastore.tables.row(tx, self.db, self.name)
            line = instants.timeline(tx, row.id)
        states = [(each.timestamp, each.action, each.state) for each in self.instants(includeArchived=True)]
        return line.position, states, self.paths(scope=Scope.UNCOMMITTED), self.hive_partitions(), row.version

    @property
    def full_name(self) -> TableName:
        return TableName("hive", self.db, self.name)

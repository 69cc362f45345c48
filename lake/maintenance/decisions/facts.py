"""What is known of a table when its services are decided. Times are in milliseconds since 1970, sizes in bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lake.protocol import lake as wire
from lake.protocol.formats.spark_schema import PROVIDER


class Plan(NamedTuple):
    """A plan that isn't completed. `job_state` and `job_finished_at` are of the latest job that was to run it."""

    timestamp: str
    action: str
    state: str
    requested_at: int
    file_groups: int
    job_state: str | None = None
    job_finished_at: int | None = None


class Job(NamedTuple):
    """A job of the table: pending, running, or how it ended."""

    id: int
    action: str
    state: str
    instant: str | None = None
    outcome: str | None = None
    bytes: int | None = None
    cost: float | None = None
    finished_at: int | None = None
    not_before: int | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A table at a position, as `ServiceFacts` in thrift_idl/lake_metastore.thrift says.

    `reference`: the table by its id, too, so that what is decided is stored for this one.
    """

    table: str
    reference: wire.TableReference = field(default_factory=wire.TableReference)
    now: int
    position: int
    parameters: Mapping[str, str]
    database_parameters: Mapping[str, str]
    input_format: str = ""
    location: str = ""
    keyed: bool = False
    paused: str | None = None
    resumed_at: int | None = None
    log_files: int = 0
    log_bytes: int = 0
    log_groups: int = 0
    merged_bytes: int = 0
    oldest_log_at: int | None = None
    delta_commits: int = 0
    small_files: int = 0
    small_bytes: int = 0
    small_become: int = 0
    unordered_files: int = 0
    unordered_bytes: int = 0
    base_files: int = 0
    base_bytes: int = 0
    clean_files: int = 0
    clean_bytes: int = 0
    oldest_superseded_at: int | None = None
    unpublished_partitions: int = 0
    unpublished_commits: int = 0
    orphans_removed_at: int | None = None
    shared: bool | None = None
    scans: int = 0
    scanned_files: int = 0
    scanned_delete_files: int = 0
    plans: Sequence[Plan] = ()
    jobs: Sequence[Job] = ()

    @classmethod
    def of(cls, given: wire.ServiceFacts) -> "Facts":
        named = given.table or wire.TableReference()
        return cls(
            table=f"{named.database}.{named.table}",
            reference=named,
            now=given.now or 0,
            position=given.position or 0,
            parameters=given.parameters or {},
            database_parameters=given.databaseParameters or {},
            input_format=given.inputFormat or "",
            location=given.location or "",
            keyed=bool(given.keyed),
            paused=given.paused,
            resumed_at=given.resumedAt,
            log_files=given.logFiles or 0,
            log_bytes=given.logBytes or 0,
            log_groups=given.logGroups or 0,
            merged_bytes=given.mergedBytes or 0,
            oldest_log_at=given.oldestLogAt,
            delta_commits=given.deltaCommits or 0,
            small_files=given.smallFiles or 0,
            small_bytes=given.smallBytes or 0,
            small_become=given.smallBecome or 0,
            unordered_files=given.unorderedFiles or 0,
            unordered_bytes=given.unorderedBytes or 0,
            base_files=given.baseFiles or 0,
            base_bytes=given.baseBytes or 0,
            clean_files=given.cleanFiles or 0,
            clean_bytes=given.cleanBytes or 0,
            oldest_superseded_at=given.oldestSupersededAt,
            unpublished_partitions=given.unpublishedPartitions or 0,
            unpublished_commits=given.unpublishedCommits or 0,
            orphans_removed_at=given.orphansRemovedAt,
            shared=given.shared,
            scans=(given.engines and given.engines.scans) or 0,
            scanned_files=(given.engines and given.engines.files) or 0,
            scanned_delete_files=(given.engines and given.engines.deleteFiles) or 0,
            plans=[_plan(each) for each in given.plans or ()],
            jobs=[_job(each) for each in given.jobs or ()],
        )

    @property
    def stored_as(self) -> str:
        """What the table says its files are."""
        return self.parameters.get(PROVIDER) or self.input_format

    @property
    def is_ours(self) -> bool:
        """Whether the table's files are Parquet, written by nobody who has table services of its own."""
        kinds = f"{self.stored_as} {self.input_format}".lower()
        return "parquet" in kinds and "hudi" not in kinds and "hoodie" not in kinds


def _plan(given: wire.PendingPlan) -> Plan:
    return Plan(
        given.timestamp or "",
        given.action or "",
        given.state or "",
        given.requestedAt or 0,
        given.fileGroups or 0,
        given.jobState,
        given.jobFinishedAt,
    )


def _job(given: wire.ServiceJob) -> Job:
    return Job(
        given.id or 0,
        given.action or "",
        given.state or "",
        given.instant,
        given.outcome,
        given.bytes,
        given.cost,
        given.finishedAt,
        given.notBefore,
    )

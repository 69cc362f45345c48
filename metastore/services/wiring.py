"""The composition root: `Metastore.open` creates every service, with one factory function per package."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Self, TypedDict

from eventbus.log.sequencer import Sequencer
from eventbus.outlets.pre_events import PreEvents
from metastore.services.access.cedar_policy import CedarPolicy
from metastore.services.access.control import AccessControl
from metastore.services.access.delegation_tokens import DelegationTokenService
from metastore.services.access.issued_tokens import IssuedTokenService, PasswordVersion
from metastore.services.access.locations import AllowedLocations, AllowedRoot
from metastore.services.access.places import Places
from metastore.services.access.privileges import PrivilegeService
from metastore.services.access.python_authorizer import PythonAuthorizer
from metastore.services.access.repeated_requests import RepeatedRequests
from metastore.services.access.rights import Authorizer
from metastore.services.access.roles import RoleService
from metastore.services.access.sql_standard import SqlStandard
from metastore.services.access.storage import StoragePermissions
from metastore.services.catalog.catalogs import CatalogService
from metastore.services.catalog.data_connectors import DataConnectorService
from metastore.services.catalog.databases import DatabaseService
from metastore.services.catalog.functions import FunctionService
from metastore.services.catalog.procedures import ProcedureService
from metastore.services.commit_flag.transitions import Commits
from metastore.services.events.recorder import Events
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.hudi.importer import HudiImport
from metastore.services.hudi.tables import HudiTables
from metastore.services.hudi.timeline import HudiTimeline
from metastore.services.instant_rules.readiness_changes import ReadinessChanges
from metastore.services.maintenance.cache_invalidation import ChangeNotes
from metastore.services.maintenance.file_deletions import FileDeletions
from metastore.services.maintenance.housekeeping import EventRetention, Housekeeping
from metastore.services.maintenance.pending_work import PendingWork
from metastore.services.maintenance.server_info import ServerInfo
from metastore.services.migration.followed import FollowedSources
from metastore.services.migration.importer import ImportService
from metastore.services.partition.exchange import PartitionExchange
from metastore.services.partition.reads import PartitionReads
from metastore.services.partition.writes import PartitionService
from metastore.services.readiness.late_rows import Routes
from metastore.services.readiness.partition_states import PartitionStates
from metastore.services.readiness.service import ReadinessService
from metastore.services.registry.engine_reports import EngineReports
from metastore.services.registry.resource_plans import ResourcePlanService
from metastore.services.registry.scheduled_queries import ScheduledQueryService
from metastore.services.registry.schema_registry import SchemaRegistry
from metastore.services.registry.types import TypeService
from metastore.services.snapshot.reader_leases import ReaderLeases
from metastore.services.snapshot.service import FileSnapshots
from metastore.services.statistics.service import StatisticsService
from metastore.services.subscriptions.groups import EventMembers
from metastore.services.subscriptions.hive_notifications import Notifications
from metastore.services.subscriptions.log_reader import EventReads
from metastore.services.table.constraints import ConstraintService
from metastore.services.table.indexes import IndexService
from metastore.services.table.service import TableService
from metastore.services.table_services.looks import TableLooks
from metastore.services.table_services.queue import JobQueue
from metastore.services.timeline.commit import InstantCompletion
from metastore.services.timeline.hive_sync import HiveView
from metastore.services.timeline.orphan_files import OrphanFiles
from metastore.services.timeline.publishing import Publishing
from metastore.services.timeline.queries import TimelineQueries
from metastore.services.timeline.service import TimelineService
from metastore.services.timeline.staging import InstantFiles
from metastore.services.timeline.sweeper import TimelineSweeper
from metastore.services.transactions.compactions import CompactionService
from metastore.services.transactions.locks import LockService
from metastore.services.transactions.materializations import MaterializationService
from metastore.services.transactions.transactions import TransactionService
from metastore.services.transactions.write_ids import WriteIdService
from metastore.settings import Settings
from metastore.store import Database, migrations
from metastore.warehouse import Warehouse


class _Access(TypedDict):
    access_control: AccessControl | None
    privileges: PrivilegeService
    roles: RoleService
    delegation_tokens: DelegationTokenService
    issued_tokens: IssuedTokenService
    repeated_requests: RepeatedRequests


class _Catalog(TypedDict):
    catalogs: CatalogService
    databases: DatabaseService
    data_connectors: DataConnectorService
    functions: FunctionService
    procedures: ProcedureService


class _Table(TypedDict):
    tables: TableService
    indexes: IndexService
    constraints: ConstraintService


class _Partition(TypedDict):
    partitions: PartitionService
    partition_reads: PartitionReads
    partition_exchange: PartitionExchange


class _Readiness(TypedDict):
    readiness: ReadinessService
    routes: Routes
    partition_states: PartitionStates


class _Timeline(TypedDict):
    timeline: TimelineService
    timeline_queries: TimelineQueries
    timeline_sweeper: TimelineSweeper
    instant_completion: InstantCompletion
    file_snapshots: FileSnapshots
    orphan_files: OrphanFiles
    file_deletions: FileDeletions
    reader_leases: ReaderLeases


class _TableServices(TypedDict):
    table_looks: TableLooks
    job_queue: JobQueue


class _Hudi(TypedDict):
    hudi_import: HudiImport
    hudi_tables: HudiTables
    hudi_timeline: HudiTimeline


class _Subscriptions(TypedDict):
    event_reads: EventReads
    event_members: EventMembers
    notifications: Notifications


class _Transactions(TypedDict):
    transactions: TransactionService
    write_ids: WriteIdService
    locks: LockService
    compactions: CompactionService
    materializations: MaterializationService


class _Registry(TypedDict):
    types: TypeService
    schema_registry: SchemaRegistry
    resource_plans: ResourcePlanService
    scheduled_queries: ScheduledQueryService
    engine_reports: EngineReports


@dataclass(frozen=True, slots=True)
class Metastore:
    """All services over one database and one warehouse. Safe to use from several threads."""

    database: Database
    catalogs: CatalogService
    databases: DatabaseService
    tables: TableService
    partitions: PartitionService
    partition_exchange: PartitionExchange
    partition_reads: PartitionReads
    partition_states: PartitionStates
    readiness: ReadinessService
    routes: Routes
    timeline: TimelineService
    timeline_queries: TimelineQueries
    timeline_sweeper: TimelineSweeper
    instant_completion: InstantCompletion
    file_snapshots: FileSnapshots
    orphan_files: OrphanFiles
    reader_leases: ReaderLeases
    table_looks: TableLooks
    job_queue: JobQueue
    hudi_import: HudiImport
    hudi_tables: HudiTables
    hudi_timeline: HudiTimeline
    imports: ImportService
    followed_sources: FollowedSources
    statistics: StatisticsService
    functions: FunctionService
    constraints: ConstraintService
    access_control: AccessControl | None
    privileges: PrivilegeService
    roles: RoleService
    transactions: TransactionService
    write_ids: WriteIdService
    locks: LockService
    compactions: CompactionService
    materializations: MaterializationService
    types: TypeService
    indexes: IndexService
    schema_registry: SchemaRegistry
    data_connectors: DataConnectorService
    procedures: ProcedureService
    delegation_tokens: DelegationTokenService
    issued_tokens: IssuedTokenService
    repeated_requests: RepeatedRequests
    resource_plans: ResourcePlanService
    scheduled_queries: ScheduledQueryService
    engine_reports: EngineReports
    sequencer: Sequencer
    event_reads: EventReads
    event_members: EventMembers
    notifications: Notifications
    change_notes: ChangeNotes
    file_deletions: FileDeletions
    pending_work: PendingWork
    housekeeping: Housekeeping
    server_info: ServerInfo

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        open_connections: Callable[[], int] = lambda: 0,
        pool_waited: Callable[[float], None] | None = None,
        password_version: PasswordVersion = lambda user: None,
    ) -> Self:
        """Creates all services, and the default catalog and database if they don't exist.

        `settings.database_url` must be set, also for the embedded database. `open_connections`: returns how many
        clients are connected. `pool_waited`: called with the seconds that a transaction waited for a connection.
        `password_version`: which version of a password a user has now; issued tokens end with it.
        """
        parts = _parts(settings, pool_waited)
        access = _access(parts, password_version)
        catalog = _catalog(parts)
        table = _table(parts)
        partition = _partition(parts, table)
        readiness = _readiness(parts, table, partition)
        timeline = _timeline(parts, table, readiness)
        services = _table_services(parts, table)
        transactions = _transactions(parts)
        registry = _registry(parts)
        change_notes = ChangeNotes(parts.database)
        metastore = cls(
            database=parts.database,
            sequencer=parts.sequencer,
            imports=ImportService(parts.database, parts.warehouse, parts.mover, parts.events, parts.deletable),
            followed_sources=FollowedSources(parts.database),
            statistics=StatisticsService(parts.database, parts.events),
            change_notes=change_notes,
            housekeeping=_housekeeping(parts, access, timeline, services, transactions, registry, change_notes),
            pending_work=PendingWork(parts.database),
            server_info=ServerInfo(parts.database, settings, open_connections, _trouble_of(access["access_control"])),
            **access,
            **catalog,
            **table,
            **partition,
            **readiness,
            **timeline,
            **services,
            **_hudi(parts, catalog, table, timeline),
            **_subscriptions(parts, table),
            **transactions,
            **registry,
        )
        metastore.catalogs.bootstrap()
        metastore.change_notes.begin()
        metastore.roles.bootstrap()
        metastore.housekeeping.notice_restore()
        return metastore

    def close(self) -> None:
        """Closes all connections to the database."""
        self.database.close()


class _Parts(NamedTuple):
    """The objects that services of several packages share."""

    settings: Settings
    database: Database
    warehouse: Warehouse
    sequencer: Sequencer
    events: Events
    mover: Mover
    publisher: Publisher
    commits: Commits
    deletable: Deletable


def _parts(settings: Settings, pool_waited: Callable[[float], None] | None) -> _Parts:
    assert settings.database_url is not None
    database = Database(
        settings.database_url,
        pool_size=settings.database_pool_size,
        statement_timeout=settings.request_timeout_seconds,
        application_name=migrations.application_name(),
        waited=pool_waited,
    )
    warehouse = Warehouse(settings.warehouse_dir, settings.warehouse_external_dir, delete_roots=settings.delete_roots)
    sequencer = Sequencer(database.at_once)
    events = Events(sequencer.wake, PreEvents.load(settings.pre_event_listeners, settings.pre_event_seconds))
    deletable = Deletable(warehouse)
    mover = Mover(database, warehouse, deletable)
    publisher = Publisher(database, warehouse)
    commits = Commits(warehouse, mover, publisher, deletable, events, ReadinessChanges(events))
    return _Parts(settings, database, warehouse, sequencer, events, mover, publisher, commits, deletable)


def _access(parts: _Parts, password_version: PasswordVersion) -> _Access:
    return _Access(
        access_control=_access_control(parts),
        privileges=PrivilegeService(parts.database),
        roles=RoleService(parts.database),
        delegation_tokens=DelegationTokenService(parts.database),
        issued_tokens=IssuedTokenService(
            parts.database,
            parts.settings.proxy_users,
            enabled="token" in parts.settings.authentication,
            password_version=password_version,
        ),
        repeated_requests=RepeatedRequests(parts.database),
    )


def _trouble_of(control: AccessControl | None) -> Callable[[], str | None]:
    return (lambda: None) if control is None else control.authorizer.trouble


def _allowed(settings: Settings) -> AllowedLocations:
    return AllowedLocations([AllowedRoot.parse(each) for each in settings.allowed_locations])


def _access_control(parts: _Parts) -> AccessControl | None:
    """None if everybody may do everything. Raises UsageError for an authorizer that can't be made."""
    settings = parts.settings
    if settings.authorization == "none":
        return None
    authorizer: Authorizer
    if settings.authorization == "sql-standard":
        authorizer = SqlStandard(parts.database)
    elif settings.authorization == "storage":
        authorizer = StoragePermissions(parts.database, parts.warehouse)
    elif settings.authorization == "policy":
        assert settings.policy_file is not None, "the settings see to that"
        authorizer = CedarPolicy(parts.database, settings.policy_file)
    else:
        place = settings.authorization.removeprefix("python:")
        authorizer = PythonAuthorizer(place, settings.authorization_seconds)
    places = Places(parts.warehouse, _allowed(settings), confined=settings.only_allowed_locations)
    return AccessControl(
        authorizer,
        places,
        frozenset(settings.admins),
        settings.trust_unproven_users,
        by_directories=settings.authorization == "storage",
    )


def _catalog(parts: _Parts) -> _Catalog:
    database, warehouse, events = parts.database, parts.warehouse, parts.events
    return _Catalog(
        catalogs=CatalogService(database, warehouse, events, parts.deletable),
        databases=DatabaseService(database, warehouse, parts.mover, events, parts.deletable),
        data_connectors=DataConnectorService(database, events),
        functions=FunctionService(database, events),
        procedures=ProcedureService(database),
    )


def _table(parts: _Parts) -> _Table:
    tables = TableService(
        parts.database,
        parts.warehouse,
        parts.mover,
        parts.publisher,
        parts.events,
        parts.deletable,
        allowed=_allowed(parts.settings),
        incompatible_types_allowed=parts.settings.allow_incompatible_column_types,
    )
    return _Table(
        tables=tables,
        indexes=IndexService(parts.database, tables),
        constraints=ConstraintService(parts.database, tables, parts.events),
    )


def _partition(parts: _Parts, table: _Table) -> _Partition:
    settings, database, warehouse, _, events, mover, publisher, commits, deletable = parts
    tables = table["tables"]
    return _Partition(
        partitions=PartitionService(database, warehouse, mover, tables, publisher, commits, events, deletable),
        partition_reads=PartitionReads(
            database,
            tables,
            at_most=settings.max_partitions_per_request,
            refuse_unpublished=settings.refuse_unpublished_reads,
        ),
        partition_exchange=PartitionExchange(database, warehouse, mover, tables, publisher, events, deletable),
    )


def _readiness(parts: _Parts, table: _Table, partition: _Partition) -> _Readiness:
    _, database, _, _, _, _, publisher, commits, _ = parts
    tables = table["tables"]
    readiness = ReadinessService(database, tables, partition["partitions"], publisher, commits)
    return _Readiness(
        readiness=readiness,
        routes=Routes(database, tables),
        partition_states=PartitionStates(database, tables, commits),
    )


def _timeline(parts: _Parts, table: _Table, readiness: _Readiness) -> _Timeline:
    """Timelines, and the snapshots that are read from them."""
    settings, database, warehouse, sequencer, events, mover, publisher, commits, deletable = parts
    tables = table["tables"]
    files = InstantFiles(database, warehouse, mover, publisher, deletable)
    heartbeat_seconds = settings.instant_heartbeat_seconds
    return _Timeline(
        timeline=TimelineService(database, tables, files, heartbeat_seconds=heartbeat_seconds),
        timeline_queries=TimelineQueries(database, tables, sequencer),
        timeline_sweeper=TimelineSweeper(
            database,
            heartbeat_seconds=heartbeat_seconds,
            keep_active=settings.active_instants,
            archived_days=settings.archived_instant_days,
        ),
        instant_completion=InstantCompletion(
            database,
            tables,
            HiveView(warehouse, events),
            readiness["readiness"],
            events,
            files,
            Publishing(warehouse, grace_seconds=settings.publish_grace_seconds),
            commits,
        ),
        file_snapshots=FileSnapshots(database, tables, sequencer, files),
        orphan_files=OrphanFiles(database, tables, warehouse, deletable),
        file_deletions=FileDeletions(database, warehouse, files, deletable),
        reader_leases=ReaderLeases(database, tables),
    )


def _table_services(parts: _Parts, table: _Table) -> _TableServices:
    database, tables = parts.database, table["tables"]
    heartbeat_seconds = parts.settings.instant_heartbeat_seconds
    return _TableServices(
        table_looks=TableLooks(database, tables, parts.deletable),
        job_queue=JobQueue(database, tables, heartbeat_seconds=heartbeat_seconds),
    )


def _hudi(parts: _Parts, catalog: _Catalog, table: _Table, timelines: _Timeline) -> _Hudi:
    database, warehouse, tables = parts.database, parts.warehouse, table["tables"]
    timeline, completion = timelines["timeline"], timelines["instant_completion"]
    hudi_tables = HudiTables(warehouse, catalog["databases"], tables)
    return _Hudi(
        hudi_import=HudiImport(
            database, warehouse, tables, timeline, timelines["timeline_queries"], completion, hudi_tables
        ),
        hudi_tables=hudi_tables,
        hudi_timeline=HudiTimeline(database, tables, timeline, completion),
    )


def _subscriptions(parts: _Parts, table: _Table) -> _Subscriptions:
    database, sequencer = parts.database, parts.sequencer
    return _Subscriptions(
        event_reads=EventReads(database, sequencer),
        event_members=EventMembers(database, sequencer),
        notifications=Notifications(database, sequencer, parts.events, table["tables"]),
    )


def _transactions(parts: _Parts) -> _Transactions:
    transactions, compactions = TransactionService(parts.database), CompactionService(parts.database)
    return _Transactions(
        transactions=transactions,
        write_ids=WriteIdService(parts.database, transactions, compactions),
        locks=LockService(parts.database, transactions, refuse_unpublished=parts.settings.refuse_unpublished_reads),
        compactions=compactions,
        materializations=MaterializationService(parts.database),
    )


def _registry(parts: _Parts) -> _Registry:
    return _Registry(
        types=TypeService(parts.database),
        schema_registry=SchemaRegistry(parts.database),
        resource_plans=ResourcePlanService(parts.database),
        scheduled_queries=ScheduledQueryService(parts.database),
        engine_reports=EngineReports(parts.database),
    )


def _housekeeping(
    parts: _Parts,
    access: _Access,
    timeline: _Timeline,
    services: _TableServices,
    transactions: _Transactions,
    registry: _Registry,
    change_notes: ChangeNotes,
) -> Housekeeping:
    settings = parts.settings
    retention = EventRetention(
        age=timedelta(days=settings.event_retention_days),
        count=settings.event_retention_count,
        group_silence=timedelta(days=settings.event_group_days),
        dead_letters=timedelta(days=settings.event_dead_letter_days),
    )
    sweeps = (
        parts.mover.carry_out_pending,
        transactions["transactions"].sweep,
        transactions["locks"].sweep,
        transactions["compactions"].sweep,
        registry["scheduled_queries"].sweep,
        registry["engine_reports"].sweep,
        timeline["file_deletions"].run,
        timeline["reader_leases"].sweep,
        services["table_looks"].sweep,
        change_notes.sweep,
        access["issued_tokens"].sweep,
        access["repeated_requests"].sweep,
    )
    return Housekeeping(parts.database, parts.deletable, timeline["timeline_sweeper"], retention, sweeps)

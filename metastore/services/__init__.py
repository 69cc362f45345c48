"""The rules: what Hive would do. `Metastore` holds one instance of every service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from eventbus.pre_events import PreEvents
from eventbus.sequencer import Sequencer
from metastore.services.batches import BatchService
from metastore.services.catalogs import CatalogService
from metastore.services.change_notes import ChangeNotes
from metastore.services.commits import Commits
from metastore.services.compactions import CompactionService
from metastore.services.constraints import ConstraintService
from metastore.services.data_connectors import DataConnectorService
from metastore.services.databases import DatabaseService
from metastore.services.delegation_tokens import DelegationTokenService
from metastore.services.engine_reports import EngineReports
from metastore.services.event_members import EventMembers
from metastore.services.event_reads import EventReads
from metastore.services.events import Events
from metastore.services.file_snapshots import FileSnapshots
from metastore.services.functions import FunctionService
from metastore.services.housekeeping import Housekeeping
from metastore.services.hudi_import import HudiImport
from metastore.services.hudi_tables import HudiTables
from metastore.services.hudi_timeline import HudiTimeline
from metastore.services.indexes import IndexService
from metastore.services.instant_completion import InstantCompletion
from metastore.services.instant_files import InstantFiles
from metastore.services.lake_partitions import HiveView
from metastore.services.locks import LockService
from metastore.services.materializations import MaterializationService
from metastore.services.moves import Mover
from metastore.services.notifications import Notifications
from metastore.services.partition_exchange import PartitionExchange
from metastore.services.partition_reads import PartitionReads
from metastore.services.partition_states import PartitionStates
from metastore.services.partitions import PartitionService
from metastore.services.privileges import PrivilegeService
from metastore.services.procedures import ProcedureService
from metastore.services.publishing import Publisher
from metastore.services.readiness import ReadinessService
from metastore.services.resource_plans import ResourcePlanService
from metastore.services.roles import RoleService
from metastore.services.scheduled_queries import ScheduledQueryService
from metastore.services.schema_registry import SchemaRegistry
from metastore.services.server_info import ServerInfo
from metastore.services.statistics import StatisticsService
from metastore.services.tables import TableService
from metastore.services.timeline import TimelineService
from metastore.services.transactions import TransactionService
from metastore.services.types import TypeService
from metastore.services.write_ids import WriteIdService
from metastore.settings import Settings
from metastore.store import Database, migrations
from metastore.warehouse import Warehouse


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
    batches: BatchService
    timeline: TimelineService
    instant_completion: InstantCompletion
    file_snapshots: FileSnapshots
    hudi_import: HudiImport
    hudi_tables: HudiTables
    hudi_timeline: HudiTimeline
    statistics: StatisticsService
    functions: FunctionService
    constraints: ConstraintService
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
    resource_plans: ResourcePlanService
    scheduled_queries: ScheduledQueryService
    engine_reports: EngineReports
    sequencer: Sequencer
    event_reads: EventReads
    event_members: EventMembers
    notifications: Notifications
    change_notes: ChangeNotes
    housekeeping: Housekeeping
    server_info: ServerInfo

    @classmethod
    def open(cls, settings: Settings, *, open_connections: Callable[[], int] = lambda: 0) -> Self:
        """Connects the services, and makes the default catalog and database if they aren't there.

        `settings.database_url` must name the database, be it the embedded one's; `open_connections` tells how
        many clients are connected.
        """
        assert settings.database_url is not None
        database = Database(
            settings.database_url,
            pool_size=settings.database_pool_size,
            statement_timeout=settings.request_timeout_seconds,
            application_name=migrations.application_name(),
        )
        warehouse = Warehouse(settings.warehouse_dir, settings.warehouse_external_dir)
        mover = Mover(database, warehouse)
        sequencer = Sequencer(database.read, database.write)
        events = Events(sequencer.wake, PreEvents.load(settings.pre_event_listeners, settings.pre_event_seconds))
        publisher = Publisher(database, warehouse)
        commits = Commits(warehouse, mover, publisher, events)
        tables = TableService(
            database,
            warehouse,
            mover,
            publisher,
            events,
            incompatible_types_allowed=settings.allow_incompatible_column_types,
        )
        partitions = PartitionService(database, warehouse, mover, tables, publisher, commits, events)
        readiness = ReadinessService(database, tables, partitions, publisher, commits)
        instant_files = InstantFiles(database, warehouse, mover, publisher)
        timeline = TimelineService(
            database,
            warehouse,
            tables,
            sequencer,
            instant_files,
            heartbeat_seconds=settings.instant_heartbeat_seconds,
            keep_active=settings.active_instants,
        )
        hive_view = HiveView(warehouse, events)
        completion = InstantCompletion(
            database, tables, timeline, hive_view, readiness, events, publisher, instant_files
        )
        databases = DatabaseService(database, warehouse, mover, events)
        hudi_tables = HudiTables(warehouse, databases, tables)
        change_notes = ChangeNotes(database)
        transactions, compactions = TransactionService(database), CompactionService(database)
        locks = LockService(database, transactions)
        scheduled_queries, engine_reports = ScheduledQueryService(database), EngineReports(database)
        metastore = cls(
            database=database,
            catalogs=CatalogService(database, warehouse, events),
            databases=databases,
            tables=tables,
            partitions=partitions,
            partition_exchange=PartitionExchange(database, warehouse, mover, tables, publisher, events),
            partition_reads=PartitionReads(database, tables),
            partition_states=PartitionStates(database, tables, commits),
            readiness=readiness,
            batches=BatchService(database, warehouse, mover, tables, publisher, commits, readiness),
            timeline=timeline,
            instant_completion=completion,
            file_snapshots=FileSnapshots(database, tables, sequencer, instant_files),
            hudi_import=HudiImport(database, warehouse, tables, timeline, completion, hudi_tables),
            hudi_tables=hudi_tables,
            hudi_timeline=HudiTimeline(database, tables, timeline, completion),
            statistics=StatisticsService(database, events),
            functions=FunctionService(database, events),
            constraints=ConstraintService(database, tables, events),
            privileges=PrivilegeService(database),
            roles=RoleService(database),
            transactions=transactions,
            write_ids=WriteIdService(database, transactions, compactions),
            locks=locks,
            compactions=compactions,
            materializations=MaterializationService(database),
            types=TypeService(database),
            indexes=IndexService(database, tables),
            schema_registry=SchemaRegistry(database),
            data_connectors=DataConnectorService(database, events),
            procedures=ProcedureService(database),
            delegation_tokens=DelegationTokenService(database),
            resource_plans=ResourcePlanService(database),
            scheduled_queries=scheduled_queries,
            engine_reports=engine_reports,
            sequencer=sequencer,
            event_reads=EventReads(database, sequencer),
            event_members=EventMembers(database, sequencer),
            notifications=Notifications(database, sequencer, events, tables),
            change_notes=change_notes,
            housekeeping=Housekeeping(
                database,
                mover,
                transactions,
                locks,
                compactions,
                scheduled_queries,
                engine_reports,
                timeline,
                change_notes,
                event_days=settings.event_retention_days,
                event_count=settings.event_retention_count,
            ),
            server_info=ServerInfo(database, settings, open_connections),
        )
        metastore.catalogs.bootstrap()
        change_notes.begin()
        metastore.roles.bootstrap()
        return metastore

    def close(self) -> None:
        """Closes all connections to the database."""
        self.database.close()

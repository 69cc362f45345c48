"""A metastore that is read by Hive's Thrift calls: Hive 2.3 to 4, and ours."""

import os
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import TAKEN_OVER, TAKES_NO_CHANGES
from lake.protocol.hive import (
    Catalog,
    CheckConstraintsRequest,
    ClientCapabilities,
    ClientCapability,
    ColumnStatistics,
    ColumnStatisticsDesc,
    Database,
    DefaultConstraintsRequest,
    ForeignKeysRequest,
    Function,
    GetCatalogRequest,
    GetPrincipalsInRoleRequest,
    GetTableRequest,
    GetValidWriteIdsRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    NotificationEvent,
    NotificationEventRequest,
    NotNullConstraintsRequest,
    Partition,
    PartitionsStatsRequest,
    PrimaryKeysRequest,
    PrincipalType,
    Role,
    RolePrincipalGrant,
    SQLAllTableConstraints,
    TableStatsRequest,
    TxnState,
    UniqueConstraintsRequest,
)
from lake.protocol.lake import TableReference
from lake.protocol.struct import ExceptionStruct
from metastore.migration.connections import Connections
from metastore.migration.objects import (
    DEFAULT_CATALOG,
    DatabaseKey,
    Positions,
    Remark,
    TableKey,
    TableParts,
    WriteIds,
)
from metastore.migration.source import SourceFailed, TakenOver
from metastore.services.model import hive_objects

T = TypeVar("T")

TIMEOUT_SECONDS = 600.0
"""For one answer: Hive takes minutes to list the partitions of a large table."""

_TRIES = 3
_PAUSE_SECONDS = 2.0
_ASK_AGAIN_SECONDS = 0.5
_NOTHING_OPEN = (1 << 63) - 1
_RAW = ["MANAGERAWMETADATA"]
"""What makes Hive 3 and 4 show tables as they are stored, and not as a client could use them."""

_ENGINE = "hive"

_LISTENERS = ("hive.metastore.transactional.event.listeners", "hive.metastore.event.listeners")
"""The settings that may name the listener which keeps Hive's log."""


class ThriftSource:
    """Each thread has a connection of its own. Reads are repeated over a new one where one breaks."""

    def __init__(self, uri: str, login: Login | None = None) -> None:
        self.uri = uri
        self._login = login
        self._local = threading.local()
        self._clients = Connections()
        self._lock = threading.Lock()
        self._unknown: set[str] = set()
        self._tells: dict[str, bool] = {}
        self.engines_asked = [_ENGINE]
        self.ours: bool | None = None
        self._held: tuple[str, str, int] | None = None
        self._client()

    def hold(self, source: str, databases: str, holder: int) -> None:
        """From here on changes by these connections are refused if somebody else takes a source that is followed.

        Calls raise TakenOver then.
        """
        self._held = source, databases, holder

    def let_go(self) -> None:
        """New connections belong to nobody who follows: they may look who does by now."""
        self._held = None

    # --- calls ------------------------------------------------------------------------------------------------

    def _client(self) -> ThriftClient:
        client = getattr(self._local, "client", None)
        if client is None:
            try:
                client = ThriftClient.from_uri(self.uri, timeout=TIMEOUT_SECONDS, login=self._login)
            except (TTransportException, OSError) as error:
                raise SourceFailed(f"no metastore answers at {self.uri}: {error}") from None
            except (LoginRefused, ValueError) as error:
                raise SourceFailed(f"{self.uri}: {error}") from None
            self._local.client = client
            self._clients.add(client)
            if self.ours is None or self.ours:
                self._show_uncommitted(client)
        held = self._held
        if held is not None and getattr(self._local, "holder", None) != held:
            client.lake_take_followed(*held)
            self._local.holder = held
        return client

    def _show_uncommitted(self, client: ThriftClient) -> None:
        """Hive knows no such setting, so this also says whether the metastore is one of ours."""
        try:
            client.setMetaConf("includeUnCommit", "true")
            self.ours = True
        except (ExceptionStruct, TApplicationException):
            self.ours = False

    def _forget_client(self) -> None:
        client = self._local.__dict__.pop("client", None)
        self._local.__dict__.pop("holder", None)
        if client is not None:
            self._clients.forget(client)

    def call(self, name: str, *args: Any) -> Any:
        """Calls a method that may be repeated. Raises SourceFailed, and the method's exceptions.

        A server of ours whose database is down or full is one that doesn't answer: it's not the request's fault.
        """
        return self._call(ThriftClient.call, name, *args)

    def _call(self, way: Callable[..., Any], name: str, *args: Any) -> Any:
        tries = 0
        while True:
            tries += 1
            try:
                return way(self._client(), name, *args)
            except (ExceptionStruct, TApplicationException) as error:
                text = str(getattr(error, "message", None) or "")
                if text.startswith(TAKEN_OVER):
                    raise TakenOver(f"{self.uri}: {text}") from None
                if not text.startswith(TAKES_NO_CHANGES):
                    raise
                failed = SourceFailed(f"{self.uri}: {text}")
            except (TException, OSError) as error:
                self._forget_client()
                failed = SourceFailed(f"{self.uri} doesn't answer {name}: {error}")
            if tries == _TRIES:
                raise failed
            time.sleep(_PAUSE_SECONDS)

    def _optional(self, name: str, *args: Any, missing: Any = None) -> Any:
        """As `call`; `missing` where the metastore knows no such method."""
        if name in self._unknown:
            return missing
        try:
            return self.call(name, *args)
        except TApplicationException as error:
            if error.type == TApplicationException.UNKNOWN_METHOD:
                self._unknown.add(name)
                return missing
            raise SourceFailed(f"{self.uri}: {name}: {error}") from None

    def lacks(self, name: str) -> bool:
        """Whether the metastore was asked by a method before that it doesn't know."""
        return name in self._unknown

    def _told(self, name: str) -> Any:
        """What a method tells; None of a metastore that doesn't tell it. Raises SourceFailed of one that did before.

        By the same error Hive says that it keeps no such thing, that it is for administrators alone, and that its own
        database has failed just now. So it is asked again.
        """
        failed: Exception | None = None
        for attempt in range(_TRIES if self._tells.get(name, True) else 1):
            if attempt:
                time.sleep(_ASK_AGAIN_SECONDS)
            try:
                answer = self.call(name)
            except (ExceptionStruct, TApplicationException) as error:
                failed = error
            else:
                self._tells[name] = True
                return answer
        if self._tells.setdefault(name, False):
            raise SourceFailed(f"{self.uri} doesn't answer {name} any more: {failed}")
        return None

    def insist(self, look_and_do: Callable[[], T]) -> T:
        """Does what looks first at what is left to do, and does it again where the metastore answers by an error.

        Hive's database refuses some changes only because others write at that moment. Raises what the last one did.
        """
        for _ in range(_TRIES - 1):
            with suppress(MetaException, TApplicationException):
                return look_and_do()
            time.sleep(_ASK_AGAIN_SECONDS)
        return look_and_do()

    def close(self) -> None:
        self._clients.close()

    # --- names ------------------------------------------------------------------------------------------------

    def remarks(self) -> list[Remark]:
        found = [
            ("grants", "grants on columns and partitions of principals that have no other grant can't be found"),
            ("statistics", "when statistics were gathered is not told; they get the time of the import"),
            ("statistics", "statistics of other engines than hive can't be found"),
            ("statistics", "bit vectors come only if the server tells them (metastore.stats.fetch.bitvector)"),
            ("tables", "what a filter of the server hides from this user is not seen"),
        ]
        return [Remark(kind, "*", f"by Thrift, {text}", serious=True) for kind, text in found]

    def engines(self) -> list[str]:
        return [_ENGINE]

    def catalogs(self) -> list[Catalog]:
        answer = self._optional("get_catalogs")
        if answer is None:
            return []
        return [self.call("get_catalog", GetCatalogRequest(name)).catalog for name in sorted(answer.names or ())]

    def databases(self, catalog: str) -> list[Database]:
        if catalog == DEFAULT_CATALOG:
            names = self.call("get_all_databases")
        else:
            names = self.call("get_databases", f"@{catalog}#")
        found = []
        for name in sorted(names):
            try:
                found.append(self.call("get_database", DatabaseKey(catalog, name).on_the_wire))
            except NoSuchObjectException:  # dropped meanwhile
                continue
        return found

    def database(self, key: DatabaseKey) -> Database | None:
        try:
            found: Database = self.call("get_database", key.on_the_wire)
        except NoSuchObjectException:
            return None
        return found

    def functions(self, database: DatabaseKey) -> list[Function]:
        home = database.on_the_wire
        found = []
        for name in sorted(self.call("get_functions", home, "*")):
            try:
                found.append(self.call("get_function", home, name))
            except NoSuchObjectException:
                continue
        return found

    # --- tables -----------------------------------------------------------------------------------------------

    def tables(self, database: DatabaseKey) -> list[str]:
        return sorted(self.call("get_all_tables", database.on_the_wire))

    def table(self, key: TableKey) -> TableParts | None:
        parts = self.bare_table(key)
        if parts is None:
            return None
        parts = TableParts(key, parts.table, self._constraints(key))
        own = self._statistics(parts) if parts.columns else []
        return TableParts(key, parts.table, parts.constraints, own)

    def bare_table(self, key: TableKey) -> TableParts | None:
        request = GetTableRequest(
            key.database,
            key.table,
            capabilities=ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES]),
            catName=key.catalog,
            processorCapabilities=_RAW,
            processorIdentifier="lake-metastore-migrate",
        )
        try:
            table = self.call("get_table_req", request).table
        except NoSuchObjectException:
            return None
        return TableParts(key, table, SQLAllTableConstraints())

    def _constraints(self, key: TableKey) -> SQLAllTableConstraints:
        catalog, database, table = key

        def of(name: str, request: Any, field: str) -> list[Any]:
            try:
                answer = self._optional(name, request)
            except NoSuchObjectException:
                return []
            return list(getattr(answer, field, None) or ())

        keys = of("get_foreign_keys", ForeignKeysRequest(None, None, database, table, catName=catalog), "foreignKeys")
        return SQLAllTableConstraints(
            primaryKeys=of("get_primary_keys", PrimaryKeysRequest(database, table, catName=catalog), "primaryKeys"),
            foreignKeys=keys,
            uniqueConstraints=of(
                "get_unique_constraints", UniqueConstraintsRequest(catalog, database, table), "uniqueConstraints"
            ),
            notNullConstraints=of(
                "get_not_null_constraints", NotNullConstraintsRequest(catalog, database, table), "notNullConstraints"
            ),
            defaultConstraints=of(
                "get_default_constraints", DefaultConstraintsRequest(catalog, database, table), "defaultConstraints"
            ),
            checkConstraints=of(
                "get_check_constraints", CheckConstraintsRequest(catalog, database, table), "checkConstraints"
            ),
        )

    def _statistics(self, table: TableParts) -> list[ColumnStatistics]:
        key = table.key
        all_of = []
        for engine in self.engines_asked:
            request = TableStatsRequest(key.database, key.table, table.columns, catName=key.catalog, engine=engine)
            try:
                found = self.call("get_table_statistics_req", request).tableStats
            except NoSuchObjectException:
                continue
            if found:
                all_of.append(ColumnStatistics(_described(key, None), found, engine=engine))
        return all_of

    # --- partitions -------------------------------------------------------------------------------------------

    def partition_names(self, table: TableParts) -> list[str]:
        if not table.table.partitionKeys:
            return []
        return sorted(self.call("get_partition_names", table.key.of_database.on_the_wire, table.key.table, -1))

    def partitions(self, table: TableParts, names: Sequence[str]) -> list[Partition]:
        return list(self.call(*self._partitions_call(table, names))) if names else []

    def _partitions_call(self, table: TableParts, names: Sequence[str]) -> tuple[Any, ...]:
        return "get_partitions_by_names", table.key.of_database.on_the_wire, table.key.table, list(names)

    def partition_statistics(self, table: TableParts, names: Sequence[str]) -> list[ColumnStatistics]:
        all_of = []
        for method, request in self._statistics_calls(table, names):
            found = self.call(method, request).partStats or {}
            all_of += [
                ColumnStatistics(_described(table.key, name), own, engine=request.engine)
                for name, own in sorted(found.items())
                if own
            ]
        return all_of

    def _statistics_calls(self, table: TableParts, names: Sequence[str]) -> list[tuple[str, PartitionsStatsRequest]]:
        if not names or not table.columns:
            return []
        catalog, database, name = table.key
        return [
            (
                "get_partitions_statistics_req",
                PartitionsStatsRequest(database, name, table.columns, list(names), catName=catalog, engine=engine),
            )
            for engine in self.engines_asked
        ]

    @contextmanager
    def heard(self) -> Iterator[Callable[[], bytes | None]]:
        client = self._client()
        with client.heard() as digest:
            yield lambda: digest.digest() if getattr(self._local, "client", None) is client else None

    def pass_over_partitions(self, table: TableParts, names: Sequence[str]) -> None:
        if names:
            self._call(ThriftClient.pass_over, *self._partitions_call(table, names))
        for call in self._statistics_calls(table, names):
            self._call(ThriftClient.pass_over, *call)

    # --- roles and grants -------------------------------------------------------------------------------------

    def roles(self) -> list[Role]:
        found: dict[str, Role] = {name: Role(name) for name in self.call("get_role_names")}
        asked: set[tuple[str | None, int | None]] = set()
        for name in list(found):  # who owns a role is told with the roles of its members alone
            for member in self.members(name):
                who = member.principalName, member.principalType
                if who not in asked:
                    asked.add(who)
                    for role in self.call("list_roles", *who):
                        if role.roleName in found:
                            found[role.roleName] = role
        return [found[name] for name in sorted(found)]

    def members(self, role: str) -> list[RolePrincipalGrant]:
        answer = self.call("get_principals_in_role", GetPrincipalsInRoleRequest(role))
        return list(answer.principalGrants or ())

    def global_grants(self) -> list[HiveObjectPrivilege]:
        return self._grants(HiveObjectRef(HiveObjectType.GLOBAL))

    def grants(self, database: DatabaseKey, tables: Sequence[str]) -> list[HiveObjectPrivilege]:
        catalog, name = database
        found = self._grants(HiveObjectRef(HiveObjectType.DATABASE, name, catName=catalog))
        for table in tables:
            found += self._grants(HiveObjectRef(HiveObjectType.TABLE, name, table, catName=catalog))
        return found + self._finer_grants(database, set(tables), found)

    def _finer_grants(
        self, database: DatabaseKey, tables: set[str], coarse: Sequence[HiveObjectPrivilege]
    ) -> list[HiveObjectPrivilege]:
        """Those on columns and partitions: Hive lists them by principal alone, so of those that are known."""
        if self.ours:
            kinds = (HiveObjectType.COLUMN, HiveObjectType.PARTITION)
            some = [each for kind in kinds for each in self._grants(HiveObjectRef(kind))]
            return [each for each in some if _lies_in(each, database, tables)]
        principals = {(each.principalName, each.principalType) for each in coarse} | self._known_principals()
        found = []
        for who, kind in sorted(principals, key=str):
            some = self.call("list_privileges", who, kind, HiveObjectRef(catName=database.catalog))
            found += [each for each in some if _lies_in(each, database, tables)]
        return found

    def _known_principals(self) -> set[tuple[str | None, int | None]]:
        with self._lock:
            known = getattr(self, "_principals", None)
        if known is None:
            known = {(each.principalName, each.principalType) for each in self.global_grants()}
            for role in self.call("get_role_names"):
                known.add((role, PrincipalType.ROLE))
                known |= {(each.principalName, each.principalType) for each in self.members(role)}
            with self._lock:
                self._principals = known
        return known

    def _grants(self, ref: HiveObjectRef) -> list[HiveObjectPrivilege]:
        return list(self.call("list_privileges", None, None, ref))

    # --- positions --------------------------------------------------------------------------------------------

    def positions(self) -> Positions:
        notification = self.last_event()
        found = self._told("get_open_txns_info")
        if found is None:  # a metastore that has no transactions
            return Positions(notification=notification)
        states: dict[int, list[int]] = {TxnState.OPEN: [], TxnState.ABORTED: []}
        for each in found.open_txns or ():
            states.setdefault(each.state, []).append(each.id)
        return Positions(
            found.txn_high_water_mark, sorted(states[TxnState.OPEN]), sorted(states[TxnState.ABORTED]), notification
        )

    def last_event(self) -> int | None:
        found = self._told("get_current_notificationEventId")
        return None if found is None else int(found.eventId)

    def says_no_log(self) -> bool:
        if self.ours:
            return False
        try:
            told = [self.call("get_config_value", name, "") or "" for name in _LISTENERS]
        except (ExceptionStruct, TApplicationException):
            return False
        return not any("NotificationListener" in each for each in told)

    def events(self, after: int, limit: int) -> list[NotificationEvent]:
        request = NotificationEventRequest(lastEvent=after, maxEvents=limit)
        return sorted(self.call("get_next_notification", request).events or (), key=lambda each: each.eventId)

    def write_ids(self, key: TableKey, positions: Positions) -> WriteIds | None:
        if positions.transaction is None:
            return None
        oldest = min(positions.open, default=_NOTHING_OPEN)
        opened, aborted = (",".join(map(str, each)) for each in (positions.open, positions.aborted))
        snapshot = f"{positions.transaction}:{oldest}:{opened}:{aborted}"
        full = f"{key.of_database.on_the_wire}.{key.table}"
        answer = self._optional("get_valid_write_ids", GetValidWriteIdsRequest([full], snapshot))
        if answer is None:  # Hive 2.3: a write id is the transaction's id
            return WriteIds(positions.transaction, sorted({*positions.open, *positions.aborted}), bool(positions.open))
        for each in answer.tblValidWriteIds or ():
            invisible = sorted(each.invalidWriteIds or ())
            return WriteIds(each.writeIdHighWaterMark, invisible, each.minOpenWriteId is not None)
        return None

    def timeline_position(self, table: TableParts) -> int:
        of = table.table
        if not self.ours or of.tableType == hive_objects.VIEW or of.sd is None or not of.sd.location:
            return 0
        reference = TableReference(catalog=table.key.catalog, database=table.key.database, table=table.key.table)
        return int(self.call("lake_timeline_position", reference).position or 0)


def source_login() -> Login:
    """The login at the metastore that is left: as the environment says it by METASTORE_SOURCE_USER and so on.

    Raises BadLogin.
    """
    begin = "METASTORE_SOURCE_"
    own = {f"METASTORE_{name[len(begin) :]}": value for name, value in os.environ.items() if name.startswith(begin)}
    return Login.from_environment(own)


def _lies_in(grant: HiveObjectPrivilege, database: DatabaseKey, tables: Container[str]) -> bool:
    """Whether a privilege is one on a column or partition of some tables in a database."""
    ref = grant.hiveObject or HiveObjectRef()
    return (
        ref.objectType in (HiveObjectType.COLUMN, HiveObjectType.PARTITION)
        and (ref.catName or DEFAULT_CATALOG).lower() == database.catalog
        and (ref.dbName or "").lower() == database.database
        and (ref.objectName or "").lower() in tables
    )


def _described(key: TableKey, partition: str | None) -> ColumnStatisticsDesc:
    return ColumnStatisticsDesc(
        isTblLevel=partition is None,
        dbName=key.database,
        tableName=key.table,
        partName=partition,
        catName=key.catalog,
    )

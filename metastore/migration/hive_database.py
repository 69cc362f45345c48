"""A Hive metastore that is read in its own database: schemas 2.3 to 4.1.

It tells what calls don't: bit vectors, statistics of all engines and when they were made, every grant. Nothing is
filtered or translated for a client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from lake.protocol.hive import (
    Catalog,
    ColumnStatistics,
    ColumnStatisticsDesc,
    CreationMetadata,
    Database,
    DatabaseType,
    FieldSchema,
    Function,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NotificationEvent,
    Order,
    Partition,
    PrincipalType,
    PrivilegeGrantInfo,
    ResourceUri,
    Role,
    RolePrincipalGrant,
    SerDeInfo,
    SerdeType,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from metastore.migration import hive_statistics
from metastore.migration.hive_constraints import constraints_of
from metastore.migration.hive_rows import HiveRows, Row
from metastore.migration.objects import (
    DEFAULT_CATALOG,
    DatabaseKey,
    Positions,
    Remark,
    TableKey,
    TableParts,
    WriteIds,
)
from metastore.migration.source import SourceFailed

SCHEMAS = ("2.3", "3.0", "3.1", "3.2", "4.0", "4.1")
_OPEN, _ABORTED = "o", "a"
_DEFAULT_ENGINE = "hive"


P = ParamSpec("P")
R = TypeVar("R")


def _of_one_moment(
    read: Callable[Concatenate["HiveDatabase", P], R],
) -> Callable[Concatenate["HiveDatabase", P], R]:
    """An object is in many tables. Hive changes them together, so they are read together: a table whose columns change
    just then would have none."""

    @wraps(read)
    def together(self: "HiveDatabase", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._rows.together():
            return read(self, *args, **kwargs)

    return together


class HiveDatabase:
    """Reads rows, and makes of them what Hive's server would."""

    ours = False

    def __init__(self, url: str) -> None:
        """Raises SourceFailed for a database that isn't a Hive metastore's, or of another version."""
        self._rows = HiveRows(url)
        if not self._rows.has("TBLS") or not self._rows.has("DBS"):
            raise SourceFailed(f"{self._rows.place} is not the database of a Hive metastore: there is no table TBLS")
        versions = [row["SCHEMA_VERSION"] for row in self._rows.rows("VERSION")]
        self.version = str(versions[0]) if versions else self._guessed()
        if not self.version.startswith(SCHEMAS):
            raise SourceFailed(
                f"{self._rows.place} has the schema {self.version} of Hive; those from 2.3 to 4.1 can be read"
            )

    def _guessed(self) -> str:
        """The version where none is recorded (hive.metastore.schema.verification=false): by the tables."""
        if not self._rows.has("CTLGS"):
            return "2.3"
        return "4.0" if self._rows.has("DATACONNECTORS") else "3.1"

    def remarks(self) -> list[Remark]:
        return []

    def close(self) -> None:
        self._rows.close()

    def engines(self) -> list[str]:
        """The engines that have statistics."""
        if self.version.startswith(("2", "3")):
            return [_DEFAULT_ENGINE]
        found = {_DEFAULT_ENGINE}
        for table in ("TAB_COL_STATS", "PART_COL_STATS"):
            found |= {each for each in self._rows.distinct(table, "ENGINE") if each}
        return sorted(found)

    # --- namespaces -------------------------------------------------------------------------------------------

    def catalogs(self) -> list[Catalog]:
        return [
            Catalog(row["NAME"], row["DESC"], row["LOCATION_URI"], row.get("CREATE_TIME"))
            for row in sorted(self._rows.rows("CTLGS"), key=lambda row: row["NAME"])
        ]

    def database(self, key: DatabaseKey) -> Database | None:
        found = (each for each in self.databases(key.catalog) if each.name == key.database)
        return next(found, None)

    @_of_one_moment
    def databases(self, catalog: str) -> list[Database]:
        found = [row for row in self._rows.rows("DBS") if (row.get("CTLG_NAME") or DEFAULT_CATALOG) == catalog]
        ids = [row["DB_ID"] for row in found]
        parameters = self._rows.texts("DATABASE_PARAMS", "DB_ID", ids, "PARAM_KEY", "PARAM_VALUE")
        return [
            Database(
                name=row["NAME"],
                description=row["DESC"],
                locationUri=row["DB_LOCATION_URI"],
                parameters=parameters.get(row["DB_ID"], {}),
                ownerName=row["OWNER_NAME"],
                ownerType=_principal_type(row["OWNER_TYPE"]),
                catalogName=row.get("CTLG_NAME"),
                createTime=row.get("CREATE_TIME"),
                managedLocationUri=row.get("DB_MANAGED_LOCATION_URI"),
                type=None if row.get("TYPE") in (None, "NATIVE") else DatabaseType[row["TYPE"]],
                connector_name=row.get("DATACONNECTOR_NAME"),
                remote_dbname=row.get("REMOTE_DBNAME"),
            )
            for row in sorted(found, key=lambda row: row["NAME"])
        ]

    @_of_one_moment
    def functions(self, database: DatabaseKey) -> list[Function]:
        number = self._database_id(database)
        if number is None:
            return []
        found = self._rows.rows("FUNCS", DB_ID=number)
        resources = self._rows.grouped("FUNC_RU", "FUNC_ID", [row["FUNC_ID"] for row in found], "INTEGER_IDX")
        return [
            Function(
                row["FUNC_NAME"],
                database.database,
                row["CLASS_NAME"],
                row["OWNER_NAME"],
                _principal_type(row["OWNER_TYPE"]),
                row["CREATE_TIME"],
                row["FUNC_TYPE"],
                [_resource(each) for each in resources.get(row["FUNC_ID"], ())],
                database.catalog,
            )
            for row in sorted(found, key=lambda row: row["FUNC_NAME"])
        ]

    def _database_id(self, database: DatabaseKey) -> int | None:
        for row in self._rows.rows("DBS", NAME=database.database):
            if (row.get("CTLG_NAME") or DEFAULT_CATALOG) == database.catalog:
                return int(row["DB_ID"])
        return None

    # --- tables -----------------------------------------------------------------------------------------------

    def tables(self, database: DatabaseKey) -> list[str]:
        number = self._database_id(database)
        return [] if number is None else sorted(row["TBL_NAME"] for row in self._rows.rows("TBLS", DB_ID=number))

    @_of_one_moment
    def table(self, key: TableKey) -> TableParts | None:
        row = self._table_row(key)
        if row is None:
            return None
        number = row["TBL_ID"]
        keys = self._rows.grouped("PARTITION_KEYS", "TBL_ID", [number], "INTEGER_IDX").get(number, [])
        parameters = self._rows.texts("TABLE_PARAMS", "TBL_ID", [number], "PARAM_KEY", "PARAM_VALUE")
        descriptors = self._descriptors([row["SD_ID"]])
        table = Table(
            tableName=row["TBL_NAME"],
            dbName=key.database,
            owner=row["OWNER"],
            createTime=row["CREATE_TIME"],
            lastAccessTime=row["LAST_ACCESS_TIME"],
            retention=row["RETENTION"],
            sd=descriptors.get(row["SD_ID"]) or StorageDescriptor(cols=[], serdeInfo=SerDeInfo()),
            partitionKeys=[FieldSchema(each["PKEY_NAME"], each["PKEY_TYPE"], each["PKEY_COMMENT"]) for each in keys],
            parameters=parameters.get(number, {}),
            viewOriginalText=row["VIEW_ORIGINAL_TEXT"],
            viewExpandedText=row["VIEW_EXPANDED_TEXT"],
            tableType=row["TBL_TYPE"],
            rewriteEnabled=_truth(row.get("IS_REWRITE_ENABLED")),
            catName=key.catalog,
            ownerType=_principal_type(row.get("OWNER_TYPE")),
            writeId=row.get("WRITE_ID"),
            creationMetadata=self._creation_metadata(key, row["TBL_TYPE"]),
        )
        statistics = hive_statistics.grouped(self._rows.rows("TAB_COL_STATS", TBL_ID=number))
        own = [_described(key, None, engine, rows) for (_, engine), rows in sorted(statistics.items())]
        return TableParts(key, table, constraints_of(self._rows, key, number), own)

    def bare_table(self, key: TableKey) -> TableParts | None:
        return self.table(key)

    def _table_row(self, key: TableKey) -> Row | None:
        number = self._database_id(key.of_database)
        if number is None:
            return None
        found = self._rows.rows("TBLS", DB_ID=number, TBL_NAME=key.table)
        return found[0] if found else None

    def _creation_metadata(self, key: TableKey, table_type: str) -> CreationMetadata | None:
        """What a materialized view was built from."""
        if table_type != "MATERIALIZED_VIEW":
            return None
        for row in self._rows.rows("MV_CREATION_METADATA", DB_NAME=key.database, TBL_NAME=key.table):
            if (row.get("CAT_NAME") or DEFAULT_CATALOG) != key.catalog:
                continue
            number = row["MV_CREATION_METADATA_ID"]
            used = [each["TBL_ID"] for each in self._rows.rows("MV_TABLES_USED", MV_CREATION_METADATA_ID=number)]
            return CreationMetadata(
                catName=key.catalog,
                dbName=key.database,
                tblName=key.table,
                tablesUsed={".".join(each) for each in self._names(used).values()},
                validTxnList=row["TXN_LIST"],
                materializationTime=row.get("MATERIALIZATION_TIME"),
            )
        return None

    def _names(self, table_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
        """The names of tables, with those of their databases, by id."""
        found = self._rows.rows("TBLS", TBL_ID=list(table_ids))
        homes = {row["DB_ID"]: row["NAME"] for row in self._rows.rows("DBS", DB_ID=[row["DB_ID"] for row in found])}
        return {row["TBL_ID"]: (homes[row["DB_ID"]], row["TBL_NAME"]) for row in found}

    # --- storage descriptors ----------------------------------------------------------------------------------

    def _descriptors(self, numbers: Sequence[int]) -> dict[int, StorageDescriptor]:
        """Storage descriptors by id. Those with the same columns share the list."""
        rows = self._rows
        wanted = [each for each in numbers if each is not None]
        found = rows.rows("SDS", SD_ID=wanted) if wanted else []
        ids = [row["SD_ID"] for row in found]
        columns = {
            number: [FieldSchema(each["COLUMN_NAME"], each["TYPE_NAME"], each["COMMENT"]) for each in own]
            for number, own in rows.grouped(
                "COLUMNS_V2", "CD_ID", {row["CD_ID"] for row in found if row["CD_ID"] is not None}, "INTEGER_IDX"
            ).items()
        }
        serdes = self._serdes({row["SERDE_ID"] for row in found if row["SERDE_ID"] is not None})
        parameters = rows.texts("SD_PARAMS", "SD_ID", ids, "PARAM_KEY", "PARAM_VALUE")
        buckets = rows.grouped("BUCKETING_COLS", "SD_ID", ids, "INTEGER_IDX")
        sorting = rows.grouped("SORT_COLS", "SD_ID", ids, "INTEGER_IDX")
        skewed = self._skewed(ids)
        return {
            row["SD_ID"]: StorageDescriptor(
                cols=columns.get(row["CD_ID"], []),
                location=row["LOCATION"],
                inputFormat=row["INPUT_FORMAT"],
                outputFormat=row["OUTPUT_FORMAT"],
                compressed=_truth(row["IS_COMPRESSED"]),
                numBuckets=row["NUM_BUCKETS"],
                serdeInfo=serdes.get(row["SERDE_ID"]) or SerDeInfo(parameters={}),
                bucketCols=[each["BUCKET_COL_NAME"] for each in buckets.get(row["SD_ID"], ())],
                sortCols=[Order(each["COLUMN_NAME"], each["ORDER"]) for each in sorting.get(row["SD_ID"], ())],
                parameters=parameters.get(row["SD_ID"], {}),
                skewedInfo=skewed.get(row["SD_ID"]),
                storedAsSubDirectories=_truth(row["IS_STOREDASSUBDIRECTORIES"]),
            )
            for row in found
        }

    def _serdes(self, numbers: Iterable[int]) -> dict[int, SerDeInfo]:
        wanted = list(numbers)
        found = self._rows.rows("SERDES", SERDE_ID=wanted) if wanted else []
        parameters = self._rows.texts("SERDE_PARAMS", "SERDE_ID", wanted, "PARAM_KEY", "PARAM_VALUE")
        return {
            row["SERDE_ID"]: SerDeInfo(
                name=row["NAME"],
                serializationLib=row["SLIB"],
                parameters=parameters.get(row["SERDE_ID"], {}),
                description=row.get("DESCRIPTION"),
                serializerClass=row.get("SERIALIZER_CLASS"),
                deserializerClass=row.get("DESERIALIZER_CLASS"),
                serdeType=SerdeType(row["SERDE_TYPE"]) if row.get("SERDE_TYPE") else None,
            )
            for row in found
        }

    def _skewed(self, ids: Sequence[int]) -> dict[int, SkewedInfo]:
        names = self._rows.grouped("SKEWED_COL_NAMES", "SD_ID", ids, "INTEGER_IDX")
        values = self._rows.grouped("SKEWED_VALUES", "SD_ID_OID", ids, "INTEGER_IDX")
        places = self._rows.grouped("SKEWED_COL_VALUE_LOC_MAP", "SD_ID", ids)
        if not names and not values and not places:
            return {}
        lists = {row["STRING_LIST_ID_EID"] for own in values.values() for row in own}
        lists |= {row["STRING_LIST_ID_KID"] for own in places.values() for row in own}
        found = self._rows.grouped("SKEWED_STRING_LIST_VALUES", "STRING_LIST_ID", lists - {None}, "INTEGER_IDX")
        texts = {number: [row["STRING_LIST_VALUE"] for row in own] for number, own in found.items()}
        return {
            number: SkewedInfo(
                [row["SKEWED_COL_NAME"] for row in names.get(number, ())],
                [texts.get(row["STRING_LIST_ID_EID"], []) for row in values.get(number, ())],
                {tuple(texts.get(row["STRING_LIST_ID_KID"], ())): row["LOCATION"] for row in places.get(number, ())},
            )
            for number in {*names, *values, *places}
        }

    # --- partitions -------------------------------------------------------------------------------------------

    @_of_one_moment
    def partition_names(self, table: TableParts) -> list[str]:
        row = self._table_row(table.key) if table.table.partitionKeys else None
        return [] if row is None else sorted(self._rows.column("PARTITIONS", "PART_NAME", TBL_ID=row["TBL_ID"]))

    @_of_one_moment
    def partitions(self, table: TableParts, names: Sequence[str]) -> list[Partition]:
        found = self._partition_rows(table, names)
        ids = [row["PART_ID"] for row in found]
        values = self._rows.grouped("PARTITION_KEY_VALS", "PART_ID", ids, "INTEGER_IDX")
        parameters = self._rows.texts("PARTITION_PARAMS", "PART_ID", ids, "PARAM_KEY", "PARAM_VALUE")
        descriptors = self._descriptors([row["SD_ID"] for row in found])
        return [
            Partition(
                values=[each["PART_KEY_VAL"] for each in values.get(row["PART_ID"], ())],
                dbName=table.key.database,
                tableName=table.key.table,
                createTime=row["CREATE_TIME"],
                lastAccessTime=row["LAST_ACCESS_TIME"],
                sd=descriptors.get(row["SD_ID"]),
                parameters=parameters.get(row["PART_ID"], {}),
                catName=table.key.catalog,
                writeId=row.get("WRITE_ID") or None,
            )
            for row in found
        ]

    def _partition_rows(self, table: TableParts, names: Sequence[str]) -> list[Row]:
        row = self._table_row(table.key)
        if row is None or not names:
            return []
        return self._rows.rows("PARTITIONS", TBL_ID=row["TBL_ID"], PART_NAME=list(names))

    @_of_one_moment
    def partition_statistics(self, table: TableParts, names: Sequence[str]) -> list[ColumnStatistics]:
        of = {row["PART_ID"]: row["PART_NAME"] for row in self._partition_rows(table, names)}
        found = self._rows.rows("PART_COL_STATS", PART_ID=list(of)) if of else []
        grouped = hive_statistics.grouped(found)
        return [
            _described(table.key, of[number], engine, rows)
            for (number, engine), rows in sorted(grouped.items(), key=lambda pair: (of[pair[0][0]], pair[0][1]))
        ]

    def heard(self) -> AbstractContextManager[Callable[[], bytes | None]]:
        return self._rows.heard()

    def pass_over_partitions(self, table: TableParts, names: Sequence[str]) -> None:
        self.partitions(table, names)
        self.partition_statistics(table, names)

    # --- roles and grants -------------------------------------------------------------------------------------

    def roles(self) -> list[Role]:
        found = sorted(self._rows.rows("ROLES"), key=lambda row: row["ROLE_NAME"])
        return [Role(row["ROLE_NAME"], row["CREATE_TIME"], row["OWNER_NAME"]) for row in found]

    @_of_one_moment
    def members(self, role: str) -> list[RolePrincipalGrant]:
        numbers = [row["ROLE_ID"] for row in self._rows.rows("ROLES", ROLE_NAME=role)]
        return [
            RolePrincipalGrant(
                role,
                row["PRINCIPAL_NAME"],
                _principal_type(row["PRINCIPAL_TYPE"]),
                bool(row["GRANT_OPTION"]),
                row["ADD_TIME"],
                row["GRANTOR"],
                _principal_type(row["GRANTOR_TYPE"]),
            )
            for number in numbers
            for row in self._rows.rows("ROLE_MAP", ROLE_ID=number)
        ]

    def global_grants(self) -> list[HiveObjectPrivilege]:
        ref = HiveObjectRef(HiveObjectType.GLOBAL)
        return [_privilege(row, ref, "USER_PRIV") for row in self._rows.rows("GLOBAL_PRIVS")]

    @_of_one_moment
    def grants(self, database: DatabaseKey, tables: Sequence[str]) -> list[HiveObjectPrivilege]:
        catalog, home = database
        number = self._database_id(database)
        if number is None:
            return []
        rows = self._rows
        of_database = HiveObjectRef(HiveObjectType.DATABASE, home, catName=catalog)
        found = [_privilege(row, of_database, "DB_PRIV") for row in rows.rows("DB_PRIVS", DB_ID=number)]
        chosen = set(tables)
        names = {row["TBL_ID"]: row["TBL_NAME"] for row in rows.rows("TBLS", DB_ID=number) if row["TBL_NAME"] in chosen}
        for table, kind, privilege in (
            ("TBL_PRIVS", HiveObjectType.TABLE, "TBL_PRIV"),
            ("TBL_COL_PRIVS", HiveObjectType.COLUMN, "TBL_COL_PRIV"),
        ):
            for row in rows.rows(table, TBL_ID=list(names)) if names else ():
                ref = HiveObjectRef(kind, home, names[row["TBL_ID"]], None, row.get("COLUMN_NAME"), catalog)
                found.append(_privilege(row, ref, privilege))
        for table, kind, privilege in (
            ("PART_PRIVS", HiveObjectType.PARTITION, "PART_PRIV"),
            ("PART_COL_PRIVS", HiveObjectType.COLUMN, "PART_COL_PRIV"),
        ):
            found += self._of_partitions(table, kind, privilege, database, names)
        return found

    def _of_partitions(
        self, table: str, kind: HiveObjectType, privilege: str, database: DatabaseKey, names: Mapping[int, str]
    ) -> list[HiveObjectPrivilege]:
        rows = self._rows.rows(table)  # there are few, if any
        ids = [row["PART_ID"] for row in rows]
        partitions = {row["PART_ID"]: row for row in self._rows.rows("PARTITIONS", PART_ID=ids)}
        values = self._rows.grouped("PARTITION_KEY_VALS", "PART_ID", list(partitions), "INTEGER_IDX")
        found = []
        for row in rows:
            partition = partitions.get(row["PART_ID"])
            if partition is not None and partition["TBL_ID"] in names:
                of = [each["PART_KEY_VAL"] for each in values.get(row["PART_ID"], ())]
                name = names[partition["TBL_ID"]]
                ref = HiveObjectRef(kind, database.database, name, of, row.get("COLUMN_NAME"), database.catalog)
                found.append(_privilege(row, ref, privilege))
        return found

    # --- positions --------------------------------------------------------------------------------------------

    @_of_one_moment
    def positions(self) -> Positions:
        notification = self.last_event()
        if not self._rows.has("TXNS"):
            return Positions(notification=notification)
        states: dict[str, list[int]] = {_OPEN: [], _ABORTED: []}
        highest = 0
        for row in self._rows.rows("TXNS"):
            highest = max(highest, row["TXN_ID"])
            states.setdefault(row["TXN_STATE"], []).append(row["TXN_ID"])
        following = [row["NTXN_NEXT"] for row in self._rows.rows("NEXT_TXN_ID")]
        if following:  # until Hive 3; Hive 4 keeps its last transaction among the others
            highest = max(highest, following[0] - 1)
        return Positions(highest, sorted(states[_OPEN]), sorted(states[_ABORTED]), notification)

    def last_event(self) -> int | None:
        sequences = [row["NEXT_EVENT_ID"] for row in self._rows.rows("NOTIFICATION_SEQUENCE")]
        return sequences[0] - 1 if sequences else (0 if self._rows.has("NOTIFICATION_SEQUENCE") else None)

    def says_no_log(self) -> bool:
        return False

    def events(self, after: int, limit: int) -> list[NotificationEvent]:
        return [
            NotificationEvent(
                row["EVENT_ID"],
                row["EVENT_TIME"],
                row["EVENT_TYPE"],
                row["DB_NAME"],
                row["TBL_NAME"],
                row["MESSAGE"],
                row.get("MESSAGE_FORMAT"),
                row.get("CAT_NAME"),
            )
            for row in self._rows.following("NOTIFICATION_LOG", "EVENT_ID", after, limit)
        ]

    @_of_one_moment
    def write_ids(self, key: TableKey, positions: Positions) -> WriteIds | None:
        if not self._rows.has("NEXT_WRITE_ID"):  # Hive 2.3: a write id is the transaction's id
            if not positions.transaction:
                return None
            invisible = sorted({*positions.open, *positions.aborted})
            return WriteIds(positions.transaction, invisible, bool(positions.open))
        highest = [
            row["NWI_NEXT"] - 1
            for row in self._rows.rows("NEXT_WRITE_ID", NWI_DATABASE=key.database, NWI_TABLE=key.table)
        ]
        if not highest:
            return None
        unseen = {*positions.open, *positions.aborted}
        begun = positions.transaction or 0  # a transaction that has begun since then isn't among those that are open
        used = self._rows.rows("TXN_TO_WRITE_ID", T2W_DATABASE=key.database, T2W_TABLE=key.table)
        invisible = [row["T2W_WRITEID"] for row in used if row["T2W_TXNID"] in unseen or row["T2W_TXNID"] > begun]
        aborted = set(positions.aborted)
        is_open = any(row["T2W_TXNID"] not in aborted for row in used if row["T2W_WRITEID"] in set(invisible))
        return WriteIds(highest[0], sorted(invisible), is_open)

    def timeline_position(self, table: TableParts) -> int:
        return 0


def _described(key: TableKey, partition: str | None, engine: str, rows: Sequence[Row]) -> ColumnStatistics:
    of = ColumnStatisticsDesc(
        isTblLevel=partition is None,
        dbName=key.database,
        tableName=key.table,
        partName=partition,
        lastAnalyzed=min(row["LAST_ANALYZED"] or 0 for row in rows),
        catName=key.catalog,
    )
    return ColumnStatistics(of, [hive_statistics.of_row(row) for row in rows], engine=engine)


def _privilege(row: Row, ref: HiveObjectRef, privilege: str) -> HiveObjectPrivilege:
    info = PrivilegeGrantInfo(
        row[privilege],
        row["CREATE_TIME"],
        row["GRANTOR"],
        _principal_type(row["GRANTOR_TYPE"]),
        bool(row["GRANT_OPTION"]),
    )
    who = _principal_type(row["PRINCIPAL_TYPE"])
    return HiveObjectPrivilege(ref, row["PRINCIPAL_NAME"], who, info, row.get("AUTHORIZER"))


def _resource(row: Row) -> ResourceUri:
    return ResourceUri(row["RESOURCE_TYPE"], row["RESOURCE_URI"])


def _principal_type(text: str | None) -> PrincipalType | None:
    try:
        return PrincipalType[text] if text else None
    except KeyError:
        raise MetaException(f"{text!r} is no kind of principal") from None


def _truth(value: Any) -> bool:
    """A truth value: a boolean, a bit, a number or a letter, by the database and the version."""
    if isinstance(value, bytes):
        return any(value)
    if isinstance(value, str):
        return value.strip().lower() in ("1", "y", "t", "true")
    return bool(value)

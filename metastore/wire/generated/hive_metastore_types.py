"""Generated from thrift_idl/hive_metastore.thrift by tools/generate_types.py. Do not edit."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from lake.protocol.struct import ExceptionStruct, Spec, Struct, link
from lake.protocol.struct import fields as f


class ClientCapability(IntEnum):
    TEST_CAPABILITY = 1
    INSERT_ONLY_TABLES = 2


class CompactionMetricsMetricType(IntEnum):
    NUM_OBSOLETE_DELTAS = 0
    NUM_DELTAS = 1
    NUM_SMALL_DELTAS = 2


class CompactionType(IntEnum):
    MINOR = 1
    MAJOR = 2
    REBALANCE = 3
    ABORT_TXN_CLEANUP = 4
    SMART_OPTIMIZE = 5


class DataOperationType(IntEnum):
    SELECT = 1
    INSERT = 2
    UPDATE = 3
    DELETE = 4
    UNSET = 5
    NO_TXN = 6


class DatabaseType(IntEnum):
    NATIVE = 1
    REMOTE = 2


class EventRequestType(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3


class FileMetadataExprType(IntEnum):
    ORC_SARG = 1


class FunctionType(IntEnum):
    JAVA = 1


class GetTablesExtRequestFields(IntEnum):
    ACCESS_TYPE = 1
    PROCESSOR_CAPABILITIES = 2
    ALL = 2147483647


class GrantRevokeType(IntEnum):
    GRANT = 1
    REVOKE = 2


class HiveObjectType(IntEnum):
    GLOBAL = 1
    DATABASE = 2
    TABLE = 3
    PARTITION = 4
    COLUMN = 5
    DATACONNECTOR = 6


class LockLevel(IntEnum):
    DB = 1
    TABLE = 2
    PARTITION = 3


class LockState(IntEnum):
    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


class LockType(IntEnum):
    SHARED_READ = 1
    SHARED_WRITE = 2
    EXCLUSIVE = 3
    EXCL_WRITE = 4


class PartitionEventType(IntEnum):
    LOAD_DONE = 1


class PartitionFilterMode(IntEnum):
    BY_NAMES = 0
    BY_VALUES = 1
    BY_EXPR = 2


class PrincipalType(IntEnum):
    USER = 1
    ROLE = 2
    GROUP = 3


class QueryState(IntEnum):
    INITED = 0
    EXECUTING = 1
    FAILED = 2
    FINISHED = 3
    TIMED_OUT = 4
    AUTO_DISABLED = 5


class ResourceType(IntEnum):
    JAR = 1
    FILE = 2
    ARCHIVE = 3


class ScheduledQueryMaintenanceRequestType(IntEnum):
    CREATE = 1
    ALTER = 2
    DROP = 3


class SchemaCompatibility(IntEnum):
    NONE = 1
    BACKWARD = 2
    FORWARD = 3
    BOTH = 4


class SchemaType(IntEnum):
    HIVE = 1
    AVRO = 2


class SchemaValidation(IntEnum):
    LATEST = 1
    ALL = 2


class SchemaVersionState(IntEnum):
    INITIATED = 1
    START_REVIEW = 2
    CHANGES_REQUIRED = 3
    REVIEWED = 4
    ENABLED = 5
    DISABLED = 6
    ARCHIVED = 7
    DELETED = 8


class SerdeType(IntEnum):
    HIVE = 1
    SCHEMA_REGISTRY = 2


class TxnState(IntEnum):
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3


class TxnType(IntEnum):
    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


class WMPoolSchedulingPolicy(IntEnum):
    FAIR = 1
    FIFO = 2


class WMResourcePlanStatus(IntEnum):
    ACTIVE = 1
    ENABLED = 2
    DISABLED = 3


class AbortCompactionRequest(Struct):
    __slots__ = ('compactionIds', 'type', 'poolName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('compactionIds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, compactionIds: list[int] | None = None, type: str | None = None, poolName: str | None = None) -> None:
        self.compactionIds = compactionIds
        self.type = type
        self.poolName = poolName


class AbortCompactionResponseElement(Struct):
    __slots__ = ('compactionId', 'status', 'message', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('compactionId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, compactionId: int | None = None, status: str | None = None, message: str | None = None) -> None:
        self.compactionId = compactionId
        self.status = status
        self.message = message


class AbortCompactResponse(Struct):
    __slots__ = ('abortedcompacts', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('abortedcompacts',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, abortedcompacts: dict[int, AbortCompactionResponseElement] | None = None) -> None:
        self.abortedcompacts = abortedcompacts


class AbortTxnRequest(Struct):
    __slots__ = ('txnid', 'replPolicy', 'txn_type', 'errorCode', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnid: int | None = None, replPolicy: str | None = None, txn_type: int | None = None, errorCode: int | None = None) -> None:
        self.txnid = txnid
        self.replPolicy = replPolicy
        self.txn_type = txn_type
        self.errorCode = errorCode


class AbortTxnsRequest(Struct):
    __slots__ = ('txn_ids', 'errorCode', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txn_ids',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txn_ids: list[int] | None = None, errorCode: int | None = None) -> None:
        self.txn_ids = txn_ids
        self.errorCode = errorCode


class SQLCheckConstraint(Struct):
    __slots__ = ('catName', 'table_db', 'table_name', 'column_name', 'check_expression', 'dc_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, table_db: str | None = None, table_name: str | None = None, column_name: str | None = None, check_expression: str | None = None, dc_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None) -> None:
        self.catName = catName
        self.table_db = table_db
        self.table_name = table_name
        self.column_name = column_name
        self.check_expression = check_expression
        self.dc_name = dc_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr


class AddCheckConstraintRequest(Struct):
    __slots__ = ('checkConstraintCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('checkConstraintCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, checkConstraintCols: list[SQLCheckConstraint] | None = None) -> None:
        self.checkConstraintCols = checkConstraintCols


class SQLDefaultConstraint(Struct):
    __slots__ = ('catName', 'table_db', 'table_name', 'column_name', 'default_value', 'dc_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, table_db: str | None = None, table_name: str | None = None, column_name: str | None = None, default_value: str | None = None, dc_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None) -> None:
        self.catName = catName
        self.table_db = table_db
        self.table_name = table_name
        self.column_name = column_name
        self.default_value = default_value
        self.dc_name = dc_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr


class AddDefaultConstraintRequest(Struct):
    __slots__ = ('defaultConstraintCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('defaultConstraintCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, defaultConstraintCols: list[SQLDefaultConstraint] | None = None) -> None:
        self.defaultConstraintCols = defaultConstraintCols


class AddDynamicPartitions(Struct):
    __slots__ = ('txnid', 'writeid', 'dbname', 'tablename', 'partitionnames', 'operationType', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnid: int | None = None, writeid: int | None = None, dbname: str | None = None, tablename: str | None = None, partitionnames: list[str] | None = None, operationType: int | None = None) -> None:
        self.txnid = txnid
        self.writeid = writeid
        self.dbname = dbname
        self.tablename = tablename
        self.partitionnames = partitionnames
        self.operationType = operationType


class SQLForeignKey(Struct):
    __slots__ = ('pktable_db', 'pktable_name', 'pkcolumn_name', 'fktable_db', 'fktable_name', 'fkcolumn_name', 'key_seq', 'update_rule', 'delete_rule', 'fk_name', 'pk_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'catName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, pktable_db: str | None = None, pktable_name: str | None = None, pkcolumn_name: str | None = None, fktable_db: str | None = None, fktable_name: str | None = None, fkcolumn_name: str | None = None, key_seq: int | None = None, update_rule: int | None = None, delete_rule: int | None = None, fk_name: str | None = None, pk_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None, catName: str | None = None) -> None:
        self.pktable_db = pktable_db
        self.pktable_name = pktable_name
        self.pkcolumn_name = pkcolumn_name
        self.fktable_db = fktable_db
        self.fktable_name = fktable_name
        self.fkcolumn_name = fkcolumn_name
        self.key_seq = key_seq
        self.update_rule = update_rule
        self.delete_rule = delete_rule
        self.fk_name = fk_name
        self.pk_name = pk_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr
        self.catName = catName


class AddForeignKeyRequest(Struct):
    __slots__ = ('foreignKeyCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('foreignKeyCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, foreignKeyCols: list[SQLForeignKey] | None = None) -> None:
        self.foreignKeyCols = foreignKeyCols


class SQLNotNullConstraint(Struct):
    __slots__ = ('catName', 'table_db', 'table_name', 'column_name', 'nn_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, table_db: str | None = None, table_name: str | None = None, column_name: str | None = None, nn_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None) -> None:
        self.catName = catName
        self.table_db = table_db
        self.table_name = table_name
        self.column_name = column_name
        self.nn_name = nn_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr


class AddNotNullConstraintRequest(Struct):
    __slots__ = ('notNullConstraintCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('notNullConstraintCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, notNullConstraintCols: list[SQLNotNullConstraint] | None = None) -> None:
        self.notNullConstraintCols = notNullConstraintCols


class AddPackageRequest(Struct):
    __slots__ = ('catName', 'dbName', 'packageName', 'ownerName', 'header', 'body', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, packageName: str | None = None, ownerName: str | None = None, header: str | None = None, body: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.packageName = packageName
        self.ownerName = ownerName
        self.header = header
        self.body = body


class ColumnStatisticsDesc(Struct):
    __slots__ = ('isTblLevel', 'dbName', 'tableName', 'partName', 'lastAnalyzed', 'catName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('isTblLevel', 'dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, isTblLevel: bool | None = None, dbName: str | None = None, tableName: str | None = None, partName: str | None = None, lastAnalyzed: int | None = None, catName: str | None = None) -> None:
        self.isTblLevel = isTblLevel
        self.dbName = dbName
        self.tableName = tableName
        self.partName = partName
        self.lastAnalyzed = lastAnalyzed
        self.catName = catName


class BinaryColumnStatsData(Struct):
    __slots__ = ('maxColLen', 'avgColLen', 'numNulls', 'bitVectors', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('maxColLen', 'avgColLen', 'numNulls',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, maxColLen: int | None = None, avgColLen: float | None = None, numNulls: int | None = None, bitVectors: bytes | None = None) -> None:
        self.maxColLen = maxColLen
        self.avgColLen = avgColLen
        self.numNulls = numNulls
        self.bitVectors = bitVectors


class BooleanColumnStatsData(Struct):
    __slots__ = ('numTrues', 'numFalses', 'numNulls', 'bitVectors', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numTrues', 'numFalses', 'numNulls',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, numTrues: int | None = None, numFalses: int | None = None, numNulls: int | None = None, bitVectors: bytes | None = None) -> None:
        self.numTrues = numTrues
        self.numFalses = numFalses
        self.numNulls = numNulls
        self.bitVectors = bitVectors


class Date(Struct):
    __slots__ = ('daysSinceEpoch', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('daysSinceEpoch',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, daysSinceEpoch: int | None = None) -> None:
        self.daysSinceEpoch = daysSinceEpoch


class DateColumnStatsData(Struct):
    __slots__ = ('lowValue', 'highValue', 'numNulls', 'numDVs', 'bitVectors', 'histogram', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lowValue: Date | None = None, highValue: Date | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None, histogram: bytes | None = None) -> None:
        self.lowValue = lowValue
        self.highValue = highValue
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors
        self.histogram = histogram


class Decimal(Struct):
    __slots__ = ('unscaled', 'scale', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('unscaled', 'scale',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, unscaled: bytes | None = None, scale: int | None = None) -> None:
        self.unscaled = unscaled
        self.scale = scale


class DecimalColumnStatsData(Struct):
    __slots__ = ('lowValue', 'highValue', 'numNulls', 'numDVs', 'bitVectors', 'histogram', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lowValue: Decimal | None = None, highValue: Decimal | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None, histogram: bytes | None = None) -> None:
        self.lowValue = lowValue
        self.highValue = highValue
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors
        self.histogram = histogram


class DoubleColumnStatsData(Struct):
    __slots__ = ('lowValue', 'highValue', 'numNulls', 'numDVs', 'bitVectors', 'histogram', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lowValue: float | None = None, highValue: float | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None, histogram: bytes | None = None) -> None:
        self.lowValue = lowValue
        self.highValue = highValue
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors
        self.histogram = histogram


class LongColumnStatsData(Struct):
    __slots__ = ('lowValue', 'highValue', 'numNulls', 'numDVs', 'bitVectors', 'histogram', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lowValue: int | None = None, highValue: int | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None, histogram: bytes | None = None) -> None:
        self.lowValue = lowValue
        self.highValue = highValue
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors
        self.histogram = histogram


class StringColumnStatsData(Struct):
    __slots__ = ('maxColLen', 'avgColLen', 'numNulls', 'numDVs', 'bitVectors', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('maxColLen', 'avgColLen', 'numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, maxColLen: int | None = None, avgColLen: float | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None) -> None:
        self.maxColLen = maxColLen
        self.avgColLen = avgColLen
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors


class Timestamp(Struct):
    __slots__ = ('secondsSinceEpoch', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('secondsSinceEpoch',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, secondsSinceEpoch: int | None = None) -> None:
        self.secondsSinceEpoch = secondsSinceEpoch


class TimestampColumnStatsData(Struct):
    __slots__ = ('lowValue', 'highValue', 'numNulls', 'numDVs', 'bitVectors', 'histogram', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('numNulls', 'numDVs',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lowValue: Timestamp | None = None, highValue: Timestamp | None = None, numNulls: int | None = None, numDVs: int | None = None, bitVectors: bytes | None = None, histogram: bytes | None = None) -> None:
        self.lowValue = lowValue
        self.highValue = highValue
        self.numNulls = numNulls
        self.numDVs = numDVs
        self.bitVectors = bitVectors
        self.histogram = histogram


class ColumnStatisticsData(Struct):
    __slots__ = ('booleanStats', 'longStats', 'doubleStats', 'stringStats', 'binaryStats', 'decimalStats', 'dateStats', 'timestampStats', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, booleanStats: BooleanColumnStatsData | None = None, longStats: LongColumnStatsData | None = None, doubleStats: DoubleColumnStatsData | None = None, stringStats: StringColumnStatsData | None = None, binaryStats: BinaryColumnStatsData | None = None, decimalStats: DecimalColumnStatsData | None = None, dateStats: DateColumnStatsData | None = None, timestampStats: TimestampColumnStatsData | None = None) -> None:
        self.booleanStats = booleanStats
        self.longStats = longStats
        self.doubleStats = doubleStats
        self.stringStats = stringStats
        self.binaryStats = binaryStats
        self.decimalStats = decimalStats
        self.dateStats = dateStats
        self.timestampStats = timestampStats


class ColumnStatisticsObj(Struct):
    __slots__ = ('colName', 'colType', 'statsData', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('colName', 'colType', 'statsData',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, colName: str | None = None, colType: str | None = None, statsData: ColumnStatisticsData | None = None) -> None:
        self.colName = colName
        self.colType = colType
        self.statsData = statsData


class ColumnStatistics(Struct):
    __slots__ = ('statsDesc', 'statsObj', 'isStatsCompliant', 'engine', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('statsDesc', 'statsObj',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, statsDesc: ColumnStatisticsDesc | None = None, statsObj: list[ColumnStatisticsObj] | None = None, isStatsCompliant: bool | None = None, engine: str | None = None) -> None:
        self.statsDesc = statsDesc
        self.statsObj = statsObj
        self.isStatsCompliant = isStatsCompliant
        self.engine = engine


class FileMetadata(Struct):
    __slots__ = ('type', 'version', 'data', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, type: int | None = None, version: int | None = None, data: list[bytes] | None = None) -> None:
        self.type = type
        self.version = version
        self.data = data


class PrivilegeGrantInfo(Struct):
    __slots__ = ('privilege', 'createTime', 'grantor', 'grantorType', 'grantOption', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, privilege: str | None = None, createTime: int | None = None, grantor: str | None = None, grantorType: int | None = None, grantOption: bool | None = None) -> None:
        self.privilege = privilege
        self.createTime = createTime
        self.grantor = grantor
        self.grantorType = grantorType
        self.grantOption = grantOption


class PrincipalPrivilegeSet(Struct):
    __slots__ = ('userPrivileges', 'groupPrivileges', 'rolePrivileges', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, userPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None, groupPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None, rolePrivileges: dict[str, list[PrivilegeGrantInfo]] | None = None) -> None:
        self.userPrivileges = userPrivileges
        self.groupPrivileges = groupPrivileges
        self.rolePrivileges = rolePrivileges


class FieldSchema(Struct):
    __slots__ = ('name', 'type', 'comment', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, type: str | None = None, comment: str | None = None) -> None:
        self.name = name
        self.type = type
        self.comment = comment


class Order(Struct):
    __slots__ = ('col', 'order', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, col: str | None = None, order: int | None = None) -> None:
        self.col = col
        self.order = order


class SerDeInfo(Struct):
    __slots__ = ('name', 'serializationLib', 'parameters', 'description', 'serializerClass', 'deserializerClass', 'serdeType', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, serializationLib: str | None = None, parameters: dict[str, str] | None = None, description: str | None = None, serializerClass: str | None = None, deserializerClass: str | None = None, serdeType: int | None = None) -> None:
        self.name = name
        self.serializationLib = serializationLib
        self.parameters = parameters
        self.description = description
        self.serializerClass = serializerClass
        self.deserializerClass = deserializerClass
        self.serdeType = serdeType


class SkewedInfo(Struct):
    __slots__ = ('skewedColNames', 'skewedColValues', 'skewedColValueLocationMaps', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, skewedColNames: list[str] | None = None, skewedColValues: list[list[str]] | None = None, skewedColValueLocationMaps: dict[tuple[str, ...], str] | None = None) -> None:
        self.skewedColNames = skewedColNames
        self.skewedColValues = skewedColValues
        self.skewedColValueLocationMaps = skewedColValueLocationMaps


class StorageDescriptor(Struct):
    __slots__ = ('cols', 'location', 'inputFormat', 'outputFormat', 'compressed', 'numBuckets', 'serdeInfo', 'bucketCols', 'sortCols', 'parameters', 'skewedInfo', 'storedAsSubDirectories', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, cols: list[FieldSchema] | None = None, location: str | None = None, inputFormat: str | None = None, outputFormat: str | None = None, compressed: bool | None = None, numBuckets: int | None = None, serdeInfo: SerDeInfo | None = None, bucketCols: list[str] | None = None, sortCols: list[Order] | None = None, parameters: dict[str, str] | None = None, skewedInfo: SkewedInfo | None = None, storedAsSubDirectories: bool | None = None) -> None:
        self.cols = cols
        self.location = location
        self.inputFormat = inputFormat
        self.outputFormat = outputFormat
        self.compressed = compressed
        self.numBuckets = numBuckets
        self.serdeInfo = serdeInfo
        self.bucketCols = bucketCols
        self.sortCols = sortCols
        self.parameters = parameters
        self.skewedInfo = skewedInfo
        self.storedAsSubDirectories = storedAsSubDirectories


class Partition(Struct):
    __slots__ = ('values', 'dbName', 'tableName', 'createTime', 'lastAccessTime', 'sd', 'parameters', 'privileges', 'catName', 'writeId', 'isStatsCompliant', 'colStats', 'fileMetadata', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, values: list[str] | None = None, dbName: str | None = None, tableName: str | None = None, createTime: int | None = None, lastAccessTime: int | None = None, sd: StorageDescriptor | None = None, parameters: dict[str, str] | None = None, privileges: PrincipalPrivilegeSet | None = None, catName: str | None = None, writeId: int | None = None, isStatsCompliant: bool | None = None, colStats: ColumnStatistics | None = None, fileMetadata: FileMetadata | None = None) -> None:
        self.values = values
        self.dbName = dbName
        self.tableName = tableName
        self.createTime = createTime
        self.lastAccessTime = lastAccessTime
        self.sd = sd
        self.parameters = parameters
        self.privileges = privileges
        self.catName = catName
        self.writeId = writeId
        self.isStatsCompliant = isStatsCompliant
        self.colStats = colStats
        self.fileMetadata = fileMetadata


class AddPartitionsRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'parts', 'ifNotExists', 'needResult', 'catName', 'validWriteIdList', 'skipColumnSchemaForPartition', 'partitionColSchema', 'environmentContext', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'parts', 'ifNotExists',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, parts: list[Partition] | None = None, ifNotExists: bool | None = None, needResult: bool | None = None, catName: str | None = None, validWriteIdList: str | None = None, skipColumnSchemaForPartition: bool | None = None, partitionColSchema: list[FieldSchema] | None = None, environmentContext: EnvironmentContext | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.parts = parts
        self.ifNotExists = ifNotExists
        self.needResult = needResult
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.partitionColSchema = partitionColSchema
        self.environmentContext = environmentContext


class AddPartitionsResult(Struct):
    __slots__ = ('partitions', 'isStatsCompliant', 'partitionColSchema', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None, isStatsCompliant: bool | None = None, partitionColSchema: list[FieldSchema] | None = None) -> None:
        self.partitions = partitions
        self.isStatsCompliant = isStatsCompliant
        self.partitionColSchema = partitionColSchema


class SQLPrimaryKey(Struct):
    __slots__ = ('table_db', 'table_name', 'column_name', 'key_seq', 'pk_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'catName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, table_db: str | None = None, table_name: str | None = None, column_name: str | None = None, key_seq: int | None = None, pk_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None, catName: str | None = None) -> None:
        self.table_db = table_db
        self.table_name = table_name
        self.column_name = column_name
        self.key_seq = key_seq
        self.pk_name = pk_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr
        self.catName = catName


class AddPrimaryKeyRequest(Struct):
    __slots__ = ('primaryKeyCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('primaryKeyCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, primaryKeyCols: list[SQLPrimaryKey] | None = None) -> None:
        self.primaryKeyCols = primaryKeyCols


class SQLUniqueConstraint(Struct):
    __slots__ = ('catName', 'table_db', 'table_name', 'column_name', 'key_seq', 'uk_name', 'enable_cstr', 'validate_cstr', 'rely_cstr', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, table_db: str | None = None, table_name: str | None = None, column_name: str | None = None, key_seq: int | None = None, uk_name: str | None = None, enable_cstr: bool | None = None, validate_cstr: bool | None = None, rely_cstr: bool | None = None) -> None:
        self.catName = catName
        self.table_db = table_db
        self.table_name = table_name
        self.column_name = column_name
        self.key_seq = key_seq
        self.uk_name = uk_name
        self.enable_cstr = enable_cstr
        self.validate_cstr = validate_cstr
        self.rely_cstr = rely_cstr


class AddUniqueConstraintRequest(Struct):
    __slots__ = ('uniqueConstraintCols', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('uniqueConstraintCols',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, uniqueConstraintCols: list[SQLUniqueConstraint] | None = None) -> None:
        self.uniqueConstraintCols = uniqueConstraintCols


class AggrStats(Struct):
    __slots__ = ('colStats', 'partsFound', 'isStatsCompliant', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('colStats', 'partsFound',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, colStats: list[ColumnStatisticsObj] | None = None, partsFound: int | None = None, isStatsCompliant: bool | None = None) -> None:
        self.colStats = colStats
        self.partsFound = partsFound
        self.isStatsCompliant = isStatsCompliant


class AllTableConstraintsRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'catName', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'catName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, catName: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class SQLAllTableConstraints(Struct):
    __slots__ = ('primaryKeys', 'foreignKeys', 'uniqueConstraints', 'notNullConstraints', 'defaultConstraints', 'checkConstraints', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, primaryKeys: list[SQLPrimaryKey] | None = None, foreignKeys: list[SQLForeignKey] | None = None, uniqueConstraints: list[SQLUniqueConstraint] | None = None, notNullConstraints: list[SQLNotNullConstraint] | None = None, defaultConstraints: list[SQLDefaultConstraint] | None = None, checkConstraints: list[SQLCheckConstraint] | None = None) -> None:
        self.primaryKeys = primaryKeys
        self.foreignKeys = foreignKeys
        self.uniqueConstraints = uniqueConstraints
        self.notNullConstraints = notNullConstraints
        self.defaultConstraints = defaultConstraints
        self.checkConstraints = checkConstraints


class AllTableConstraintsResponse(Struct):
    __slots__ = ('allTableConstraints', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('allTableConstraints',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, allTableConstraints: SQLAllTableConstraints | None = None) -> None:
        self.allTableConstraints = allTableConstraints


class TxnToWriteId(Struct):
    __slots__ = ('txnId', 'writeId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnId', 'writeId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnId: int | None = None, writeId: int | None = None) -> None:
        self.txnId = txnId
        self.writeId = writeId


class AllocateTableWriteIdsRequest(Struct):
    __slots__ = ('dbName', 'tableName', 'txnIds', 'replPolicy', 'srcTxnToWriteIdList', 'reallocate', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None, txnIds: list[int] | None = None, replPolicy: str | None = None, srcTxnToWriteIdList: list[TxnToWriteId] | None = None, reallocate: bool | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName
        self.txnIds = txnIds
        self.replPolicy = replPolicy
        self.srcTxnToWriteIdList = srcTxnToWriteIdList
        self.reallocate = reallocate


class AllocateTableWriteIdsResponse(Struct):
    __slots__ = ('txnToWriteIds', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnToWriteIds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnToWriteIds: list[TxnToWriteId] | None = None) -> None:
        self.txnToWriteIds = txnToWriteIds


class Catalog(Struct):
    __slots__ = ('name', 'description', 'locationUri', 'createTime', 'parameters', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, description: str | None = None, locationUri: str | None = None, createTime: int | None = None, parameters: dict[str, str] | None = None) -> None:
        self.name = name
        self.description = description
        self.locationUri = locationUri
        self.createTime = createTime
        self.parameters = parameters


class AlterCatalogRequest(Struct):
    __slots__ = ('name', 'newCat', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, newCat: Catalog | None = None) -> None:
        self.name = name
        self.newCat = newCat


class ISchema(Struct):
    __slots__ = ('schemaType', 'name', 'catName', 'dbName', 'compatibility', 'validationLevel', 'canEvolve', 'schemaGroup', 'description', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schemaType: int | None = None, name: str | None = None, catName: str | None = None, dbName: str | None = None, compatibility: int | None = None, validationLevel: int | None = None, canEvolve: bool | None = None, schemaGroup: str | None = None, description: str | None = None) -> None:
        self.schemaType = schemaType
        self.name = name
        self.catName = catName
        self.dbName = dbName
        self.compatibility = compatibility
        self.validationLevel = validationLevel
        self.canEvolve = canEvolve
        self.schemaGroup = schemaGroup
        self.description = description


class ISchemaName(Struct):
    __slots__ = ('catName', 'dbName', 'schemaName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, schemaName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.schemaName = schemaName


class AlterDataConnectorRequest(Struct):
    __slots__ = ('connectorName', 'newConnector', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('connectorName', 'newConnector',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, connectorName: str | None = None, newConnector: DataConnector | None = None) -> None:
        self.connectorName = connectorName
        self.newConnector = newConnector


class AlterISchemaRequest(Struct):
    __slots__ = ('name', 'newSchema', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: ISchemaName | None = None, newSchema: ISchema | None = None) -> None:
        self.name = name
        self.newSchema = newSchema


class EnvironmentContext(Struct):
    __slots__ = ('properties', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        self.properties = properties


class AlterPartitionsRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tableName', 'partitions', 'environmentContext', 'writeId', 'validWriteIdList', 'skipColumnSchemaForPartition', 'partitionColSchema', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName', 'partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tableName: str | None = None, partitions: list[Partition] | None = None, environmentContext: EnvironmentContext | None = None, writeId: int | None = None, validWriteIdList: str | None = None, skipColumnSchemaForPartition: bool | None = None, partitionColSchema: list[FieldSchema] | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tableName = tableName
        self.partitions = partitions
        self.environmentContext = environmentContext
        self.writeId = writeId
        self.validWriteIdList = validWriteIdList
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.partitionColSchema = partitionColSchema


class AlterPartitionsResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class SourceTable(Struct):
    __slots__ = ('table', 'insertedCount', 'updatedCount', 'deletedCount', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table', 'insertedCount', 'updatedCount', 'deletedCount',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: Table | None = None, insertedCount: int | None = None, updatedCount: int | None = None, deletedCount: int | None = None) -> None:
        self.table = table
        self.insertedCount = insertedCount
        self.updatedCount = updatedCount
        self.deletedCount = deletedCount


class CreationMetadata(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'tablesUsed', 'validTxnList', 'materializationTime', 'sourceTables', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'dbName', 'tblName', 'tablesUsed',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, tablesUsed: set[str] | None = None, validTxnList: str | None = None, materializationTime: int | None = None, sourceTables: list[SourceTable] | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.tablesUsed = tablesUsed
        self.validTxnList = validTxnList
        self.materializationTime = materializationTime
        self.sourceTables = sourceTables


class ObjectDictionary(Struct):
    __slots__ = ('values', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('values',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, values: dict[str, list[bytes]] | None = None) -> None:
        self.values = values


class Table(Struct):
    __slots__ = ('tableName', 'dbName', 'owner', 'createTime', 'lastAccessTime', 'retention', 'sd', 'partitionKeys', 'parameters', 'viewOriginalText', 'viewExpandedText', 'tableType', 'privileges', 'temporary', 'rewriteEnabled', 'creationMetadata', 'catName', 'ownerType', 'writeId', 'isStatsCompliant', 'colStats', 'accessType', 'requiredReadCapabilities', 'requiredWriteCapabilities', 'id', 'fileMetadata', 'dictionary', 'txnId', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableName: str | None = None, dbName: str | None = None, owner: str | None = None, createTime: int | None = None, lastAccessTime: int | None = None, retention: int | None = None, sd: StorageDescriptor | None = None, partitionKeys: list[FieldSchema] | None = None, parameters: dict[str, str] | None = None, viewOriginalText: str | None = None, viewExpandedText: str | None = None, tableType: str | None = None, privileges: PrincipalPrivilegeSet | None = None, temporary: bool | None = None, rewriteEnabled: bool | None = None, creationMetadata: CreationMetadata | None = None, catName: str | None = None, ownerType: int | None = None, writeId: int | None = None, isStatsCompliant: bool | None = None, colStats: ColumnStatistics | None = None, accessType: int | None = None, requiredReadCapabilities: list[str] | None = None, requiredWriteCapabilities: list[str] | None = None, id: int | None = None, fileMetadata: FileMetadata | None = None, dictionary: ObjectDictionary | None = None, txnId: int | None = None) -> None:
        self.tableName = tableName
        self.dbName = dbName
        self.owner = owner
        self.createTime = createTime
        self.lastAccessTime = lastAccessTime
        self.retention = retention
        self.sd = sd
        self.partitionKeys = partitionKeys
        self.parameters = parameters
        self.viewOriginalText = viewOriginalText
        self.viewExpandedText = viewExpandedText
        self.tableType = tableType
        self.privileges = privileges
        self.temporary = temporary
        self.rewriteEnabled = rewriteEnabled
        self.creationMetadata = creationMetadata
        self.catName = catName
        self.ownerType = ownerType
        self.writeId = writeId
        self.isStatsCompliant = isStatsCompliant
        self.colStats = colStats
        self.accessType = accessType
        self.requiredReadCapabilities = requiredReadCapabilities
        self.requiredWriteCapabilities = requiredWriteCapabilities
        self.id = id
        self.fileMetadata = fileMetadata
        self.dictionary = dictionary
        self.txnId = txnId


class AlterTableRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tableName', 'table', 'environmentContext', 'writeId', 'validWriteIdList', 'processorCapabilities', 'processorIdentifier', 'expectedParameterKey', 'expectedParameterValue', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName', 'table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tableName: str | None = None, table: Table | None = None, environmentContext: EnvironmentContext | None = None, writeId: int | None = None, validWriteIdList: str | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None, expectedParameterKey: str | None = None, expectedParameterValue: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tableName = tableName
        self.table = table
        self.environmentContext = environmentContext
        self.writeId = writeId
        self.validWriteIdList = validWriteIdList
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier
        self.expectedParameterKey = expectedParameterKey
        self.expectedParameterValue = expectedParameterValue


class AlterTableResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class AppendPartitionsRequest(Struct):
    __slots__ = ('catalogName', 'dbName', 'tableName', 'name', 'partVals', 'environmentContext', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalogName: str | None = None, dbName: str | None = None, tableName: str | None = None, name: str | None = None, partVals: list[str] | None = None, environmentContext: EnvironmentContext | None = None) -> None:
        self.catalogName = catalogName
        self.dbName = dbName
        self.tableName = tableName
        self.name = name
        self.partVals = partVals
        self.environmentContext = environmentContext


class BasicTxnInfo(Struct):
    __slots__ = ('isnull', 'time', 'txnid', 'dbname', 'tablename', 'partitionname', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('isnull',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, isnull: bool | None = None, time: int | None = None, txnid: int | None = None, dbname: str | None = None, tablename: str | None = None, partitionname: str | None = None) -> None:
        self.isnull = isnull
        self.time = time
        self.txnid = txnid
        self.dbname = dbname
        self.tablename = tablename
        self.partitionname = partitionname


class CacheFileMetadataRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'partName', 'isAllParts', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, partName: str | None = None, isAllParts: bool | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.partName = partName
        self.isAllParts = isAllParts


class CacheFileMetadataResult(Struct):
    __slots__ = ('isSupported', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('isSupported',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, isSupported: bool | None = None) -> None:
        self.isSupported = isSupported


class CheckConstraintsRequest(Struct):
    __slots__ = ('catName', 'db_name', 'tbl_name', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, db_name: str | None = None, tbl_name: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.catName = catName
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class CheckConstraintsResponse(Struct):
    __slots__ = ('checkConstraints', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('checkConstraints',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, checkConstraints: list[SQLCheckConstraint] | None = None) -> None:
        self.checkConstraints = checkConstraints


class CheckLockRequest(Struct):
    __slots__ = ('lockid', 'txnid', 'elapsed_ms', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('lockid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lockid: int | None = None, txnid: int | None = None, elapsed_ms: int | None = None) -> None:
        self.lockid = lockid
        self.txnid = txnid
        self.elapsed_ms = elapsed_ms


class ClearFileMetadataRequest(Struct):
    __slots__ = ('fileIds', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fileIds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fileIds: list[int] | None = None) -> None:
        self.fileIds = fileIds


class ClearFileMetadataResult(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class ClientCapabilities(Struct):
    __slots__ = ('values', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('values',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, values: list[int] | None = None) -> None:
        self.values = values


class CmRecycleRequest(Struct):
    __slots__ = ('dataPath', 'purge', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dataPath', 'purge',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dataPath: str | None = None, purge: bool | None = None) -> None:
        self.dataPath = dataPath
        self.purge = purge


class CmRecycleResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class CommitTxnKeyValue(Struct):
    __slots__ = ('tableId', 'key', 'value', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tableId', 'key', 'value',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableId: int | None = None, key: str | None = None, value: str | None = None) -> None:
        self.tableId = tableId
        self.key = key
        self.value = value


class ReplLastIdInfo(Struct):
    __slots__ = ('database', 'lastReplId', 'table', 'catalog', 'partitionList', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('database', 'lastReplId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, database: str | None = None, lastReplId: int | None = None, table: str | None = None, catalog: str | None = None, partitionList: list[str] | None = None) -> None:
        self.database = database
        self.lastReplId = lastReplId
        self.table = table
        self.catalog = catalog
        self.partitionList = partitionList


class WriteEventInfo(Struct):
    __slots__ = ('writeId', 'database', 'table', 'files', 'partition', 'tableObj', 'partitionObj', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('writeId', 'database', 'table', 'files',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, writeId: int | None = None, database: str | None = None, table: str | None = None, files: str | None = None, partition: str | None = None, tableObj: str | None = None, partitionObj: str | None = None) -> None:
        self.writeId = writeId
        self.database = database
        self.table = table
        self.files = files
        self.partition = partition
        self.tableObj = tableObj
        self.partitionObj = partitionObj


class CommitTxnRequest(Struct):
    __slots__ = ('txnid', 'replPolicy', 'writeEventInfos', 'replLastIdInfo', 'keyValue', 'exclWriteEnabled', 'txn_type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnid: int | None = None, replPolicy: str | None = None, writeEventInfos: list[WriteEventInfo] | None = None, replLastIdInfo: ReplLastIdInfo | None = None, keyValue: CommitTxnKeyValue | None = None, exclWriteEnabled: bool | None = None, txn_type: int | None = None) -> None:
        self.txnid = txnid
        self.replPolicy = replPolicy
        self.writeEventInfos = writeEventInfos
        self.replLastIdInfo = replLastIdInfo
        self.keyValue = keyValue
        self.exclWriteEnabled = exclWriteEnabled
        self.txn_type = txn_type


class CompactionInfoStruct(Struct):
    __slots__ = ('id', 'dbname', 'tablename', 'partitionname', 'type', 'runas', 'properties', 'toomanyaborts', 'state', 'workerId', 'start', 'highestWriteId', 'errorMessage', 'hasoldabort', 'enqueueTime', 'retryRetention', 'poolname', 'numberOfBuckets', 'orderByClause', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'dbname', 'tablename', 'type',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, dbname: str | None = None, tablename: str | None = None, partitionname: str | None = None, type: int | None = None, runas: str | None = None, properties: str | None = None, toomanyaborts: bool | None = None, state: str | None = None, workerId: str | None = None, start: int | None = None, highestWriteId: int | None = None, errorMessage: str | None = None, hasoldabort: bool | None = None, enqueueTime: int | None = None, retryRetention: int | None = None, poolname: str | None = None, numberOfBuckets: int | None = None, orderByClause: str | None = None) -> None:
        self.id = id
        self.dbname = dbname
        self.tablename = tablename
        self.partitionname = partitionname
        self.type = type
        self.runas = runas
        self.properties = properties
        self.toomanyaborts = toomanyaborts
        self.state = state
        self.workerId = workerId
        self.start = start
        self.highestWriteId = highestWriteId
        self.errorMessage = errorMessage
        self.hasoldabort = hasoldabort
        self.enqueueTime = enqueueTime
        self.retryRetention = retryRetention
        self.poolname = poolname
        self.numberOfBuckets = numberOfBuckets
        self.orderByClause = orderByClause


class CompactionMetricsDataRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'partitionName', 'type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'type',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, partitionName: str | None = None, type: int | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.partitionName = partitionName
        self.type = type


class CompactionMetricsDataStruct(Struct):
    __slots__ = ('dbname', 'tblname', 'partitionname', 'type', 'metricvalue', 'version', 'threshold', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbname', 'tblname', 'type', 'metricvalue', 'version', 'threshold',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tblname: str | None = None, partitionname: str | None = None, type: int | None = None, metricvalue: int | None = None, version: int | None = None, threshold: int | None = None) -> None:
        self.dbname = dbname
        self.tblname = tblname
        self.partitionname = partitionname
        self.type = type
        self.metricvalue = metricvalue
        self.version = version
        self.threshold = threshold


class CompactionMetricsDataResponse(Struct):
    __slots__ = ('data', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, data: CompactionMetricsDataStruct | None = None) -> None:
        self.data = data


class CompactionRequest(Struct):
    __slots__ = ('dbname', 'tablename', 'partitionname', 'type', 'runas', 'properties', 'initiatorId', 'initiatorVersion', 'poolName', 'numberOfBuckets', 'orderByClause', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbname', 'tablename', 'type',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tablename: str | None = None, partitionname: str | None = None, type: int | None = None, runas: str | None = None, properties: dict[str, str] | None = None, initiatorId: str | None = None, initiatorVersion: str | None = None, poolName: str | None = None, numberOfBuckets: int | None = None, orderByClause: str | None = None) -> None:
        self.dbname = dbname
        self.tablename = tablename
        self.partitionname = partitionname
        self.type = type
        self.runas = runas
        self.properties = properties
        self.initiatorId = initiatorId
        self.initiatorVersion = initiatorVersion
        self.poolName = poolName
        self.numberOfBuckets = numberOfBuckets
        self.orderByClause = orderByClause


class CompactionResponse(Struct):
    __slots__ = ('id', 'state', 'accepted', 'errormessage', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'state', 'accepted',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, state: str | None = None, accepted: bool | None = None, errormessage: str | None = None) -> None:
        self.id = id
        self.state = state
        self.accepted = accepted
        self.errormessage = errormessage


class CreateCatalogRequest(Struct):
    __slots__ = ('catalog', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = catalog


class DataConnector(Struct):
    __slots__ = ('name', 'type', 'url', 'description', 'parameters', 'ownerName', 'ownerType', 'createTime', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, type: str | None = None, url: str | None = None, description: str | None = None, parameters: dict[str, str] | None = None, ownerName: str | None = None, ownerType: int | None = None, createTime: int | None = None) -> None:
        self.name = name
        self.type = type
        self.url = url
        self.description = description
        self.parameters = parameters
        self.ownerName = ownerName
        self.ownerType = ownerType
        self.createTime = createTime


class CreateDataConnectorRequest(Struct):
    __slots__ = ('connector', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, connector: DataConnector | None = None) -> None:
        self.connector = connector


class CreateDatabaseRequest(Struct):
    __slots__ = ('databaseName', 'description', 'locationUri', 'parameters', 'privileges', 'ownerName', 'ownerType', 'catalogName', 'createTime', 'managedLocationUri', 'type', 'dataConnectorName', 'remote_dbname', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('databaseName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, databaseName: str | None = None, description: str | None = None, locationUri: str | None = None, parameters: dict[str, str] | None = None, privileges: PrincipalPrivilegeSet | None = None, ownerName: str | None = None, ownerType: int | None = None, catalogName: str | None = None, createTime: int | None = None, managedLocationUri: str | None = None, type: int | None = None, dataConnectorName: str | None = None, remote_dbname: str | None = None) -> None:
        self.databaseName = databaseName
        self.description = description
        self.locationUri = locationUri
        self.parameters = parameters
        self.privileges = privileges
        self.ownerName = ownerName
        self.ownerType = ownerType
        self.catalogName = catalogName
        self.createTime = createTime
        self.managedLocationUri = managedLocationUri
        self.type = type
        self.dataConnectorName = dataConnectorName
        self.remote_dbname = remote_dbname


class CreateTableRequest(Struct):
    __slots__ = ('table', 'envContext', 'primaryKeys', 'foreignKeys', 'uniqueConstraints', 'notNullConstraints', 'defaultConstraints', 'checkConstraints', 'processorCapabilities', 'processorIdentifier', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: Table | None = None, envContext: EnvironmentContext | None = None, primaryKeys: list[SQLPrimaryKey] | None = None, foreignKeys: list[SQLForeignKey] | None = None, uniqueConstraints: list[SQLUniqueConstraint] | None = None, notNullConstraints: list[SQLNotNullConstraint] | None = None, defaultConstraints: list[SQLDefaultConstraint] | None = None, checkConstraints: list[SQLCheckConstraint] | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None) -> None:
        self.table = table
        self.envContext = envContext
        self.primaryKeys = primaryKeys
        self.foreignKeys = foreignKeys
        self.uniqueConstraints = uniqueConstraints
        self.notNullConstraints = notNullConstraints
        self.defaultConstraints = defaultConstraints
        self.checkConstraints = checkConstraints
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier


class CurrentNotificationEventId(Struct):
    __slots__ = ('eventId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('eventId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, eventId: int | None = None) -> None:
        self.eventId = eventId


class Database(Struct):
    __slots__ = ('name', 'description', 'locationUri', 'parameters', 'privileges', 'ownerName', 'ownerType', 'catalogName', 'createTime', 'managedLocationUri', 'type', 'connector_name', 'remote_dbname', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, description: str | None = None, locationUri: str | None = None, parameters: dict[str, str] | None = None, privileges: PrincipalPrivilegeSet | None = None, ownerName: str | None = None, ownerType: int | None = None, catalogName: str | None = None, createTime: int | None = None, managedLocationUri: str | None = None, type: int | None = None, connector_name: str | None = None, remote_dbname: str | None = None) -> None:
        self.name = name
        self.description = description
        self.locationUri = locationUri
        self.parameters = parameters
        self.privileges = privileges
        self.ownerName = ownerName
        self.ownerType = ownerType
        self.catalogName = catalogName
        self.createTime = createTime
        self.managedLocationUri = managedLocationUri
        self.type = type
        self.connector_name = connector_name
        self.remote_dbname = remote_dbname


class AlterDatabaseRequest(Struct):
    __slots__ = ('oldDbName', 'newDb', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('oldDbName', 'newDb',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, oldDbName: str | None = None, newDb: Database | None = None) -> None:
        self.oldDbName = oldDbName
        self.newDb = newDb


class DefaultConstraintsRequest(Struct):
    __slots__ = ('catName', 'db_name', 'tbl_name', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, db_name: str | None = None, tbl_name: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.catName = catName
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class DefaultConstraintsResponse(Struct):
    __slots__ = ('defaultConstraints', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('defaultConstraints',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, defaultConstraints: list[SQLDefaultConstraint] | None = None) -> None:
        self.defaultConstraints = defaultConstraints


class DeleteColumnStatisticsRequest(Struct):
    __slots__ = ('cat_name', 'db_name', 'tbl_name', 'part_names', 'col_names', 'engine', 'tableLevel', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, cat_name: str | None = None, db_name: str | None = None, tbl_name: str | None = None, part_names: list[str] | None = None, col_names: list[str] | None = None, engine: str | None = None, tableLevel: bool | None = None) -> None:
        self.cat_name = cat_name
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.part_names = part_names
        self.col_names = col_names
        self.engine = engine
        self.tableLevel = tableLevel


class DropCatalogRequest(Struct):
    __slots__ = ('name', 'ifExists', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, ifExists: bool | None = None) -> None:
        self.name = name
        self.ifExists = ifExists


class DropDataConnectorRequest(Struct):
    __slots__ = ('connectorName', 'ifNotExists', 'checkReferences', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('connectorName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, connectorName: str | None = None, ifNotExists: bool | None = None, checkReferences: bool | None = None) -> None:
        self.connectorName = connectorName
        self.ifNotExists = ifNotExists
        self.checkReferences = checkReferences


class DropConstraintRequest(Struct):
    __slots__ = ('dbname', 'tablename', 'constraintname', 'catName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbname', 'tablename', 'constraintname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tablename: str | None = None, constraintname: str | None = None, catName: str | None = None) -> None:
        self.dbname = dbname
        self.tablename = tablename
        self.constraintname = constraintname
        self.catName = catName


class DropDatabaseRequest(Struct):
    __slots__ = ('name', 'catalogName', 'ignoreUnknownDb', 'deleteData', 'cascade', 'softDelete', 'txnId', 'deleteManagedDir', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name', 'ignoreUnknownDb', 'deleteData', 'cascade',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, catalogName: str | None = None, ignoreUnknownDb: bool | None = None, deleteData: bool | None = None, cascade: bool | None = None, softDelete: bool | None = None, txnId: int | None = None, deleteManagedDir: bool | None = None) -> None:
        self.name = name
        self.catalogName = catalogName
        self.ignoreUnknownDb = ignoreUnknownDb
        self.deleteData = deleteData
        self.cascade = cascade
        self.softDelete = softDelete
        self.txnId = txnId
        self.deleteManagedDir = deleteManagedDir


class DropPackageRequest(Struct):
    __slots__ = ('catName', 'dbName', 'packageName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'dbName', 'packageName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, packageName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.packageName = packageName


class DropPartitionRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'partName', 'partVals', 'deleteData', 'environmentContext', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, partName: str | None = None, partVals: list[str] | None = None, deleteData: bool | None = None, environmentContext: EnvironmentContext | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.partName = partName
        self.partVals = partVals
        self.deleteData = deleteData
        self.environmentContext = environmentContext


class DropPartitionsExpr(Struct):
    __slots__ = ('expr', 'partArchiveLevel', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('expr',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, expr: bytes | None = None, partArchiveLevel: int | None = None) -> None:
        self.expr = expr
        self.partArchiveLevel = partArchiveLevel


class RequestPartsSpec(Struct):
    __slots__ = ('names', 'exprs', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, names: list[str] | None = None, exprs: list[DropPartitionsExpr] | None = None) -> None:
        self.names = names
        self.exprs = exprs


class DropPartitionsRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'parts', 'deleteData', 'ifExists', 'ignoreProtection', 'environmentContext', 'needResult', 'catName', 'skipColumnSchemaForPartition', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'parts',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, parts: RequestPartsSpec | None = None, deleteData: bool | None = None, ifExists: bool | None = None, ignoreProtection: bool | None = None, environmentContext: EnvironmentContext | None = None, needResult: bool | None = None, catName: str | None = None, skipColumnSchemaForPartition: bool | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.parts = parts
        self.deleteData = deleteData
        self.ifExists = ifExists
        self.ignoreProtection = ignoreProtection
        self.environmentContext = environmentContext
        self.needResult = needResult
        self.catName = catName
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition


class DropPartitionsResult(Struct):
    __slots__ = ('partitions', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None) -> None:
        self.partitions = partitions


class DropTableRequest(Struct):
    __slots__ = ('catalogName', 'dbName', 'tableName', 'deleteData', 'envContext', 'dropPartitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalogName: str | None = None, dbName: str | None = None, tableName: str | None = None, deleteData: bool | None = None, envContext: EnvironmentContext | None = None, dropPartitions: bool | None = None) -> None:
        self.catalogName = catalogName
        self.dbName = dbName
        self.tableName = tableName
        self.deleteData = deleteData
        self.envContext = envContext
        self.dropPartitions = dropPartitions


class ExtendedTableInfo(Struct):
    __slots__ = ('tblName', 'accessType', 'requiredReadCapabilities', 'requiredWriteCapabilities', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tblName: str | None = None, accessType: int | None = None, requiredReadCapabilities: list[str] | None = None, requiredWriteCapabilities: list[str] | None = None) -> None:
        self.tblName = tblName
        self.accessType = accessType
        self.requiredReadCapabilities = requiredReadCapabilities
        self.requiredWriteCapabilities = requiredWriteCapabilities


class FindNextCompactRequest(Struct):
    __slots__ = ('workerId', 'workerVersion', 'poolName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, workerId: str | None = None, workerVersion: str | None = None, poolName: str | None = None) -> None:
        self.workerId = workerId
        self.workerVersion = workerVersion
        self.poolName = poolName


class SchemaVersionDescriptor(Struct):
    __slots__ = ('schema', 'version', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schema: ISchemaName | None = None, version: int | None = None) -> None:
        self.schema = schema
        self.version = version


class FindSchemasByColsResp(Struct):
    __slots__ = ('schemaVersions', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schemaVersions: list[SchemaVersionDescriptor] | None = None) -> None:
        self.schemaVersions = schemaVersions


class FindSchemasByColsRqst(Struct):
    __slots__ = ('colName', 'colNamespace', 'type', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, colName: str | None = None, colNamespace: str | None = None, type: str | None = None) -> None:
        self.colName = colName
        self.colNamespace = colNamespace
        self.type = type


class InsertEventRequestData(Struct):
    __slots__ = ('replace', 'filesAdded', 'filesAddedChecksum', 'subDirectoryList', 'partitionVal', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, replace: bool | None = None, filesAdded: list[str] | None = None, filesAddedChecksum: list[str] | None = None, subDirectoryList: list[str] | None = None, partitionVal: list[str] | None = None) -> None:
        self.replace = replace
        self.filesAdded = filesAdded
        self.filesAddedChecksum = filesAddedChecksum
        self.subDirectoryList = subDirectoryList
        self.partitionVal = partitionVal


class FireEventRequestData(Struct):
    __slots__ = ('insertData', 'insertDatas', 'refreshEvent', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, insertData: InsertEventRequestData | None = None, insertDatas: list[InsertEventRequestData] | None = None, refreshEvent: bool | None = None) -> None:
        self.insertData = insertData
        self.insertDatas = insertDatas
        self.refreshEvent = refreshEvent


class FireEventRequest(Struct):
    __slots__ = ('successful', 'data', 'dbName', 'tableName', 'partitionVals', 'catName', 'tblParams', 'batchPartitionValsForRefresh', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('successful', 'data',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, successful: bool | None = None, data: FireEventRequestData | None = None, dbName: str | None = None, tableName: str | None = None, partitionVals: list[str] | None = None, catName: str | None = None, tblParams: dict[str, str] | None = None, batchPartitionValsForRefresh: list[list[str]] | None = None) -> None:
        self.successful = successful
        self.data = data
        self.dbName = dbName
        self.tableName = tableName
        self.partitionVals = partitionVals
        self.catName = catName
        self.tblParams = tblParams
        self.batchPartitionValsForRefresh = batchPartitionValsForRefresh


class FireEventResponse(Struct):
    __slots__ = ('eventIds', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, eventIds: list[int] | None = None) -> None:
        self.eventIds = eventIds


class ForeignKeysRequest(Struct):
    __slots__ = ('parent_db_name', 'parent_tbl_name', 'foreign_db_name', 'foreign_tbl_name', 'catName', 'validWriteIdList', 'tableId', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, parent_db_name: str | None = None, parent_tbl_name: str | None = None, foreign_db_name: str | None = None, foreign_tbl_name: str | None = None, catName: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.parent_db_name = parent_db_name
        self.parent_tbl_name = parent_tbl_name
        self.foreign_db_name = foreign_db_name
        self.foreign_tbl_name = foreign_tbl_name
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class ForeignKeysResponse(Struct):
    __slots__ = ('foreignKeys', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('foreignKeys',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, foreignKeys: list[SQLForeignKey] | None = None) -> None:
        self.foreignKeys = foreignKeys


class ResourceUri(Struct):
    __slots__ = ('resourceType', 'uri', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourceType: int | None = None, uri: str | None = None) -> None:
        self.resourceType = resourceType
        self.uri = uri


class Function(Struct):
    __slots__ = ('functionName', 'dbName', 'className', 'ownerName', 'ownerType', 'createTime', 'functionType', 'resourceUris', 'catName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, functionName: str | None = None, dbName: str | None = None, className: str | None = None, ownerName: str | None = None, ownerType: int | None = None, createTime: int | None = None, functionType: int | None = None, resourceUris: list[ResourceUri] | None = None, catName: str | None = None) -> None:
        self.functionName = functionName
        self.dbName = dbName
        self.className = className
        self.ownerName = ownerName
        self.ownerType = ownerType
        self.createTime = createTime
        self.functionType = functionType
        self.resourceUris = resourceUris
        self.catName = catName


class GetAllFunctionsResponse(Struct):
    __slots__ = ('functions', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, functions: list[Function] | None = None) -> None:
        self.functions = functions


class GetAllWriteEventInfoRequest(Struct):
    __slots__ = ('txnId', 'dbName', 'tableName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnId: int | None = None, dbName: str | None = None, tableName: str | None = None) -> None:
        self.txnId = txnId
        self.dbName = dbName
        self.tableName = tableName


class GetCatalogRequest(Struct):
    __slots__ = ('name', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None) -> None:
        self.name = name


class GetCatalogResponse(Struct):
    __slots__ = ('catalog', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = catalog


class GetCatalogsResponse(Struct):
    __slots__ = ('names', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = names


class GetDataConnectorRequest(Struct):
    __slots__ = ('connectorName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('connectorName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, connectorName: str | None = None) -> None:
        self.connectorName = connectorName


class GetDatabaseObjectsRequest(Struct):
    __slots__ = ('catalogName', 'pattern', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalogName: str | None = None, pattern: str | None = None) -> None:
        self.catalogName = catalogName
        self.pattern = pattern


class GetDatabaseObjectsResponse(Struct):
    __slots__ = ('databases', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('databases',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, databases: list[Database] | None = None) -> None:
        self.databases = databases


class GetDatabaseRequest(Struct):
    __slots__ = ('name', 'catalogName', 'processorCapabilities', 'processorIdentifier', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, catalogName: str | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None) -> None:
        self.name = name
        self.catalogName = catalogName
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier


class GetFieldsRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'envContext', 'validWriteIdList', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, envContext: EnvironmentContext | None = None, validWriteIdList: str | None = None, id: int | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.envContext = envContext
        self.validWriteIdList = validWriteIdList
        self.id = id


class GetFieldsResponse(Struct):
    __slots__ = ('fields', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fields',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fields: list[FieldSchema] | None = None) -> None:
        self.fields = fields


class GetFileMetadataByExprRequest(Struct):
    __slots__ = ('fileIds', 'expr', 'doGetFooters', 'type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fileIds', 'expr',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fileIds: list[int] | None = None, expr: bytes | None = None, doGetFooters: bool | None = None, type: int | None = None) -> None:
        self.fileIds = fileIds
        self.expr = expr
        self.doGetFooters = doGetFooters
        self.type = type


class MetadataPpdResult(Struct):
    __slots__ = ('metadata', 'includeBitset', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, metadata: bytes | None = None, includeBitset: bytes | None = None) -> None:
        self.metadata = metadata
        self.includeBitset = includeBitset


class GetFileMetadataByExprResult(Struct):
    __slots__ = ('metadata', 'isSupported', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('metadata', 'isSupported',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, metadata: dict[int, MetadataPpdResult] | None = None, isSupported: bool | None = None) -> None:
        self.metadata = metadata
        self.isSupported = isSupported


class GetFileMetadataRequest(Struct):
    __slots__ = ('fileIds', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fileIds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fileIds: list[int] | None = None) -> None:
        self.fileIds = fileIds


class GetFileMetadataResult(Struct):
    __slots__ = ('metadata', 'isSupported', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('metadata', 'isSupported',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, metadata: dict[int, bytes] | None = None, isSupported: bool | None = None) -> None:
        self.metadata = metadata
        self.isSupported = isSupported


class GetFunctionsRequest(Struct):
    __slots__ = ('dbName', 'catalogName', 'pattern', 'returnNames', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, catalogName: str | None = None, pattern: str | None = None, returnNames: bool | None = None) -> None:
        self.dbName = dbName
        self.catalogName = catalogName
        self.pattern = pattern
        self.returnNames = returnNames


class GetFunctionsResponse(Struct):
    __slots__ = ('function_names', 'functions', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, function_names: list[str] | None = None, functions: list[Function] | None = None) -> None:
        self.function_names = function_names
        self.functions = functions


class GetLatestCommittedCompactionInfoRequest(Struct):
    __slots__ = ('dbname', 'tablename', 'partitionnames', 'lastCompactionId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbname', 'tablename',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tablename: str | None = None, partitionnames: list[str] | None = None, lastCompactionId: int | None = None) -> None:
        self.dbname = dbname
        self.tablename = tablename
        self.partitionnames = partitionnames
        self.lastCompactionId = lastCompactionId


class GetLatestCommittedCompactionInfoResponse(Struct):
    __slots__ = ('compactions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('compactions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, compactions: list[CompactionInfoStruct] | None = None) -> None:
        self.compactions = compactions


class TxnInfo(Struct):
    __slots__ = ('id', 'state', 'user', 'hostname', 'agentInfo', 'heartbeatCount', 'metaInfo', 'startedTime', 'lastHeartbeatTime', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('id', 'state', 'user', 'hostname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, state: int | None = None, user: str | None = None, hostname: str | None = None, agentInfo: str | None = None, heartbeatCount: int | None = None, metaInfo: str | None = None, startedTime: int | None = None, lastHeartbeatTime: int | None = None) -> None:
        self.id = id
        self.state = state
        self.user = user
        self.hostname = hostname
        self.agentInfo = agentInfo
        self.heartbeatCount = heartbeatCount
        self.metaInfo = metaInfo
        self.startedTime = startedTime
        self.lastHeartbeatTime = lastHeartbeatTime


class GetOpenTxnsInfoResponse(Struct):
    __slots__ = ('txn_high_water_mark', 'open_txns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txn_high_water_mark', 'open_txns',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txn_high_water_mark: int | None = None, open_txns: list[TxnInfo] | None = None) -> None:
        self.txn_high_water_mark = txn_high_water_mark
        self.open_txns = open_txns


class GetOpenTxnsRequest(Struct):
    __slots__ = ('excludeTxnTypes', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, excludeTxnTypes: list[int] | None = None) -> None:
        self.excludeTxnTypes = excludeTxnTypes


class GetOpenTxnsResponse(Struct):
    __slots__ = ('txn_high_water_mark', 'open_txns', 'min_open_txn', 'abortedBits', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txn_high_water_mark', 'open_txns',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txn_high_water_mark: int | None = None, open_txns: list[int] | None = None, min_open_txn: int | None = None, abortedBits: bytes | None = None) -> None:
        self.txn_high_water_mark = txn_high_water_mark
        self.open_txns = open_txns
        self.min_open_txn = min_open_txn
        self.abortedBits = abortedBits


class GetPackageRequest(Struct):
    __slots__ = ('catName', 'dbName', 'packageName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'dbName', 'packageName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, packageName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.packageName = packageName


class GetPartitionNamesPsRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'partValues', 'maxParts', 'validWriteIdList', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, partValues: list[str] | None = None, maxParts: int | None = None, validWriteIdList: str | None = None, id: int | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.partValues = partValues
        self.maxParts = maxParts
        self.validWriteIdList = validWriteIdList
        self.id = id


class GetPartitionNamesPsResponse(Struct):
    __slots__ = ('names', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('names',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = names


class GetPartitionRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'partVals', 'validWriteIdList', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'partVals',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, partVals: list[str] | None = None, validWriteIdList: str | None = None, id: int | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.partVals = partVals
        self.validWriteIdList = validWriteIdList
        self.id = id


class GetPartitionResponse(Struct):
    __slots__ = ('partition', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partition',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partition: Partition | None = None) -> None:
        self.partition = partition


class GetPartitionsByFilterRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'filter', 'maxParts', 'skipColumnSchemaForPartition', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, filter: str | None = None, maxParts: int | None = None, skipColumnSchemaForPartition: bool | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.filter = filter
        self.maxParts = maxParts
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern


class GetPartitionsByNamesRequest(Struct):
    __slots__ = ('db_name', 'tbl_name', 'names', 'get_col_stats', 'processorCapabilities', 'processorIdentifier', 'engine', 'validWriteIdList', 'getFileMetadata', 'id', 'skipColumnSchemaForPartition', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, db_name: str | None = None, tbl_name: str | None = None, names: list[str] | None = None, get_col_stats: bool | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None, engine: str | None = None, validWriteIdList: str | None = None, getFileMetadata: bool | None = None, id: int | None = None, skipColumnSchemaForPartition: bool | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None) -> None:
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.names = names
        self.get_col_stats = get_col_stats
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier
        self.engine = engine
        self.validWriteIdList = validWriteIdList
        self.getFileMetadata = getFileMetadata
        self.id = id
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern


class GetPartitionsByNamesResult(Struct):
    __slots__ = ('partitions', 'dictionary', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None, dictionary: ObjectDictionary | None = None) -> None:
        self.partitions = partitions
        self.dictionary = dictionary


class GetPartitionsFilterSpec(Struct):
    __slots__ = ('filterMode', 'filters', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, filterMode: int | None = None, filters: list[str] | None = None) -> None:
        self.filterMode = filterMode
        self.filters = filters


class GetPartitionsPsWithAuthRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'partVals', 'maxParts', 'userName', 'groupNames', 'validWriteIdList', 'id', 'skipColumnSchemaForPartition', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'partNames', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, partVals: list[str] | None = None, maxParts: int | None = None, userName: str | None = None, groupNames: list[str] | None = None, validWriteIdList: str | None = None, id: int | None = None, skipColumnSchemaForPartition: bool | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None, partNames: list[str] | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.partVals = partVals
        self.maxParts = maxParts
        self.userName = userName
        self.groupNames = groupNames
        self.validWriteIdList = validWriteIdList
        self.id = id
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern
        self.partNames = partNames


class GetPartitionsPsWithAuthResponse(Struct):
    __slots__ = ('partitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None) -> None:
        self.partitions = partitions


class GetProjectionsSpec(Struct):
    __slots__ = ('fieldList', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, fieldList: list[str] | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None) -> None:
        self.fieldList = fieldList
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern


class GetPartitionsRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'withAuth', 'user', 'groupNames', 'projectionSpec', 'filterSpec', 'processorCapabilities', 'processorIdentifier', 'validWriteIdList', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, withAuth: bool | None = None, user: str | None = None, groupNames: list[str] | None = None, projectionSpec: GetProjectionsSpec | None = None, filterSpec: GetPartitionsFilterSpec | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None, validWriteIdList: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.withAuth = withAuth
        self.user = user
        self.groupNames = groupNames
        self.projectionSpec = projectionSpec
        self.filterSpec = filterSpec
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier
        self.validWriteIdList = validWriteIdList


class PartitionListComposingSpec(Struct):
    __slots__ = ('partitions', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None) -> None:
        self.partitions = partitions


class PartitionWithoutSD(Struct):
    __slots__ = ('values', 'createTime', 'lastAccessTime', 'relativePath', 'parameters', 'privileges', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, values: list[str] | None = None, createTime: int | None = None, lastAccessTime: int | None = None, relativePath: str | None = None, parameters: dict[str, str] | None = None, privileges: PrincipalPrivilegeSet | None = None) -> None:
        self.values = values
        self.createTime = createTime
        self.lastAccessTime = lastAccessTime
        self.relativePath = relativePath
        self.parameters = parameters
        self.privileges = privileges


class PartitionSpecWithSharedSD(Struct):
    __slots__ = ('partitions', 'sd', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[PartitionWithoutSD] | None = None, sd: StorageDescriptor | None = None) -> None:
        self.partitions = partitions
        self.sd = sd


class PartitionSpec(Struct):
    __slots__ = ('dbName', 'tableName', 'rootPath', 'sharedSDPartitionSpec', 'partitionList', 'catName', 'writeId', 'isStatsCompliant', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None, rootPath: str | None = None, sharedSDPartitionSpec: PartitionSpecWithSharedSD | None = None, partitionList: PartitionListComposingSpec | None = None, catName: str | None = None, writeId: int | None = None, isStatsCompliant: bool | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName
        self.rootPath = rootPath
        self.sharedSDPartitionSpec = sharedSDPartitionSpec
        self.partitionList = partitionList
        self.catName = catName
        self.writeId = writeId
        self.isStatsCompliant = isStatsCompliant


class GetPartitionsResponse(Struct):
    __slots__ = ('partitionSpec', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitionSpec: list[PartitionSpec] | None = None) -> None:
        self.partitionSpec = partitionSpec


class GetPrincipalsInRoleRequest(Struct):
    __slots__ = ('roleName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('roleName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, roleName: str | None = None) -> None:
        self.roleName = roleName


class RolePrincipalGrant(Struct):
    __slots__ = ('roleName', 'principalName', 'principalType', 'grantOption', 'grantTime', 'grantorName', 'grantorPrincipalType', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, roleName: str | None = None, principalName: str | None = None, principalType: int | None = None, grantOption: bool | None = None, grantTime: int | None = None, grantorName: str | None = None, grantorPrincipalType: int | None = None) -> None:
        self.roleName = roleName
        self.principalName = principalName
        self.principalType = principalType
        self.grantOption = grantOption
        self.grantTime = grantTime
        self.grantorName = grantorName
        self.grantorPrincipalType = grantorPrincipalType


class GetPrincipalsInRoleResponse(Struct):
    __slots__ = ('principalGrants', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('principalGrants',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, principalGrants: list[RolePrincipalGrant] | None = None) -> None:
        self.principalGrants = principalGrants


class GetReplicationMetricsRequest(Struct):
    __slots__ = ('scheduledExecutionId', 'policy', 'dumpExecutionId', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduledExecutionId: int | None = None, policy: str | None = None, dumpExecutionId: int | None = None) -> None:
        self.scheduledExecutionId = scheduledExecutionId
        self.policy = policy
        self.dumpExecutionId = dumpExecutionId


class GetRoleGrantsForPrincipalRequest(Struct):
    __slots__ = ('principal_name', 'principal_type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('principal_name', 'principal_type',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, principal_name: str | None = None, principal_type: int | None = None) -> None:
        self.principal_name = principal_name
        self.principal_type = principal_type


class GetRoleGrantsForPrincipalResponse(Struct):
    __slots__ = ('principalGrants', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('principalGrants',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, principalGrants: list[RolePrincipalGrant] | None = None) -> None:
        self.principalGrants = principalGrants


class GetRuntimeStatsRequest(Struct):
    __slots__ = ('maxWeight', 'maxCreateTime', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('maxWeight', 'maxCreateTime',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, maxWeight: int | None = None, maxCreateTime: int | None = None) -> None:
        self.maxWeight = maxWeight
        self.maxCreateTime = maxCreateTime


class GetSchemaRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'envContext', 'validWriteIdList', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, envContext: EnvironmentContext | None = None, validWriteIdList: str | None = None, id: int | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.envContext = envContext
        self.validWriteIdList = validWriteIdList
        self.id = id


class GetSchemaResponse(Struct):
    __slots__ = ('fields', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fields',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fields: list[FieldSchema] | None = None) -> None:
        self.fields = fields


class GetSerdeRequest(Struct):
    __slots__ = ('serdeName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, serdeName: str | None = None) -> None:
        self.serdeName = serdeName


class GetTableRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'capabilities', 'catName', 'validWriteIdList', 'getColumnStats', 'processorCapabilities', 'processorIdentifier', 'engine', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, capabilities: ClientCapabilities | None = None, catName: str | None = None, validWriteIdList: str | None = None, getColumnStats: bool | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None, engine: str | None = None, id: int | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.capabilities = capabilities
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.getColumnStats = getColumnStats
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier
        self.engine = engine
        self.id = id


class GetTableResult(Struct):
    __slots__ = ('table', 'isStatsCompliant', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('table',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, table: Table | None = None, isStatsCompliant: bool | None = None) -> None:
        self.table = table
        self.isStatsCompliant = isStatsCompliant


class GetTablesExtRequest(Struct):
    __slots__ = ('catalog', 'database', 'tableNamePattern', 'requestedFields', 'limit', 'processorCapabilities', 'processorIdentifier', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catalog', 'database', 'tableNamePattern', 'requestedFields',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalog: str | None = None, database: str | None = None, tableNamePattern: str | None = None, requestedFields: int | None = None, limit: int | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None) -> None:
        self.catalog = catalog
        self.database = database
        self.tableNamePattern = tableNamePattern
        self.requestedFields = requestedFields
        self.limit = limit
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier


class GetTablesRequest(Struct):
    __slots__ = ('dbName', 'tblNames', 'capabilities', 'catName', 'processorCapabilities', 'processorIdentifier', 'projectionSpec', 'tablesPattern', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblNames: list[str] | None = None, capabilities: ClientCapabilities | None = None, catName: str | None = None, processorCapabilities: list[str] | None = None, processorIdentifier: str | None = None, projectionSpec: GetProjectionsSpec | None = None, tablesPattern: str | None = None) -> None:
        self.dbName = dbName
        self.tblNames = tblNames
        self.capabilities = capabilities
        self.catName = catName
        self.processorCapabilities = processorCapabilities
        self.processorIdentifier = processorIdentifier
        self.projectionSpec = projectionSpec
        self.tablesPattern = tablesPattern


class GetTablesResult(Struct):
    __slots__ = ('tables', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tables',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tables: list[Table] | None = None) -> None:
        self.tables = tables


class GetValidWriteIdsRequest(Struct):
    __slots__ = ('fullTableNames', 'validTxnList', 'writeId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fullTableNames',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fullTableNames: list[str] | None = None, validTxnList: str | None = None, writeId: int | None = None) -> None:
        self.fullTableNames = fullTableNames
        self.validTxnList = validTxnList
        self.writeId = writeId


class TableValidWriteIds(Struct):
    __slots__ = ('fullTableName', 'writeIdHighWaterMark', 'invalidWriteIds', 'minOpenWriteId', 'abortedBits', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fullTableName', 'writeIdHighWaterMark', 'invalidWriteIds', 'abortedBits',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fullTableName: str | None = None, writeIdHighWaterMark: int | None = None, invalidWriteIds: list[int] | None = None, minOpenWriteId: int | None = None, abortedBits: bytes | None = None) -> None:
        self.fullTableName = fullTableName
        self.writeIdHighWaterMark = writeIdHighWaterMark
        self.invalidWriteIds = invalidWriteIds
        self.minOpenWriteId = minOpenWriteId
        self.abortedBits = abortedBits


class GetValidWriteIdsResponse(Struct):
    __slots__ = ('tblValidWriteIds', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tblValidWriteIds',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tblValidWriteIds: list[TableValidWriteIds] | None = None) -> None:
        self.tblValidWriteIds = tblValidWriteIds


class HiveObjectRef(Struct):
    __slots__ = ('objectType', 'dbName', 'objectName', 'partValues', 'columnName', 'catName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, objectType: int | None = None, dbName: str | None = None, objectName: str | None = None, partValues: list[str] | None = None, columnName: str | None = None, catName: str | None = None) -> None:
        self.objectType = objectType
        self.dbName = dbName
        self.objectName = objectName
        self.partValues = partValues
        self.columnName = columnName
        self.catName = catName


class HiveObjectPrivilege(Struct):
    __slots__ = ('hiveObject', 'principalName', 'principalType', 'grantInfo', 'authorizer', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, hiveObject: HiveObjectRef | None = None, principalName: str | None = None, principalType: int | None = None, grantInfo: PrivilegeGrantInfo | None = None, authorizer: str | None = None) -> None:
        self.hiveObject = hiveObject
        self.principalName = principalName
        self.principalType = principalType
        self.grantInfo = grantInfo
        self.authorizer = authorizer


class PrivilegeBag(Struct):
    __slots__ = ('privileges', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, privileges: list[HiveObjectPrivilege] | None = None) -> None:
        self.privileges = privileges


class GrantRevokePrivilegeRequest(Struct):
    __slots__ = ('requestType', 'privileges', 'revokeGrantOption', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, requestType: int | None = None, privileges: PrivilegeBag | None = None, revokeGrantOption: bool | None = None) -> None:
        self.requestType = requestType
        self.privileges = privileges
        self.revokeGrantOption = revokeGrantOption


class GrantRevokePrivilegeResponse(Struct):
    __slots__ = ('success', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, success: bool | None = None) -> None:
        self.success = success


class GrantRevokeRoleRequest(Struct):
    __slots__ = ('requestType', 'roleName', 'principalName', 'principalType', 'grantor', 'grantorType', 'grantOption', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, requestType: int | None = None, roleName: str | None = None, principalName: str | None = None, principalType: int | None = None, grantor: str | None = None, grantorType: int | None = None, grantOption: bool | None = None) -> None:
        self.requestType = requestType
        self.roleName = roleName
        self.principalName = principalName
        self.principalType = principalType
        self.grantor = grantor
        self.grantorType = grantorType
        self.grantOption = grantOption


class GrantRevokeRoleResponse(Struct):
    __slots__ = ('success', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, success: bool | None = None) -> None:
        self.success = success


class HeartbeatRequest(Struct):
    __slots__ = ('lockid', 'txnid', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, lockid: int | None = None, txnid: int | None = None) -> None:
        self.lockid = lockid
        self.txnid = txnid


class HeartbeatTxnRangeRequest(Struct):
    __slots__ = ('min', 'max', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('min', 'max',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        self.min = min
        self.max = max


class HeartbeatTxnRangeResponse(Struct):
    __slots__ = ('aborted', 'nosuch', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('aborted', 'nosuch',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, aborted: set[int] | None = None, nosuch: set[int] | None = None) -> None:
        self.aborted = aborted
        self.nosuch = nosuch


class ListPackageRequest(Struct):
    __slots__ = ('catName', 'dbName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName


class ListStoredProcedureRequest(Struct):
    __slots__ = ('catName', 'dbName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName


class LockComponent(Struct):
    __slots__ = ('type', 'level', 'dbname', 'tablename', 'partitionname', 'operationType', 'isTransactional', 'isDynamicPartitionWrite', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('type', 'level', 'dbname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, type: int | None = None, level: int | None = None, dbname: str | None = None, tablename: str | None = None, partitionname: str | None = None, operationType: int | None = None, isTransactional: bool | None = None, isDynamicPartitionWrite: bool | None = None) -> None:
        self.type = type
        self.level = level
        self.dbname = dbname
        self.tablename = tablename
        self.partitionname = partitionname
        self.operationType = operationType
        self.isTransactional = isTransactional
        self.isDynamicPartitionWrite = isDynamicPartitionWrite


class LockRequest(Struct):
    __slots__ = ('component', 'txnid', 'user', 'hostname', 'agentInfo', 'zeroWaitReadEnabled', 'exclusiveCTAS', 'locklessReadsEnabled', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('component', 'user', 'hostname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, component: list[LockComponent] | None = None, txnid: int | None = None, user: str | None = None, hostname: str | None = None, agentInfo: str | None = None, zeroWaitReadEnabled: bool | None = None, exclusiveCTAS: bool | None = None, locklessReadsEnabled: bool | None = None) -> None:
        self.component = component
        self.txnid = txnid
        self.user = user
        self.hostname = hostname
        self.agentInfo = agentInfo
        self.zeroWaitReadEnabled = zeroWaitReadEnabled
        self.exclusiveCTAS = exclusiveCTAS
        self.locklessReadsEnabled = locklessReadsEnabled


class LockResponse(Struct):
    __slots__ = ('lockid', 'state', 'errorMessage', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('lockid', 'state',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lockid: int | None = None, state: int | None = None, errorMessage: str | None = None) -> None:
        self.lockid = lockid
        self.state = state
        self.errorMessage = errorMessage


class MapSchemaVersionToSerdeRequest(Struct):
    __slots__ = ('schemaVersion', 'serdeName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = None, serdeName: str | None = None) -> None:
        self.schemaVersion = schemaVersion
        self.serdeName = serdeName


class Materialization(Struct):
    __slots__ = ('sourceTablesUpdateDeleteModified', 'sourceTablesCompacted', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('sourceTablesUpdateDeleteModified', 'sourceTablesCompacted',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, sourceTablesUpdateDeleteModified: bool | None = None, sourceTablesCompacted: bool | None = None) -> None:
        self.sourceTablesUpdateDeleteModified = sourceTablesUpdateDeleteModified
        self.sourceTablesCompacted = sourceTablesCompacted


class MaxAllocatedTableWriteIdRequest(Struct):
    __slots__ = ('dbName', 'tableName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName


class MaxAllocatedTableWriteIdResponse(Struct):
    __slots__ = ('maxWriteId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('maxWriteId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, maxWriteId: int | None = None) -> None:
        self.maxWriteId = maxWriteId


class NotNullConstraintsRequest(Struct):
    __slots__ = ('catName', 'db_name', 'tbl_name', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, db_name: str | None = None, tbl_name: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.catName = catName
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class NotNullConstraintsResponse(Struct):
    __slots__ = ('notNullConstraints', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('notNullConstraints',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, notNullConstraints: list[SQLNotNullConstraint] | None = None) -> None:
        self.notNullConstraints = notNullConstraints


class NotificationEvent(Struct):
    __slots__ = ('eventId', 'eventTime', 'eventType', 'dbName', 'tableName', 'message', 'messageFormat', 'catName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('eventId', 'eventTime', 'eventType', 'message',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, eventId: int | None = None, eventTime: int | None = None, eventType: str | None = None, dbName: str | None = None, tableName: str | None = None, message: str | None = None, messageFormat: str | None = None, catName: str | None = None) -> None:
        self.eventId = eventId
        self.eventTime = eventTime
        self.eventType = eventType
        self.dbName = dbName
        self.tableName = tableName
        self.message = message
        self.messageFormat = messageFormat
        self.catName = catName


class NotificationEventRequest(Struct):
    __slots__ = ('lastEvent', 'maxEvents', 'eventTypeSkipList', 'catName', 'dbName', 'tableNames', 'eventTypeList', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('lastEvent',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lastEvent: int | None = None, maxEvents: int | None = None, eventTypeSkipList: list[str] | None = None, catName: str | None = None, dbName: str | None = None, tableNames: list[str] | None = None, eventTypeList: list[str] | None = None) -> None:
        self.lastEvent = lastEvent
        self.maxEvents = maxEvents
        self.eventTypeSkipList = eventTypeSkipList
        self.catName = catName
        self.dbName = dbName
        self.tableNames = tableNames
        self.eventTypeList = eventTypeList


class NotificationEventResponse(Struct):
    __slots__ = ('events', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('events',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, events: list[NotificationEvent] | None = None) -> None:
        self.events = events


class NotificationEventsCountRequest(Struct):
    __slots__ = ('fromEventId', 'dbName', 'catName', 'toEventId', 'limit', 'tableNames', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fromEventId', 'dbName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fromEventId: int | None = None, dbName: str | None = None, catName: str | None = None, toEventId: int | None = None, limit: int | None = None, tableNames: list[str] | None = None) -> None:
        self.fromEventId = fromEventId
        self.dbName = dbName
        self.catName = catName
        self.toEventId = toEventId
        self.limit = limit
        self.tableNames = tableNames


class NotificationEventsCountResponse(Struct):
    __slots__ = ('eventsCount', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('eventsCount',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, eventsCount: int | None = None) -> None:
        self.eventsCount = eventsCount


class OpenTxnRequest(Struct):
    __slots__ = ('num_txns', 'user', 'hostname', 'agentInfo', 'replPolicy', 'replSrcTxnIds', 'txn_type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('num_txns', 'user', 'hostname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, num_txns: int | None = None, user: str | None = None, hostname: str | None = None, agentInfo: str | None = None, replPolicy: str | None = None, replSrcTxnIds: list[int] | None = None, txn_type: int | None = None) -> None:
        self.num_txns = num_txns
        self.user = user
        self.hostname = hostname
        self.agentInfo = agentInfo
        self.replPolicy = replPolicy
        self.replSrcTxnIds = replSrcTxnIds
        self.txn_type = txn_type


class OpenTxnsResponse(Struct):
    __slots__ = ('txn_ids', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txn_ids',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txn_ids: list[int] | None = None) -> None:
        self.txn_ids = txn_ids


class OptionalCompactionInfoStruct(Struct):
    __slots__ = ('ci', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, ci: CompactionInfoStruct | None = None) -> None:
        self.ci = ci


class Package(Struct):
    __slots__ = ('catName', 'dbName', 'packageName', 'ownerName', 'header', 'body', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, packageName: str | None = None, ownerName: str | None = None, header: str | None = None, body: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.packageName = packageName
        self.ownerName = ownerName
        self.header = header
        self.body = body


class PartitionValuesRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'partitionKeys', 'applyDistinct', 'filter', 'partitionOrder', 'ascending', 'maxParts', 'catName', 'validWriteIdList', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'partitionKeys',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, partitionKeys: list[FieldSchema] | None = None, applyDistinct: bool | None = None, filter: str | None = None, partitionOrder: list[FieldSchema] | None = None, ascending: bool | None = None, maxParts: int | None = None, catName: str | None = None, validWriteIdList: str | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.partitionKeys = partitionKeys
        self.applyDistinct = applyDistinct
        self.filter = filter
        self.partitionOrder = partitionOrder
        self.ascending = ascending
        self.maxParts = maxParts
        self.catName = catName
        self.validWriteIdList = validWriteIdList


class PartitionValuesRow(Struct):
    __slots__ = ('row', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('row',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, row: list[str] | None = None) -> None:
        self.row = row


class PartitionValuesResponse(Struct):
    __slots__ = ('partitionValues', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitionValues',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitionValues: list[PartitionValuesRow] | None = None) -> None:
        self.partitionValues = partitionValues


class PartitionsByExprRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'expr', 'defaultPartitionName', 'maxParts', 'catName', 'order', 'validWriteIdList', 'id', 'skipColumnSchemaForPartition', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'expr',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, expr: bytes | None = None, defaultPartitionName: str | None = None, maxParts: int | None = None, catName: str | None = None, order: str | None = None, validWriteIdList: str | None = None, id: int | None = None, skipColumnSchemaForPartition: bool | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.expr = expr
        self.defaultPartitionName = defaultPartitionName
        self.maxParts = maxParts
        self.catName = catName
        self.order = order
        self.validWriteIdList = validWriteIdList
        self.id = id
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern


class PartitionsByExprResult(Struct):
    __slots__ = ('partitions', 'hasUnknownPartitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitions', 'hasUnknownPartitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None, hasUnknownPartitions: bool | None = None) -> None:
        self.partitions = partitions
        self.hasUnknownPartitions = hasUnknownPartitions


class PartitionsRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tblName', 'maxParts', 'validWriteIdList', 'id', 'skipColumnSchemaForPartition', 'includeParamKeyPattern', 'excludeParamKeyPattern', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tblName: str | None = None, maxParts: int | None = None, validWriteIdList: str | None = None, id: int | None = None, skipColumnSchemaForPartition: bool | None = None, includeParamKeyPattern: str | None = None, excludeParamKeyPattern: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tblName = tblName
        self.maxParts = maxParts
        self.validWriteIdList = validWriteIdList
        self.id = id
        self.skipColumnSchemaForPartition = skipColumnSchemaForPartition
        self.includeParamKeyPattern = includeParamKeyPattern
        self.excludeParamKeyPattern = excludeParamKeyPattern


class PartitionsResponse(Struct):
    __slots__ = ('partitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitions: list[Partition] | None = None) -> None:
        self.partitions = partitions


class PartitionsSpecByExprResult(Struct):
    __slots__ = ('partitionsSpec', 'hasUnknownPartitions', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partitionsSpec', 'hasUnknownPartitions',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partitionsSpec: list[PartitionSpec] | None = None, hasUnknownPartitions: bool | None = None) -> None:
        self.partitionsSpec = partitionsSpec
        self.hasUnknownPartitions = hasUnknownPartitions


class PartitionsStatsRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'colNames', 'partNames', 'catName', 'validWriteIdList', 'engine', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'colNames', 'partNames',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, colNames: list[str] | None = None, partNames: list[str] | None = None, catName: str | None = None, validWriteIdList: str | None = None, engine: str | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.colNames = colNames
        self.partNames = partNames
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.engine = engine


class PartitionsStatsResult(Struct):
    __slots__ = ('partStats', 'isStatsCompliant', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('partStats',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, partStats: dict[str, list[ColumnStatisticsObj]] | None = None, isStatsCompliant: bool | None = None) -> None:
        self.partStats = partStats
        self.isStatsCompliant = isStatsCompliant


class PrimaryKeysRequest(Struct):
    __slots__ = ('db_name', 'tbl_name', 'catName', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, db_name: str | None = None, tbl_name: str | None = None, catName: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class PrimaryKeysResponse(Struct):
    __slots__ = ('primaryKeys', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('primaryKeys',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, primaryKeys: list[SQLPrimaryKey] | None = None) -> None:
        self.primaryKeys = primaryKeys


class PropertyGetRequest(Struct):
    __slots__ = ('nameSpace', 'mapPrefix', 'mapPredicate', 'mapSelection', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('nameSpace',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, nameSpace: str | None = None, mapPrefix: str | None = None, mapPredicate: str | None = None, mapSelection: list[str] | None = None) -> None:
        self.nameSpace = nameSpace
        self.mapPrefix = mapPrefix
        self.mapPredicate = mapPredicate
        self.mapSelection = mapSelection


class PropertyGetResponse(Struct):
    __slots__ = ('properties', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, properties: dict[str, dict[str, str]] | None = None) -> None:
        self.properties = properties


class PropertySetRequest(Struct):
    __slots__ = ('nameSpace', 'propertyMap', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('nameSpace',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, nameSpace: str | None = None, propertyMap: dict[str, str] | None = None) -> None:
        self.nameSpace = nameSpace
        self.propertyMap = propertyMap


class PutFileMetadataRequest(Struct):
    __slots__ = ('fileIds', 'metadata', 'type', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('fileIds', 'metadata',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, fileIds: list[int] | None = None, metadata: list[bytes] | None = None, type: int | None = None) -> None:
        self.fileIds = fileIds
        self.metadata = metadata
        self.type = type


class PutFileMetadataResult(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class RenamePartitionRequest(Struct):
    __slots__ = ('catName', 'dbName', 'tableName', 'partVals', 'newPart', 'validWriteIdList', 'txnId', 'clonePart', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName', 'partVals', 'newPart',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, tableName: str | None = None, partVals: list[str] | None = None, newPart: Partition | None = None, validWriteIdList: str | None = None, txnId: int | None = None, clonePart: bool | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.tableName = tableName
        self.partVals = partVals
        self.newPart = newPart
        self.validWriteIdList = validWriteIdList
        self.txnId = txnId
        self.clonePart = clonePart


class RenamePartitionResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class ReplTblWriteIdStateRequest(Struct):
    __slots__ = ('validWriteIdlist', 'user', 'hostName', 'dbName', 'tableName', 'partNames', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('validWriteIdlist', 'user', 'hostName', 'dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, validWriteIdlist: str | None = None, user: str | None = None, hostName: str | None = None, dbName: str | None = None, tableName: str | None = None, partNames: list[str] | None = None) -> None:
        self.validWriteIdlist = validWriteIdlist
        self.user = user
        self.hostName = hostName
        self.dbName = dbName
        self.tableName = tableName
        self.partNames = partNames


class ReplayedTxnsForPolicyResult(Struct):
    __slots__ = ('replTxnMapEntry', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, replTxnMapEntry: dict[str, str] | None = None) -> None:
        self.replTxnMapEntry = replTxnMapEntry


class ReplicationMetrics(Struct):
    __slots__ = ('scheduledExecutionId', 'policy', 'dumpExecutionId', 'metadata', 'progress', 'messageFormat', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('scheduledExecutionId', 'policy', 'dumpExecutionId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduledExecutionId: int | None = None, policy: str | None = None, dumpExecutionId: int | None = None, metadata: str | None = None, progress: str | None = None, messageFormat: str | None = None) -> None:
        self.scheduledExecutionId = scheduledExecutionId
        self.policy = policy
        self.dumpExecutionId = dumpExecutionId
        self.metadata = metadata
        self.progress = progress
        self.messageFormat = messageFormat


class ReplicationMetricList(Struct):
    __slots__ = ('replicationMetricList', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('replicationMetricList',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, replicationMetricList: list[ReplicationMetrics] | None = None) -> None:
        self.replicationMetricList = replicationMetricList


class Role(Struct):
    __slots__ = ('roleName', 'createTime', 'ownerName', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, roleName: str | None = None, createTime: int | None = None, ownerName: str | None = None) -> None:
        self.roleName = roleName
        self.createTime = createTime
        self.ownerName = ownerName


class RuntimeStat(Struct):
    __slots__ = ('createTime', 'weight', 'payload', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('weight', 'payload',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, createTime: int | None = None, weight: int | None = None, payload: bytes | None = None) -> None:
        self.createTime = createTime
        self.weight = weight
        self.payload = payload


class ScheduledQueryKey(Struct):
    __slots__ = ('scheduleName', 'clusterNamespace', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('scheduleName', 'clusterNamespace',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduleName: str | None = None, clusterNamespace: str | None = None) -> None:
        self.scheduleName = scheduleName
        self.clusterNamespace = clusterNamespace


class ScheduledQuery(Struct):
    __slots__ = ('scheduleKey', 'enabled', 'schedule', 'user', 'query', 'nextExecution', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('scheduleKey',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduleKey: ScheduledQueryKey | None = None, enabled: bool | None = None, schedule: str | None = None, user: str | None = None, query: str | None = None, nextExecution: int | None = None) -> None:
        self.scheduleKey = scheduleKey
        self.enabled = enabled
        self.schedule = schedule
        self.user = user
        self.query = query
        self.nextExecution = nextExecution


class ScheduledQueryMaintenanceRequest(Struct):
    __slots__ = ('type', 'scheduledQuery', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('type', 'scheduledQuery',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, type: int | None = None, scheduledQuery: ScheduledQuery | None = None) -> None:
        self.type = type
        self.scheduledQuery = scheduledQuery


class ScheduledQueryPollRequest(Struct):
    __slots__ = ('clusterNamespace', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('clusterNamespace',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, clusterNamespace: str | None = None) -> None:
        self.clusterNamespace = clusterNamespace


class ScheduledQueryPollResponse(Struct):
    __slots__ = ('scheduleKey', 'executionId', 'query', 'user', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduleKey: ScheduledQueryKey | None = None, executionId: int | None = None, query: str | None = None, user: str | None = None) -> None:
        self.scheduleKey = scheduleKey
        self.executionId = executionId
        self.query = query
        self.user = user


class ScheduledQueryProgressInfo(Struct):
    __slots__ = ('scheduledExecutionId', 'state', 'executorQueryId', 'errorMessage', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('scheduledExecutionId', 'state', 'executorQueryId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, scheduledExecutionId: int | None = None, state: int | None = None, executorQueryId: str | None = None, errorMessage: str | None = None) -> None:
        self.scheduledExecutionId = scheduledExecutionId
        self.state = state
        self.executorQueryId = executorQueryId
        self.errorMessage = errorMessage


class Schema(Struct):
    __slots__ = ('fieldSchemas', 'properties', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, fieldSchemas: list[FieldSchema] | None = None, properties: dict[str, str] | None = None) -> None:
        self.fieldSchemas = fieldSchemas
        self.properties = properties


class SchemaVersion(Struct):
    __slots__ = ('schema', 'version', 'createdAt', 'cols', 'state', 'description', 'schemaText', 'fingerprint', 'name', 'serDe', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schema: ISchemaName | None = None, version: int | None = None, createdAt: int | None = None, cols: list[FieldSchema] | None = None, state: int | None = None, description: str | None = None, schemaText: str | None = None, fingerprint: str | None = None, name: str | None = None, serDe: SerDeInfo | None = None) -> None:
        self.schema = schema
        self.version = version
        self.createdAt = createdAt
        self.cols = cols
        self.state = state
        self.description = description
        self.schemaText = schemaText
        self.fingerprint = fingerprint
        self.name = name
        self.serDe = serDe


class SeedTableWriteIdsRequest(Struct):
    __slots__ = ('dbName', 'tableName', 'seedWriteId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName', 'seedWriteId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None, seedWriteId: int | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName
        self.seedWriteId = seedWriteId


class SeedTxnIdRequest(Struct):
    __slots__ = ('seedTxnId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('seedTxnId',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, seedTxnId: int | None = None) -> None:
        self.seedTxnId = seedTxnId


class SetPartitionsStatsRequest(Struct):
    __slots__ = ('colStats', 'needMerge', 'writeId', 'validWriteIdList', 'engine', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('colStats',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, colStats: list[ColumnStatistics] | None = None, needMerge: bool | None = None, writeId: int | None = None, validWriteIdList: str | None = None, engine: str | None = None) -> None:
        self.colStats = colStats
        self.needMerge = needMerge
        self.writeId = writeId
        self.validWriteIdList = validWriteIdList
        self.engine = engine


class SetPartitionsStatsResponse(Struct):
    __slots__ = ('result', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('result',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, result: bool | None = None) -> None:
        self.result = result


class SetSchemaVersionStateRequest(Struct):
    __slots__ = ('schemaVersion', 'state', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = None, state: int | None = None) -> None:
        self.schemaVersion = schemaVersion
        self.state = state


class ShowCompactRequest(Struct):
    __slots__ = ('id', 'poolName', 'dbName', 'tbName', 'partName', 'type', 'state', 'limit', 'order', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, id: int | None = None, poolName: str | None = None, dbName: str | None = None, tbName: str | None = None, partName: str | None = None, type: int | None = None, state: str | None = None, limit: int | None = None, order: str | None = None) -> None:
        self.id = id
        self.poolName = poolName
        self.dbName = dbName
        self.tbName = tbName
        self.partName = partName
        self.type = type
        self.state = state
        self.limit = limit
        self.order = order


class ShowCompactResponseElement(Struct):
    __slots__ = ('dbname', 'tablename', 'partitionname', 'type', 'state', 'workerid', 'start', 'runAs', 'hightestTxnId', 'metaInfo', 'endTime', 'hadoopJobId', 'id', 'errorMessage', 'enqueueTime', 'workerVersion', 'initiatorId', 'initiatorVersion', 'cleanerStart', 'poolName', 'nextTxnId', 'txnId', 'commitTime', 'hightestWriteId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbname', 'tablename', 'type', 'state',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tablename: str | None = None, partitionname: str | None = None, type: int | None = None, state: str | None = None, workerid: str | None = None, start: int | None = None, runAs: str | None = None, hightestTxnId: int | None = None, metaInfo: str | None = None, endTime: int | None = None, hadoopJobId: str | None = None, id: int | None = None, errorMessage: str | None = None, enqueueTime: int | None = None, workerVersion: str | None = None, initiatorId: str | None = None, initiatorVersion: str | None = None, cleanerStart: int | None = None, poolName: str | None = None, nextTxnId: int | None = None, txnId: int | None = None, commitTime: int | None = None, hightestWriteId: int | None = None) -> None:
        self.dbname = dbname
        self.tablename = tablename
        self.partitionname = partitionname
        self.type = type
        self.state = state
        self.workerid = workerid
        self.start = start
        self.runAs = runAs
        self.hightestTxnId = hightestTxnId
        self.metaInfo = metaInfo
        self.endTime = endTime
        self.hadoopJobId = hadoopJobId
        self.id = id
        self.errorMessage = errorMessage
        self.enqueueTime = enqueueTime
        self.workerVersion = workerVersion
        self.initiatorId = initiatorId
        self.initiatorVersion = initiatorVersion
        self.cleanerStart = cleanerStart
        self.poolName = poolName
        self.nextTxnId = nextTxnId
        self.txnId = txnId
        self.commitTime = commitTime
        self.hightestWriteId = hightestWriteId


class ShowCompactResponse(Struct):
    __slots__ = ('compacts', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('compacts',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, compacts: list[ShowCompactResponseElement] | None = None) -> None:
        self.compacts = compacts


class ShowLocksRequest(Struct):
    __slots__ = ('dbname', 'tablename', 'partname', 'isExtended', 'txnid', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbname: str | None = None, tablename: str | None = None, partname: str | None = None, isExtended: bool | None = None, txnid: int | None = None) -> None:
        self.dbname = dbname
        self.tablename = tablename
        self.partname = partname
        self.isExtended = isExtended
        self.txnid = txnid


class ShowLocksResponseElement(Struct):
    __slots__ = ('lockid', 'dbname', 'tablename', 'partname', 'state', 'type', 'txnid', 'lastheartbeat', 'acquiredat', 'user', 'hostname', 'heartbeatCount', 'agentInfo', 'blockedByExtId', 'blockedByIntId', 'lockIdInternal', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('lockid', 'dbname', 'state', 'type', 'lastheartbeat', 'user', 'hostname',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lockid: int | None = None, dbname: str | None = None, tablename: str | None = None, partname: str | None = None, state: int | None = None, type: int | None = None, txnid: int | None = None, lastheartbeat: int | None = None, acquiredat: int | None = None, user: str | None = None, hostname: str | None = None, heartbeatCount: int | None = None, agentInfo: str | None = None, blockedByExtId: int | None = None, blockedByIntId: int | None = None, lockIdInternal: int | None = None) -> None:
        self.lockid = lockid
        self.dbname = dbname
        self.tablename = tablename
        self.partname = partname
        self.state = state
        self.type = type
        self.txnid = txnid
        self.lastheartbeat = lastheartbeat
        self.acquiredat = acquiredat
        self.user = user
        self.hostname = hostname
        self.heartbeatCount = heartbeatCount
        self.agentInfo = agentInfo
        self.blockedByExtId = blockedByExtId
        self.blockedByIntId = blockedByIntId
        self.lockIdInternal = lockIdInternal


class ShowLocksResponse(Struct):
    __slots__ = ('locks', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, locks: list[ShowLocksResponseElement] | None = None) -> None:
        self.locks = locks


class StoredProcedure(Struct):
    __slots__ = ('name', 'dbName', 'catName', 'ownerName', 'source', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, dbName: str | None = None, catName: str | None = None, ownerName: str | None = None, source: str | None = None) -> None:
        self.name = name
        self.dbName = dbName
        self.catName = catName
        self.ownerName = ownerName
        self.source = source


class StoredProcedureRequest(Struct):
    __slots__ = ('catName', 'dbName', 'procName', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'dbName', 'procName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, dbName: str | None = None, procName: str | None = None) -> None:
        self.catName = catName
        self.dbName = dbName
        self.procName = procName


class TableMeta(Struct):
    __slots__ = ('dbName', 'tableName', 'tableType', 'comments', 'catName', 'ownerName', 'ownerType', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName', 'tableType',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None, tableType: str | None = None, comments: str | None = None, catName: str | None = None, ownerName: str | None = None, ownerType: int | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName
        self.tableType = tableType
        self.comments = comments
        self.catName = catName
        self.ownerName = ownerName
        self.ownerType = ownerType


class TableStatsRequest(Struct):
    __slots__ = ('dbName', 'tblName', 'colNames', 'catName', 'validWriteIdList', 'engine', 'id', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tblName', 'colNames',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tblName: str | None = None, colNames: list[str] | None = None, catName: str | None = None, validWriteIdList: str | None = None, engine: str | None = None, id: int | None = None) -> None:
        self.dbName = dbName
        self.tblName = tblName
        self.colNames = colNames
        self.catName = catName
        self.validWriteIdList = validWriteIdList
        self.engine = engine
        self.id = id


class TableStatsResult(Struct):
    __slots__ = ('tableStats', 'isStatsCompliant', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tableStats',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableStats: list[ColumnStatisticsObj] | None = None, isStatsCompliant: bool | None = None) -> None:
        self.tableStats = tableStats
        self.isStatsCompliant = isStatsCompliant


class TruncateTableRequest(Struct):
    __slots__ = ('dbName', 'tableName', 'partNames', 'writeId', 'validWriteIdList', 'environmentContext', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('dbName', 'tableName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, dbName: str | None = None, tableName: str | None = None, partNames: list[str] | None = None, writeId: int | None = None, validWriteIdList: str | None = None, environmentContext: EnvironmentContext | None = None) -> None:
        self.dbName = dbName
        self.tableName = tableName
        self.partNames = partNames
        self.writeId = writeId
        self.validWriteIdList = validWriteIdList
        self.environmentContext = environmentContext


class TruncateTableResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class Type(Struct):
    __slots__ = ('name', 'type1', 'type2', 'fields', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, type1: str | None = None, type2: str | None = None, fields: list[FieldSchema] | None = None) -> None:
        self.name = name
        self.type1 = type1
        self.type2 = type2
        self.fields = fields


class UniqueConstraintsRequest(Struct):
    __slots__ = ('catName', 'db_name', 'tbl_name', 'validWriteIdList', 'tableId', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catName', 'db_name', 'tbl_name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catName: str | None = None, db_name: str | None = None, tbl_name: str | None = None, validWriteIdList: str | None = None, tableId: int | None = None) -> None:
        self.catName = catName
        self.db_name = db_name
        self.tbl_name = tbl_name
        self.validWriteIdList = validWriteIdList
        self.tableId = tableId


class UniqueConstraintsResponse(Struct):
    __slots__ = ('uniqueConstraints', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('uniqueConstraints',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, uniqueConstraints: list[SQLUniqueConstraint] | None = None) -> None:
        self.uniqueConstraints = uniqueConstraints


class UnlockRequest(Struct):
    __slots__ = ('lockid', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('lockid',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, lockid: int | None = None) -> None:
        self.lockid = lockid


class UpdateTransactionalStatsRequest(Struct):
    __slots__ = ('tableId', 'insertCount', 'updatedCount', 'deletedCount', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('tableId', 'insertCount', 'updatedCount', 'deletedCount',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableId: int | None = None, insertCount: int | None = None, updatedCount: int | None = None, deletedCount: int | None = None) -> None:
        self.tableId = tableId
        self.insertCount = insertCount
        self.updatedCount = updatedCount
        self.deletedCount = deletedCount


class Version(Struct):
    __slots__ = ('version', 'comments', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, version: str | None = None, comments: str | None = None) -> None:
        self.version = version
        self.comments = comments


class WMNullablePool(Struct):
    __slots__ = ('resourcePlanName', 'poolPath', 'allocFraction', 'queryParallelism', 'schedulingPolicy', 'isSetSchedulingPolicy', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('resourcePlanName', 'poolPath',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, poolPath: str | None = None, allocFraction: float | None = None, queryParallelism: int | None = None, schedulingPolicy: str | None = None, isSetSchedulingPolicy: bool | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.poolPath = poolPath
        self.allocFraction = allocFraction
        self.queryParallelism = queryParallelism
        self.schedulingPolicy = schedulingPolicy
        self.isSetSchedulingPolicy = isSetSchedulingPolicy
        self.ns = ns


class WMAlterPoolRequest(Struct):
    __slots__ = ('pool', 'poolPath', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, pool: WMNullablePool | None = None, poolPath: str | None = None) -> None:
        self.pool = pool
        self.poolPath = poolPath


class WMAlterPoolResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMNullableResourcePlan(Struct):
    __slots__ = ('name', 'status', 'queryParallelism', 'isSetQueryParallelism', 'defaultPoolPath', 'isSetDefaultPoolPath', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, status: int | None = None, queryParallelism: int | None = None, isSetQueryParallelism: bool | None = None, defaultPoolPath: str | None = None, isSetDefaultPoolPath: bool | None = None, ns: str | None = None) -> None:
        self.name = name
        self.status = status
        self.queryParallelism = queryParallelism
        self.isSetQueryParallelism = isSetQueryParallelism
        self.defaultPoolPath = defaultPoolPath
        self.isSetDefaultPoolPath = isSetDefaultPoolPath
        self.ns = ns


class WMAlterResourcePlanRequest(Struct):
    __slots__ = ('resourcePlanName', 'resourcePlan', 'isEnableAndActivate', 'isForceDeactivate', 'isReplace', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, resourcePlan: WMNullableResourcePlan | None = None, isEnableAndActivate: bool | None = None, isForceDeactivate: bool | None = None, isReplace: bool | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.resourcePlan = resourcePlan
        self.isEnableAndActivate = isEnableAndActivate
        self.isForceDeactivate = isForceDeactivate
        self.isReplace = isReplace
        self.ns = ns


class WMMapping(Struct):
    __slots__ = ('resourcePlanName', 'entityType', 'entityName', 'poolPath', 'ordering', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('resourcePlanName', 'entityType', 'entityName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, entityType: str | None = None, entityName: str | None = None, poolPath: str | None = None, ordering: int | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.entityType = entityType
        self.entityName = entityName
        self.poolPath = poolPath
        self.ordering = ordering
        self.ns = ns


class WMPool(Struct):
    __slots__ = ('resourcePlanName', 'poolPath', 'allocFraction', 'queryParallelism', 'schedulingPolicy', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('resourcePlanName', 'poolPath',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, poolPath: str | None = None, allocFraction: float | None = None, queryParallelism: int | None = None, schedulingPolicy: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.poolPath = poolPath
        self.allocFraction = allocFraction
        self.queryParallelism = queryParallelism
        self.schedulingPolicy = schedulingPolicy
        self.ns = ns


class WMPoolTrigger(Struct):
    __slots__ = ('pool', 'trigger', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('pool', 'trigger',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, pool: str | None = None, trigger: str | None = None, ns: str | None = None) -> None:
        self.pool = pool
        self.trigger = trigger
        self.ns = ns


class WMResourcePlan(Struct):
    __slots__ = ('name', 'status', 'queryParallelism', 'defaultPoolPath', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('name',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, status: int | None = None, queryParallelism: int | None = None, defaultPoolPath: str | None = None, ns: str | None = None) -> None:
        self.name = name
        self.status = status
        self.queryParallelism = queryParallelism
        self.defaultPoolPath = defaultPoolPath
        self.ns = ns


class WMTrigger(Struct):
    __slots__ = ('resourcePlanName', 'triggerName', 'triggerExpression', 'actionExpression', 'isInUnmanaged', 'ns', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('resourcePlanName', 'triggerName',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, triggerName: str | None = None, triggerExpression: str | None = None, actionExpression: str | None = None, isInUnmanaged: bool | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.triggerName = triggerName
        self.triggerExpression = triggerExpression
        self.actionExpression = actionExpression
        self.isInUnmanaged = isInUnmanaged
        self.ns = ns


class WMFullResourcePlan(Struct):
    __slots__ = ('plan', 'pools', 'mappings', 'triggers', 'poolTriggers', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('plan', 'pools',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, plan: WMResourcePlan | None = None, pools: list[WMPool] | None = None, mappings: list[WMMapping] | None = None, triggers: list[WMTrigger] | None = None, poolTriggers: list[WMPoolTrigger] | None = None) -> None:
        self.plan = plan
        self.pools = pools
        self.mappings = mappings
        self.triggers = triggers
        self.poolTriggers = poolTriggers


class WMAlterResourcePlanResponse(Struct):
    __slots__ = ('fullResourcePlan', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, fullResourcePlan: WMFullResourcePlan | None = None) -> None:
        self.fullResourcePlan = fullResourcePlan


class WMAlterTriggerRequest(Struct):
    __slots__ = ('trigger', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, trigger: WMTrigger | None = None) -> None:
        self.trigger = trigger


class WMAlterTriggerResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMCreateOrDropTriggerToPoolMappingRequest(Struct):
    __slots__ = ('resourcePlanName', 'triggerName', 'poolPath', 'drop', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, triggerName: str | None = None, poolPath: str | None = None, drop: bool | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.triggerName = triggerName
        self.poolPath = poolPath
        self.drop = drop
        self.ns = ns


class WMCreateOrDropTriggerToPoolMappingResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMCreateOrUpdateMappingRequest(Struct):
    __slots__ = ('mapping', 'update', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, mapping: WMMapping | None = None, update: bool | None = None) -> None:
        self.mapping = mapping
        self.update = update


class WMCreateOrUpdateMappingResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMCreatePoolRequest(Struct):
    __slots__ = ('pool', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, pool: WMPool | None = None) -> None:
        self.pool = pool


class WMCreatePoolResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMCreateResourcePlanRequest(Struct):
    __slots__ = ('resourcePlan', 'copyFrom', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlan: WMResourcePlan | None = None, copyFrom: str | None = None) -> None:
        self.resourcePlan = resourcePlan
        self.copyFrom = copyFrom


class WMCreateResourcePlanResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMCreateTriggerRequest(Struct):
    __slots__ = ('trigger', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, trigger: WMTrigger | None = None) -> None:
        self.trigger = trigger


class WMCreateTriggerResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMDropMappingRequest(Struct):
    __slots__ = ('mapping', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, mapping: WMMapping | None = None) -> None:
        self.mapping = mapping


class WMDropMappingResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMDropPoolRequest(Struct):
    __slots__ = ('resourcePlanName', 'poolPath', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, poolPath: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.poolPath = poolPath
        self.ns = ns


class WMDropPoolResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMDropResourcePlanRequest(Struct):
    __slots__ = ('resourcePlanName', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.ns = ns


class WMDropResourcePlanResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMDropTriggerRequest(Struct):
    __slots__ = ('resourcePlanName', 'triggerName', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, triggerName: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.triggerName = triggerName
        self.ns = ns


class WMDropTriggerResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WMGetActiveResourcePlanRequest(Struct):
    __slots__ = ('ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, ns: str | None = None) -> None:
        self.ns = ns


class WMGetActiveResourcePlanResponse(Struct):
    __slots__ = ('resourcePlan', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlan: WMFullResourcePlan | None = None) -> None:
        self.resourcePlan = resourcePlan


class WMGetAllResourcePlanRequest(Struct):
    __slots__ = ('ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, ns: str | None = None) -> None:
        self.ns = ns


class WMGetAllResourcePlanResponse(Struct):
    __slots__ = ('resourcePlans', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlans: list[WMResourcePlan] | None = None) -> None:
        self.resourcePlans = resourcePlans


class WMGetResourcePlanRequest(Struct):
    __slots__ = ('resourcePlanName', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.ns = ns


class WMGetResourcePlanResponse(Struct):
    __slots__ = ('resourcePlan', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlan: WMFullResourcePlan | None = None) -> None:
        self.resourcePlan = resourcePlan


class WMGetTriggersForResourePlanRequest(Struct):
    __slots__ = ('resourcePlanName', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.ns = ns


class WMGetTriggersForResourePlanResponse(Struct):
    __slots__ = ('triggers', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, triggers: list[WMTrigger] | None = None) -> None:
        self.triggers = triggers


class WMValidateResourcePlanRequest(Struct):
    __slots__ = ('resourcePlanName', 'ns', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, resourcePlanName: str | None = None, ns: str | None = None) -> None:
        self.resourcePlanName = resourcePlanName
        self.ns = ns


class WMValidateResourcePlanResponse(Struct):
    __slots__ = ('errors', 'warnings', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, errors: list[str] | None = None, warnings: list[str] | None = None) -> None:
        self.errors = errors
        self.warnings = warnings


class WriteNotificationLogRequest(Struct):
    __slots__ = ('txnId', 'writeId', 'db', 'table', 'fileInfo', 'partitionVals', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('txnId', 'writeId', 'db', 'table', 'fileInfo',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, txnId: int | None = None, writeId: int | None = None, db: str | None = None, table: str | None = None, fileInfo: InsertEventRequestData | None = None, partitionVals: list[str] | None = None) -> None:
        self.txnId = txnId
        self.writeId = writeId
        self.db = db
        self.table = table
        self.fileInfo = fileInfo
        self.partitionVals = partitionVals


class WriteNotificationLogBatchRequest(Struct):
    __slots__ = ('catalog', 'db', 'table', 'requestList', 'unknown')
    required: ClassVar[tuple[str, ...]] = ('catalog', 'db', 'table', 'requestList',)
    thrift_spec: ClassVar[Spec]

    def __init__(self, catalog: str | None = None, db: str | None = None, table: str | None = None, requestList: list[WriteNotificationLogRequest] | None = None) -> None:
        self.catalog = catalog
        self.db = db
        self.table = table
        self.requestList = requestList


class WriteNotificationLogBatchResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class WriteNotificationLogResponse(Struct):
    __slots__ = ("unknown",)
    thrift_spec: ClassVar[Spec] = ()


class Index(Struct):
    __slots__ = ('indexName', 'indexHandlerClass', 'dbName', 'origTableName', 'createTime', 'lastAccessTime', 'indexTableName', 'sd', 'parameters', 'deferredRebuild', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, indexName: str | None = None, indexHandlerClass: str | None = None, dbName: str | None = None, origTableName: str | None = None, createTime: int | None = None, lastAccessTime: int | None = None, indexTableName: str | None = None, sd: StorageDescriptor | None = None, parameters: dict[str, str] | None = None, deferredRebuild: bool | None = None) -> None:
        self.indexName = indexName
        self.indexHandlerClass = indexHandlerClass
        self.dbName = dbName
        self.origTableName = origTableName
        self.createTime = createTime
        self.lastAccessTime = lastAccessTime
        self.indexTableName = indexTableName
        self.sd = sd
        self.parameters = parameters
        self.deferredRebuild = deferredRebuild


class AlreadyExistsException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class CompactionAbortedException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class ConfigValSecurityException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class InvalidInputException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class InvalidObjectException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class InvalidOperationException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class InvalidPartitionException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class MetaException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class NoSuchCompactionException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class NoSuchLockException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class NoSuchObjectException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class NoSuchTxnException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class TxnAbortedException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class TxnOpenException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class UnknownDBException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class UnknownPartitionException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class UnknownTableException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class IndexAlreadyExistsException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


AbortCompactionRequest.thrift_spec = f(None, (1, 'compactionIds', 15, (10, None, False)), (2, 'type', 11, 'UTF8'), (3, 'poolName', 11, 'UTF8'))
AbortCompactionResponseElement.thrift_spec = f(None, (1, 'compactionId', 10, None), (2, 'status', 11, 'UTF8'), (3, 'message', 11, 'UTF8'))
AbortCompactResponse.thrift_spec = f(None, (1, 'abortedcompacts', 13, (10, None, 12, [AbortCompactionResponseElement, None], False)))
AbortTxnRequest.thrift_spec = f(None, (1, 'txnid', 10, None), (2, 'replPolicy', 11, 'UTF8'), (3, 'txn_type', 8, None), (4, 'errorCode', 10, None))
AbortTxnsRequest.thrift_spec = f(None, (1, 'txn_ids', 15, (10, None, False)), (2, 'errorCode', 10, None))
SQLCheckConstraint.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'table_db', 11, 'UTF8'), (3, 'table_name', 11, 'UTF8'), (4, 'column_name', 11, 'UTF8'), (5, 'check_expression', 11, 'UTF8'), (6, 'dc_name', 11, 'UTF8'), (7, 'enable_cstr', 2, None), (8, 'validate_cstr', 2, None), (9, 'rely_cstr', 2, None))
AddCheckConstraintRequest.thrift_spec = f(None, (1, 'checkConstraintCols', 15, (12, [SQLCheckConstraint, None], False)))
SQLDefaultConstraint.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'table_db', 11, 'UTF8'), (3, 'table_name', 11, 'UTF8'), (4, 'column_name', 11, 'UTF8'), (5, 'default_value', 11, 'UTF8'), (6, 'dc_name', 11, 'UTF8'), (7, 'enable_cstr', 2, None), (8, 'validate_cstr', 2, None), (9, 'rely_cstr', 2, None))
AddDefaultConstraintRequest.thrift_spec = f(None, (1, 'defaultConstraintCols', 15, (12, [SQLDefaultConstraint, None], False)))
AddDynamicPartitions.thrift_spec = f(None, (1, 'txnid', 10, None), (2, 'writeid', 10, None), (3, 'dbname', 11, 'UTF8'), (4, 'tablename', 11, 'UTF8'), (5, 'partitionnames', 15, (11, 'UTF8', False)), (6, 'operationType', 8, None))
SQLForeignKey.thrift_spec = f(None, (1, 'pktable_db', 11, 'UTF8'), (2, 'pktable_name', 11, 'UTF8'), (3, 'pkcolumn_name', 11, 'UTF8'), (4, 'fktable_db', 11, 'UTF8'), (5, 'fktable_name', 11, 'UTF8'), (6, 'fkcolumn_name', 11, 'UTF8'), (7, 'key_seq', 8, None), (8, 'update_rule', 8, None), (9, 'delete_rule', 8, None), (10, 'fk_name', 11, 'UTF8'), (11, 'pk_name', 11, 'UTF8'), (12, 'enable_cstr', 2, None), (13, 'validate_cstr', 2, None), (14, 'rely_cstr', 2, None), (15, 'catName', 11, 'UTF8'))
AddForeignKeyRequest.thrift_spec = f(None, (1, 'foreignKeyCols', 15, (12, [SQLForeignKey, None], False)))
SQLNotNullConstraint.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'table_db', 11, 'UTF8'), (3, 'table_name', 11, 'UTF8'), (4, 'column_name', 11, 'UTF8'), (5, 'nn_name', 11, 'UTF8'), (6, 'enable_cstr', 2, None), (7, 'validate_cstr', 2, None), (8, 'rely_cstr', 2, None))
AddNotNullConstraintRequest.thrift_spec = f(None, (1, 'notNullConstraintCols', 15, (12, [SQLNotNullConstraint, None], False)))
AddPackageRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'packageName', 11, 'UTF8'), (4, 'ownerName', 11, 'UTF8'), (5, 'header', 11, 'UTF8'), (6, 'body', 11, 'UTF8'))
ColumnStatisticsDesc.thrift_spec = f(None, (1, 'isTblLevel', 2, None), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'partName', 11, 'UTF8'), (5, 'lastAnalyzed', 10, None), (6, 'catName', 11, 'UTF8'))
BinaryColumnStatsData.thrift_spec = f(None, (1, 'maxColLen', 10, None), (2, 'avgColLen', 4, None), (3, 'numNulls', 10, None), (4, 'bitVectors', 11, 'BINARY'))
BooleanColumnStatsData.thrift_spec = f(None, (1, 'numTrues', 10, None), (2, 'numFalses', 10, None), (3, 'numNulls', 10, None), (4, 'bitVectors', 11, 'BINARY'))
Date.thrift_spec = f(None, (1, 'daysSinceEpoch', 10, None))
DateColumnStatsData.thrift_spec = f(None, (1, 'lowValue', 12, [Date, None]), (2, 'highValue', 12, [Date, None]), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'), (6, 'histogram', 11, 'BINARY'))
Decimal.thrift_spec = f(None, (1, 'unscaled', 11, 'BINARY'), None, (3, 'scale', 6, None))
DecimalColumnStatsData.thrift_spec = f(None, (1, 'lowValue', 12, [Decimal, None]), (2, 'highValue', 12, [Decimal, None]), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'), (6, 'histogram', 11, 'BINARY'))
DoubleColumnStatsData.thrift_spec = f(None, (1, 'lowValue', 4, None), (2, 'highValue', 4, None), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'), (6, 'histogram', 11, 'BINARY'))
LongColumnStatsData.thrift_spec = f(None, (1, 'lowValue', 10, None), (2, 'highValue', 10, None), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'), (6, 'histogram', 11, 'BINARY'))
StringColumnStatsData.thrift_spec = f(None, (1, 'maxColLen', 10, None), (2, 'avgColLen', 4, None), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'))
Timestamp.thrift_spec = f(None, (1, 'secondsSinceEpoch', 10, None))
TimestampColumnStatsData.thrift_spec = f(None, (1, 'lowValue', 12, [Timestamp, None]), (2, 'highValue', 12, [Timestamp, None]), (3, 'numNulls', 10, None), (4, 'numDVs', 10, None), (5, 'bitVectors', 11, 'BINARY'), (6, 'histogram', 11, 'BINARY'))
ColumnStatisticsData.thrift_spec = f(None, (1, 'booleanStats', 12, [BooleanColumnStatsData, None]), (2, 'longStats', 12, [LongColumnStatsData, None]), (3, 'doubleStats', 12, [DoubleColumnStatsData, None]), (4, 'stringStats', 12, [StringColumnStatsData, None]), (5, 'binaryStats', 12, [BinaryColumnStatsData, None]), (6, 'decimalStats', 12, [DecimalColumnStatsData, None]), (7, 'dateStats', 12, [DateColumnStatsData, None]), (8, 'timestampStats', 12, [TimestampColumnStatsData, None]))
ColumnStatisticsObj.thrift_spec = f(None, (1, 'colName', 11, 'UTF8'), (2, 'colType', 11, 'UTF8'), (3, 'statsData', 12, [ColumnStatisticsData, None]))
ColumnStatistics.thrift_spec = f(None, (1, 'statsDesc', 12, [ColumnStatisticsDesc, None]), (2, 'statsObj', 15, (12, [ColumnStatisticsObj, None], False)), (3, 'isStatsCompliant', 2, None), (4, 'engine', 11, 'UTF8'))
FileMetadata.thrift_spec = f(None, (1, 'type', 3, None), (2, 'version', 3, None), (3, 'data', 15, (11, 'BINARY', False)))
PrivilegeGrantInfo.thrift_spec = f(None, (1, 'privilege', 11, 'UTF8'), (2, 'createTime', 8, None), (3, 'grantor', 11, 'UTF8'), (4, 'grantorType', 8, None), (5, 'grantOption', 2, None))
PrincipalPrivilegeSet.thrift_spec = f(None, (1, 'userPrivileges', 13, (11, 'UTF8', 15, (12, [PrivilegeGrantInfo, None], False), False)), (2, 'groupPrivileges', 13, (11, 'UTF8', 15, (12, [PrivilegeGrantInfo, None], False), False)), (3, 'rolePrivileges', 13, (11, 'UTF8', 15, (12, [PrivilegeGrantInfo, None], False), False)))
FieldSchema.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'type', 11, 'UTF8'), (3, 'comment', 11, 'UTF8'))
Order.thrift_spec = f(None, (1, 'col', 11, 'UTF8'), (2, 'order', 8, None))
SerDeInfo.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'serializationLib', 11, 'UTF8'), (3, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (4, 'description', 11, 'UTF8'), (5, 'serializerClass', 11, 'UTF8'), (6, 'deserializerClass', 11, 'UTF8'), (7, 'serdeType', 8, None))
SkewedInfo.thrift_spec = f(None, (1, 'skewedColNames', 15, (11, 'UTF8', False)), (2, 'skewedColValues', 15, (15, (11, 'UTF8', False), False)), (3, 'skewedColValueLocationMaps', 13, (15, (11, 'UTF8', True), 11, 'UTF8', False)))
StorageDescriptor.thrift_spec = f(None, (1, 'cols', 15, (12, [FieldSchema, None], False)), (2, 'location', 11, 'UTF8'), (3, 'inputFormat', 11, 'UTF8'), (4, 'outputFormat', 11, 'UTF8'), (5, 'compressed', 2, None), (6, 'numBuckets', 8, None), (7, 'serdeInfo', 12, [SerDeInfo, None]), (8, 'bucketCols', 15, (11, 'UTF8', False)), (9, 'sortCols', 15, (12, [Order, None], False)), (10, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (11, 'skewedInfo', 12, [SkewedInfo, None]), (12, 'storedAsSubDirectories', 2, None))
Partition.thrift_spec = f(None, (1, 'values', 15, (11, 'UTF8', False)), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'createTime', 8, None), (5, 'lastAccessTime', 8, None), (6, 'sd', 12, [StorageDescriptor, None]), (7, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (8, 'privileges', 12, [PrincipalPrivilegeSet, None]), (9, 'catName', 11, 'UTF8'), (10, 'writeId', 10, None), (11, 'isStatsCompliant', 2, None), (12, 'colStats', 12, [ColumnStatistics, None]), (13, 'fileMetadata', 12, [FileMetadata, None]))
AddPartitionsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'parts', 15, (12, [Partition, None], False)), (4, 'ifNotExists', 2, None), (5, 'needResult', 2, None), (6, 'catName', 11, 'UTF8'), (7, 'validWriteIdList', 11, 'UTF8'), (8, 'skipColumnSchemaForPartition', 2, None), (9, 'partitionColSchema', 15, (12, [FieldSchema, None], False)), (10, 'environmentContext', 12, [EnvironmentContext, None]))
AddPartitionsResult.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)), (2, 'isStatsCompliant', 2, None), (3, 'partitionColSchema', 15, (12, [FieldSchema, None], False)))
SQLPrimaryKey.thrift_spec = f(None, (1, 'table_db', 11, 'UTF8'), (2, 'table_name', 11, 'UTF8'), (3, 'column_name', 11, 'UTF8'), (4, 'key_seq', 8, None), (5, 'pk_name', 11, 'UTF8'), (6, 'enable_cstr', 2, None), (7, 'validate_cstr', 2, None), (8, 'rely_cstr', 2, None), (9, 'catName', 11, 'UTF8'))
AddPrimaryKeyRequest.thrift_spec = f(None, (1, 'primaryKeyCols', 15, (12, [SQLPrimaryKey, None], False)))
SQLUniqueConstraint.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'table_db', 11, 'UTF8'), (3, 'table_name', 11, 'UTF8'), (4, 'column_name', 11, 'UTF8'), (5, 'key_seq', 8, None), (6, 'uk_name', 11, 'UTF8'), (7, 'enable_cstr', 2, None), (8, 'validate_cstr', 2, None), (9, 'rely_cstr', 2, None))
AddUniqueConstraintRequest.thrift_spec = f(None, (1, 'uniqueConstraintCols', 15, (12, [SQLUniqueConstraint, None], False)))
AggrStats.thrift_spec = f(None, (1, 'colStats', 15, (12, [ColumnStatisticsObj, None], False)), (2, 'partsFound', 10, None), (3, 'isStatsCompliant', 2, None))
AllTableConstraintsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'catName', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
SQLAllTableConstraints.thrift_spec = f(None, (1, 'primaryKeys', 15, (12, [SQLPrimaryKey, None], False)), (2, 'foreignKeys', 15, (12, [SQLForeignKey, None], False)), (3, 'uniqueConstraints', 15, (12, [SQLUniqueConstraint, None], False)), (4, 'notNullConstraints', 15, (12, [SQLNotNullConstraint, None], False)), (5, 'defaultConstraints', 15, (12, [SQLDefaultConstraint, None], False)), (6, 'checkConstraints', 15, (12, [SQLCheckConstraint, None], False)))
AllTableConstraintsResponse.thrift_spec = f(None, (1, 'allTableConstraints', 12, [SQLAllTableConstraints, None]))
TxnToWriteId.thrift_spec = f(None, (1, 'txnId', 10, None), (2, 'writeId', 10, None))
AllocateTableWriteIdsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'), (3, 'txnIds', 15, (10, None, False)), (4, 'replPolicy', 11, 'UTF8'), (5, 'srcTxnToWriteIdList', 15, (12, [TxnToWriteId, None], False)), (6, 'reallocate', 2, None))
AllocateTableWriteIdsResponse.thrift_spec = f(None, (1, 'txnToWriteIds', 15, (12, [TxnToWriteId, None], False)))
Catalog.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'description', 11, 'UTF8'), (3, 'locationUri', 11, 'UTF8'), (4, 'createTime', 8, None), (5, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)))
AlterCatalogRequest.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'newCat', 12, [Catalog, None]))
ISchema.thrift_spec = f(None, (1, 'schemaType', 8, None), (2, 'name', 11, 'UTF8'), (3, 'catName', 11, 'UTF8'), (4, 'dbName', 11, 'UTF8'), (5, 'compatibility', 8, None), (6, 'validationLevel', 8, None), (7, 'canEvolve', 2, None), (8, 'schemaGroup', 11, 'UTF8'), (9, 'description', 11, 'UTF8'))
ISchemaName.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'schemaName', 11, 'UTF8'))
AlterDataConnectorRequest.thrift_spec = f(None, (1, 'connectorName', 11, 'UTF8'), (2, 'newConnector', 12, [DataConnector, None]))
AlterISchemaRequest.thrift_spec = f(None, (1, 'name', 12, [ISchemaName, None]), None, (3, 'newSchema', 12, [ISchema, None]))
EnvironmentContext.thrift_spec = f(None, (1, 'properties', 13, (11, 'UTF8', 11, 'UTF8', False)))
AlterPartitionsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'partitions', 15, (12, [Partition, None], False)), (5, 'environmentContext', 12, [EnvironmentContext, None]), (6, 'writeId', 10, None), (7, 'validWriteIdList', 11, 'UTF8'), (8, 'skipColumnSchemaForPartition', 2, None), (9, 'partitionColSchema', 15, (12, [FieldSchema, None], False)))
SourceTable.thrift_spec = f(None, (1, 'table', 12, [Table, None]), (2, 'insertedCount', 10, None), (3, 'updatedCount', 10, None), (4, 'deletedCount', 10, None))
CreationMetadata.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'tablesUsed', 14, (11, 'UTF8', False)), (5, 'validTxnList', 11, 'UTF8'), (6, 'materializationTime', 10, None), (7, 'sourceTables', 15, (12, [SourceTable, None], False)))
ObjectDictionary.thrift_spec = f(None, (1, 'values', 13, (11, 'UTF8', 15, (11, 'BINARY', False), False)))
Table.thrift_spec = f(None, (1, 'tableName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'owner', 11, 'UTF8'), (4, 'createTime', 8, None), (5, 'lastAccessTime', 8, None), (6, 'retention', 8, None), (7, 'sd', 12, [StorageDescriptor, None]), (8, 'partitionKeys', 15, (12, [FieldSchema, None], False)), (9, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (10, 'viewOriginalText', 11, 'UTF8'), (11, 'viewExpandedText', 11, 'UTF8'), (12, 'tableType', 11, 'UTF8'), (13, 'privileges', 12, [PrincipalPrivilegeSet, None]), (14, 'temporary', 2, None), (15, 'rewriteEnabled', 2, None), (16, 'creationMetadata', 12, [CreationMetadata, None]), (17, 'catName', 11, 'UTF8'), (18, 'ownerType', 8, None), (19, 'writeId', 10, None), (20, 'isStatsCompliant', 2, None), (21, 'colStats', 12, [ColumnStatistics, None]), (22, 'accessType', 3, None), (23, 'requiredReadCapabilities', 15, (11, 'UTF8', False)), (24, 'requiredWriteCapabilities', 15, (11, 'UTF8', False)), (25, 'id', 10, None), (26, 'fileMetadata', 12, [FileMetadata, None]), (27, 'dictionary', 12, [ObjectDictionary, None]), (28, 'txnId', 10, None))
AlterTableRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'table', 12, [Table, None]), (5, 'environmentContext', 12, [EnvironmentContext, None]), (6, 'writeId', 10, None), (7, 'validWriteIdList', 11, 'UTF8'), (8, 'processorCapabilities', 15, (11, 'UTF8', False)), (9, 'processorIdentifier', 11, 'UTF8'), (10, 'expectedParameterKey', 11, 'UTF8'), (11, 'expectedParameterValue', 11, 'UTF8'))
AppendPartitionsRequest.thrift_spec = f(None, (1, 'catalogName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'name', 11, 'UTF8'), (5, 'partVals', 15, (11, 'UTF8', False)), (6, 'environmentContext', 12, [EnvironmentContext, None]))
BasicTxnInfo.thrift_spec = f(None, (1, 'isnull', 2, None), (2, 'time', 10, None), (3, 'txnid', 10, None), (4, 'dbname', 11, 'UTF8'), (5, 'tablename', 11, 'UTF8'), (6, 'partitionname', 11, 'UTF8'))
CacheFileMetadataRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'partName', 11, 'UTF8'), (4, 'isAllParts', 2, None))
CacheFileMetadataResult.thrift_spec = f(None, (1, 'isSupported', 2, None))
CheckConstraintsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'db_name', 11, 'UTF8'), (3, 'tbl_name', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
CheckConstraintsResponse.thrift_spec = f(None, (1, 'checkConstraints', 15, (12, [SQLCheckConstraint, None], False)))
CheckLockRequest.thrift_spec = f(None, (1, 'lockid', 10, None), (2, 'txnid', 10, None), (3, 'elapsed_ms', 10, None))
ClearFileMetadataRequest.thrift_spec = f(None, (1, 'fileIds', 15, (10, None, False)))
ClientCapabilities.thrift_spec = f(None, (1, 'values', 15, (8, None, False)))
CmRecycleRequest.thrift_spec = f(None, (1, 'dataPath', 11, 'UTF8'), (2, 'purge', 2, None))
CommitTxnKeyValue.thrift_spec = f(None, (1, 'tableId', 10, None), (2, 'key', 11, 'UTF8'), (3, 'value', 11, 'UTF8'))
ReplLastIdInfo.thrift_spec = f(None, (1, 'database', 11, 'UTF8'), (2, 'lastReplId', 10, None), (3, 'table', 11, 'UTF8'), (4, 'catalog', 11, 'UTF8'), (5, 'partitionList', 15, (11, 'UTF8', False)))
WriteEventInfo.thrift_spec = f(None, (1, 'writeId', 10, None), (2, 'database', 11, 'UTF8'), (3, 'table', 11, 'UTF8'), (4, 'files', 11, 'UTF8'), (5, 'partition', 11, 'UTF8'), (6, 'tableObj', 11, 'UTF8'), (7, 'partitionObj', 11, 'UTF8'))
CommitTxnRequest.thrift_spec = f(None, (1, 'txnid', 10, None), (2, 'replPolicy', 11, 'UTF8'), (3, 'writeEventInfos', 15, (12, [WriteEventInfo, None], False)), (4, 'replLastIdInfo', 12, [ReplLastIdInfo, None]), (5, 'keyValue', 12, [CommitTxnKeyValue, None]), (6, 'exclWriteEnabled', 2, None), (7, 'txn_type', 8, None))
CompactionInfoStruct.thrift_spec = f(None, (1, 'id', 10, None), (2, 'dbname', 11, 'UTF8'), (3, 'tablename', 11, 'UTF8'), (4, 'partitionname', 11, 'UTF8'), (5, 'type', 8, None), (6, 'runas', 11, 'UTF8'), (7, 'properties', 11, 'UTF8'), (8, 'toomanyaborts', 2, None), (9, 'state', 11, 'UTF8'), (10, 'workerId', 11, 'UTF8'), (11, 'start', 10, None), (12, 'highestWriteId', 10, None), (13, 'errorMessage', 11, 'UTF8'), (14, 'hasoldabort', 2, None), (15, 'enqueueTime', 10, None), (16, 'retryRetention', 10, None), (17, 'poolname', 11, 'UTF8'), (18, 'numberOfBuckets', 8, None), (19, 'orderByClause', 11, 'UTF8'))
CompactionMetricsDataRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'partitionName', 11, 'UTF8'), (4, 'type', 8, None))
CompactionMetricsDataStruct.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tblname', 11, 'UTF8'), (3, 'partitionname', 11, 'UTF8'), (4, 'type', 8, None), (5, 'metricvalue', 8, None), (6, 'version', 8, None), (7, 'threshold', 8, None))
CompactionMetricsDataResponse.thrift_spec = f(None, (1, 'data', 12, [CompactionMetricsDataStruct, None]))
CompactionRequest.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tablename', 11, 'UTF8'), (3, 'partitionname', 11, 'UTF8'), (4, 'type', 8, None), (5, 'runas', 11, 'UTF8'), (6, 'properties', 13, (11, 'UTF8', 11, 'UTF8', False)), (7, 'initiatorId', 11, 'UTF8'), (8, 'initiatorVersion', 11, 'UTF8'), (9, 'poolName', 11, 'UTF8'), (10, 'numberOfBuckets', 8, None), (11, 'orderByClause', 11, 'UTF8'))
CompactionResponse.thrift_spec = f(None, (1, 'id', 10, None), (2, 'state', 11, 'UTF8'), (3, 'accepted', 2, None), (4, 'errormessage', 11, 'UTF8'))
CreateCatalogRequest.thrift_spec = f(None, (1, 'catalog', 12, [Catalog, None]))
DataConnector.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'type', 11, 'UTF8'), (3, 'url', 11, 'UTF8'), (4, 'description', 11, 'UTF8'), (5, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (6, 'ownerName', 11, 'UTF8'), (7, 'ownerType', 8, None), (8, 'createTime', 8, None))
CreateDataConnectorRequest.thrift_spec = f(None, (1, 'connector', 12, [DataConnector, None]))
CreateDatabaseRequest.thrift_spec = f(None, (1, 'databaseName', 11, 'UTF8'), (2, 'description', 11, 'UTF8'), (3, 'locationUri', 11, 'UTF8'), (4, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (5, 'privileges', 12, [PrincipalPrivilegeSet, None]), (6, 'ownerName', 11, 'UTF8'), (7, 'ownerType', 8, None), (8, 'catalogName', 11, 'UTF8'), (9, 'createTime', 8, None), (10, 'managedLocationUri', 11, 'UTF8'), (11, 'type', 8, None), (12, 'dataConnectorName', 11, 'UTF8'), (13, 'remote_dbname', 11, 'UTF8'))
CreateTableRequest.thrift_spec = f(None, (1, 'table', 12, [Table, None]), (2, 'envContext', 12, [EnvironmentContext, None]), (3, 'primaryKeys', 15, (12, [SQLPrimaryKey, None], False)), (4, 'foreignKeys', 15, (12, [SQLForeignKey, None], False)), (5, 'uniqueConstraints', 15, (12, [SQLUniqueConstraint, None], False)), (6, 'notNullConstraints', 15, (12, [SQLNotNullConstraint, None], False)), (7, 'defaultConstraints', 15, (12, [SQLDefaultConstraint, None], False)), (8, 'checkConstraints', 15, (12, [SQLCheckConstraint, None], False)), (9, 'processorCapabilities', 15, (11, 'UTF8', False)), (10, 'processorIdentifier', 11, 'UTF8'))
CurrentNotificationEventId.thrift_spec = f(None, (1, 'eventId', 10, None))
Database.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'description', 11, 'UTF8'), (3, 'locationUri', 11, 'UTF8'), (4, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (5, 'privileges', 12, [PrincipalPrivilegeSet, None]), (6, 'ownerName', 11, 'UTF8'), (7, 'ownerType', 8, None), (8, 'catalogName', 11, 'UTF8'), (9, 'createTime', 8, None), (10, 'managedLocationUri', 11, 'UTF8'), (11, 'type', 8, None), (12, 'connector_name', 11, 'UTF8'), (13, 'remote_dbname', 11, 'UTF8'))
AlterDatabaseRequest.thrift_spec = f(None, (1, 'oldDbName', 11, 'UTF8'), (2, 'newDb', 12, [Database, None]))
DefaultConstraintsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'db_name', 11, 'UTF8'), (3, 'tbl_name', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
DefaultConstraintsResponse.thrift_spec = f(None, (1, 'defaultConstraints', 15, (12, [SQLDefaultConstraint, None], False)))
DeleteColumnStatisticsRequest.thrift_spec = f(None, (1, 'cat_name', 11, 'UTF8'), (2, 'db_name', 11, 'UTF8'), (3, 'tbl_name', 11, 'UTF8'), (4, 'part_names', 15, (11, 'UTF8', False)), (5, 'col_names', 15, (11, 'UTF8', False)), (6, 'engine', 11, 'UTF8'), (7, 'tableLevel', 2, None))
DropCatalogRequest.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'ifExists', 2, None))
DropDataConnectorRequest.thrift_spec = f(None, (1, 'connectorName', 11, 'UTF8'), (2, 'ifNotExists', 2, None), (3, 'checkReferences', 2, None))
DropConstraintRequest.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tablename', 11, 'UTF8'), (3, 'constraintname', 11, 'UTF8'), (4, 'catName', 11, 'UTF8'))
DropDatabaseRequest.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'catalogName', 11, 'UTF8'), (3, 'ignoreUnknownDb', 2, None), (4, 'deleteData', 2, None), (5, 'cascade', 2, None), (6, 'softDelete', 2, None), (7, 'txnId', 10, None), (8, 'deleteManagedDir', 2, None))
DropPackageRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'packageName', 11, 'UTF8'))
DropPartitionRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'partName', 11, 'UTF8'), (5, 'partVals', 15, (11, 'UTF8', False)), (6, 'deleteData', 2, None), (7, 'environmentContext', 12, [EnvironmentContext, None]))
DropPartitionsExpr.thrift_spec = f(None, (1, 'expr', 11, 'BINARY'), (2, 'partArchiveLevel', 8, None))
RequestPartsSpec.thrift_spec = f(None, (1, 'names', 15, (11, 'UTF8', False)), (2, 'exprs', 15, (12, [DropPartitionsExpr, None], False)))
DropPartitionsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'parts', 12, [RequestPartsSpec, None]), (4, 'deleteData', 2, None), (5, 'ifExists', 2, None), (6, 'ignoreProtection', 2, None), (7, 'environmentContext', 12, [EnvironmentContext, None]), (8, 'needResult', 2, None), (9, 'catName', 11, 'UTF8'), (10, 'skipColumnSchemaForPartition', 2, None))
DropPartitionsResult.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)))
DropTableRequest.thrift_spec = f(None, (1, 'catalogName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'deleteData', 2, None), (5, 'envContext', 12, [EnvironmentContext, None]), (6, 'dropPartitions', 2, None))
ExtendedTableInfo.thrift_spec = f(None, (1, 'tblName', 11, 'UTF8'), (2, 'accessType', 8, None), (3, 'requiredReadCapabilities', 15, (11, 'UTF8', False)), (4, 'requiredWriteCapabilities', 15, (11, 'UTF8', False)))
FindNextCompactRequest.thrift_spec = f(None, (1, 'workerId', 11, 'UTF8'), (2, 'workerVersion', 11, 'UTF8'), (3, 'poolName', 11, 'UTF8'))
SchemaVersionDescriptor.thrift_spec = f(None, (1, 'schema', 12, [ISchemaName, None]), (2, 'version', 8, None))
FindSchemasByColsResp.thrift_spec = f(None, (1, 'schemaVersions', 15, (12, [SchemaVersionDescriptor, None], False)))
FindSchemasByColsRqst.thrift_spec = f(None, (1, 'colName', 11, 'UTF8'), (2, 'colNamespace', 11, 'UTF8'), (3, 'type', 11, 'UTF8'))
InsertEventRequestData.thrift_spec = f(None, (1, 'replace', 2, None), (2, 'filesAdded', 15, (11, 'UTF8', False)), (3, 'filesAddedChecksum', 15, (11, 'UTF8', False)), (4, 'subDirectoryList', 15, (11, 'UTF8', False)), (5, 'partitionVal', 15, (11, 'UTF8', False)))
FireEventRequestData.thrift_spec = f(None, (1, 'insertData', 12, [InsertEventRequestData, None]), (2, 'insertDatas', 15, (12, [InsertEventRequestData, None], False)), (3, 'refreshEvent', 2, None))
FireEventRequest.thrift_spec = f(None, (1, 'successful', 2, None), (2, 'data', 12, [FireEventRequestData, None]), (3, 'dbName', 11, 'UTF8'), (4, 'tableName', 11, 'UTF8'), (5, 'partitionVals', 15, (11, 'UTF8', False)), (6, 'catName', 11, 'UTF8'), (7, 'tblParams', 13, (11, 'UTF8', 11, 'UTF8', False)), (8, 'batchPartitionValsForRefresh', 15, (15, (11, 'UTF8', False), False)))
FireEventResponse.thrift_spec = f(None, (1, 'eventIds', 15, (10, None, False)))
ForeignKeysRequest.thrift_spec = f(None, (1, 'parent_db_name', 11, 'UTF8'), (2, 'parent_tbl_name', 11, 'UTF8'), (3, 'foreign_db_name', 11, 'UTF8'), (4, 'foreign_tbl_name', 11, 'UTF8'), (5, 'catName', 11, 'UTF8'), (6, 'validWriteIdList', 11, 'UTF8'), (7, 'tableId', 10, None))
ForeignKeysResponse.thrift_spec = f(None, (1, 'foreignKeys', 15, (12, [SQLForeignKey, None], False)))
ResourceUri.thrift_spec = f(None, (1, 'resourceType', 8, None), (2, 'uri', 11, 'UTF8'))
Function.thrift_spec = f(None, (1, 'functionName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'className', 11, 'UTF8'), (4, 'ownerName', 11, 'UTF8'), (5, 'ownerType', 8, None), (6, 'createTime', 8, None), (7, 'functionType', 8, None), (8, 'resourceUris', 15, (12, [ResourceUri, None], False)), (9, 'catName', 11, 'UTF8'))
GetAllFunctionsResponse.thrift_spec = f(None, (1, 'functions', 15, (12, [Function, None], False)))
GetAllWriteEventInfoRequest.thrift_spec = f(None, (1, 'txnId', 10, None), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'))
GetCatalogRequest.thrift_spec = f(None, (1, 'name', 11, 'UTF8'))
GetCatalogResponse.thrift_spec = f(None, (1, 'catalog', 12, [Catalog, None]))
GetCatalogsResponse.thrift_spec = f(None, (1, 'names', 15, (11, 'UTF8', False)))
GetDataConnectorRequest.thrift_spec = f(None, (1, 'connectorName', 11, 'UTF8'))
GetDatabaseObjectsRequest.thrift_spec = f(None, (1, 'catalogName', 11, 'UTF8'), (2, 'pattern', 11, 'UTF8'))
GetDatabaseObjectsResponse.thrift_spec = f(None, (1, 'databases', 15, (12, [Database, None], False)))
GetDatabaseRequest.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'catalogName', 11, 'UTF8'), (3, 'processorCapabilities', 15, (11, 'UTF8', False)), (4, 'processorIdentifier', 11, 'UTF8'))
GetFieldsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'envContext', 12, [EnvironmentContext, None]), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'id', 10, None))
GetFieldsResponse.thrift_spec = f(None, (1, 'fields', 15, (12, [FieldSchema, None], False)))
GetFileMetadataByExprRequest.thrift_spec = f(None, (1, 'fileIds', 15, (10, None, False)), (2, 'expr', 11, 'BINARY'), (3, 'doGetFooters', 2, None), (4, 'type', 8, None))
MetadataPpdResult.thrift_spec = f(None, (1, 'metadata', 11, 'BINARY'), (2, 'includeBitset', 11, 'BINARY'))
GetFileMetadataByExprResult.thrift_spec = f(None, (1, 'metadata', 13, (10, None, 12, [MetadataPpdResult, None], False)), (2, 'isSupported', 2, None))
GetFileMetadataRequest.thrift_spec = f(None, (1, 'fileIds', 15, (10, None, False)))
GetFileMetadataResult.thrift_spec = f(None, (1, 'metadata', 13, (10, None, 11, 'BINARY', False)), (2, 'isSupported', 2, None))
GetFunctionsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'catalogName', 11, 'UTF8'), (3, 'pattern', 11, 'UTF8'), (4, 'returnNames', 2, None))
GetFunctionsResponse.thrift_spec = f(None, (1, 'function_names', 15, (11, 'UTF8', False)), (2, 'functions', 15, (12, [Function, None], False)))
GetLatestCommittedCompactionInfoRequest.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tablename', 11, 'UTF8'), (3, 'partitionnames', 15, (11, 'UTF8', False)), (4, 'lastCompactionId', 10, None))
GetLatestCommittedCompactionInfoResponse.thrift_spec = f(None, (1, 'compactions', 15, (12, [CompactionInfoStruct, None], False)))
TxnInfo.thrift_spec = f(None, (1, 'id', 10, None), (2, 'state', 8, None), (3, 'user', 11, 'UTF8'), (4, 'hostname', 11, 'UTF8'), (5, 'agentInfo', 11, 'UTF8'), (6, 'heartbeatCount', 8, None), (7, 'metaInfo', 11, 'UTF8'), (8, 'startedTime', 10, None), (9, 'lastHeartbeatTime', 10, None))
GetOpenTxnsInfoResponse.thrift_spec = f(None, (1, 'txn_high_water_mark', 10, None), (2, 'open_txns', 15, (12, [TxnInfo, None], False)))
GetOpenTxnsRequest.thrift_spec = f(None, (1, 'excludeTxnTypes', 15, (8, None, False)))
GetOpenTxnsResponse.thrift_spec = f(None, (1, 'txn_high_water_mark', 10, None), (2, 'open_txns', 15, (10, None, False)), (3, 'min_open_txn', 10, None), (4, 'abortedBits', 11, 'BINARY'))
GetPackageRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'packageName', 11, 'UTF8'))
GetPartitionNamesPsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'partValues', 15, (11, 'UTF8', False)), (5, 'maxParts', 6, None), (6, 'validWriteIdList', 11, 'UTF8'), (7, 'id', 10, None))
GetPartitionNamesPsResponse.thrift_spec = f(None, (1, 'names', 15, (11, 'UTF8', False)))
GetPartitionRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'partVals', 15, (11, 'UTF8', False)), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'id', 10, None))
GetPartitionResponse.thrift_spec = f(None, (1, 'partition', 12, [Partition, None]))
GetPartitionsByFilterRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'filter', 11, 'UTF8'), (5, 'maxParts', 6, None), (6, 'skipColumnSchemaForPartition', 2, None), (7, 'includeParamKeyPattern', 11, 'UTF8'), (8, 'excludeParamKeyPattern', 11, 'UTF8'))
GetPartitionsByNamesRequest.thrift_spec = f(None, (1, 'db_name', 11, 'UTF8'), (2, 'tbl_name', 11, 'UTF8'), (3, 'names', 15, (11, 'UTF8', False)), (4, 'get_col_stats', 2, None), (5, 'processorCapabilities', 15, (11, 'UTF8', False)), (6, 'processorIdentifier', 11, 'UTF8'), (7, 'engine', 11, 'UTF8'), (8, 'validWriteIdList', 11, 'UTF8'), (9, 'getFileMetadata', 2, None), (10, 'id', 10, None), (11, 'skipColumnSchemaForPartition', 2, None), (12, 'includeParamKeyPattern', 11, 'UTF8'), (13, 'excludeParamKeyPattern', 11, 'UTF8'))
GetPartitionsByNamesResult.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)), (2, 'dictionary', 12, [ObjectDictionary, None]))
GetPartitionsFilterSpec.thrift_spec = f(None, None, None, None, None, None, None, (7, 'filterMode', 8, None), (8, 'filters', 15, (11, 'UTF8', False)))
GetPartitionsPsWithAuthRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'partVals', 15, (11, 'UTF8', False)), (5, 'maxParts', 6, None), (6, 'userName', 11, 'UTF8'), (7, 'groupNames', 15, (11, 'UTF8', False)), (8, 'validWriteIdList', 11, 'UTF8'), (9, 'id', 10, None), (10, 'skipColumnSchemaForPartition', 2, None), (11, 'includeParamKeyPattern', 11, 'UTF8'), (12, 'excludeParamKeyPattern', 11, 'UTF8'), (13, 'partNames', 15, (11, 'UTF8', False)))
GetPartitionsPsWithAuthResponse.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)))
GetProjectionsSpec.thrift_spec = f(None, (1, 'fieldList', 15, (11, 'UTF8', False)), (2, 'includeParamKeyPattern', 11, 'UTF8'), (3, 'excludeParamKeyPattern', 11, 'UTF8'))
GetPartitionsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'withAuth', 2, None), (5, 'user', 11, 'UTF8'), (6, 'groupNames', 15, (11, 'UTF8', False)), (7, 'projectionSpec', 12, [GetProjectionsSpec, None]), (8, 'filterSpec', 12, [GetPartitionsFilterSpec, None]), (9, 'processorCapabilities', 15, (11, 'UTF8', False)), (10, 'processorIdentifier', 11, 'UTF8'), (11, 'validWriteIdList', 11, 'UTF8'))
PartitionListComposingSpec.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)))
PartitionWithoutSD.thrift_spec = f(None, (1, 'values', 15, (11, 'UTF8', False)), (2, 'createTime', 8, None), (3, 'lastAccessTime', 8, None), (4, 'relativePath', 11, 'UTF8'), (5, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (6, 'privileges', 12, [PrincipalPrivilegeSet, None]))
PartitionSpecWithSharedSD.thrift_spec = f(None, (1, 'partitions', 15, (12, [PartitionWithoutSD, None], False)), (2, 'sd', 12, [StorageDescriptor, None]))
PartitionSpec.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'), (3, 'rootPath', 11, 'UTF8'), (4, 'sharedSDPartitionSpec', 12, [PartitionSpecWithSharedSD, None]), (5, 'partitionList', 12, [PartitionListComposingSpec, None]), (6, 'catName', 11, 'UTF8'), (7, 'writeId', 10, None), (8, 'isStatsCompliant', 2, None))
GetPartitionsResponse.thrift_spec = f(None, (1, 'partitionSpec', 15, (12, [PartitionSpec, None], False)))
GetPrincipalsInRoleRequest.thrift_spec = f(None, (1, 'roleName', 11, 'UTF8'))
RolePrincipalGrant.thrift_spec = f(None, (1, 'roleName', 11, 'UTF8'), (2, 'principalName', 11, 'UTF8'), (3, 'principalType', 8, None), (4, 'grantOption', 2, None), (5, 'grantTime', 8, None), (6, 'grantorName', 11, 'UTF8'), (7, 'grantorPrincipalType', 8, None))
GetPrincipalsInRoleResponse.thrift_spec = f(None, (1, 'principalGrants', 15, (12, [RolePrincipalGrant, None], False)))
GetReplicationMetricsRequest.thrift_spec = f(None, (1, 'scheduledExecutionId', 10, None), (2, 'policy', 11, 'UTF8'), (3, 'dumpExecutionId', 10, None))
GetRoleGrantsForPrincipalRequest.thrift_spec = f(None, (1, 'principal_name', 11, 'UTF8'), (2, 'principal_type', 8, None))
GetRoleGrantsForPrincipalResponse.thrift_spec = f(None, (1, 'principalGrants', 15, (12, [RolePrincipalGrant, None], False)))
GetRuntimeStatsRequest.thrift_spec = f(None, (1, 'maxWeight', 8, None), (2, 'maxCreateTime', 8, None))
GetSchemaRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'envContext', 12, [EnvironmentContext, None]), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'id', 10, None))
GetSchemaResponse.thrift_spec = f(None, (1, 'fields', 15, (12, [FieldSchema, None], False)))
GetSerdeRequest.thrift_spec = f(None, (1, 'serdeName', 11, 'UTF8'))
GetTableRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'capabilities', 12, [ClientCapabilities, None]), (4, 'catName', 11, 'UTF8'), None, (6, 'validWriteIdList', 11, 'UTF8'), (7, 'getColumnStats', 2, None), (8, 'processorCapabilities', 15, (11, 'UTF8', False)), (9, 'processorIdentifier', 11, 'UTF8'), (10, 'engine', 11, 'UTF8'), (11, 'id', 10, None))
GetTableResult.thrift_spec = f(None, (1, 'table', 12, [Table, None]), (2, 'isStatsCompliant', 2, None))
GetTablesExtRequest.thrift_spec = f(None, (1, 'catalog', 11, 'UTF8'), (2, 'database', 11, 'UTF8'), (3, 'tableNamePattern', 11, 'UTF8'), (4, 'requestedFields', 8, None), (5, 'limit', 8, None), (6, 'processorCapabilities', 15, (11, 'UTF8', False)), (7, 'processorIdentifier', 11, 'UTF8'))
GetTablesRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblNames', 15, (11, 'UTF8', False)), (3, 'capabilities', 12, [ClientCapabilities, None]), (4, 'catName', 11, 'UTF8'), (5, 'processorCapabilities', 15, (11, 'UTF8', False)), (6, 'processorIdentifier', 11, 'UTF8'), (7, 'projectionSpec', 12, [GetProjectionsSpec, None]), (8, 'tablesPattern', 11, 'UTF8'))
GetTablesResult.thrift_spec = f(None, (1, 'tables', 15, (12, [Table, None], False)))
GetValidWriteIdsRequest.thrift_spec = f(None, (1, 'fullTableNames', 15, (11, 'UTF8', False)), (2, 'validTxnList', 11, 'UTF8'), (3, 'writeId', 10, None))
TableValidWriteIds.thrift_spec = f(None, (1, 'fullTableName', 11, 'UTF8'), (2, 'writeIdHighWaterMark', 10, None), (3, 'invalidWriteIds', 15, (10, None, False)), (4, 'minOpenWriteId', 10, None), (5, 'abortedBits', 11, 'BINARY'))
GetValidWriteIdsResponse.thrift_spec = f(None, (1, 'tblValidWriteIds', 15, (12, [TableValidWriteIds, None], False)))
HiveObjectRef.thrift_spec = f(None, (1, 'objectType', 8, None), (2, 'dbName', 11, 'UTF8'), (3, 'objectName', 11, 'UTF8'), (4, 'partValues', 15, (11, 'UTF8', False)), (5, 'columnName', 11, 'UTF8'), (6, 'catName', 11, 'UTF8'))
HiveObjectPrivilege.thrift_spec = f(None, (1, 'hiveObject', 12, [HiveObjectRef, None]), (2, 'principalName', 11, 'UTF8'), (3, 'principalType', 8, None), (4, 'grantInfo', 12, [PrivilegeGrantInfo, None]), (5, 'authorizer', 11, 'UTF8'))
PrivilegeBag.thrift_spec = f(None, (1, 'privileges', 15, (12, [HiveObjectPrivilege, None], False)))
GrantRevokePrivilegeRequest.thrift_spec = f(None, (1, 'requestType', 8, None), (2, 'privileges', 12, [PrivilegeBag, None]), (3, 'revokeGrantOption', 2, None))
GrantRevokePrivilegeResponse.thrift_spec = f(None, (1, 'success', 2, None))
GrantRevokeRoleRequest.thrift_spec = f(None, (1, 'requestType', 8, None), (2, 'roleName', 11, 'UTF8'), (3, 'principalName', 11, 'UTF8'), (4, 'principalType', 8, None), (5, 'grantor', 11, 'UTF8'), (6, 'grantorType', 8, None), (7, 'grantOption', 2, None))
GrantRevokeRoleResponse.thrift_spec = f(None, (1, 'success', 2, None))
HeartbeatRequest.thrift_spec = f(None, (1, 'lockid', 10, None), (2, 'txnid', 10, None))
HeartbeatTxnRangeRequest.thrift_spec = f(None, (1, 'min', 10, None), (2, 'max', 10, None))
HeartbeatTxnRangeResponse.thrift_spec = f(None, (1, 'aborted', 14, (10, None, False)), (2, 'nosuch', 14, (10, None, False)))
ListPackageRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'))
ListStoredProcedureRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'))
LockComponent.thrift_spec = f(None, (1, 'type', 8, None), (2, 'level', 8, None), (3, 'dbname', 11, 'UTF8'), (4, 'tablename', 11, 'UTF8'), (5, 'partitionname', 11, 'UTF8'), (6, 'operationType', 8, None), (7, 'isTransactional', 2, None), (8, 'isDynamicPartitionWrite', 2, None))
LockRequest.thrift_spec = f(None, (1, 'component', 15, (12, [LockComponent, None], False)), (2, 'txnid', 10, None), (3, 'user', 11, 'UTF8'), (4, 'hostname', 11, 'UTF8'), (5, 'agentInfo', 11, 'UTF8'), (6, 'zeroWaitReadEnabled', 2, None), (7, 'exclusiveCTAS', 2, None), (8, 'locklessReadsEnabled', 2, None))
LockResponse.thrift_spec = f(None, (1, 'lockid', 10, None), (2, 'state', 8, None), (3, 'errorMessage', 11, 'UTF8'))
MapSchemaVersionToSerdeRequest.thrift_spec = f(None, (1, 'schemaVersion', 12, [SchemaVersionDescriptor, None]), (2, 'serdeName', 11, 'UTF8'))
Materialization.thrift_spec = f(None, (1, 'sourceTablesUpdateDeleteModified', 2, None), (2, 'sourceTablesCompacted', 2, None))
MaxAllocatedTableWriteIdRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'))
MaxAllocatedTableWriteIdResponse.thrift_spec = f(None, (1, 'maxWriteId', 10, None))
NotNullConstraintsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'db_name', 11, 'UTF8'), (3, 'tbl_name', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
NotNullConstraintsResponse.thrift_spec = f(None, (1, 'notNullConstraints', 15, (12, [SQLNotNullConstraint, None], False)))
NotificationEvent.thrift_spec = f(None, (1, 'eventId', 10, None), (2, 'eventTime', 8, None), (3, 'eventType', 11, 'UTF8'), (4, 'dbName', 11, 'UTF8'), (5, 'tableName', 11, 'UTF8'), (6, 'message', 11, 'UTF8'), (7, 'messageFormat', 11, 'UTF8'), (8, 'catName', 11, 'UTF8'))
NotificationEventRequest.thrift_spec = f(None, (1, 'lastEvent', 10, None), (2, 'maxEvents', 8, None), (3, 'eventTypeSkipList', 15, (11, 'UTF8', False)), (4, 'catName', 11, 'UTF8'), (5, 'dbName', 11, 'UTF8'), (6, 'tableNames', 15, (11, 'UTF8', False)), (7, 'eventTypeList', 15, (11, 'UTF8', False)))
NotificationEventResponse.thrift_spec = f(None, (1, 'events', 15, (12, [NotificationEvent, None], False)))
NotificationEventsCountRequest.thrift_spec = f(None, (1, 'fromEventId', 10, None), (2, 'dbName', 11, 'UTF8'), (3, 'catName', 11, 'UTF8'), (4, 'toEventId', 10, None), (5, 'limit', 10, None), (6, 'tableNames', 15, (11, 'UTF8', False)))
NotificationEventsCountResponse.thrift_spec = f(None, (1, 'eventsCount', 10, None))
OpenTxnRequest.thrift_spec = f(None, (1, 'num_txns', 8, None), (2, 'user', 11, 'UTF8'), (3, 'hostname', 11, 'UTF8'), (4, 'agentInfo', 11, 'UTF8'), (5, 'replPolicy', 11, 'UTF8'), (6, 'replSrcTxnIds', 15, (10, None, False)), (7, 'txn_type', 8, None))
OpenTxnsResponse.thrift_spec = f(None, (1, 'txn_ids', 15, (10, None, False)))
OptionalCompactionInfoStruct.thrift_spec = f(None, (1, 'ci', 12, [CompactionInfoStruct, None]))
Package.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'packageName', 11, 'UTF8'), (4, 'ownerName', 11, 'UTF8'), (5, 'header', 11, 'UTF8'), (6, 'body', 11, 'UTF8'))
PartitionValuesRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'partitionKeys', 15, (12, [FieldSchema, None], False)), (4, 'applyDistinct', 2, None), (5, 'filter', 11, 'UTF8'), (6, 'partitionOrder', 15, (12, [FieldSchema, None], False)), (7, 'ascending', 2, None), (8, 'maxParts', 10, None), (9, 'catName', 11, 'UTF8'), (10, 'validWriteIdList', 11, 'UTF8'))
PartitionValuesRow.thrift_spec = f(None, (1, 'row', 15, (11, 'UTF8', False)))
PartitionValuesResponse.thrift_spec = f(None, (1, 'partitionValues', 15, (12, [PartitionValuesRow, None], False)))
PartitionsByExprRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'expr', 11, 'BINARY'), (4, 'defaultPartitionName', 11, 'UTF8'), (5, 'maxParts', 6, None), (6, 'catName', 11, 'UTF8'), (7, 'order', 11, 'UTF8'), (8, 'validWriteIdList', 11, 'UTF8'), (9, 'id', 10, None), (10, 'skipColumnSchemaForPartition', 2, None), (11, 'includeParamKeyPattern', 11, 'UTF8'), (12, 'excludeParamKeyPattern', 11, 'UTF8'))
PartitionsByExprResult.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)), (2, 'hasUnknownPartitions', 2, None))
PartitionsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tblName', 11, 'UTF8'), (4, 'maxParts', 6, None), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'id', 10, None), (7, 'skipColumnSchemaForPartition', 2, None), (8, 'includeParamKeyPattern', 11, 'UTF8'), (9, 'excludeParamKeyPattern', 11, 'UTF8'))
PartitionsResponse.thrift_spec = f(None, (1, 'partitions', 15, (12, [Partition, None], False)))
PartitionsSpecByExprResult.thrift_spec = f(None, (1, 'partitionsSpec', 15, (12, [PartitionSpec, None], False)), (2, 'hasUnknownPartitions', 2, None))
PartitionsStatsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'colNames', 15, (11, 'UTF8', False)), (4, 'partNames', 15, (11, 'UTF8', False)), (5, 'catName', 11, 'UTF8'), (6, 'validWriteIdList', 11, 'UTF8'), (7, 'engine', 11, 'UTF8'))
PartitionsStatsResult.thrift_spec = f(None, (1, 'partStats', 13, (11, 'UTF8', 15, (12, [ColumnStatisticsObj, None], False), False)), (2, 'isStatsCompliant', 2, None))
PrimaryKeysRequest.thrift_spec = f(None, (1, 'db_name', 11, 'UTF8'), (2, 'tbl_name', 11, 'UTF8'), (3, 'catName', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
PrimaryKeysResponse.thrift_spec = f(None, (1, 'primaryKeys', 15, (12, [SQLPrimaryKey, None], False)))
PropertyGetRequest.thrift_spec = f(None, (1, 'nameSpace', 11, 'UTF8'), (2, 'mapPrefix', 11, 'UTF8'), (3, 'mapPredicate', 11, 'UTF8'), (4, 'mapSelection', 15, (11, 'UTF8', False)))
PropertyGetResponse.thrift_spec = f(None, (1, 'properties', 13, (11, 'UTF8', 13, (11, 'UTF8', 11, 'UTF8', False), False)))
PropertySetRequest.thrift_spec = f(None, (1, 'nameSpace', 11, 'UTF8'), (2, 'propertyMap', 13, (11, 'UTF8', 11, 'UTF8', False)))
PutFileMetadataRequest.thrift_spec = f(None, (1, 'fileIds', 15, (10, None, False)), (2, 'metadata', 15, (11, 'BINARY', False)), (3, 'type', 8, None))
RenamePartitionRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'tableName', 11, 'UTF8'), (4, 'partVals', 15, (11, 'UTF8', False)), (5, 'newPart', 12, [Partition, None]), (6, 'validWriteIdList', 11, 'UTF8'), (7, 'txnId', 10, None), (8, 'clonePart', 2, None))
ReplTblWriteIdStateRequest.thrift_spec = f(None, (1, 'validWriteIdlist', 11, 'UTF8'), (2, 'user', 11, 'UTF8'), (3, 'hostName', 11, 'UTF8'), (4, 'dbName', 11, 'UTF8'), (5, 'tableName', 11, 'UTF8'), (6, 'partNames', 15, (11, 'UTF8', False)))
ReplayedTxnsForPolicyResult.thrift_spec = f(None, (1, 'replTxnMapEntry', 13, (11, 'UTF8', 11, 'UTF8', False)))
ReplicationMetrics.thrift_spec = f(None, (1, 'scheduledExecutionId', 10, None), (2, 'policy', 11, 'UTF8'), (3, 'dumpExecutionId', 10, None), (4, 'metadata', 11, 'UTF8'), (5, 'progress', 11, 'UTF8'), (6, 'messageFormat', 11, 'UTF8'))
ReplicationMetricList.thrift_spec = f(None, (1, 'replicationMetricList', 15, (12, [ReplicationMetrics, None], False)))
Role.thrift_spec = f(None, (1, 'roleName', 11, 'UTF8'), (2, 'createTime', 8, None), (3, 'ownerName', 11, 'UTF8'))
RuntimeStat.thrift_spec = f(None, (1, 'createTime', 8, None), (2, 'weight', 8, None), (3, 'payload', 11, 'BINARY'))
ScheduledQueryKey.thrift_spec = f(None, (1, 'scheduleName', 11, 'UTF8'), (2, 'clusterNamespace', 11, 'UTF8'))
ScheduledQuery.thrift_spec = f(None, (1, 'scheduleKey', 12, [ScheduledQueryKey, None]), (2, 'enabled', 2, None), None, (4, 'schedule', 11, 'UTF8'), (5, 'user', 11, 'UTF8'), (6, 'query', 11, 'UTF8'), (7, 'nextExecution', 8, None))
ScheduledQueryMaintenanceRequest.thrift_spec = f(None, (1, 'type', 8, None), (2, 'scheduledQuery', 12, [ScheduledQuery, None]))
ScheduledQueryPollRequest.thrift_spec = f(None, (1, 'clusterNamespace', 11, 'UTF8'))
ScheduledQueryPollResponse.thrift_spec = f(None, (1, 'scheduleKey', 12, [ScheduledQueryKey, None]), (2, 'executionId', 10, None), (3, 'query', 11, 'UTF8'), (4, 'user', 11, 'UTF8'))
ScheduledQueryProgressInfo.thrift_spec = f(None, (1, 'scheduledExecutionId', 10, None), (2, 'state', 8, None), (3, 'executorQueryId', 11, 'UTF8'), (4, 'errorMessage', 11, 'UTF8'))
Schema.thrift_spec = f(None, (1, 'fieldSchemas', 15, (12, [FieldSchema, None], False)), (2, 'properties', 13, (11, 'UTF8', 11, 'UTF8', False)))
SchemaVersion.thrift_spec = f(None, (1, 'schema', 12, [ISchemaName, None]), (2, 'version', 8, None), (3, 'createdAt', 10, None), (4, 'cols', 15, (12, [FieldSchema, None], False)), (5, 'state', 8, None), (6, 'description', 11, 'UTF8'), (7, 'schemaText', 11, 'UTF8'), (8, 'fingerprint', 11, 'UTF8'), (9, 'name', 11, 'UTF8'), (10, 'serDe', 12, [SerDeInfo, None]))
SeedTableWriteIdsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'), (3, 'seedWriteId', 10, None))
SeedTxnIdRequest.thrift_spec = f(None, (1, 'seedTxnId', 10, None))
SetPartitionsStatsRequest.thrift_spec = f(None, (1, 'colStats', 15, (12, [ColumnStatistics, None], False)), (2, 'needMerge', 2, None), (3, 'writeId', 10, None), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'engine', 11, 'UTF8'))
SetPartitionsStatsResponse.thrift_spec = f(None, (1, 'result', 2, None))
SetSchemaVersionStateRequest.thrift_spec = f(None, (1, 'schemaVersion', 12, [SchemaVersionDescriptor, None]), (2, 'state', 8, None))
ShowCompactRequest.thrift_spec = f(None, (1, 'id', 10, None), (2, 'poolName', 11, 'UTF8'), (3, 'dbName', 11, 'UTF8'), (4, 'tbName', 11, 'UTF8'), (5, 'partName', 11, 'UTF8'), (6, 'type', 8, None), (7, 'state', 11, 'UTF8'), (8, 'limit', 10, None), (9, 'order', 11, 'UTF8'))
ShowCompactResponseElement.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tablename', 11, 'UTF8'), (3, 'partitionname', 11, 'UTF8'), (4, 'type', 8, None), (5, 'state', 11, 'UTF8'), (6, 'workerid', 11, 'UTF8'), (7, 'start', 10, None), (8, 'runAs', 11, 'UTF8'), (9, 'hightestTxnId', 10, None), (10, 'metaInfo', 11, 'UTF8'), (11, 'endTime', 10, None), (12, 'hadoopJobId', 11, 'UTF8'), (13, 'id', 10, None), (14, 'errorMessage', 11, 'UTF8'), (15, 'enqueueTime', 10, None), (16, 'workerVersion', 11, 'UTF8'), (17, 'initiatorId', 11, 'UTF8'), (18, 'initiatorVersion', 11, 'UTF8'), (19, 'cleanerStart', 10, None), (20, 'poolName', 11, 'UTF8'), (21, 'nextTxnId', 10, None), (22, 'txnId', 10, None), (23, 'commitTime', 10, None), (24, 'hightestWriteId', 10, None))
ShowCompactResponse.thrift_spec = f(None, (1, 'compacts', 15, (12, [ShowCompactResponseElement, None], False)))
ShowLocksRequest.thrift_spec = f(None, (1, 'dbname', 11, 'UTF8'), (2, 'tablename', 11, 'UTF8'), (3, 'partname', 11, 'UTF8'), (4, 'isExtended', 2, None), (5, 'txnid', 10, None))
ShowLocksResponseElement.thrift_spec = f(None, (1, 'lockid', 10, None), (2, 'dbname', 11, 'UTF8'), (3, 'tablename', 11, 'UTF8'), (4, 'partname', 11, 'UTF8'), (5, 'state', 8, None), (6, 'type', 8, None), (7, 'txnid', 10, None), (8, 'lastheartbeat', 10, None), (9, 'acquiredat', 10, None), (10, 'user', 11, 'UTF8'), (11, 'hostname', 11, 'UTF8'), (12, 'heartbeatCount', 8, None), (13, 'agentInfo', 11, 'UTF8'), (14, 'blockedByExtId', 10, None), (15, 'blockedByIntId', 10, None), (16, 'lockIdInternal', 10, None))
ShowLocksResponse.thrift_spec = f(None, (1, 'locks', 15, (12, [ShowLocksResponseElement, None], False)))
StoredProcedure.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'catName', 11, 'UTF8'), (4, 'ownerName', 11, 'UTF8'), (5, 'source', 11, 'UTF8'))
StoredProcedureRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'procName', 11, 'UTF8'))
TableMeta.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'), (3, 'tableType', 11, 'UTF8'), (4, 'comments', 11, 'UTF8'), (5, 'catName', 11, 'UTF8'), (6, 'ownerName', 11, 'UTF8'), (7, 'ownerType', 8, None))
TableStatsRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tblName', 11, 'UTF8'), (3, 'colNames', 15, (11, 'UTF8', False)), (4, 'catName', 11, 'UTF8'), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'engine', 11, 'UTF8'), (7, 'id', 10, None))
TableStatsResult.thrift_spec = f(None, (1, 'tableStats', 15, (12, [ColumnStatisticsObj, None], False)), (2, 'isStatsCompliant', 2, None))
TruncateTableRequest.thrift_spec = f(None, (1, 'dbName', 11, 'UTF8'), (2, 'tableName', 11, 'UTF8'), (3, 'partNames', 15, (11, 'UTF8', False)), (4, 'writeId', 10, None), (5, 'validWriteIdList', 11, 'UTF8'), (6, 'environmentContext', 12, [EnvironmentContext, None]))
Type.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'type1', 11, 'UTF8'), (3, 'type2', 11, 'UTF8'), (4, 'fields', 15, (12, [FieldSchema, None], False)))
UniqueConstraintsRequest.thrift_spec = f(None, (1, 'catName', 11, 'UTF8'), (2, 'db_name', 11, 'UTF8'), (3, 'tbl_name', 11, 'UTF8'), (4, 'validWriteIdList', 11, 'UTF8'), (5, 'tableId', 10, None))
UniqueConstraintsResponse.thrift_spec = f(None, (1, 'uniqueConstraints', 15, (12, [SQLUniqueConstraint, None], False)))
UnlockRequest.thrift_spec = f(None, (1, 'lockid', 10, None))
UpdateTransactionalStatsRequest.thrift_spec = f(None, (1, 'tableId', 10, None), (2, 'insertCount', 10, None), (3, 'updatedCount', 10, None), (4, 'deletedCount', 10, None))
Version.thrift_spec = f(None, (1, 'version', 11, 'UTF8'), (2, 'comments', 11, 'UTF8'))
WMNullablePool.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'poolPath', 11, 'UTF8'), (3, 'allocFraction', 4, None), (4, 'queryParallelism', 8, None), (5, 'schedulingPolicy', 11, 'UTF8'), (6, 'isSetSchedulingPolicy', 2, None), (7, 'ns', 11, 'UTF8'))
WMAlterPoolRequest.thrift_spec = f(None, (1, 'pool', 12, [WMNullablePool, None]), (2, 'poolPath', 11, 'UTF8'))
WMNullableResourcePlan.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'status', 8, None), None, (4, 'queryParallelism', 8, None), (5, 'isSetQueryParallelism', 2, None), (6, 'defaultPoolPath', 11, 'UTF8'), (7, 'isSetDefaultPoolPath', 2, None), (8, 'ns', 11, 'UTF8'))
WMAlterResourcePlanRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'resourcePlan', 12, [WMNullableResourcePlan, None]), (3, 'isEnableAndActivate', 2, None), (4, 'isForceDeactivate', 2, None), (5, 'isReplace', 2, None), (6, 'ns', 11, 'UTF8'))
WMMapping.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'entityType', 11, 'UTF8'), (3, 'entityName', 11, 'UTF8'), (4, 'poolPath', 11, 'UTF8'), (5, 'ordering', 8, None), (6, 'ns', 11, 'UTF8'))
WMPool.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'poolPath', 11, 'UTF8'), (3, 'allocFraction', 4, None), (4, 'queryParallelism', 8, None), (5, 'schedulingPolicy', 11, 'UTF8'), (6, 'ns', 11, 'UTF8'))
WMPoolTrigger.thrift_spec = f(None, (1, 'pool', 11, 'UTF8'), (2, 'trigger', 11, 'UTF8'), (3, 'ns', 11, 'UTF8'))
WMResourcePlan.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'status', 8, None), (3, 'queryParallelism', 8, None), (4, 'defaultPoolPath', 11, 'UTF8'), (5, 'ns', 11, 'UTF8'))
WMTrigger.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'triggerName', 11, 'UTF8'), (3, 'triggerExpression', 11, 'UTF8'), (4, 'actionExpression', 11, 'UTF8'), (5, 'isInUnmanaged', 2, None), (6, 'ns', 11, 'UTF8'))
WMFullResourcePlan.thrift_spec = f(None, (1, 'plan', 12, [WMResourcePlan, None]), (2, 'pools', 15, (12, [WMPool, None], False)), (3, 'mappings', 15, (12, [WMMapping, None], False)), (4, 'triggers', 15, (12, [WMTrigger, None], False)), (5, 'poolTriggers', 15, (12, [WMPoolTrigger, None], False)))
WMAlterResourcePlanResponse.thrift_spec = f(None, (1, 'fullResourcePlan', 12, [WMFullResourcePlan, None]))
WMAlterTriggerRequest.thrift_spec = f(None, (1, 'trigger', 12, [WMTrigger, None]))
WMCreateOrDropTriggerToPoolMappingRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'triggerName', 11, 'UTF8'), (3, 'poolPath', 11, 'UTF8'), (4, 'drop', 2, None), (5, 'ns', 11, 'UTF8'))
WMCreateOrUpdateMappingRequest.thrift_spec = f(None, (1, 'mapping', 12, [WMMapping, None]), (2, 'update', 2, None))
WMCreatePoolRequest.thrift_spec = f(None, (1, 'pool', 12, [WMPool, None]))
WMCreateResourcePlanRequest.thrift_spec = f(None, (1, 'resourcePlan', 12, [WMResourcePlan, None]), (2, 'copyFrom', 11, 'UTF8'))
WMCreateTriggerRequest.thrift_spec = f(None, (1, 'trigger', 12, [WMTrigger, None]))
WMDropMappingRequest.thrift_spec = f(None, (1, 'mapping', 12, [WMMapping, None]))
WMDropPoolRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'poolPath', 11, 'UTF8'), (3, 'ns', 11, 'UTF8'))
WMDropResourcePlanRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'ns', 11, 'UTF8'))
WMDropTriggerRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'triggerName', 11, 'UTF8'), (3, 'ns', 11, 'UTF8'))
WMGetActiveResourcePlanRequest.thrift_spec = f(None, (1, 'ns', 11, 'UTF8'))
WMGetActiveResourcePlanResponse.thrift_spec = f(None, (1, 'resourcePlan', 12, [WMFullResourcePlan, None]))
WMGetAllResourcePlanRequest.thrift_spec = f(None, (1, 'ns', 11, 'UTF8'))
WMGetAllResourcePlanResponse.thrift_spec = f(None, (1, 'resourcePlans', 15, (12, [WMResourcePlan, None], False)))
WMGetResourcePlanRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'ns', 11, 'UTF8'))
WMGetResourcePlanResponse.thrift_spec = f(None, (1, 'resourcePlan', 12, [WMFullResourcePlan, None]))
WMGetTriggersForResourePlanRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'ns', 11, 'UTF8'))
WMGetTriggersForResourePlanResponse.thrift_spec = f(None, (1, 'triggers', 15, (12, [WMTrigger, None], False)))
WMValidateResourcePlanRequest.thrift_spec = f(None, (1, 'resourcePlanName', 11, 'UTF8'), (2, 'ns', 11, 'UTF8'))
WMValidateResourcePlanResponse.thrift_spec = f(None, (1, 'errors', 15, (11, 'UTF8', False)), (2, 'warnings', 15, (11, 'UTF8', False)))
WriteNotificationLogRequest.thrift_spec = f(None, (1, 'txnId', 10, None), (2, 'writeId', 10, None), (3, 'db', 11, 'UTF8'), (4, 'table', 11, 'UTF8'), (5, 'fileInfo', 12, [InsertEventRequestData, None]), (6, 'partitionVals', 15, (11, 'UTF8', False)))
WriteNotificationLogBatchRequest.thrift_spec = f(None, (1, 'catalog', 11, 'UTF8'), (2, 'db', 11, 'UTF8'), (3, 'table', 11, 'UTF8'), (4, 'requestList', 15, (12, [WriteNotificationLogRequest, None], False)))
Index.thrift_spec = f(None, (1, 'indexName', 11, 'UTF8'), (2, 'indexHandlerClass', 11, 'UTF8'), (3, 'dbName', 11, 'UTF8'), (4, 'origTableName', 11, 'UTF8'), (5, 'createTime', 8, None), (6, 'lastAccessTime', 8, None), (7, 'indexTableName', 11, 'UTF8'), (8, 'sd', 12, [StorageDescriptor, None]), (9, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)), (10, 'deferredRebuild', 2, None))
AlreadyExistsException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
CompactionAbortedException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
ConfigValSecurityException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
InvalidInputException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
InvalidObjectException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
InvalidOperationException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
InvalidPartitionException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
MetaException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
NoSuchCompactionException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
NoSuchLockException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
NoSuchObjectException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
NoSuchTxnException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
TxnAbortedException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
TxnOpenException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
UnknownDBException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
UnknownPartitionException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
UnknownTableException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
IndexAlreadyExistsException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))

for _cls in (
    AbortCompactionRequest,
    AbortCompactionResponseElement,
    AbortCompactResponse,
    AbortTxnRequest,
    AbortTxnsRequest,
    SQLCheckConstraint,
    AddCheckConstraintRequest,
    SQLDefaultConstraint,
    AddDefaultConstraintRequest,
    AddDynamicPartitions,
    SQLForeignKey,
    AddForeignKeyRequest,
    SQLNotNullConstraint,
    AddNotNullConstraintRequest,
    AddPackageRequest,
    ColumnStatisticsDesc,
    BinaryColumnStatsData,
    BooleanColumnStatsData,
    Date,
    DateColumnStatsData,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    LongColumnStatsData,
    StringColumnStatsData,
    Timestamp,
    TimestampColumnStatsData,
    ColumnStatisticsData,
    ColumnStatisticsObj,
    ColumnStatistics,
    FileMetadata,
    PrivilegeGrantInfo,
    PrincipalPrivilegeSet,
    FieldSchema,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Partition,
    AddPartitionsRequest,
    AddPartitionsResult,
    SQLPrimaryKey,
    AddPrimaryKeyRequest,
    SQLUniqueConstraint,
    AddUniqueConstraintRequest,
    AggrStats,
    AllTableConstraintsRequest,
    SQLAllTableConstraints,
    AllTableConstraintsResponse,
    TxnToWriteId,
    AllocateTableWriteIdsRequest,
    AllocateTableWriteIdsResponse,
    Catalog,
    AlterCatalogRequest,
    ISchema,
    ISchemaName,
    AlterDataConnectorRequest,
    AlterISchemaRequest,
    EnvironmentContext,
    AlterPartitionsRequest,
    SourceTable,
    CreationMetadata,
    ObjectDictionary,
    Table,
    AlterTableRequest,
    AppendPartitionsRequest,
    BasicTxnInfo,
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    CheckConstraintsRequest,
    CheckConstraintsResponse,
    CheckLockRequest,
    ClearFileMetadataRequest,
    ClientCapabilities,
    CmRecycleRequest,
    CommitTxnKeyValue,
    ReplLastIdInfo,
    WriteEventInfo,
    CommitTxnRequest,
    CompactionInfoStruct,
    CompactionMetricsDataRequest,
    CompactionMetricsDataStruct,
    CompactionMetricsDataResponse,
    CompactionRequest,
    CompactionResponse,
    CreateCatalogRequest,
    DataConnector,
    CreateDataConnectorRequest,
    CreateDatabaseRequest,
    CreateTableRequest,
    CurrentNotificationEventId,
    Database,
    AlterDatabaseRequest,
    DefaultConstraintsRequest,
    DefaultConstraintsResponse,
    DeleteColumnStatisticsRequest,
    DropCatalogRequest,
    DropDataConnectorRequest,
    DropConstraintRequest,
    DropDatabaseRequest,
    DropPackageRequest,
    DropPartitionRequest,
    DropPartitionsExpr,
    RequestPartsSpec,
    DropPartitionsRequest,
    DropPartitionsResult,
    DropTableRequest,
    ExtendedTableInfo,
    FindNextCompactRequest,
    SchemaVersionDescriptor,
    FindSchemasByColsResp,
    FindSchemasByColsRqst,
    InsertEventRequestData,
    FireEventRequestData,
    FireEventRequest,
    FireEventResponse,
    ForeignKeysRequest,
    ForeignKeysResponse,
    ResourceUri,
    Function,
    GetAllFunctionsResponse,
    GetAllWriteEventInfoRequest,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
    GetDataConnectorRequest,
    GetDatabaseObjectsRequest,
    GetDatabaseObjectsResponse,
    GetDatabaseRequest,
    GetFieldsRequest,
    GetFieldsResponse,
    GetFileMetadataByExprRequest,
    MetadataPpdResult,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    GetFunctionsRequest,
    GetFunctionsResponse,
    GetLatestCommittedCompactionInfoRequest,
    GetLatestCommittedCompactionInfoResponse,
    TxnInfo,
    GetOpenTxnsInfoResponse,
    GetOpenTxnsRequest,
    GetOpenTxnsResponse,
    GetPackageRequest,
    GetPartitionNamesPsRequest,
    GetPartitionNamesPsResponse,
    GetPartitionRequest,
    GetPartitionResponse,
    GetPartitionsByFilterRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsByNamesResult,
    GetPartitionsFilterSpec,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsPsWithAuthResponse,
    GetProjectionsSpec,
    GetPartitionsRequest,
    PartitionListComposingSpec,
    PartitionWithoutSD,
    PartitionSpecWithSharedSD,
    PartitionSpec,
    GetPartitionsResponse,
    GetPrincipalsInRoleRequest,
    RolePrincipalGrant,
    GetPrincipalsInRoleResponse,
    GetReplicationMetricsRequest,
    GetRoleGrantsForPrincipalRequest,
    GetRoleGrantsForPrincipalResponse,
    GetRuntimeStatsRequest,
    GetSchemaRequest,
    GetSchemaResponse,
    GetSerdeRequest,
    GetTableRequest,
    GetTableResult,
    GetTablesExtRequest,
    GetTablesRequest,
    GetTablesResult,
    GetValidWriteIdsRequest,
    TableValidWriteIds,
    GetValidWriteIdsResponse,
    HiveObjectRef,
    HiveObjectPrivilege,
    PrivilegeBag,
    GrantRevokePrivilegeRequest,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleRequest,
    GrantRevokeRoleResponse,
    HeartbeatRequest,
    HeartbeatTxnRangeRequest,
    HeartbeatTxnRangeResponse,
    ListPackageRequest,
    ListStoredProcedureRequest,
    LockComponent,
    LockRequest,
    LockResponse,
    MapSchemaVersionToSerdeRequest,
    Materialization,
    MaxAllocatedTableWriteIdRequest,
    MaxAllocatedTableWriteIdResponse,
    NotNullConstraintsRequest,
    NotNullConstraintsResponse,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventResponse,
    NotificationEventsCountRequest,
    NotificationEventsCountResponse,
    OpenTxnRequest,
    OpenTxnsResponse,
    OptionalCompactionInfoStruct,
    Package,
    PartitionValuesRequest,
    PartitionValuesRow,
    PartitionValuesResponse,
    PartitionsByExprRequest,
    PartitionsByExprResult,
    PartitionsRequest,
    PartitionsResponse,
    PartitionsSpecByExprResult,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    PrimaryKeysRequest,
    PrimaryKeysResponse,
    PropertyGetRequest,
    PropertyGetResponse,
    PropertySetRequest,
    PutFileMetadataRequest,
    RenamePartitionRequest,
    ReplTblWriteIdStateRequest,
    ReplayedTxnsForPolicyResult,
    ReplicationMetrics,
    ReplicationMetricList,
    Role,
    RuntimeStat,
    ScheduledQueryKey,
    ScheduledQuery,
    ScheduledQueryMaintenanceRequest,
    ScheduledQueryPollRequest,
    ScheduledQueryPollResponse,
    ScheduledQueryProgressInfo,
    Schema,
    SchemaVersion,
    SeedTableWriteIdsRequest,
    SeedTxnIdRequest,
    SetPartitionsStatsRequest,
    SetPartitionsStatsResponse,
    SetSchemaVersionStateRequest,
    ShowCompactRequest,
    ShowCompactResponseElement,
    ShowCompactResponse,
    ShowLocksRequest,
    ShowLocksResponseElement,
    ShowLocksResponse,
    StoredProcedure,
    StoredProcedureRequest,
    TableMeta,
    TableStatsRequest,
    TableStatsResult,
    TruncateTableRequest,
    Type,
    UniqueConstraintsRequest,
    UniqueConstraintsResponse,
    UnlockRequest,
    UpdateTransactionalStatsRequest,
    Version,
    WMNullablePool,
    WMAlterPoolRequest,
    WMNullableResourcePlan,
    WMAlterResourcePlanRequest,
    WMMapping,
    WMPool,
    WMPoolTrigger,
    WMResourcePlan,
    WMTrigger,
    WMFullResourcePlan,
    WMAlterResourcePlanResponse,
    WMAlterTriggerRequest,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMDropMappingRequest,
    WMDropPoolRequest,
    WMDropResourcePlanRequest,
    WMDropTriggerRequest,
    WMGetActiveResourcePlanRequest,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanRequest,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanRequest,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanRequest,
    WMGetTriggersForResourePlanResponse,
    WMValidateResourcePlanRequest,
    WMValidateResourcePlanResponse,
    WriteNotificationLogRequest,
    WriteNotificationLogBatchRequest,
    Index,
    AlreadyExistsException,
    CompactionAbortedException,
    ConfigValSecurityException,
    InvalidInputException,
    InvalidObjectException,
    InvalidOperationException,
    InvalidPartitionException,
    MetaException,
    NoSuchCompactionException,
    NoSuchLockException,
    NoSuchObjectException,
    NoSuchTxnException,
    TxnAbortedException,
    TxnOpenException,
    UnknownDBException,
    UnknownPartitionException,
    UnknownTableException,
    IndexAlreadyExistsException,
):
    link(_cls.thrift_spec)

"""What two servers may answer differently, and is made equal before answers are compared.

Field by field, with the reason; everything else has to be equal.
"""

import re
import time
from typing import Any

from lake.protocol.struct import Struct
from tests.support.expect import common

DAY = 86_400

# Moments: what is close to now is "now", on each server by its own clock.
MOMENTS = {
    *("createTime", "lastAnalyzed", "grantTime", "lastheartbeat", "acquiredat", "start", "endTime", "startedTime"),
    *("enqueueTime", "lastAccessTime", "lastHeartbeatTime"),
}
MOMENT_PARAMETERS = {"transient_lastDdlTime", "last_modified_time"}

# Fields that Hive 2.3 doesn't have; the first of Database, Table, Partition and SerDeInfo go with `common`.
UNKNOWN_TO_HIVE_2 = {
    "GetOpenTxnsResponse": {"abortedBits", "open_txns"},  # a set in 2.3, which a client of 4 skips
    "Function": {"catName"},
    "HiveObjectRef": {"catName"},
    "HiveObjectPrivilege": {"authorizer"},
    "ColumnStatisticsDesc": {"catName"},
    "ColumnStatistics": {"isStatsCompliant", "engine"},
    "TableMeta": {"catName", "ownerName", "ownerType"},
    "SQLPrimaryKey": {"catName"},
    "SQLForeignKey": {"catName"},
    "PartitionSpec": {"catName", "writeId", "isStatsCompliant"},
    "LockResponse": {"errorMessage"},
    "AggrStats": {"isStatsCompliant"},
    "TableStatsResult": {"isStatsCompliant"},
    "PartitionsStatsResult": {"isStatsCompliant"},
    "ShowCompactResponse": {"id"},
    "ShowCompactResponseElement": {
        *("id", "errorMessage", "enqueueTime", "workerVersion", "initiatorId", "initiatorVersion", "cleanerStart"),
        *("poolName", "nextTxnId", "txnId", "commitTime", "hightestWriteId"),
    },
    "CompactionResponse": {"errormessage", "id"},  # each server counts on its own
    "CreationMetadata": {"catName"},
}

# Bit vectors may be made up for by a server that is not given them; Hive 2.3 doesn't keep them everywhere.
BIT_VECTORS = "bitVectors"

# Lists for which Hive promises no order.
UNORDERED = {
    *("get_all_databases", "get_databases", "get_all_tables", "get_tables", "get_tables_by_type", "get_table_meta"),
    *("get_table_objects_by_name", "get_table_objects_by_name_req", "get_functions", "get_all_functions"),
    *("get_role_names", "list_roles", "list_privileges", "get_principals_in_role", "get_role_grants_for_principal"),
    *("show_locks", "show_compact", "get_open_txns", "get_open_txns_info", "get_primary_keys", "get_foreign_keys"),
    *("get_table_column_statistics", "get_table_statistics_req", "get_partitions_statistics_req"),
    *("get_aggr_stats_for", "get_partitions_by_names", "drop_partitions_req", "get_all_token_identifiers"),
    *("exchange_partitions", "get_privilege_set", "get_partition_with_auth", "get_partitions_ps_with_auth"),
    *("get_partitions_with_auth", "get_master_keys"),
}

# Methods that answer for the whole server: only what a script itself made is compared.
GLOBAL = {
    *("get_all_databases", "get_databases", "get_all_functions", "get_role_names", "show_locks", "show_compact"),
    *("get_table_meta", "get_all_token_identifiers", "list_privileges"),
}


def plain(value: Any) -> Any:
    """An answer as dictionaries, lists and scalars, without what Hive 2.3 doesn't know and unset fields."""
    value = common(value)
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        kind = type(value).__name__
        left_out = UNKNOWN_TO_HIVE_2.get(kind, ())
        fields: dict[str, Any] = {}
        for name in value.field_names():
            field = getattr(value, name)
            if field is None or name in left_out or name == BIT_VECTORS:
                continue
            fields[name] = _moment(field) if name in MOMENTS else _plain(field)
        return fields
    if isinstance(value, dict):
        return {key: _moment(item) if key in MOMENT_PARAMETERS else _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, set):
        return sorted(map(_plain, value), key=repr)
    return value


def _moment(value: Any) -> Any:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return value
    if number > 10**12:  # milliseconds
        number //= 1000
    return "now" if abs(time.time() - number) < DAY else value


def ordered(method: str, value: Any) -> Any:
    """The answer with its lists sorted, where Hive promises no order."""
    if method not in UNORDERED:
        return value
    return _sorted(value)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=repr)
    return value


def of_this_script(method: str, value: Any, prefix: str) -> Any:
    """What of an answer for the whole server is about names with this play's prefix."""
    if method not in GLOBAL:
        return value
    if isinstance(value, list):
        return [item for item in value if prefix in repr(item).lower()]
    if isinstance(value, dict):
        return {key: of_this_script(method, item, prefix) for key, item in value.items()}
    return value


def message(text: str | None) -> str:
    """An exception's message without the name of the exception's class, which Hive puts before some.

    What tells that a partition exists ends with the partition, as each language writes it.
    """
    text = re.sub(r"(Partition already exists).*", r"\1", text or "", flags=re.DOTALL)
    return re.sub(r"^[\w.$]+(Exception|Error)(\(message:)?:? ?", "", text)

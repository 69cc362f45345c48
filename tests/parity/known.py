"""Differences on purpose: each a narrow rule, with the row of docs/compatibility.md's table that tells of it.

A rule looks at a call and both answers. What no rule explains fails.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lake.protocol.hive import (
    ColumnStatistics,
    Function,
    GrantRevokePrivilegeRequest,
    LockState,
    Partition,
    SetPartitionsStatsRequest,
    Table,
)
from tests.parity.calls import Call
from tests.parity.statistics import KIND_OF_TYPE

RETURNED = "returned"
UNDECLARED = "TApplicationException"


@dataclass(frozen=True)
class Rule:
    """A named difference; `parts` where the two servers may hold different things afterwards.

    `when`: which earlier call, and Hive's answer to it, can have led to it, where it shows in a later read.
    """

    name: str
    row: str
    explains: Callable[[Call, Any, Any], bool]
    parts: bool = False
    when: Callable[[Call, Any], bool] | None = None


ACCIDENTS = (
    *("NullPointerException", 'because "', "IndexOutOfBounds", "ClassCastException", "IllegalArgumentException"),
    *("JDO", "java.lang.RuntimeException", "NumberFormatException", "No such property", "InvalidInputException"),
)
TOO_LONG = re.compile(r"\{.\*(1[2-9]\d|[2-9]\d\d|\d{4})\}")
FILTERED = {
    *("get_partitions_by_filter", "get_part_specs_by_filter", "get_num_partitions_by_filter", "get_partition_values"),
}


def accident(hive: Any) -> str:
    """Which Java error shows in Hive's answer, if it is one that nobody wrote; empty if it isn't."""
    text = str(hive.value)
    if hive.kind == UNDECLARED and text.startswith("Internal error"):
        return "internal error"
    if hive.kind == "MetaException":
        return next((name for name in ACCIDENTS if name in text), "")
    return ""


def missing_database(call: Call, hive: Any, ours: Any) -> bool:
    if call.method not in ("drop_database", "alter_database") or ours.kind not in (
        "NoSuchObjectException",
        "MetaException",
    ):
        return False
    return accident(hive) == "NullPointerException" if call.method == "drop_database" else hive.kind == RETURNED


def index_table(call: Call, hive: Any, ours: Any) -> bool:
    """A table of type INDEX_TABLE that holds the data of no index."""
    return (
        call.method in ("drop_database", "drop_table", "drop_table_with_environment_context")
        and hive.kind == "MetaException"
        and "is an index table" in str(hive.value)
        and ours.kind == RETURNED
    )


def accident_reported(call: Call, hive: Any, ours: Any) -> bool:
    broken = hive.kind in (UNDECLARED, "TTransportException")  # Hive closes the connection after some
    return (accident(hive) != "" or broken) and ours.kind not in (RETURNED, UNDECLARED)


def too_long(call: Call, hive: Any, ours: Any) -> bool:
    """The schema that Hive makes for its database bounds texts: its INSERT fails."""
    return (
        TOO_LONG.search(repr(call)) is not None
        and hive.kind in ("MetaException", "InvalidObjectException", "InvalidOperationException", UNDECLARED)
        and ours.kind == RETURNED
    )


def key_type_of_filter(call: Call, hive: Any, ours: Any) -> bool:
    return (
        call.method in FILTERED
        and hive.kind == "MetaException"
        and "Filtering is supported only on partition keys of type" in str(hive.value)
        and ours.kind == RETURNED
    )


def empty_location(call: Call, hive: Any, ours: Any) -> bool:
    """Hive keeps it, and from then on fails whatever needs the table's or partition's place."""
    return (
        call.method.startswith(("alter_table", "alter_partition"))
        and hive.kind == RETURNED
        and ours.kind == "MetaException"
        and "needs a location" in str(ours.value)
    )


def name_as_sent(call: Call, hive: Any, ours: Any) -> bool:
    """The names in Hive's list of partitions are those of the call."""
    if call.method != "get_part_specs_by_filter" or (hive.kind, ours.kind) != (RETURNED, RETURNED):
        return False
    names = ("dbName", "tableName")
    stored = [{**spec, **{name: spec[name].lower() for name in names}} for spec in hive.value]
    return stored == [{**spec, **{name: spec[name].lower() for name in names}} for spec in ours.value]


def column_in_upper_case(call: Call, hive: Any, ours: Any) -> bool:
    """Hive keeps the name of a privilege's column as it is sent, and finds it by that alone."""
    return (
        call.method == "list_privileges" and "'ID'" in repr(hive) and repr(hive).replace("'ID'", "'id'") == repr(ours)
    )


def object_in_upper_case(call: Call, hive: Any, ours: Any) -> bool:
    """Hive compares the names of an object, where it lists everybody's privileges on it, as they are sent."""
    if call.method != "list_privileges" or (hive.kind, ours.kind) != (RETURNED, RETURNED):
        return False
    who, _, ref = call.arguments
    names = (ref.dbName or "").removeprefix("N_"), ref.objectName or "", ref.columnName or ""
    return who is None and any(name != name.lower() for name in names) and hive.value == []


def nameless_object(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "list_privileges" and accident(hive) == "internal error" and ours.value == []


def role_of_a_group(call: Call, hive: Any, ours: Any) -> bool:
    """Hive's database knows a holder by the name alone, and can't take a grant option from who holds no role."""
    return (
        call.method in ("grant_role", "revoke_role", "grant_revoke_role")
        and accident(hive) == "internal error"
        and ours.kind == RETURNED
    )


NOT_LIMITED_BY_0 = {
    *("get_partition_names", "get_partitions_with_auth", "get_partitions_ps", "get_partitions_ps_with_auth"),
}


def at_most_none(call: Call, hive: Any, ours: Any) -> bool:
    """Hive 2.3 takes a limit of 0 for no limit in some of its calls."""
    return (
        call.method in NOT_LIMITED_BY_0
        and 0 in call.arguments
        and (hive.kind, ours.kind) == (RETURNED, RETURNED)
        and ours.value == []
    )


def no_statistics(call: Call, hive: Any, ours: Any) -> bool:
    return (
        call.method in ("update_table_column_statistics", "update_partition_column_statistics", "set_aggr_stats_for")
        and "statsObj=[]" in repr(call)
        and accident(hive) != ""
        and ours.kind == RETURNED
    )


def some_without_statistics(call: Call, hive: Any, ours: Any) -> bool:
    """Hive keeps what stands before the first that has none, all others are kept here."""
    return (
        call.method == "set_aggr_stats_for" and len(call.arguments[0].colStats) > 1 and no_statistics(call, hive, ours)
    )


UPDATES_OF_STATISTICS = {
    *("update_table_column_statistics", "update_partition_column_statistics", "set_aggr_stats_for"),
}
OF_STATISTICS = {
    *("get_table_column_statistics", "get_partition_column_statistics", "get_aggr_stats_for"),
    *("get_table_statistics_req", "get_partitions_statistics_req"),
    *("delete_table_column_statistics", "delete_partition_column_statistics"),
}


def _statistics(call: Call) -> list[ColumnStatistics]:
    """What an update of statistics brings."""
    [argument] = call.arguments
    return argument.colStats if isinstance(argument, SetPartitionsStatsRequest) else [argument]


def failed_among_several(call: Call, hive: Any) -> bool:
    return (
        call.method in UPDATES_OF_STATISTICS
        and hive.kind != RETURNED
        and sum(len(one.statsObj) for one in _statistics(call)) > 1
    )


def beyond_the_keys(call: Call, hive: Any) -> bool:
    """Statistics of a partition by a name with more keys than the table has, which is `k=1/x=1` here."""
    return call.method in UPDATES_OF_STATISTICS and any("/" in (s.statsDesc.partName or "") for s in _statistics(call))


def _unmarked(answer: Any) -> Any:
    """The answer without what says whose statistics are accurate."""
    if isinstance(answer, dict):
        return {key: _unmarked(value) for key, value in answer.items() if key != "COLUMN_STATS_ACCURATE"}
    return list(map(_unmarked, answer)) if isinstance(answer, list) else answer


def marked_otherwise(call: Call, hive: Any, ours: Any) -> bool:
    """Tables and partitions that are the same but for the statistics that are marked as accurate."""
    return (hive.kind, ours.kind) == (RETURNED, RETURNED) and _unmarked(hive.value) == _unmarked(ours.value)


def other_statistics(call: Call, hive: Any, ours: Any) -> bool:
    """Statistics that one server has and the other doesn't, or how far they are marked as accurate."""
    return call.method in OF_STATISTICS or marked_otherwise(call, hive, ours)


def deleted(call: Call, hive: Any) -> bool:
    return call.method in OF_STATISTICS and call.method.startswith("delete_") and hive.kind == RETURNED


def keys_in_upper_case(call: Call, hive: Any, ours: Any) -> bool:
    """Hive keeps the names of keys in lower case and compares them with what the client sends."""
    new = next((a for a in call.arguments if isinstance(a, Table)), None)
    return (
        call.method.startswith("alter_table")
        and new is not None
        and any(key.name != (key.name or "").lower() for key in new.partitionKeys or ())
        and "partition keys can not be changed" in str(hive.value)
        and ours.kind == RETURNED
    )


def several_tables(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "set_aggr_stats_for" and "of one table, but find" in str(ours.value)


def misfit(call: Call, hive: Any) -> bool:
    """Statistics of another kind than Hive reads for the type of their column."""
    return call.method in UPDATES_OF_STATISTICS and any(
        getattr(one.statsData, KIND_OF_TYPE[one.colType]) is None for s in _statistics(call) for one in s.statsObj
    )


def read_by_type(call: Call, hive: Any, ours: Any) -> bool:
    """Hive 2.3 reads the kind of the column's type, and fails where that needs a number that isn't there."""
    if call.method not in OF_STATISTICS or ours.kind != RETURNED:
        return False
    failed = "ColumnStatistics.get" in str(hive.value) and accident(hive) != ""
    return failed or (hive.kind == RETURNED and _misfits_aside(hive.value, ours.value))


def _misfits_aside(hive: Any, ours: Any) -> bool:
    """Whether two answers are equal but for statistics of another kind than their column's type."""
    if isinstance(hive, dict) and isinstance(ours, dict):
        kind = KIND_OF_TYPE.get(ours.get("colType", ""))
        if kind is not None and hive.get("colName") == ours.get("colName"):
            return hive == ours or kind not in ours["statsData"]
        return hive.keys() == ours.keys() and all(_misfits_aside(hive[key], ours[key]) for key in ours)
    if isinstance(hive, list) and isinstance(ours, list):
        return len(hive) == len(ours) and all(map(_misfits_aside, hive, ours))
    return bool(hive == ours)


CONSTRAINTS = {"add_primary_key", "add_foreign_key", "drop_constraint", "create_table_with_constraints"}


def constraint_names(call: Call, hive: Any, ours: Any) -> bool:
    """Names that are given in upper case: the generator has two of them."""
    texts = repr((call, hive, ours))
    if call.method in ("get_primary_keys", "get_foreign_keys"):
        return repr(hive).lower() == repr(ours).lower()
    return call.method in CONSTRAINTS and (
        "N_PK" in texts or "N_FK" in texts or ("N_pk" in texts and hive.kind != ours.kind)
    )


def no_location(call: Call, hive: Any, ours: Any) -> bool:
    """The new object of a rename; the old location is taken."""
    new = next((a for a in call.arguments if isinstance(a, Table | Partition)), None)
    return (
        new is not None
        and (call.method == "rename_partition" or call.method.startswith("alter_table"))
        and new.sd is not None
        and new.sd.location is None
        and hive.kind == "MetaException"
        and accident(hive) != ""
        and ours.kind == RETURNED
    )


def second_commit(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "commit_txn" and hive.kind == "NoSuchTxnException" and ours.kind == RETURNED


def overtaken(call: Call, hive: Any, ours: Any) -> bool:
    """Granted by Hive 2.3 although an earlier one waits."""
    return (
        call.method in ("lock", "check_lock")
        and (hive.kind, ours.kind) == (RETURNED, RETURNED)
        and (hive.value["state"], ours.value["state"]) == (LockState.ACQUIRED, LockState.WAITING)
    )


def function_incomplete(call: Call, hive: Any, ours: Any) -> bool:
    """Without owner type or resources."""
    new = call.arguments[-1] if call.arguments else None
    return (
        call.method in ("create_function", "alter_function")
        and isinstance(new, Function)
        and (new.resourceUris is None or new.ownerType is None or new.functionType is None or new.className is None)
        and accident(hive) != ""
        and ours.kind == RETURNED
    )


def function_unalterable(call: Call, hive: Any, ours: Any) -> bool:
    """Refused by both, by Hive 2.3 with one of several exceptions."""
    return call.method == "alter_function" and hive.kind != RETURNED and ours.kind == "MetaException"


def name_of_hive4(call: Call, hive: Any, ours: Any) -> bool:
    """A database's or table's name with signs in it."""
    return ours.kind == RETURNED and (
        "is not a valid object name" in str(hive.value) or "is not a valid database name" in str(hive.value)
    )


def bucket_column_gone(call: Call, hive: Any, ours: Any) -> bool:
    return call.method.startswith("alter_table") and hive.kind == RETURNED and "Bucket columns" in str(ours.value)


def described_anew(call: Call, hive: Any) -> bool:
    return call.method == "alter_database" and hive.kind == RETURNED


def description_kept(call: Call, hive: Any, ours: Any) -> bool:
    """Hive 2.3 alters no description."""
    if call.method != "get_database" or (hive.kind, ours.kind) != (RETURNED, RETURNED):
        return False
    return {**hive.value, "description": None} == {**ours.value, "description": None}


def several_faults(call: Call, hive: Any, ours: Any) -> bool:
    """Of two faults another is reported: Hive looks at a place, a filter or a name before it looks for the table."""
    # A name with signs, which Hive 4 takes, is the first fault that Hive 2.3 finds.
    of_name = ("is not a valid object name", "is not a valid database name")
    told_first = ("No FileSystem for scheme", "Error parsing partition filter", "Partition name is invalid", *of_name)
    # Null lists are found here before a new name that is taken.
    told_later = hive.kind == "InvalidOperationException" and "be they empty" in str(ours.value)
    # The second of several partitions that has the wrong number of values is found before the first that is missing,
    # and a missing location, or two columns of one name, before partition keys that Hive takes for others.
    shape_first = "partition values=" in str(hive.value) and any(
        text in str(ours.value) for text in ("Invalid partition key & values", "The partition values cannot be null")
    )
    place_first = "partition keys can not be changed" in str(hive.value) and any(
        text in str(ours.value) for text in ("needs a location", "Duplicate column name")
    )
    known = told_later or shape_first or place_first or any(text in str(hive.value) for text in told_first)
    return known and ours.kind not in (RETURNED, UNDECLARED)


def half_a_foreign_key(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "get_foreign_keys" and accident(hive) == "NullPointerException" and ours.kind == RETURNED


def no_operation(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "lock" and accident(hive) == "internal error" and ours.kind == RETURNED


def _partitions(answer: Any) -> list[dict[str, Any]]:
    """The partitions in an answer, wherever they are."""
    if isinstance(answer, dict):
        own = [answer] if "values" in answer and "sd" in answer else []
        return own + [one for item in answer.values() for one in _partitions(item)]
    if isinstance(answer, list):
        return [one for item in answer for one in _partitions(item)]
    return []


def _same_but(hive: Any, ours: Any, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bool:
    """Whether two answers are equal once `change` made their partitions equal, one by one."""
    if (hive.kind, ours.kind) != (RETURNED, RETURNED):
        return False
    one, other = copy.deepcopy(hive.value), copy.deepcopy(ours.value)
    pairs = list(zip(_partitions(one), _partitions(other), strict=False))
    for mine, theirs in pairs:
        change(mine, theirs)
    return bool(pairs) and one == other


def counted_too_early(call: Call, hive: Any, ours: Any) -> bool:
    """Hive 2.3 counts a renamed partition's files in the new place before it moves them there."""

    def change(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        for key in ("numFiles", "totalSize"):
            if mine["parameters"].get(key) == "0" and theirs["parameters"].get(key, "") not in ("", "0"):
                mine["parameters"][key] = theirs["parameters"][key]

    return _same_but(hive, ours, change)


def created_never(call: Call, hive: Any, ours: Any) -> bool:
    """Hive leaves the times of creation out, keeps places without their scheme, and counts what lies there already."""

    def change(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        if theirs["sd"] and theirs["sd"].get("location") == f"file:{mine['sd'].get('location')}":
            mine["sd"]["location"] = theirs["sd"]["location"]
        if (mine.get("createTime"), theirs.get("createTime")) == (0, "now"):
            mine["createTime"] = "now"
            mine["parameters"].setdefault("transient_lastDdlTime", theirs["parameters"].get("transient_lastDdlTime"))
            _leave_out_zeros(mine, theirs)

    return _same_but(hive, ours, change)


def counted_in_leftovers(call: Call, hive: Any, ours: Any) -> bool:
    """Hive counts files where it finds a directory, such as one that a failed call left."""
    return _same_but(hive, ours, _leave_out_zeros)


def _leave_out_zeros(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Takes the counts of an empty directory from a partition where the other has none."""
    for key in ("numFiles", "totalSize"):
        if mine["parameters"].get(key) == "0" and key not in theirs["parameters"]:
            del mine["parameters"][key]


def no_relative_path(call: Call, hive: Any) -> bool:
    return shared_descriptor(call, hive) and "relativePath=''" in repr(call)


def placed_by_default(call: Call, hive: Any, ours: Any) -> bool:
    """Partitions that Hive puts into the directory of their table."""

    def change(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        if "=" in str(theirs["sd"]["location"]):
            mine["sd"]["location"] = theirs["sd"]["location"]
            mine["createTime"], mine["parameters"] = theirs["createTime"], theirs["parameters"]

    return _same_but(hive, ours, change)


def no_sequence(call: Call, hive: Any, ours: Any) -> bool:
    """Keys without a number: Hive says 0, and doesn't take two of them."""
    if call.method in ("get_primary_keys", "get_foreign_keys"):
        return "'key_seq': 0" in repr(hive)
    unset = "key_seq=0" in repr(call) or "key_seq" not in repr(call)
    return call.method in CONSTRAINTS and unset and hive.kind != RETURNED and ours.kind == RETURNED


def aggregated_before(call: Call, hive: Any) -> bool:
    return call.method == "get_aggr_stats_for"


def from_a_cache(call: Call, hive: Any, ours: Any) -> bool:
    return call.method == "get_aggr_stats_for" and (hive.kind, ours.kind) == (RETURNED, RETURNED)


def missing_privilege_object(call: Call, hive: Any, ours: Any) -> bool:
    return (
        call.method in ("grant_privileges", "grant_revoke_privileges", "revoke_privileges")
        and hive.kind == RETURNED
        and ours.kind == "MetaException"
        and (str(ours.value).startswith("there is no ") or str(ours.value).endswith(" table not found"))
    )


def shared_descriptor(call: Call, hive: Any) -> bool:
    return call.method == "add_partitions_pspec" and "sharedSDPartitionSpec" in repr(call)


def is_rename(call: Call, hive: Any) -> bool:
    return call.method == "rename_partition" and hive.kind == RETURNED


def failed_with_directories(call: Call, hive: Any) -> bool:
    return call.method.startswith(("add_partition", "create_", "exchange_partition")) and hive.kind != RETURNED


def left_behind(call: Call, hive: Any, ours: Any) -> bool:
    """Empty directories that Hive made before a call failed."""
    if call.method != "files" or hive.value.keys() != ours.value.keys():
        return False
    more = [path for top in hive.value for path in set(hive.value[top]) ^ set(ours.value[top])]
    ahead = all(set(ours.value[top]) <= set(hive.value[top]) for top in hive.value)
    return ahead and all(path.endswith("/") for path in more)


def which_blocker(call: Call, hive: Any, ours: Any) -> bool:
    """Of several locks in the way: Hive 2.3 names the last, the first is named here."""
    if call.method != "show_locks" or (hive.kind, ours.kind) != (RETURNED, RETURNED):
        return False
    left_out = ("blockedByExtId", "blockedByIntId")
    one, other = (
        sorted(repr({k: v for k, v in lock.items() if k not in left_out}) for lock in answer.value["locks"])
        for answer in (hive, ours)
    )
    return one == other


def twice_in_a_bag(call: Call, hive: Any, ours: Any) -> bool:
    """Hive compares what is given with the privileges before the call alone."""
    if not (
        call.method in ("grant_privileges", "grant_revoke_privileges")
        and hive.kind == RETURNED
        and "is already granted on" in str(ours.value)
    ):
        return False
    [given] = call.arguments
    bag = given.privileges if isinstance(given, GrantRevokePrivilegeRequest) else given
    parts = [
        repr((each.hiveObject, each.principalName, each.principalType, each.grantInfo.grantor, privilege)).lower()
        for each in bag.privileges or ()
        if each.grantInfo is not None
        for privilege in (each.grantInfo.privilege or "").split(",")
    ]
    return len(set(parts)) < len(parts)


PRIVILEGES = {
    *("grant_privileges", "revoke_privileges", "grant_revoke_privileges"),
    *("list_privileges", "get_privilege_set"),
}


def nameless_privilege_object(call: Call, hive: Any, ours: Any) -> bool:
    return (
        call.method in PRIVILEGES
        and hive.kind == RETURNED
        and ours.kind == "MetaException"
        and "missing" in str(ours.value)
    )


def exchange_of_none(call: Call, hive: Any, ours: Any) -> bool:
    """Hive 2.3 moves a directory that is left of a partition, as if the partition were there."""
    return (
        call.method in ("exchange_partition", "exchange_partitions")
        and (hive.kind, ours.kind) == (RETURNED, "MetaException")
        and hive.value in ([], {"createTime": 0, "lastAccessTime": 0})
        and str(ours.value).startswith("No partition is found")
    )


def values_of_no_table(call: Call, hive: Any, ours: Any) -> bool:
    return (
        call.method == "get_partition_values"
        and hive.kind == RETURNED
        and not hive.value["partitionValues"]
        and ours.kind == "MetaException"
    )


RULES: list[Rule] = [
    Rule("objects without a name", "objects of privileges without a name", nameless_privilege_object, parts=True),
    Rule("twice in a bag", "`grant_privileges` of the same privilege twice", twice_in_a_bag, parts=True),
    Rule("an exchange of none", "`exchange_partition` of none", exchange_of_none, parts=True),
    Rule("values of no table", "`get_partition_values` of a missing table", values_of_no_table),
    Rule("which blocker", "`show_locks` of a lock that waits for several", which_blocker),
    Rule("from a cache", "`get_aggr_stats_for` again", from_a_cache, when=aggregated_before),
    Rule("left behind", "directories that a call that fails made", left_behind, when=failed_with_directories),
    Rule("counted too early", "`rename_partition`: `numFiles`", counted_too_early, when=is_rename),
    Rule(
        "no relative path",
        "`add_partitions_pspec` with a shared descriptor, without a relative path",
        placed_by_default,
        parts=True,
        when=no_relative_path,
    ),
    Rule(
        "counted in what was left",
        "directories that a call that fails made",
        counted_in_leftovers,
        when=failed_with_directories,
    ),
    Rule("created never", "`add_partitions_pspec` with a shared descriptor", created_never, when=shared_descriptor),
    Rule("no sequence", "keys without `key_seq`", no_sequence, parts=True),
    Rule(
        "missing objects of privileges", "`grant_privileges` on a missing object", missing_privilege_object, parts=True
    ),
    Rule("one table of a foreign key", "`get_foreign_keys` of one of the two tables", half_a_foreign_key),
    Rule("no operation", "a transaction's lock without an operation type", no_operation, parts=True),
    Rule("a rename without a location", "renaming a table or partition without", no_location, parts=True),
    Rule("a commit again", "`commit_txn` again of a transaction that wrote nothing", second_commit),
    Rule("a lock overtakes", "locks | In 2.3 a reader overtakes", overtaken, parts=True),
    Rule("incomplete functions", "`create_function` without", function_incomplete, parts=True),
    Rule("functions that can't be altered", "`alter_function` that can't be", function_unalterable),
    Rule("signs in names", "names of databases and tables", name_of_hive4, parts=True),
    Rule("bucket columns", "`alter_table` that leaves a bucket column", bucket_column_gone, parts=True),
    Rule("descriptions", "`alter_database` | In 2.3 description", description_kept, when=described_anew),
    Rule("several faults", "several faults in one call", several_faults),
    Rule("names of constraints", "names of constraints", constraint_names, parts=True),
    Rule("index tables", "index tables (2.3)", index_table, parts=True),
    Rule(
        "one of several statistics fails",
        "`set_aggr_stats_for` and similar calls, where one",
        other_statistics,
        parts=True,
        when=failed_among_several,
    ),
    Rule("keys in upper case", "`alter_table` with partition keys in upper case", keys_in_upper_case, parts=True),
    Rule("deleted statistics", "deleting column statistics", marked_otherwise, when=deleted),
    Rule("statistics of several tables", "`set_aggr_stats_for` of partitions of several", several_tables, parts=True),
    Rule("a name beyond the keys", "column statistics by a name with more", other_statistics, when=beyond_the_keys),
    Rule("another kind of statistics", "column statistics of another kind", read_by_type, when=misfit),
    Rule("some without statistics", "`set_aggr_stats_for` of several", some_without_statistics, parts=True),
    Rule("no statistics", "`update_…_column_statistics` without any", no_statistics),
    Rule("names as they were sent", "`get_part_specs_by_filter` by names in upper case", name_as_sent),
    Rule(
        "a limit of 0", "`get_partition_names`, `get_partitions_with_auth` and `get_partitions_ps…` with", at_most_none
    ),
    Rule(
        "a privilege's column in upper case",
        "privileges on a column whose name is sent in upper case",
        column_in_upper_case,
    ),
    Rule(
        "a privilege's object in upper case",
        "`list_privileges` of everybody on an object whose name is sent in upper case",
        object_in_upper_case,
    ),
    Rule("an object without a name", "objects of privileges without a name that their type needs", nameless_object),
    Rule("a role of a user and of a group", "a role given to a user and to a group", role_of_a_group, parts=True),
    Rule("an empty location", "`alter_table` with an empty location, `alter_partition`", empty_location, parts=True),
    Rule("missing database", "`drop_database` of a missing one, `alter_database` of a missing one", missing_database),
    Rule("an accident of Java's", "undeclared exceptions", accident_reported),
    Rule("too long for Hive's schema", "texts longer than Hive's schema allows", too_long, parts=True),
    Rule(
        "keys that 2.3 can't filter",
        "partition filters: keys of type `char`, `varchar`, `timestamp`",
        key_type_of_filter,
    ),
]


def rule_for(earlier: list[tuple[Call, Any]], call: Call, hive: Any, ours: Any) -> Rule | None:
    """The rule that explains a difference after earlier calls and Hive's answers to them, None where there is none."""
    for rule in RULES:
        if (rule.when is None or any(rule.when(*each) for each in earlier)) and rule.explains(call, hive, ours):
            return rule
    return None

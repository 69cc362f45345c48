"""Generated calls on databases and tables."""

from hypothesis import strategies as st

from lake.protocol.hive import (
    Database,
    EnvironmentContext,
    FieldSchema,
    GetTableRequest,
    GetTablesRequest,
    PrincipalType,
    Table,
)
from tests.parity.known import TOO_LONG
from tests.parity.values import (
    COLUMN_TYPES,
    COMMENTS,
    COUNTS,
    DATABASES,
    FLAGS,
    LOCATIONS,
    PARAMETERS,
    TABLES,
    Strategy,
    call,
    mostly,
    storage,
    struct,
)

OWNERS = mostly("alice", None, odd=("", "ü", "{o*128}"))
OWNER_TYPES = st.sampled_from([None, PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP])
TABLE_TYPES = mostly(
    "MANAGED_TABLE", "EXTERNAL_TABLE", odd=(None, "VIRTUAL_VIEW", "INDEX_TABLE", "", "nosuch", "MATERIALIZED_VIEW")
)
PATTERNS = mostly("*", "t*", odd=("", None, "T|u", "t|v|", "%", "_", ".*", "[", "N_a", "*.*", "t?", "(", "\\", "ü*"))
NEW_NAMES = mostly("t", "u", "v", odd=("T", "ü", "", None, "a b", "a-b", "{t*128}", "{t*129}", "1", "_", "t.x"))
CONTEXTS = st.sampled_from(
    [
        None,
        EnvironmentContext(properties={"CASCADE": "true"}),
        EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"}),
        EnvironmentContext(properties={"ifPurge": "TRUE"}),
        EnvironmentContext(properties={"STATS_GENERATED": "TASK"}),
        EnvironmentContext(properties={"alterTableOpType": "ADDCOLS"}),
    ]
)

KEY_LISTS = st.one_of(
    st.just([]),
    st.just([]),
    st.sampled_from(
        [
            None,
            [FieldSchema(name="ds", type="string")],
            [FieldSchema(name="ds", type="string"), FieldSchema(name="HR", type="int")],
        ]
    ),
    st.lists(
        struct(FieldSchema, name=mostly("ds", "hr", odd=("id", "ü", "", None)), type=COLUMN_TYPES, comment=COMMENTS),
        max_size=2,
    ),
)


def altered_database() -> Strategy:
    """Without what Hive 2.3 ignores and Hive 4 takes, as we do."""
    return database().map(lambda new: new.replace(description=None, locationUri=None))


def database() -> Strategy:
    return struct(
        Database,
        name=mostly("N_a", "N_b", odd=("N_A", "N_ü", "", None, "N_a-b", "N_{d*125}", "N_{d*124}", "N_a.b")),
        description=COMMENTS,
        locationUri=LOCATIONS,
        parameters=PARAMETERS,
        ownerName=OWNERS,
        ownerType=OWNER_TYPES,
    )


def table(databases: Strategy = DATABASES, names: Strategy = NEW_NAMES) -> Strategy:
    return struct(
        Table,
        tableName=names,
        dbName=databases,
        owner=OWNERS,
        createTime=mostly(None, odd=(0, 5, -1)),
        lastAccessTime=mostly(None, odd=(0, 5)),
        retention=mostly(None, 0, odd=(5, -1)),
        sd=st.one_of(*[storage()] * 8, st.none()),
        partitionKeys=KEY_LISTS,
        parameters=PARAMETERS,
        viewOriginalText=mostly(None, odd=("select 1", "", "{v*4000}")),
        viewExpandedText=mostly(None, odd=("select 1", "")),
        tableType=TABLE_TYPES,
    )


FILES = st.sampled_from(["N_a.db/t/f", "N_a.db/u/f", "N_a.db/t/_hidden", "N_a.db/f", "N_a.db/t/ds=a/f", "N_a.db/v/f"])


def database_calls() -> Strategy:
    return st.one_of(
        call("create_database", database()),
        call("create_database", database()),
        # Hive says nothing when its database refuses a text as too long.
        call("alter_database", DATABASES, altered_database().filter(lambda new: not TOO_LONG.search(repr(new)))),
        call("drop_database", DATABASES, FLAGS, FLAGS),
        call("get_database", DATABASES),
        call("get_databases", mostly("N_*", "N_a", odd=("", None, "N_a|N_b", "n_*", "N_", "*"))),
        call("get_all_databases"),
        call("create_table", table(mostly("N_a", odd=("N_b",)), mostly("t", "u"))),
    )


def table_calls() -> Strategy:
    return st.one_of(
        call("create_table", table()),
        call("create_table", table()),
        call("create_table", table(st.just("N_a"), mostly("t", "u"))),
        call("create_table_with_environment_context", table(), CONTEXTS),
        call("alter_table", DATABASES, TABLES, table()),
        call("alter_table", st.just("N_a"), st.just("t"), table(st.just("N_a"), mostly("t", "u"))),
        call("alter_table", st.just("N_a"), st.just("t"), table(mostly("N_a", "N_b"), st.just("t"))),
        call("alter_table_with_cascade", DATABASES, TABLES, table(), FLAGS),
        call("alter_table_with_environment_context", DATABASES, TABLES, table(), CONTEXTS),
        call("drop_table", DATABASES, TABLES, FLAGS),
        call("drop_table_with_environment_context", DATABASES, TABLES, FLAGS, CONTEXTS),
        call("put_file", FILES),
        call("append_partition", st.just("N_a"), st.just("t"), st.lists(mostly("a", "1"), max_size=2)),
        table_reads(),
    )


def table_reads() -> Strategy:
    names = st.one_of(st.lists(TABLES.filter(lambda name: name is not None), max_size=3), st.none())
    filters = mostly(
        'hive_filter_field_owner__ = "alice"',
        "hive_filter_field_last_access__ >= 0",
        'hive_filter_field_params__a = "x"',
        odd=(
            'hive_filter_field_owner__ like ".*a.*"',
            'hive_filter_field_params__a = "x" and hive_filter_field_owner__ = "alice"',
            'hive_filter_field_owner__ <> "alice"',
            "hive_filter_field_params__a <> 'x'",
            "hive_filter_field_params__numFiles = 1",
            "nosuch = 1",
            "",
            None,
            "hive_filter_field_last_access__ = 'x'",
            "hive_filter_field_owner__ =",
            "not a filter",
        ),
    )
    return st.one_of(
        call("get_table", DATABASES, TABLES),
        call("get_table_req", struct(GetTableRequest, dbName=DATABASES, tblName=TABLES)),
        call("get_tables", DATABASES, PATTERNS),
        call("get_all_tables", DATABASES),
        call("get_tables_by_type", DATABASES, PATTERNS, TABLE_TYPES),
        call("get_table_objects_by_name", DATABASES, names),
        call("get_table_objects_by_name_req", struct(GetTablesRequest, dbName=DATABASES, tblNames=names)),
        call("get_table_names_by_filter", DATABASES, filters, COUNTS),
        call(
            "get_table_meta",
            mostly("N_*", "N_a", odd=("", "N_a|N_b")),
            PATTERNS,
            st.sampled_from([None, [], ["MANAGED_TABLE"], ["EXTERNAL_TABLE", "VIRTUAL_VIEW"], ["nosuch"]]),
        ),
        call("get_fields", DATABASES, TABLES),
        call("get_schema", DATABASES, TABLES),
        call("get_fields_with_environment_context", DATABASES, TABLES, CONTEXTS),
        call("get_schema_with_environment_context", DATABASES, TABLES, CONTEXTS),
    )

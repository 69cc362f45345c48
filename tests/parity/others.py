"""Generated calls on functions, constraints, types and what else a server keeps."""

from hypothesis import strategies as st

from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    DropConstraintRequest,
    FieldSchema,
    ForeignKeysRequest,
    Function,
    FunctionType,
    PrimaryKeysRequest,
    PrincipalType,
    ResourceType,
    ResourceUri,
    SQLForeignKey,
    SQLPrimaryKey,
    Type,
)
from tests.parity.calls import Call, Script
from tests.parity.values import DATABASES, FLAGS, Strategy, call, mostly, struct
from tests.support.builders import database, storage, table

SETUP: Script = [
    Call("create_database", database("N_a")),
    Call("create_table", table("N_a", "p", sd=storage("a:int", "b:int", "c:string"))),
    Call("create_table", table("N_a", "t", sd=storage("a:int", "b:int", "c:string"), keys=("k:int",))),
]
TABLES = mostly("p", "t", odd=("P", "nosuch", None))
COLUMNS = mostly("a", "b", odd=("A", "k", "nosuch", None))
FUNCTIONS = mostly("f", "g", odd=("F", "", None, "nosuch", "a.b", "ü", "{f*129}", "1f"))
PATTERNS = mostly("*", "f*", odd=("", None, "f|g", "F", ".*", "%"))
DB = mostly("N_a", odd=("N_A", "N_nosuch"))
SEQUENCES = st.sampled_from([1, 2, 0, None])


def function() -> Strategy:
    resource = struct(
        ResourceUri,
        resourceType=st.sampled_from([*ResourceType, None]),
        uri=mostly("/x.jar", odd=("", None, "hdfs://a/ü")),
    )
    return struct(
        Function,
        functionName=FUNCTIONS,
        dbName=DATABASES,
        className=mostly("a.B", odd=("", None, "{c*4000}")),
        ownerName=mostly("alice", odd=(None, "")),
        ownerType=st.sampled_from([PrincipalType.USER, PrincipalType.ROLE]),
        createTime=st.sampled_from([None, 0, 5]),
        functionType=mostly(FunctionType.JAVA, odd=(None,)),
        resourceUris=st.one_of(st.just([]), st.lists(resource, max_size=2), st.none()),
    )


def primary_key() -> Strategy:
    return struct(
        SQLPrimaryKey,
        table_db=DB,
        table_name=TABLES,
        column_name=COLUMNS,
        key_seq=SEQUENCES,
        pk_name=mostly("N_pk", odd=("N_PK",)),
        enable_cstr=FLAGS,
        validate_cstr=FLAGS,
        rely_cstr=FLAGS,
    )


def foreign_key() -> Strategy:
    return struct(
        SQLForeignKey,
        pktable_db=st.just("N_a"),
        pktable_name=mostly("p"),
        pkcolumn_name=mostly("a", odd=("b",)),
        fktable_db=st.just("N_a"),
        fktable_name=mostly("t", odd=("nosuch",)),
        fkcolumn_name=mostly("a", "b", odd=("nosuch",)),
        key_seq=st.just(1),
        update_rule=st.sampled_from([None, 0, 1]),
        delete_rule=st.sampled_from([None, 0, 2]),
        fk_name=mostly("N_fk", odd=("N_FK",)),
        pk_name=mostly("N_pk"),
        enable_cstr=FLAGS,
        validate_cstr=FLAGS,
        rely_cstr=FLAGS,
    )


def other_calls() -> Strategy:
    types = mostly("N_ty", "int", odd=("", None, "N_nosuch", "array<int>"))
    fields = st.sampled_from([None, [], [FieldSchema(name="a", type="int")], [FieldSchema(name="a", type="nosuch")]])
    return st.one_of(
        call("create_function", function()),
        call("create_function", function()),
        call("alter_function", DATABASES, FUNCTIONS, function()),
        call("drop_function", DATABASES, FUNCTIONS),
        call("get_function", DATABASES, FUNCTIONS),
        call("get_functions", DATABASES, PATTERNS),
        call("get_all_functions"),
        call("add_primary_key", struct(AddPrimaryKeyRequest, primaryKeyCols=st.lists(primary_key(), max_size=2))),
        call(
            "add_primary_key",
            struct(AddPrimaryKeyRequest, primaryKeyCols=st.lists(primary_key(), min_size=1, max_size=2)),
        ),
        call("add_foreign_key", struct(AddForeignKeyRequest, foreignKeyCols=st.lists(foreign_key(), max_size=1))),
        call("get_primary_keys", struct(PrimaryKeysRequest, db_name=DB, tbl_name=TABLES)),
        call(
            "get_foreign_keys",
            struct(
                ForeignKeysRequest,
                parent_db_name=mostly("N_a", None),
                parent_tbl_name=mostly("p", None),
                foreign_db_name=mostly("N_a", None),
                foreign_tbl_name=mostly("t", None),
            ),
        ),
        call(
            "drop_constraint",
            struct(
                DropConstraintRequest,
                dbname=DB,
                tablename=TABLES,
                constraintname=mostly("N_pk", "N_fk", odd=("N_PK", "", "nosuch")),
            ),
        ),
        call(
            "create_table_with_constraints",
            st.sampled_from([table("N_a", "n", sd=storage("a:int", "b:int")), table("N_a", "p", sd=storage("a:int"))]),
            st.one_of(st.none(), st.lists(primary_key().map(lambda key: key.replace(table_name="n")), max_size=2)),
            st.sampled_from([None, []]),
        ),
        call("drop_table", st.just("N_a"), TABLES, FLAGS),
        call("create_type", struct(Type, name=types, type1=st.sampled_from([None, "int"]), fields=fields)),
        call("drop_type", types),
        call("get_type", types),
        call("add_token", mostly("N_x", "N_y"), mostly("v", "w", odd=("",))),
        call("get_token", mostly("N_x", odd=("N_nosuch",))),
        call("remove_token", mostly("N_x", odd=("N_nosuch",))),
        call("get_all_token_identifiers"),
        call("getMetaConf", mostly("hive.metastore.try.direct.sql", odd=("nosuch", "", None))),
        call(
            "setMetaConf",
            mostly("hive.metastore.try.direct.sql", odd=("nosuch",)),
            mostly("true", odd=("x", "")),
        ),
        call(
            "get_config_value",
            mostly("hive.metastore.nosuch", odd=(None, "", "nosuch", "hive.metastore.warehouse")),
            mostly("d", odd=(None,)),
        ),
        call("getVersion"),
        call("getStatus"),
    )


LAST_READS: Script = [
    Call("get_primary_keys", PrimaryKeysRequest(db_name="N_a", tbl_name=name)) for name in ("p", "t", "n")
]

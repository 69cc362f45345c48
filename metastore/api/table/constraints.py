"""Constraints, and tables that are made with them."""

from collections.abc import Iterator
from contextlib import contextmanager

from thrift.Thrift import TApplicationException

from lake.protocol.hive import (
    AddCheckConstraintRequest,
    AddDefaultConstraintRequest,
    AddForeignKeyRequest,
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    AddUniqueConstraintRequest,
    AllTableConstraintsRequest,
    AllTableConstraintsResponse,
    CheckConstraintsRequest,
    CheckConstraintsResponse,
    CreateTableRequest,
    DefaultConstraintsRequest,
    DefaultConstraintsResponse,
    DropConstraintRequest,
    ForeignKeysRequest,
    ForeignKeysResponse,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    NotNullConstraintsRequest,
    NotNullConstraintsResponse,
    PrimaryKeysRequest,
    PrimaryKeysResponse,
    SQLAllTableConstraints,
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
    Table,
    UniqueConstraintsRequest,
    UniqueConstraintsResponse,
)
from metastore.api.methods import Call, answers
from metastore.api.table.tables import keep_statistics
from metastore.services.model import hive_objects


@answers(
    "create_table_with_constraints",
    changes=(
        "CREATE database tbl.dbName cat=tbl.catName;"
        " SEE table foreignKeys[].pktable_db? foreignKeys[].pktable_name? cat=foreignKeys[].catName"
        " | new_table tbl"
    ),
    uncommitted="named",
    stores=True,
)
def create_table_with_constraints(
    call: Call,
    table: Table | None,
    primary_keys: list[SQLPrimaryKey] | None,
    foreign_keys: list[SQLForeignKey] | None,
    unique: list[SQLUniqueConstraint] | None,
    not_null: list[SQLNotNullConstraint] | None,
    defaults: list[SQLDefaultConstraint] | None,
    checks: list[SQLCheckConstraint] | None,
) -> None:
    wanted = SQLAllTableConstraints(primary_keys, foreign_keys, unique, not_null, defaults, checks)
    call.metastore.constraints.create_table(_given(table), {}, wanted)
    keep_statistics(call, _given(table))


@answers(
    "create_table_req",
    changes=(
        "CREATE database request.table.dbName cat=request.table.catName;"
        " SEE table request.foreignKeys[].pktable_db? request.foreignKeys[].pktable_name?"
        " cat=request.foreignKeys[].catName"
        " | new_table request.table"
    ),
    uncommitted="named",
    stores=True,
    differs="nothing is translated into external tables",
)
def create_table_req(call: Call, request: CreateTableRequest) -> None:
    wanted = SQLAllTableConstraints(
        request.primaryKeys,
        request.foreignKeys,
        request.uniqueConstraints,
        request.notNullConstraints,
        request.defaultConstraints,
        request.checkConstraints,
    )
    context = hive_objects.properties(request.envContext)
    call.metastore.constraints.create_table(_given(request.table), context, wanted)
    keep_statistics(call, _given(request.table))


def _given(table: Table | None) -> Table:
    if table is None:
        raise MetaException("the table is missing")
    return table


@answers(
    "add_primary_key",
    changes=(
        "ALTER table req.primaryKeyCols[].table_db req.primaryKeyCols[].table_name cat=req.primaryKeyCols[].catName"
    ),
    uncommitted="named",
    stores=True,
)
def add_primary_key(call: Call, request: AddPrimaryKeyRequest) -> None:
    _add(call, SQLAllTableConstraints(primaryKeys=request.primaryKeyCols), "add_primary_key")


@answers(
    "add_foreign_key",
    changes=(
        "ALTER table req.foreignKeyCols[].fktable_db req.foreignKeyCols[].fktable_name"
        " cat=req.foreignKeyCols[].catName;"
        " SEE table req.foreignKeyCols[].pktable_db req.foreignKeyCols[].pktable_name"
        " cat=req.foreignKeyCols[].catName"
    ),
    uncommitted="named",
    stores=True,
    differs="needs a key that matches, as in Hive 4",
)
def add_foreign_key(call: Call, request: AddForeignKeyRequest) -> None:
    _add(call, SQLAllTableConstraints(foreignKeys=request.foreignKeyCols), "add_foreign_key")


@answers(
    "add_unique_constraint",
    changes=(
        "ALTER table req.uniqueConstraintCols[].table_db req.uniqueConstraintCols[].table_name"
        " cat=req.uniqueConstraintCols[].catName"
    ),
    uncommitted="named",
    stores=True,
)
def add_unique_constraint(call: Call, request: AddUniqueConstraintRequest) -> None:
    _add(call, SQLAllTableConstraints(uniqueConstraints=request.uniqueConstraintCols), "add_unique_constraint")


@answers(
    "add_not_null_constraint",
    changes=(
        "ALTER table req.notNullConstraintCols[].table_db req.notNullConstraintCols[].table_name"
        " cat=req.notNullConstraintCols[].catName"
    ),
    uncommitted="named",
    stores=True,
)
def add_not_null_constraint(call: Call, request: AddNotNullConstraintRequest) -> None:
    _add(call, SQLAllTableConstraints(notNullConstraints=request.notNullConstraintCols), "add_not_null_constraint")


@answers(
    "add_default_constraint",
    changes=(
        "ALTER table req.defaultConstraintCols[].table_db req.defaultConstraintCols[].table_name"
        " cat=req.defaultConstraintCols[].catName"
    ),
    uncommitted="named",
    stores=True,
)
def add_default_constraint(call: Call, request: AddDefaultConstraintRequest) -> None:
    _add(call, SQLAllTableConstraints(defaultConstraints=request.defaultConstraintCols), "add_default_constraint")


@answers(
    "add_check_constraint",
    changes=(
        "ALTER table req.checkConstraintCols[].table_db req.checkConstraintCols[].table_name"
        " cat=req.checkConstraintCols[].catName"
    ),
    uncommitted="named",
    stores=True,
)
def add_check_constraint(call: Call, request: AddCheckConstraintRequest) -> None:
    _add(call, SQLAllTableConstraints(checkConstraints=request.checkConstraintCols), "add_check_constraint")


@answers("drop_constraint", changes="ALTER table req.dbname req.tablename cat=req.catName", uncommitted="named")
def drop_constraint(call: Call, request: DropConstraintRequest) -> None:
    with _undeclared("drop_constraint"):
        call.metastore.constraints.drop(request.dbname, request.tablename, request.constraintname, request.catName)


def _add(call: Call, wanted: SQLAllTableConstraints, method: str) -> None:
    with _undeclared(method):
        call.metastore.constraints.add(wanted)


@contextmanager
def _undeclared(method: str) -> Iterator[None]:
    """What Hive raises as InvalidObjectException, which these methods don't declare: an internal error to its clients.

    They tell it from the MetaException of a key that can't be, and so do we; but we say the reason.
    """
    try:
        yield
    except (InvalidObjectException, NoSuchObjectException) as error:
        message = f"Internal error processing {method}: {error.message}"
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, message) from None


@answers(
    "get_primary_keys",
    reads="SEE table request.db_name request.tbl_name cat=request.catName",
    uncommitted="table itself",
)
def get_primary_keys(call: Call, request: PrimaryKeysRequest) -> PrimaryKeysResponse:
    return PrimaryKeysResponse(
        call.metastore.constraints.of_table(SQLPrimaryKey, request.db_name, request.tbl_name, request.catName)
    )


@answers(
    "get_unique_constraints",
    reads="SEE table request.db_name request.tbl_name cat=request.catName",
    uncommitted="table itself",
)
def get_unique_constraints(call: Call, request: UniqueConstraintsRequest) -> UniqueConstraintsResponse:
    return UniqueConstraintsResponse(
        call.metastore.constraints.of_table(SQLUniqueConstraint, request.db_name, request.tbl_name, request.catName)
    )


@answers(
    "get_not_null_constraints",
    reads="SEE table request.db_name request.tbl_name cat=request.catName",
    uncommitted="table itself",
)
def get_not_null_constraints(call: Call, request: NotNullConstraintsRequest) -> NotNullConstraintsResponse:
    return NotNullConstraintsResponse(
        call.metastore.constraints.of_table(SQLNotNullConstraint, request.db_name, request.tbl_name, request.catName)
    )


@answers(
    "get_default_constraints",
    reads="SEE table request.db_name request.tbl_name cat=request.catName",
    uncommitted="table itself",
)
def get_default_constraints(call: Call, request: DefaultConstraintsRequest) -> DefaultConstraintsResponse:
    return DefaultConstraintsResponse(
        call.metastore.constraints.of_table(SQLDefaultConstraint, request.db_name, request.tbl_name, request.catName)
    )


@answers(
    "get_check_constraints",
    reads="SEE table request.db_name request.tbl_name cat=request.catName",
    uncommitted="table itself",
)
def get_check_constraints(call: Call, request: CheckConstraintsRequest) -> CheckConstraintsResponse:
    return CheckConstraintsResponse(
        call.metastore.constraints.of_table(SQLCheckConstraint, request.db_name, request.tbl_name, request.catName)
    )


@answers(
    "get_foreign_keys",
    reads=(
        "SEE table request.foreign_db_name? request.foreign_tbl_name? cat=request.catName;"
        " SEE table request.parent_db_name? request.parent_tbl_name? cat=request.catName | foreign_keys"
    ),
    uncommitted="table itself",
)
def get_foreign_keys(call: Call, request: ForeignKeysRequest) -> ForeignKeysResponse:
    return ForeignKeysResponse(
        call.metastore.constraints.foreign_keys(
            request.parent_db_name,
            request.parent_tbl_name,
            request.foreign_db_name,
            request.foreign_tbl_name,
            request.catName,
        )
    )


@answers(
    "get_all_table_constraints",
    reads="SEE table request.dbName request.tblName cat=request.catName | foreign_keys",
    uncommitted="table itself",
)
def get_all_table_constraints(call: Call, request: AllTableConstraintsRequest) -> AllTableConstraintsResponse:
    return AllTableConstraintsResponse(call.metastore.constraints.all(request.dbName, request.tblName, request.catName))

"""The six calls about indexes, which later versions of Hive don't have."""

from lake.protocol.hive import Index, MetaException, Table
from metastore.api.methods import Call, answers


@answers(
    "add_index",
    changes=(
        "INDEX table new_index.dbName new_index.origTableName;"
        " CREATE database index_table.dbName? cat=index_table.catName | new_table index_table"
    ),
    uncommitted="named",
    stores=True,
    differs="a missing table is InvalidObjectException",
)
def add_index(call: Call, index: Index | None, index_table: Table | None) -> Index:
    return call.metastore.indexes.add(_given(index), index_table)


@answers(
    "alter_index",
    changes="INDEX table dbname base_tbl_name; INDEX table new_idx.dbName? new_idx.origTableName?",
    uncommitted="named",
    stores=True,
    differs="a missing one is a MetaException",
)
def alter_index(call: Call, database: str | None, table: str | None, name: str | None, new: Index | None) -> None:
    call.metastore.indexes.alter(database, table, name, _given(new))


@answers("drop_index_by_name", changes="INDEX table db_name tbl_name", uncommitted="named")
def drop_index_by_name(
    call: Call, database: str | None, table: str | None, name: str | None, delete_data: bool | None
) -> bool:
    call.metastore.indexes.drop(database, table, name, delete_data=bool(delete_data))
    return True


@answers("get_index_by_name", reads="SEE table db_name tbl_name", uncommitted="table itself")
def get_index_by_name(call: Call, database: str | None, table: str | None, name: str | None) -> Index:
    return call.metastore.indexes.get(database, table, name)


@answers("get_indexes", reads="SEE table db_name tbl_name", uncommitted="table itself")
def get_indexes(call: Call, database: str | None, table: str | None, limit: int | None) -> list[Index]:
    """All of them: Hive doesn't look at the limit."""
    return call.metastore.indexes.of_table(database, table)


@answers("get_index_names", reads="SEE table db_name tbl_name", uncommitted="table itself")
def get_index_names(call: Call, database: str | None, table: str | None, limit: int | None) -> list[str]:
    """All of them: Hive doesn't look at the limit."""
    return [index.indexName or "" for index in call.metastore.indexes.of_table(database, table)]


def _given(index: Index | None) -> Index:
    if index is None:
        raise MetaException("the index is missing")
    return index

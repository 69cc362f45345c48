"""Changes of partitions, and the calls about their names."""

from lake.protocol.formats import partition_names
from lake.protocol.hive import (
    AddPartitionsRequest,
    AddPartitionsResult,
    AlterPartitionsRequest,
    AlterPartitionsResponse,
    AppendPartitionsRequest,
    DropPartitionRequest,
    DropPartitionsRequest,
    DropPartitionsResult,
    EnvironmentContext,
    MetaException,
    Partition,
    PartitionSpec,
    RenamePartitionRequest,
    RenamePartitionResponse,
)
from metastore.api.methods import Call, answers
from metastore.api.table.tables import about
from metastore.services.model import hive_objects, partition_specs


@answers(
    "add_partition",
    changes="new_partitions new_part.dbName new_part.tableName cat=new_part.catName new=new_part",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` is the partition's flag",
)
def add_partition(call: Call, new: Partition | None) -> Partition:
    return add_partition_with_environment_context(call, new, None)


@answers(
    "add_partition_with_environment_context",
    changes="new_partitions new_part.dbName new_part.tableName cat=new_part.catName new=new_part",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` is the partition's flag",
)
def add_partition_with_environment_context(
    call: Call, new: Partition | None, context: EnvironmentContext | None
) -> Partition:
    if new is None:
        raise MetaException("Partition cannot be null.")
    properties = hive_objects.properties(context)
    added = call.metastore.partitions.add(
        new.dbName, new.tableName, [new], properties, single=True, catalog=new.catName
    )
    return added.partitions[0]


@answers(
    "add_partitions",
    changes="new_partitions new_parts[].dbName new_parts[].tableName cat=new_parts[].catName new=new_parts[]",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` is the partition's flag; all or none",
)
def add_partitions(call: Call, new: list[Partition] | None) -> int:
    if new is None:
        raise MetaException("the list of partitions is missing")
    if not new:
        return 0
    first = new[0]
    added = call.metastore.partitions.add(first.dbName, first.tableName, new, {}, catalog=first.catName)
    _keep_statistics(call, new, first.dbName, first.tableName, first.catName)
    return len(added.new)


def _keep_statistics(
    call: Call, new: list[Partition], database: str | None, table: str | None, catalog: str | None
) -> None:
    """A client of Hive 4 may bring column statistics along; as in Hive the partitions are there before them."""
    statistics = [about(each.colStats, database, table, catalog) for each in new if each.colStats is not None]
    if statistics:
        call.metastore.statistics.update_partitions(statistics)


@answers(
    "add_partitions_pspec",
    changes="new_partitions new_parts[].dbName new_parts[].tableName cat=new_parts[].catName new=new_parts[]",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` is the partition's flag; all or none",
)
def add_partitions_pspec(call: Call, specs: list[PartitionSpec] | None) -> int:
    if not specs:
        return 0
    new = partition_specs.expanded(specs)
    database, table = partition_specs.name(specs[0].dbName), partition_specs.name(specs[0].tableName)
    return len(call.metastore.partitions.add(database, table, new, {}, catalog=specs[0].catName).new)


@answers(
    "add_partitions_req",
    changes=(
        "new_partitions request.dbName request.tblName cat=request.catName;"
        " new_partitions request.parts[].dbName? request.parts[].tableName? cat=request.catName"
        " new=request.parts[]"
    ),
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` is the partition's flag; all or none",
)
def add_partitions_req(call: Call, request: AddPartitionsRequest) -> AddPartitionsResult:
    if not request.parts:
        return AddPartitionsResult()
    added = call.metastore.partitions.add(
        request.dbName,
        request.tblName,
        request.parts,
        hive_objects.properties(request.environmentContext),
        if_not_exists=bool(request.ifNotExists),
        table_columns=bool(request.skipColumnSchemaForPartition),
        catalog=request.catName,
    )
    _keep_statistics(call, request.parts, request.dbName, request.tblName, request.catName)
    if request.needResult is False:
        return AddPartitionsResult()
    partitions = added.partitions
    if request.skipColumnSchemaForPartition:
        columns = partitions[0].sd.cols if partitions and partitions[0].sd is not None else None
        return AddPartitionsResult(_without_columns(partitions), partitionColSchema=columns)
    return AddPartitionsResult(partitions)


def _without_columns(partitions: list[Partition]) -> list[Partition]:
    """For a client that has the columns already, or gets them once for all."""
    return [
        partition.replace(sd=None if partition.sd is None else partition.sd.replace(cols=[]))
        for partition in partitions
    ]


@answers("append_partition", changes="INSERT table db_name tbl_name", uncommitted="named")
def append_partition(call: Call, database: str | None, table: str | None, values: list[str] | None) -> Partition:
    return call.metastore.partitions.append(database, table, values, {})


@answers("append_partition_with_environment_context", changes="INSERT table db_name tbl_name", uncommitted="named")
def append_partition_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    values: list[str] | None,
    context: EnvironmentContext | None,
) -> Partition:
    return call.metastore.partitions.append(database, table, values, hive_objects.properties(context))


@answers("append_partition_by_name", changes="INSERT table db_name tbl_name", uncommitted="named")
def append_partition_by_name(call: Call, database: str | None, table: str | None, name: str | None) -> Partition:
    return call.metastore.partitions.append(database, table, None, {}, name=name or "")


@answers(
    "append_partition_by_name_with_environment_context", changes="INSERT table db_name tbl_name", uncommitted="named"
)
def append_partition_by_name_with_environment_context(
    call: Call, database: str | None, table: str | None, name: str | None, context: EnvironmentContext | None
) -> Partition:
    return call.metastore.partitions.append(database, table, None, hive_objects.properties(context), name=name or "")


@answers(
    "append_partition_req",
    changes="INSERT table appendPartitionsReq.dbName appendPartitionsReq.tableName cat=appendPartitionsReq.catalogName",
    uncommitted="named",
)
def append_partition_req(call: Call, request: AppendPartitionsRequest) -> Partition:
    """By its values, or by its name where there are none."""
    if not request.partVals and not request.name:
        raise MetaException("The partition values must not be null or empty.")
    return call.metastore.partitions.append(
        request.dbName,
        request.tableName,
        request.partVals,
        hive_objects.properties(request.environmentContext),
        name=None if request.partVals else request.name,
        catalog=request.catalogName,
    )


@answers(
    "alter_partition",
    changes="partition_change db_name tbl_name new=new_part",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` turns the partition's flag",
)
def alter_partition(call: Call, database: str | None, table: str | None, new: Partition | None) -> None:
    call.metastore.partitions.alter(database, table, _given(new), {}, single=True)


@answers(
    "alter_partition_with_environment_context",
    changes="partition_change db_name tbl_name new=new_part",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` turns the partition's flag",
)
def alter_partition_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    new: Partition | None,
    context: EnvironmentContext | None,
) -> None:
    call.metastore.partitions.alter(database, table, _given(new), hive_objects.properties(context), single=True)


@answers(
    "alter_partitions",
    changes="partition_change db_name tbl_name new=new_parts[]",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` turns the partitions' flags; all or none",
)
def alter_partitions(call: Call, database: str | None, table: str | None, new: list[Partition] | None) -> None:
    call.metastore.partitions.alter(database, table, new or [], {})


@answers(
    "alter_partitions_with_environment_context",
    changes="partition_change db_name tbl_name new=new_parts[]",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` turns the partitions' flags; all or none",
)
def alter_partitions_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    new: list[Partition] | None,
    context: EnvironmentContext | None,
) -> None:
    call.metastore.partitions.alter(database, table, new or [], hive_objects.properties(context))


@answers(
    "alter_partitions_req",
    changes="partition_change req.dbName req.tableName cat=req.catName new=req.partitions[]",
    uncommitted="named",
    stores=True,
    differs="the parameter `commit` turns the partitions' flags; all or none",
)
def alter_partitions_req(call: Call, request: AlterPartitionsRequest) -> AlterPartitionsResponse:
    call.metastore.partitions.alter(
        request.dbName,
        request.tableName,
        request.partitions or [],
        hive_objects.properties(request.environmentContext),
        request.catName,
        table_columns=True,
    )
    return AlterPartitionsResponse()


@answers(
    "rename_partition",
    changes="ALTER table db_name tbl_name; partition_change db_name tbl_name new=new_part old=part_vals",
    uncommitted="named",
    stores=True,
)
def rename_partition(
    call: Call, database: str | None, table: str | None, values: list[str] | None, new: Partition | None
) -> None:
    call.metastore.partitions.rename(database, table, values or [], _given(new)[0], {})


@answers(
    "rename_partition_req",
    changes=(
        "ALTER table req.dbName req.tableName cat=req.catName;"
        " partition_change req.dbName req.tableName cat=req.catName new=req.newPart old=req.partVals"
    ),
    uncommitted="named",
    stores=True,
)
def rename_partition_req(call: Call, request: RenamePartitionRequest) -> RenamePartitionResponse:
    call.metastore.partitions.rename(
        request.dbName,
        request.tableName,
        request.partVals or [],
        _given(request.newPart)[0],
        {},
        request.catName,
    )
    return RenamePartitionResponse()


@answers("drop_partition", changes="REMOVE_ROWS table db_name tbl_name values=part_vals", uncommitted="named")
def drop_partition(
    call: Call, database: str | None, table: str | None, values: list[str] | None, delete_data: bool | None
) -> bool:
    call.metastore.partitions.drop(database, table, values=values or [], delete_data=bool(delete_data))
    return True


@answers(
    "drop_partition_with_environment_context",
    changes="REMOVE_ROWS table db_name tbl_name values=part_vals",
    uncommitted="named",
)
def drop_partition_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    values: list[str] | None,
    delete_data: bool | None,
    context: EnvironmentContext | None,
) -> bool:
    return drop_partition(call, database, table, values, delete_data)


@answers("drop_partition_by_name", changes="REMOVE_ROWS table db_name tbl_name", uncommitted="named")
def drop_partition_by_name(
    call: Call, database: str | None, table: str | None, name: str | None, delete_data: bool | None
) -> bool:
    call.metastore.partitions.drop(database, table, name=name or "", delete_data=bool(delete_data))
    return True


@answers(
    "drop_partition_by_name_with_environment_context", changes="REMOVE_ROWS table db_name tbl_name", uncommitted="named"
)
def drop_partition_by_name_with_environment_context(
    call: Call,
    database: str | None,
    table: str | None,
    name: str | None,
    delete_data: bool | None,
    context: EnvironmentContext | None,
) -> bool:
    return drop_partition_by_name(call, database, table, name, delete_data)


@answers(
    "drop_partition_req",
    changes="REMOVE_ROWS table dropPartitionReq.dbName dropPartitionReq.tblName cat=dropPartitionReq.catName",
    uncommitted="named",
)
def drop_partition_req(call: Call, request: DropPartitionRequest) -> bool:
    """By its values, or by its name where there are none."""
    call.metastore.partitions.drop(
        request.dbName,
        request.tblName,
        values=request.partVals,
        name=None if request.partVals else request.partName or "",
        delete_data=bool(request.deleteData),
        catalog=request.catName,
    )
    return True


@answers(
    "drop_partitions_req", changes="REMOVE_ROWS table req.dbName req.tblName cat=req.catName", uncommitted="selected"
)
def drop_partitions_req(call: Call, request: DropPartitionsRequest) -> DropPartitionsResult:
    parts = request.parts
    delete_data, if_exists = bool(request.deleteData), bool(request.ifExists)
    if parts is not None and parts.exprs is not None:
        gone = call.metastore.partitions.drop_matching(
            call.scope,
            request.dbName,
            request.tblName,
            [one.expr or b"" for one in parts.exprs],
            delete_data=delete_data,
            if_exists=if_exists,
            catalog=request.catName,
        )
    elif parts is not None and parts.names is not None:
        gone = call.metastore.partitions.drop_named(
            request.dbName,
            request.tblName,
            parts.names,
            delete_data=delete_data,
            if_exists=if_exists,
            catalog=request.catName,
        )
    else:
        raise MetaException("Partition spec is not set")
    if request.needResult is False:
        return DropPartitionsResult()
    return DropPartitionsResult(_without_columns(gone) if request.skipColumnSchemaForPartition else gone)


@answers(
    "exchange_partition",
    changes="REMOVE_ROWS table source_db source_table_name; INSERT table dest_db dest_table_name",
    uncommitted="selected",
)
def exchange_partition(
    call: Call,
    spec: dict[str, str] | None,
    source_database: str | None,
    source_table: str | None,
    target_database: str | None,
    target_table: str | None,
) -> Partition:
    exchange_partitions(call, spec, source_database, source_table, target_database, target_table)
    # Hive answers with an empty partition, however many were exchanged.
    return Partition(createTime=0, lastAccessTime=0)


@answers(
    "exchange_partitions",
    changes="REMOVE_ROWS table source_db source_table_name; INSERT table dest_db dest_table_name",
    uncommitted="selected",
)
def exchange_partitions(
    call: Call,
    spec: dict[str, str] | None,
    source_database: str | None,
    source_table: str | None,
    target_database: str | None,
    target_table: str | None,
) -> list[Partition]:
    return call.metastore.partition_exchange.exchange(
        call.scope, spec, source_database, source_table, target_database, target_table
    )


@answers("markPartitionForEvent", changes="WRITE table db_name tbl_name", uncommitted="named")
def mark_partition_for_event(
    call: Call, database: str | None, table: str | None, spec: dict[str, str] | None, event_type: int | None
) -> None:
    call.metastore.partitions.mark(database, table, spec, event_type)


@answers("isPartitionMarkedForEvent", reads="LIST table db_name tbl_name", uncommitted="hidden")
def is_partition_marked_for_event(
    call: Call, database: str | None, table: str | None, spec: dict[str, str] | None, event_type: int | None
) -> bool:
    return call.metastore.partitions.is_marked(call.scope, database, table, spec, event_type)


@answers("partition_name_to_vals", reads="-", uncommitted="no table")
def partition_name_to_vals(call: Call, name: str | None) -> list[str]:
    return list(_spec_of(name).values())


@answers("partition_name_to_spec", reads="-", uncommitted="no table")
def partition_name_to_spec(call: Call, name: str | None) -> dict[str, str]:
    return _spec_of(name)


def _spec_of(name: str | None) -> dict[str, str]:
    if name is None:
        raise MetaException("a partition's name is missing")
    return partition_names.parse_name(name) if name else {}


@answers("partition_name_has_valid_characters", reads="-", uncommitted="no table", off="no characters are forbidden")
def partition_name_has_valid_characters(call: Call, values: list[str] | None, throw_exception: bool | None) -> bool:
    """Hive restricts characters by a setting that is empty by default: then everything is valid."""
    return True


def _given(partition: Partition | None) -> list[Partition]:
    if partition is None:
        raise MetaException("Partition cannot be null.")
    return [partition]

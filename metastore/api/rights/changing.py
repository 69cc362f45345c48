"""The methods that change something, and which rights they need: see `classification` for the form."""

METHODS = """
# -- databases, catalogs ---------------------------------------------------------------------------------------------
create_catalog                          ADMIN everything | new_catalog catalog.catalog
alter_catalog                           ADMIN everything | catalog_change rqst.newCat
drop_catalog                            ADMIN everything
create_database                         CREATE everything | new_database database
create_database_req                     CREATE everything | new_database createDatabaseRequest
createDatabase                          CREATE everything
alter_database                          ALTER database dbname | database_change db
alter_database_req                      ALTER database alterDbReq.oldDbName | database_change alterDbReq.newDb
drop_database                           DROP database name
drop_database_req                       DROP database req.name cat=req.catalogName
create_dataconnector                    ADMIN everything
create_dataconnector_req                ADMIN everything
alter_dataconnector                     ADMIN everything
alter_dataconnector_req                 ADMIN everything
drop_dataconnector                      ADMIN everything
drop_dataconnector_req                  ADMIN everything

# -- tables ----------------------------------------------------------------------------------------------------------
create_table                            CREATE database tbl.dbName cat=tbl.catName | new_table tbl
create_table_with_environment_context   CREATE database tbl.dbName cat=tbl.catName | new_table tbl
create_table_with_constraints           CREATE database tbl.dbName cat=tbl.catName;
    SEE table foreignKeys[].pktable_db? foreignKeys[].pktable_name? cat=foreignKeys[].catName | new_table tbl
create_table_req                        CREATE database request.table.dbName cat=request.table.catName;
    SEE table request.foreignKeys[].pktable_db? request.foreignKeys[].pktable_name? cat=request.foreignKeys[].catName
    | new_table request.table
createTable                             CREATE database table.dbName | new_table table
alter_table                             table_change dbname tbl_name new=new_tbl
alter_table_with_cascade                table_change dbname tbl_name new=new_tbl
alter_table_with_environment_context    table_change dbname tbl_name new=new_tbl
alter_table_req                         table_change req.dbName req.tableName cat=req.catName new=req.table
drop_table                              DROP table dbname name
drop_table_with_environment_context     DROP table dbname name
drop_table_req                          DROP table dropTableReq.dbName dropTableReq.tableName
    cat=dropTableReq.catalogName
truncate_table                          REMOVE_ROWS table dbName tableName
truncate_table_req                      REMOVE_ROWS table req.dbName req.tableName
update_creation_metadata                ALTER table dbname tbl_name cat=catName;
    view_sources dbname tbl_name cat=catName new=creation_metadata
cm_recycle                              ADMIN everything

# -- constraints, indexes --------------------------------------------------------------------------------------------
add_primary_key                         ALTER table req.primaryKeyCols[].table_db req.primaryKeyCols[].table_name
    cat=req.primaryKeyCols[].catName
add_unique_constraint                   ALTER table req.uniqueConstraintCols[].table_db
    req.uniqueConstraintCols[].table_name cat=req.uniqueConstraintCols[].catName
add_not_null_constraint                 ALTER table req.notNullConstraintCols[].table_db
    req.notNullConstraintCols[].table_name cat=req.notNullConstraintCols[].catName
add_default_constraint                  ALTER table req.defaultConstraintCols[].table_db
    req.defaultConstraintCols[].table_name cat=req.defaultConstraintCols[].catName
add_check_constraint                    ALTER table req.checkConstraintCols[].table_db
    req.checkConstraintCols[].table_name cat=req.checkConstraintCols[].catName
add_foreign_key                         ALTER table req.foreignKeyCols[].fktable_db req.foreignKeyCols[].fktable_name
    cat=req.foreignKeyCols[].catName;
    SEE table req.foreignKeyCols[].pktable_db req.foreignKeyCols[].pktable_name cat=req.foreignKeyCols[].catName
drop_constraint                         ALTER table req.dbname req.tablename cat=req.catName
add_index                               INDEX table new_index.dbName new_index.origTableName;
    CREATE database index_table.dbName? cat=index_table.catName | new_table index_table
alter_index                             INDEX table dbname base_tbl_name;
    INDEX table new_idx.dbName? new_idx.origTableName?
drop_index_by_name                      INDEX table db_name tbl_name

# -- partitions ------------------------------------------------------------------------------------------------------
add_partition                           new_partitions new_part.dbName new_part.tableName cat=new_part.catName
    new=new_part
add_partition_with_environment_context  new_partitions new_part.dbName new_part.tableName cat=new_part.catName
    new=new_part
add_partitions                          new_partitions new_parts[].dbName new_parts[].tableName
    cat=new_parts[].catName new=new_parts[]
add_partitions_pspec                    new_partitions new_parts[].dbName new_parts[].tableName
    cat=new_parts[].catName new=new_parts[]
add_partitions_req                      new_partitions request.dbName request.tblName cat=request.catName;
    new_partitions request.parts[].dbName? request.parts[].tableName? cat=request.catName new=request.parts[]
append_partition                        INSERT table db_name tbl_name
append_partition_with_environment_context  INSERT table db_name tbl_name
append_partition_by_name                INSERT table db_name tbl_name
append_partition_by_name_with_environment_context  INSERT table db_name tbl_name
append_partition_req                    INSERT table appendPartitionsReq.dbName appendPartitionsReq.tableName
    cat=appendPartitionsReq.catalogName
alter_partition                         partition_change db_name tbl_name new=new_part
alter_partition_with_environment_context  partition_change db_name tbl_name new=new_part
alter_partitions                        partition_change db_name tbl_name new=new_parts[]
alter_partitions_with_environment_context  partition_change db_name tbl_name new=new_parts[]
alter_partitions_req                    partition_change req.dbName req.tableName cat=req.catName new=req.partitions[]
rename_partition                        ALTER table db_name tbl_name;
    partition_change db_name tbl_name new=new_part old=part_vals
rename_partition_req                    ALTER table req.dbName req.tableName cat=req.catName;
    partition_change req.dbName req.tableName cat=req.catName new=req.newPart old=req.partVals
drop_partition                          REMOVE_ROWS table db_name tbl_name values=part_vals
drop_partition_with_environment_context  REMOVE_ROWS table db_name tbl_name values=part_vals
drop_partition_by_name                  REMOVE_ROWS table db_name tbl_name
drop_partition_by_name_with_environment_context  REMOVE_ROWS table db_name tbl_name
drop_partition_req                      REMOVE_ROWS table dropPartitionReq.dbName dropPartitionReq.tblName
    cat=dropPartitionReq.catName
drop_partitions_req                     REMOVE_ROWS table req.dbName req.tblName cat=req.catName
exchange_partition                      REMOVE_ROWS table source_db source_table_name;
    INSERT table dest_db dest_table_name
exchange_partitions                     REMOVE_ROWS table source_db source_table_name;
    INSERT table dest_db dest_table_name
markPartitionForEvent                   WRITE table db_name tbl_name

# -- column statistics -----------------------------------------------------------------------------------------------
update_table_column_statistics          WRITE table stats_obj.statsDesc.dbName stats_obj.statsDesc.tableName
    cat=stats_obj.statsDesc.catName
update_partition_column_statistics      WRITE table stats_obj.statsDesc.dbName stats_obj.statsDesc.tableName
    cat=stats_obj.statsDesc.catName
update_table_column_statistics_req      WRITE table req.colStats[].statsDesc.dbName req.colStats[].statsDesc.tableName
    cat=req.colStats[].statsDesc.catName
update_partition_column_statistics_req  WRITE table req.colStats[].statsDesc.dbName req.colStats[].statsDesc.tableName
    cat=req.colStats[].statsDesc.catName
set_aggr_stats_for                      WRITE table request.colStats[].statsDesc.dbName
    request.colStats[].statsDesc.tableName cat=request.colStats[].statsDesc.catName
delete_table_column_statistics          WRITE table db_name tbl_name
delete_partition_column_statistics      WRITE table db_name tbl_name
delete_column_statistics_req            WRITE table req.db_name req.tbl_name cat=req.cat_name

# -- functions, procedures, types ------------------------------------------------------------------------------------
create_function                         CREATE database func.dbName cat=func.catName | new_function func
alter_function                          ALTER database dbName; CREATE database newFunc.dbName? cat=newFunc.catName
    | new_function newFunc
drop_function                           DROP database dbName
add_package                             CREATE database request.dbName cat=request.catName | new_package request
drop_package                            DROP database request.dbName cat=request.catName
create_stored_procedure                 CREATE database proc.dbName cat=proc.catName | new_procedure proc
drop_stored_procedure                   DROP database request.dbName cat=request.catName
create_type                             ADMIN everything
drop_type                               ADMIN everything
add_serde                               ADMIN everything

# -- schema registry -------------------------------------------------------------------------------------------------
create_ischema                          CREATE database schema.dbName cat=schema.catName
alter_ischema                           ALTER database rqst.name.dbName cat=rqst.name.catName;
    CREATE database rqst.newSchema.dbName? cat=rqst.newSchema.catName
drop_ischema                            DROP database name.dbName cat=name.catName
add_schema_version                      ALTER database schemaVersion.schema.dbName cat=schemaVersion.schema.catName
drop_schema_version                     ALTER database schemaVersion.schema.dbName cat=schemaVersion.schema.catName
map_schema_version_to_serde             ALTER database rqst.schemaVersion.schema.dbName
    cat=rqst.schemaVersion.schema.catName
set_schema_version_state                ALTER database rqst.schemaVersion.schema.dbName
    cat=rqst.schemaVersion.schema.catName

# -- rights ----------------------------------------------------------------------------------------------------------
grant_privileges                        grants privileges.privileges[]
revoke_privileges                       grants privileges.privileges[]
grant_revoke_privileges                 grants request.privileges.privileges[]
refresh_privileges                      refreshed_grants objToRefresh grants=grantRequest.privileges.privileges[]
create_role                             ADMIN everything
drop_role                               ADMIN everything
grant_role                              GRANT role role_name
revoke_role                             GRANT role role_name
grant_revoke_role                       GRANT role request.roleName
set_ugi                                 -
get_delegation_token                    -
renew_delegation_token                  -
cancel_delegation_token                 -
lake_cancel_tokens                      principal request.owner; ADMIN everything if=request.everybody
add_token                               ADMIN everything
remove_token                            ADMIN everything
add_master_key                          ADMIN everything
update_master_key                       ADMIN everything
remove_master_key                       ADMIN everything

# -- transactions, locks, compactions --------------------------------------------------------------------------------
open_txns                               TAKE_PART everything; ADMIN everything if=rqst.replPolicy
commit_txn                              TAKE_PART everything; ADMIN everything if=rqst.keyValue;
    ADMIN everything if=rqst.replPolicy;
    WRITE table rqst.writeEventInfos[].database? rqst.writeEventInfos[].table?;
    ALTER table rqst.replLastIdInfo.database? rqst.replLastIdInfo.table? cat=rqst.replLastIdInfo.catalog
abort_txn                               TAKE_PART everything; ADMIN everything if=rqst.replPolicy
abort_txns                              TAKE_PART everything
heartbeat                               TAKE_PART everything
heartbeat_txn_range                     TAKE_PART everything
lock                                    TAKE_PART everything; locks rqst.component[]
check_lock                              TAKE_PART everything
unlock                                  TAKE_PART everything
add_dynamic_partitions                  WRITE table rqst.dbname rqst.tablename
allocate_table_write_ids                WRITE table rqst.dbName rqst.tableName; ADMIN everything if=rqst.replPolicy
add_write_ids_to_min_history            TAKE_PART everything
add_write_notification_log              WRITE table rqst.db rqst.table
add_write_notification_log_in_batch     WRITE table rqst.db rqst.table cat=rqst.catalog;
    WRITE table rqst.requestList[].db? rqst.requestList[].table?
get_lock_materialization_rebuild        WRITE table dbName tableName
heartbeat_lock_materialization_rebuild  WRITE table dbName tableName
update_transaction_statistics           ADMIN everything
repl_tbl_writeid_state                  ADMIN everything
seed_txn_id                             ADMIN everything
seed_write_id                           ADMIN everything
compact                                 TABLE_SERVICE table rqst.dbname rqst.tablename
compact2                                TABLE_SERVICE table rqst.dbname rqst.tablename
submit_for_cleanup                      ADMIN everything
find_next_compact                       ADMIN everything
find_next_compact2                      ADMIN everything
abort_Compactions                       ADMIN everything
mark_cleaned                            ADMIN everything
mark_compacted                          ADMIN everything
mark_failed                             ADMIN everything
mark_refused                            ADMIN everything
set_hadoop_jobid                        ADMIN everything
update_compactor_state                  ADMIN everything
update_compaction_metrics_data          ADMIN everything
remove_compaction_metrics_data          ADMIN everything

# -- events ----------------------------------------------------------------------------------------------------------
fire_listener_event                     WRITE table rqst.dbName rqst.tableName cat=rqst.catName
lake_acknowledge_shards                 GROUPS everything
lake_leave_group                        GROUPS everything
lake_acknowledge_events                 GROUPS everything
lake_delete_event_group                 ADMIN everything
lake_resend_events                      ADMIN everything
lake_discard_events                     ADMIN everything

# -- registry of Hive's engines --------------------------------------------------------------------------------------
create_resource_plan                    ADMIN everything
alter_resource_plan                     ADMIN everything
drop_resource_plan                      ADMIN everything
create_wm_pool                          ADMIN everything
alter_wm_pool                           ADMIN everything
drop_wm_pool                            ADMIN everything
create_wm_trigger                       ADMIN everything
alter_wm_trigger                        ADMIN everything
drop_wm_trigger                         ADMIN everything
create_or_update_wm_mapping             ADMIN everything
drop_wm_mapping                         ADMIN everything
create_or_drop_wm_trigger_to_pool_mapping  ADMIN everything
scheduled_query_maintenance             ADMIN everything
scheduled_query_poll                    ADMIN everything
scheduled_query_progress                ADMIN everything
add_runtime_stats                       ADMIN everything
add_replication_metrics                 ADMIN everything
set_properties                          ADMIN everything
put_file_metadata                       ADMIN everything
clear_file_metadata                     ADMIN everything
cache_file_metadata                     WRITE table req.dbName req.tblName

# -- the server itself -----------------------------------------------------------------------------------------------
setMetaConf                             -
flushCache                              -
reinitialize                            -
setOption                               -

# -- lake tables -----------------------------------------------------------------------------------------------------
lake_commit_partitions                  COMMIT lake request.table
lake_reopen_partitions                  COMMIT lake request.table
lake_begin_batch                        INSERT lake request.table
lake_route_partitions                   INSERT lake request.table
lake_report_batch                       INSERT lake request.table
lake_begin_instant                      instant request.table action=request.action
lake_transition_instant                 instant request.table action=request.action
lake_complete_instants                  instant requests[].table action=requests[].action
    cleaned=requests[].cleanedPaths undone=requests[].rolledBack columns=requests[].columns
    properties=requests[].schemaProperties
lake_heartbeat_instant                  instant table action=action
lake_delete_instant                     instant table action=action
lake_remove_orphans                     CLEAN lake request.table
lake_lease_snapshot                     SELECT lake request.table; lease request.table id=request.id
lake_release_lease                      SELECT lake table; lease table id=id
lake_record_decisions                   TABLE_SERVICE lake request.table;
    submitted_jobs request.table action=request.jobs[].action
lake_submit_job                         TABLE_SERVICE lake table; submitted_jobs table action=job.action
lake_take_job                           TABLE_SERVICE everything
lake_heartbeat_job                      TABLE_SERVICE everything
lake_claim_plan                         TABLE_SERVICE everything
lake_finish_job                         TABLE_SERVICE everything
lake_cancel_job                         TABLE_SERVICE everything
lake_pause_table_services               TABLE_SERVICE lake table
lake_import_hudi                        hudi_import request.table location=request.location
lake_refresh_hudi                       hudi_refresh location name

# -- Hudi's metaserver -----------------------------------------------------------------------------------------------
createNewInstantTime                    RECORD table db tb
createNewInstantWithTime                hudi_instant db tb instant=instant
transitionInstantState                  hudi_instant db tb instant=fromInstant becomes=toInstant content=metadata
deleteInstant                           hudi_instant db tb instant=instant
"""

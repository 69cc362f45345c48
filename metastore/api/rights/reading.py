"""The methods that change nothing, and which rights they need: see `classification` for the form."""

METHODS = """
# -- databases, catalogs ---------------------------------------------------------------------------------------------
get_database                            SEE database name
get_database_req                        SEE database request.name cat=request.catalogName
get_databases                           - | databases pattern
get_databases_req                       - | database_structs
get_all_databases                       - | databases
get_catalog                             SEE catalog catName.name
get_catalogs                            -
get_dataconnector_req                   ADMIN everything
get_dataconnectors                      ADMIN everything

# -- tables ----------------------------------------------------------------------------------------------------------
get_table                               SEE table dbname tbl_name
get_table_req                           SEE table req.dbName req.tblName cat=req.catName;
    SELECT table req.dbName req.tblName cat=req.catName if=req.getColumnStats
get_table_objects_by_name               ~SEE database dbname | named_tables dbname tbl_names
get_table_objects_by_name_req           ~SEE databases req.dbName cat=req.catName
    | requested_tables req
get_tables                              ~SEE database db_name | tables db_name
get_all_tables                          ~SEE database db_name | tables db_name
get_tables_by_type                      ~SEE database db_name | tables db_name
get_materialized_views_for_rewriting    ~SEE database db_name | tables db_name
get_all_materialized_view_objects_for_rewriting  - | table_structs
get_table_meta                          - | table_structs
get_tables_ext                          ~SEE database req.database cat=req.catalog
    | limited_tables req.database req.catalog
get_table_names_by_filter               ~SEE database dbname | limited_tables dbname
get_fields                              SEE described db_name table_name
get_fields_with_environment_context     SEE described db_name table_name
get_fields_req                          SEE described req.dbName req.tblName cat=req.catName
get_schema                              SEE described db_name table_name
get_schema_with_environment_context     SEE described db_name table_name
get_schema_req                          SEE described req.dbName req.tblName cat=req.catName
translate_table_dryrun                  SEE database request.table.dbName cat=request.table.catName
get_materialization_invalidation_info   SEE full creation_metadata.tablesUsed[];
    SEE table creation_metadata.sourceTables[].table.dbName? creation_metadata.sourceTables[].table.tableName?
    cat=creation_metadata.sourceTables[].table.catName

# -- constraints, indexes --------------------------------------------------------------------------------------------
get_primary_keys                        SEE table request.db_name request.tbl_name cat=request.catName
get_unique_constraints                  SEE table request.db_name request.tbl_name cat=request.catName
get_not_null_constraints                SEE table request.db_name request.tbl_name cat=request.catName
get_default_constraints                 SEE table request.db_name request.tbl_name cat=request.catName
get_check_constraints                   SEE table request.db_name request.tbl_name cat=request.catName
get_foreign_keys                        SEE table request.foreign_db_name? request.foreign_tbl_name?
    cat=request.catName;
    SEE table request.parent_db_name? request.parent_tbl_name? cat=request.catName | foreign_keys
get_all_table_constraints               SEE table request.dbName request.tblName cat=request.catName | foreign_keys
get_index_by_name                       SEE table db_name tbl_name
get_index_names                         SEE table db_name tbl_name
get_indexes                             SEE table db_name tbl_name

# -- partitions ------------------------------------------------------------------------------------------------------
get_partition                           LIST table db_name tbl_name values=part_vals
get_partition_with_auth                 LIST table db_name tbl_name values=part_vals
get_partition_by_name                   LIST table db_name tbl_name
get_partition_req                       LIST table req.dbName req.tblName cat=req.catName values=req.partVals
get_partitions                          LIST table db_name tbl_name
get_partitions_with_auth                LIST table db_name tbl_name
get_partitions_req                      LIST table req.dbName req.tblName cat=req.catName
get_partitions_pspec                    LIST table db_name tbl_name
get_partitions_ps                       LIST table db_name tbl_name
get_partitions_ps_with_auth             LIST table db_name tbl_name
get_partitions_ps_with_auth_req         LIST table req.dbName req.tblName cat=req.catName
get_partitions_by_expr                  LIST table req.dbName req.tblName cat=req.catName
get_partitions_spec_by_expr             LIST table req.dbName req.tblName cat=req.catName
get_partitions_by_filter                LIST table db_name tbl_name
get_partitions_by_filter_req            LIST table req.dbName req.tblName cat=req.catName
get_partitions_by_names                 LIST table db_name tbl_name
get_partitions_by_names_req             LIST table req.db_name req.tbl_name;
    SELECT table req.db_name req.tbl_name if=req.get_col_stats
get_partitions_with_specs               LIST table request.dbName request.tblName cat=request.catName
get_part_specs_by_filter                LIST table db_name tbl_name
get_num_partitions_by_filter            LIST table db_name tbl_name
get_partition_names                     LIST table db_name tbl_name
get_partition_names_ps                  LIST table db_name tbl_name
get_partition_names_ps_req              LIST table req.dbName req.tblName cat=req.catName
get_partition_names_req                 LIST table req.dbName req.tblName cat=req.catName
fetch_partition_names_req               LIST table partitionReq.dbName partitionReq.tblName cat=partitionReq.catName
get_partition_values                    LIST table request.dbName request.tblName cat=request.catName
isPartitionMarkedForEvent               LIST table db_name tbl_name
partition_name_has_valid_characters     -
partition_name_to_spec                  -
partition_name_to_vals                  -

# -- column statistics -----------------------------------------------------------------------------------------------
get_table_column_statistics             SELECT table db_name tbl_name col=col_name
get_table_statistics_req                SELECT table request.dbName request.tblName cat=request.catName
    cols=request.colNames
get_partition_column_statistics         SELECT table db_name tbl_name col=col_name
get_partitions_statistics_req           SELECT table request.dbName request.tblName cat=request.catName
get_aggr_stats_for                      SELECT table request.dbName request.tblName cat=request.catName

# -- functions, procedures, types ------------------------------------------------------------------------------------
get_function                            SEE database dbName
get_functions                           ~SEE database dbName
get_functions_req                       ~SEE database request.dbName cat=request.catalogName
get_all_functions                       - | functions
find_package                            SEE database request.dbName cat=request.catName
get_all_packages                        ~SEE database request.dbName cat=request.catName
get_stored_procedure                    SEE database request.dbName cat=request.catName
get_all_stored_procedures               ~SEE database request.dbName cat=request.catName
get_type                                -
get_type_all                            -
get_serde                               -

# -- schema registry -------------------------------------------------------------------------------------------------
get_ischema                             SEE database name.dbName cat=name.catName
get_schema_version                      SEE database schemaVersion.schema.dbName cat=schemaVersion.schema.catName
get_schema_latest_version               SEE database schemaName.dbName cat=schemaName.catName
get_schema_all_versions                 SEE database schemaName.dbName cat=schemaName.catName
get_schemas_by_cols                     - | schema_versions

# -- rights ----------------------------------------------------------------------------------------------------------
get_privilege_set                       principal user_name groups=group_names; ~SEE ref hiveObject
list_privileges                         ~SEE ref hiveObject | privileges
get_role_names                          - | roles
list_roles                              principal principal_name principal_type
get_role_grants_for_principal           principal request.principal_name request.principal_type
get_principals_in_role                  SEE role request.roleName

# -- transactions, locks, compactions --------------------------------------------------------------------------------
get_open_txns                           -
get_open_txns_req                       -
get_open_txns_info                      TAKE_PART everything | open_transactions
get_latest_txnid_in_conflict            TAKE_PART everything
get_valid_write_ids                     SEE full rqst.fullTableNames[]
get_max_allocated_table_write_id        SEE table rqst.dbName rqst.tableName
get_all_write_event_info                ADMIN everything
get_latest_committed_compaction_info    SEE table rqst.dbname rqst.tablename
get_replayed_txns_for_policy            ADMIN everything
show_locks                              - | locks
show_compact                            - | compactions
find_columns_with_stats                 SEE table cr.dbname cr.tablename

# -- events ----------------------------------------------------------------------------------------------------------
get_next_notification                   - | events
get_current_notificationEventId         -
get_notification_events_count           - | events
lake_read_events                        - | events
lake_read_group_events                  GROUPS everything | events
lake_event_positions                    -
lake_event_groups                       GROUPS everything
lake_dead_events                        ADMIN everything

# -- registry of Hive's engines --------------------------------------------------------------------------------------
get_active_resource_plan                ADMIN everything
get_all_resource_plans                  ADMIN everything
get_resource_plan                       ADMIN everything
get_triggers_for_resourceplan           ADMIN everything
validate_resource_plan                  ADMIN everything
get_runtime_stats                       ADMIN everything
get_replication_metrics                 ADMIN everything
get_scheduled_query                     ADMIN everything
get_properties                          ADMIN everything
get_file_metadata                       ADMIN everything
get_file_metadata_by_expr               ADMIN everything
lake_list_tokens                        principal request.owner; ADMIN everything if=request.everybody
get_token                               ADMIN everything
get_all_token_identifiers               ADMIN everything
get_master_keys                         ADMIN everything

# -- the server itself -----------------------------------------------------------------------------------------------
getMetaConf                             -
get_config_value                        -
get_metastore_db_uuid                   -
aliveSince                              -
getCounter                              ADMIN everything
getCounters                             ADMIN everything
getCpuProfile                           -
getName                                 -
getOption                               - | option key
getOptions                              - | options
getStatus                               -
getStatusDetails                        -
getVersion                              -
shutdown                                -

# -- lake tables -----------------------------------------------------------------------------------------------------
lake_list_partitions                    LIST lake request.table uncommitted=request.includeUncommitted
lake_get_watermark                      SEE lake table
lake_list_instants                      LIST lake request.table
lake_get_instant                        LIST lake table
lake_list_rejected_commits              LIST lake table
lake_timeline_position                  LIST lake table
lake_get_snapshot                       SELECT lake request.table uncommitted=request.includeUncommitted
lake_read_changes                       SELECT lake request.table uncommitted=request.includeUncommitted
lake_plan_clean                         CLEAN lake request.table
lake_find_orphans                       CLEAN lake request.table
lake_list_leases                        LIST lake table
lake_service_facts                      TABLE_SERVICE lake request.table
lake_list_decisions                     LIST lake table
lake_due_tables                         TABLE_SERVICE everything
lake_list_jobs                          jobs request.table

# -- Hudi's metaserver -----------------------------------------------------------------------------------------------
getTable                                SEE table db tb
listInstants                            LIST table db tb
getInstantMetadata                      LIST table db tb
"""

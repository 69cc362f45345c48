"""What tells Hive's clients apart. The wire doesn't say their version, but some calls only new ones know."""

NEW_SINCE_2_3 = frozenset({
    "add_check_constraint", "add_default_constraint", "add_not_null_constraint", "add_package",
    "add_replication_metrics", "add_runtime_stats", "add_schema_version", "add_serde",
    "add_unique_constraint", "add_write_notification_log", "add_write_notification_log_in_batch",
    "allocate_table_write_ids", "alter_catalog", "alter_dataconnector", "alter_dataconnector_req", "alter_ischema",
    "alter_partitions_req", "alter_resource_plan", "alter_table_req", "alter_wm_pool", "alter_wm_trigger",
    "cm_recycle", "create_catalog", "create_dataconnector", "create_dataconnector_req", "create_ischema",
    "create_or_drop_wm_trigger_to_pool_mapping", "create_or_update_wm_mapping", "create_resource_plan",
    "create_stored_procedure", "create_table_req", "create_wm_pool", "create_wm_trigger", "drop_catalog",
    "drop_database_req", "drop_dataconnector", "drop_dataconnector_req", "drop_ischema", "drop_package",
    "drop_resource_plan",
    "drop_schema_version", "drop_stored_procedure", "drop_wm_mapping", "drop_wm_pool", "drop_wm_trigger",
    "find_columns_with_stats", "find_next_compact", "find_next_compact2", "find_package",
    "get_active_resource_plan", "get_all_materialized_view_objects_for_rewriting", "get_all_packages",
    "get_all_resource_plans", "get_all_stored_procedures", "get_all_table_constraints",
    "get_all_write_event_info", "get_catalog", "get_catalogs", "get_check_constraints", "get_database_req",
    "get_dataconnector_req", "get_dataconnectors", "get_default_constraints", "get_fields_req",
    "get_ischema", "get_latest_committed_compaction_info", "get_latest_txnid_in_conflict",
    "get_lock_materialization_rebuild", "get_materialization_invalidation_info",
    "get_materialized_views_for_rewriting", "get_max_allocated_table_write_id", "get_metastore_db_uuid",
    "get_not_null_constraints", "get_notification_events_count", "get_open_txns_req",
    "get_partition_names_ps_req", "get_partition_names_req", "get_partition_req",
    "get_partitions_by_names_req", "get_partitions_ps_with_auth_req", "get_partitions_req",
    "get_partitions_spec_by_expr", "get_partitions_with_specs", "get_replication_metrics",
    "get_resource_plan", "get_runtime_stats", "get_scheduled_query", "get_schema_all_versions",
    "get_schema_latest_version", "get_schema_req", "get_schema_version", "get_schemas_by_cols", "get_serde",
    "get_stored_procedure", "get_tables_ext", "get_triggers_for_resourceplan", "get_unique_constraints",
    "get_valid_write_ids", "heartbeat_lock_materialization_rebuild", "map_schema_version_to_serde",
    "mark_cleaned", "mark_compacted", "mark_failed", "mark_refused", "refresh_privileges",
    "remove_compaction_metrics_data", "rename_partition_req", "repl_tbl_writeid_state",
    "scheduled_query_maintenance", "scheduled_query_poll", "scheduled_query_progress", "seed_txn_id",
    "seed_write_id", "set_hadoop_jobid", "set_schema_version_state", "translate_table_dryrun",
    "truncate_table", "truncate_table_req", "update_compaction_metrics_data", "update_compactor_state",
    "update_creation_metadata", "update_partition_column_statistics_req",
    "update_table_column_statistics_req", "update_transaction_statistics", "validate_resource_plan",
    "abort_Compactions", "add_write_ids_to_min_history", "alter_database_req", "append_partition_req",
    "create_database_req", "delete_column_statistics_req", "drop_partition_req", "drop_table_req",
    "fetch_partition_names_req", "get_databases_req", "get_functions_req", "get_partitions_by_filter_req",
    "get_properties", "get_replayed_txns_for_policy", "set_properties", "submit_for_cleanup",
})  # fmt: skip
"""The methods of Hive's interface that its version 2.3 doesn't have."""

EXCEPTIONS_OF_2_3 = {("get_partition_names", "o2"): "o1"}
"""By a method and its field for an exception: the field in which Hive 2.3 expects that exception.

Later versions expect a NoSuchObjectException in that field (`o1`), and the MetaException in another one (`o2`).
"""

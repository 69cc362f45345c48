"""What every answered method has to do with partitions that a reader may not see.

A method is in one of these groups, or has a recipe in `recipes`, by which a test finds out.
"""


def _names(text: str) -> list[str]:
    return text.split()


TAKES_NO_TABLE = _names("""
    create_catalog alter_catalog get_catalog get_catalogs drop_catalog
    set_ugi getMetaConf setMetaConf get_config_value get_metastore_db_uuid flushCache
    getName getVersion getStatus getStatusDetails getOptions getOption setOption getCpuProfile aliveSince reinitialize
    shutdown
    create_database create_database_req get_database get_database_req get_databases get_databases_req get_all_databases
    alter_database alter_database_req drop_database drop_database_req
    get_properties set_properties
    create_function drop_function alter_function get_function get_functions get_functions_req get_all_functions
    create_role drop_role get_role_names grant_role revoke_role grant_revoke_role list_roles get_principals_in_role
    get_role_grants_for_principal
    partition_name_to_vals partition_name_to_spec partition_name_has_valid_characters
    create_dataconnector create_dataconnector_req get_dataconnector_req get_dataconnectors alter_dataconnector
    alter_dataconnector_req drop_dataconnector drop_dataconnector_req
    get_delegation_token renew_delegation_token cancel_delegation_token add_token get_token remove_token
    lake_list_tokens lake_cancel_tokens
    get_all_token_identifiers add_master_key update_master_key remove_master_key get_master_keys
    add_runtime_stats get_runtime_stats add_replication_metrics get_replication_metrics
    get_file_metadata get_file_metadata_by_expr put_file_metadata clear_file_metadata cache_file_metadata cm_recycle
    create_stored_procedure get_stored_procedure drop_stored_procedure get_all_stored_procedures
    add_package find_package drop_package get_all_packages
    create_resource_plan get_resource_plan get_active_resource_plan get_all_resource_plans alter_resource_plan
    validate_resource_plan drop_resource_plan create_wm_pool alter_wm_pool drop_wm_pool create_wm_trigger
    alter_wm_trigger drop_wm_trigger get_triggers_for_resourceplan create_or_drop_wm_trigger_to_pool_mapping
    create_or_update_wm_mapping drop_wm_mapping
    scheduled_query_maintenance scheduled_query_poll scheduled_query_progress get_scheduled_query
    create_ischema get_ischema alter_ischema drop_ischema add_schema_version get_schema_version
    get_schema_latest_version get_schema_all_versions drop_schema_version get_schemas_by_cols
    map_schema_version_to_serde set_schema_version_state add_serde get_serde
    create_type get_type get_type_all drop_type translate_table_dryrun
""")
"""They are about other things, or about a text that the caller gives."""

ABOUT_THE_TABLE = _names("""
    get_table get_table_req get_table_objects_by_name get_table_objects_by_name_req
    get_tables get_all_tables get_tables_by_type get_materialized_views_for_rewriting get_table_meta get_tables_ext
    get_table_names_by_filter
    get_fields get_fields_with_environment_context get_fields_req
    get_schema get_schema_with_environment_context get_schema_req
    get_primary_keys get_unique_constraints get_not_null_constraints get_default_constraints get_check_constraints
    get_foreign_keys get_all_table_constraints
    get_table_column_statistics get_table_statistics_req
    get_index_by_name get_indexes get_index_names
    get_all_materialized_view_objects_for_rewriting get_materialization_invalidation_info
    update_transaction_statistics
""")
"""They answer with what the table itself is, whatever partitions it has."""

TRANSACTIONS = _names("""
    open_txns get_open_txns get_open_txns_req get_open_txns_info commit_txn abort_txn abort_txns seed_txn_id
    get_latest_txnid_in_conflict add_dynamic_partitions
    get_replayed_txns_for_policy get_all_write_event_info add_write_ids_to_min_history
    allocate_table_write_ids get_valid_write_ids get_max_allocated_table_write_id seed_write_id repl_tbl_writeid_state
    get_lock_materialization_rebuild heartbeat_lock_materialization_rebuild
""")
"""They are about numbers, and names that somebody writes to."""

COMPACTIONS = _names("""
    submit_for_cleanup abort_Compactions
    compact compact2 show_compact find_next_compact find_next_compact2 update_compactor_state mark_compacted
    mark_cleaned mark_failed mark_refused set_hadoop_jobid get_latest_committed_compaction_info
    update_compaction_metrics_data remove_compaction_metrics_data find_columns_with_stats
""")
"""They are about names that somebody wants compacted; who asks of which columns there are statistics is about to
compact the partition that it names."""

LOCKS = ["lock", "check_lock", "unlock", "heartbeat", "heartbeat_txn_range", "show_locks"]
"""They are about names that somebody locks, which need not be anything's."""

EVERYBODY = ["get_partition_with_auth"]
"""The one lookup that hides nothing: by it load paths find the partition that they write to. Its answer says what the
partition is."""

COUNTERS = ["getCounters", "getCounter"]
"""They count ready partitions, whoever asks."""

OF_WRITERS = ["lake_get_watermark", "lake_begin_batch", "lake_route_partitions"]
"""A streaming writer's questions: how many partitions are open is what it asks."""

TIMELINE = _names("""
    lake_begin_instant lake_transition_instant lake_heartbeat_instant lake_delete_instant lake_list_instants
    lake_get_instant lake_timeline_position lake_list_rejected_commits
""")
"""What writers and cleaners do to a table's timeline; which partitions an instant changed is what they ask. Those who
read files ask for snapshots and changes."""

HUDI = _names("""
    createDatabase createTable getTable
    createNewInstantTime createNewInstantWithTime transitionInstantState deleteInstant listInstants getInstantMetadata
    lake_import_hudi lake_refresh_hudi
""")
"""Hudi's writers on their tables' timelines, and those who bring Hudi's timelines along."""

TABLE_SERVICES = _names("""
    lake_lease_snapshot lake_release_lease lake_list_leases
    lake_service_facts lake_record_decisions lake_list_decisions lake_due_tables
    lake_submit_job lake_list_jobs lake_take_job lake_heartbeat_job lake_claim_plan lake_finish_job lake_cancel_job
    lake_pause_table_services
""")
"""They count a table's files and its instants, and are about jobs; who compacts has to know of all partitions."""

CLEANERS = ["lake_plan_clean", "lake_find_orphans", "lake_remove_orphans"]
"""Who removes files has to know of all of them."""

EVENTS = _names("""
    lake_read_events lake_event_positions lake_event_groups lake_acknowledge_events lake_dead_events lake_resend_events
    lake_read_group_events lake_acknowledge_shards lake_leave_group lake_delete_event_group lake_discard_events
""")
"""Our own log tells of every change, and of each partition whether it is ready. Hive's readers, who could not tell,
have a log that is silent about uncommitted ones."""

NOTIFICATIONS = ["get_next_notification", "get_current_notificationEventId", "get_notification_events_count"]
"""Hive's log, which is silent about uncommitted partitions: a test of its own reads all of it."""

WRITES = _names("""
    create_table create_table_with_environment_context create_table_with_constraints create_table_req
    alter_table alter_table_with_environment_context alter_table_with_cascade alter_table_req
    drop_table drop_table_with_environment_context drop_table_req truncate_table truncate_table_req
    add_primary_key add_foreign_key add_unique_constraint add_not_null_constraint add_default_constraint
    add_check_constraint drop_constraint
    add_partition add_partition_with_environment_context add_partitions add_partitions_pspec add_partitions_req
    append_partition append_partition_with_environment_context append_partition_by_name
    append_partition_by_name_with_environment_context append_partition_req
    alter_partition alter_partition_with_environment_context alter_partitions alter_partitions_with_environment_context
    alter_partitions_req rename_partition rename_partition_req
    drop_partition drop_partition_with_environment_context drop_partition_by_name
    drop_partition_by_name_with_environment_context drop_partition_req
    markPartitionForEvent fire_listener_event add_write_notification_log add_write_notification_log_in_batch
    add_index alter_index drop_index_by_name update_creation_metadata
    grant_privileges revoke_privileges grant_revoke_privileges refresh_privileges
    update_table_column_statistics update_partition_column_statistics update_table_column_statistics_req
    update_partition_column_statistics_req set_aggr_stats_for delete_table_column_statistics
    delete_partition_column_statistics delete_column_statistics_req
    lake_commit_partitions lake_reopen_partitions lake_report_batch lake_complete_instants
""")
"""They change what the caller names exactly, and answer with nothing but that, or change the table as a whole."""

WRITES_WHAT_IS_SEEN = ["drop_partitions_req", "exchange_partition", "exchange_partitions"]
"""They change the partitions that a partial spec or an expression selects."""

REFUSE_DECORATED_NAMES = [
    *WRITES,
    *WRITES_WHAT_IS_SEEN,
    "lake_begin_batch",
    "lake_begin_instant",
    "lake_transition_instant",
    "lake_heartbeat_instant",
    "lake_delete_instant",
]
"""A decorated name is for reading only; these have a recipe in `writers`."""

WITHOUT_RECIPE = [
    *TAKES_NO_TABLE,
    *ABOUT_THE_TABLE,
    *LOCKS,
    *TRANSACTIONS,
    *COMPACTIONS,
    *EVERYBODY,
    *COUNTERS,
    *OF_WRITERS,
    *TIMELINE,
    *HUDI,
    *TABLE_SERVICES,
    *CLEANERS,
    *EVENTS,
    *NOTIFICATIONS,
    *WRITES,
]

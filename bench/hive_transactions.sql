-- The tables in which Hive 2.3 keeps transactions and locks, with the columns that its server reads and writes.
CREATE TABLE txns (
    txn_id bigint PRIMARY KEY, txn_state char(1) NOT NULL, txn_started bigint NOT NULL,
    txn_last_heartbeat bigint NOT NULL, txn_user varchar(128) NOT NULL, txn_host varchar(128) NOT NULL,
    txn_agent_info varchar(128), txn_meta_info varchar(128), txn_heartbeat_count integer);
CREATE TABLE txn_components (
    tc_txnid bigint REFERENCES txns (txn_id), tc_database varchar(128) NOT NULL, tc_table varchar(128),
    tc_partition varchar(767), tc_operation_type char(1) NOT NULL);
CREATE INDEX tc_txnid_index ON txn_components (tc_txnid);
CREATE TABLE completed_txn_components (
    ctc_txnid bigint, ctc_database varchar(128) NOT NULL, ctc_table varchar(128), ctc_partition varchar(767));
CREATE TABLE next_txn_id (ntxn_next bigint NOT NULL);
INSERT INTO next_txn_id VALUES (1);
CREATE TABLE hive_locks (
    hl_lock_ext_id bigint NOT NULL, hl_lock_int_id bigint NOT NULL, hl_txnid bigint, hl_db varchar(128) NOT NULL,
    hl_table varchar(128), hl_partition varchar(767), hl_lock_state char(1) NOT NULL, hl_lock_type char(1) NOT NULL,
    hl_last_heartbeat bigint NOT NULL, hl_acquired_at bigint, hl_user varchar(128) NOT NULL,
    hl_host varchar(128) NOT NULL, hl_heartbeat_count integer, hl_agent_info varchar(128), hl_blockedby_ext_id bigint,
    hl_blockedby_int_id bigint, PRIMARY KEY (hl_lock_ext_id, hl_lock_int_id));
CREATE INDEX hl_txnid_index ON hive_locks USING hash (hl_txnid);
CREATE TABLE next_lock_id (nl_next bigint NOT NULL);
INSERT INTO next_lock_id VALUES (1);
CREATE TABLE compaction_queue (
    cq_id bigint PRIMARY KEY, cq_database varchar(128) NOT NULL, cq_table varchar(128) NOT NULL,
    cq_partition varchar(767), cq_state char(1) NOT NULL, cq_type char(1) NOT NULL, cq_tblproperties varchar(2048),
    cq_worker_id varchar(128), cq_start bigint, cq_run_as varchar(128), cq_highest_txn_id bigint, cq_meta_info bytea,
    cq_hadoop_job_id varchar(32));
CREATE TABLE next_compaction_queue_id (ncq_next bigint NOT NULL);
INSERT INTO next_compaction_queue_id VALUES (1);
CREATE TABLE completed_compactions (
    cc_id bigint PRIMARY KEY, cc_database varchar(128) NOT NULL, cc_table varchar(128) NOT NULL,
    cc_partition varchar(767), cc_state char(1) NOT NULL, cc_type char(1) NOT NULL, cc_tblproperties varchar(2048),
    cc_worker_id varchar(128), cc_start bigint, cc_end bigint, cc_run_as varchar(128), cc_highest_txn_id bigint,
    cc_meta_info bytea, cc_hadoop_job_id varchar(32));
CREATE TABLE aux_table (
    mt_key1 varchar(128) NOT NULL, mt_key2 bigint NOT NULL, mt_comment varchar(255), PRIMARY KEY (mt_key1, mt_key2));
CREATE TABLE write_set (
    ws_database varchar(128) NOT NULL, ws_table varchar(128) NOT NULL, ws_partition varchar(767),
    ws_txnid bigint NOT NULL, ws_commit_id bigint NOT NULL, ws_operation_type char(1) NOT NULL);

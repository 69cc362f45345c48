// What this metastore offers beyond Hive's: which partitions are ready, how far event time has come, and the reports
// of streaming writers. Spoken on the same port as Hive's interface.
//
// Times are milliseconds since 1970-01-01 UTC. A table is named by catalog (by default "hive"), database and table;
// names are lower-cased. Partitions are named as in Hive: `dt=2026-01-31/hr=07`, values escaped.

include "hive_metastore.thrift"

namespace java lake.metastore
namespace py lake_metastore

struct TableReference {
  1: optional string catalog
  2: required string database
  3: required string table
}

// ---- partitions and their flag -----------------------------------------------------------------------------------

struct PartitionState {
  1: required string name
  2: required list<string> values
  3: required bool ready
  4: optional i64 commitTime      // when it was last committed; unset: never, or born ready
  5: optional i64 openedTime      // since when it is uncommitted; unset: it is ready
  6: optional string committedBy  // who committed it: what the caller said, or the chain whose watermark made it ready
  7: optional i64 createTime
  8: optional string location
  9: optional i64 partitionTime   // its start, as read from its values; unset where the table's properties don't say
}

struct ListPartitionsRequest {
  1: required TableReference table
  2: optional string filter             // in Hive's grammar
  3: optional bool includeUncommitted   // this call's scope
  4: optional i32 limit                 // at most so many; unset or negative: all
  5: optional string after              // only names after this one, to read on from where a limit cut
}

struct ListPartitionsResponse {
  1: required list<PartitionState> partitions   // ordered by name
}

// Partitions are given by their names or by a filter, exactly one of the two.
struct CommitPartitionsRequest {
  1: required TableReference table
  2: optional list<string> names
  3: optional string filter
  4: optional string committedBy
}

struct CommitPartitionsResponse {
  1: required list<string> committed      // that this call made ready
  2: required list<string> alreadyReady
}

struct ReopenPartitionsRequest {
  1: required TableReference table
  2: optional list<string> names
  3: optional string filter
}

struct ReopenPartitionsResponse {
  1: required list<string> reopened           // that this call made uncommitted
  2: required list<string> alreadyUncommitted
}

// ---- event time --------------------------------------------------------------------------------------------------

struct SourceProgress {
  1: required string chain
  2: required string source
  3: required i64 watermark
  4: required i64 reportedAt
  5: required bool idle           // silent for longer than the table allows: it holds nobody up
}

struct LateRows {
  1: required i64 rerouted        // written to a later partition than their own
  2: required i64 reopened        // for which a ready partition was opened again
  3: required i64 dropped
}

struct Watermark {
  1: optional i64 watermark             // unset: nobody has reported yet
  2: required string commitMode         // partition.commit.mode
  3: required list<SourceProgress> sources
  4: required LateRows late
  5: required i64 uncommitted           // how many partitions are
  6: optional string oldestUncommitted  // the first of them by name
  7: optional i64 delay                 // sink.partition-commit.delay
  8: optional i64 interval              // from one partition's start to the next one's
  9: optional string latePolicy
}

// ---- streaming writers -------------------------------------------------------------------------------------------
//
// A batch: beginBatch, then files are written below the staging location that it names, partitions that are missing
// are added, and reportBatch ends it. A batch that was accepted is accepted once, however often it is run.

struct BeginBatchRequest {
  1: required TableReference table
  2: required string writer       // the query's name, the same after a restart; letters, digits, _ and -
  3: required i64 batch           // numbers rise
}

struct BeginBatchResponse {
  1: required bool accepted             // an earlier run was: nothing is to be done
  2: optional string stagingLocation    // where this run of the batch puts its files; unset if accepted
  3: optional string attempt            // names this run
  4: optional i64 watermark
}

// Where rows that belong to some partitions go.
struct RoutePartitionsRequest {
  1: required TableReference table
  2: required list<string> names
}

struct Route {
  1: required string name
  2: required string target       // the same name unless rows go elsewhere
  3: required bool late           // the partition is ready already, or its time has passed
  4: required string action       // write, next, reopen or drop
}

struct RoutePartitionsResponse {
  1: required list<Route> routes  // in the order of the request
}

struct StagedFile {
  1: required string path         // relative to the staging location
  2: required string partition    // the name of the partition that it joins
}

struct ReportBatchRequest {
  1: required TableReference table
  2: required string writer
  3: required i64 batch
  4: optional string chain                // which of several that write the same rows, by default "default"
  5: optional map<string, i64> eventTimes // per source: the smallest event time of the batch
  6: optional string attempt
  7: optional list<StagedFile> files
  8: optional list<string> partitions     // further partitions that the batch wrote to
  9: optional list<string> reopen         // partitions that it opens again, because late rows are for them
  10: optional LateRows late
}

struct ReportBatchResponse {
  1: required bool accepted             // by this report or an earlier one of the same batch
  2: required bool repeated             // by an earlier one: this one changed nothing
  3: required list<string> alreadyReady // why it wasn't: these turned ready, route their rows anew and report again
  4: optional i64 watermark
  5: required list<string> committed    // that turned ready by this report
}

// ---- events ------------------------------------------------------------------------------------------------------

struct EventRecord {
  1: required i64 number          // its place in the order of commits, from 1, without gaps
  2: required string type         // CREATE_TABLE, COMMIT_PARTITIONS, ...: see docs/events.md
  3: required i64 time
  4: optional string user
  5: optional string connection
  6: optional string catalog
  7: optional string database
  8: optional string table
  9: required string payload      // JSON
}

struct ReadEventsRequest {
  1: required i64 after           // the number of the last event that is known
  2: optional i32 limit           // at most so many
  3: optional list<string> tables // patterns of database.table with * for any characters; without any, all events
  4: optional list<string> types  // only these
  5: optional i64 maxWait         // milliseconds to wait for an event if there is none; the server bounds it
}

struct ReadEventsResponse {
  1: required list<EventRecord> events
  2: required i64 position        // go on after this one: events that the filters left out are behind it, too
  3: required i64 last            // the last event there is
}

struct EventPositions {
  1: required i64 oldest          // the first event that is kept
  2: required i64 last
  3: optional i64 group           // where the group that was asked for stands; unset: it has not begun
  4: optional i64 since           // the event after which those of the time that was asked for, and later, come
}

struct EventGroup {
  1: required string name
  2: required i64 position        // the last event that it has dealt with
  3: required i64 updatedAt
}

// An event that a webhook or listener did not take, whatever was tried.
struct DeadEvent {
  1: required string outlet
  2: required i64 number
  3: required string error        // of the last attempt
  4: required i32 attempts
  5: required i64 failedAt
  6: required bool resend         // it will be sent again
  7: optional string type         // unset, like the names: the event was gone before it could be delivered
  8: optional string catalog
  9: optional string database
  10: optional string table
}

// The events after the one that was named are no longer kept.
exception EventsGone {
  1: string message
  2: i64 oldest
}

service LakeMetastore {
  ListPartitionsResponse lake_list_partitions(1: ListPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.MetaException o2)
  CommitPartitionsResponse lake_commit_partitions(1: CommitPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  ReopenPartitionsResponse lake_reopen_partitions(1: ReopenPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)

  Watermark lake_get_watermark(1: TableReference table)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.MetaException o2)
  BeginBatchResponse lake_begin_batch(1: BeginBatchRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  RoutePartitionsResponse lake_route_partitions(1: RoutePartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  ReportBatchResponse lake_report_batch(1: ReportBatchRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)

  ReadEventsResponse lake_read_events(1: ReadEventsRequest request)
      throws (1: EventsGone o1, 2: hive_metastore.InvalidOperationException o2, 3: hive_metastore.MetaException o3)
  EventPositions lake_event_positions(1: string group, 2: i64 since)
      throws (1: hive_metastore.MetaException o1)
  list<EventGroup> lake_event_groups()
      throws (1: hive_metastore.MetaException o1)
  // What a group has dealt with; never goes back unless `reset`.
  void lake_acknowledge_events(1: string group, 2: i64 position, 3: bool reset)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Of one outlet, or of all.
  list<DeadEvent> lake_dead_events(1: string outlet)
      throws (1: hive_metastore.MetaException o1)
  // Has events of an outlet sent again, or all that it did not take; answers which.
  list<i64> lake_resend_events(1: string outlet, 2: list<i64> numbers)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
}

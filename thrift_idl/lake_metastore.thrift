// What this metastore offers beyond Hive's: which partitions are ready, how far event time has come, and the reports
// of streaming writers. Spoken on the same port as Hive's interface.
//
// Times are milliseconds since 1970-01-01 UTC. A table is named by catalog (by default "hive"), database and table;
// names are lower-cased. Partitions are named as in Hive: `dt=2026-01-31/hr=07`, values escaped.
//
// A table is its id, which is never given to another table. Replies say which table they are about. A client that read
// a table sends the id back with later calls. If the name belongs to another table by then, the call is refused with
// TableReplaced. Positions, versions and timestamps belong to a table, not to its name.

include "hive_metastore.thrift"

namespace java lake.metastore
namespace py lake_metastore

struct TableReference {
  1: optional string catalog
  2: required string database
  3: required string table
  4: optional i64 id              // of the table that the caller means; unset: whichever table has this name now
}

// The name that a request gives belongs to another table than the id that it gives: the table was dropped and created
// again, or another one was renamed to its name. Read the table's schema again.
exception TableReplaced {
  1: string message
  2: i64 id                       // of the table that has the name now
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
  10: optional i64 changedAt      // of a keyed table: the position of the last change of its files
  11: optional i64 publishedAt    // of a keyed table: the position that Hive sees; unset: none was ever published
  12: optional bool waitsForPublish   // it is due to turn ready, once Hive has its latest rows
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
  10: optional i64 tableId
}

// ---- streams ------------------------------------------------------------------------------------------------------

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
  10: optional i32 shard          // for the member of a group: the part of the group's work that it belongs to
}

struct ReadEventsRequest {
  1: required i64 after           // the number of the last event that is known
  2: optional i32 limit           // at most so many
  3: optional list<string> tables // patterns of database.table with * for any characters; without any, all events
  4: optional list<string> types  // only these
  5: optional i64 maxWait         // milliseconds to wait for an event if there is none; the server bounds it
  6: optional string history      // `history` of the response that `after` came from
}

struct ReadEventsResponse {
  1: required list<EventRecord> events
  2: required i64 position        // go on after this one: events that the filters left out are behind it, too
  3: required i64 last            // the last event there is
  4: optional string history      // of which history of the log that is: bring it along with the position
}

// The members of a group share its events by shards: a table's events are in one of them, so are a database's own.
// A member reads for the shards that it holds and says how far it is with each; a position counts under the generation that
// it was given with, so that nobody who lost a shard moves it.
struct ShardPosition {
  1: required i32 shard
  2: required i64 generation          // of this member; another holder, or the same one later, has another
  3: required i64 read            // the member was given its events up to here
  4: required i64 done            // and has dealt with them up to here
}

struct ReadGroupEventsRequest {
  1: required string group
  2: required string member       // a name that no other member has
  3: required i64 start           // after which event the group begins, if it has not yet
  4: optional list<ShardPosition> shards  // as the member knows them; of others it is given what nobody has dealt with
  5: optional i32 members         // as the member knows: if that has changed, there is no waiting; unset: it waits shortly
  6: optional i32 limit
  7: optional list<string> tables
  8: optional list<string> types
  9: optional i64 maxWait         // milliseconds; with several members the server responds sooner
  10: optional string history     // `history` of the last response
}

struct ReadGroupEventsResponse {
  1: required list<EventRecord> events   // by number; those of one shard follow those that the member was given before
  2: required list<ShardPosition> shards // what the member holds from now on
  3: required i32 members                // that share the work now
  4: required i64 last
  5: optional string history
}

struct EventPositions {
  1: required i64 oldest          // the first event that is kept
  2: required i64 last
  3: optional i64 group           // where the group that was asked for stands; unset: it has not begun
  4: optional i64 since           // the event after which those of the time that was asked for, and later, come
  5: optional string history      // to which these numbers belong
}

struct EventGroup {
  1: required string name
  2: required i64 position        // the last event that it has dealt with
  3: required i64 updatedAt
  4: optional i32 members         // that read for it now; unset for outlets
  5: optional i64 behind          // so many events are after its position
  6: optional i32 deadLetters     // dead letters of the outlet of that name
  7: optional i64 seenAt          // when somebody last read for it, give or take a minute
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

// The events after the requested position are no longer in the log, or the log was restored from a backup, and events
// that the subscriber has received are undone.
exception EventsGone {
  1: string message
  2: i64 oldest
  3: optional bool restored
}

// ---- timeline ----------------------------------------------------------------------------------------------------
//
// What happens to a lake table is an instant: requested, then inflight, then completed. Its key is its timestamp
// (yyyyMMddHHmmssSSS, or one that a writer brings) and its action: commit, deltacommit, compaction, logcompaction,
// clustering, replacecommit, clean, rollback, restore, savepoint, indexing or publish. States are requested, inflight,
// completed.
// The completions of a table are counted: its position. It goes on after the last position of any table that had the
// name before. All completions of all tables have a place in the order of
// events: a moment.

struct Instant {
  1: required string timestamp
  2: required string action
  3: required string state
  4: required i64 requestedAt
  5: required i64 changedAt             // when it came into its state
  6: optional i64 heartbeatAt           // when its writer last said that it lives; unset: it never did
  7: optional string completionTime     // yyyyMMddHHmmssSSS; later than that of every completion before it
  8: optional i64 position              // of its completion among the table's
  9: optional i64 moment                // of its completion among all tables': what a snapshot can be asked for
  10: optional string begunAs           // its action until it was completed, if that was another one
  11: optional i64 readPosition         // what its writer had read when it began
  12: optional bool archived
  13: optional string conflict          // why its completion was refused
  14: optional string undoneBy          // the timestamp of the rollback or restore that undid it
  15: optional string directory         // its own, where its writer may put files; in the answer to who begins it, or runs it
  16: optional i32 attempt              // how often it has become inflight; unset: never
  17: optional i64 tableId
  18: optional string name              // of a savepoint, if it has one: snapshots can be asked for by it
}

// A file group of a partition; an empty partition is the whole of a table without partition keys.
struct FileGroup {
  1: required string partition
  2: required string fileGroup
}

struct BeginInstantRequest {
  1: required TableReference table
  2: required string action
  3: optional string timestamp          // the writer's own; by default the server gives the next one. A savepoint's: what it keeps, by default the last
  4: optional string state              // requested (by default) or inflight
  5: optional binary metadata           // kept with that state, whatever it says
  6: optional i64 readPosition          // by default the table's position now
  7: optional list<FileGroup> plan      // what a table service is going to rewrite: opens a slice in each
  8: optional bool heartbeat            // its writer will go on sending heartbeats: this is the first one
  9: optional map<string, string> layout   // as in CompleteInstantRequest
  10: optional string name              // of a savepoint: the table has no other one of that name. Digits alone are none
}

struct TransitionInstantRequest {
  1: required TableReference table
  2: required string timestamp
  3: required string action
  4: required string toState            // requested or inflight; lake_complete_instants completes
  5: optional binary metadata
  6: optional string runner             // of the process that takes up a plan: by this its call is known when it is repeated
  7: optional i32 attempt               // the caller's: refused if the instant has been taken up again since
  8: optional bool heartbeat            // the process will go on sending heartbeats: this is the first one
}

struct InstantKey {
  1: required string timestamp
  2: required string action
}

struct ListInstantsRequest {
  1: required TableReference table
  2: optional list<string> actions
  3: optional list<string> states
  4: optional string after              // timestamps after this one
  5: optional string upTo               // timestamps up to this one
  6: optional i32 limit                 // at most so many, in the order of timestamps
  7: optional bool latestFirst
  8: optional bool includeArchived
}

struct InstantDetails {
  1: required Instant instant
  2: required map<string, binary> metadata   // by state
  3: required list<FileGroup> plan
  4: required list<string> partitions        // that its completion touched
}

// ---- files -------------------------------------------------------------------------------------------------------
//
// A table's snapshot is a set of files. Files of one file group hold the same rows over time; a slice of a group is a
// base file and the log files that change it. A base file supersedes the older slices of its group, or, if it holds
// some columns only, those columns' files in them.

struct DataFile {
  1: required string partition
  2: required string fileGroup
  3: required string slice              // the timestamp of the instant that opened the slice
  4: required string path               // relative to the table's location, or what that was before a `relocate`
  5: optional string kind               // base (by default) or log; of a file outside snapshots changelog
  6: required i64 size                  // bytes; of a log file that grew, as much as is valid
  7: optional i64 rows
  8: optional i64 minEventTime
  9: optional i64 maxEventTime
  10: optional list<string> columns     // that it holds; unset: all
  11: optional i32 version              // of a log file: its place in the slice
  12: optional binary statistics        // of its columns, whatever the writer makes of it
  13: optional i64 addedAt              // position; answers only
  14: optional i64 removedAt            // position; answers only
  15: optional bool staged              // `path` is in the instant's directory: the server moves it to its partition's
  16: optional i64 firstAddedAt         // position; of a file that a rollback brought back; answers only
}

struct Column {
  1: required string name
  2: required string type
  3: optional string comment
}

struct CompleteInstantRequest {
  1: required TableReference table
  2: required string timestamp
  3: required string action
  4: optional string newAction                  // compaction -> commit, logcompaction -> deltacommit, clustering -> replacecommit
  5: optional binary metadata
  6: optional list<DataFile> added
  7: optional list<FileGroup> removedGroups     // that others replace
  8: optional list<string> removedPaths         // single files
  9: optional list<string> replacedPartitions   // of which nothing stays but what is added
  10: optional string strategy                  // of this commit; by default the table's
  11: optional i64 readPosition                 // what the writer read since it began
  12: optional list<Column> columns             // the table's, from now on; without partition keys
  13: optional string chain
  14: optional map<string, i64> eventTimes      // per source: the smallest event time of what was written
  15: optional list<InstantKey> rolledBack      // of a rollback or restore: what it undoes
  16: optional list<string> cleanedPaths        // of a clean: files that nobody needs; the server deletes them
  // replacedPartitions lie in the instant's directory from now on; of a clustering the partitions of added files, too
  17: optional bool relocate
  // with columns, the table's: spark.sql.sources.schema and the like; if all files of a keyed table are replaced,
  // primary-key, bucket and bucket-key, too ('' for one that goes)
  18: optional map<string, string> schemaProperties
  // What was read is a condition: a change of its file groups since is a conflict, also where both only added log files.
  // By default log files of a keyed table's file group commute.
  19: optional bool conditional
  20: optional i32 attempt                      // the caller's: refused if another process has taken up the plan since
  // Of a publish, on a keyed table: partitions, '' for a table without partition keys, whose directory in the instant's
  // own is where Hive looks from now on. It has the base files of the snapshot at `readPosition`, and nothing else.
  21: optional list<string> published
  // A batch of a stream is part of a table once. Both are given, or none. The numbers of a stream's batches grow.
  22: optional string stream
  23: optional i64 batch
  // Of a commit of a keyed table: files of kind changelog, in the instant's directory, with all rows that it changes. An
  // empty list says that it changes none, an unset one that nobody wrote them down.
  24: optional list<DataFile> changelog
  // Of a keyed table: the properties by which the writer placed and merged rows, such as primary-key, bucket and
  // merge-engine; '' for a property without a value. If the table has another value now, the completion is refused.
  25: optional map<string, string> layout
  // Rows of partitions that are ready already follow `partition.late-rows`, as lake_route_partitions says. With this, a
  // completion that adds files to a ready partition, which `reopen` doesn't name, changes nothing: see `alreadyReady`.
  26: optional bool keepsReady
  27: optional list<string> reopen              // partitions that are uncommitted again, because late rows are for them
  28: optional LateRows late                    // what became of late rows: counted for the table
  // By which condition replacedPartitions were chosen: '' for all of the table's, else `key='value'` with AND and OR, the
  // values escaped as in partitions' names. A change since of any other partition for which it holds is a conflict.
  29: optional string replacedWhere
  // Of a keyed table whose key is unique over all partitions: names of file groups in which the writer has looked keys up. A
  // change of one of them since, in whatever partition, is a conflict, also where the completion itself changes none.
  30: optional list<string> readGroups
}

struct CompletedInstant {
  1: required TableReference table
  2: required Instant instant
  3: required bool repeated             // an earlier call had done it: this one changed nothing
  4: required i64 tableVersion
  // Another instant had completed this batch of the stream, or a later one. This instant has been aborted, by this call
  // or by an earlier one whose answer was lost.
  5: optional bool batchRepeated
  // Partitions that have turned ready since rows were routed. Nothing has changed, and the instant is still inflight:
  // route their rows again, and complete it again. Of several instants in one call it is set in all answers, empty where
  // the other tables' partitions are the reason.
  6: optional list<string> alreadyReady
}

// A completion that lost to others.
struct RejectedCommit {
  1: required string timestamp
  2: required string action             // under which it was begun
  3: required i64 requestedAt
  4: required i64 rejectedAt
  5: required list<i64> winners         // positions of the completions that were quicker
  6: required string reason
}

struct TimelinePosition {
  1: required i64 position
  2: optional string lastCompleted      // timestamp
  3: required i64 oldestReadable        // the first position whose snapshot is whole
  4: optional i64 moment                // of the last completion
  5: optional i64 tableVersion
  6: optional i64 changedAt             // of a keyed table without partition keys, as of a partition (PartitionState)
  7: optional i64 publishedAt
  8: optional i64 tableId
}

struct SnapshotRequest {
  1: required TableReference table
  2: optional string asOf               // what was complete when the instant of this timestamp was, or a savepoint's name
  3: optional i64 asOfPosition
  4: optional i64 asOfTime
  5: optional i64 asOfMoment
  6: optional list<string> partitions
  7: optional string filter             // of partitions, in Hive's grammar
  8: optional bool includeUncommitted
  9: optional bool readOptimized        // base files only
  10: optional i32 limit                // about so many files; file groups are not torn
  11: optional string after             // goes on after an answer's `nextPage`, at the same position
  12: optional bool allVersions         // superseded files that are not cleaned, too
}

struct SnapshotResponse {
  1: required i64 position
  2: required list<DataFile> files      // ordered by partition, file group, slice, base file, log version
  3: optional string nextPage             // there are more
  4: optional string location             // that paths are relative to
  5: optional i64 tableVersion
  6: optional i64 tableId
}

// What changed after one position up to another; nothing that came and went between them is left out.
struct ReadChangesRequest {
  1: required TableReference table
  2: required i64 after
  3: optional i64 upTo
  4: optional list<string> partitions
  5: optional string filter
  6: optional bool includeUncommitted
  7: optional i32 limit                 // of instants
  8: optional bool changelog            // changelog files instead, if all instants of the range have some that need them
}

struct InstantChanges {
  1: required Instant instant
  2: required list<DataFile> added
  3: required list<DataFile> removed
  4: optional list<DataFile> changelog  // with the rows that it changed
}

struct ReadChangesResponse {
  1: required list<InstantChanges> changes   // in the order of completions
  2: required i64 position                   // go on after this one
  3: optional string location                // that paths are relative to
  4: optional bool changelog                 // the answer has changelog files, and no others
  5: optional i64 tableVersion
  6: optional i64 tableId
}

// What nobody needs any more who reads the latest of `commits` completions, of `hours`, or of `versions` per group.
struct PlanCleanRequest {
  1: required TableReference table
  2: optional i32 keepCommits
  3: optional i32 keepHours
  4: optional i32 keepVersions
  5: optional i32 limit
}

// Files in directories of instants that belong to nothing which the metastore knows, and are old.
struct FindOrphansRequest {
  1: required TableReference table
  2: optional i32 olderThanHours        // 72 by default, 24 at least; by the clock of the storage
  3: optional string after              // go on after this directory
}

struct OrphanFile {
  1: required string path               // relative to the table, as those of its other files
  2: required i64 size
  3: required i64 modifiedAt            // in milliseconds since 1970
}

struct FindOrphansResponse {
  1: required list<OrphanFile> files
  2: required i64 examined              // files that were looked at
  3: optional string last               // directory behind which there may be more: ask again with it as `after`
}

struct RemoveOrphansRequest {
  1: required TableReference table
  2: required list<string> paths        // 10,000 at most; those that are no orphans any more stay
  3: optional i32 olderThanHours
}

// Another writer was quicker; nothing of what was to be completed is visible.
exception InstantConflict {
  1: string message
  2: list<Instant> winners
  3: list<string> overlap
  4: list<string> filesToRemove
}

// The snapshot that was asked for has lost files to a clean.
exception SnapshotGone {
  1: string message
  2: i64 oldestReadable                 // position
  3: string oldestInstant               // timestamp; unset: nothing is left
}

// ---- Hudi's own timelines ----------------------------------------------------------------------------------------
//
// Of a table whose timeline Hudi keeps in files, those files tell what its timeline and snapshot are here. They may be
// imported any number of times: known instants are skipped.

struct HudiInstant {
  1: required string timestamp
  2: required string action             // that it began as
  3: required string state              // requested, inflight or completed
  4: optional string completedAs        // another action
  5: optional binary metadata           // what Hudi wrote for that state; of one that is not completed, for requested
}

struct ImportHudiRequest {
  1: required TableReference table             // added if it isn't there, with its database
  2: required string location
  3: required map<string, string> properties   // of its hoodie.properties
  4: required list<HudiInstant> instants       // in the order in which they happened
  5: optional list<InstantKey> folder          // all there are, as they began: what is pending and not among them goes
  6: optional map<string, i64> olderFiles      // from before the timeline's first instant: paths and sizes
}

struct ImportedInstant {
  1: required string timestamp
  2: required string action
  3: required string state
  4: required bool fresh                // it was not known yet
  5: optional string remark             // why it was passed over
}

struct ImportHudiResponse {
  1: required bool tableAdded
  2: required list<ImportedInstant> instants
  3: required i64 position
}

// ---- the way over from another metastore ---------------------------------------------------------------------------

// Objects of another metastore, as they are kept there. All that a request brings is one transaction, in the order of the
// fields: names that an object refers to may be of the same request. Times, owners, parameters and bit vectors are kept.
// No directory is made, and none is looked into.
struct ImportRequest {
  1: optional list<hive_metastore.Catalog> catalogs
  2: optional list<hive_metastore.Database> databases
  3: optional list<hive_metastore.Function> functions
  4: optional list<hive_metastore.Table> tables
  5: optional list<hive_metastore.Partition> partitions
  6: optional list<hive_metastore.ColumnStatistics> statistics   // of tables, and of partitions by their names
  7: optional hive_metastore.SQLAllTableConstraints constraints  // all columns of a constraint in one request
  8: optional list<hive_metastore.Role> roles
  9: optional list<hive_metastore.RolePrincipalGrant> members
  10: optional list<hive_metastore.HiveObjectPrivilege> grants
  11: optional bool overwrite     // what is there and differs becomes as it is in the request; unset: it stays
  12: optional list<list<hive_metastore.FieldSchema>> columns  // lists of columns that partitions have in common
  13: optional list<i32> columnsOf  // for each partition the place of its list in them; -1: it has its own, or none
}

// An object that is there, and isn't as the request has it.
struct ImportDifference {
  1: required string kind         // catalog, database, function, table, partition, statistics, constraint, role, member, grant
  2: required string name
  3: required string difference   // what differs, in words
  4: required bool replaced       // whether it is as in the request by now
}

struct ImportResponse {
  1: required i64 added
  2: required i64 same            // were there already
  3: required list<ImportDifference> differences
}

// A metastore whose databases come over, and how far they have. Who follows it keeps this; `state` is its own.
struct FollowedSource {
  1: required string source       // the metastore, as its follower calls it
  2: required string databases    // which of its databases, as patterns
  3: required i64 holder          // rises each time that somebody takes it
  4: required i64 position        // up to here its notification log is dealt with
  5: required string state        // JSON
}

// ---- readers' leases ---------------------------------------------------------------------------------------------
//
// A lease keeps the files of a snapshot from cleans until it expires, by Postgres' clock. Who reads for longer renews it
// by the same call with the same id.

struct LeaseRequest {
  1: required TableReference table
  2: required string id                 // of the reader's own, unique within the table
  3: optional i64 position              // by default the latest
  4: required i32 seconds               // from now on
  5: optional string holder             // for people to read
  6: optional bool onwards              // on all later snapshots, too: for whoever reads what changes, or reads again
}

struct ReaderLease {
  1: required string id
  2: required TableReference table
  3: required i64 position
  4: required i64 expiresAt
  5: optional string holder
  6: optional bool onwards
}

// ---- table services ----------------------------------------------------------------------------------------------
//
// The table management service keeps its state here: what it decided of which table, and the queue of its jobs. Any number
// of them may run.

struct ServiceJob {
  1: required i64 id
  2: required TableReference table
  3: required string action             // compaction, clustering, clean, publish, orphans or iceberg
  4: required string state              // pending, running, succeeded, failed or cancelled
  5: optional string instant            // timestamp of the plan that it runs, or of the clean that it made
  6: optional string reason             // why it was enqueued
  7: optional double gain
  8: optional double cost               // estimated, in seconds; of one that has succeeded, what it took
  9: required i32 priority              // the greater one first
  10: required i32 attempts             // how often it was taken; the number of the running one fences it
  11: required i32 failures             // how many attempts in a row failed
  12: optional string worker
  13: required i64 enqueuedAt
  14: optional i64 startedAt            // of the last attempt
  15: optional i64 finishedAt
  16: optional i64 notBefore            // it is taken no sooner
  17: optional string outcome           // of the last attempt: succeeded, conflict, error, stopped, lost, busy or cancelled
  18: optional string log               // of the last attempt
  19: required bool stopping            // whoever runs it is asked to stop
  20: optional string windows           // when it may run; unset: at any time
  21: optional i64 bytes                // that it reads
  22: optional string pool              // of which so many run at a time
}

struct JobRequest {
  1: required string action
  2: optional string instant            // a plan that exists; unset: plan and run
  3: optional string reason
  4: optional double gain
  5: optional double cost
  6: optional i32 priority
  7: optional string windows
  8: optional i64 bytes
  9: optional string pool               // unset: the pool of the job that waits for the same, if one does
}

struct ServiceDecision {
  1: required string tableService       // compaction, clustering, clean, publish, orphans or iceberg
  2: optional string action             // unset: nothing is to be done
  3: required string reason
  4: optional string figures            // JSON
  5: optional double gain
  6: optional double cost
  7: optional i64 decidedAt
  8: optional i64 position              // of the table then
}

// What is to be counted of a table: its own policy says so.
struct ServiceFactsRequest {
  1: required TableReference table
  2: optional i64 smallFileBytes        // base files below it are small
  3: optional i64 targetFileBytes       // what they become
  4: optional binary order              // statistics of a file that is in order; unset: no order is wanted
  5: optional i32 keepCommits           // of a clean, one of the three at most
  6: optional i32 keepHours
  7: optional i32 keepVersions
  8: optional bool shared               // whether something else lies in the table's directory or around it
}

struct PendingPlan {
  1: required string timestamp
  2: required string action
  3: required string state
  4: required i64 requestedAt
  5: required i64 fileGroups
  6: optional string jobState           // of the latest job that was to run it
  7: optional i64 jobFinishedAt
}

// What engines reported of their reads and commits of a table.
struct EngineFigures {
  1: required i64 scans
  2: required i64 files                 // data files that the scans read
  3: required i64 deleteFiles
  4: required i64 bytes                 // of the data files
  5: required i64 planningMs
  6: required i64 commits
  7: required i64 attempts              // that the commits took
}

struct ServiceFacts {
  1: required TableReference table
  2: required i64 now                   // by Postgres' clock
  3: required i64 position
  4: required map<string, string> parameters
  5: required map<string, string> databaseParameters
  6: required string inputFormat
  7: required bool keyed
  8: optional string paused             // by whom, or why; unset: it isn't
  // Of the latest snapshot, without file groups of pending plans. Log files of tombstones alone don't count.
  9: required i64 logFiles
  10: required i64 logBytes
  11: required i64 logGroups            // file groups that have log files
  12: required i64 mergedBytes          // of their base files
  13: optional i64 oldestLogAt          // completion of the first instant whose log file is among them
  14: required i64 deltaCommits         // completed since the last compaction was planned
  15: required i64 smallFiles           // of partitions that would have fewer files
  16: required i64 smallBytes
  17: required i64 smallBecome          // files that these would become
  18: required i64 unorderedFiles
  19: required i64 unorderedBytes
  20: required i64 baseFiles
  21: required i64 baseBytes
  22: required i64 cleanFiles           // that a clean would delete now; at most 100,000 are counted
  23: required i64 cleanBytes
  24: optional i64 oldestSupersededAt   // completion of the first instant that superseded a file which is still there
  25: required list<PendingPlan> plans  // the oldest 1,000, the oldest first
  26: required list<ServiceJob> jobs    // the latest 30 of the table, the latest first, without logs
  27: optional i64 resumedAt            // what was set aside before is tried again
  28: optional string location          // of the table
  29: optional i64 unpublishedPartitions   // of a keyed table: that a publish would give Hive now
  30: optional i64 unpublishedCommits      // completed since the position that Hive sees of the oldest of them
  31: optional i64 orphansRemovedAt        // end of the latest job that removed orphan files
  32: optional bool shared                 // if it was asked for
  33: optional EngineFigures engines       // of the last 7 days, by the database's days in UTC
}

struct RecordDecisionsRequest {
  1: required TableReference table
  2: required i64 position              // of the facts
  3: required list<ServiceDecision> decisions
  4: optional list<JobRequest> jobs
  5: optional i64 lookAgainAt           // when time alone may change a decision
}

struct ListJobsRequest {
  1: optional TableReference table
  2: optional list<string> states
  3: optional i32 limit
  4: optional bool latestFirst          // by default in the order in which they are to be run
  5: optional bool withLogs
}

struct ListJobsResponse {
  1: required list<ServiceJob> jobs
  2: required i64 now
}

struct TakeJobRequest {
  1: required string worker
  2: required string call               // names this call: repeated, it gives the same job
  3: required list<i64> jobs            // the first of them that can be taken
  4: required i32 leaseSeconds          // until then without a heartbeat it counts as lost
  5: optional map<string, i32> quotas   // how many jobs may run, by database
  6: optional map<string, i32> poolQuotas   // and by pool
}

struct TakeJobResponse {
  1: optional ServiceJob job
}

struct FinishJobRequest {
  1: required i64 job
  2: required i32 attempt
  3: required string state              // succeeded, failed, cancelled, or pending: to be run again
  4: required string outcome
  5: optional string log
  6: optional i32 retrySeconds          // of pending
  7: optional double cost               // what it took
}

// A delegation token that this metastore has issued. Times are milliseconds since 1970.
struct DelegationToken {
  1: required i64 id
  2: required string owner
  3: optional string renewer
  4: optional string realUser           // who fetched it for the owner
  5: optional i64 issuedAt              // unset: an older server issued it
  6: required i64 validUntil
  7: required i64 renewableUntil
  8: required bool valid                // whether it has not expired, and its users have the passwords of then
}

// Whose tokens: those of an owner, or of everybody; without either the caller's own.
struct ListTokensRequest {
  1: optional string owner
  2: optional bool everybody
}

struct CancelTokensRequest {
  1: optional list<i64> tokens          // their ids; unset: all
  2: optional string owner
  3: optional bool everybody
}

// A table or view that is created or altered together with others.
struct TableCommit {
  1: required hive_metastore.Table table     // the new definition, under the name that it has or gets
  2: optional string expectedMetadataLocation  // the parameter metadata_location as the table must still have it;
                                             // unset: the table must not exist, and is created
  3: optional list<string> forgottenFiles    // metadata files that the table needs no more. Those below its location,
                                             // where no other table lies, are deleted after the commit
}

struct CommitTablesRequest {
  1: required list<TableCommit> commits
  2: optional bool checkOnly                 // decides about rights, names and expectations, and changes nothing
  3: optional list<string> places            // further locations that the caller names; they need the right as a
                                             // table's location does
  4: optional bool alone                     // with checkOnly: refused, too, where something else lies at a new table's
                                             // location, below or around it ("shared")
}

// Nothing of a request was done. `reason`: "changed" (the table has another metadata_location), "locked" (somebody else
// holds an exclusive lock on the table: try again), "exists" or "missing", of the commit at `index`, the first one that was
// refused; "busy" (the database: try again) or "storage" (it failed when a directory was to be made) of all of them.
exception TablesNotCommitted {
  1: string message
  2: string reason
  3: i32 index
}

// The names of a database's tables that Iceberg's REST catalog may list, each list in order.
struct IcebergNames {
  1: required list<string> tables      // those with table_type=ICEBERG
  2: required list<string> views       // and ICEBERG-VIEW
  3: required list<string> exposing    // those whose own property iceberg.expose is true
  4: required bool exposed             // whether the database's is
}

// A request of a client's own protocol, which may be sent again: by its key it has its effect once.
struct RequestKey {
  1: required string key               // a UUID, of the client's
  2: required binary digest            // of the whole request: another one with this key is refused
  3: optional string answer            // kept with the effect, for who sends the request again
}

// What became of a request; all is unset if nothing is kept of it.
struct RequestOutcome {
  1: optional bool other               // the key is another request's, and nothing else is said
  2: optional i32 refusal              // the status with which it was refused; unset: it was done
  3: optional i64 table                // the id of the one table that it changed
  4: optional string answer            // of the change, or of the refusal
  5: optional bool done                // it was done or refused, for good
}

service LakeMetastore {
  // The directory in which all is a table's own, for who may read it whole; empty if another table, a partition elsewhere or a
  // database lies at it, below or around it. `write`: for who may also change it. `uncommitted`: uncommitted partitions may lie
  // there.
  string lake_data_place(1: TableReference table, 2: bool write, 3: bool uncommitted)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3, 4: TableReplaced o4)
  // From here on a change by this connection is this request's: lake_commit_tables, and Hive's calls that Iceberg's REST
  // catalog makes. It is noted in the same transaction, and a second one is refused. Answers what is kept already.
  RequestOutcome lake_begin_request(1: RequestKey request) throws (1: hive_metastore.MetaException o1)
  // The request ends. `refusal`: the status with which it is refused, to be kept unless something is; 0: nothing is to be
  // kept. Answers what is kept now. Unset: nothing is looked up.
  RequestOutcome lake_end_request(1: i32 refusal, 2: string answer) throws (1: hive_metastore.MetaException o1)
  // `database` may have a catalog, as in Hive's calls: @catalog#database
  IcebergNames lake_list_iceberg(1: string database)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.MetaException o2)
  void lake_commit_tables(1: CommitTablesRequest request)
      throws (1: TablesNotCommitted o1, 2: hive_metastore.InvalidObjectException o2,
              3: hive_metastore.InvalidOperationException o3, 4: hive_metastore.NoSuchObjectException o4,
              5: hive_metastore.MetaException o5)
  ListPartitionsResponse lake_list_partitions(1: ListPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.MetaException o2,
              3: TableReplaced o3)
  CommitPartitionsResponse lake_commit_partitions(1: CommitPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  ReopenPartitionsResponse lake_reopen_partitions(1: ReopenPartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)

  Watermark lake_get_watermark(1: TableReference table)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.MetaException o2,
              3: TableReplaced o3)
  RoutePartitionsResponse lake_route_partitions(1: RoutePartitionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  ReadEventsResponse lake_read_events(1: ReadEventsRequest request)
      throws (1: EventsGone o1, 2: hive_metastore.InvalidOperationException o2, 3: hive_metastore.MetaException o3)
  EventPositions lake_event_positions(1: string group, 2: i64 since)
      throws (1: hive_metastore.MetaException o1)
  list<EventGroup> lake_event_groups()
      throws (1: hive_metastore.MetaException o1)
  // As a member of a group; a sign of life.
  ReadGroupEventsResponse lake_read_group_events(1: ReadGroupEventsRequest request)
      throws (1: EventsGone o1, 2: hive_metastore.InvalidOperationException o2, 3: hive_metastore.MetaException o3)
  // How far a member is with shards, and a sign of life; answers which of its shards it holds.
  list<ShardPosition> lake_acknowledge_shards(1: string group, 2: string member, 3: list<ShardPosition> shards,
                                              4: string history)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2, 3: EventsGone o3)
  // A member goes: others take its shards at once.
  void lake_leave_group(1: string group, 2: string member, 3: list<ShardPosition> shards, 4: string history)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2, 3: EventsGone o3)
  // What a group has dealt with as a whole; never goes back unless `reset`.
  void lake_acknowledge_events(1: string group, 2: i64 position, 3: bool reset)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Forgets a group, or the position of an outlet: it keeps no events any more, and begins anew when it is used.
  void lake_delete_event_group(1: string name)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  // Of one outlet, or of all.
  list<DeadEvent> lake_dead_events(1: string outlet)
      throws (1: hive_metastore.MetaException o1)
  // Has events of an outlet sent again, or all that it did not take; answers which.
  list<i64> lake_resend_events(1: string outlet, 2: list<i64> numbers)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Forgets events that an outlet did not take, or all of them; answers which.
  list<i64> lake_discard_events(1: string outlet, 2: list<i64> numbers)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)

  Instant lake_begin_instant(1: BeginInstantRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // The same transition again is a success. A table service's plan is taken up by one process only: the repeated call needs
  // the same `runner`.
  Instant lake_transition_instant(1: TransitionInstantRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // All of them in one transaction, of one table or several, or none.
  list<CompletedInstant> lake_complete_instants(1: list<CompleteInstantRequest> requests)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: InstantConflict o4,
              5: TableReplaced o5)
  // `attempt`: as of a transition.
  void lake_heartbeat_instant(1: TableReference table, 2: string timestamp, 3: string action, 4: i32 attempt)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Forgets an instant that is not completed, or a savepoint; its files go.
  void lake_delete_instant(1: TableReference table, 2: string timestamp, 3: string action)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  list<Instant> lake_list_instants(1: ListInstantsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  InstantDetails lake_get_instant(1: TableReference table, 2: string timestamp, 3: string action)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // The latest 1,000 completions of a table that lost to others, also of instants that have been aborted since.
  list<RejectedCommit> lake_list_rejected_commits(1: TableReference table)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  TimelinePosition lake_timeline_position(1: TableReference table)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)

  SnapshotResponse lake_get_snapshot(1: SnapshotRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: SnapshotGone o4,
              5: TableReplaced o5)
  ReadChangesResponse lake_read_changes(1: ReadChangesRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: SnapshotGone o4,
              5: TableReplaced o5)
  list<DataFile> lake_plan_clean(1: PlanCleanRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  FindOrphansResponse lake_find_orphans(1: FindOrphansRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Schedules their deletion; returns of how many.
  i32 lake_remove_orphans(1: RemoveOrphansRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)

  ImportHudiResponse lake_import_hudi(1: ImportHudiRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Has the server itself look into the folder of the table that lies there, as its commit callback does; several tables
  // may, then the name decides.
  ImportHudiResponse lake_refresh_hudi(1: string location, 2: string name)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)

  // Keeps objects of another metastore as they are there. It may be repeated: what is there already stays as it is.
  ImportResponse lake_import(1: ImportRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  list<FollowedSource> lake_list_followed() throws (1: hive_metastore.MetaException o1)
  // From here on this connection changes things only as long as nobody else takes the source: each of its transactions is
  // refused then. Without `holder` it takes the source; with it, it joins who has taken it.
  FollowedSource lake_take_followed(1: string source, 2: string databases, 3: i64 holder)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Keeps position and state; refused if somebody else has taken the source.
  void lake_keep_followed(1: FollowedSource followed)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)

  // Takes or renews a lease on a snapshot that can be read.
  ReaderLease lake_lease_snapshot(1: LeaseRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: SnapshotGone o4,
              5: TableReplaced o5)
  // One that isn't there is fine.
  void lake_release_lease(1: TableReference table, 2: string id)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  list<ReaderLease> lake_list_leases(1: TableReference table)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)

  // All that decisions about a table's services are made from.
  ServiceFacts lake_service_facts(1: ServiceFactsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Adds what an engine reports to the figures of today.
  void lake_report_figures(1: TableReference table, 2: EngineFigures figures)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Keeps decisions, and enqueues jobs: one waits per table, action and plan. Answers the waiting ones.
  list<ServiceJob> lake_record_decisions(1: RecordDecisionsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // The latest first.
  list<ServiceDecision> lake_list_decisions(1: TableReference table, 2: i32 limit)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  // Tables at which the service should look, since time may have changed a decision, or a commit was missed.
  list<TableReference> lake_due_tables(1: i32 limit)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Enqueues a job at once, whatever was decided.
  ServiceJob lake_submit_job(1: TableReference table, 2: JobRequest job)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  ListJobsResponse lake_list_jobs(1: ListJobsRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3,
              4: TableReplaced o4)
  TakeJobResponse lake_take_job(1: TakeJobRequest request)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)
  // Says that the process runs which took the job; answers whether it shall stop. Refused if it has been taken since.
  bool lake_heartbeat_job(1: i64 job, 2: i32 attempt, 3: i32 leaseSeconds)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  // Says which plan a job runs; false if that is another job's.
  bool lake_claim_plan(1: i64 job, 2: i32 attempt, 3: string instant)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  ServiceJob lake_finish_job(1: FinishJobRequest request)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  // Ends a pending job, and asks who runs a running one to stop.
  ServiceJob lake_cancel_job(1: i64 job)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  // While a table is paused none of its jobs is taken, and running ones are asked to stop. Without a reason it goes on, and
  // what was set aside is tried again.
  void lake_pause_table_services(1: TableReference table, 2: string reason)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
               3: hive_metastore.MetaException o3,
               4: TableReplaced o4)

  // Delegation tokens. Those of others are for administrators.
  list<DelegationToken> lake_list_tokens(1: ListTokensRequest request) throws (1: hive_metastore.MetaException o1)
  // Ends tokens, and the connections that logged in with them; answers which.
  list<i64> lake_cancel_tokens(1: CancelTokensRequest request) throws (1: hive_metastore.MetaException o1)
}

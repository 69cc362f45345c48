// Apache Hudi's metaserver interface.

namespace java org.apache.hudi.metaserver.thrift

enum TAction {
  COMMIT = 1,
  DELTACOMMIT = 2,
  CLEAN = 3,
  ROLLBACK = 4,
  SAVEPOINT = 5,
  REPLACECOMMIT = 6,
  COMPACTION = 7,
  RESTORE = 8
}

enum TState {
  REQUESTED = 1,
  INFLIGHT = 2,
  COMPLETED = 3,
  NIL = 4
}

struct FieldSchema {
  1: string name,
  2: string type,
  3: string comments
}

struct THoodieInstant {
  1: string timestamp,
  2: TAction action,
  3: TState state
}

struct HoodieInstantChangeResult {
  1: bool success,
  2: optional THoodieInstant instant,
  4: optional string msg
}

struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i64 createTime,
  5: string location,
  6: string tableType,
  7: list<FieldSchema> partitionKeys,
  8: map<string,string> parameters
}

exception AlreadyExistException {
  1: string message
}

exception MetaserverException {
  1: string message
}

exception MetaserverStorageException {
  1: string message
}

exception NoSuchObjectException {
  1: string message
}

// The exceptions are those of the classes in Hudi's released bundles (0.13 to 1.2).
service ThriftHoodieMetaserver {
  void createDatabase(1: string db)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2, 3: AlreadyExistException o3)
  string createNewInstantTime(1: string db, 2: string tb)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  HoodieInstantChangeResult createNewInstantWithTime(
      1: string db,
      2: string tb,
      3: THoodieInstant instant,
      4: binary content)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  void createTable(1: Table table)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2, 3: AlreadyExistException o3,
              4: MetaserverException o4)
  HoodieInstantChangeResult deleteInstant(1: string db, 2: string tb, 3: THoodieInstant instant)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  binary getInstantMetadata(1: string db, 2: string tb, 3: THoodieInstant instant)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  Table getTable(1: string db, 2: string tb)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  list<THoodieInstant> listInstants(1: string db, 2: string tb, 3: i32 num)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2)
  HoodieInstantChangeResult transitionInstantState(
      1: string db,
      2: string tb,
      3: THoodieInstant fromInstant,
      4: THoodieInstant toInstant,
      5: binary metadata)
      throws (1: MetaserverStorageException o1, 2: NoSuchObjectException o2, 3: MetaserverException o3)
}

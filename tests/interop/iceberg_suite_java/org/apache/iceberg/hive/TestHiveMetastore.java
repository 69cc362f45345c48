package org.apache.iceberg.hive;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.thrift.TException;

/**
 * Stands before the class of the same name in Iceberg's tests. That one starts Hive's server; this one stands for the
 * server whose address and warehouse are among the system properties (`interop.uri`, `interop.warehouse`).
 */
public class TestHiveMetastore {
  private static final String URI = System.getProperty("interop.uri");
  private static final Path WAREHOUSE = Path.of(System.getProperty("interop.warehouse"));

  private HiveConf conf;
  private HiveClientPool clients;

  public void start() {
    start(new HiveConf(new Configuration(), TestHiveMetastore.class));
  }

  public void start(HiveConf conf) {
    start(conf, 0);
  }

  public void start(HiveConf conf, int threads) {
    start(conf, threads, false);
  }

  public void start(HiveConf conf, int threads, boolean directSql) {
    conf.set("hive.metastore.uris", URI);
    conf.set("hive.metastore.warehouse.dir", "file:" + WAREHOUSE);
    conf.set("hive.in.test", "false");
    // As in Iceberg's own.
    conf.set("iceberg.hive.client-pool-size", "2");
    System.setProperty("hive.metastore.uris", URI);
    this.conf = conf;
    this.clients = new HiveClientPool(1, conf);
  }

  public void stop() throws Exception {
    reset();
    clients.close();
  }

  public HiveConf hiveConf() {
    return conf;
  }

  public String getDatabasePath(String database) {
    return WAREHOUSE.resolve(database + ".db").toString();
  }

  /** Leaves the server and its warehouse as they were at first. */
  public void reset() throws Exception {
    clients.run(
        client -> {
          for (String database : client.getAllDatabases()) {
            reset(client, database);
          }
          return null;
        });
    emptyWarehouse();
  }

  private static void reset(IMetaStoreClient client, String database) throws TException {
    for (String table : client.getAllTables(database)) {
      client.dropTable(database, table, true, true, true);
    }
    if (!database.equals("default")) {
      client.dropDatabase(database, true, true, true);
    }
  }

  private static void emptyWarehouse() throws IOException {
    Files.walkFileTree(
        WAREHOUSE,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
            Files.delete(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path directory, IOException failure) throws IOException {
            if (!directory.equals(WAREHOUSE)) {
              Files.delete(directory);
            }
            return FileVisitResult.CONTINUE;
          }
        });
  }

  public Table getTable(String database, String table) throws TException, InterruptedException {
    return clients.run(client -> client.getTable(database, table));
  }

  public Table getTable(TableIdentifier name) throws TException, InterruptedException {
    return getTable(name.namespace().toString(), name.name());
  }
}

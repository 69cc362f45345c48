import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.RetryingMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.AlreadyExistsException;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/**
 * Hive's own clients, as Hive and Spark make them, each in a thread: they make tables in database "d" and use them until
 * standard input ends. Prints how many so far, a line for each, and at the end either "fine" or the first failure.
 */
public class Failover {
  private static final AtomicInteger made = new AtomicInteger();
  private static volatile boolean stop;
  private static volatile Throwable failure;

  public static void main(String[] arguments) throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      int mine = number;
      Thread thread = new Thread(() -> run(arguments[0], mine));
      threads.add(thread);
      thread.start();
    }
    while (System.in.read() != -1) {
    }
    stop = true;
    for (Thread thread : threads) {
      thread.join();
    }
    if (failure != null) {
      failure.printStackTrace();
    }
    System.out.println(failure == null ? "fine" : failure.toString());
    System.exit(0);
  }

  private static void run(String uris, int mine) {
    try {
      HiveConf configuration = new HiveConf();
      configuration.setVar(HiveConf.ConfVars.METASTOREURIS, uris);
      IMetaStoreClient client = RetryingMetaStoreClient.getProxy(configuration, false);
      for (int number = 0; !stop && failure == null; number++) {
        use(client, "j" + mine + "_" + number);
        synchronized (made) {
          System.out.println(made.incrementAndGet());
        }
      }
      client.close();
    } catch (Throwable error) {
      failure = error;
    }
  }

  private static void use(IMetaStoreClient client, String name) throws Exception {
    Table table = new Table();
    table.setDbName("d");
    table.setTableName(name);
    table.setTableType("MANAGED_TABLE");
    table.setSd(storage());
    table.setPartitionKeys(Collections.singletonList(new FieldSchema("ds", "string", null)));
    table.putToParameters("seen", "no");
    try {
      client.createTable(table);
    } catch (AlreadyExistsException lost) {
      // Hive's client repeats the call when the answer to the first one was lost; "if not exists" ignores this.
    }
    Partition partition = new Partition();
    partition.setDbName("d");
    partition.setTableName(name);
    partition.addToValues("1");
    partition.setSd(storage());
    client.add_partitions(Collections.singletonList(partition), true, false);
    check(client.listPartitionNames("d", name, (short) -1).equals(Collections.singletonList("ds=1")), "partitions");
    Table found = client.getTable("d", name);
    found.putToParameters("seen", "yes");
    client.alter_table("d", name, found);
    check(client.getTable("d", name).getParameters().get("seen").equals("yes"), "parameters");
    client.dropTable("d", name, true, true);
    check(!client.tableExists("d", name), "dropped");
  }

  private static StorageDescriptor storage() {
    StorageDescriptor descriptor = new StorageDescriptor();
    descriptor.setCols(Collections.singletonList(new FieldSchema("id", "bigint", null)));
    SerDeInfo serde = new SerDeInfo();
    serde.setSerializationLib("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe");
    descriptor.setSerdeInfo(serde);
    return descriptor;
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new IllegalStateException(what);
    }
  }
}

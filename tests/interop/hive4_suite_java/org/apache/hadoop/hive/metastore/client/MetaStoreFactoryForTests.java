package org.apache.hadoop.hive.metastore.client;

import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.MetaStoreTestUtils;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.minihms.AbstractMetaStoreService;

/**
 * Stands before the class of the same name in Hive's tests, and names one service for them: the server whose address and
 * warehouse are among the system properties (`metastore.thrift.uris`, `metastore.warehouse.dir`).
 */
public final class MetaStoreFactoryForTests {
  private MetaStoreFactoryForTests() {}

  public static List<Object[]> getMetaStores() {
    Configuration conf = MetastoreConf.newMetastoreConf();
    // As in Hive's own: few enough that the tests see how a client asks in several parts.
    MetastoreConf.setLongVar(conf, ConfVars.BATCH_RETRIEVE_MAX, 2);
    MetastoreConf.setLongVar(conf, ConfVars.BATCH_RETRIEVE_OBJECTS_MAX, 2);
    MetaStoreTestUtils.setConfForStandloneMode(conf);
    AbstractMetaStoreService server = new AbstractMetaStoreService(conf) {};
    // So are those called that run behind Thrift; one class goes by it.
    return Collections.singletonList(new Object[] {"Remote", server});
  }
}

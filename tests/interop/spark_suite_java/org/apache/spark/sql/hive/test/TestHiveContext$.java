package org.apache.spark.sql.hive.test;

import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import org.apache.spark.SparkContext;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * Stands before the object `TestHiveContext` in Spark's tests. That one puts the warehouse into a new directory; this one
 * says where the server has it (the system property `interop.warehouse`).
 */
public final class TestHiveContext$ implements Serializable {
  public static final TestHiveContext$ MODULE$ = new TestHiveContext$();

  private TestHiveContext$() {}

  public File makeWarehouseDir() {
    return new File(System.getProperty("interop.warehouse"));
  }

  /** The name of a directory that isn't there yet. */
  public File makeScratchDir() {
    try {
      File directory = Files.createTempDirectory("scratch").toFile();
      directory.delete();
      return directory;
    } catch (IOException failure) {
      throw new IllegalStateException(failure);
    }
  }

  public Map<String, String> overrideConfs() {
    return Map$.MODULE$.<String, String>empty().updated("spark.sql.shuffle.partitions", "5");
  }

  /** Whether test tables are loaded, where the constructor of TestHiveContext isn't told. */
  public boolean $lessinit$greater$default$2() {
    return true;
  }

  public SparkContext org$apache$spark$sql$hive$test$TestHiveContext$$withHiveExternalCatalog(SparkContext context) {
    context.conf().set("spark.sql.catalogImplementation", "hive");
    return context;
  }
}

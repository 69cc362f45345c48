package org.apache.spark.sql.lake

import org.apache.spark.sql.SQLQueryTestSuite

/** Spark's queries with the answers on file. Plans are not compared here: they name the catalog, which is ours. */
class LakeQueries extends SQLQueryTestSuite {
  override def ignoreList: Set[String] = super.ignoreList + "analyzer_test"
}

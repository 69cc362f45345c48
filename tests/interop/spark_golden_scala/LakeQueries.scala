package org.apache.spark.sql.lake

import org.apache.spark.sql.SQLQueryTestSuite

/** Spark's queries with the answers on file. Plans are not compared here: they name the catalog, which is ours. */
class LakeQueries extends SQLQueryTestSuite {
  override def ignoreList: Set[String] = super.ignoreList + "analyzer_test"

  /** Each file once: how Spark compiles its queries has nothing to do with the catalog. */
  override def getSparkConfigDimensions(comments: Array[String]): Seq[Seq[(String, String)]] = Seq(Nil)
}

package org.apache.spark.sql.lake

import org.apache.spark.sql.SQLQueryTestSuite

/** Spark's queries with the answers and the plans on file, each file once: how Spark compiles them isn't our matter. */
class ExtensionQueries extends SQLQueryTestSuite {
  override def getSparkConfigDimensions(comments: Array[String]): Seq[Seq[(String, String)]] = Seq(Nil)
}

/** Answers alone: plans name the catalog, which is ours. */
class LakeQueries extends ExtensionQueries {
  override def ignoreList: Set[String] = super.ignoreList + "analyzer_test"
}

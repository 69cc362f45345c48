package lake.suites

import org.apache.spark.sql.{classic, DataFrame, SaveMode, SparkSession}
import org.apache.spark.sql.connector.InsertIntoTests
import org.apache.spark.sql.test.SharedSparkSession

/** The session of all suites: its settings are system properties. */
object LakeSession {
  lazy val spark: classic.SparkSession =
    SparkSession.builder().enableHiveSupport().getOrCreate().asInstanceOf[classic.SparkSession]
}

/** Tests of inserts, whose tables have a timeline and no key. */
abstract class LakeInserts extends InsertIntoTests(true, true) with SharedSparkSession {
  override protected val catalogAndNamespace: String = ""
  override protected val v2Format: String = "parquet TBLPROPERTIES ('timeline.archived-days' = '9')"

  override protected implicit def spark: classic.SparkSession = LakeSession.spark
  override protected def initializeSession(): Unit = spark

  override def afterAll(): Unit = () // the session serves all suites

  override protected def verifyTable(tableName: String, expected: DataFrame): Unit =
    checkAnswer(spark.table(tableName), expected)
}

/** Inserts by statements. */
class SqlInserts extends LakeInserts {
  override protected def doInsert(tableName: String, insert: DataFrame, mode: SaveMode): Unit =
    withTempView("given") {
      insert.createOrReplaceTempView("given")
      val how = if (mode == SaveMode.Overwrite) "OVERWRITE" else "INTO"
      sql(s"INSERT $how TABLE $tableName SELECT * FROM given")
    }
}

/** Inserts by DataFrames. */
class DataFrameInserts extends LakeInserts {
  override protected def doInsert(tableName: String, insert: DataFrame, mode: SaveMode): Unit = {
    val writer = insert.write
    (if (mode == null) writer else writer.mode(mode)).insertInto(tableName)
  }
}

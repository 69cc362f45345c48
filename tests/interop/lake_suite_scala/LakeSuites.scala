package lake.suites

import org.apache.spark.sql.{classic, DataFrame, SaveMode, SparkSession}
import org.apache.spark.sql.connector.{AlterTableTests, DeleteFromTests, InsertIntoTests}
import org.apache.spark.sql.connector.catalog.{Identifier, Table, TableCatalog}
import org.apache.spark.sql.test.SharedSparkSession

/** The session of all suites: its settings are system properties. */
object LakeSession {
  lazy val spark: classic.SparkSession =
    SparkSession.builder().enableHiveSupport().getOrCreate().asInstanceOf[classic.SparkSession]
}

/** Tests that make their tables as lake tables, whatever they are made for. */
trait LakeTables extends SharedSparkSession {
  protected def properties: String

  protected val catalogAndNamespace: String = ""
  protected val v2Format: String = s"parquet TBLPROPERTIES ($properties)"

  override protected implicit def spark: classic.SparkSession = LakeSession.spark
  override protected def initializeSession(): Unit = spark

  override def afterAll(): Unit = () // the session serves all suites
}

trait KeyedTables extends LakeTables {
  override protected def properties: String = "'primary-key' = 'id'"
}

abstract class LakeInserts extends InsertIntoTests(true, true) with LakeTables {
  override protected def verifyTable(tableName: String, expected: DataFrame): Unit =
    checkAnswer(spark.table(tableName), expected)
}

/** Inserts by statements. */
abstract class SqlInserts extends LakeInserts {
  override protected def doInsert(tableName: String, insert: DataFrame, mode: SaveMode): Unit =
    withTempView("given") {
      insert.createOrReplaceTempView("given")
      val how = if (mode == SaveMode.Overwrite) "OVERWRITE" else "INTO"
      sql(s"INSERT $how TABLE $tableName SELECT * FROM given")
    }
}

/** Inserts by DataFrames. */
abstract class DataFrameInserts extends LakeInserts {
  override protected def doInsert(tableName: String, insert: DataFrame, mode: SaveMode): Unit = {
    val writer = insert.write
    (if (mode == null) writer else writer.mode(mode)).insertInto(tableName)
  }
}

class KeyedSqlInserts extends SqlInserts with KeyedTables
class KeyedDataFrameInserts extends DataFrameInserts with KeyedTables

class KeyedDeletes extends DeleteFromTests with KeyedTables

class KeyedAlterations extends AlterTableTests with KeyedTables {
  override def getTableMetadata(tableName: String): Table = {
    val Array(database, name) = tableName.split('.').takeRight(2)
    spark.sessionState.catalogManager.catalog("spark_catalog").asInstanceOf[TableCatalog]
      .loadTable(Identifier.of(Array(database), name))
  }
  override protected val catalogAndNamespace: String = "default."
}

package org.apache.spark.sql.lake

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.{classic, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedIdentifier, UnresolvedRelation}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{ColumnDefinition, CreateTable, InsertIntoStatement}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types._

/** The session of all suites: its settings are system properties. */
object LakeSession {
  val catalogSetting = "spark.sql.catalog.spark_catalog"

  lazy val spark: classic.SparkSession =
    SparkSession.builder().enableHiveSupport().getOrCreate().asInstanceOf[classic.SparkSession]

  /** Ends what a suite did to the session: those of deletes take its catalog away before each test. */
  def reset(): Unit = {
    spark.conf.set(catalogSetting, System.getProperty(catalogSetting))
    spark.sessionState.catalogManager.reset()
  }
}

/** What makes a Parquet table of a suite one of ours: its properties, by its columns; none for other tables. */
trait TableKind {
  def properties(columns: Seq[ColumnDefinition], partitions: Set[String]): Seq[(String, String)]
}

/** Tables with a timeline, without a key. */
object WithoutKey extends TableKind {
  override def properties(columns: Seq[ColumnDefinition], partitions: Set[String]): Seq[(String, String)] =
    Seq("timeline.archived-days" -> "9")
}

/** Keyed tables. The key is the first column that can be one; with `inPartitions` the partitions' columns, too. */
case class Keyed(inPartitions: Boolean, others: (String, String)*) extends TableKind {
  override def properties(columns: Seq[ColumnDefinition], partitions: Set[String]): Seq[(String, String)] = {
    val key =
      columns.find(each => isKey(each.dataType) && !partitions.contains(each.name.toLowerCase(Locale.ROOT)))
    val all = key.map(_.name).toSeq ++ (if (inPartitions) partitions else Nil)
    key.toSeq.flatMap(_ => ("primary-key" -> all.mkString(",")) +: others)
  }

  private def isKey(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType | StringType | DateType | BooleanType => true
    case _ => false
  }
}

/** A suite whose statements make tables of ours. */
trait LakeTables extends SharedSparkSession {
  protected def kind: TableKind

  /** The columns of tables as they were declared, where Spark's catalog has another order: those of partitions last. */
  protected val declared = mutable.Map[String, Seq[String]]()

  private val into =
    """(?is)^\s*INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?[\w.]+(?:\s+PARTITION\s*\([^)]*\))?(?:\s+IF NOT EXISTS)?""".r
  private val using = """(?i)\bUSING\s+(\w+)""".r
  private val given = """(?i)TBLPROPERTIES\s*\(""".r

  override protected implicit def spark: classic.SparkSession = LakeSession.spark
  override protected def initializeSession(): Unit = spark
  override def afterAll(): Unit = () // the session serves all suites

  override def beforeEach(): Unit = {
    LakeSession.reset()
    super.beforeEach()
  }

  /** A test that failed may have left its tables. */
  override def afterEach(): Unit = {
    LakeSession.reset()
    spark.catalog.listTables("default").collect().filterNot(_.isTemporary).foreach { each =>
      spark.sql(s"DROP ${if (each.tableType == "VIEW") "VIEW" else "TABLE"} IF EXISTS default.`${each.name}`")
    }
    super.afterEach()
  }

  override protected lazy val sql: String => DataFrame = statement => spark.sql(ours(statement))

  /** `cat` is the catalog of suites for rows. `foo` is a provider of Spark's tests. */
  protected def ours(statement: String): String = {
    val text = statement
      .replaceAll("""\bcat\.ns1\b""", "spark_catalog.ns1")
      .replaceAll("""(?i)USING foo\b""", "USING parquet")
    val start = text.trim.toUpperCase(Locale.ROOT)
    try {
      if (!start.startsWith("CREATE TABLE") && !start.startsWith("INSERT")) text
      else spark.sessionState.sqlParser.parsePlan(text) match {
        case made: CreateTable if made.tableSpec.provider.forall(_ == "parquet") => withProperties(text, made)
        case insert: InsertIntoStatement if insert.userSpecifiedCols.isEmpty && !insert.byName =>
          withColumns(text, insert)
        case _ => text
      }
    } catch {
      case _: ParseException => text
    }
  }

  /** Values of an insert are given in the order in which the columns were declared. */
  private def withColumns(text: String, insert: InsertIntoStatement): String = {
    val name = insert.table.collectFirst { case found: UnresolvedRelation => found.multipartIdentifier.last }
    val given = insert.partitionSpec.collect { case (column, Some(_)) => column }.toSet
    name.flatMap(declared.get) match {
      case Some(columns) =>
        val named = columns.filterNot(given.contains).map(each => s"`$each`").mkString("(", ", ", ")")
        into.replaceFirstIn(text, s"$$0 $named")
      case None => text
    }
  }

  /** All columns of a table, in the order in which they were declared. Other rows are as they are. */
  protected def asDeclared(rows: DataFrame): DataFrame =
    declared.values.find(_.sorted == rows.columns.toSeq.sorted) match {
      case Some(columns) => rows.select(columns.map(each => rows(s"`$each`")): _*)
      case None => rows
    }

  private def withProperties(text: String, made: CreateTable): String = {
    val partitions =
      made.partitioning.flatMap(_.references.map(_.fieldNames.mkString("."))).map(_.toLowerCase(Locale.ROOT))
    val properties = kind.properties(made.columns, partitions.toSet)
    val name = made.name.collectFirst { case found: UnresolvedIdentifier => found.nameParts.last }
    val columns = made.columns.map(_.name)
    val (last, first) = columns.partition(each => partitions.contains(each.toLowerCase(Locale.ROOT)))
    name.foreach(each => if (first ++ last == columns) declared.remove(each) else declared.put(each, columns))
    val shown = properties.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    if (properties.isEmpty) text
    else if (given.findFirstIn(text).isDefined) given.replaceFirstIn(text, s"TBLPROPERTIES ($shown, ")
    else if (using.findFirstIn(text).isDefined) using.replaceFirstIn(text, s"USING $$1 TBLPROPERTIES ($shown)")
    else s"${text.stripTrailing} TBLPROPERTIES ($shown)" // Parquet is Spark's default
  }
}

trait PlainTables extends LakeTables {
  override protected def kind: TableKind = WithoutKey
}

trait KeyedTables extends LakeTables {
  override protected def kind: TableKind = Keyed(inPartitions = false)
}

/** Tables whose rows are in log files, too, and whose keys are unique within their partitions. */
trait MergedTables extends LakeTables {
  override protected def kind: TableKind =
    Keyed(inPartitions = true, "table-type" -> "merge-on-read", "bucket" -> "2")
}

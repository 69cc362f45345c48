package org.apache.spark.sql.lake

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.connector.AlterTableTests
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Table, TableCapability}
import org.apache.spark.sql.execution.command.v1

/** Tests of columns that are added, altered and dropped. */
abstract class LakeColumns extends SparkFunSuite with AlterTableTests with LakeTables {
  override protected val catalogAndNamespace: String = ""
  override protected val v2Format: String = "parquet"

  /** The definition in Spark's own catalog. The tests want its name without the catalog's. */
  override protected def getTableMetadata(tableName: String): Table = {
    val Array(database, name) = tableName.split('.')
    val found = spark.sessionState.catalog.getTableMetadata(TableIdentifier(name, Some(database)))
    new Table {
      override def name: String = tableName
      override def columns = CatalogV2Util.structTypeToV2Columns(found.schema)
      override def properties = found.properties.asJava
      override def capabilities = java.util.Collections.emptySet[TableCapability]
    }
  }
}

class KeyedColumns extends LakeColumns with KeyedTables

// Spark's commands on tables of its session catalog.

class KeyedAlterTableAddColumns extends v1.AlterTableAddColumnsSuite with KeyedTables
class KeyedAlterTableAddPartition extends v1.AlterTableAddPartitionSuite with KeyedTables
class KeyedAlterTableClusterBy extends v1.AlterTableClusterBySuite with KeyedTables
class KeyedAlterTableDropColumn extends v1.AlterTableDropColumnSuite with KeyedTables
class KeyedAlterTableDropPartition extends v1.AlterTableDropPartitionSuite with KeyedTables
class KeyedAlterTableRecoverPartitions extends v1.AlterTableRecoverPartitionsSuite with KeyedTables
class KeyedAlterTableRenameColumn extends v1.AlterTableRenameColumnSuite with KeyedTables
class KeyedAlterTableRenamePartition extends v1.AlterTableRenamePartitionSuite with KeyedTables
class KeyedAlterTableRename extends v1.AlterTableRenameSuite with KeyedTables
class KeyedAlterTableSetLocation extends v1.AlterTableSetLocationSuite with KeyedTables
class KeyedAlterTableSetSerde extends v1.AlterTableSetSerdeSuite with KeyedTables
class KeyedAlterTableSetTblProperties extends v1.AlterTableSetTblPropertiesSuite with KeyedTables
class KeyedAlterTableUnsetTblProperties extends v1.AlterTableUnsetTblPropertiesSuite with KeyedTables
class KeyedCreateTableClusterBy extends v1.CreateTableClusterBySuite with KeyedTables
class KeyedDescribeTable extends v1.DescribeTableSuite with KeyedTables
class KeyedDropTable extends v1.DropTableSuite with KeyedTables
class KeyedMsckRepairTable extends v1.MsckRepairTableSuite with KeyedTables
class KeyedShowColumns extends v1.ShowColumnsSuite with KeyedTables
class KeyedShowCreateTable extends v1.ShowCreateTableSuite with KeyedTables
class KeyedShowPartitions extends v1.ShowPartitionsSuite with KeyedTables
class KeyedShowTables extends v1.ShowTablesSuite with KeyedTables
class KeyedShowTblProperties extends v1.ShowTblPropertiesSuite with KeyedTables
class KeyedTruncateTable extends v1.TruncateTableSuite with KeyedTables

class PlainAlterTableAddPartition extends v1.AlterTableAddPartitionSuite with PlainTables
class PlainAlterTableDropPartition extends v1.AlterTableDropPartitionSuite with PlainTables
class PlainAlterTableRecoverPartitions extends v1.AlterTableRecoverPartitionsSuite with PlainTables
class PlainAlterTableRenamePartition extends v1.AlterTableRenamePartitionSuite with PlainTables
class PlainAlterTableRename extends v1.AlterTableRenameSuite with PlainTables
class PlainAlterTableSetLocation extends v1.AlterTableSetLocationSuite with PlainTables
class PlainDropTable extends v1.DropTableSuite with PlainTables
class PlainMsckRepairTable extends v1.MsckRepairTableSuite with PlainTables
class PlainShowPartitions extends v1.ShowPartitionsSuite with PlainTables
class PlainTruncateTable extends v1.TruncateTableSuite with PlainTables

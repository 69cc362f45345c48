package lake.metastore.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.CreateTable;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Where statements name keyed tables: which of them Spark's own commands run, and which are refused. */
final class LakeRelations {
    /** Statements of Spark's that would change a table's directory. The table is the first child. */
    private static final Set<String> PAST_THE_TIMELINE = new HashSet<>(Arrays.asList("LoadData", "TruncatePartition"));

    /** Statements that insert rows of a query. The table is the first child. */
    static final Set<String> INSERTS =
            new HashSet<>(
                    Arrays.asList(
                            "AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic", "InsertOnlyMerge"));

    /** Statements that change rows which are there. The table is the first child. */
    static final Set<String> CHANGES =
            new HashSet<>(Arrays.asList("DeleteFromTable", "UpdateTable", "MergeIntoTable"));

    /** Statements that change a definition. The table is the first child. */
    private static final Set<String> DEFINITIONS =
            new HashSet<>(Arrays.asList("RenameColumn", "DropColumns", "SetTableLocation", "RepairTable"));

    /** Spark's own commands that change a table's directory. The table's name is their first element. */
    private static final Set<String> DIRECTORY_COMMANDS =
            new HashSet<>(Arrays.asList("LoadDataCommand", "TruncateTableCommand"));

    /** Spark's own commands that count rows and bytes of a table. The table's name is their first element. */
    private static final Set<String> ANALYZE_COMMANDS =
            new HashSet<>(Arrays.asList("AnalyzeTableCommand", "AnalyzeColumnCommand"));

    /** The directory of a table that has the files of its instants. */
    private static final String INSTANTS = PendingInstant.INSTANTS.replace("/", "");

    private static final Logger LOG = LoggerFactory.getLogger(LakeRelations.class);

    private LakeRelations() {}

    /** The keyed table of a relation, null for all other plans. */
    static LakeTable table(LogicalPlan plan) {
        if (plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof LakeTable) {
            return (LakeTable) ((DataSourceV2Relation) plan).table();
        }
        return null;
    }

    static LogicalPlan includingUncommitted(LogicalPlan relation) {
        LakeTable table = table(relation);
        LakeTable including = table.includingUncommitted();
        return including == table
                ? relation
                : relation.makeCopy(Plans.with((DataSourceV2Relation) relation, 0, including));
    }

    /** Gives commands the table as Spark's own catalog has it: definitions and partitions are changed and shown there. */
    static final class CommandRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            String name = plan.getClass().getSimpleName();
            if (plan instanceof ResolvedTable && ((ResolvedTable) plan).table() instanceof LakeTable) {
                LakeTable table = (LakeTable) ((ResolvedTable) plan).table();
                return plan.makeCopy(Plans.with((ResolvedTable) plan, 2, table.definition));
            }
            if (plan instanceof CreateTable) {
                LogicalPlan rewritten = LakeCreation.rewritten((CreateTable) plan);
                return rewritten == null ? plan : rewritten;
            }
            if (name.equals("TruncateTable")) {
                return plan; // the table empties itself
            }
            if (name.equals("InsertIntoStatement")) {
                LogicalPlan insert = PlainStatements.insert(plan);
                if (insert != null) {
                    return insert;
                }
            }
            if (DIRECTORY_COMMANDS.contains(name)) {
                LogicalPlan command = PlainStatements.command(plan, name);
                return command == null ? plan : command;
            }
            if (ANALYZE_COMMANDS.contains(name)) {
                LogicalPlan command = TableStatistics.command(plan);
                return command == null ? plan : command;
            }
            if (name.equals("WriteDelta")) {
                checkRead(plan);
            }
            if (name.equals("AlterTableAddColumnsCommand")) {
                Definitions.checkAdded(plan);
            }
            if (DEFINITIONS.contains(name)) {
                LakeTable table = target(plan);
                LogicalPlan changed = table == null ? null : Definitions.changed(plan, name, table);
                if (changed != null) {
                    return changed;
                }
            }
            if (PAST_THE_TIMELINE.contains(name) || INSERTS.contains(name) || CHANGES.contains(name)) {
                LakeTable table = target(plan);
                if (table != null) {
                    return checked(plan, name, table);
                }
                PlainTable plain = plainTarget(plan);
                if (plain != null) {
                    return PlainStatements.planned(plan, name, plain);
                }
            }
            return plan.mapChildren(this::apply);
        }

        private LogicalPlan checked(LogicalPlan plan, String name, LakeTable table) {
            String shown = table.identifier().unquotedString();
            if (PAST_THE_TIMELINE.contains(name)) {
                throw Errors.analysis(
                        shown + " is a keyed table, whose rows have a timeline: "
                                + (name.equals("LoadData") ? "INSERT them" : "DELETE them by a condition")
                                + " instead of changing its directory");
            }
            table.checkWritable();
            RowChanges.check(plan, name, table);
            if (name.equals("OverwriteByExpression") && plan.resolved()) {
                LogicalPlan merge = Replacements.merge(plan, table);
                if (merge != null) {
                    return merge;
                }
            }
            LogicalPlan changed = plan.mapChildren(this::apply);
            if (name.equals("AppendData") && !table.isMerged() && Upserts.isUpsert(Plans.children(changed).get(0))) {
                LogicalPlan merged = withTable((LogicalPlan) changed.productElement(0), table.merged());
                return changed.makeCopy(Plans.with(changed, 0, merged));
            }
            if (name.equals("OverwritePartitionsDynamic") && table.overwritten() == null) {
                String partition = Inserts.staticPartition(Plans.children(changed).get(0), table);
                if (partition != null) {
                    LogicalPlan named = withTable((LogicalPlan) changed.productElement(0), table.overwriting(partition));
                    return changed.makeCopy(Plans.with(changed, 0, named));
                }
            }
            LakeTable read = readTwin(changed, table, CHANGES.contains(name) ? table : null);
            if (read == null || table.isReadByItsWriter()) {
                return changed;
            }
            LogicalPlan target = withTable((LogicalPlan) changed.productElement(0), table.readByItsWriter(read));
            return changed.makeCopy(Plans.with(changed, 0, target));
        }

        /** A rewritten statement, as Spark 4.1 and later have it here already: it may read the table in its source, too. */
        private static void checkRead(LogicalPlan statement) {
            Object target = statement.productElement(0);
            Table table = target instanceof DataSourceV2Relation ? ((DataSourceV2Relation) target).table() : null;
            if (table instanceof RowLevelOperationTable
                    && ((RowLevelOperationTable) table).operation() instanceof RowChanges) {
                RowChanges changes = (RowChanges) ((RowLevelOperationTable) table).operation();
                changes.readAs(readTwin(statement, changes.table(), changes.table()));
            }
        }

        /** The same table as of the earliest moment that the statement reads it; {@code found} if no query reads it. */
        private static LakeTable readTwin(LogicalPlan statement, LakeTable table, LakeTable read) {
            LakeTable[] found = {read};
            for (LogicalPlan query : Plans.children(statement)) {
                Plans.forEachWithSubqueries(
                        query,
                        node -> {
                            LakeTable other = table(node);
                            if (other != null
                                    && other.isLatest()
                                    && other.isSame(table)
                                    && (found[0] == null || other.isReadBefore(found[0]))) {
                                found[0] = other;
                            }
                        });
            }
            return found[0];
        }

        /** A relation, which may have an alias, with another table. */
        private static LogicalPlan withTable(LogicalPlan plan, LakeTable table) {
            return table(plan) == null
                    ? (LogicalPlan) plan.mapChildren(child -> withTable(child, table))
                    : plan.makeCopy(Plans.with((DataSourceV2Relation) plan, 0, table));
        }

        /** The table without a key that a statement changes, null for another. */
        private static PlainTable plainTarget(LogicalPlan plan) {
            Object found = plan.productElement(0);
            while (found instanceof SubqueryAlias) {
                found = ((SubqueryAlias) found).child();
            }
            return PlainStatements.table(found);
        }

        /** The keyed table that a statement changes, null for another. */
        private static LakeTable target(LogicalPlan plan) {
            Object first = plan.productElement(0);
            LogicalPlan found = first instanceof LogicalPlan ? (LogicalPlan) first : plan;
            while (table(found) == null) {
                if (found instanceof ResolvedTable) {
                    Table table = ((ResolvedTable) found).table();
                    return table instanceof LakeTable ? (LakeTable) table : null;
                }
                List<LogicalPlan> children = found == plan ? Collections.emptyList() : Plans.children(found);
                if (children.size() != 1) {
                    return null;
                }
                found = children.get(0); // of an alias
            }
            return table(found);
        }
    }

    /** Refuses to read or fill a keyed table's directory: what lies there is not what the table holds. */
    static final class DirectoryCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {
        @Override
        public BoxedUnit apply(LogicalPlan plan) {
            Plans.forEach(plan, DirectoryCheck::check);
            return BoxedUnit.UNIT;
        }

        private static void check(LogicalPlan node) {
            checkCreated(node);
            checkPath(node);
            CatalogTable table = null;
            if (node instanceof HiveTableRelation) {
                table = ((HiveTableRelation) node).tableMeta();
            } else if (node instanceof LogicalRelation && ((LogicalRelation) node).catalogTable().isDefined()) {
                table = ((LogicalRelation) node).catalogTable().get();
            } else if (node.getClass().getSimpleName().startsWith("InsertInto")) {
                table = insertedInto(node);
            }
            if (table != null && LakeCatalog.keyedTable(table) != null) {
                throw Errors.analysis(
                        table.identifier().unquotedString()
                                + " is a keyed table, which this session can't read or write: set"
                                + " spark.sql.catalog.spark_catalog=" + LakeCatalog.class.getName());
            }
        }

        private static CatalogTable insertedInto(LogicalPlan node) {
            for (int i = 0; i < node.productArity(); i++) {
                Object element = Plans.unwrapped(node.productElement(i));
                if (element instanceof CatalogTable) {
                    return (CatalogTable) element;
                }
            }
            return null;
        }

        /** Writes to a directory that is named by its path. */
        private static void checkPath(LogicalPlan node) {
            String name = node.getClass().getSimpleName();
            boolean isToPath = name.equals("InsertIntoHadoopFsRelationCommand") && insertedInto(node) == null;
            for (int i = 0; i < node.productArity() && (isToPath || name.endsWith("DirCommand")); i++) {
                Object element = node.productElement(i);
                if (element instanceof CatalogStorageFormat) {
                    checkStorage((CatalogStorageFormat) element);
                } else if (element instanceof Path) {
                    checkPath((Path) element);
                }
            }
        }

        private static void checkStorage(CatalogStorageFormat storage) {
            if (storage.locationUri().isDefined()) {
                checkPath(new Path(storage.locationUri().get()));
            }
        }

        /** Refuses directories of tables that have instants. The files of instants may be written: that is ours. */
        static void checkPath(Path path) {
            if (path.toString().contains(PendingInstant.INSTANTS)) {
                return;
            }
            try {
                FileSystem files = path.getFileSystem(Catalogs.state(SparkSession.active()).newHadoopConf());
                for (Path each = files.makeQualified(path); each != null; each = each.getParent()) {
                    if (files.exists(new Path(each, INSTANTS))) {
                        throw Errors.analysis(
                                each + " is the directory of a lake table: files that are written by their path belong to no"
                                        + " snapshot of it; write the table by its name, or somewhere else");
                    }
                }
            } catch (IOException error) {
                LOG.debug("{} can't be looked at: {}", path, error.getMessage()); // as the write itself will say
            }
        }

        /** CREATE TABLE AS SELECT, and appends of saveAsTable. */
        private static void checkCreated(LogicalPlan node) {
            if (!node.getClass().getSimpleName().endsWith("TableAsSelectCommand")) {
                return;
            }
            Object table = node.productElement(0);
            if (table instanceof CatalogTable && LakeCatalog.keyedTable((CatalogTable) table) != null) {
                throw Errors.analysis(
                        ((CatalogTable) table).identifier().unquotedString()
                                + " has a primary-key, and this session can't write it: set"
                                + " spark.sql.catalog.spark_catalog=" + LakeCatalog.class.getName());
            }
            if (table instanceof CatalogTable) {
                checkStorage(((CatalogTable) table).storage());
            }
        }
    }
}

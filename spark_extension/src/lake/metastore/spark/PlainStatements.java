package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.catalog.UnresolvedCatalogRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.TruncateTable;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Statements that write tables without a primary key which have a timeline: what becomes of them, and what is refused. */
final class PlainStatements {
    private static final String CONDITION = "lake_condition";

    private PlainStatements() {}

    /** The table of a relation, null for all other plans. */
    static PlainTable table(Object plan) {
        Object table = plan instanceof DataSourceV2Relation ? ((DataSourceV2Relation) plan).table() : null;
        return table instanceof PlainTable ? (PlainTable) table : null;
    }

    /** The statement that Spark runs in place of one that writes such a table. */
    static LogicalPlan planned(LogicalPlan plan, String name, PlainTable table) {
        table.lake.checkWritable();
        switch (name) {
            case "DeleteFromTable":
                return plan.resolved() ? deleted((Expression) plan.productElement(1), table) : plan;
            case "UpdateTable":
            case "MergeIntoTable":
                throw Errors.analysis(
                        table.name() + " has no primary-key, by which rows are changed: INSERT OVERWRITE its partitions with"
                                + " what they are to be, or write the rows into a table with a primary-key");
            case "OverwriteByExpression":
                if (plan.resolved() && PartitionFilter.of(table.lake, (Expression) plan.productElement(1)) == null) {
                    throw Errors.analysis(
                            table.name() + " has no primary-key: whole partitions are replaced, by conditions that compare"
                                    + " columns which partition it with values");
                }
                break;
            default:
                break;
        }
        if (name.equals("OverwritePartitionsDynamic") && table.lake.overwritten() == null) {
            String partition = Inserts.staticPartition(Plans.children(plan).get(0), table.lake);
            if (partition != null) {
                return withTable(plan, table.overwriting(partition));
            }
        }
        boolean isRead = !table.lake.isReadByItsWriter() && reads(plan, table);
        return isRead ? withTable(plan, table.readByItsWriter()) : plan;
    }

    /**
     * An INSERT whose table Spark has as its own, with the table that has a timeline in its place; null for others. Spark
     * 3.5 takes the table from the query where that reads it, too, and its first versions don't say that it is written.
     */
    static LogicalPlan insert(LogicalPlan plan) {
        CatalogTable definition = definition(plan.productElement(0));
        if (definition == null || !LakeCatalog.isStreamed(definition)) {
            return null;
        }
        PlainTable table = PlainTable.named(definition.identifier());
        if (table == null) {
            return null;
        }
        LogicalPlan relation =
                DataSourceV2Relation$.MODULE$.create(
                        table,
                        Option.apply(Catalogs.sessionCatalog(SparkSession.active())),
                        Option.apply(PlainTable.identifier(definition.identifier())));
        return plan.makeCopy(Plans.with(plan, 0, relation));
    }

    /** What Spark's catalog says of a relation of its own; null for others. */
    private static CatalogTable definition(Object relation) {
        if (relation instanceof HiveTableRelation) {
            return ((HiveTableRelation) relation).tableMeta();
        } else if (relation instanceof UnresolvedCatalogRelation) {
            return ((UnresolvedCatalogRelation) relation).tableMeta();
        } else if (relation instanceof LogicalRelation && ((LogicalRelation) relation).catalogTable().isDefined()) {
            return ((LogicalRelation) relation).catalogTable().get();
        }
        return null;
    }

    /**
     * Has queries read such tables by their directories. Spark keeps the relations that it finds for one statement: where a
     * table is filled, and read in a subquery or by another INSERT, it takes the one that is for writes.
     */
    static final class ReadRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            boolean[] found = {false};
            Plans.forEachWithSubqueries(plan, node -> found[0] |= table(node) != null);
            return found[0] ? read(plan) : plan;
        }

        private static LogicalPlan read(LogicalPlan node) {
            if (LakeRelations.CHANGES.contains(node.getClass().getSimpleName())) {
                return node; // its table is the first child
            }
            PlainTable table = table(node);
            if (table == null) {
                LogicalPlan changed = (LogicalPlan) node.mapChildren(ReadRule::read);
                return Plans.mapSubqueries(changed, ReadRule::read);
            }
            LogicalPlan read = SparkSession.active().table(table.lake.quotedName()).queryExecution().analyzed();
            while (read instanceof SubqueryAlias) {
                read = ((SubqueryAlias) read).child();
            }
            // The rest of the query names the columns by the ids that they have in the relation which is replaced.
            return read instanceof LogicalRelation
                    ? read.makeCopy(Plans.with((LogicalRelation) read, 1, node.productElement(1)))
                    : node;
        }
    }

    /**
     * Refuses a statement of several INSERTs that fills such a table and reads it in a later INSERT. That one would list the
     * directories after the first, and see its rows, where the statement's queries are of one moment.
     */
    static final class MomentCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {
        @Override
        public BoxedUnit apply(LogicalPlan plan) {
            if (plan instanceof Union) {
                List<PlainTable> filled = new ArrayList<>();
                for (LogicalPlan insert : Plans.children(plan)) {
                    if (LakeRelations.INSERTS.contains(insert.getClass().getSimpleName())) {
                        filled.forEach(table -> check(insert, table));
                        PlainTable target = table(insert.productElement(0));
                        filled.addAll(target == null ? Collections.emptyList() : Collections.singletonList(target));
                    }
                }
            }
            return BoxedUnit.UNIT;
        }

        private static void check(LogicalPlan insert, PlainTable filled) {
            if (reads(insert, filled)) {
                throw Errors.analysis(
                        filled.name() + " is filled by one INSERT of the statement and read by a later one, which would see rows"
                                + " of the first: make a statement of each");
            }
        }
    }

    /** Spark's own commands that would change the directories of such a table; null for others. */
    static LogicalPlan command(LogicalPlan plan, String name) {
        PlainTable table = PlainTable.named((TableIdentifier) plan.productElement(0));
        if (table == null) {
            return null;
        }
        table.lake.checkWritable();
        if (name.equals("LoadDataCommand")) {
            throw Errors.analysis(
                    table.name() + " is a lake table, whose rows have a timeline: INSERT them instead of changing its"
                            + " directories");
        }
        if (((Option<?>) plan.productElement(1)).isDefined()) {
            throw Errors.analysis(
                    table.name() + " is a lake table, whose rows have a timeline: DELETE them by a condition on columns that"
                            + " partition it instead of changing its directories");
        }
        TableCatalog catalog = (TableCatalog) Catalogs.sessionCatalog(SparkSession.active());
        return new TruncateTable(
                ResolvedTable$.MODULE$.create(catalog, PlainTable.identifier(table.lake.identifier()), table));
    }

    /** A DELETE is an overwrite of partitions by nothing. */
    private static LogicalPlan deleted(Expression condition, PlainTable table) {
        if (PartitionFilter.of(table.lake, condition) == null) {
            throw Errors.analysis(
                    table.name() + " has no primary-key: DELETE takes whole partitions, by conditions that compare columns"
                            + " which partition it with values. To delete other rows, INSERT OVERWRITE the partitions with those"
                            + " that stay");
        }
        List<String> columns = new ArrayList<>();
        for (StructField each : table.lake.schema().fields()) {
            columns.add("CAST(NULL AS " + each.dataType().sql() + ") AS " + Catalogs.quoted(each.name())[0]);
        }
        String statement =
                "INSERT INTO " + table.lake.quotedName() + " REPLACE WHERE " + CONDITION + " SELECT "
                        + String.join(", ", columns) + " WHERE false";
        try {
            LogicalPlan parsed = Catalogs.state(SparkSession.active()).sqlParser().parsePlan(statement);
            return parsed.mapExpressions(each -> withCondition(each, Replacements.qualified(condition, "")));
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    private static Expression withCondition(Expression expression, Expression condition) {
        return expression instanceof UnresolvedAttribute && ((UnresolvedAttribute) expression).name().equals(CONDITION)
                ? condition
                : (Expression) expression.mapChildren(child -> withCondition(child, condition));
    }

    private static LogicalPlan withTable(LogicalPlan statement, PlainTable table) {
        DataSourceV2Relation relation = (DataSourceV2Relation) statement.productElement(0);
        return statement.makeCopy(Plans.with(statement, 0, relation.makeCopy(Plans.with(relation, 0, table))));
    }

    /** Whether a statement's query reads the directories of the table that it writes. */
    private static boolean reads(LogicalPlan statement, PlainTable table) {
        boolean[] found = {false};
        for (LogicalPlan query : Plans.children(statement)) {
            Plans.forEachWithSubqueries(
                    query,
                    node -> {
                        CatalogTable read = definition(node);
                        found[0] |= read != null && isSame(read.identifier(), table.lake.identifier());
                    });
        }
        return found[0];
    }

    private static boolean isSame(TableIdentifier read, TableIdentifier written) {
        TableIdentifier one = LakeTable.inDatabase(LakeCatalog.undecorated(read));
        return one.table().equalsIgnoreCase(written.table())
                && one.database().get().equalsIgnoreCase(written.database().get());
    }
}

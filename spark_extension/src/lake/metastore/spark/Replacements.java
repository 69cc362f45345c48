package lake.metastore.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * INSERT INTO … REPLACE WHERE, and {@code writeTo(…).overwrite(…)}, by a condition that leaves some rows of a partition. It
 * becomes a MERGE: rows of the query are inserted or updated by their key, and other rows for which the condition holds are
 * deleted.
 */
final class Replacements {
    private static final String CONDITION = "lake_condition";
    private static final String ROWS = "lake_given_rows";

    private Replacements() {}

    /** The MERGE of a resolved statement; null if it replaces whole partitions. */
    static LogicalPlan merge(LogicalPlan overwrite, LakeTable table) {
        Expression condition = (Expression) overwrite.productElement(1);
        if (condition.equals(Literal.TrueLiteral())) {
            return null;
        }
        if (PartitionFilter.of(table, condition) != null) {
            return null;
        }
        if (!table.keyed.takesUpdates()) {
            throw Errors.analysis(
                    table.name() + ": only whole partitions can be replaced, since its merge-engine=" + table.keyed.engine
                            + " takes no updates and deletes of rows");
        }
        List<String> same = new ArrayList<>();
        for (String key : Catalogs.quoted(table.spelled(table.keyed.wholeKey()).toArray(new String[0]))) {
            same.add("lake_target." + key + " = lake_source." + key);
        }
        String outside = "a row is outside of what is replaced: the condition of REPLACE WHERE does not hold for it";
        String statement =
                "MERGE INTO " + table.quotedName() + " AS lake_target USING (SELECT * FROM " + ROWS + " AS lake_source"
                        + " WHERE CASE WHEN lake_source." + CONDITION + " THEN true ELSE raise_error('" + outside + "') END)"
                        + " AS lake_source ON " + String.join(" AND ", same)
                        + " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                        + " WHEN NOT MATCHED BY SOURCE AND lake_target." + CONDITION + " THEN DELETE";
        try {
            LogicalPlan parsed = Catalogs.state(SparkSession.active()).sqlParser().parsePlan(statement);
            LogicalPlan query = (LogicalPlan) overwrite.productElement(2);
            return withConditions(withRows(parsed, query), condition);
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    private static LogicalPlan withRows(LogicalPlan plan, LogicalPlan rows) {
        if (plan instanceof UnresolvedRelation && ((UnresolvedRelation) plan).tableName().equals(ROWS)) {
            return rows;
        }
        return (LogicalPlan) plan.mapChildren(child -> withRows(child, rows));
    }

    private static LogicalPlan withConditions(LogicalPlan plan, Expression condition) {
        LogicalPlan changed = (LogicalPlan) plan.mapChildren(child -> withConditions(child, condition));
        return changed.mapExpressions(each -> withConditions(each, condition));
    }

    /** The placeholder is replaced by the condition on columns with the same qualifier. */
    private static Expression withConditions(Expression expression, Expression condition) {
        if (expression instanceof UnresolvedAttribute) {
            String name = ((UnresolvedAttribute) expression).name();
            return name.endsWith("." + CONDITION)
                    ? qualified(condition, name.substring(0, name.length() - CONDITION.length()))
                    : expression;
        }
        return (Expression) expression.mapChildren(child -> withConditions(child, condition));
    }

    /** A condition whose columns are found again by their names. {@code qualifier}: what comes before these. */
    static Expression qualified(Expression expression, String qualifier) {
        if (expression instanceof Attribute) {
            String[] quoted = Catalogs.quoted(((Attribute) expression).name());
            return UnresolvedAttribute$.MODULE$.apply(qualifier + quoted[0]);
        }
        return (Expression) expression.mapChildren(child -> qualified(child, qualifier));
    }
}

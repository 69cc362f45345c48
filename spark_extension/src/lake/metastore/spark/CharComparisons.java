package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.StringRPad;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Fills up texts that are compared with CHAR columns of keyed tables, as SQL says: {@code c = 'a'} holds for the value
 * {@code 'a  '}. Spark's own rule reads such columns through an expression, which its writes of rows don't expect.
 */
final class CharComparisons extends Rule<LogicalPlan> {
    private static final UTF8String SPACE = UTF8String.fromString(" ");

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        Map<ExprId, Integer> lengths = new HashMap<>();
        List<LogicalPlan> nodes = new ArrayList<>();
        Plans.forEachWithSubqueries(
                plan,
                node -> {
                    nodes.add(node);
                    addColumns(node, lengths);
                });
        if (lengths.isEmpty()) {
            return plan;
        }
        for (int known = 0; known != lengths.size(); ) {
            known = lengths.size();
            nodes.forEach(node -> addNames(node, nodes, lengths));
        }
        return filled(plan, lengths);
    }

    /** The CHAR columns of a keyed table, or of its changes. */
    private static void addColumns(LogicalPlan node, Map<ExprId, Integer> lengths) {
        Table found = node instanceof DataSourceV2Relation ? ((DataSourceV2Relation) node).table() : null;
        if (found instanceof RowLevelOperationTable) {
            found = ((RowLevelOperationTable) found).table();
        } else if (found instanceof ChangesTable) {
            found = ((ChangesTable) found).table;
        }
        LakeTable table = found instanceof LakeTable ? (LakeTable) found : null;
        if (table == null || table.keyed == null) {
            return;
        }
        for (Object each : Plans.elements(node.productElement(1))) {
            Attribute column = (Attribute) each;
            int length = table.charLength(column.name());
            if (length > 0) {
                lengths.put(column.exprId(), length);
            }
        }
    }

    /** Other names of such columns: of a SELECT's list, of views, which convert them, and of common table expressions. */
    private static void addNames(LogicalPlan node, List<LogicalPlan> nodes, Map<ExprId, Integer> lengths) {
        for (Expression each : Plans.expressions(node)) {
            Expression given = each instanceof Alias ? ((Alias) each).child() : null;
            boolean isText = given instanceof Cast && given.dataType().equals(DataTypes.StringType);
            Expression meant = isText ? ((Cast) given).child() : given;
            if (meant instanceof Attribute && lengths.containsKey(((Attribute) meant).exprId())) {
                lengths.put(((Alias) each).exprId(), lengths.get(((Attribute) meant).exprId()));
            }
        }
        if (!node.getClass().getSimpleName().equals("CTERelationRef")) {
            return;
        }
        List<Object> columns = Plans.elements(node.productElement(2));
        for (LogicalPlan other : nodes) {
            boolean isMeant =
                    other.getClass().getSimpleName().equals("CTERelationDef")
                            && other.productElement(1).equals(node.productElement(0))
                            && other.resolved();
            List<Object> own = isMeant ? Plans.output(Plans.children(other).get(0)) : new ArrayList<>();
            for (int i = 0; i < Math.min(own.size(), columns.size()); i++) {
                Integer length = lengths.get(((Attribute) own.get(i)).exprId());
                if (length != null) {
                    lengths.put(((Attribute) columns.get(i)).exprId(), length);
                }
            }
        }
    }

    private static LogicalPlan filled(LogicalPlan plan, Map<ExprId, Integer> lengths) {
        LogicalPlan changed = (LogicalPlan) plan.mapChildren(child -> filled(child, lengths));
        LogicalPlan inside = Plans.mapSubqueries(changed, query -> filled(query, lengths));
        return inside.mapExpressions(each -> filled(each, lengths));
    }

    private static Expression filled(Expression expression, Map<ExprId, Integer> lengths) {
        Expression changed = (Expression) expression.mapChildren(child -> filled(child, lengths));
        boolean isComparison = changed instanceof BinaryComparison || changed instanceof In;
        return isComparison && changed.resolved() ? compared(changed, lengths) : changed;
    }

    private static Expression compared(Expression comparison, Map<ExprId, Integer> lengths) {
        int longest = 0;
        boolean hasColumn = false;
        for (Expression part : Plans.parts(comparison)) {
            Integer length = length(part, lengths);
            if (length == null) {
                return comparison;
            }
            longest = Math.max(longest, length);
            Attribute column = column(part);
            hasColumn |= column != null && lengths.containsKey(column.exprId());
        }
        if (!hasColumn) {
            return comparison;
        }
        int wanted = longest;
        return (Expression)
                comparison.mapChildren(part -> length(part, lengths) < wanted ? filledUp(part, wanted) : part);
    }

    /** The characters of a CHAR column or of a given text, 0 for null; null for anything else. */
    private static Integer length(Expression part, Map<ExprId, Integer> lengths) {
        if (!part.dataType().equals(DataTypes.StringType)) {
            return null;
        }
        Attribute column = column(part);
        if (column != null && lengths.containsKey(column.exprId())) {
            return lengths.get(column.exprId());
        } else if (column != null) {
            int declared = LakeTable.charLength(column.metadata());
            return declared > 0 ? Integer.valueOf(declared) : null;
        } else if (!part.foldable()) {
            return null;
        }
        UTF8String text = (UTF8String) part.eval(null);
        return text == null ? 0 : text.numChars();
    }

    private static Attribute column(Expression part) {
        Object meant = part instanceof OuterReference ? ((OuterReference) part).e() : part;
        return meant instanceof Attribute ? (Attribute) meant : null;
    }

    private static Expression filledUp(Expression part, int length) {
        if (column(part) != null) {
            return new StringRPad(part, new Literal(length, DataTypes.IntegerType), new Literal(SPACE, DataTypes.StringType));
        }
        UTF8String text = (UTF8String) part.eval(null);
        return text == null ? part : new Literal(text.rpad(length, SPACE), DataTypes.StringType);
    }
}

package lake.metastore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AggregateWindowFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;

/** Where the order of rows that tie matters: in some functions of windows, and where rows are left out by LIMIT. */
final class WindowOrders {
    /** Functions whose value depends on the order of rows that tie. */
    private static final Set<String> OF_ORDERED_ROWS =
            new HashSet<>(
                    Arrays.asList(
                            ("row_number ntile lag lead counter_diff first_value last_value nth_value first last any_value"
                                            + " collect_list array_agg array_unique_agg collect_set collect_union mode max_by"
                                            + " min_by listagg string_agg approx_top_k approx_top_k_accumulate"
                                            + " approx_top_k_combine")
                                    .split(" ")));

    private WindowOrders() {}

    /** Says of a window function whether its order must be total, and by what rows are ordered. */
    static void describe(ObjectNode value, WindowExpression window, Map<ExprId, Attribute> columns) {
        Expression function = window.windowFunction();
        if (function instanceof AggregateExpression) {
            function = (Expression) ((AggregateExpression) function).aggregateFunction();
        }
        String name = Determinism.name(function);
        value.put("function", name);
        boolean ofRows = !(function instanceof AggregateWindowFunction) && isOfRows(window);
        value.put("total", OF_ORDERED_ROWS.contains(name) || ofRows);
        List<Object> order = Plans.elements(window.windowSpec().productElement(1));
        if (name.equals("row_number") && order.isEmpty()) { // Spark takes none as text: it has made this one of a LIMIT
            throw new PlanReader.Refused(
                    "LIMIT without ORDER BY in a subquery takes any rows: order them by something that tells all apart");
        }
        addOrder(value.putArray("order"), order, columns);
    }

    /** Whether a frame counts rows, so that it may part rows that tie. */
    private static boolean isOfRows(WindowExpression window) {
        Object frame = window.windowSpec().frameSpecification();
        if (!(frame instanceof SpecifiedWindowFrame)) {
            return false;
        }
        String text = frame.toString();
        String lower = ((SpecifiedWindowFrame) frame).lower().toString();
        String upper = ((SpecifiedWindowFrame) frame).upper().toString();
        boolean isWhole = lower.contains("unboundedpreceding") && upper.contains("unboundedfollowing");
        return text.contains("RowFrame") && !isWhole;
    }

    private static void addOrder(ArrayNode order, List<Object> sorted, Map<ExprId, Attribute> columns) {
        for (Object each : sorted) {
            Expression by = ((SortOrder) each).child();
            if (by instanceof AttributeReference && columns.containsKey(((AttributeReference) by).exprId())) {
                order.add(columns.get(((AttributeReference) by).exprId()).name());
            }
        }
    }

    /** Adds what has to be checked of a plan that is computed as a whole, so that it takes the same rows each time. */
    static void addChecks(PlanReader reader, ArrayNode checks, LogicalPlan plan) {
        Plans.forEachWithSubqueries(
                plan,
                node -> {
                    if (isLimit(node) && !isLimit(Plans.children(node).get(0))) {
                        addLimit(reader, checks.addObject(), node);
                    } else if (node instanceof Window) {
                        addWindow(reader, checks, (Window) node);
                    }
                });
    }

    private static boolean isLimit(LogicalPlan node) {
        return node.nodeName().contains("Limit") || node.nodeName().equals("Offset") || node.nodeName().equals("Tail");
    }

    private static void addLimit(PlanReader reader, ObjectNode check, LogicalPlan node) {
        LogicalPlan limited = Plans.children(node).get(0);
        LogicalPlan sort = limited;
        while (sort instanceof Project) {
            sort = Plans.children(sort).get(0);
        }
        check.put("check", "limit");
        if (!(sort instanceof Sort)) {
            return;
        }
        PlanReader.Read input = reader.read(Plans.children(sort).get(0));
        check.set("input", input.tree);
        addOrder(check.putArray("order"), Plans.elements(sort.productElement(0)), input.columns);
        ArrayNode visible = check.putArray("columns");
        for (Object each : Plans.output(limited)) {
            Attribute column = input.columns.get(((Attribute) each).exprId());
            visible.add(column == null ? "" : column.name());
        }
    }

    private static void addWindow(PlanReader reader, ArrayNode checks, Window node) {
        PlanReader.Read input = reader.read(node.child());
        for (Object each : Plans.elements(node.productElement(0))) {
            for (Expression part : Plans.parts((Expression) each)) {
                ObjectNode check = Json.MAPPER.createObjectNode();
                describe(check, (WindowExpression) part, input.columns);
                if (check.get("total").asBoolean()) {
                    check.put("check", "window");
                    check.set("input", input.tree);
                    ArrayNode partition = check.putArray("partition");
                    for (Object by : Plans.elements(node.productElement(1))) {
                        if (by instanceof AttributeReference) {
                            Attribute column = input.columns.get(((AttributeReference) by).exprId());
                            partition.add(column == null ? "" : column.name());
                        }
                    }
                    checks.add(check);
                }
            }
        }
    }
}

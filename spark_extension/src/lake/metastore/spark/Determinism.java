package lake.metastore.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime;
import org.apache.spark.sql.catalyst.optimizer.SpecialDatetimeValues;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Refuses analysed queries that give another result when they are computed again. Orders that must be total are checked
 * elsewhere: that depends on keys.
 */
final class Determinism {
    /** Functions whose value depends on when or where they are computed, and that Spark takes for deterministic. */
    private static final Set<String> CHANGING =
            setOf(
                    "current_timestamp current_date current_time current_user current_database current_schema"
                            + " current_catalog current_path localtimestamp localtime now curdate user session_user version"
                            + " rand random"
                            + " randn randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id"
                            + " input_file_name input_file_block_start input_file_block_length reflect java_method"
                            + " try_reflect getvariable variablereference");

    /** Aggregates that take a value of any row among several that tie. */
    private static final Set<String> OF_ANY_ROW =
            setOf(
                    "first first_value last last_value any_value mode max_by min_by approx_top_k approx_top_k_accumulate"
                            + " approx_top_k_combine");

    /** Aggregates that bring values together in the order in which rows are read. */
    private static final Set<String> IN_ANY_ORDER =
            setOf("collect_list collect_set collect_union array_agg array_unique_agg string_agg group_concat listagg");

    /** What the names of functions begin with that choose by chance which values they keep. */
    private static final List<String> BY_CHANCE = Arrays.asList("kll_sketch_agg", "kll_sketch_merge", "kll_merge_agg");

    /** Functions of arrays whose value is the same for any order. */
    private static final Set<String> WHATEVER_ORDER = setOf("sort_array array_sort size cardinality array_size");

    private Determinism() {}

    /** Throws Refused for a query that gives another result each time. */
    static void check(LogicalPlan plan) {
        checkTimes(plan);
        Plans.forEach(
                plan,
                node -> {
                    if (node.nodeName().contains("Sample")) {
                        throw new PlanReader.Refused("TABLESAMPLE takes other rows each time: filter by a hash of the key");
                    }
                    Plans.expressions(node).forEach(each -> check(each, null));
                });
    }

    private static void checkTimes(LogicalPlan plan) {
        if (!SpecialDatetimeValues.apply(plan).fastEquals(plan)) {
            throw new PlanReader.Refused(
                    "a text such as 'now' or 'today' as a time has another value at each refresh: store the time in a source");
        }
    }

    /** Throws Refused for what only one of Spark's rules knows to be the current time. */
    static void checkCurrentTime(LogicalPlan plan) {
        if (!ComputeCurrentTime.apply(plan).fastEquals(plan)) {
            throw new PlanReader.Refused("the current time has another value at each refresh: store the time in a source");
        }
    }

    /** Throws Refused for NULL IN a subquery: NULL or false where that has no rows, as Spark's settings and rules say. */
    private static void checkNotNull(Expression value) {
        if (value.foldable() && value.eval(null) == null) {
            throw new PlanReader.Refused("NULL IN a query without rows is NULL or false, as Spark is set: compare a value");
        }
    }

    /** @param around what the expression is an argument of, without FILTER, DISTINCT and casts; null at the top */
    private static void check(Expression expression, Expression around) {
        if (expression instanceof SubqueryExpression) {
            LogicalPlan plan = ((SubqueryExpression) expression).plan();
            check(plan);
            checkCurrentTime(plan);
        }
        if (expression instanceof InSubquery) {
            for (Object value : Plans.elements(((InSubquery) expression).productElement(0))) {
                checkNotNull((Expression) value);
            }
        }
        if (expression instanceof AggregateExpression || expression instanceof Cast) {
            Plans.parts(expression).forEach(each -> check(each, around));
            return;
        }
        String name = name(expression);
        boolean inWindow = around instanceof WindowExpression; // checked with its order, which may be total
        if (CHANGING.contains(name) || name.equals("aes_encrypt") && isSalted(expression)) {
            throw changing(name);
        }
        if (BY_CHANCE.stream().anyMatch(name::startsWith)) {
            throw new PlanReader.Refused(
                    name + "() keeps some values by chance, others each time: use percentile() or approx_percentile()");
        }
        if (OF_ANY_ROW.contains(name)) {
            if (!inWindow) {
                throw new PlanReader.Refused(
                        name + "() takes any row of those that tie: use min or max, or row_number() with a total order");
            }
        } else if (IN_ANY_ORDER.contains(name)) {
            if (!inWindow && !isOrdered(expression) && (around == null || !WHATEVER_ORDER.contains(name(around)))) {
                throw new PlanReader.Refused(
                        name + "() has its values in any order: sort them with sort_array around it");
            }
        } else if (!expression.deterministic() && Plans.parts(expression).stream().allMatch(Expression::deterministic)) {
            throw changing(name);
        }
        Plans.parts(expression).forEach(each -> check(each, expression));
    }

    /** Whether an encryption chooses an initialisation vector by chance: it isn't given one, and its mode has some. */
    private static boolean isSalted(Expression encryption) {
        Object vector = encryption.productElement(4);
        Object given = vector instanceof Cast ? ((Cast) vector).child() : vector;
        return String.valueOf(given).isEmpty() && !String.valueOf(encryption.productElement(2)).equalsIgnoreCase("ECB");
    }

    private static PlanReader.Refused changing(String name) {
        return new PlanReader.Refused(
                name + "() has another value at each refresh: store the time, or the value, in a source");
    }

    /** Whether values are brought together in an order of their own, so that those that tie are equal. */
    private static boolean isOrdered(Expression expression) {
        List<Expression> parts = Plans.parts(expression);
        Expression value = parts.get(0) instanceof Cast ? ((Cast) parts.get(0)).child() : parts.get(0);
        return parts.stream()
                .anyMatch(each -> each instanceof SortOrder && ((SortOrder) each).child().semanticEquals(value));
    }

    static String name(Expression expression) {
        return expression.prettyName().toLowerCase(Locale.ROOT);
    }

    private static Set<String> setOf(String names) {
        return new HashSet<>(Arrays.asList(names.split(" ")));
    }
}

package lake.metastore.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.BooleanSimplification;
import org.apache.spark.sql.catalyst.optimizer.CombineFilters;
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates;
import org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughJoin;
import org.apache.spark.sql.catalyst.optimizer.ReorderJoin;
import org.apache.spark.sql.catalyst.optimizer.RewriteCorrelatedScalarSubquery;
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;

/**
 * The rules of Spark's optimiser that an analysed query goes through before it is read, by name: those that make joins of
 * subqueries, and those that put conditions where the join is that they are about. Never the whole optimiser: it would make
 * another plan of each version of Spark, and fold away tables without rows.
 */
final class PlanRules {
    private static final int MOST_ROUNDS = 50;

    private PlanRules() {}

    static LogicalPlan prepared(LogicalPlan analysed) {
        LogicalPlan plan = everywhere(Nodes.withoutCtes(analysed), EliminateSubqueryAliases::apply);
        plan = everywhere(plan, PlanRules::withOneRows);
        plan = BooleanSimplification.apply(plan); // what all sides of an OR say
        plan = untilStable(withConditionsAtJoins(plan), PlanRules::withoutSubqueries); // some come up with their subquery
        return withConditionsAtJoins(plan);
    }

    private static LogicalPlan withConditionsAtJoins(LogicalPlan plan) {
        return untilStable(plan, each -> CombineFilters.apply(PushPredicateThroughJoin.apply(ReorderJoin.apply(each))));
    }

    private static LogicalPlan untilStable(LogicalPlan plan, UnaryOperator<LogicalPlan> rule) {
        LogicalPlan before = plan;
        for (int i = 0; i < MOST_ROUNDS; i++) {
            LogicalPlan after = rule.apply(before);
            if (after.fastEquals(before)) {
                return after;
            }
            before = after;
        }
        return before;
    }

    /** The plan itself if it has a subquery that Spark has no join for: what is around that is computed as a whole. */
    private static LogicalPlan withoutSubqueries(LogicalPlan plan) {
        try {
            LogicalPlan correlated = RewriteCorrelatedScalarSubquery.apply(PullupCorrelatedPredicates.apply(plan));
            LogicalPlan joined = RewritePredicateSubquery.apply(correlated);
            return isWithinItself(joined) ? joined : plan;
        } catch (RuntimeException unsupported) {
            return plan;
        }
    }

    /** Whether no part of a plan, but for its subqueries, asks for columns of a query around it. */
    private static boolean isWithinItself(LogicalPlan plan) {
        boolean[] found = {true};
        Plans.forEach(plan, node -> Plans.expressions(node).forEach(each -> found[0] &= !hasOuter(each)));
        return found[0];
    }

    private static boolean hasOuter(Expression expression) {
        return expression instanceof OuterReference
                || !(expression instanceof SubqueryExpression)
                        && Plans.parts(expression).stream().anyMatch(PlanRules::hasOuter);
    }

    /** Applies a rule to a plan, and before to the plans of its subqueries. */
    private static LogicalPlan everywhere(LogicalPlan plan, UnaryOperator<LogicalPlan> rule) {
        return rule.apply(inSubqueries(plan, rule));
    }

    private static LogicalPlan inSubqueries(LogicalPlan plan, UnaryOperator<LogicalPlan> rule) {
        LogicalPlan changed = (LogicalPlan) plan.mapChildren(child -> inSubqueries(child, rule));
        return Plans.mapSubqueries(changed, subquery -> everywhere(subquery, rule));
    }

    /** Aggregates over all rows of a subquery that doesn't depend on the row become joins with their one row. */
    private static LogicalPlan withOneRows(LogicalPlan plan) {
        LogicalPlan node = (LogicalPlan) plan.mapChildren(PlanRules::withOneRows);
        if (!(node instanceof Filter) && !(node instanceof Project)) {
            return node;
        }
        LogicalPlan child = Plans.children(node).get(0);
        List<LogicalPlan> rows = new ArrayList<>();
        LogicalPlan over = (LogicalPlan) node.mapExpressions(each -> withColumns(each, rows));
        if (rows.isEmpty()) {
            return node;
        }
        LogicalPlan joined = child;
        for (LogicalPlan each : rows) {
            joined = Nodes.crossed(joined, each);
        }
        LogicalPlan input = joined;
        LogicalPlan made = (LogicalPlan) over.mapChildren(ignored -> input);
        return node instanceof Filter ? Nodes.project(Plans.output(child), made) : made;
    }

    /** An expression with columns in the place of such subqueries, which are put into {@code rows}. */
    private static Expression withColumns(Expression expression, List<LogicalPlan> rows) {
        if (expression instanceof ScalarSubquery) {
            ScalarSubquery subquery = (ScalarSubquery) expression;
            if (Plans.parts(subquery).isEmpty() && isOneRow(subquery.plan())) {
                rows.add(subquery.plan());
                return (Attribute) Plans.output(subquery.plan()).get(0);
            }
            return expression;
        }
        return (Expression) expression.mapChildren(child -> withColumns(child, rows));
    }

    private static boolean isOneRow(LogicalPlan plan) {
        if (plan instanceof Project || plan instanceof SubqueryAlias) {
            return isOneRow(Plans.children(plan).get(0));
        }
        return plan instanceof Aggregate && Plans.elements(plan.productElement(0)).isEmpty();
    }
}

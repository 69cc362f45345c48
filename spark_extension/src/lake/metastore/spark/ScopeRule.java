package lake.metastore.spark;

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Carries hints to the relations that they hold for: those of the query block below the hint, of its subqueries, and
 * of the views and common table expressions that these read. A nearer hint comes first.
 *
 * <p>A hint is gone as soon as it is seen. Relations that are resolved get what it says at once; the rest, and those
 * that a hint further out must leave alone, get a mark. The rule runs in each round of resolution and in each
 * analysis that Spark does of a part; it leaves alone what it has done.
 */
final class ScopeRule extends Rule<LogicalPlan> {
    private final Relations relations;

    ScopeRule(Relations relations) {
        this.relations = relations;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        return walk(plan, null);
    }

    /** The plan with its relations as {@code scope} has them, null: as hints below say. */
    private LogicalPlan walk(LogicalPlan plan, Scope scope) {
        if (Scope.isHint(plan)) {
            UnresolvedHint hint = (UnresolvedHint) plan;
            return walk(hint.child(), Scope.of(hint));
        }
        Scope mark = Scope.markOn(plan);
        if (mark != null) {
            return walkMarked((ResolvedHint) plan, mark);
        }
        if (plan instanceof LeafNode && scope != null) {
            return leaf(plan, scope);
        }
        if (ReadyPartitions.areAllOf(plan) && scope != null) {
            return scope.includesUncommitted ? leaf(ReadyPartitions.unlimited(plan), scope) : scope.mark(plan);
        }
        if (plan instanceof WithCTE) {
            // Who reads a common table expression decides about it, not where it was written.
            LogicalPlan walked = plan.mapChildren(part -> walk(part, part instanceof CTERelationDef ? null : scope));
            return new HintedExpressions((WithCTE) walked, body -> walk(body, Scope.INCLUDING)).result();
        }
        return Plans.mapSubqueries(
                plan.mapChildren(child -> walk(child, scope)), subquery -> walkSubquery(subquery, scope));
    }

    private LogicalPlan walkMarked(ResolvedHint marked, Scope mark) {
        LogicalPlan relation = marked.child();
        if (!mark.includesUncommitted || relation instanceof CTERelationRef || !relation.resolved()) {
            return marked;
        }
        return walk(relation, mark);
    }

    private LogicalPlan leaf(LogicalPlan leaf, Scope scope) {
        boolean isTable =
                leaf instanceof HiveTableRelation
                        || leaf instanceof LogicalRelation
                        || LakeRelations.table(leaf) != null
                        || ChangesTable.isChanges(leaf);
        if (isTable && scope.includesUncommitted) {
            return relations.decorated(leaf);
        }
        boolean isOpen = leaf instanceof CTERelationRef ? !HintedExpressions.isHinted(leaf) : !leaf.resolved();
        return isTable || isOpen ? scope.mark(leaf) : leaf;
    }

    private LogicalPlan walkSubquery(LogicalPlan subquery, Scope scope) {
        if (subquery.resolved()) {
            return walk(subquery, scope);
        }
        // It will be analyzed from the beginning: other hints first, then this one.
        return scope == null ? subquery : scope.above(subquery);
    }
}

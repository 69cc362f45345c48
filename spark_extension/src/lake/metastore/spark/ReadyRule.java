package lake.metastore.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * Hides uncommitted partitions of tables whose partitions Spark finds without the metastore.
 *
 * <p>It runs after resolution, when hints have had their effect. Subqueries and views went through it when Spark
 * analyzed them.
 */
final class ReadyRule extends Rule<LogicalPlan> {
    /** They have the table that they change as their first child, which its format's own rules expect as it is. */
    private static final Set<String> CHANGES =
            new HashSet<>(Arrays.asList("MergeIntoTable", "UpdateTable", "DeleteFromTable"));

    private final Relations relations;

    ReadyRule(Relations relations) {
        this.relations = relations;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (plan instanceof LogicalRelation) {
            return relations.limited((LogicalRelation) plan);
        }
        if (ReadyPartitions.areAllOf(plan)) {
            return plan;
        }
        boolean[] isTarget = {CHANGES.contains(plan.getClass().getSimpleName())};
        return plan.mapChildren(
                child -> {
                    if (isTarget[0]) {
                        isTarget[0] = false;
                        return child;
                    }
                    return apply(child);
                });
    }
}

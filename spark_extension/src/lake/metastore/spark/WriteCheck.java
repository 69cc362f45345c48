package lake.metastore.spark;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Rejects statements that would change a table under its decorated name, or that a hint has given one, before Spark
 * has written a file: the metastore itself refuses later.
 */
final class WriteCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    /** Commands whose names begin so only read. */
    private static final String[] READING = {"Describe", "Show", "Refresh", "Explain", "Cache", "Uncache"};

    @Override
    public BoxedUnit apply(LogicalPlan plan) {
        Plans.forEach(plan, WriteCheck::check);
        return BoxedUnit.UNIT;
    }

    private static void check(LogicalPlan node) {
        boolean isRelation = node instanceof View || (node instanceof LeafNode && !(node instanceof Command));
        if (isRelation || isReading(node.getClass().getSimpleName())) {
            return;
        }
        for (int i = 0; i < node.productArity(); i++) {
            TableIdentifier table = identifier(node.productElement(i));
            if (table != null && Relations.isDecorated(table)) {
                if (i > 0 && node.getClass().getSimpleName().equals("CreateTableLikeCommand")) {
                    continue; // the table whose columns are copied
                }
                throw Errors.analysis(
                        table.unquotedString()
                                + " can only be read: write to "
                                + Relations.undecorated(table).unquotedString()
                                + " instead");
            }
        }
    }

    private static boolean isReading(String name) {
        for (String prefix : READING) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }

    private static TableIdentifier identifier(Object element) {
        Object found = Plans.unwrapped(element);
        if (found instanceof CatalogTable) {
            return ((CatalogTable) found).identifier();
        }
        return found instanceof TableIdentifier ? (TableIdentifier) found : null;
    }
}

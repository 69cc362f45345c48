package lake.metastore.spark;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningUtils;
import scala.Option;

/** The ready partitions of a table that Spark, or the table's format, lists by itself: a filter above its relation. */
final class ReadyPartitions {
    /** Tells the filter from those of queries; to Spark a hint without a strategy. */
    private static final class Mark extends HintInfo {
        private Mark() {
            super(Option.empty());
        }

        @Override
        public String toString() {
            return "ready partitions";
        }
    }

    private static final Mark MARK = new Mark();

    private final ExternalCatalog catalog;
    private final TableIdentifier table;
    private final LogicalRelation relation;
    private final ZoneId zone;

    ReadyPartitions(ExternalCatalog catalog, TableIdentifier table, LogicalRelation relation, ZoneId zone) {
        this.catalog = catalog;
        this.table = table;
        this.relation = relation;
        this.zone = zone;
    }

    static boolean areAllOf(LogicalPlan plan) {
        return plan instanceof ResolvedHint && ((ResolvedHint) plan).hints() instanceof Mark;
    }

    /** The relation without the filter. */
    static LogicalPlan unlimited(LogicalPlan limited) {
        return ((Filter) ((ResolvedHint) limited).child()).child();
    }

    /**
     * The relation, limited if there is anything to hide. What the metastore does not know is seen; what it knows is
     * seen if it was ready both before and after Spark listed its files, so no half of a partition is.
     */
    LogicalPlan limited() {
        if (!catalog.tableExists(database(), Relations.decorated(table).table())) {
            return relation; // another metastore, which has no such partitions
        }
        Set<String> ready = names(table);
        Set<String> hidden = names(Relations.decorated(table));
        if (hidden.isEmpty()) {
            return relation;
        }
        if (relation.relation() instanceof HadoopFsRelation
                && ((HadoopFsRelation) relation.relation()).location() instanceof InMemoryFileIndex) {
            ((HadoopFsRelation) relation.relation()).location().refresh();
            ready.retainAll(names(table));
            hidden.addAll(names(Relations.decorated(table)));
        }
        hidden.removeAll(ready);
        if (hidden.isEmpty()) {
            return relation;
        }
        List<Expression> conditions = new ArrayList<>();
        for (String name : hidden) {
            conditions.add(isPartition(name));
        }
        return new ResolvedHint(new Filter(new Not(anyOf(conditions)), relation), MARK);
    }

    private String database() {
        return table.database().get();
    }

    private Set<String> names(TableIdentifier name) {
        Set<String> names = new TreeSet<>();
        scala.collection.Iterator<?> listed = Catalogs.partitionNames(catalog, database(), name.table());
        while (listed.hasNext()) {
            names.add((String) listed.next());
        }
        return names;
    }

    /** Balanced: Spark walks expressions by recursion. */
    private static Expression anyOf(List<Expression> conditions) {
        if (conditions.size() == 1) {
            return conditions.get(0);
        }
        int middle = conditions.size() / 2;
        return new Or(
                anyOf(conditions.subList(0, middle)), anyOf(conditions.subList(middle, conditions.size())));
    }

    private Expression isPartition(String name) {
        Expression condition = null;
        for (String part : name.split("/")) {
            int sign = part.indexOf('=');
            AttributeReference column = column(ExternalCatalogUtils.unescapePathName(part.substring(0, sign)));
            String value = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
            Object typed =
                    value.equals(ExternalCatalogUtils.DEFAULT_PARTITION_NAME())
                            ? null
                            : PartitioningUtils.castPartValueToDesiredType(column.dataType(), value, zone);
            Expression equal = new EqualNullSafe(column, new Literal(typed, column.dataType()));
            condition = condition == null ? equal : new And(condition, equal);
        }
        return condition;
    }

    private AttributeReference column(String name) {
        scala.collection.Iterator<?> output = ((scala.collection.Iterable<?>) relation.productElement(1)).iterator();
        while (output.hasNext()) {
            AttributeReference column = (AttributeReference) output.next();
            if (column.name().equalsIgnoreCase(name)) {
                return column;
            }
        }
        throw Errors.analysis(table.unquotedString() + " has no column for its partition key " + name);
    }
}

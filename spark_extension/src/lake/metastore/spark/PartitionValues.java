package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The values of partition columns in the names of partitions, and which partitions a query's conditions leave. */
final class PartitionValues {
    private final LakeTable table;
    private final String timeZone;
    /** All columns that partition the table. */
    private final StructType all;

    PartitionValues(LakeTable table, SparkSession session) {
        this.table = table;
        this.timeZone = Catalogs.state(session).conf().sessionLocalTimeZone();
        this.all = columns(table);
    }

    /** The columns that partition a table, in the order of its columns. */
    static StructType columns(LakeTable table) {
        List<StructField> found = new ArrayList<>();
        for (StructField each : table.schema().fields()) {
            if (table.isPartitionedBy(each.name())) {
                found.add(each);
            }
        }
        return new StructType(found.toArray(new StructField[0]));
    }

    /** Whether a condition is on partition columns alone, and can be evaluated before Spark plans the query. */
    static boolean canDecide(LakeTable table, Expression filter) {
        return filter.deterministic()
                && !SubqueryExpression.hasSubquery(filter)
                && Plans.refersOnlyTo(filter, column -> table.isPartitionedBy(column.name()))
                && !filter.exists(PartitionValues::isLeftToPlans);
    }

    /** Whether an expression has no value before Spark puts something else in its place, such as a function of Python's. */
    private static boolean isLeftToPlans(Expression expression) {
        return expression instanceof Unevaluable && !(expression instanceof Attribute);
    }

    /** Whether all conditions hold for a partition, by its name. {@code filters}: as of {@link #canDecide}. */
    Predicate<String> matching(List<Expression> filters) {
        if (filters.isEmpty()) {
            return name -> true;
        }
        List<InterpretedPredicate> predicates = new ArrayList<>();
        for (Expression filter : filters) {
            predicates.add(new InterpretedPredicate(bound(filter)));
        }
        Map<String, Boolean> known = new HashMap<>();
        return name ->
                known.computeIfAbsent(
                        name,
                        missing -> {
                            InternalRow values = of(name, all);
                            return predicates.stream().allMatch(each -> each.eval(values));
                        });
    }

    private Expression bound(Expression filter) {
        if (filter instanceof Attribute) {
            for (int i = 0; i < all.size(); i++) {
                if (all.apply(i).name().equalsIgnoreCase(((Attribute) filter).name())) {
                    return new BoundReference(i, all.apply(i).dataType(), true);
                }
            }
        }
        return (Expression) filter.mapChildren(this::bound);
    }

    /** The values of all partition columns, in the order of the table's columns. */
    InternalRow of(String name) {
        return of(name, all);
    }

    /** The names of all partition columns, as {@link #of(String)} has them. */
    StructType columns() {
        return all;
    }

    /** The values of a partition's columns, as Spark's own catalog reads them from its name. */
    InternalRow of(String name, StructType columns) {
        scala.collection.immutable.Map<String, String> spec = Catalogs.noOptions();
        for (String part : name.isEmpty() ? new String[0] : name.split("/")) {
            int sign = part.indexOf('=');
            String column = ExternalCatalogUtils.unescapePathName(part.substring(0, sign));
            for (StructField each : columns.fields()) {
                if (each.name().equalsIgnoreCase(column)) {
                    String value = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
                    spec = Catalogs.with(spec, each.name(), value);
                }
            }
        }
        CatalogTablePartition partition =
                new CatalogTablePartition(
                        spec, CatalogStorageFormat.empty(), Catalogs.noOptions(), 0, 0, Option.empty());
        return partition.toRow(columns, timeZone);
    }
}

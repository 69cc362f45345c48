package lake.metastore.spark;

import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.unsafe.types.UTF8String;

/** Which partitions an overwrite replaces: conditions that compare partition columns with values. */
final class PartitionFilter {
    private PartitionFilter() {}

    /** Whether a partition of some name is meant; null if the filters say something else, too. */
    static Predicate<String> of(LakeTable table, Filter[] filters) {
        Predicate<String> found = name -> true;
        for (Filter each : filters) {
            Predicate<String> one = of(table, each);
            if (one == null) {
                return null;
            }
            found = found.and(one);
        }
        return found;
    }

    private static Predicate<String> of(LakeTable table, Filter filter) {
        if (filter instanceof AlwaysTrue) {
            return name -> true;
        } else if (filter instanceof EqualTo) {
            return equal(table, ((EqualTo) filter).attribute(), ((EqualTo) filter).value());
        } else if (filter instanceof EqualNullSafe) {
            return equal(table, ((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value());
        } else if (filter instanceof In) {
            return equal(table, ((In) filter).attribute(), ((In) filter).values());
        } else if (filter instanceof GreaterThan) {
            GreaterThan one = (GreaterThan) filter;
            return compared(table, one.attribute(), one.value(), order -> order > 0);
        } else if (filter instanceof GreaterThanOrEqual) {
            GreaterThanOrEqual one = (GreaterThanOrEqual) filter;
            return compared(table, one.attribute(), one.value(), order -> order >= 0);
        } else if (filter instanceof LessThan) {
            LessThan one = (LessThan) filter;
            return compared(table, one.attribute(), one.value(), order -> order < 0);
        } else if (filter instanceof LessThanOrEqual) {
            LessThanOrEqual one = (LessThanOrEqual) filter;
            return compared(table, one.attribute(), one.value(), order -> order <= 0);
        } else if (filter instanceof IsNotNull) {
            return valued(table, ((IsNotNull) filter).attribute(), text -> true);
        } else if (filter instanceof And) {
            Predicate<String> left = of(table, ((And) filter).left());
            Predicate<String> right = of(table, ((And) filter).right());
            return left == null || right == null ? null : left.and(right);
        } else if (filter instanceof Or) {
            Predicate<String> left = of(table, ((Or) filter).left());
            Predicate<String> right = of(table, ((Or) filter).right());
            return left == null || right == null ? null : left.or(right);
        }
        return null;
    }

    private static Predicate<String> equal(LakeTable table, String column, Object... values) {
        if (!table.isPartitionedBy(column) || Arrays.asList(values).contains(null)) {
            return null;
        }
        // A date is a java.sql.Date or a LocalDate: the text of both is the one that is in the partition's name.
        return valued(table, column, text -> Arrays.stream(values).anyMatch(value -> String.valueOf(value).equals(text)));
    }

    /** {@code isMeant}: of the order of the partition's value beside {@code value}. */
    private static Predicate<String> compared(LakeTable table, String column, Object value, IntPredicate isMeant) {
        boolean hasOrder = value instanceof Number || value instanceof String || value instanceof Date || value instanceof LocalDate;
        return hasOrder ? valued(table, column, text -> isMeant.test(compare(text, value))) : null;
    }

    private static int compare(String text, Object value) {
        if (value instanceof Number) {
            return new BigDecimal(text).compareTo(new BigDecimal(value.toString()));
        } else if (value instanceof String) {
            return UTF8String.fromString(text).compareTo(UTF8String.fromString((String) value));
        }
        return LocalDate.parse(text).compareTo(LocalDate.parse(value.toString()));
    }

    /** Whether the value of a column in a partition's name is meant; null if the column doesn't partition the table. */
    private static Predicate<String> valued(LakeTable table, String column, Predicate<String> isMeant) {
        if (!table.isPartitionedBy(column)) {
            return null;
        }
        return name -> {
            for (String part : name.split("/")) {
                int sign = part.indexOf('=');
                if (ExternalCatalogUtils.unescapePathName(part.substring(0, Math.max(sign, 0))).equalsIgnoreCase(column)) {
                    String text = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
                    return !text.equals(LakeRowWriter.NULL_PARTITION) && isMeant.test(text);
                }
            }
            return false;
        };
    }
}

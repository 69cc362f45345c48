package lake.metastore.spark;

import java.util.Arrays;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.Or;

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
        return name -> {
            for (String part : name.split("/")) {
                int sign = part.indexOf('=');
                if (ExternalCatalogUtils.unescapePathName(part.substring(0, Math.max(sign, 0))).equalsIgnoreCase(column)) {
                    String text = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
                    return Arrays.stream(values).anyMatch(value -> String.valueOf(value).equals(text));
                }
            }
            return false;
        };
    }
}

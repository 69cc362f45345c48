package lake.metastore.spark;

import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.Collectors;
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
    static final PartitionFilter ALL = new PartitionFilter(name -> true, "");

    private final Predicate<String> condition;
    /**
     * The same for the metastore, as {@code replacedWhere} of a CompleteInstantRequest; null if the partitions are known by
     * their names.
     */
    final String text;

    private PartitionFilter(Predicate<String> condition, String text) {
        this.condition = condition;
        this.text = text;
    }

    /** The partition of a name; none if it is null. */
    static PartitionFilter named(String partition) {
        return new PartitionFilter(name -> name.equals(partition), null);
    }

    /** Whether a partition of some name is meant. */
    boolean holdsFor(String partition) {
        return condition.test(partition);
    }

    /** Null if the filters say something else, too. */
    static PartitionFilter of(LakeTable table, Filter[] filters) {
        PartitionFilter found = ALL;
        for (Filter each : filters) {
            PartitionFilter one = of(table, each);
            if (one == null) {
                return null;
            }
            found = found.and(one);
        }
        return found;
    }

    private static PartitionFilter of(LakeTable table, Filter filter) {
        if (filter instanceof AlwaysTrue) {
            return ALL;
        } else if (filter instanceof EqualTo) {
            return equal(table, ((EqualTo) filter).attribute(), ((EqualTo) filter).value());
        } else if (filter instanceof EqualNullSafe) {
            return equal(table, ((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value());
        } else if (filter instanceof In) {
            return equal(table, ((In) filter).attribute(), ((In) filter).values());
        } else if (filter instanceof And) {
            PartitionFilter left = of(table, ((And) filter).left());
            PartitionFilter right = of(table, ((And) filter).right());
            return left == null || right == null ? null : left.and(right);
        } else if (filter instanceof Or) {
            PartitionFilter left = of(table, ((Or) filter).left());
            PartitionFilter right = of(table, ((Or) filter).right());
            return left == null || right == null ? null : left.or(right);
        }
        return null;
    }

    private PartitionFilter and(PartitionFilter other) {
        if (text.isEmpty() || other.text.isEmpty()) {
            return text.isEmpty() ? other : this;
        }
        return new PartitionFilter(condition.and(other.condition), "(" + text + ") AND (" + other.text + ")");
    }

    private PartitionFilter or(PartitionFilter other) {
        if (text.isEmpty() || other.text.isEmpty()) {
            return ALL;
        }
        return new PartitionFilter(condition.or(other.condition), "(" + text + ") OR (" + other.text + ")");
    }

    private static PartitionFilter equal(LakeTable table, String column, Object... values) {
        if (!table.isPartitionedBy(column) || values.length == 0 || Arrays.asList(values).contains(null)) {
            return null;
        }
        String quoted = Catalogs.quoted(column)[0];
        String text =
                Arrays.stream(values)
                        .map(value -> quoted + "='" + ExternalCatalogUtils.escapePathName(String.valueOf(value)) + "'")
                        .collect(Collectors.joining(" OR "));
        // A date is a java.sql.Date or a LocalDate: the text of both is the one that is in the partition's name.
        Predicate<String> condition =
                name -> {
                    for (String part : name.split("/")) {
                        int sign = part.indexOf('=');
                        String key = ExternalCatalogUtils.unescapePathName(part.substring(0, Math.max(sign, 0)));
                        if (key.equalsIgnoreCase(column)) {
                            String found = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
                            return Arrays.stream(values).anyMatch(value -> String.valueOf(value).equals(found));
                        }
                    }
                    return false;
                };
        return new PartitionFilter(condition, text);
    }
}

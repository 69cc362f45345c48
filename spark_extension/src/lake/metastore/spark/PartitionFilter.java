package lake.metastore.spark;

import java.math.BigDecimal;
import java.sql.Date;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
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
import org.apache.spark.sql.types.DateType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/** Which partitions an overwrite replaces: conditions that compare partition columns with values. */
final class PartitionFilter {
    static final PartitionFilter ALL = new PartitionFilter(name -> true, "");

    /** Days since 1970 that the calendar of java.sql.Date leaves out. */
    private static final int FIRST_MISSING_DAY = -141_437;

    private static final int LAST_MISSING_DAY = -141_428;

    private final Predicate<String> condition;
    /**
     * The same for the metastore, as {@code replacedWhere} of a CompleteInstantRequest, or a condition that holds for more
     * partitions; null if the partitions are known by their names.
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

    /** That of a resolved condition; null if it says something else, too. */
    static PartitionFilter of(LakeTable table, Expression condition) {
        Option<Filter> filter = DataSourceStrategy$.MODULE$.translateFilter(folded(condition), true);
        return filter.isDefined() ? of(table, filter.get()) : null;
    }

    /** A condition with values where it has expressions that have them: Spark casts the values of a partition. */
    private static Expression folded(Expression expression) {
        Expression found =
                expression.foldable() && !(expression instanceof Literal)
                        ? new Literal(expression.eval(null), expression.dataType())
                        : (Expression) expression.mapChildren(PartitionFilter::folded);
        Object value = found instanceof Literal && found.dataType() instanceof DateType ? ((Literal) found).value() : null;
        if (value != null && (Integer) value >= FIRST_MISSING_DAY && (Integer) value <= LAST_MISSING_DAY) {
            throw Errors.analysis(
                    LocalDate.ofEpochDay((Integer) value) + " can't be compared with partitions: Spark gives such conditions in a"
                            + " calendar that has no days from 1582-10-05 to 1582-10-14");
        }
        return found;
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
            return valued(table, ((IsNotNull) filter).attribute(), text -> true, "");
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
        String both =
                text.isEmpty() || other.text.isEmpty() ? text + other.text : "(" + text + ") AND (" + other.text + ")";
        return new PartitionFilter(condition.and(other.condition), both);
    }

    private PartitionFilter or(PartitionFilter other) {
        String either = text.isEmpty() || other.text.isEmpty() ? "" : "(" + text + ") OR (" + other.text + ")";
        return new PartitionFilter(condition.or(other.condition), either);
    }

    private static PartitionFilter equal(LakeTable table, String column, Object... values) {
        if (values.length == 0 || Arrays.asList(values).contains(null)) {
            return null;
        }
        Object[] filled = Arrays.stream(values).map(value -> filledUp(table, column, value)).toArray();
        String quoted = Catalogs.quoted(column)[0];
        String text =
                Arrays.stream(filled)
                        .map(value -> quoted + "='" + ExternalCatalogUtils.escapePathName(String.valueOf(value)) + "'")
                        .collect(Collectors.joining(" OR "));
        // A date is a java.sql.Date or a LocalDate: the text of both is the one that is in the partition's name.
        Predicate<String> isMeant = found -> Arrays.stream(filled).anyMatch(value -> String.valueOf(value).equals(found));
        return valued(table, column, isMeant, text);
    }

    /** {@code isMeant}: of the order of the partition's value beside {@code value}. */
    private static PartitionFilter compared(LakeTable table, String column, Object value, IntPredicate isMeant) {
        boolean hasOrder =
                value instanceof Number || value instanceof String || value instanceof Date || value instanceof LocalDate;
        Object filled = filledUp(table, column, value);
        return hasOrder ? valued(table, column, text -> isMeant.test(compare(text, filled)), "") : null;
    }

    /** A text that is compared with a CHAR column, whose values are filled up with spaces. */
    static Object filledUp(LakeTable table, String column, Object value) {
        int length = value instanceof String ? table.charLength(column) : 0;
        UTF8String text = length == 0 ? null : UTF8String.fromString((String) value);
        return text != null && text.numChars() < length ? text.rpad(length, UTF8String.fromString(" ")).toString() : value;
    }

    private static int compare(String text, Object value) {
        if (value instanceof Number) {
            return new BigDecimal(text).compareTo(new BigDecimal(value.toString()));
        } else if (value instanceof String) {
            return UTF8String.fromString(text).compareTo(UTF8String.fromString((String) value));
        }
        return LocalDate.parse(text).compareTo(LocalDate.parse(value.toString()));
    }

    /**
     * Whether the value of a column in a partition's name is meant; null if the column doesn't partition the table.
     *
     * @param where the same for the metastore, or a condition that holds for more partitions
     */
    private static PartitionFilter valued(LakeTable table, String column, Predicate<String> isMeant, String where) {
        if (!table.isPartitionedBy(column)) {
            return null;
        }
        Predicate<String> condition =
                name -> {
                    for (String part : name.split("/")) {
                        int sign = part.indexOf('=');
                        String key = ExternalCatalogUtils.unescapePathName(part.substring(0, Math.max(sign, 0)));
                        if (key.equalsIgnoreCase(column)) {
                            String text = ExternalCatalogUtils.unescapePathName(part.substring(sign + 1));
                            return !text.equals(LakeRowWriter.NULL_PARTITION) && isMeant.test(text);
                        }
                    }
                    return false;
                };
        return new PartitionFilter(condition, where);
    }
}

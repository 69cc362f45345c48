package lake.metastore.spark;

import java.util.Arrays;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringContains;
import org.apache.spark.sql.sources.StringEndsWith;
import org.apache.spark.sql.sources.StringStartsWith;
import org.apache.spark.sql.types.StructType;

/**
 * Conditions as Spark 3.5 gives them to tables, which get no expressions there: comparisons of columns with values.
 * Conditions with functions or casts over a column don't come at all.
 */
final class SourceFilters {
    private SourceFilters() {}

    /** Whether tables get conditions in this form, and not as expressions. */
    static boolean areGiven(SparkSession session) {
        return session.version().startsWith("3.");
    }

    /** The name of a column as the table has it; null for a field within a column. */
    static String column(String attribute) {
        if (attribute.startsWith("`") && attribute.endsWith("`") && attribute.indexOf('`', 1) == attribute.length() - 1) {
            return attribute.substring(1, attribute.length() - 1);
        }
        return attribute.indexOf('.') < 0 && attribute.indexOf('`') < 0 ? attribute : null;
    }

    /** A value of a condition, as rows have it. */
    static Literal literal(Object value, org.apache.spark.sql.types.DataType type) {
        return Literal$.MODULE$.create(value, type);
    }

    /** A condition over rows of some columns; null for one that isn't known, or is on other columns. */
    static Expression over(StructType columns, Filter filter) {
        if (filter instanceof And) {
            return joined(columns, ((And) filter).left(), ((And) filter).right(), true);
        }
        if (filter instanceof Or) {
            return joined(columns, ((Or) filter).left(), ((Or) filter).right(), false);
        }
        if (filter instanceof Not) {
            Expression negated = over(columns, ((Not) filter).child());
            return negated == null ? null : new org.apache.spark.sql.catalyst.expressions.Not(negated);
        }
        String[] names = filter.references();
        Expression column = names.length == 1 ? reference(columns, column(names[0])) : null;
        return column == null ? null : compared(column, filter);
    }

    private static Expression joined(StructType columns, Filter left, Filter right, boolean both) {
        Expression first = over(columns, left);
        Expression second = over(columns, right);
        if (first == null || second == null) {
            return null;
        }
        return both
                ? new org.apache.spark.sql.catalyst.expressions.And(first, second)
                : new org.apache.spark.sql.catalyst.expressions.Or(first, second);
    }

    private static Expression reference(StructType columns, String name) {
        for (int i = 0; i < columns.size(); i++) {
            if (columns.apply(i).name().equalsIgnoreCase(name)) {
                return new BoundReference(i, columns.apply(i).dataType(), true);
            }
        }
        return null;
    }

    private static Expression compared(Expression column, Filter filter) {
        if (filter instanceof IsNull) {
            return new org.apache.spark.sql.catalyst.expressions.IsNull(column);
        }
        if (filter instanceof IsNotNull) {
            return new org.apache.spark.sql.catalyst.expressions.IsNotNull(column);
        }
        if (filter instanceof In) {
            return anyOf(column, ((In) filter).values());
        }
        if (filter instanceof EqualTo) {
            return equal(column, ((EqualTo) filter).value());
        }
        if (filter instanceof EqualNullSafe) {
            return new org.apache.spark.sql.catalyst.expressions.EqualNullSafe(
                    column, literal(((EqualNullSafe) filter).value(), column.dataType()));
        }
        if (filter instanceof LessThan) {
            return new org.apache.spark.sql.catalyst.expressions.LessThan(
                    column, literal(((LessThan) filter).value(), column.dataType()));
        }
        if (filter instanceof LessThanOrEqual) {
            return new org.apache.spark.sql.catalyst.expressions.LessThanOrEqual(
                    column, literal(((LessThanOrEqual) filter).value(), column.dataType()));
        }
        if (filter instanceof GreaterThan) {
            return new org.apache.spark.sql.catalyst.expressions.GreaterThan(
                    column, literal(((GreaterThan) filter).value(), column.dataType()));
        }
        if (filter instanceof GreaterThanOrEqual) {
            return new org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual(
                    column, literal(((GreaterThanOrEqual) filter).value(), column.dataType()));
        }
        return ofTexts(column, filter);
    }

    private static Expression ofTexts(Expression column, Filter filter) {
        if (filter instanceof StringStartsWith) {
            return new org.apache.spark.sql.catalyst.expressions.StartsWith(
                    column, literal(((StringStartsWith) filter).value(), column.dataType()));
        }
        if (filter instanceof StringEndsWith) {
            return new org.apache.spark.sql.catalyst.expressions.EndsWith(
                    column, literal(((StringEndsWith) filter).value(), column.dataType()));
        }
        if (filter instanceof StringContains) {
            return new org.apache.spark.sql.catalyst.expressions.Contains(
                    column, literal(((StringContains) filter).value(), column.dataType()));
        }
        return null;
    }

    private static Expression equal(Expression column, Object value) {
        return new org.apache.spark.sql.catalyst.expressions.EqualTo(column, literal(value, column.dataType()));
    }

    /** One of several values, halved again and again: thousands in a row would be too deep. */
    private static Expression anyOf(Expression column, Object[] values) {
        if (values.length == 0) {
            return literal(false, org.apache.spark.sql.types.DataTypes.BooleanType);
        }
        if (values.length == 1) {
            return equal(column, values[0]);
        }
        int middle = values.length / 2;
        return new org.apache.spark.sql.catalyst.expressions.Or(
                anyOf(column, Arrays.copyOfRange(values, 0, middle)),
                anyOf(column, Arrays.copyOfRange(values, middle, values.length)));
    }
}

package lake.metastore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What an algebra has to know of conditions: which columns they say are equal, aren't NULL, have which values, or are in which
 * range.
 */
final class Conditions {
    /** Types whose values have one order everywhere. A text with a collation of its own has another type. */
    private static final List<DataType> ORDERED =
            Arrays.asList(
                    DataTypes.ByteType,
                    DataTypes.ShortType,
                    DataTypes.IntegerType,
                    DataTypes.LongType,
                    DataTypes.DateType,
                    DataTypes.TimestampType,
                    DataTypes.StringType);

    private Conditions() {}

    /** Adds the parts of a condition that AND joins. */
    static void add(PlanReader reader, ArrayNode into, Expression condition, Map<ExprId, Attribute> columns) {
        if (condition instanceof And) {
            Plans.parts(condition).forEach(each -> add(reader, into, each, columns));
            return;
        }
        if (Literal.TrueLiteral().semanticEquals(condition)) {
            return;
        }
        ObjectNode value = reader.value(condition, columns);
        TreeSet<String> names = new TreeSet<>();
        addNeverNull(PlanReader.bound(condition, columns), names);
        value.set("non_null", Json.MAPPER.valueToTree(names));
        List<Expression> parts = Plans.parts(condition);
        boolean isEqual = condition instanceof EqualTo;
        Expression equality = isEqual || condition instanceof EqualNullSafe ? condition : ofNotIn(condition);
        if (equality != null) {
            ArrayNode equal = value.putArray("equal");
            Plans.parts(equality).forEach(each -> equal.add(reader.value(each, columns)));
            value.put("kind", isEqual ? "equal" : equality == condition ? "null-safe" : "or unknown");
        }
        if (isEqual || condition instanceof In) {
            addFixed(value, parts, columns);
        }
        addBound(value, condition, columns);
        into.add(value);
    }

    /** The equality in what Spark makes of NOT IN, which holds too where the equality is NULL; null in others. */
    private static Expression ofNotIn(Expression condition) {
        if (condition instanceof Or && ((Or) condition).left() instanceof EqualTo) {
            Expression equality = ((Or) condition).left();
            Expression other = ((Or) condition).right();
            return other instanceof IsNull && ((IsNull) other).child().semanticEquals(equality) ? equality : null;
        }
        return null;
    }

    /** The columns that aren't NULL where a condition holds. */
    private static void addNeverNull(Expression condition, Set<String> names) {
        if (condition instanceof Not && ((Not) condition).child() instanceof EqualTo) {
            addNeverNull(((Not) condition).child(), names);
        } else if (condition instanceof IsNotNull) {
            addColumn(Plans.parts(condition).get(0), names);
        } else if (condition instanceof BinaryComparison && !(condition instanceof EqualNullSafe)) {
            Plans.parts(condition).forEach(each -> addColumn(each, names));
        }
    }

    private static void addColumn(Expression value, Set<String> names) {
        boolean isCoerced = value instanceof Cast && value.getTagValue(Cast.USER_SPECIFIED_CAST()).isEmpty();
        Expression of = isCoerced ? ((Cast) value).child() : value;
        if (of instanceof AttributeReference) {
            names.add(((AttributeReference) of).name());
        }
    }

    /** Says of which column a condition gives all values, if they are texts or the number 1. */
    private static void addFixed(ObjectNode value, List<Expression> parts, Map<ExprId, Attribute> columns) {
        Expression column = parts.get(0);
        List<Expression> values = parts.subList(1, parts.size());
        if (values.size() == 1 && column instanceof Literal) {
            column = values.get(0);
            values = parts.subList(0, 1);
        }
        if (!(column instanceof AttributeReference) || !values.stream().allMatch(Literal.class::isInstance)) {
            return;
        }
        String name = PlanReader.columnOf((AttributeReference) column, columns).name();
        Object first = values.isEmpty() ? null : ((Literal) values.get(0)).value();
        if (values.size() == 1 && first instanceof Number && ((Number) first).doubleValue() == 1) {
            value.put("one", name);
        }
        if (!values.isEmpty() && values.stream().allMatch(each -> ((Literal) each).value() instanceof UTF8String)) {
            ObjectNode fixed = value.putObject("fixed");
            fixed.put("column", name);
            ArrayNode texts = fixed.putArray("values");
            values.forEach(each -> texts.add(((Literal) each).value().toString()));
        }
    }

    /**
     * Says on which side of a value a condition wants a column, and whether NULL will do, too. Dates are days, times
     * microseconds; texts are compared by their bytes.
     */
    private static void addBound(ObjectNode value, Expression condition, Map<ExprId, Attribute> columns) {
        Expression comparison = condition;
        Expression orNull = null;
        if (condition instanceof Or) {
            Or both = (Or) condition;
            orNull = both.left() instanceof IsNull ? both.left() : both.right();
            comparison = orNull == both.left() ? both.right() : both.left();
        }
        if (!(comparison instanceof BinaryComparison) || (orNull != null && !(orNull instanceof IsNull))) {
            return;
        }
        BinaryComparison compared = (BinaryComparison) comparison;
        boolean isTurned = compared.right() instanceof AttributeReference;
        Expression column = isTurned ? compared.right() : compared.left();
        Object than = constant(isTurned ? compared.left() : compared.right());
        String side = sideOf(compared, isTurned);
        if (side == null || than == null || !(column instanceof AttributeReference)) {
            return;
        }
        if (!ORDERED.contains(column.dataType())) {
            return;
        }
        if (orNull != null && !((IsNull) orNull).child().semanticEquals(column)) {
            return;
        }
        ObjectNode bound = value.putObject("bound");
        bound.put("column", PlanReader.columnOf((AttributeReference) column, columns).name());
        bound.put("side", side);
        if (than instanceof Number) {
            bound.put("value", ((Number) than).longValue());
        } else {
            bound.put("value", than.toString());
        }
        bound.put("or_null", orNull != null);
    }

    /** The value of a constant that was written so, or as a text that becomes one; null for other expressions. */
    private static Object constant(Expression value) {
        if (value instanceof Cast && ((Cast) value).child() instanceof Literal) {
            try {
                return value.eval(null);
            } catch (RuntimeException unfit) { // the query fails by itself
                return null;
            }
        }
        return value instanceof Literal ? ((Literal) value).value() : null;
    }

    private static String sideOf(BinaryComparison compared, boolean isTurned) {
        if (compared instanceof LessThan) {
            return isTurned ? ">" : "<";
        }
        if (compared instanceof LessThanOrEqual) {
            return isTurned ? ">=" : "<=";
        }
        if (compared instanceof GreaterThan) {
            return isTurned ? "<" : ">";
        }
        if (compared instanceof GreaterThanOrEqual) {
            return isTurned ? "<=" : ">=";
        }
        return compared instanceof EqualTo ? "=" : null;
    }
}

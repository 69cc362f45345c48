package lake.metastore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.unsafe.types.UTF8String;

/** What an algebra has to know of conditions: which columns they say are equal, aren't NULL, or have which values. */
final class Conditions {
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
}

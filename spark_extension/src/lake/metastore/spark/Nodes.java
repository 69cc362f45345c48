package lake.metastore.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.util.List;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import scala.Option;

/** Makes nodes of plans. Their constructors differ between Spark's lines: by Scala's lists, and by further arguments. */
final class Nodes {
    private Nodes() {}

    /** A new column. */
    static Attribute column(String name, DataType type) {
        return (Attribute)
                made(AttributeReference.class, name, type, true, Metadata.empty(), NamedExpression.newExprId());
    }

    static Alias alias(Expression value, String name) {
        return alias(value, name, NamedExpression.newExprId());
    }

    static Alias alias(Expression value, String name, ExprId id) {
        return (Alias) made(Alias.class, value, name, id);
    }

    /** @param columns named expressions */
    static LogicalPlan project(List<?> columns, LogicalPlan child) {
        return (LogicalPlan) made(Project.class, Catalogs.listOf(columns), child);
    }

    /** All pairs of rows of two plans. */
    static LogicalPlan crossed(LogicalPlan left, LogicalPlan right) {
        JoinHint hint = new JoinHint(Option.empty(), Option.empty());
        return new Join(left, right, JoinType.apply("inner"), Option.empty(), hint);
    }

    /** The rows of several plans, whose columns are matched by their names. */
    static LogicalPlan unionByName(List<LogicalPlan> plans) {
        return (LogicalPlan) made(Union.class, Catalogs.listOf(plans), true, false);
    }

    static LogicalPlan named(String name, List<String> qualifier, LogicalPlan child) {
        Object identifier = made(AliasIdentifier.class, name, Catalogs.listOf(qualifier));
        return (LogicalPlan) made(SubqueryAlias.class, identifier, child);
    }

    /** A plan with the queries of its WITH clauses in the places that name them. */
    static LogicalPlan withoutCtes(LogicalPlan plan) {
        return ((InlineCTE) made(InlineCTE.class, true)).apply(plan);
    }

    /** An instance by the longest constructor, whose first arguments are given; the others have no effect. */
    private static Object made(Class<?> type, Object... given) {
        Constructor<?> longest = type.getConstructors()[0];
        for (Constructor<?> each : type.getConstructors()) {
            longest = each.getParameterCount() > longest.getParameterCount() ? each : longest;
        }
        Class<?>[] types = longest.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            arguments[i] = i < given.length ? given[i] : nothing(types[i]);
        }
        try {
            return longest.newInstance(arguments);
        } catch (InvocationTargetException error) {
            throw Errors.rethrow(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this Spark makes " + type.getSimpleName() + " otherwise", error);
        }
    }

    private static Object nothing(Class<?> type) {
        if (type == boolean.class) {
            return false;
        }
        return type == Option.class ? Option.empty() : Plans.noneOf();
    }
}

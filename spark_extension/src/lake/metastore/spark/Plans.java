package lake.metastore.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;
import scala.Product;
import scala.runtime.BoxedUnit;

/** Changing plans without what differs between Scala's lines. Unchanged parts stay the same objects. */
final class Plans {
    private Plans() {}

    /** A node with the plans of the subqueries in its own expressions changed. */
    static LogicalPlan mapSubqueries(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
        return node.mapExpressions(expression -> mapSubqueries(expression, change));
    }

    private static Expression mapSubqueries(Expression expression, UnaryOperator<LogicalPlan> change) {
        Expression mapped = expression.mapChildren(child -> mapSubqueries(child, change));
        if (!(mapped instanceof SubqueryExpression)) {
            return mapped;
        }
        SubqueryExpression subquery = (SubqueryExpression) mapped;
        LogicalPlan plan = subquery.plan();
        LogicalPlan changed = change.apply(plan);
        return changed == plan ? subquery : subquery.withNewPlan(changed);
    }

    /** Does something with each node of a plan. */
    static void forEach(LogicalPlan plan, Consumer<LogicalPlan> action) {
        plan.foreach(
                node -> {
                    action.accept(node);
                    return BoxedUnit.UNIT;
                });
    }

    /** Does something with each node of a plan and of those in its expressions. */
    static void forEachWithSubqueries(LogicalPlan plan, Consumer<LogicalPlan> action) {
        forEach(
                plan,
                node -> {
                    action.accept(node);
                    mapSubqueries(
                            node,
                            subquery -> {
                                forEachWithSubqueries(subquery, action);
                                return subquery;
                            });
                });
    }

    /** An element of a case class, which may be in an Option; null for an empty one. */
    static Object unwrapped(Object element) {
        if (element instanceof Option) {
            return ((Option<?>) element).isDefined() ? unwrapped(((Option<?>) element).get()) : null;
        }
        return element;
    }

    /** Whether all columns that an expression names are of some kind; so if it names none. */
    static boolean refersOnlyTo(Expression expression, Predicate<Attribute> isOfKind) {
        scala.collection.Iterator<Attribute> columns = expression.references().iterator();
        while (columns.hasNext()) {
            if (!isOfKind.test(columns.next())) {
                return false;
            }
        }
        return true;
    }

    static List<Expression> parts(Expression expression) {
        List<Expression> found = new ArrayList<>();
        expression.mapChildren(
                child -> {
                    found.add(child);
                    return child;
                });
        return found;
    }

    /** The expressions of a node, such as the columns of a projection. */
    static List<Expression> expressions(LogicalPlan node) {
        List<Expression> found = new ArrayList<>();
        node.mapExpressions(
                each -> {
                    found.add(each);
                    return each;
                });
        return found;
    }

    static List<LogicalPlan> children(LogicalPlan node) {
        List<LogicalPlan> found = new ArrayList<>();
        node.mapChildren(
                child -> {
                    found.add(child);
                    return child;
                });
        return found;
    }

    /** The columns of a resolved plan. */
    static List<Object> output(LogicalPlan plan) {
        try {
            return elements(plan.getClass().getMethod("output").invoke(plan)); // its type differs between Scala's lines
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** A parsed plan with another relation. */
    static LogicalPlan withRelation(LogicalPlan plan, LogicalPlan relation) {
        return plan instanceof UnresolvedRelation
                ? relation
                : (LogicalPlan) plan.mapChildren(child -> withRelation(child, relation));
    }

    /** The elements of a collection of Scala's; none of anything else. */
    static List<Object> elements(Object collection) {
        List<Object> found = new ArrayList<>();
        if (collection instanceof scala.collection.Iterable) {
            scala.collection.Iterator<?> iterator = ((scala.collection.Iterable<?>) collection).iterator();
            while (iterator.hasNext()) {
                found.add(iterator.next());
            }
        }
        return found;
    }

    /** An empty list of Scala's. */
    static Object noneOf() {
        return scala.collection.immutable.Nil$.MODULE$;
    }

    /** The elements of a case class, one of them replaced. */
    static Object[] with(Product product, int index, Object element) {
        Object[] elements = new Object[product.productArity()];
        for (int i = 0; i < elements.length; i++) {
            elements[i] = i == index ? element : product.productElement(i);
        }
        return elements;
    }
}

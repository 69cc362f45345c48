package lake.metastore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PosExplode;
import org.apache.spark.sql.catalyst.expressions.SessionWindow;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.TimeWindow;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;

/**
 * Reads an analysed query as a tree in JSON: operators over columns, whose names are unique within the tree. Their expressions
 * stay here; the tree has their numbers, and what an algebra has to know of them. What there is no operator for is one
 * that is computed as a whole, with the reason.
 */
final class PlanReader {
    /** Nodes that change nothing but the order of rows, or where they are. */
    private static final String TRANSPARENT =
            " Sort SubqueryAlias ResolvedHint View RepartitionByExpression Repartition RebalancePartitions Subquery ";

    private final LayerPlans plans;
    private final ObjectNode types = Json.MAPPER.createObjectNode();
    private int used;

    PlanReader(LayerPlans plans) {
        this.plans = plans;
    }

    /** A query that no layer can have. The message says why. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    /** A node has no operator. The message says why. */
    private static final class CannotRead extends RuntimeException {
        private static final long serialVersionUID = 1;

        CannotRead(String message) {
            super(message);
        }
    }

    /** An operator, and the columns in it that a node's output is. */
    static final class Read {
        final ObjectNode tree;
        final Map<ExprId, Attribute> columns = new HashMap<>();

        Read(String operator) {
            tree = Json.MAPPER.createObjectNode();
            tree.put("op", operator);
        }

        Read with(Read input) {
            tree.set("input", input.tree);
            columns.putAll(input.columns);
            return this;
        }
    }

    /** By the columns that were read or made, their types. */
    ObjectNode types() {
        return types;
    }

    Read read(LogicalPlan plan) {
        try {
            return operator(plan);
        } catch (CannotRead reason) {
            return whole(plan, reason.getMessage());
        }
    }

    private Read operator(LogicalPlan plan) {
        String table = plans.tableOf(plan);
        if (table != null) {
            return source(plan, table);
        }
        if (Plans.children(plan).stream().anyMatch(each -> Plans.output(each).isEmpty())) {
            throw cannot("a SELECT without FROM is computed as a whole");
        }
        if (plan instanceof Project) {
            return project(plan);
        }
        if (plan instanceof Filter) {
            Read made = new Read("filter").with(read(((Filter) plan).child()));
            Conditions.add(this, made.tree.putArray("conditions"), ((Filter) plan).condition(), made.columns);
            return made;
        }
        if (plan instanceof Join) {
            return join((Join) plan);
        }
        if (plan instanceof Union) {
            return union(plan);
        }
        if (plan instanceof Aggregate) {
            return new GroupReader(this, (Aggregate) plan).read();
        }
        if (plan instanceof Window) {
            return window((Window) plan);
        }
        if (plan instanceof Generate) {
            return explode((Generate) plan);
        }
        if (plan.nodeName().equals("Distinct")) {
            Read made = new Read("distinct").with(read(Plans.children(plan).get(0)));
            outputs(made.tree.putArray("columns"), plan, made);
            return made;
        }
        if (TRANSPARENT.contains(" " + plan.nodeName() + " ")) {
            return read(Plans.children(plan).get(0));
        }
        throw cannot(wholeReason(plan));
    }

    private static String wholeReason(LogicalPlan plan) {
        String name = plan.nodeName();
        if (name.contains("Limit") || name.equals("Offset") || name.equals("Tail")) {
            return "LIMIT keeps the first rows of all";
        }
        if (name.equals("Expand")) {
            return "ROLLUP, CUBE, GROUPING SETS and windows that overlap are computed as a whole";
        }
        if (name.equals("OneRowRelation") || name.equals("LocalRelation")) {
            return "a SELECT without FROM is computed as a whole";
        }
        return name.toUpperCase(Locale.ROOT) + " is computed as a whole";
    }

    // --- operators ---------------------------------------------------------------------------------------------

    private Read source(LogicalPlan plan, String table) {
        Read made = new Read("source");
        made.tree.put("table", table);
        ObjectNode stored = made.tree.putObject("columns");
        for (Object each : Plans.output(plan)) {
            Attribute attribute = (Attribute) each;
            Attribute column = column(attribute.name(), attribute.dataType());
            stored.put(column.name(), attribute.name());
            made.columns.put(attribute.exprId(), column);
        }
        return made;
    }

    private Read project(LogicalPlan plan) {
        Read input = read(Plans.children(plan).get(0));
        Read made = new Read("project");
        made.tree.set("input", input.tree);
        items(made.tree.putArray("columns"), Plans.elements(plan.productElement(0)), input.columns, made.columns);
        return made;
    }

    /** Adds pairs of a column and its value, and to {@code into} the columns. */
    void items(ArrayNode pairs, List<Object> items, Map<ExprId, Attribute> from, Map<ExprId, Attribute> into) {
        for (Object each : items) {
            NamedExpression item = (NamedExpression) each;
            Expression value = item instanceof Alias ? ((Alias) item).child() : (Expression) item;
            Attribute column;
            if (value instanceof AttributeReference) {
                column = columnOf((AttributeReference) value, from);
                pairs.addArray().add(column.name()).add(column.name());
            } else {
                ObjectNode made = value(value, from);
                column = column(item.name(), value.dataType());
                pairs.addArray().add(column.name()).add(made);
            }
            into.put(item.exprId(), column);
        }
    }

    private Read join(Join plan) {
        String kind = plan.joinType().getClass().getSimpleName().replace("$", "");
        boolean isRight = kind.equals("RightOuter");
        Read left = read(isRight ? plan.right() : plan.left());
        Read right = read(isRight ? plan.left() : plan.right());
        Read made = new Read("join");
        made.tree.set("left", left.tree);
        made.tree.set("right", right.tree);
        made.tree.put("kind", kindOf(kind));
        Map<ExprId, Attribute> both = new HashMap<>(left.columns);
        both.putAll(right.columns);
        ArrayNode conditions = made.tree.putArray("conditions");
        if (plan.condition().isDefined()) {
            Conditions.add(this, conditions, plan.condition().get(), both);
        }
        boolean onlyLeft = kind.equals("LeftSemi") || kind.equals("LeftAnti");
        made.columns.putAll(onlyLeft ? left.columns : both);
        return made;
    }

    private static String kindOf(String kind) {
        switch (kind) {
            case "Inner":
            case "Cross":
                return "inner";
            case "LeftOuter":
            case "RightOuter":
                return "left";
            case "FullOuter":
                return "full";
            case "LeftSemi":
                return "semi";
            case "LeftAnti":
                return "anti";
            case "ExistenceJoin":
                throw cannot("a subquery under OR, or in the SELECT list, is computed as a whole");
            default:
                throw cannot(kind + " is computed as a whole");
        }
    }

    private Read union(LogicalPlan plan) {
        Read made = new Read("union");
        ArrayNode columns = made.tree.putArray("columns");
        for (Object each : Plans.output(plan)) {
            Attribute output = (Attribute) each;
            Attribute column = column(output.name(), output.dataType());
            columns.add(column.name());
            made.columns.put(output.exprId(), column);
        }
        ArrayNode branches = made.tree.putArray("branches");
        for (LogicalPlan each : Plans.children(plan)) {
            Read branch = read(each);
            ObjectNode described = branches.addObject();
            described.set("input", branch.tree);
            outputs(described.putArray("values"), each, branch);
        }
        return made;
    }

    private void outputs(ArrayNode names, LogicalPlan plan, Read read) {
        for (Object each : Plans.output(plan)) {
            names.add(columnOf((Attribute) each, read.columns).name());
        }
    }

    private Read window(Window plan) {
        Read made = new Read("window").with(read(plan.child()));
        ArrayNode partition = made.tree.putArray("partition");
        for (Object each : Plans.elements(plan.productElement(1))) {
            if (!((Expression) each).foldable()) {
                partition.add(plain((Expression) each, made.columns).name());
            }
        }
        Map<ExprId, Attribute> over = new HashMap<>(made.columns);
        ArrayNode functions = made.tree.putArray("functions");
        for (Object each : Plans.elements(plan.productElement(0))) {
            Alias alias = (Alias) each;
            ObjectNode value = value(alias.child(), over);
            WindowOrders.describe(value, (WindowExpression) alias.child(), over);
            Attribute column = column("window", alias.child().dataType());
            functions.addArray().add(column.name()).add(value);
            made.columns.put(alias.exprId(), column);
        }
        return made;
    }

    private Read explode(Generate plan) {
        Generator generator = plan.generator();
        boolean isPos = generator.getClass() == PosExplode.class;
        if (!isPos && generator.getClass() != Explode.class) {
            throw cannot(Determinism.name((Expression) generator) + "() is computed as a whole, unlike explode()");
        }
        Read made = new Read("explode").with(read(plan.child()));
        made.tree.set("generator", value(Plans.parts((Expression) generator).get(0), made.columns));
        made.tree.put("outer", plan.outer());
        List<Object> outputs = Plans.elements(plan.productElement(4));
        if (isPos) {
            Attribute output = (Attribute) outputs.remove(0);
            Attribute position = column("position", output.dataType());
            made.tree.put("position", position.name());
            made.columns.put(output.exprId(), position);
        } else {
            made.tree.put("position", column("position", DataTypes.IntegerType).name());
        }
        ArrayNode names = made.tree.putArray("made");
        for (Object each : outputs) {
            Attribute output = (Attribute) each;
            Attribute column = column(output.name(), output.dataType());
            names.add(column.name());
            made.columns.put(output.exprId(), column);
        }
        return made;
    }

    // --- what is computed as a whole -------------------------------------------------------------------------

    private Read whole(LogicalPlan plan, String reason) {
        TreeSet<String> tables = new TreeSet<>();
        Plans.forEachWithSubqueries(
                plan,
                node -> {
                    String table = plans.tableOf(node);
                    if (table != null) {
                        tables.add(table);
                    } else if (Plans.children(node).isEmpty() && !isConstant(node)) {
                        throw new Refused("it reads " + node.nodeName() + ", and layers read tables of the metastore alone");
                    }
                });
        Read made = new Read("whole");
        List<String> names = new ArrayList<>();
        for (Object each : Plans.output(plan)) {
            Attribute output = (Attribute) each;
            Attribute column = column(output.name(), output.dataType());
            names.add(column.name());
            made.columns.put(output.exprId(), column);
        }
        made.tree.put("plan", plans.keep(plan));
        made.tree.set("columns", Json.MAPPER.valueToTree(names));
        made.tree.set("tables", Json.MAPPER.valueToTree(tables));
        made.tree.put("reason", reason);
        WindowOrders.addChecks(this, made.tree.putArray("checks"), plan);
        return made;
    }

    private static boolean isConstant(LogicalPlan leaf) {
        String name = leaf.nodeName();
        return name.equals("OneRowRelation") || name.equals("LocalRelation") || name.equals("Range");
    }

    // --- columns and expressions -----------------------------------------------------------------------------

    /** A new column, whose name begins like a given one. */
    Attribute column(String name, DataType type) {
        StringBuilder kept = new StringBuilder();
        String lower = name.toLowerCase(Locale.ROOT);
        for (int i = 0; i < Math.min(lower.length(), 40); i++) {
            char each = lower.charAt(i);
            kept.append(each >= 'a' && each <= 'z' || each >= '0' && each <= '9' ? each : '_');
        }
        Attribute made = Nodes.column(kept.append('_').append(++used).toString(), type);
        types.put(made.name(), type.catalogString());
        return made;
    }

    static Attribute columnOf(Attribute attribute, Map<ExprId, Attribute> columns) {
        Attribute found = columns.get(attribute.exprId());
        if (found == null) {
            throw cannot(attribute.name() + " is computed with the query around it");
        }
        return found;
    }

    static Attribute plain(Expression value, Map<ExprId, Attribute> columns) {
        if (!(value instanceof AttributeReference)) {
            throw cannot(value.sql() + " is computed as a whole");
        }
        return columnOf((AttributeReference) value, columns);
    }

    /** An expression over an operator's columns, as the tree has it. */
    ObjectNode value(Expression expression, Map<ExprId, Attribute> columns) {
        ObjectNode made = Json.MAPPER.createObjectNode();
        if (expression instanceof AttributeReference) {
            made.put("column", columnOf((AttributeReference) expression, columns).name());
            return made;
        }
        Expression bound = bound(expression, columns);
        made.put("handle", plans.keep(bound));
        made.put("type", bound.dataType().catalogString());
        made.put("sql", text(bound));
        TreeSet<String> names = new TreeSet<>();
        references(bound, names);
        made.set("columns", Json.MAPPER.valueToTree(names));
        if (bound instanceof Cast && ((Cast) bound).child() instanceof AttributeReference) {
            made.put("cast_of", ((AttributeReference) ((Cast) bound).child()).name());
        }
        return made;
    }

    /** An expression for people, who aren't told all that it is. */
    private static String text(Expression expression) {
        try {
            return expression.sql();
        } catch (RuntimeException unwritten) {
            return expression.toString();
        }
    }

    private static void references(Expression expression, TreeSet<String> names) {
        if (expression instanceof AttributeReference) {
            names.add(((AttributeReference) expression).name());
        }
        Plans.parts(expression).forEach(each -> references(each, names));
    }

    static Expression bound(Expression expression, Map<ExprId, Attribute> columns) {
        if (expression instanceof AttributeReference) {
            return columnOf((AttributeReference) expression, columns);
        }
        if (expression instanceof SubqueryExpression) {
            throw cannot("a subquery within an expression is computed as a whole");
        }
        if (expression instanceof OuterReference || expression instanceof Generator) {
            throw cannot(expression.sql() + " is computed with the query around it");
        }
        return (Expression) expression.mapChildren(child -> bound(child, columns));
    }

    static RuntimeException cannot(String reason) {
        return new CannotRead(reason);
    }

    static boolean isCannot(RuntimeException error) {
        return error instanceof CannotRead;
    }

    // --- groups ----------------------------------------------------------------------------------------------

    /** Reads an aggregate: the values that rows are grouped by, the aggregates, and expressions over these. */
    private static final class GroupReader {
        private final PlanReader reader;
        private final Aggregate plan;
        private final Read input;
        private final Read made = new Read("aggregate");
        private final Map<Expression, Attribute> groups = new LinkedHashMap<>();
        private final Map<Expression, Attribute> aggregates = new LinkedHashMap<>();
        private final ArrayNode computed = made.tree.putArray("computed");
        private final ArrayNode groupNames = made.tree.putArray("groups");
        private final ArrayNode keyNames = made.tree.putArray("key");
        private final ArrayNode aggregated = made.tree.putArray("aggregates");

        GroupReader(PlanReader reader, Aggregate plan) {
            this.reader = reader;
            this.plan = plan;
            this.input = reader.read(plan.child());
            made.tree.set("input", input.tree);
        }

        Read read() {
            for (Object each : Plans.elements(plan.productElement(0))) {
                Expression group = (Expression) each;
                if (group instanceof Attribute && ((Attribute) group).metadata().contains(SessionWindow.marker())) {
                    throw cannot("windows of sessions are computed as a whole");
                }
                if (!group.foldable()) {
                    addGroup(group);
                }
            }
            if (groups.isEmpty() && !Plans.elements(plan.productElement(0)).isEmpty()) {
                throw cannot("GROUP BY a constant is computed as a whole"); // without rows there is no group
            }
            ArrayNode results = made.tree.putArray("results");
            for (Object each : Plans.elements(plan.productElement(1))) {
                NamedExpression item = (NamedExpression) each;
                Expression value = withoutCasts(over(item instanceof Alias ? ((Alias) item).child() : (Expression) item));
                Attribute column;
                if (value instanceof Attribute) {
                    column = (Attribute) value;
                    results.addArray().add(column.name()).add(column.name());
                } else {
                    column = reader.column(item.name(), value.dataType());
                    results.addArray().add(column.name()).add(reader.keptValue(value));
                }
                made.columns.put(item.exprId(), column);
            }
            return made;
        }

        /** A value without casts to the type that it has. */
        private static Expression withoutCasts(Expression value) {
            Expression found = value;
            while (found instanceof Cast && ((Cast) found).child().dataType().equals(found.dataType())) {
                found = ((Cast) found).child();
            }
            return found;
        }

        private void addGroup(Expression group) {
            Attribute column = grouped(group);
            boolean isWindow = group instanceof Attribute && ((Attribute) group).metadata().contains(TimeWindow.marker());
            if (isWindow) { // its start says which one it is
                column = grouped(new GetStructField(group, 0, Option.apply("start")));
            }
            keyNames.add(column.name());
        }

        private Attribute grouped(Expression group) {
            Attribute known = groups.get(group.canonicalized());
            if (known != null) {
                return known;
            }
            Attribute column;
            if (group instanceof AttributeReference) {
                column = columnOf((AttributeReference) group, input.columns);
            } else {
                ObjectNode value = reader.value(group, input.columns);
                column = reader.column(nameOf(group), group.dataType());
                computed.addArray().add(column.name()).add(value);
            }
            groups.put(group.canonicalized(), column);
            groupNames.add(column.name());
            return column;
        }

        private String nameOf(Expression group) {
            for (Object each : Plans.elements(plan.productElement(1))) {
                if (each instanceof Alias && ((Alias) each).child().semanticEquals(group)) {
                    return ((Alias) each).name();
                }
            }
            return group instanceof GetStructField ? "start" : "group";
        }

        /** An expression over the columns of groups and aggregates. */
        private Expression over(Expression expression) {
            Attribute group = groups.get(expression.canonicalized());
            if (group != null) {
                return group;
            }
            if (expression instanceof AggregateExpression) {
                return aggregate(expression);
            }
            if (expression instanceof AttributeReference) {
                throw cannot(((AttributeReference) expression).name() + " is computed with the query around it");
            }
            if (expression instanceof SubqueryExpression) {
                throw cannot("a subquery within an expression is computed as a whole");
            }
            return (Expression) expression.mapChildren(this::over);
        }

        private Attribute aggregate(Expression expression) {
            Attribute known = aggregates.get(expression.canonicalized());
            if (known == null) {
                ObjectNode value = reader.value(expression, input.columns);
                merge((AggregateExpression) expression, value);
                known = reader.column("aggregate", expression.dataType());
                aggregated.addArray().add(known.name()).add(value);
                aggregates.put(expression.canonicalized(), known);
            }
            return known;
        }

        /**
         * Says of an aggregate whose values over two bags of rows give that over both how they do: by which function.
         * Sums are exact, or fail: those of floating-point numbers aren't, and without ANSI's rules a sum that is too
         * large is NULL, or begins again.
         */
        private void merge(AggregateExpression expression, ObjectNode value) {
            Expression function = (Expression) expression.aggregateFunction();
            List<Expression> arguments = Plans.parts(function);
            if (expression.isDistinct() || expression.filter().isDefined() || arguments.size() != 1) {
                return;
            }
            Expression argument = arguments.get(0);
            String name = function.prettyName();
            String type = expression.dataType().catalogString();
            boolean isExact = type.equals("bigint") || type.startsWith("decimal(");
            boolean isCounted = name.equals("count");
            boolean isSummed = name.equals("sum") && isExact && SQLConf.get().ansiEnabled();
            boolean isExtreme = (name.equals("min") || name.equals("max")) && ORDERED.matcher(type).matches();
            if (isCounted || isSummed || isExtreme) {
                value.put("merge", name);
                if (!isCounted || !(argument instanceof Literal) || argument.nullable()) {
                    value.set("argument", reader.value(argument, input.columns));
                }
            }
        }
    }

    /** Types whose values are the same if neither is less, in all that is said of them. */
    private static final Pattern ORDERED =
            Pattern.compile("tinyint|smallint|int|bigint|decimal\\(.*|string|boolean|date|timestamp");

    /** An expression that is over an operator's columns already. */
    private ObjectNode keptValue(Expression bound) {
        Map<ExprId, Attribute> own = new HashMap<>();
        collect(bound, own);
        return value(bound, own);
    }

    private static void collect(Expression expression, Map<ExprId, Attribute> into) {
        if (expression instanceof Attribute) {
            into.put(((Attribute) expression).exprId(), (Attribute) expression);
        }
        Plans.parts(expression).forEach(each -> collect(each, into));
    }
}

package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.CTESubstitution;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.StructType;

/**
 * Queries of layers, for lake/layers/runner/spark_engine.py: Spark parses and analyses them over tables without rows, and they
 * are read as trees. Their expressions are kept here, by numbers. A step of an increment is a query of the runner's own
 * making that has such a number in the place of an expression; so no expression is ever parsed again.
 */
public final class LayerPlans {
    private static final String HANDLE = "__handle_";
    private static final ThreadLocal<LayerPlans> CURRENT = new ThreadLocal<>();

    private final SparkSession session;
    private final Map<Integer, Object> kept = new ConcurrentHashMap<>();
    private final AtomicInteger last = new AtomicInteger();

    /** The empty relations that stand for tables, by these with their columns, and the tables by the relations' rows. */
    private final Map<String, LogicalPlan> stubs = new HashMap<>();

    private final Map<Object, String> tables = new IdentityHashMap<>();

    public LayerPlans(SparkSession session) {
        this.session = session;
    }

    /**
     * Reads a query, or several whose rows are united by the names of their columns. The request has their texts, the database
     * of names without one, the tables that they may read with their columns, temporary views by their names, and
     * conditions over the rows.
     */
    public String read(String request) {
        JsonNode given = Json.parsed(request);
        return session.withActive(() -> answer(given).toString());
    }

    private synchronized ObjectNode answer(JsonNode given) {
        ObjectNode answer = Json.MAPPER.createObjectNode();
        try {
            LogicalPlan whole = analysedQueries(given);
            PlanReader reader = new PlanReader(this);
            PlanReader.Read read = reader.read(PlanRules.prepared(whole));
            answer.set("tree", read.tree);
            ArrayNode outputs = answer.putArray("outputs");
            for (Object each : Plans.output(whole)) {
                Attribute output = (Attribute) each;
                String column = PlanReader.columnOf(output, read.columns).name();
                outputs.addArray().add(output.name()).add(column);
            }
            ArrayNode conditions = answer.putArray("conditions");
            for (JsonNode each : given.path("conditions")) {
                conditions.add(condition(reader, read, whole, each));
            }
            answer.set("types", reader.types());
        } catch (PlanReader.Refused refusal) {
            answer.removeAll();
            answer.put("refused", refusal.getMessage());
        }
        return answer;
    }

    /**
     * Whether two requests that can be read have the same rows: their plans, as they are read, and their conditions differ in
     * nothing but what Spark's canonical form leaves out, such as the names of columns. False, too, where that can't be said.
     * The names of the rows' columns aren't compared.
     */
    public boolean same(String before, String now) {
        return session.withActive(() -> canonical(Json.parsed(before)).equals(canonical(Json.parsed(now))));
    }

    private synchronized List<Object> canonical(JsonNode given) {
        LogicalPlan whole = analysedQueries(given);
        LogicalPlan prepared = PlanRules.prepared(whole);
        List<ExprId> columns = ids(prepared);
        List<Object> found = new ArrayList<>();
        found.add(RemoveRedundantAliases.apply(prepared).canonicalized()); // `name AS name` is `name`
        ids(whole).forEach(each -> found.add(columns.indexOf(each))); // the rules may have added columns
        for (JsonNode each : given.path("conditions")) {
            found.add(met(whole, each).canonicalized());
        }
        return found;
    }

    private static List<ExprId> ids(LogicalPlan plan) {
        List<ExprId> found = new ArrayList<>();
        Plans.output(plan).forEach(each -> found.add(((Attribute) each).exprId()));
        return found;
    }

    /** The analysed plan of all queries of a request. */
    private LogicalPlan analysedQueries(JsonNode given) {
        Scope scope = new Scope(given);
        List<LogicalPlan> plans = new ArrayList<>();
        for (JsonNode text : given.get("queries")) {
            plans.add(checked(analysed(scope.query(text.asText()))));
        }
        return plans.size() == 1 ? plans.get(0) : united(plans);
    }

    private LogicalPlan analysed(LogicalPlan parsed) {
        return Catalogs.analysed(Catalogs.dataset(session, parsed));
    }

    private static LogicalPlan checked(LogicalPlan analysed) {
        Determinism.check(analysed);
        Determinism.checkCurrentTime(analysed);
        return analysed;
    }

    private LogicalPlan united(List<LogicalPlan> plans) {
        TreeSet<String> first = names(plans.get(0));
        for (LogicalPlan each : plans) {
            TreeSet<String> differing = names(each);
            TreeSet<String> missing = new TreeSet<>(first);
            missing.removeAll(differing);
            differing.removeAll(first);
            missing.addAll(differing);
            if (!missing.isEmpty()) {
                throw new PlanReader.Refused("not all of its flows have a column " + missing.first());
            }
        }
        return analysed(Nodes.unionByName(plans));
    }

    private static TreeSet<String> names(LogicalPlan plan) {
        TreeSet<String> found = new TreeSet<>();
        for (Object each : Plans.output(plan)) {
            found.add(((Attribute) each).name().toLowerCase(Locale.ROOT));
        }
        return found;
    }

    private ObjectNode condition(PlanReader reader, PlanReader.Read read, LogicalPlan rows, JsonNode given) {
        String name = given.get("name").asText();
        LogicalPlan met = met(rows, given);
        try {
            checked(met);
            return reader.value(Plans.parts(Plans.expressions(met).get(0)).get(0), read.columns);
        } catch (PlanReader.Refused refusal) {
            throw new PlanReader.Refused("the expectation " + name + ": " + refusal.getMessage());
        } catch (RuntimeException error) {
            if (PlanReader.isCannot(error)) {
                throw new PlanReader.Refused(overOneRow(name));
            }
            throw error;
        }
    }

    /** The plan whose one column says of each row whether it meets an expectation. */
    private LogicalPlan met(LogicalPlan rows, JsonNode given) {
        String name = given.get("name").asText();
        Expression parsed;
        try {
            parsed = Catalogs.state(session).sqlParser().parseExpression(given.get("condition").asText());
        } catch (Exception error) {
            throw new PlanReader.Refused(
                    "the expectation " + name + " can't be parsed: " + given.get("condition").asText());
        }
        if (hasSubquery(parsed)) { // whose tables Spark would look up
            throw new PlanReader.Refused(overOneRow(name));
        }
        LogicalPlan met = analysed(Nodes.project(Arrays.asList(Nodes.alias(parsed, "met")), rows));
        if (!(met instanceof Project) || !Plans.children(met).get(0).fastEquals(rows)) {
            throw new PlanReader.Refused(overOneRow(name));
        }
        return met;
    }

    private static String overOneRow(String name) {
        return "the expectation " + name + " is over one row: it has no aggregates and subqueries";
    }

    private static boolean hasSubquery(Expression expression) {
        return expression instanceof SubqueryExpression
                || Plans.parts(expression).stream().anyMatch(LayerPlans::hasSubquery);
    }

    // --- what is kept -------------------------------------------------------------------------------------------

    int keep(Object expressionOrPlan) {
        int number = last.incrementAndGet();
        kept.put(number, expressionOrPlan);
        return number;
    }

    /** The table that a relation without rows stands for; null for other nodes. */
    String tableOf(LogicalPlan plan) {
        return plan instanceof LogicalRDD ? tables.get(plan.productElement(1)) : null;
    }

    private LogicalPlan stub(String table, String columns) {
        return stubs.computeIfAbsent(
                table + " " + columns,
                key -> {
                    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
                    Dataset<Row> rows =
                            session.createDataFrame(context.<Row>emptyRDD(), StructType.fromDDL(columns));
                    LogicalPlan relation = Catalogs.analysed(rows);
                    tables.put(relation.productElement(1), table);
                    return relation;
                });
    }

    /** The tables and temporary views that queries of a request may name. */
    private final class Scope {
        private final String database;
        private final JsonNode views;
        private final JsonNode described;

        Scope(JsonNode given) {
            database = given.get("database").asText();
            views = given.path("views");
            described = given.get("tables");
        }

        LogicalPlan query(String text) {
            LogicalPlan parsed;
            try {
                parsed = Catalogs.state(session).sqlParser().parsePlan(text);
            } catch (Exception error) {
                throw new PlanReader.Refused("the query can't be parsed: " + firstLine(error));
            }
            Plans.forEach(
                    parsed,
                    node -> {
                        if (node instanceof Command || node instanceof ParsedStatement) { // Spark would run it
                            throw new PlanReader.Refused("expected one query, a SELECT");
                        }
                    });
            return resolved(CTESubstitution.apply(parsed));
        }

        private LogicalPlan resolved(LogicalPlan plan) {
            if (plan instanceof UnresolvedRelation) {
                return relation(plan);
            }
            if (plan.nodeName().equals("RelationTimeTravel")) {
                throw new PlanReader.Refused("a layer reads its tables as of the moment of the refresh, and of no other");
            }
            LogicalPlan changed = (LogicalPlan) plan.mapChildren(this::resolved);
            return Plans.mapSubqueries(changed, this::resolved);
        }

        private LogicalPlan relation(LogicalPlan plan) {
            List<String> names = new ArrayList<>();
            Plans.elements(plan.productElement(0)).forEach(each -> names.add(((String) each).toLowerCase(Locale.ROOT)));
            if (names.size() == 3 && names.get(0).equals("spark_catalog")) {
                names.remove(0);
            }
            if (names.size() == 1 && views.has(names.get(0))) {
                return Nodes.named(names.get(0), new ArrayList<>(), query(views.get(names.get(0)).asText()));
            }
            String table = names.size() == 1 ? database + "." + names.get(0) : String.join(".", names);
            JsonNode found = described.get(table);
            if (found == null) {
                throw new PlanReader.Refused("there is no table " + table);
            }
            LogicalPlan rows = stub(table, found.get("columns").asText());
            List<String> hidden = Json.texts(found.get("hidden"));
            if (hidden != null && !hidden.isEmpty()) {
                List<Object> visible = Plans.output(rows);
                visible.removeIf(each -> hidden.contains(((Attribute) each).name()));
                rows = Nodes.project(visible, rows);
            }
            String[] parts = table.split("\\.", 2);
            return Nodes.named(parts[1], Arrays.asList("spark_catalog", parts[0]), rows);
        }
    }

    private static String firstLine(Exception error) {
        for (String line : String.valueOf(error.getMessage()).split("\n")) {
            if (!line.trim().isEmpty()) {
                return line.trim();
            }
        }
        return error.getClass().getSimpleName();
    }

    // --- steps ------------------------------------------------------------------------------------------------

    /** The rows of a step's query, whose names {@code __handle_…} stand for expressions that are kept. */
    public Dataset<Row> rows(String text) {
        return during(() -> session.sql(text));
    }

    /**
     * The rows of a plan that is computed as a whole. The request has the plan's number, the names of its columns, and
     * by the tables that it reads the relations that are read in their place.
     */
    public Dataset<Row> whole(String request) {
        JsonNode given = Json.parsed(request);
        return session.withActive(
                () -> {
                    LogicalPlan plan = exchanged((LogicalPlan) kept.get(given.get("plan").asInt()), given.get("relations"));
                    List<Object> outputs = Plans.output(plan);
                    List<Object> columns = new ArrayList<>();
                    for (int i = 0; i < outputs.size(); i++) {
                        columns.add(Nodes.alias((Expression) outputs.get(i), given.get("columns").get(i).asText()));
                    }
                    return Catalogs.dataset(session, Nodes.project(columns, plan));
                });
    }

    private LogicalPlan exchanged(LogicalPlan plan, JsonNode relations) {
        String table = tableOf(plan);
        if (table != null) {
            LogicalPlan rows = Catalogs.analysed(session.table(Catalogs.quoted(relations.get(table).asText())[0]));
            Map<String, Attribute> columns = columns(Plans.output(rows));
            List<Object> renamed = new ArrayList<>();
            for (Object each : Plans.output(plan)) {
                Attribute wanted = (Attribute) each;
                Attribute found = columnLike(wanted, columns.get(wanted.name().toLowerCase(Locale.ROOT)));
                renamed.add(Nodes.alias(found, wanted.name(), wanted.exprId()));
            }
            return Nodes.project(renamed, rows);
        }
        LogicalPlan changed = (LogicalPlan) plan.mapChildren(child -> exchanged(child, relations));
        return Plans.mapSubqueries(changed, subquery -> exchanged(subquery, relations));
    }

    private <T> T during(Supplier<T> analysis) {
        LayerPlans before = CURRENT.get();
        CURRENT.set(this);
        try {
            return analysis.get();
        } finally {
            CURRENT.set(before);
        }
    }

    private static Map<String, Attribute> columns(List<Object> outputs) {
        Map<String, Attribute> found = new HashMap<>();
        outputs.forEach(each -> found.put(((Attribute) each).name().toLowerCase(Locale.ROOT), (Attribute) each));
        return found;
    }

    /** A column of a step that an expression was compiled for. */
    private static Attribute columnLike(Attribute wanted, Attribute found) {
        if (found == null) {
            throw new IllegalStateException("there is no column " + wanted.name() + " any more");
        }
        if (!found.dataType().catalogString().equals(wanted.dataType().catalogString())) {
            throw new IllegalStateException(
                    String.format(
                            "the column %s is a %s, and the layer was compiled for a %s",
                            wanted.name(), found.dataType().catalogString(), wanted.dataType().catalogString()));
        }
        return found;
    }

    /** Puts kept expressions in the places of their numbers, over the columns that are there. */
    static final class HandleRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            LayerPlans current = CURRENT.get();
            return current == null ? plan : current.withExpressions(plan);
        }
    }

    private LogicalPlan withExpressions(LogicalPlan plan) {
        if (plan.resolved()) {
            return plan;
        }
        LogicalPlan node = (LogicalPlan) plan.mapChildren(this::withExpressions);
        List<LogicalPlan> inputs = Plans.children(node);
        if (inputs.isEmpty() || !inputs.stream().allMatch(LogicalPlan::resolved)) {
            return node;
        }
        if (node instanceof Join && !((Join) node).duplicateResolved()) {
            return node;
        }
        Map<String, Attribute> columns = new HashMap<>();
        inputs.forEach(each -> columns.putAll(columns(Plans.output(each))));
        return (LogicalPlan) node.mapExpressions(each -> withExpressions(each, columns));
    }

    private Expression withExpressions(Expression expression, Map<String, Attribute> columns) {
        if (expression instanceof UnresolvedAttribute && ((UnresolvedAttribute) expression).name().startsWith(HANDLE)) {
            String number = ((UnresolvedAttribute) expression).name().substring(HANDLE.length());
            return over(columns, (Expression) kept.get(Integer.parseInt(number)));
        }
        return (Expression) expression.mapChildren(child -> withExpressions(child, columns));
    }

    private static Expression over(Map<String, Attribute> columns, Expression expression) {
        if (expression instanceof Attribute) {
            return columnLike((Attribute) expression, columns.get(((Attribute) expression).name()));
        }
        return (Expression) expression.mapChildren(child -> over(columns, child));
    }
}

package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;

/**
 * {@code CALL lake.system.rollback(table => 'shop.c')} and the like. A procedure answers lines {@code name=value}.
 *
 * <p>Spark 3.5 has no CALL. Spark's command for other systems' statements runs them in all versions.
 */
final class Procedures {
    private static final Pattern CALL =
            Pattern.compile(
                    "\\s*CALL\\s+lake\\s*\\.\\s*system\\s*\\.\\s*(\\w+)\\s*(\\(.*\\))\\s*;?\\s*",
                    Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    /** A procedure: its parameters, the first of which may be needed, and what it does. */
    private static final class Procedure {
        final List<String> parameters;
        final int needed;
        final Action action;

        private Procedure(Action action, int needed, String... parameters) {
            this.action = action;
            this.needed = needed;
            this.parameters = Arrays.asList(parameters);
        }
    }

    private interface Action {
        Map<String, Object> run(LakeTable table, Map<String, Object> arguments);
    }

    private static final Map<String, Procedure> ALL = new TreeMap<>();

    static {
        ALL.put("commit_partition", new Procedure(Procedures::commitPartition, 2, "table", "partition"));
        ALL.put("reopen_partition", new Procedure(Procedures::reopenPartition, 2, "table", "partition"));
        ALL.put("rollback", new Procedure(Procedures::rollback, 2, "table", "instant"));
        ALL.put("savepoint", new Procedure(Procedures::savepoint, 1, "table", "instant", "name"));
        ALL.put("delete_savepoint", new Procedure(Procedures::deleteSavepoint, 1, "table", "instant", "name"));
        ALL.put("publish", new Procedure(Procedures::publish, 1, "table", "filter"));
        ALL.put("compact", new Procedure(Procedures::compact, 1, "table", "min_log_files"));
        ALL.put("cluster", new Procedure((table, arguments) -> cluster(arguments), 1, "table"));
        ALL.put("import", new Procedure(Procedures::importRows, 2, "table", "source"));
        ALL.put("clean", new Procedure(Procedures::clean, 1, "table", "keep_commits", "keep_hours", "keep_versions"));
    }

    private Procedures() {}

    /** The plan of a CALL of one of these procedures, null for every other statement. */
    static LogicalPlan parsed(String statement, ParserInterface parser) {
        Matcher call = CALL.matcher(statement);
        if (!call.matches()) {
            return null;
        }
        String name = call.group(1).toLowerCase(Locale.ROOT);
        Procedure procedure = ALL.get(name);
        if (procedure == null) {
            throw Errors.analysis("there is no procedure lake.system." + name + ": there are " + String.join(", ", ALL.keySet()));
        }
        Map<String, Object> arguments = arguments(name, procedure, call.group(2), parser);
        ExternalCommandRunner runner = (command, options) -> run(procedure, arguments);
        return new ExternalCommandExecutor(runner, statement.trim(), Catalogs.noOptions());
    }

    private static Map<String, Object> arguments(
            String name, Procedure procedure, String text, ParserInterface parser) {
        Expression call;
        try {
            call = parser.parseExpression("lake_call" + text);
        } catch (org.apache.spark.sql.catalyst.parser.ParseException error) {
            throw Errors.rethrow(error);
        }
        if (!(call instanceof UnresolvedFunction)) {
            throw Errors.analysis("CALL lake.system." + name + " takes values in parentheses");
        }
        Map<String, Object> found = new LinkedHashMap<>();
        int position = 0;
        for (Expression each : Plans.parts(call)) {
            String parameter;
            Expression value = each;
            if (each.getClass().getSimpleName().equals("NamedArgumentExpression")) {
                parameter = ((String) each.productElement(0)).toLowerCase(Locale.ROOT);
                value = (Expression) each.productElement(1);
            } else {
                parameter = position < procedure.parameters.size() ? procedure.parameters.get(position) : "number " + (position + 1);
                position++;
            }
            if (!procedure.parameters.contains(parameter) || found.containsKey(parameter)) {
                throw Errors.analysis(
                        "lake.system." + name + " takes " + String.join(", ", procedure.parameters) + ", each once, not " + parameter);
            }
            found.put(parameter, value(name, parameter, value));
        }
        for (String parameter : procedure.parameters.subList(0, procedure.needed)) {
            if (found.get(parameter) == null) {
                throw Errors.analysis("lake.system." + name + " needs " + parameter);
            }
        }
        return found;
    }

    private static Object value(String name, String parameter, Expression given) {
        if (given instanceof Literal) {
            Object value = ((Literal) given).value();
            return value instanceof Number || value == null ? value : value.toString();
        }
        throw Errors.analysis("lake.system." + name + ": " + parameter + " is a text or a number, not " + given.sql());
    }

    private static String[] run(Procedure procedure, Map<String, Object> arguments) {
        boolean takesOthers = procedure == ALL.get("cluster");
        LakeTable table = takesOthers ? null : LakeTable.named(arguments.get("table").toString());
        List<String> lines = new ArrayList<>();
        try {
            procedure.action.run(table, arguments).forEach((name, value) -> lines.add(name + "=" + value));
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
        return lines.toArray(new String[0]);
    }

    private static Map<String, Object> commitPartition(LakeTable table, Map<String, Object> arguments) {
        Metastore.Answer answer = table.call("lake_commit_partitions", partitions(table, arguments));
        return Collections.singletonMap("committed", String.join(", ", answer.texts(1)));
    }

    private static Map<String, Object> reopenPartition(LakeTable table, Map<String, Object> arguments) {
        Metastore.Answer answer = table.call("lake_reopen_partitions", partitions(table, arguments));
        return Collections.singletonMap("reopened", String.join(", ", answer.texts(1)));
    }

    private static Metastore.Struct partitions(LakeTable table, Map<String, Object> arguments) {
        return new Metastore.Struct()
                .with(1, table.reference())
                .with(2, Collections.singletonList(arguments.get("partition")));
    }

    /** Undoes the latest completed instant. */
    private static Map<String, Object> rollback(LakeTable table, Map<String, Object> arguments) {
        String timestamp = arguments.get("instant").toString();
        for (Metastore.Answer each : table.instants()) {
            if (each.text(1).equals(timestamp) && each.has(8) && !each.text(2).equals("savepoint")) {
                Metastore.Struct undone = new Metastore.Struct().with(1, timestamp).with(2, each.text(2));
                return table.change("rollback", new Metastore.Struct().with(15, Collections.singletonList(undone)));
            }
        }
        throw Errors.analysis(table.name() + " has no completed instant " + timestamp);
    }

    /** Keeps cleans off the snapshot of an instant, by default the last one, and gives it a name if there is one. */
    private static Map<String, Object> savepoint(LakeTable table, Map<String, Object> arguments) {
        Object instant = arguments.get("instant");
        Object name = arguments.get("name");
        Metastore.Struct request =
                new Metastore.Struct()
                        .with(1, table.reference())
                        .with(2, "savepoint")
                        .with(3, instant == null ? null : instant.toString())
                        .with(4, "inflight")
                        .with(10, name == null ? null : name.toString());
        String timestamp = table.call("lake_begin_instant", request).text(1);
        Metastore.Struct completion = new Metastore.Struct().with(1, table.reference()).with(2, timestamp).with(3, "savepoint");
        table.list("lake_complete_instants", Collections.singletonList(completion));
        return Collections.singletonMap("savepoint", name == null ? timestamp : name);
    }

    private static Map<String, Object> deleteSavepoint(LakeTable table, Map<String, Object> arguments) {
        Object instant = arguments.get("instant");
        Object name = arguments.get("name");
        if ((instant == null) == (name == null)) {
            throw Errors.analysis("lake.system.delete_savepoint takes either instant or name");
        }
        for (Metastore.Answer each : table.instants()) {
            boolean named = name == null ? instant.toString().equals(each.text(1)) : name.toString().equals(each.text(18));
            if (each.text(2).equals("savepoint") && named) {
                table.call("lake_delete_instant", table.reference(), each.text(1), "savepoint");
                return Collections.singletonMap("deleted", name == null ? instant : name);
            }
        }
        throw Errors.analysis(table.name() + " has no savepoint " + (name == null ? instant : name));
    }

    private static Map<String, Object> publish(LakeTable table, Map<String, Object> arguments) {
        Object filter = arguments.get("filter");
        Map<String, Object> found = Publishing.run(table, filter == null ? null : filter.toString());
        SparkSession.active().catalog().refreshTable(table.quotedName());
        return found;
    }

    private static Map<String, Object> compact(LakeTable table, Map<String, Object> arguments) {
        Object least = arguments.getOrDefault("min_log_files", 1);
        if (!(least instanceof Number) || ((Number) least).longValue() < 1) {
            throw Errors.analysis("lake.system.compact: min_log_files is a whole number from 1 on, not " + least);
        }
        return Compaction.run(table, ((Number) least).longValue());
    }

    /** Has a table service cluster a table without a primary key. */
    private static Map<String, Object> cluster(Map<String, Object> arguments) {
        TableIdentifier name = identifier(arguments.get("table"));
        if (LakeTable.ifKeyed(name) != null) {
            throw Errors.analysis(
                    name.unquotedString() + " is a keyed table, whose files are by bucket and sorted by key: CALL lake.system.compact");
        }
        Metastore metastore = Metastore.of(SparkSession.active());
        if (metastore == null) {
            throw Errors.analysis("this session has no metastore: set spark.hadoop.hive.metastore.uris");
        }
        Metastore.Struct job = new Metastore.Struct().with(1, "clustering").with(3, "CALL lake.system.cluster");
        Metastore.Answer queued =
                (Metastore.Answer) metastore.callOnce("lake_submit_job", LakeTable.reference(LakeTable.inDatabase(name), 0), job);
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("job", queued.number(1, 0));
        found.put("state", queued.text(4));
        found.put("advice", "a table service runs it: metastore table-services plans");
        return found;
    }

    private static TableIdentifier identifier(Object name) {
        try {
            return Catalogs.state(SparkSession.active()).sqlParser().parseTableIdentifier(name.toString());
        } catch (org.apache.spark.sql.catalyst.parser.ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    /** Inserts the rows of another table, in one instant. */
    private static Map<String, Object> importRows(LakeTable table, Map<String, Object> arguments) {
        SparkSession session = SparkSession.active();
        String source = identifier(arguments.get("source")).quotedString();
        long before = table.position();
        String columns = String.join(", ", Catalogs.quoted(session.table(source).columns()));
        session.sql("INSERT INTO " + table.quotedName() + " (" + columns + ") SELECT " + columns + " FROM " + source);
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("after", before);
        found.put("position", LakeTable.named(table.quotedName()).position());
        return found;
    }

    /** Deletes files that no snapshot to be kept needs. */
    private static Map<String, Object> clean(LakeTable table, Map<String, Object> arguments) {
        Metastore.Struct request = new Metastore.Struct().with(1, table.reference());
        int field = 2;
        for (String each : Arrays.asList("keep_commits", "keep_hours", "keep_versions")) {
            request.with(field++, arguments.get(each));
        }
        List<String> paths = new ArrayList<>();
        for (Metastore.Answer file : table.list("lake_plan_clean", request)) {
            paths.add(file.text(4));
        }
        if (paths.isEmpty()) {
            return Collections.singletonMap("files", 0);
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("files", paths.size());
        found.putAll(table.change("clean", new Metastore.Struct().with(16, paths)));
        return found;
    }
}

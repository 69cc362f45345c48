package lake.metastore.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.types.StructField;
import scala.Option;

/**
 * INSERT statements of tables with a timeline as they are parsed, while they still say what later plans don't: which columns they
 * leave out, and that all of a partition is named.
 */
final class Inserts {
    private Inserts() {}

    /** The name that the rows have of an INSERT OVERWRITE which names all of a partition. */
    private static final String STATIC = "lake_static_partition";

    /** A parsed statement, prepared wherever it inserts, and where it merges. */
    static LogicalPlan prepared(LogicalPlan plan, ParserInterface parser) {
        if (plan instanceof ExplainCommand) {
            LogicalPlan explained = prepared((LogicalPlan) plan.productElement(0), parser);
            return plan.makeCopy(Plans.with((ExplainCommand) plan, 0, explained));
        }
        if (plan instanceof MergeIntoTable) {
            return Upserts.prepared(plan, parser);
        }
        return inserting(plan, parser);
    }

    private static LogicalPlan inserting(LogicalPlan plan, ParserInterface parser) {
        return plan instanceof InsertIntoStatement
                ? insert(plan, parser)
                : (LogicalPlan) plan.mapChildren(child -> inserting(child, parser));
    }

    private static LogicalPlan insert(LogicalPlan plan, ParserInterface parser) {
        Set<String> partition = new HashSet<>(); // columns with values
        for (Object column : Plans.elements(plan.productElement(1))) {
            scala.Tuple2<?, ?> each = (scala.Tuple2<?, ?>) column;
            if (((Option<?>) each._2()).isDefined()) {
                partition.add(((String) each._1()).toLowerCase(Locale.ROOT));
            }
        }
        List<String> given = texts(plan.productElement(2));
        boolean isComplete = given.isEmpty() || !SparkSession.active().version().startsWith("3.");
        boolean isOverwrite = (Boolean) plan.productElement(4) && !partition.isEmpty();
        LakeTable table = isComplete && !isOverwrite ? null : table(plan);
        if (table == null) {
            return plan;
        }
        try {
            LogicalPlan complete = isComplete ? plan : completed(plan, given, partition, table, parser);
            if (!isOverwrite || !partition.containsAll(table.partitionColumns())) {
                return complete;
            }
            LogicalPlan rows = parser.parsePlan("SELECT * FROM lake_given_rows AS " + STATIC);
            return complete.mapChildren(query -> Plans.withRelation(rows, query));
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    /** The table of an INSERT that has a timeline, null for another. */
    private static LakeTable table(LogicalPlan insert) {
        TableIdentifier identifier = identifier((LogicalPlan) insert.productElement(0));
        LakeTable keyed = identifier == null ? null : LakeTable.ifKeyed(identifier);
        PlainTable plain = identifier == null || keyed != null ? null : PlainTable.named(identifier);
        return plain == null ? keyed : plain.lake;
    }

    /** The keyed table that a parsed relation names, null for any other. */
    static LakeTable keyed(LogicalPlan relation) {
        TableIdentifier identifier = relation instanceof UnresolvedRelation ? identifier(relation) : null;
        return identifier == null ? null : LakeTable.ifKeyed(identifier);
    }

    /** What a parsed relation names, null for what no table of the session's own catalog has as its name. */
    private static TableIdentifier identifier(LogicalPlan relation) {
        List<String> name = texts(relation.productElement(0));
        boolean isNamed = name.size() == 3 && name.get(0).equalsIgnoreCase("spark_catalog");
        if (isNamed) {
            name = name.subList(1, 3);
        }
        if (name.isEmpty() || name.size() > 2) {
            return null;
        }
        TableIdentifier found =
                name.size() == 2
                        ? TableIdentifier.apply(name.get(1), Option.apply(name.get(0)))
                        : TableIdentifier.apply(name.get(0));
        return isNamed || Catalogs.isOwn(SparkSession.active(), found) ? found : null;
    }

    /**
     * The partition that an overwrite names, null if it names none or only a part. Spark's plan of an INSERT OVERWRITE in
     * the dynamic mode doesn't say it, and would leave the partition as it is if there are no rows.
     */
    static String staticPartition(LogicalPlan query, LakeTable table) {
        Deque<List<Expression>> projections = projections(query, STATIC);
        return projections == null ? null : partition(projections, table);
    }

    /** Whether the rows of a query have a name that we gave them as the statement was parsed. */
    static boolean isOf(LogicalPlan query, String name) {
        return projections(query, name) != null;
    }

    /** What is projected of rows that have a name, the lowest first; null if a query's rows don't have it. */
    private static Deque<List<Expression>> projections(LogicalPlan query, String name) {
        Deque<List<Expression>> found = new ArrayDeque<>();
        for (LogicalPlan node = query; ; node = Plans.children(node).get(0)) {
            while (node instanceof WithCTE) {
                node = ((WithCTE) node).plan();
            }
            if (node instanceof SubqueryAlias && ((SubqueryAlias) node).alias().equals(name)) {
                return found;
            }
            if (!(node instanceof Project)) {
                return null;
            }
            found.push(Plans.expressions(node));
        }
    }

    /** The name of the partition whose columns have fixed values. */
    private static String partition(Iterable<List<Expression>> projections, LakeTable table) {
        StringBuilder name = new StringBuilder();
        for (String column : table.partitionColumns()) {
            Expression value = lowest(projections, column);
            boolean isFixed = value != null && value.foldable();
            String text = isFixed ? LakeRowWriter.text(value.eval(null), value.dataType()) : null;
            if (text == null) {
                return null;
            }
            text = PartitionFilter.filledUp(table, column, text).toString();
            name.append(name.length() == 0 ? "" : "/").append(LakeRowWriter.part(column, text));
        }
        return name.toString();
    }

    /** The value that the lowest projection with a column gives it; others convert and check it. Null for none. */
    private static Expression lowest(Iterable<List<Expression>> projections, String column) {
        for (List<Expression> projection : projections) {
            for (Expression each : projection) {
                if (each instanceof Alias && ((Alias) each).name().equalsIgnoreCase(column)) {
                    return ((Alias) each).child();
                }
            }
        }
        return null;
    }

    /** INSERT INTO t (a, b): Spark 3.5 gives further columns their defaults, or nulls, in its own tables alone. */
    private static LogicalPlan completed(
            LogicalPlan plan, List<String> given, Set<String> partition, LakeTable table, ParserInterface parser)
            throws ParseException {
        Set<String> set = new HashSet<>(given);
        set.addAll(partition);
        List<String> all = new ArrayList<>(given);
        StringBuilder query = new StringBuilder("SELECT *");
        for (StructField each : table.schema().fields()) {
            boolean isSet = set.stream().anyMatch(column -> column.equalsIgnoreCase(each.name()));
            if (!isSet && each.nullable()) {
                boolean hasDefault = each.metadata().contains(LakeTable.DEFAULT);
                query.append(", ").append(hasDefault ? each.metadata().getString(LakeTable.DEFAULT) : "NULL");
                all.add(each.name());
            }
        }
        if (all.size() == given.size()) {
            return plan;
        }
        String columns = String.join(", ", Catalogs.quoted(all.toArray(new String[0])));
        LogicalPlan statement = parser.parsePlan("INSERT INTO t (" + columns + ") SELECT 1");
        LogicalPlan complete = plan.makeCopy(Plans.with(plan, 2, statement.productElement(2)));
        LogicalPlan rows = parser.parsePlan(query + " FROM lake_given_rows");
        return complete.mapChildren(child -> Plans.withRelation(rows, child));
    }

    static List<String> texts(Object names) {
        return Plans.elements(names).stream().map(String::valueOf).collect(Collectors.toList());
    }
}

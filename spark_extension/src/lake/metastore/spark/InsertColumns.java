package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructField;
import scala.Option;

/**
 * {@code INSERT INTO t (a, b)} of tables that have further columns. Spark 3.5 gives these their defaults, or nulls, in its
 * own tables alone; later versions in all.
 */
final class InsertColumns {
    private InsertColumns() {}

    /** The statement with the columns that it leaves out. */
    static LogicalPlan completed(LogicalPlan plan, ParserInterface parser) throws ParseException {
        if (!(plan instanceof InsertIntoStatement) || !SparkSession.active().version().startsWith("3.")) {
            return plan;
        }
        List<String> given = texts(plan.productElement(2));
        List<String> name = texts(((LogicalPlan) plan.productElement(0)).productElement(0));
        if (given.isEmpty() || name.isEmpty() || name.size() > 2) {
            return plan;
        }
        LakeTable table =
                LakeTable.ifKeyed(
                        name.size() == 2
                                ? TableIdentifier.apply(name.get(1), Option.apply(name.get(0)))
                                : TableIdentifier.apply(name.get(0)));
        if (table == null) {
            return plan;
        }
        Set<String> set = new HashSet<>(given);
        scala.collection.Iterator<?> partition = ((scala.collection.Iterable<?>) plan.productElement(1)).iterator();
        while (partition.hasNext()) {
            set.add((String) ((scala.Tuple2<?, ?>) partition.next())._1());
        }
        List<String> all = new ArrayList<>(given);
        StringBuilder query = new StringBuilder("SELECT *");
        for (StructField each : table.schema().fields()) {
            boolean isSet = set.stream().anyMatch(column -> column.equalsIgnoreCase(each.name()));
            if (!isSet && each.nullable()) {
                boolean hasDefault = each.metadata().contains("CURRENT_DEFAULT");
                query.append(", ").append(hasDefault ? each.metadata().getString("CURRENT_DEFAULT") : "NULL");
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
        return complete.mapChildren(child -> (LogicalPlan) rows.mapChildren(unresolved -> child));
    }

    private static List<String> texts(Object names) {
        List<String> found = new ArrayList<>();
        if (names instanceof scala.collection.Iterable) {
            scala.collection.Iterator<?> iterator = ((scala.collection.Iterable<?>) names).iterator();
            while (iterator.hasNext()) {
                found.add(String.valueOf(iterator.next()));
            }
        }
        return found;
    }
}

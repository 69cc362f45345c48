package lake.metastore.spark;

import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;

/**
 * As of what a query of {@code lake.spark.sql} reads all of its tables. It is in force while a thread analyses the query:
 * the catalog loads the tables as it says, those without a primary key, too.
 */
final class QueryScope {
    private static final ThreadLocal<QueryScope> CURRENT = new ThreadLocal<>();

    private final ReadPoint point;
    private final boolean includesUncommitted;

    private QueryScope(ReadPoint point, boolean includesUncommitted) {
        this.point = point;
        this.includesUncommitted = includesUncommitted;
    }

    /** That of the query which this thread analyses; null for a statement of its own. */
    static QueryScope current() {
        return CURRENT.get();
    }

    /** The point of all tables. {@code given}: what a statement says of one. */
    ReadPoint point(ReadPoint given, String table) {
        if (!given.isLatest()) {
            throw Errors.analysis(
                    table + ": say as_of=, which is of all tables, instead of VERSION or TIMESTAMP AS OF");
        }
        return point;
    }

    /** A table that the catalog has loaded as of the point. */
    LakeTable seen(LakeTable table) {
        return (includesUncommitted ? table.includingUncommitted() : table).in(this);
    }

    /**
     * The rows of a query, whose tables are read as of one point; null for another statement. Raises Refused for
     * what can't be read any more.
     *
     * @param point the latest, a moment or a time
     */
    static Dataset<Row> rows(SparkSession session, String text, ReadPoint point, boolean includesUncommitted) {
        LogicalPlan parsed;
        try {
            parsed = Catalogs.state(session).sqlParser().parsePlan(text);
        } catch (org.apache.spark.sql.catalyst.parser.ParseException error) {
            throw Errors.rethrow(error);
        }
        if (!isQuery(parsed)) {
            return null;
        }
        QueryScope scope = new QueryScope(point, includesUncommitted);
        Dataset<Row> rows = scope.during(() -> Catalogs.dataset(session, parsed));
        boolean mayBeCached = !session.version().startsWith("3.") && !session.version().startsWith("4.0");
        Plans.forEachWithSubqueries(
                Catalogs.analysed(rows),
                node -> {
                    LakeTable table = LakeRelations.table(node);
                    if (table != null && table.isIn(scope)) {
                        table.decided();
                    } else if (table != null && mayBeCached && ((DataSourceV2Relation) node).catalog().isDefined()) {
                        throw Errors.analysis(
                                table.name() + " is read as CACHE TABLE has kept it, which may be as of another moment:"
                                        + " UNCACHE TABLE it first");
                    }
                });
        return rows;
    }

    private static boolean isQuery(LogicalPlan plan) {
        boolean[] found = {true};
        Plans.forEach(
                plan, node -> found[0] &= !(node instanceof Command) && !(node instanceof ParsedStatement));
        return found[0];
    }

    private <T> T during(Supplier<T> analysis) {
        QueryScope before = CURRENT.get();
        CURRENT.set(this);
        try {
            return analysis.get();
        } finally {
            CURRENT.set(before);
        }
    }

    /**
     * Takes the names off relations of such queries. By a name Spark would load the table again, as of another moment, where
     * the query's DataFrame has become a view.
     */
    static final class RelationRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            QueryScope scope = current();
            return scope == null ? plan : scope.nameless(plan);
        }
    }

    private LogicalPlan nameless(LogicalPlan plan) {
        LakeTable table = LakeRelations.table(plan);
        if (table == null || !table.isIn(this)) {
            return plan.mapChildren(this::nameless);
        }
        DataSourceV2Relation relation = (DataSourceV2Relation) plan;
        if (relation.catalog().isEmpty()) {
            return plan;
        }
        Object[] elements = Plans.with(relation, 2, Option.empty());
        elements[3] = Option.empty();
        return relation.makeCopy(elements);
    }
}

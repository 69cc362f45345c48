package lake.metastore.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import org.apache.spark.sql.internal.SessionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.math.BigInt;

/**
 * What ANALYZE has found of tables. Of keyed tables Spark counts rows as queries see them, but adds up the files in a table's
 * directory: what was published, or nothing. A session that takes this for the size of the rows broadcasts a large table.
 */
final class TableStatistics {
    private static final Logger LOG = LoggerFactory.getLogger(TableStatistics.class);

    private TableStatistics() {}

    /**
     * Forgets what ANALYZE has found of a table without a key, as Spark's own writes do: queries take it for the size of the
     * rows, and would broadcast a table that has grown. A failure is ignored: the rows are written.
     *
     * @param table as the statement that has written it found it
     */
    static void forget(SparkSession session, LakeTable table) {
        if (!isAnalyzed(table)) {
            return;
        }
        try {
            Catalogs.state(session).catalog().alterTableStats(table.identifier(), Option.empty());
        } catch (Exception error) { // Scala declares none, and throws any
            LOG.warn("{} keeps the statistics of older rows, ANALYZE it again: {}", table.name(), error.getMessage());
        }
    }

    /** The metastore itself counts what is in a table without partitions, except for the values of its columns. */
    private static boolean isAnalyzed(LakeTable table) {
        Option<CatalogStatistics> found = table.definition.v1Table().stats();
        return found.isDefined() && (!table.partitionColumns().isEmpty() || found.get().colStats().nonEmpty());
    }

    /** Spark's own command, and after it the size of the files that queries read; null for other tables. */
    static LogicalPlan command(LogicalPlan plan) {
        TableIdentifier name = LakeTable.inDatabase((TableIdentifier) plan.productElement(0));
        if (LakeTable.ifKeyed(name) == null) {
            return null;
        }
        ExternalCommandRunner runner =
                (text, options) -> {
                    SparkSession session = SparkSession.active();
                    run(plan, session);
                    setSize(name, Catalogs.state(session));
                    return new String[0];
                };
        return new ExternalCommandExecutor(runner, "ANALYZE TABLE " + name.unquotedString(), Catalogs.noOptions());
    }

    /** Its result has another type in each line of Spark. */
    private static void run(LogicalPlan command, SparkSession session) {
        try {
            for (Method each : command.getClass().getMethods()) {
                if (each.getName().equals("run") && each.getParameterCount() == 1) {
                    each.invoke(command, session);
                    return;
                }
            }
            throw new NoSuchMethodException("run");
        } catch (InvocationTargetException error) {
            throw Errors.rethrow(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void setSize(TableIdentifier name, SessionState state) {
        try {
            LakeTable table = LakeTable.ifKeyed(name);
            Option<CatalogStatistics> found = state.catalog().getTableMetadata(name).stats();
            if (table == null || found.isEmpty()) {
                return; // it was dropped meanwhile
            }
            long size = table.snapshot().files.stream().mapToLong(each -> each.size).sum();
            CatalogStatistics known = found.get();
            CatalogStatistics sized = new CatalogStatistics(BigInt.apply(size), known.rowCount(), known.colStats());
            state.catalog().alterTableStats(name, Option.apply(sized));
        } catch (Exception error) {
            throw Errors.rethrow(error);
        }
    }
}
